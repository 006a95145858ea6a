//! The controller of a load that several agents drive together: what it says to each, and what it makes of what they say.
//!
//! ```text
//! greeting ──> clocks ──> connecting ──> running ──> over
//!  Hello        Ping        Work           Go          Finished
//! ```
//!
//! Without I/O and without a clock of its own: lines go in with the moment at which they came, and lines come out. What carries
//! them is [`crate::pipes`], or a test. Counts and histograms of all agents are added bucket by bucket; percentiles are read from
//! the sum, and never averaged. An agent that is lost, late or was itself the limit is named, and the result says so.

use std::collections::VecDeque;

use prony_base::{Instant, Nanos};
use prony_load::{
    IntervalSum, LoadError, LoadInterval, LoadResult, LoadTotals, PartResult, ToldTotals, WholeLoad,
};
use prony_record::{AgentReport, LoadPart, LoadSpec};

use crate::files::{self, WorkFileError};
use crate::link::MessageLink;
use crate::message::{FromAgent, Greeting, ToAgent, VERSION};
use crate::offset::Offset;

/// Questions for the time before a load.
const PINGS: u64 = 16;
/// Time between two of them.
const PING_EVERY: Nanos = Nanos::from_millis(5);
/// During a load the time is asked this often, which also says that the controller is there.
const HEARTBEAT: Nanos = Nanos::from_secs(1);
/// An agent of which nothing is heard for so long is lost.
pub const SILENT_MAX: Nanos = Nanos::from_secs(10);
/// An agent that began later than this after the agreed moment was late.
const LATE: Nanos = Nanos::from_millis(100);
/// A second, of which an agent tells.
const SECOND: Nanos = Nanos::from_secs(1);
/// The load begins so much after the last agent was ready, and four times the longest round trip.
const NOTICE: Nanos = Nanos::from_millis(50);
/// The same where the message that says so may be lost, and be sent again.
const NOTICE_AGAIN: Nanos = Nanos::from_secs(3);
/// Longest that a part of a file may take to arrive, at some 2 Mbit/s.
const SENDING_MAX: Nanos = Nanos::from_secs(1);
/// Why the counts of an agent are not taken.
const IMPLAUSIBLE: &str = "it counted what cannot be";
/// Slack beyond the time-outs of requests, for the result.
const SLACK: Nanos = Nanos::from_secs(15);

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// An agent could not do its part before the load began.
    #[error("agent {name}: {why}")]
    Agent {
        /// What it is called.
        name: String,
        /// Why.
        why: String,
    },
    /// All agents were lost before they had said anything.
    #[error("no agent is left: {0}")]
    NoneLeft(String),
    /// The user ended it before it began.
    #[error("interrupted before the load began")]
    Interrupted,
    /// A file that the load needs.
    #[error(transparent)]
    File(#[from] WorkFileError),
    /// What agents counted cannot be added up.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// What the caller is to hear.
#[derive(Debug)]
pub enum FleetEvent {
    /// The load begins; its window, here.
    Connected {
        /// Its start.
        start: Instant,
        /// Its end.
        end: Instant,
    },
    /// A second of the window is over, of all agents.
    Second(Box<LoadInterval>),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FleetPhase {
    Greeting,
    Clocks,
    Connecting,
    Running,
    Over,
}

/// How far an agent is.
#[derive(Debug)]
struct FleetAgent {
    name: String,
    link: MessageLink,
    offset: Offset,
    part: LoadPart,
    machine: Option<Greeting>,
    /// Questions for the time that were asked, when the last was, and how many were answered.
    pings: VecDeque<(u64, Instant)>,
    asked: u64,
    asked_at: Instant,
    answered: u64,
    /// Connections that are open; `None`: it is not ready.
    opened: Option<u64>,
    /// When it began, here, and by how much that may be wrong.
    begun: Option<(Instant, Nanos)>,
    heard_at: Instant,
    /// When a long line of it was last seen to come.
    alive_at: Instant,
    /// What its seconds add up to, and how many they are.
    told: ToldTotals,
    seconds: u64,
    so_far: (u64, u64),
    result: Option<Box<PartResult>>,
    /// Why nothing more comes from it.
    lost: Option<String>,
}

/// What a controller is told beside the load.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// The target is owned, though its address is public.
    pub is_owned: bool,
    /// The carrier neither loses nor repeats.
    pub is_reliable: bool,
    /// Longest until an agent has greeted, copied to its machine or not, and placed there or not.
    pub greeting_max: Nanos,
    /// Who asks.
    pub greeting: Greeting,
}

/// The controller.
pub struct Fleet {
    spec: LoadSpec,
    /// Adds up what the agents come to.
    whole: WholeLoad,
    options: FleetOptions,
    agents: Vec<FleetAgent>,
    phase: FleetPhase,
    /// When it began, and the last phase did.
    since: Instant,
    /// Agreed beginning of the load.
    go_at: Instant,
    stopped_at: Option<Instant>,
    /// A rate that was asked for before it began.
    rate: Option<f64>,
    /// Longest that its files may take to arrive.
    sending_max: Nanos,
    /// The user ended it.
    interrupted: bool,
    outgoing: Vec<(usize, Vec<u8>)>,
    events: VecDeque<FleetEvent>,
    seconds: IntervalSum,
}

impl Fleet {
    /// A load by agents of these names, each of which gets as many of its threads as the others, or one more.
    ///
    /// # Errors
    /// There are fewer threads than agents, or the load makes no sense.
    pub fn new(
        spec: LoadSpec,
        names: &[String],
        options: FleetOptions,
        now: Instant,
    ) -> Result<Fleet, FleetError> {
        let count = names.len() as u32;
        if spec.threads < count || count == 0 {
            let why = format!(
                "{} threads cannot be shared out over {count} agents: give at least one thread (-t) and one connection (-c) for each",
                spec.threads
            );
            return Err(FleetError::Load(LoadError::Spec(why)));
        }
        let place =
            |number: u32| (u64::from(number) * u64::from(spec.threads) / u64::from(count)) as u32;
        let agent = |(number, name): (u32, &String)| FleetAgent {
            name: name.clone(),
            link: MessageLink::new(options.is_reliable),
            offset: Offset::default(),
            part: LoadPart {
                first: place(number),
                end: place(number + 1),
            },
            machine: None,
            pings: VecDeque::new(),
            asked: 0,
            asked_at: Instant::ZERO,
            answered: 0,
            opened: None,
            begun: None,
            heard_at: now,
            alive_at: Instant::ZERO,
            told: ToldTotals::default(),
            seconds: 0,
            so_far: (0, 0),
            result: None,
            lost: None,
        };
        let agents: Vec<FleetAgent> = (0..).zip(names).map(agent).collect();
        let mut fleet = Fleet {
            seconds: IntervalSum::new(count),
            whole: WholeLoad::new(&spec)?,
            spec,
            options,
            agents,
            phase: FleetPhase::Greeting,
            since: now,
            go_at: Instant::NEVER,
            stopped_at: None,
            rate: None,
            sending_max: Nanos::ZERO,
            interrupted: false,
            outgoing: Vec::new(),
            events: VecDeque::new(),
        };
        let hello = ToAgent::Hello(fleet.options.greeting.clone());
        fleet.say_all(&hello, now);
        Ok(fleet)
    }

    /// Lines to be carried, each with the number of its agent.
    pub fn outgoing(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.outgoing)
    }

    /// What has happened, in turn.
    pub fn event(&mut self) -> Option<FleetEvent> {
        self.events.pop_front()
    }

    /// Completed and failed in the window so far, over all agents.
    pub fn so_far(&self) -> (u64, u64) {
        let all = self.agents.iter().map(|agent| agent.so_far);
        all.fold((0, 0), |sum, of| {
            (sum.0.saturating_add(of.0), sum.1.saturating_add(of.1))
        })
    }

    /// Whether nothing more is to come.
    pub fn is_over(&self) -> bool {
        self.phase == FleetPhase::Over
    }

    /// Takes a line of an agent.
    pub fn received(&mut self, number: usize, line: &[u8], now: Instant) -> Result<(), FleetError> {
        let Some(agent) = self.agents.get_mut(number) else {
            return Ok(());
        };
        if agent.lost.is_some() {
            return Ok(());
        }
        agent.heard_at = now;
        match agent.link.hear::<FromAgent>(line, now) {
            Ok(messages) => {
                let mut messages = messages.into_iter();
                messages.try_for_each(|message| self.take(number, message, now))
            }
            Err(fault) => self.lose(number, fault.to_string(), now),
        }
    }

    /// A long line of an agent is on its way.
    pub fn is_heard(&mut self, number: usize, now: Instant) {
        if let Some(agent) = self.agents.get_mut(number) {
            (agent.heard_at, agent.alive_at) = (now, now);
        }
    }

    /// An agent's carrier has ended.
    pub fn closed(&mut self, number: usize, why: String, now: Instant) -> Result<(), FleetError> {
        self.lose(number, why, now)
    }

    /// Ends the load now: what came of it until then is its result.
    pub fn stop(&mut self, now: Instant) -> Result<(), FleetError> {
        match self.phase {
            FleetPhase::Over => return Ok(()),
            FleetPhase::Running => {}
            _ => return Err(FleetError::Interrupted),
        }
        if self.stopped_at.is_none() {
            self.stopped_at = Some(now);
            self.interrupted = true;
            self.say_all(&ToAgent::Stop, now);
        }
        Ok(())
    }

    /// An open pace goes on at so many requests a second, over all agents.
    pub fn set_rate(&mut self, rate_per_s: f64, now: Instant) {
        match self.phase {
            FleetPhase::Running => self.say_all(&ToAgent::Rate { rate_per_s }, now),
            _ => self.rate = Some(rate_per_s),
        }
    }

    /// What is due at `now`: questions for the time, lines that are sent again, agents that are given up.
    pub fn tick(&mut self, now: Instant) -> Result<(), FleetError> {
        let every = match self.phase {
            FleetPhase::Clocks => PING_EVERY,
            _ => HEARTBEAT,
        };
        for number in 0..self.agents.len() {
            let agent = &mut self.agents[number];
            if agent.lost.is_some() {
                continue;
            }
            let due = agent.link.due(now);
            let lines = due.into_iter().map(|line| (number, line));
            self.outgoing.extend(lines);
            if agent.machine.is_some() && agent.result.is_none() && now >= agent.asked_at + every {
                agent.asked += 1;
                agent.asked_at = now;
                agent.pings.push_back((agent.asked, now));
                let question = ToAgent::Ping {
                    number: agent.asked,
                };
                let line = agent.link.say_once(&question);
                self.outgoing.push((number, line));
            }
            if let Some(why) = self.overdue(number, now) {
                self.lose(number, why, now)?;
            }
        }
        Ok(())
    }

    /// Why an agent is given up at `now`; `None`: it is not.
    fn overdue(&self, number: usize, now: Instant) -> Option<String> {
        let agent = &self.agents[number];
        let silent = now.since(agent.heard_at);
        let greeting = self.options.greeting_max;
        let silent_max = match self.phase {
            // What asks for the time waits behind the files.
            FleetPhase::Connecting => SILENT_MAX + self.sending_max,
            _ => SILENT_MAX,
        };
        let load = Nanos(self.spec.warmup_ns) + Nanos(self.spec.duration_ns);
        let end = self.stopped_at.unwrap_or(self.go_at + load);
        // What waits at the end may be sent for so long, and be answered for as long.
        let after = Nanos(self.spec.timeout_ns) * 2 + SLACK;
        match self.phase {
            FleetPhase::Greeting if agent.machine.is_none() && silent > greeting => {
                Some(format!("it has not answered within {greeting}"))
            }
            FleetPhase::Greeting => None,
            _ if agent.result.is_some() => None,
            _ if silent > silent_max => Some(format!("nothing was heard of it for {silent}")),
            FleetPhase::Running if now > end + after && now.since(agent.alive_at) > SILENT_MAX => {
                Some(format!("it had no result {after} after the window"))
            }
            _ => None,
        }
    }

    fn take(&mut self, number: usize, message: FromAgent, now: Instant) -> Result<(), FleetError> {
        let agent = &mut self.agents[number];
        match message {
            FromAgent::Hello(greeting) if greeting.version == VERSION => {
                agent.machine = Some(greeting);
                self.go_on(now)
            }
            FromAgent::Hello(greeting) => {
                let why = format!(
                    "{} speaks version {} of the messages, and this program {VERSION}: use the same program",
                    greeting.program, greeting.version
                );
                self.lose(number, why, now)
            }
            FromAgent::Pong { number: of, at } => {
                while let Some((asked, sent)) = agent.pings.pop_front() {
                    if asked == of {
                        agent.offset.add(sent, at, now);
                        agent.answered += 1;
                        break;
                    }
                }
                self.go_on(now)
            }
            FromAgent::Ready { opened } => {
                agent.opened = Some(opened);
                self.go_on(now)
            }
            FromAgent::Begun { at } => {
                let here = agent.offset.here(at);
                agent.begun = here.map(|here| (here, agent.offset.within(now)));
                Ok(())
            }
            FromAgent::Second { totals, .. } if !totals.so_far.follows(&agent.told.so_far) => {
                self.lose(number, IMPLAUSIBLE.to_owned(), now)
            }
            FromAgent::Second { totals, .. } => {
                agent.told.go_on(&totals);
                agent.seconds += 1;
                self.seconds.add(number, &totals);
                self.tell_seconds();
                Ok(())
            }
            FromAgent::SoFar { completed, failed } => {
                agent.so_far = (completed, failed);
                Ok(())
            }
            FromAgent::Finished { part } if !part.is_of(&self.spec, agent.part) => {
                self.lose(number, IMPLAUSIBLE.to_owned(), now)
            }
            FromAgent::Finished { part } => {
                let totals = sum(&part.totals());
                if !totals.follows(&agent.told.so_far) {
                    return self.lose(number, IMPLAUSIBLE.to_owned(), now);
                }
                let rest = totals.beyond(&agent.told);
                agent.told.go_on(&rest);
                agent.result = Some(part);
                self.seconds.end(number, rest);
                self.tell_seconds();
                self.go_on(now)
            }
            FromAgent::Failed { why } => self.lose(number, why, now),
        }
    }

    fn tell_seconds(&mut self) {
        while let Some(second) = self.seconds.close_next() {
            self.events.push_back(FleetEvent::Second(Box::new(second)));
        }
    }

    /// Goes on to the next phase where all agents are ready for it.
    fn go_on(&mut self, now: Instant) -> Result<(), FleetError> {
        let all = |is: fn(&FleetAgent) -> bool| self.agents.iter().all(is);
        match self.phase {
            FleetPhase::Greeting if all(|agent| agent.machine.is_some()) => {
                self.enter(FleetPhase::Clocks, now)
            }
            FleetPhase::Clocks if all(|agent| agent.answered >= PINGS) => self.hand_out(now)?,
            FleetPhase::Connecting if all(|agent| agent.opened.is_some()) => self.begin(now),
            FleetPhase::Running if all(|agent| agent.result.is_some() || agent.lost.is_some()) => {
                self.enter(FleetPhase::Over, now);
            }
            _ => {}
        }
        Ok(())
    }

    fn enter(&mut self, phase: FleetPhase, now: Instant) {
        (self.phase, self.since) = (phase, now);
    }

    /// Tells each agent what to do.
    fn hand_out(&mut self, now: Instant) -> Result<(), FleetError> {
        self.enter(FleetPhase::Connecting, now);
        let parts = files::parts(&self.spec)?;
        let bodies = self.spec.requests.iter().map(|request| request.bytes.len());
        let others = bodies.sum::<usize>() / files::PART_BYTES;
        self.sending_max = SENDING_MAX * (parts.len() + others) as u64;
        for number in 0..self.agents.len() {
            for part in &parts {
                self.say(number, part, now);
            }
            let mut spec = Box::new(LoadSpec {
                part: Some(self.agents[number].part),
                ..self.spec.clone()
            });
            files::without_names(&mut spec);
            let work = ToAgent::Work {
                spec,
                is_owned: self.options.is_owned,
            };
            self.say(number, &work, now);
        }
        Ok(())
    }

    /// Has all agents begin at the same moment.
    fn begin(&mut self, now: Instant) {
        self.enter(FleetPhase::Running, now);
        let round_trips = self.agents.iter().map(|agent| agent.offset.round_trip());
        let longest = round_trips.max().unwrap_or_default();
        let notice = match self.options.is_reliable {
            true => NOTICE,
            false => NOTICE_AGAIN,
        };
        self.go_at = now + notice + longest * 4;
        for number in 0..self.agents.len() {
            let at = self.agents[number].offset.there(self.go_at);
            let at = at.unwrap_or(Instant::ZERO);
            self.say(number, &ToAgent::Go { at }, now);
        }
        if let Some(rate_per_s) = self.rate.take() {
            self.say_all(&ToAgent::Rate { rate_per_s }, now);
        }
        let start = self.go_at + Nanos(self.spec.warmup_ns);
        let end = start + Nanos(self.spec.duration_ns);
        self.events.push_back(FleetEvent::Connected { start, end });
    }

    /// Nothing more comes of an agent. Before the load there is none without it; in the load the others are stopped, since it is
    /// another load without it.
    fn lose(&mut self, number: usize, why: String, now: Instant) -> Result<(), FleetError> {
        let agent = &mut self.agents[number];
        if agent.lost.is_some() || agent.result.is_some() {
            return Ok(());
        }
        if !matches!(self.phase, FleetPhase::Running | FleetPhase::Over) {
            return Err(FleetError::Agent {
                name: agent.name.clone(),
                why,
            });
        }
        agent.lost = Some(why);
        let rest = ToldTotals {
            so_far: agent.told.so_far.clone(),
            ..ToldTotals::default()
        };
        self.seconds.end(number, rest);
        self.tell_seconds();
        if self.stopped_at.is_none() {
            self.stopped_at = Some(now);
            self.say_all(&ToAgent::Stop, now);
        }
        self.go_on(now)
    }

    fn say_all(&mut self, message: &ToAgent, now: Instant) {
        for number in 0..self.agents.len() {
            self.say(number, message, now);
        }
    }

    fn say(&mut self, number: usize, message: &ToAgent, now: Instant) {
        let agent = &mut self.agents[number];
        if agent.lost.is_some() || agent.result.is_some() {
            return;
        }
        // Where too much waits for an acknowledgement, nothing was heard for long, and it is given up for that.
        if let Ok(line) = agent.link.say(message, now) {
            self.outgoing.push((number, line));
        }
    }

    /// What came of it. Of an agent that was lost there is what it had said until then: its requests that were outstanding are
    /// counted as abandoned.
    ///
    /// # Errors
    /// No agent has counted anything.
    pub fn result(mut self) -> Result<FleetResult, FleetError> {
        let mut parts = Vec::new();
        let mut reports = Vec::new();
        for agent in &mut self.agents {
            let part = match agent.result.take() {
                Some(part) => *part,
                None => {
                    let told = (&agent.told.totals(), SECOND * agent.seconds);
                    PartResult::until_lost(&self.spec, agent.part, told)
                }
            };
            let begun = agent.begun.map(|(at, _)| signed(self.go_at, at));
            let within = agent.begun.map_or(Nanos::MAX, |(_, within)| within);
            reports.push(AgentReport {
                name: agent.name.clone(),
                began_after_ns: begun,
                clock_within_ns: within.0,
                round_trip_ns: agent.offset.round_trip().0,
                lost: agent.lost.clone(),
                is_late: begun.is_some_and(|after| after > LATE.0.cast_signed()),
                ..part.figures(&self.spec, agent.part)
            });
            parts.push(part);
        }
        let lost = self
            .agents
            .iter()
            .filter_map(|agent| agent.lost.as_ref().zip(Some(&agent.name)));
        let why = lost.map(|(why, name)| format!("{name}: {why}"));
        if self.interrupted && parts.iter().all(PartResult::is_empty) {
            return Err(FleetError::Interrupted);
        }
        if parts.iter().all(PartResult::is_empty) && why.clone().count() == parts.len() {
            return Err(FleetError::NoneLeft(why.collect::<Vec<_>>().join("; ")));
        }
        let start = self.go_at + Nanos(self.spec.warmup_ns);
        let mut result = self.whole.add_up(parts, start)?;
        let window = Nanos(result.report.window_ns);
        let totals = self.agents.iter().map(|agent| agent.told.totals());
        let rest = self.seconds.rest(window, totals);
        result.report.agents = reports;
        // Those that were stopped because another was lost do not know why.
        result.interrupted = self.interrupted;
        Ok(FleetResult { result, rest })
    }
}

/// What came of a load of several agents.
pub struct FleetResult {
    /// As of a load on one machine.
    pub result: LoadResult,
    /// What is left of its seconds.
    pub rest: Option<LoadInterval>,
}

/// What threads have counted together.
fn sum(threads: &[LoadTotals]) -> LoadTotals {
    let mut all = LoadTotals::default();
    threads.iter().for_each(|thread| all.add(thread));
    all
}

/// Nanoseconds from `one` to `other`.
fn signed(one: Instant, other: Instant) -> i64 {
    other.0.wrapping_sub(one.0).cast_signed()
}
