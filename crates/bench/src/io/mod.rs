//! Downloads of one payload over many connections at once, by one strategy of input and
//! output or another (`prony bench io`).
//!
//! ```no_run
//! use prony_bench::io::{IoOrder, Strategy, run};
//!
//! let mut order = IoOrder::new("127.0.0.1:8000".parse().unwrap());
//! order.strategy = Strategy::Poll;
//! let done = run(&order, &mut |_| {})?;
//! println!("{} downloads, {} bytes", done.line.count, done.line.bytes);
//! # Ok::<(), prony_bench::io::IoError>(())
//! ```
//!
//! Each connection asks once and reads to the end. The answer must be 200 and as long as it
//! says; what breaks that fails its download by name, and the others go on. The strategies
//! differ in how a thread learns that bytes are there and how it takes them, and in nothing
//! else: `threads` and `receive`, `poll`, `epoll` and `crowd`, `ring`. Every figure is
//! defined in `docs/io-strategies.md`.
//! Not for: many requests on a connection (`prony-load`, [`crate::client`]).

mod answer;
mod crowd;
mod done;
mod epoll;
mod figures;
mod memory;
mod order;
mod poll;
mod receive;
mod ring;
mod schedule;
mod threads;
mod transfer;

use prony_base::clock;

pub use self::answer::{DownloadPhase, Failure, Version};
pub use self::done::{IoDone, Run};
pub use self::order::{
    BUFFER_BYTES_MAX, Buffers, CONNECTIONS_MAX, ITERATIONS_MAX, IoError, IoOrder, Strategy,
    VECTORED_MAX,
};
use crate::usage::Usage;

/// Does the downloads; `tell` is called with each run when it is over.
///
/// # Errors
/// [`IoError`]: the order cannot be followed, or the system does not let it. A download that
/// fails is no error: it is counted in `line.client`.
pub fn run(order: &IoOrder, tell: &mut dyn FnMut(&Run)) -> Result<IoDone, IoError> {
    order.check()?;
    raise_descriptors();
    let request = answer::request(order.version, &order.path, order.address);
    let schedule = match &order.schedule {
        Some(path) => Some(schedule::Recorder::start(path)?),
        None => None,
    };
    let mut figures = figures::Figures::new(order);
    for _ in 0..order.iterations {
        tell(&run_once(order, &request, &mut figures)?);
    }
    let mut done = figures.finish();
    if let Some(recorder) = schedule {
        done.notes.push(recorder.finish()?);
    }
    Ok(done)
}

fn run_once(
    order: &IoOrder,
    request: &[u8],
    figures: &mut figures::Figures,
) -> Result<Run, IoError> {
    let before = Usage::of_this_process();
    let sampler = match order.memory {
        true => Some(memory::Sampler::start()?),
        false => None,
    };
    let begin = clock::monotonic();
    let done = match order.strategy {
        Strategy::Threads => threads::run(order, request),
        Strategy::Poll => poll::run(order, request),
        Strategy::Epoll => epoll::run(order, request),
        Strategy::Ring => ring::run(order, request),
    };
    let length = clock::monotonic().since(begin);
    let memory = match sampler {
        Some(sampler) => sampler.finish()?,
        None => memory::Memory::default(),
    };
    let used = Usage::of_this_process().since(before, memory.thread_usage);
    Ok(figures.add(&done?, length, &memory, used))
}

/// Lets this process have as many descriptors as it may.
pub(crate) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where it cannot be raised, the socket that is one too many is an error that says so.
    let _ = setrlimit(Resource::Nofile, raised);
}
