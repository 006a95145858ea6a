//! The problems that keep services from running: root causes, each with the path that leads to it.
//! Not for: how all services stand (`snapshot`).

use std::fmt;

use serde::Serialize;

use super::graph::{Candidate, Graph};
use super::list::NONE;
use super::properties::Text;
use super::rule::Rule;
use super::state::{Reason, State};

/// Steps of a longer path than this are left out in its middle.
const STEPS_SHOWN_MAX: usize = 16;
/// Candidates that an ambiguity names.
const CANDIDATES_SHOWN_MAX: usize = 4;

/// The root cause that keeps one or more services from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// From a service to the cause: services and interfaces in turn.
    pub path: Vec<String>,
    /// The cause at the end of the path.
    pub cause: Cause,
}

/// The cause at the end of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Cause {
    /// No service provides the interface.
    Missing {
        /// The filter that the provider must pass.
        filter: Option<String>,
        /// Providers that the filter does not accept.
        refused: u32,
    },
    /// Several provide the interface, and the need does not say which.
    Ambiguous {
        /// The first of them.
        candidates: Vec<String>,
    },
    /// The path ends where it was before.
    Cycle,
    /// The service at the end failed.
    Failed {
        /// Why.
        reason: Reason,
    },
    /// The service at the end was stopped, or never wanted.
    Stopped,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out = self.path.len().saturating_sub(STEPS_SHOWN_MAX);
        if left_out < 2 {
            f.write_str(&self.path.join(" -> "))?;
        } else {
            let (head, rest) = self.path.split_at(STEPS_SHOWN_MAX / 2);
            let tail = &rest[left_out..];
            let (head, tail) = (head.join(" -> "), tail.join(" -> "));
            write!(f, "{head} -> ({left_out} steps) -> {tail}")?;
        }
        match &self.cause {
            Cause::Missing { filter: None, .. } => f.write_str(": nobody provides it"),
            Cause::Missing {
                filter: Some(filter),
                refused,
            } => write!(f, ": nobody provides it with {filter} ({refused} without)"),
            Cause::Ambiguous { candidates } => {
                let candidates = candidates.join(", ");
                write!(
                    f,
                    ": several provide it ({candidates}), and no filter says which"
                )
            }
            Cause::Cycle => f.write_str(": a cycle"),
            Cause::Failed { reason } => write!(f, ": {reason}"),
            Cause::Stopped => f.write_str(": it is stopped"),
        }
    }
}

/// The problems that keep services from running. They print one on a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problems {
    /// At most [`Options::problems_max`](super::Options) of them.
    pub problems: Vec<Problem>,
    /// The number of further problems.
    pub more: usize,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Problems {}

/// The services that a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// Services that do not run.
    Idle,
    /// And services that run, and could not be started anew.
    All,
    /// One that does not run.
    One(u32),
}

/// A walk along unmet requirements, depth first; each service is entered once.
struct Walk<'a> {
    graph: &'a Graph,
    /// By place.
    colours: Vec<Colour>,
    /// The services on the way, each with the need that is being looked at.
    way: Vec<(u32, u32)>,
    found: Problems,
    problems_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    New,
    OnTheWay,
    Done,
}

impl Graph {
    /// Finds what keeps services from running, each root cause once, with the longest
    /// path that a first visit finds. O(services + edges).
    pub fn problems(&self, asking: Asking, problems_max: usize) -> Problems {
        let mut walk = Walk {
            graph: self,
            colours: vec![Colour::New; self.slots.all().len()],
            way: Vec::new(),
            found: Problems::default(),
            problems_max,
        };
        if let Asking::One(service) = asking {
            walk.enter(service);
            return walk.found;
        }
        // Those first that no other waits for, because their paths are the longest.
        let waited_for = self.waited_for();
        for service in self
            .slots
            .all()
            .filter(|&service| !waited_for[service as usize])
        {
            walk.enter(service);
        }
        for service in self.slots.all() {
            walk.enter(service);
        }
        if asking == Asking::All {
            for service in self.slots.all() {
                walk.check_running(service);
            }
        }
        walk.found
    }

    fn waited_for(&self) -> Vec<bool> {
        let mut waited_for = vec![false; self.slots.all().len()];
        let waiting = self.slots.all().filter(|&service| self.is_stuck(service));
        for need in waiting.flat_map(|service| self.needs_of(service)) {
            if let Some(provider) = self.expected(need) {
                waited_for[provider as usize] = true;
            }
        }
        waited_for
    }

    fn is_stuck(&self, service: u32) -> bool {
        let slot = &self.slots[service];
        slot.recipe.is_some() && slot.state == State::Waiting && slot.unmet > 0
    }

    /// The only service that can meet an unmet need: its provider, or the factory
    /// that is to make it one.
    fn expected(&self, need: u32) -> Option<u32> {
        let at = &self.needs[need];
        if !at.edges.is_empty() || at.rule != Rule::Required {
            return None;
        }
        if at.made != NONE {
            return Some(at.made);
        }
        match self.candidate(need, &mut 0) {
            Candidate::One(offer) => Some(self.offers[offer].service),
            _ => None,
        }
    }

    fn name_of(&self, service: u32) -> String {
        self.slots[service].name.to_string()
    }

    fn interface_of(&self, need: u32) -> &Text {
        &self.interfaces[self.needs[need].interface as usize].name
    }

    fn missing(&self, need: u32) -> Cause {
        let at = &self.needs[need];
        let filter = at.filter.as_ref().map(|filter| filter.to_string());
        let refused = self.interfaces[at.interface as usize].offers.len;
        Cause::Missing { filter, refused }
    }

    fn ambiguous(&self, need: u32) -> Cause {
        let at = &self.needs[need];
        let accepted = |&offer: &u32| self.accepts(at, offer);
        let all = self.installed(at.interface).filter(accepted);
        let mut candidates: Vec<String> = all
            .take(CANDIDATES_SHOWN_MAX + 1)
            .map(|offer| self.name_of(self.offers[offer].service))
            .collect();
        if candidates.len() > CANDIDATES_SHOWN_MAX {
            candidates[CANDIDATES_SHOWN_MAX] = "…".to_owned();
        }
        Cause::Ambiguous { candidates }
    }

    fn reason_of(&self, service: u32) -> Reason {
        let rare = self.slots[service].rare.as_ref();
        let reason = rare.and_then(|rare| rare.reason.clone());
        reason.unwrap_or_else(|| Reason::StartFailed("for no reason".to_owned()))
    }

    /// One sentence: for what a service that does not run waits.
    pub fn why_not_running(&self, service: u32) -> String {
        match self.slots[service].state {
            State::Running => String::new(),
            State::Failed => self.reason_of(service).to_string(),
            State::Stopped => "it is stopped".to_owned(),
            State::Starting => "its start is not over".to_owned(),
            State::Leaving => "it stops after those who use it".to_owned(),
            State::Stopping => "its stop is not over".to_owned(),
            State::Waiting => {
                let needs = self.needs_of(service);
                let waits: Vec<String> = needs.filter_map(|need| self.why_unmet(need)).collect();
                match waits.is_empty() {
                    true => "it is about to start".to_owned(),
                    false => format!("waits for {}", waits.join(", ")),
                }
            }
        }
    }

    fn why_unmet(&self, need: u32) -> Option<String> {
        let at = &self.needs[need];
        if at.rule != Rule::Required || !at.edges.is_empty() {
            return None;
        }
        let interface = self.interface_of(need);
        if let Some(provider) = self.expected(need) {
            let slot = &self.slots[provider];
            return Some(format!("{interface} ({} is {})", slot.name, slot.state));
        }
        let why = match self.candidate(need, &mut 0) {
            Candidate::Ambiguous(..) => "several provide it",
            _ => "nobody provides it",
        };
        Some(format!("{interface} ({why})"))
    }
}

impl Walk<'_> {
    /// Goes from `service` to all causes that have not been found yet.
    fn enter(&mut self, service: u32) {
        if self.visit(service) {
            while let Some(&(service, need)) = self.way.last() {
                if need == NONE {
                    self.colours[service as usize] = Colour::Done;
                    self.way.pop();
                    self.advance();
                } else if !self.look(need) {
                    self.advance();
                }
            }
        }
    }

    /// Steps to the next need of the service that the way ends at.
    fn advance(&mut self) {
        if let Some((_, need)) = self.way.last_mut() {
            *need = self.graph.needs[*need].next;
        }
    }

    /// Arrives at a service; true where there is more to see behind it.
    fn visit(&mut self, service: u32) -> bool {
        let slot = &self.graph.slots[service];
        if slot.recipe.is_none() || self.colours[service as usize] == Colour::Done {
            return false;
        }
        match slot.state {
            State::Waiting if self.colours[service as usize] == Colour::OnTheWay => {
                self.report_cycle(service);
                false
            }
            State::Waiting if slot.unmet > 0 => {
                self.colours[service as usize] = Colour::OnTheWay;
                self.way.push((service, slot.needs));
                true
            }
            State::Failed => {
                self.colours[service as usize] = Colour::Done;
                let reason = self.graph.reason_of(service);
                self.report(Some(service), Cause::Failed { reason });
                false
            }
            // No problem, unless a service on the way needs it.
            State::Stopped if !self.way.is_empty() => {
                self.colours[service as usize] = Colour::Done;
                self.report(Some(service), Cause::Stopped);
                false
            }
            _ => false,
        }
    }

    /// Looks at an unmet need; true where the way now goes on behind it.
    fn look(&mut self, need: u32) -> bool {
        let at = &self.graph.needs[need];
        if !at.edges.is_empty() || at.rule == Rule::Many {
            return false;
        }
        if let Some(provider) = self.graph.expected(need) {
            return self.visit(provider);
        }
        match self.graph.candidate(need, &mut 0) {
            Candidate::None if at.rule == Rule::Required => {
                self.report(None, self.graph.missing(need));
            }
            Candidate::Ambiguous(..) => self.report(None, self.graph.ambiguous(need)),
            _ => {}
        }
        false
    }

    /// Whether a service that runs has become ambiguous in what it uses.
    fn check_running(&mut self, service: u32) {
        let slot = &self.graph.slots[service];
        if slot.recipe.is_none() || slot.state != State::Running {
            return;
        }
        for need in self.graph.needs_of(service) {
            let at = &self.graph.needs[need];
            let one = at.rule != Rule::Many && at.made == NONE;
            if one && matches!(self.graph.candidate(need, &mut 0), Candidate::Ambiguous(..)) {
                self.way.push((service, need));
                self.report(None, self.graph.ambiguous(need));
                self.way.pop();
            }
        }
    }

    fn report(&mut self, end: Option<u32>, cause: Cause) {
        self.report_from(0, end, cause);
    }

    fn report_cycle(&mut self, service: u32) {
        let start = self.way.iter().position(|&(on_way, _)| on_way == service);
        self.report_from(start.unwrap_or(0), Some(service), Cause::Cycle);
    }

    /// Takes note of a cause at the end of the way, or at `end` behind it.
    fn report_from(&mut self, start: usize, end: Option<u32>, cause: Cause) {
        if self.found.problems.len() >= self.problems_max {
            self.found.more += 1;
            return;
        }
        let mut path = Vec::new();
        for &(service, need) in &self.way[start..] {
            path.push(self.graph.name_of(service));
            path.push(self.graph.interface_of(need).to_string());
        }
        path.extend(end.map(|service| self.graph.name_of(service)));
        self.found.problems.push(Problem { path, cause });
    }
}
