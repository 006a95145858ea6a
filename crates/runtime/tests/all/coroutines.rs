//! The coroutine library, feature by feature, in the simulated world: time passes only
//! when nothing is left to do.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::{FutureExt, StreamExt, select};
use prony_base::Nanos;
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle};
use prony_runtime::coroutines::{
    AutoEvent, Coroutines, Generator, Interval, ManualEvent, Missed, Mutex, Scope, Semaphore,
    TaskError, channel,
};

/// Runs a loop in a world of its own; fails where it would wait for ever.
fn simulate<T, F>(main: impl FnOnce(Handle) -> F) -> T
where
    T: 'static,
    F: Future<Output = T> + 'static,
{
    let mut world = World::new(1, SimOptions::default());
    let outcome = world.spawn_loop(&Config::default(), main);
    world
        .run(Nanos::from_secs(3_600))
        .expect("it comes to an end");
    outcome.take().expect("it came to an end")
}

fn with_coroutines<T, F>(main: impl FnOnce(Coroutines) -> F) -> T
where
    T: 'static,
    F: Future<Output = T> + 'static,
{
    simulate(|handle| main(Coroutines::new(&handle)))
}

async fn yield_times(handle: &Handle, times: usize) {
    for _ in 0..times {
        handle.yield_now().await;
    }
}

#[test]
fn a_join_gives_the_result_the_panic_or_the_cancellation() {
    with_coroutines(|coroutines| async move {
        let finished = coroutines.spawn(async { "done" });
        let panicked = coroutines.spawn(async { panic!("out of {}", "cheese") });
        let cancelled = coroutines.spawn(pending::<()>());
        cancelled.cancel();
        assert_eq!(finished.await, Ok("done"));
        let error = TaskError::Panicked("out of cheese".to_owned());
        assert_eq!(panicked.await, Err::<(), _>(error));
        assert_eq!(cancelled.await, Err(TaskError::Cancelled));
        let tasks = coroutines.snapshot();
        assert_eq!((tasks.finished, tasks.panicked, tasks.cancelled), (1, 1, 1));
        assert_eq!(tasks.alive, 0);
        assert!(tasks.polls >= 3);
    });
}

#[test]
fn a_named_task_ends_as_others_do_and_has_its_name_while_it_lives() {
    with_coroutines(|coroutines| async move {
        let finished = coroutines.spawn_named("first", async { 1 });
        let panicked = coroutines.spawn_named("second", async { panic!("text") });
        let cancelled = coroutines.spawn_named("third", pending::<()>());
        assert_eq!(coroutines.snapshot().names, ["first", "second", "third"]);
        assert_eq!(finished.await, Ok(1));
        let error = TaskError::Panicked("text".to_owned());
        assert_eq!(panicked.await, Err::<(), _>(error));
        assert_eq!(coroutines.snapshot().names, ["third"]);
        cancelled.cancel();
        assert!(!cancelled.is_finished());
        assert_eq!(cancelled.await, Err(TaskError::Cancelled));
        let tasks = coroutines.snapshot();
        assert_eq!((tasks.finished, tasks.panicked, tasks.cancelled), (1, 1, 1));
        assert!(tasks.names.is_empty());
    });
}

#[test]
fn a_panic_in_a_detached_task_is_counted_and_the_loop_goes_on() {
    with_coroutines(|coroutines| async move {
        coroutines.spawn(async { panic!("unseen") }).detach();
        coroutines
            .spawn_named("x", async { panic!("unseen") })
            .detach();
        drop(coroutines.spawn(pending::<()>()));
        yield_times(coroutines.handle(), 2).await;
        let tasks = coroutines.snapshot();
        assert_eq!((tasks.panicked, tasks.cancelled, tasks.alive), (2, 1, 0));
    });
}

#[test]
fn a_panic_in_a_drop_ends_one_task_only() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a drop");
        }
    }
    with_coroutines(|coroutines| async move {
        let holding = || async {
            let _bomb = Bomb;
            pending::<()>().await;
        };
        let (plain, named) = (
            coroutines.spawn(holding()),
            coroutines.spawn_named("x", holding()),
        );
        let ending = coroutines.spawn(async { drop(Bomb) });
        yield_times(coroutines.handle(), 2).await;
        plain.cancel();
        named.cancel();
        assert_eq!(plain.await, Err(TaskError::Cancelled));
        assert_eq!(named.await, Err(TaskError::Cancelled));
        assert_eq!(
            ending.await,
            Err(TaskError::Panicked("in a drop".to_owned()))
        );
        assert_eq!(coroutines.snapshot().alive, 0);
    });
}

#[test]
fn a_payload_that_is_no_text_is_named_as_such() {
    with_coroutines(|coroutines| async move {
        let odd = coroutines.spawn(async { std::panic::panic_any(7) });
        let error = TaskError::Panicked("a panic without a text".to_owned());
        assert_eq!(odd.await, Err::<(), _>(error));
    });
}

#[test]
fn a_snapshot_can_be_written_down() {
    with_coroutines(|coroutines| async move {
        let _task = coroutines.spawn_named("x", pending::<()>());
        let tasks = coroutines.snapshot();
        fn is_serialize(_: &impl serde::Serialize) {}
        is_serialize(&tasks);
        assert_eq!(tasks.alive, 1);
    });
}

#[test]
fn dropping_a_scope_ends_its_children_and_those_of_scopes_in_it() {
    with_coroutines(|coroutines| async move {
        let held = Rc::new(());
        let hold = |scope: &Scope| {
            let held = held.clone();
            let waiting = async move {
                let _held = held;
                pending::<()>().await;
            };
            scope.spawn(waiting).detach();
        };
        let outer = Scope::new(&coroutines);
        let inner = outer.nested();
        let innermost = inner.nested();
        for scope in [&outer, &inner, &innermost] {
            hold(scope);
        }
        yield_times(coroutines.handle(), 1).await;
        assert_eq!(Rc::strong_count(&held), 4);
        drop(innermost);
        assert_eq!(Rc::strong_count(&held), 3);
        drop(outer);
        assert_eq!(Rc::strong_count(&held), 1);
        assert!(inner.is_closed());
        let late = inner.spawn(async { 1 });
        assert_eq!(late.await, Err(TaskError::Cancelled));
        assert!(inner.nested().is_closed());
    });
}

#[test]
fn closing_a_scope_reports_how_its_children_ended() {
    with_coroutines(|coroutines| async move {
        let scope = Scope::new(&coroutines);
        let good = scope.spawn(async { 5 });
        scope.spawn_named("bad", async { panic!("no") }).detach();
        scope.spawn(pending::<()>()).detach();
        assert_eq!(good.await, Ok(5));
        assert_eq!(scope.alive(), 1);
        let ended = scope.close().await;
        assert_eq!((ended.finished, ended.failed, ended.cancelled), (1, 1, 1));
        assert_eq!(ended.failures[0].name.as_deref(), Some("bad"));
        assert_eq!(ended.failures[0].message, "no");
    });
}

#[test]
fn joining_a_scope_waits_for_children_that_children_start() {
    with_coroutines(|coroutines| async move {
        let handle = coroutines.handle().clone();
        let scope = Rc::new(Scope::new(&coroutines));
        let (inside, own) = (scope.clone(), handle.clone());
        let first = async move {
            own.sleep(Nanos::from_millis(1)).await;
            let own = own.clone();
            let second = async move { own.sleep(Nanos::from_millis(1)).await };
            inside.spawn(second).detach();
        };
        scope.spawn(first).detach();
        let before = handle.now();
        let ended = scope.join().await;
        assert_eq!(ended.finished, 2);
        assert_eq!(handle.now().since(before), Nanos::from_millis(2));
    });
}

#[test]
fn a_deadline_ends_a_scope_and_may_be_set_anew() {
    with_coroutines(|coroutines| async move {
        let handle = coroutines.handle();
        let scope = Scope::new(&coroutines);
        let endless = scope.spawn(pending::<()>());
        scope.set_timeout(Nanos::from_millis(1));
        scope.set_timeout(Nanos::from_millis(5));
        let before = handle.now();
        assert_eq!(endless.await, Err(TaskError::Cancelled));
        assert_eq!(handle.now().since(before), Nanos::from_millis(5));
        assert!(scope.is_closed());
        yield_times(handle, 1).await;
        assert_eq!(handle.tasks(), 0, "the deadline itself has gone");
    });
}

#[test]
fn a_child_that_closes_its_own_scope_ends_with_it() {
    with_coroutines(|coroutines| async move {
        let scope = Rc::new(Scope::new(&coroutines));
        let inside = scope.clone();
        let closing = scope.spawn(async move {
            inside.cancel();
            inside.join().await
        });
        assert_eq!(closing.await, Err(TaskError::Cancelled));
        assert_eq!(scope.alive(), 0);
    });
}

#[test]
fn a_generator_runs_no_further_than_it_is_asked() {
    simulate(|handle| async move {
        let made = Rc::new(Cell::new(0));
        let (theirs, own) = (made.clone(), handle.clone());
        let mut numbers = Generator::new(async move |yielder| {
            for number in 0..10 {
                theirs.set(number + 1);
                yielder.emit(number).await;
                own.sleep(Nanos::from_millis(1)).await;
            }
        });
        assert_eq!(made.get(), 0);
        assert_eq!(numbers.next().await, Some(0));
        assert_eq!(made.get(), 1);
        assert_eq!(numbers.next().await, Some(1));
        let waits = handle.timeout(Nanos(1), numbers.next()).await;
        assert!(waits.is_err());
        assert_eq!(numbers.next().await, Some(2), "giving up lost nothing");
        assert_eq!(Rc::strong_count(&made), 2);
        drop(numbers);
        assert_eq!(Rc::strong_count(&made), 1, "the producer has gone");
    });
}

#[test]
fn a_generator_is_a_stream_and_an_iterator() {
    simulate(|handle| async move {
        let countdown = |from: u32| {
            Generator::new(async move |yielder| {
                for number in (0..from).rev() {
                    yielder.emit(number).await;
                }
            })
        };
        let doubled: Vec<u32> = countdown(3).map(|number| 2 * number).collect().await;
        assert_eq!(doubled, [4, 2, 0]);
        assert_eq!(countdown(3).ready_values().collect::<Vec<_>>(), [2, 1, 0]);
        let mut slow = Generator::new(async move |yielder| {
            yielder.emit(1).await;
            handle.sleep(Nanos(1)).await;
            yielder.emit(2).await;
        });
        assert_eq!(slow.ready_values().collect::<Vec<_>>(), [1]);
        assert!(!slow.is_finished());
        assert_eq!(slow.next().await, Some(2));
        assert_eq!(slow.next().await, None);
        assert_eq!(slow.next().await, None);
    });
}

#[test]
fn a_generator_that_panics_has_ended() {
    with_coroutines(|coroutines| async move {
        let generator = Rc::new(Mutex::new(Generator::new(async |yielder| {
            yielder.emit(1).await;
            panic!("no two");
        })));
        let theirs = generator.clone();
        let asking = coroutines.spawn(async move {
            let mut generator = theirs.lock().await;
            assert_eq!(generator.next().await, Some(1));
            generator.next().await
        });
        assert_eq!(asking.await, Err(TaskError::Panicked("no two".to_owned())));
        assert_eq!(generator.lock().await.next().await, None);
    });
}

#[test]
fn an_interval_treats_missed_ticks_as_it_says() {
    let late_by = |missed: Missed| {
        simulate(move |handle| async move {
            let start = handle.now();
            let mut every = Interval::new(&handle, Nanos(100), missed);
            every.tick().await;
            handle.sleep(Nanos(350)).await;
            let mut ticks = Vec::new();
            for _ in 0..4 {
                let tick = every.tick().await;
                let (due, came) = (tick.due.since(start).0, handle.now().since(start).0);
                ticks.push((due, came, tick.missed));
            }
            ticks
        })
    };
    let skipped = [(300, 350, 2), (400, 400, 0), (500, 500, 0), (600, 600, 0)];
    assert_eq!(late_by(Missed::Skip), skipped);
    let burst = [(100, 350, 0), (200, 350, 0), (300, 350, 0), (400, 400, 0)];
    assert_eq!(late_by(Missed::Burst), burst);
    let delayed = [(100, 350, 0), (450, 450, 0), (550, 550, 0), (650, 650, 0)];
    assert_eq!(late_by(Missed::Delay), delayed);
}

#[test]
fn a_mutex_is_free_after_its_holder_panicked_or_was_cancelled() {
    with_coroutines(|coroutines| async move {
        let mutex = Rc::new(Mutex::new(0));
        let hold = |panics: bool| {
            let mutex = mutex.clone();
            coroutines.spawn(async move {
                let mut value = mutex.lock().await;
                *value += 1;
                assert!(!panics, "while it is held");
                pending::<()>().await;
            })
        };
        assert!(hold(true).await.is_err());
        let holding = hold(false);
        yield_times(coroutines.handle(), 1).await;
        assert!(mutex.try_lock().is_none());
        holding.cancel();
        assert_eq!(*mutex.try_lock().expect("nobody holds it"), 2);
    });
}

#[test]
fn combinators_of_others_work() {
    simulate(|handle| async move {
        let (event, never) = (AutoEvent::new(), ManualEvent::new());
        let first = select! {
            () = event.wait().fuse() => "event",
            () = never.wait().fuse() => "never",
            () = handle.sleep(Nanos(10)).fuse() => "time",
        };
        assert_eq!(first, "time");
        assert_eq!((event.waiting(), never.waiting()), (0, 0));
        let (sender, receiver) = channel(2);
        let sending = async {
            for number in 0..5 {
                sender.send(number).await.expect("it is received");
            }
            drop(sender);
        };
        let (_, received) = futures_util::join!(sending, receiver.collect::<Vec<_>>());
        assert_eq!(received, [0, 1, 2, 3, 4]);
    });
}

/// Polls a future so many times and then drops it.
struct DroppedAfter<F> {
    work: Option<Pin<Box<F>>>,
    polls: usize,
}

impl<F: Future> Future for DroppedAfter<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.polls == 0 {
            self.work = None;
        }
        self.polls = self.polls.saturating_sub(1);
        match &mut self.work {
            Some(work) => work.as_mut().poll(cx).map(|_| ()),
            None => Poll::Ready(()),
        }
    }
}

#[derive(Default)]
struct Things {
    auto: AutoEvent,
    manual: ManualEvent,
    mutex: Mutex<u32>,
}

async fn use_everything(
    handle: &Handle,
    things: &Things,
    semaphore: &Semaphore,
    (there, mut back): (
        prony_runtime::coroutines::Sender<u32>,
        prony_runtime::coroutines::Receiver<u32>,
    ),
) -> u32 {
    let mut sum = 0;
    for round in 0..3 {
        let mut held = things.mutex.lock().await;
        handle.sleep(Nanos(10)).await;
        *held += 1;
        drop(held);
        let permit = semaphore.acquire().await;
        handle.yield_now().await;
        things.auto.set();
        things.auto.wait().await;
        things.manual.wait().await;
        drop(permit);
        there.send(round).await.expect("the echo is there");
        there.send(round).await.expect("the echo is there");
        sum += back.recv().await.expect("the echo answers");
        sum += back.recv().await.expect("the echo answers");
    }
    sum
}

/// Three tasks use everything; the first is dropped at its n-th await.
fn cancelled_at(polls: usize) -> bool {
    simulate(move |handle| async move {
        let things = Rc::new(Things::default());
        things.manual.set();
        let semaphore = Rc::new(Semaphore::new(2));
        let users: Vec<_> = (0..3)
            .map(|user| {
                let (things, semaphore, own) = (things.clone(), semaphore.clone(), handle.clone());
                let (there, mut theirs) = channel(1);
                let (answers, back) = channel(1);
                let echo = async move {
                    while let Some(value) = theirs.recv().await {
                        if answers.send(value).await.is_err() {
                            return;
                        }
                    }
                };
                handle.spawn(echo).detach();
                let using = async move {
                    let sum = use_everything(&own, &things, &semaphore, (there, back)).await;
                    assert_eq!(sum, 6);
                };
                let polls = if user == 0 { polls } else { usize::MAX };
                let work = Some(Box::pin(using));
                handle.spawn(DroppedAfter { work, polls })
            })
            .collect();
        for user in users {
            user.await;
        }
        yield_times(&handle, 3).await;
        assert_eq!(handle.tasks(), 0, "the echoes have gone");
        assert_eq!((semaphore.free(), semaphore.waiting()), (2, 0));
        assert_eq!((things.auto.waiting(), things.manual.waiting()), (0, 0));
        let total = *things.mutex.try_lock().expect("nobody holds it");
        assert!((6..=9).contains(&total));
        total == 9
    })
}

#[test]
fn cancelling_at_any_await_takes_nothing_from_the_others() {
    let whole = (0..1_000).find(|&polls| cancelled_at(polls));
    // It is only there to fail should the awaits not be reached one by one.
    assert!(whole.is_some_and(|polls| polls > 10), "{whole:?}");
    assert!(cancelled_at(usize::MAX));
}

#[test]
fn many_wait_for_one_event_and_go_on_in_the_order_in_which_they_came() {
    simulate(|handle| async move {
        let event = Rc::new(AutoEvent::new());
        let order = Rc::new(RefCell::new(Vec::new()));
        for number in 0..100 {
            let (event, order) = (event.clone(), order.clone());
            let waiting = async move {
                event.wait().await;
                order.borrow_mut().push(number);
            };
            handle.spawn(waiting).detach();
        }
        yield_times(&handle, 1).await;
        assert_eq!(event.waiting(), 100);
        for _ in 0..100 {
            event.set();
        }
        assert!(!event.is_set());
        yield_times(&handle, 1).await;
        assert_eq!(*order.borrow(), (0..100).collect::<Vec<_>>());
        event.set();
        assert!(event.reset() && !event.reset());
    });
}

#[test]
fn a_join_polled_with_another_waker_wakes_that_one() {
    with_coroutines(|coroutines| async move {
        let event = Rc::new(ManualEvent::new());
        let theirs = event.clone();
        let mut join = coroutines.spawn(async move { theirs.wait().await });
        // Asked once by this task, then awaited by another.
        poll_fn(|cx| {
            assert!(Pin::new(&mut join).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        let awaiting = coroutines.spawn(join);
        yield_times(coroutines.handle(), 1).await;
        event.set();
        assert_eq!(awaiting.await, Ok(Ok(())));
    });
}
