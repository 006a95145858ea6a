//! What a run directory holds: types and their schema version.
//!
//! ```text
//! plan.json          [`Plan`]: what was to be done, whole and resolved
//! environment.json   [`Environment`]: the machine that it was done on
//! trials.jsonl       one [`Trial`] a line, appended and synced as each one ends
//! histograms/        one [`Histogram`] a measured trial, named in its trial
//! profiles/          folded stacks of a profile trial, named in its trial
//! logs/              what each process of a trial printed
//! analysis.md        what a person wrote of the run, a part of its document; rarely there
//! published.json     [`PublishedClaims`] that took the place of the plan's after the run; rarely there
//! document.md, index.html   rendered from the files above, never read back
//! ```
//!
//! The files are an interface: a field may be added, none changes its meaning
//! without [`SCHEMA`] changing. Every quantity has its unit last in its name.
//! Not for: reading or writing files, or computing anything from them but whether two
//! records of one fact agree ([`agreement`]).
//!
//! # Central types
//! - [`Plan`]: what a run is to do: cells, their order, and every setting, resolved.
//! - [`Trial`]: what one repetition of a cell recorded, failures included.
//! - [`LoadReport`]: what the load generator measured in it.
#![forbid(unsafe_code)]

mod agents;
mod agreement;
mod answers;
mod client;
mod disturbed;
mod environment;
mod histogram;
pub mod layout;
mod load;
mod machine;
mod pace;
mod plan;
mod profile;
mod program;
mod published;
mod requirement;
mod scenario;
mod search;
mod service;
mod source;
mod trial;

pub use agents::{AgentReport, LoadPart};
pub use agreement::{Agreement, DOWNLOADS, REQUESTS, agreement};
pub use answers::{AnswerChecks, CheckCount, Counts, Failures, LatencyNs, NEVER};
pub use client::{
    ClientFigures, ClientReport, CountsSign, PeerCounts, PlannedClient, PlannedNetwork, Spread,
};
pub use disturbed::{DISTURBED, disturbed};
pub use environment::{CodeState, Environment, Fact, Software};
pub use histogram::Histogram;
pub use load::{
    Arrivals, CodedReport, ExpectedAnswer, GeneratorDelay, GeneratorEvent, Http2Report,
    HttpProtocol, LoadData, LoadReport, LoadSpec, LoadTarget, LoadTls, PreparedRequest, QUEUE_MAX,
    RedirectReport, RequestOrder, RowOrder, Slices, SpokenTls, ThreadCpu, TlsReport, Turn, Turned,
};
pub use machine::{MachineCheck, MachineState};
pub use pace::{LatencyOrigin, Pace, StagePoint, Timestamps};
pub use plan::{
    Arrival, Cell, ConnectionCap, Cores, NotRun, NotVisited, Plan, PlannedProgram, PlannedSetting,
    PlannedSubject, PlannedVisits, PlannedWorkload, ReadyKind, ReadySign, Repository, Source,
    StopRule, Work,
};
pub use profile::{GeneratorKind, PlannedProfile, ProfileReport, ProfiledThread};
pub use program::{Durations, Missed, ProgramLine, ProgramReport};
pub use published::{
    CellMetric, Dimension, Measurand, Named, PublishedClaim, PublishedClaims, Stated,
};
pub use requirement::RequirementOutcome;
pub use scenario::{
    BodyForm, FlowReport, IterationCounts, ScenarioFlow, ScenarioReport, ScenarioSpec,
    ScenarioStep, StepCounts, StepReport, StepTake, TakeFrom, ThinkTime,
};
pub use search::{FindMax, HighestRate, RateSearch, RateStep, SpreadKind, StepOutcome};
pub use service::{Around, CounterReport, Ended, Output, PlannedCounter, PlannedRow};
pub use source::{
    PlannedFlow, PlannedRequest, PlannedScenario, PlannedSource, PlannedStep, RequestTemplate,
    SourceFile,
};
pub use trial::{
    Canary, CanaryPair, CheckLevel, CheckResult, CoreUse, Exit, Isolation, KernelCounters,
    MemoryMarks, Outcome, Phase, PhaseSpan, ProcessRecord, Role, ThreadRecord, Trial, Visit,
};

/// Version of everything in a run directory, written into each file.
pub const SCHEMA: u32 = 1;

/// Version of how figures are measured, written into plan and environment; raised by hand whenever what is measured changes, so
/// that earlier figures are of another quantity (a window that begins elsewhere, a latency that counts from
/// another moment, work that a subject does besides). Runs of different methods are not compared.
///
/// 0: every run so far, those that are older than this number among them.
pub const METHOD: u32 = 0;
