//! One load from several machines: a controller hands each agent some of the load's threads, all begin at the same moment, and what they
//! count is added up by the code that adds up threads.
//!
//! ```text
//! controller (fleet) ──lines──> carrier (pipes: ssh, srun) ──lines──> agent (agent, worker) ──> prony_load::run_part
//!      <── counts each second, and the whole at the end ──
//! ```
//!
//! [`fleet`] and [`agent`] are the two sides without I/O; [`link`] numbers, acknowledges and repeats their messages; [`offset`] knows how
//! far two clocks are apart; [`place`], [`pipes`], [`worker`] and [`drive`] run them.
//!
//! Not for: the load itself (`prony-load`), or what is printed of it.
#![forbid(unsafe_code)]

pub mod agent;
pub mod drive;
mod files;
pub mod fleet;
pub mod link;
pub mod message;
pub mod offset;
pub mod pipes;
pub mod place;
pub mod worker;
