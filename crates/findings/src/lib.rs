//! Records to findings and verdicts; pure.
//!
//! ```
//! use prony_findings::{Code, Records, Verdict, findings, verdict};
//! use prony_record::Plan;
//!
//! let plan = Plan::default();
//! let found = findings(&Records::new(&plan, &[]));
//! assert_eq!(verdict(&found), Verdict::Valid);
//! assert!("P003".parse::<Code>().unwrap().page().contains("keep-alive"));
//! ```
//!
//! A **finding** is a fact drawn from the records of one cell: its code, what was seen (numbers
//! with units), what that means and what to do. Each code has a rule of its own (in `rules/`), a
//! row in the registry ([`Code::ALL`]) and a page in `docs/findings/`, which is also what
//! `prony explain` prints. The **verdict** is the worst severity among the findings.
//!
//! Only trials of Prony's own generator are looked at; those of a cross-check have no part in it.
//! Not for: reading files, figures and comparisons (`prony-stats`), laying out text (`prony-report`).
//!
//! # Central types
//! - [`Records`]: a plan and its trials, as the rules look at them.
//! - [`Finding`]: one fact: its code, the evidence, the cell.
//! - [`Code`]: the registry of findings, with their severities and pages.
#![forbid(unsafe_code)]

pub mod client;
mod code;
mod finding;
pub mod limits;
pub mod measure;
mod records;
mod rules;

pub use code::{Code, UnknownCode, explain};
pub use finding::{Evidence, Finding, Severity, Unit, Value, Verdict, verdict};
pub use records::{Case, Records};
pub use rules::{findings, keeps_nothing};
