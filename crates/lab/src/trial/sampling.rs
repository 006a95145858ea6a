//! The service that samples the processes of a trial every 100 ms while it runs.
//!
//! Not for: what a sample holds ([`crate::sample`]), or the two at the edges of the
//! window ([`super::server`] takes them itself, on time).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::Task;
use prony_runtime::services::{Context, Failure, Service};

use super::children::Children;
use super::context::TrialContext;
use super::log::Log;
use super::profiling::WholeRun;

/// Interval at which the processes are sampled.
const LOOK: Nanos = Nanos::from_millis(100);
/// In the window, one sample in this many reads memory: that costs ten times as much as the rest,
/// and is needed only for processes that end before the window does.
const MEMORY_ONE_IN: u32 = 10;

/// What is sampled beside the processes.
#[derive(Default)]
pub struct Watched {
    /// Logs, whose size is bounded.
    pub logs: RefCell<Vec<Rc<RefCell<Option<Log>>>>>,
    /// Samples since the start of the window; `None` outside of it.
    pub in_window: Cell<Option<u32>>,
    /// The profile of a client.
    pub whole: RefCell<Option<WholeRun>>,
}

/// Samples the processes.
pub struct Sampling {
    context: Rc<TrialContext>,
    children: Rc<Children>,
    watched: Rc<Watched>,
    task: RefCell<Option<Task<()>>>,
}

impl Sampling {
    /// A service that samples the processes of `children`.
    pub fn new(
        context: Rc<TrialContext>,
        children: Rc<Children>,
        watched: Rc<Watched>,
    ) -> Sampling {
        Sampling {
            context,
            children,
            watched,
            task: RefCell::default(),
        }
    }
}

impl Service for Sampling {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        let (context, children) = (self.context.clone(), self.children.clone());
        let watched = self.watched.clone();
        let looking = self.context.handle.spawn(async move {
            loop {
                context.handle.sleep(LOOK).await;
                context.awake.wait().await;
                children.collect();
                look(&context, &watched);
            }
        });
        *self.task.borrow_mut() = Some(looking);
        Ok(())
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        let task = self.task.take();
        drop(task);
        Ok(())
    }
}

fn look(context: &TrialContext, watched: &Watched) {
    let mut sampler = context.sampler.borrow_mut();
    sampler.look();
    if let Some(looks) = watched.in_window.get() {
        if looks % MEMORY_ONE_IN == 0 {
            sampler.note_memory();
        }
        watched.in_window.set(Some(looks + 1));
        if let Some(profiler) = &mut *context.profiler.borrow_mut() {
            profiler.drain();
        }
        if let Some(whole) = &mut *watched.whole.borrow_mut() {
            whole.look();
        }
    }
    for log in watched.logs.borrow().iter() {
        if let Some(log) = &mut *log.borrow_mut() {
            log.bound();
        }
    }
}
