//! An agent: what it does with what its controller says.
//!
//! [`Agent`] has neither I/O nor a clock: lines and what the load says go in, lines and [`LoadOrder`]s come out. [`crate::worker`] runs the
//! load and the carrier around it.

use prony_base::{Instant, Nanos};
use prony_load::{LoadTotals, PartResult, ToldTotals};
use prony_record::LoadSpec;

use crate::files::SentFiles;
use crate::link::MessageLink;
use crate::message::{FromAgent, Greeting, ToAgent, VERSION};

/// A controller of which nothing was heard for so long is gone: an agent never goes on without one.
pub const LEASE: Nanos = Nanos::from_secs(15);

/// What is to be done with the load.
#[derive(Debug)]
pub enum LoadOrder {
    /// Connect, say so, and wait.
    Connect {
        /// The load, with this agent's part.
        spec: Box<LoadSpec>,
        /// Its target is owned, though its address is public.
        is_owned: bool,
    },
    /// Begin.
    Go(Instant),
    /// Go on at so many requests a second over all agents.
    Rate(f64),
    /// End it now.
    Stop,
}

/// What the load says.
#[derive(Debug)]
pub enum LoadSaid {
    /// All connections were tried; so many are open.
    Ready(u64),
    /// It has begun.
    Begun(Instant),
    /// A second is over.
    Second(u64, Box<LoadTotals>),
    /// Completed and failed so far.
    SoFar(u64, u64),
    /// It is over.
    Ended(Result<Box<PartResult>, String>),
}

/// How far it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AgentPhase {
    Greeting,
    Idle,
    /// A load was handed out, and is not over.
    Working,
    /// It said what came of it.
    Done,
}

/// An agent.
pub struct Agent {
    link: MessageLink,
    greeting: Greeting,
    phase: AgentPhase,
    files: SentFiles,
    /// What was told of the seconds so far.
    told: ToldTotals,
    heard_at: Instant,
    outgoing: Vec<Vec<u8>>,
    orders: Vec<LoadOrder>,
    /// Why nothing more is done for this controller.
    ended: Option<String>,
}

impl Agent {
    /// One that has heard nothing. `is_reliable`: of its carrier.
    pub fn new(greeting: Greeting, is_reliable: bool, now: Instant) -> Agent {
        Agent {
            link: MessageLink::new(is_reliable),
            greeting,
            phase: AgentPhase::Greeting,
            files: SentFiles::default(),
            told: ToldTotals::default(),
            heard_at: now,
            outgoing: Vec::new(),
            orders: Vec::new(),
            ended: None,
        }
    }

    /// Lines to be carried.
    pub fn outgoing(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.outgoing)
    }

    /// What is to be done.
    pub fn orders(&mut self) -> Vec<LoadOrder> {
        std::mem::take(&mut self.orders)
    }

    /// Why it is over; `None`: it is not.
    pub fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// Whether all has been said that there was to say.
    pub fn is_done(&self) -> bool {
        self.phase == AgentPhase::Done
    }

    /// Takes a line of the controller.
    pub fn received(&mut self, line: &[u8], now: Instant) {
        self.heard_at = now;
        match self.link.hear::<ToAgent>(line, now) {
            Ok(messages) => messages
                .into_iter()
                .for_each(|message| self.take(message, now)),
            Err(fault) => self.end(fault.to_string()),
        }
    }

    /// A long line of the controller is on its way.
    pub fn is_heard(&mut self, now: Instant) {
        self.heard_at = now;
    }

    /// The carrier has ended: whoever asked for the load is gone.
    pub fn closed(&mut self) {
        self.end("the controller is gone".to_owned());
    }

    /// What is due at `now`.
    pub fn tick(&mut self, now: Instant) {
        self.outgoing.extend(self.link.due(now));
        if now > self.heard_at + LEASE && self.ended.is_none() {
            self.end(format!("nothing was heard of the controller for {LEASE}"));
        }
    }

    /// What the load says.
    pub fn said(&mut self, said: LoadSaid, now: Instant) {
        let message = match said {
            LoadSaid::Ready(opened) => FromAgent::Ready { opened },
            LoadSaid::Begun(at) => FromAgent::Begun { at },
            LoadSaid::SoFar(completed, failed) => FromAgent::SoFar { completed, failed },
            LoadSaid::Second(number, totals) => {
                let new = totals.beyond(&self.told);
                self.told.go_on(&new);
                FromAgent::Second {
                    number,
                    totals: Box::new(new),
                }
            }
            LoadSaid::Ended(result) => {
                self.phase = AgentPhase::Done;
                match result {
                    Ok(part) => FromAgent::Finished { part },
                    Err(why) => FromAgent::Failed { why },
                }
            }
        };
        self.say(&message, now);
    }

    fn take(&mut self, message: ToAgent, now: Instant) {
        match (message, self.phase) {
            (ToAgent::Hello(theirs), AgentPhase::Greeting) => {
                // The controller says what is wrong, to whoever asked.
                self.phase = AgentPhase::Idle;
                self.say(&FromAgent::Hello(self.greeting.clone()), now);
                if theirs.version != VERSION {
                    self.end(format!(
                        "{} speaks another version of the messages",
                        theirs.program
                    ));
                }
            }
            (ToAgent::Ping { number }, phase) if phase != AgentPhase::Greeting => {
                let pong = self.link.say_once(&FromAgent::Pong { number, at: now });
                self.outgoing.push(pong);
            }
            (ToAgent::File { file, part }, AgentPhase::Idle) => {
                if let Err(why) = self.files.append(file, &part) {
                    self.refuse(why, now);
                }
            }
            (ToAgent::Work { mut spec, is_owned }, AgentPhase::Idle) => {
                match self.files.name_in(&mut spec) {
                    Ok(()) => {
                        self.phase = AgentPhase::Working;
                        self.orders.push(LoadOrder::Connect { spec, is_owned });
                    }
                    Err(why) => self.refuse(why, now),
                }
            }
            (ToAgent::Go { at }, AgentPhase::Working) => self.orders.push(LoadOrder::Go(at)),
            (ToAgent::Rate { rate_per_s }, AgentPhase::Working) => {
                self.orders.push(LoadOrder::Rate(rate_per_s));
            }
            (ToAgent::Stop, AgentPhase::Working) => self.orders.push(LoadOrder::Stop),
            // Its end crossed with what the controller said.
            (ToAgent::Stop | ToAgent::Rate { .. }, AgentPhase::Done) => {}
            (message, phase) => {
                let why = format!("{message:?} was said to an agent that is {phase:?}");
                self.refuse(why.chars().take(300).collect(), now);
            }
        }
    }

    /// Says why there will be no result.
    fn refuse(&mut self, why: String, now: Instant) {
        self.say(&FromAgent::Failed { why: why.clone() }, now);
        self.end(why);
    }

    fn end(&mut self, why: String) {
        if self.ended.is_none() {
            self.ended = Some(why);
            self.orders.push(LoadOrder::Stop);
        }
    }

    fn say(&mut self, message: &FromAgent, now: Instant) {
        if self.ended.is_some() {
            return;
        }
        match self.link.say(message, now) {
            Ok(line) => self.outgoing.push(line),
            Err(fault) => self.end(fault.to_string()),
        }
    }
}
