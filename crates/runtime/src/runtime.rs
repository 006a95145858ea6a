//! One loop with its coroutines, its events and its services.
//! Not for: threads; each has a runtime of its own, and [inlets](Events::inlet) between them.

use std::fmt;
use std::future::Future;

use prony_engine::{Config, Error, Handle, LoopStats};
use serde::Serialize;

use crate::coroutines::{Coroutines, Join, Tasks};
use crate::events::{self, EventStats, Events};
use crate::services::{self, Change, Observation, Services};

/// Settings of a runtime.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Of the loop.
    pub engine: Config,
    /// Of the event queue.
    pub events: events::Options,
    /// Of the registry of services.
    pub services: services::Options,
}

/// The runtime of one loop. Cheap to clone; stays on its thread.
#[derive(Clone)]
pub struct Runtime {
    handle: Handle,
    coroutines: Coroutines,
    events: Events,
    services: Services,
}

/// Runs `main` on a loop of the calling thread; when it is ready, stops all services in
/// reverse order, lets the events that wait be handled, and yields what `main` returned.
///
/// # Errors
/// [`Error`]: the loop could not start or go on.
pub fn run<T, F: Future<Output = T>>(
    options: &Options,
    main: impl FnOnce(Runtime) -> F,
) -> Result<T, Error> {
    prony_engine::run(&options.engine, |handle| async move {
        let runtime = Runtime {
            coroutines: Coroutines::new(&handle),
            events: Events::with_options(&handle, options.events),
            services: Services::new(&handle, options.services.clone()),
            handle,
        };
        let done = main(runtime.clone()).await;
        runtime.services.stop_all().await;
        runtime.events.close().await;
        done
    })
}

impl Runtime {
    /// The loop: time, sockets.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Tasks whose panics are results.
    pub fn coroutines(&self) -> &Coroutines {
        &self.coroutines
    }

    /// The event queue.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The services.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Starts a task.
    pub fn spawn<F: Future + 'static>(&self, work: F) -> Join<F::Output>
    where
        F::Output: 'static,
    {
        self.coroutines.spawn(work)
    }

    /// Pushes a [`Change`] as an event whenever something happens to a service, until what
    /// this returns is dropped. One that finds the queue full is not pushed.
    pub fn tell_changes(&self) -> Observation {
        let changes = self.events.emitter::<Change>();
        self.services.observe(move |change| {
            // A full queue is no reason to stop the life of services.
            let _ = changes.push(change.clone());
        })
    }

    /// Takes a snapshot of everything on this loop.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            services: self.services.snapshot(),
            events: self.events.stats(),
            tasks: self.coroutines.snapshot(),
            turns: LoopTurns::of(self.handle.stats()),
        }
    }
}

/// A snapshot of everything on a loop: text by `Display`, JSON by `Serialize`, a picture of
/// the services by [`dot`](Snapshot::dot).
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Services, their states and dependencies.
    pub services: services::Snapshot,
    /// The event queue: depths, what became of events, handlers and their times.
    pub events: EventStats,
    /// Tasks.
    pub tasks: Tasks,
    /// The loop.
    pub turns: LoopTurns,
}

/// The counters of a loop.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct LoopTurns {
    /// Turns.
    pub turns: u64,
    /// System calls that wait.
    pub enters: u64,
    /// Polls of tasks.
    pub polls: u64,
}

impl LoopTurns {
    fn of(stats: LoopStats) -> LoopTurns {
        LoopTurns {
            turns: stats.turns,
            enters: stats.enters,
            polls: stats.polls,
        }
    }
}

impl Snapshot {
    /// Services and their dependencies for Graphviz (`dot -Tsvg`).
    pub fn dot(&self) -> String {
        self.services.dot()
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot {
            services,
            events,
            tasks,
            turns,
        } = self;
        writeln!(f, "{services}")?;
        let counts = &events.counts;
        writeln!(
            f,
            "events: {} waiting (most {}), {} pushed, {} dispatched, {} unhandled, {} withheld, \
             {} dropped, {} refused, {} panics",
            counts.waiting,
            counts.waiting_peak,
            counts.pushed,
            counts.dispatched,
            counts.unhandled,
            counts.withheld,
            counts.dropped,
            events.refused,
            events.panics,
        )?;
        for one in &events.priorities {
            let priority = one
                .priority
                .map_or("of others".to_owned(), |p| p.to_string());
            let (waiting, dispatched) = (one.counts.waiting, one.counts.dispatched);
            writeln!(
                f,
                "  priority {priority}: {waiting} waiting, {dispatched} dispatched"
            )?;
        }
        writeln!(
            f,
            "tasks: {} alive, {} finished, {} panicked, {} cancelled",
            tasks.alive, tasks.finished, tasks.panicked, tasks.cancelled
        )?;
        for name in &tasks.names {
            writeln!(f, "  {name}")?;
        }
        write!(
            f,
            "loop: {} turns, {} waits, {} polls",
            turns.turns, turns.enters, turns.polls
        )
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::services::{Context, Definition, Failure, Service, State, What};

    struct Plain;

    impl Service for Plain {
        async fn start(&self, context: &Context) -> Result<(), Failure> {
            context.handle().yield_now().await;
            Ok(())
        }
    }

    #[test]
    fn changes_of_services_come_as_events_in_their_order() {
        let seen: Rc<RefCell<Vec<What>>> = Rc::default();
        let theirs = seen.clone();
        let ran = run(&Options::default(), |runtime| async move {
            let _telling = runtime.tell_changes();
            let handler = runtime.events().on(move |change: &Change, _| {
                theirs.borrow_mut().push(change.what.clone());
            });
            handler.forever();
            runtime
                .services()
                .add(Definition::new("plain", Plain))
                .unwrap();
            runtime.services().settle().await.unwrap();
            runtime.services().stop_all().await;
            runtime.events().drain().await;
        });
        ran.unwrap();
        let states: Vec<State> = seen
            .borrow()
            .iter()
            .filter_map(|what| match what {
                What::State(state) => Some(*state),
                _ => None,
            })
            .collect();
        let all = [
            State::Starting,
            State::Running,
            State::Leaving,
            State::Stopping,
            State::Stopped,
        ];
        assert_eq!(states, all);
    }

    #[test]
    fn what_main_left_running_is_stopped_and_its_events_are_handled() {
        struct Last(Rc<RefCell<Vec<&'static str>>>, Events);
        impl Service for Last {
            async fn stop(&self, _: &Context) -> Result<(), Failure> {
                self.0.borrow_mut().push("stopped");
                self.1.push("bye")?;
                Ok(())
            }
        }
        let told: Rc<RefCell<Vec<&'static str>>> = Rc::default();
        let theirs = told.clone();
        run(&Options::default(), |runtime| async move {
            let heard = theirs.clone();
            runtime
                .events()
                .on(move |word: &&'static str, _| heard.borrow_mut().push(word))
                .forever();
            let last = Last(theirs, runtime.events().clone());
            runtime
                .services()
                .add(Definition::new("last", last))
                .unwrap();
            runtime.services().settle().await.unwrap();
        })
        .unwrap();
        assert_eq!(*told.borrow(), ["stopped", "bye"]);
    }

    #[test]
    fn a_snapshot_tells_of_services_events_and_tasks() {
        let text = run(&Options::default(), |runtime| async move {
            let services = runtime.services();
            services.add(Definition::new("plain", Plain)).unwrap();
            services.settle().await.unwrap();
            runtime.events().push(7_u8).unwrap();
            let waiting = runtime
                .coroutines()
                .spawn_named("waiting for nothing", std::future::pending::<()>());
            let snapshot = runtime.snapshot();
            drop(waiting);
            assert!(snapshot.dot().starts_with("digraph"));
            assert_eq!(snapshot.events.counts.waiting, 1);
            (
                snapshot.to_string(),
                serde_json::to_value(&snapshot).unwrap(),
            )
        });
        let (text, json) = text.unwrap();
        for part in [
            "plain",
            "running",
            "events: 1 waiting",
            "waiting for nothing",
            "loop: ",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(json["services"]["services"][0]["name"], "plain");
        assert_eq!(json["tasks"]["names"][0], "waiting for nothing");
    }
}
