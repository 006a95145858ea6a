//! One trial, inside its supervisor: prepare, start, ready, verify, warm up,
//! measure, drain, stop. Whatever happens, the outcome is a [`Trial`], with
//! everything that was measured until then.
//!
//! There are three kinds: of a server, whose processes are services that start and stop in
//! the order of their dependencies (`server`), of a program that runs to its end
//! (`program`), and of a client, which is such a program beside a server as its peer
//! (`client`). One thread does all of it, on the generator's cores.
//!
//! Not for: namespaces ([`crate::supervise`]) or what trials there are ([`crate::run`]).

mod client;
mod context;
mod counter;
mod generator;
mod lifecycle;
mod log;
mod participants;
mod process;
mod profiling;
mod program;
mod runner;
mod server;
mod start;
mod turns;
mod wrk;

use prony_record::{Histogram, Isolation, Trial, Work};

use crate::network::Network;
use crate::supervise::{Interrupt, Report, TrialOrder, Turns};

/// Runs a trial to its end. `network` is the one between a client and its peer, or the generator and the servers; `turns` receives the turns of a trial
/// that is measured in turns; `began` is called at each phase and turn.
///
/// For a supervisor that does nothing else: it reaps the children of the calling process, counts all its descendants
/// as processes of the trial, and kills them at the end.
pub fn run(
    order: &TrialOrder,
    network: Network,
    isolation: Isolation,
    (interrupt, turns): (&Interrupt, Turns),
    began: &mut dyn FnMut(Report),
) -> (Trial, Option<Histogram>) {
    match order.workload.work() {
        Work::Client(asked) => {
            let trial = client::run(order, asked, network, isolation, interrupt, began);
            (trial, None)
        }
        Work::Program(asked) => (
            program::run(order, asked, isolation, interrupt, began),
            None,
        ),
        Work::Server => server::run(order, network, isolation, (interrupt, turns), began),
    }
}
