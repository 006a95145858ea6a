//! Snapshots of all services, for people and programs: as text, JSON (by `serde`) and for
//! Graphviz.
//! Not for: what is wrong (`problems`), and changes as they happen (`observe`).

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use prony_base::{Instant, Nanos};
use serde::Serialize;

use super::graph::Graph;
use super::id::ServiceId;
use super::list::NONE;
use super::properties::{Text, Value};
use super::rule::Rule;
use super::state::{Reason, State};

/// All services at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// When, on the clock of the loop.
    pub at: Instant,
    /// The number of services in each state.
    pub counts: BTreeMap<String, usize>,
    /// Each service, by its place.
    pub services: Vec<ServiceInfo>,
}

/// One service.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceInfo {
    /// Its number.
    pub id: ServiceId,
    /// Its name.
    pub name: Text,
    /// The type behind it, without its modules.
    pub type_name: String,
    /// Its state.
    pub state: State,
    /// The time at which it came into its state, exact to a turn of the loop.
    pub since: Instant,
    /// Times that it was started.
    pub starts: u32,
    /// The length of its last timed start.
    pub start_took: Option<Nanos>,
    /// The length of its last timed stop.
    pub stop_took: Option<Nanos>,
    /// Its properties, in the order in which they were given.
    pub properties: Vec<(Text, Value)>,
    /// Interfaces that it provides.
    pub provides: Vec<Text>,
    /// Interfaces of which it makes instances on request.
    pub makes: Vec<Text>,
    /// Its needs.
    pub needs: Vec<NeedInfo>,
    /// The factory that made it.
    pub made_by: Option<ServiceId>,
    /// Services that use it.
    pub dependents: u32,
    /// The reason why it does not run; empty where it does.
    pub waiting: String,
    /// The reason of its last failure, unless it has run since.
    pub reason: Option<Reason>,
}

/// One thing that a service needs.
#[derive(Clone, Debug, Serialize)]
pub struct NeedInfo {
    /// The interface.
    pub interface: Text,
    /// The number of providers, and what happens when they come and go.
    pub rule: Rule,
    /// Which providers are accepted, where not all are.
    pub filter: Option<String>,
    /// The providers that it has.
    pub bound_to: Vec<ServiceId>,
}

impl Graph {
    /// Takes a snapshot of all services. O(services + edges).
    pub fn snapshot(&self, at: Instant) -> Snapshot {
        let there = self
            .slots
            .all()
            .filter(|&service| self.slots[service].recipe.is_some());
        let services: Vec<ServiceInfo> = there.map(|service| self.info(service)).collect();
        let mut counts = BTreeMap::new();
        for service in &services {
            *counts.entry(service.state.to_string()).or_default() += 1;
        }
        Snapshot {
            at,
            counts,
            services,
        }
    }

    fn info(&self, service: u32) -> ServiceInfo {
        let slot = &self.slots[service];
        let offered = |factory: bool| {
            let offers = self
                .offers_of(service)
                .filter(move |&offer| self.offers[offer].factory == factory);
            let names = offers.map(|offer| {
                self.interfaces[self.offers[offer].interface as usize]
                    .name
                    .clone()
            });
            names.collect()
        };
        let factory_edge = Some(slot.factory_edge).filter(|&edge| edge != NONE);
        ServiceInfo {
            id: self.id(service),
            name: slot.name.clone(),
            type_name: slot
                .recipe
                .as_ref()
                .map(|recipe| recipe.type_name())
                .unwrap_or_default(),
            state: slot.state,
            since: slot.since,
            starts: slot.starts,
            start_took: slot.start_took,
            stop_took: slot.stop_took,
            properties: slot
                .properties
                .iter()
                .map(|one| (one.name.clone(), one.value.clone()))
                .collect(),
            provides: offered(false),
            makes: offered(true),
            needs: self
                .needs_of(service)
                .map(|need| self.need_info(need))
                .collect(),
            made_by: factory_edge.map(|edge| self.id(self.edges[edge].provider)),
            dependents: slot.dependents.len,
            waiting: self.why_not_running(service),
            reason: slot.rare.as_ref().and_then(|rare| rare.reason.clone()),
        }
    }

    fn need_info(&self, need: u32) -> NeedInfo {
        let at = &self.needs[need];
        NeedInfo {
            interface: self.interfaces[at.interface as usize].name.clone(),
            rule: at.rule,
            filter: at.filter.as_ref().map(|filter| filter.to_string()),
            bound_to: self
                .edges_of(need)
                .map(|edge| self.id(self.edges[edge].provider))
                .collect(),
        }
    }
}

impl Snapshot {
    fn name_of(&self, id: ServiceId) -> &str {
        let place = self
            .services
            .binary_search_by_key(&id.index(), |service| service.id.index());
        place.map_or("?", |place| &self.services[place].name)
    }

    /// The graph of services for Graphviz's `dot`: an arrow leads from a service to
    /// what it uses.
    pub fn dot(&self) -> String {
        let mut dot = String::from("digraph services {\n  rankdir=LR;\n  node [shape=box];\n");
        for service in &self.services {
            let colour = match service.state {
                State::Running => "palegreen",
                State::Failed => "lightcoral",
                State::Stopped => "lightgray",
                _ => "khaki",
            };
            let label = format!("{}\n{}", service.name, service.state);
            let label = quoted(&label);
            let _ = writeln!(
                dot,
                "  \"{}\" [label={label}, style=filled, fillcolor={colour}];",
                service.id
            );
        }
        for service in &self.services {
            for need in &service.needs {
                need.draw(service.id, &mut dot);
            }
            if let Some(factory) = service.made_by {
                let _ = writeln!(
                    dot,
                    "  \"{}\" -> \"{factory}\" [label=\"made by\", style=dotted];",
                    service.id
                );
            }
        }
        dot.push_str("}\n");
        dot
    }
}

impl NeedInfo {
    fn draw(&self, service: ServiceId, dot: &mut String) {
        let label = quoted(&self.interface);
        let style = if self.rule == Rule::Required {
            "solid"
        } else {
            "dashed"
        };
        for provider in &self.bound_to {
            let _ = writeln!(
                dot,
                "  \"{service}\" -> \"{provider}\" [label={label}, style={style}];"
            );
        }
        if self.bound_to.is_empty() && self.rule == Rule::Required {
            let missing = quoted(&format!("{service} {}", self.interface));
            let _ = writeln!(
                dot,
                "  {missing} [label={label}, shape=ellipse, color=red];"
            );
            let _ = writeln!(dot, "  \"{service}\" -> {missing} [color=red];");
        }
    }
}

/// A string of the language of `dot`.
fn quoted(text: &str) -> String {
    let text = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{text}\"")
}

impl fmt::Display for Snapshot {
    /// A table for a terminal, and below it what each service needs and provides.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self
            .counts
            .iter()
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        writeln!(f, "{} services: {}", self.services.len(), counts.join(", "))?;
        let width = |of: fn(&ServiceInfo) -> usize, least: usize| {
            self.services.iter().map(of).max().unwrap_or(0).max(least)
        };
        let name = width(|service| service.name.chars().count(), 4);
        let id = width(|service| service.id.to_string().len(), 2);
        writeln!(
            f,
            "{:>id$}  {:<name$}  {:<8}  {:>7}  {:>7}  {:>7}  needs",
            "id", "name", "state", "since", "start", "stop"
        )?;
        let took =
            |took: Option<Nanos>| took.map_or_else(|| "-".to_owned(), |took| took.to_string());
        for service in &self.services {
            write!(
                f,
                "{:>id$}  {:<name$}  {:<8}  {:>7}  {:>7}  {:>7}",
                service.id.to_string(),
                service.name,
                service.state,
                self.at.since(service.since).to_string(),
                took(service.start_took),
                took(service.stop_took),
            )?;
            let end = self.needs_line(service);
            writeln!(f, "{}{end}", if end.is_empty() { "" } else { "  " })?;
        }
        Ok(())
    }
}

impl Snapshot {
    /// The needs of a service, met and unmet: `dyn Logger: web; dyn Cache?: -`.
    fn needs_line(&self, service: &ServiceInfo) -> String {
        let need = |need: &NeedInfo| {
            let mark = match need.rule {
                Rule::Required => "",
                Rule::Optional | Rule::Fixed => "?",
                Rule::Many => "*",
            };
            let filter = need
                .filter
                .as_ref()
                .map_or_else(String::new, |filter| format!("[{filter}]"));
            let bound: Vec<&str> = need
                .bound_to
                .iter()
                .take(4)
                .map(|&id| self.name_of(id))
                .collect();
            let more = match need.bound_to.len() {
                0 => "-".to_owned(),
                1..=4 => String::new(),
                len => format!(" and {} more", len - 4),
            };
            format!(
                "{}{mark}{filter}: {}{more}",
                need.interface,
                bound.join(" ")
            )
        };
        let mut parts: Vec<String> = service.needs.iter().map(need).collect();
        if service.state != State::Running {
            parts.push(format!("({})", service.waiting));
        }
        parts.join("; ")
    }
}
