//! One trial, inside its supervisor: prepare, start, ready, verify, warm up,
//! measure, drain, stop. Whatever happens, the outcome is a [`Trial`], with
//! everything that was measured until then.
//!
//! All kinds take one course, whose processes are services that start and stop in the order of their dependencies
//! (`lifecycle`): a server under load (`server`), a program that runs to its end, and a client, which is such a program
//! (`program`) beside a server as its peer (`peer`). One thread does all of it, on the generator's cores.
//!
//! Not for: namespaces ([`crate::supervise`]) or what trials there are ([`crate::run`]).

mod context;
mod counter;
mod generator;
mod lifecycle;
mod log;
mod participants;
mod peer;
mod process;
mod profiling;
mod program;
mod runner;
mod server;
mod start;
mod turns;
mod wrk;

use prony_record::{Histogram, Isolation, Trial, Work};

use self::context::TrialContext;
use self::lifecycle::{Lifecycle, TrialCourse};
use self::program::ProgramTrial;
use self::server::ServerTrial;
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
    interrupt: &Interrupt,
    turns: Turns,
    began: &mut dyn FnMut(Report),
) -> (Trial, Option<Histogram>) {
    let work = order.workload.work();
    let mut own = order.clone();
    if let Work::Program(_) = work {
        own.cores = program::split(&order.cores, program::threads(order, work));
    }
    let ran = prony_engine::run(&lifecycle::config(), |handle| async move {
        let context = TrialContext::new(own, isolation, interrupt, handle.clone());
        let lifecycle = Lifecycle::new(context, &handle, network, began);
        match work {
            Work::Server => follow(ServerTrial::new(lifecycle, turns)).await,
            Work::Program(_) | Work::Client(_) => follow(ProgramTrial::new(lifecycle, work)).await,
        }
    });
    ran.unwrap_or_else(|error| (lifecycle::without_loop(order, isolation, &error), None))
}

async fn follow<'a>(mut course: impl TrialCourse<'a>) -> (Trial, Option<Histogram>) {
    let end = course.carry_out().await;
    let failed_in = course.lifecycle().context.phase();
    course.lifecycle().stop().await;
    let mut trial = course.lifecycle().finish(end, failed_in);
    let histogram = course.finish(&mut trial);
    (trial, histogram)
}
