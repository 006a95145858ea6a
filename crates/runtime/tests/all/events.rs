//! The event queue as its users see it: handlers, interceptors, limits, awaiting,
//! inlets. The order of events against a simple model: `events_model.rs`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread;

use prony_engine::{Config, DriverChoice, Handle, run};
use prony_runtime::events::{
    Disposition, Events, Flow, Options, Originator, Priority, PushError, Verdict, WhenFull,
};

#[derive(Clone, Debug, PartialEq)]
struct Number(u64);
struct Other;

fn with_loop<T, F: Future<Output = T>>(work: impl FnOnce(Handle) -> F) -> T {
    run(&Config::default(), work).expect("a loop")
}

/// Loops that wait in each of the ways that there are.
fn configs() -> Vec<Config> {
    let both = [DriverChoice::Auto, DriverChoice::Epoll].into_iter();
    both.flat_map(|driver| {
        [false, true].map(|spin| Config {
            driver,
            spin,
            ..Config::default()
        })
    })
    .collect()
}

type Log<T> = Rc<RefCell<Vec<T>>>;

fn bounded(handle: &Handle, waiting_max: u64, when_full: WhenFull) -> Events {
    let options = Options {
        waiting_max,
        when_full,
        ..Options::default()
    };
    Events::with_options(handle, options)
}

#[test]
fn handlers_see_events_in_order_of_priority_with_what_comes_with_them() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let log = Log::default();
        let seen = log.clone();
        let _handler = events.on(move |number: &Number, meta| {
            seen.borrow_mut()
                .push((number.0, meta.priority.0, meta.originator.0, meta.id.0));
        });
        let emitter = events.emitter().from(Originator(7));
        emitter.push(Number(1)).unwrap();
        emitter.push_at(Priority(5), Number(2)).unwrap();
        events.push(Number(3)).unwrap();
        events.drain().await;
        assert_eq!(
            *log.borrow(),
            [(2, 5, 7, 2), (1, 1000, 7, 1), (3, 1000, 0, 3)]
        );
    });
}

#[test]
fn a_more_urgent_event_pushed_by_a_handler_is_next() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let log = Log::default();
        let (seen, pusher) = (log.clone(), events.clone());
        let _handler = events.on(move |number: &Number, _| {
            seen.borrow_mut().push(number.0);
            if number.0 == 1 {
                pusher.push(Number(4)).unwrap();
                pusher.push_at(Priority(1), Number(9)).unwrap();
            }
        });
        for number in 1..=3 {
            events.push(Number(number)).unwrap();
        }
        events.drain().await;
        assert_eq!(*log.borrow(), [1, 9, 2, 3, 4]);
    });
}

#[test]
fn handlers_may_come_and_go_while_one_runs() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let log: Log<&str> = Log::default();
        let guards: Log<_> = Log::default();
        let (seen, adder, theirs) = (log.clone(), events.clone(), guards.clone());
        let first = events.on(move |_: &Number, _| {
            seen.borrow_mut().push("first");
            // Takes itself and the second out, and adds a third.
            theirs.borrow_mut().clear();
            let seen = seen.clone();
            let third = adder.on(move |_: &Number, _| seen.borrow_mut().push("third"));
            theirs.borrow_mut().push(third);
        });
        let seen = log.clone();
        let second = events.on(move |_: &Number, _| seen.borrow_mut().push("second"));
        guards.borrow_mut().extend([first, second]);
        events.push(Number(1)).unwrap();
        events.push(Number(2)).unwrap();
        events.drain().await;
        assert_eq!(*log.borrow(), ["first", "third"]);
        guards.borrow_mut().clear();
    });
}

#[test]
fn a_handler_may_keep_an_event_from_those_after_it() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let count = Rc::new(Cell::new(0));
        let seen = count.clone();
        let _first = events.on(|number: &Number, _| {
            if number.0 == 1 {
                Flow::Stop
            } else {
                Flow::Next
            }
        });
        let _second = events.on(move |_: &Number, _| seen.set(seen.get() + 1));
        events.push(Number(1)).unwrap();
        events.push(Number(2)).unwrap();
        events.drain().await;
        assert_eq!(count.get(), 1);
    });
}

#[test]
fn interceptors_withhold_and_see_what_became_of_events() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let (log, names) = (Log::default(), Log::default());
        let _before = events.before(|number: &Number, _| match number.0 {
            1 => Verdict::Withhold,
            _ => Verdict::Pass,
        });
        let _handler = events.on(|number: &Number, _| assert_ne!(number.0, 1));
        let seen = log.clone();
        let _after = events.after(move |number: &Number, _, outcome| {
            seen.borrow_mut().push((number.0, outcome));
        });
        let seen = names.clone();
        let _any = events.after_any(move |any, _, outcome| {
            let is_other = any.event.is::<Other>();
            assert!(
                any.name
                    .ends_with(if is_other { "Other" } else { "Number" })
            );
            seen.borrow_mut().push(outcome);
        });
        events.push(Number(1)).unwrap();
        events.push(Number(2)).unwrap();
        events.push(Other).unwrap();
        events.drain().await;
        assert_eq!(
            *log.borrow(),
            [(1, Disposition::Withheld), (2, Disposition::Handled)]
        );
        let all = [
            Disposition::Withheld,
            Disposition::Handled,
            Disposition::Unhandled,
        ];
        assert_eq!(*names.borrow(), all);
        let _none = events.before_any(|_, _| Verdict::Withhold);
        events.push(Other).unwrap();
        events.drain().await;
        let counts = events.stats().counts;
        assert_eq!(
            (counts.withheld, counts.unhandled, counts.dispatched),
            (2, 1, 2)
        );
    });
}

#[test]
fn a_panic_is_an_error_of_the_handler_alone() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let count = Rc::new(Cell::new(0));
        let seen = count.clone();
        let _bad = events.on(|_: &Number, _| {
            if true {
                panic!("as the test wants");
            }
        });
        let _worse = events.on_async(|_: &Number, _| async { panic!("as the test wants") });
        let _good = events.on(move |_: &Number, _| seen.set(seen.get() + 1));
        events.push(Number(1)).unwrap();
        events.push(Number(2)).unwrap();
        events.drain().await;
        assert_eq!(count.get(), 2);
        let stats = events.stats();
        assert_eq!(stats.panics, 4);
        assert_eq!(stats.types[0].handlers[0].panics, 2);
        assert_eq!(stats.running, 0);
    });
}

#[test]
fn a_handler_that_is_alone_sees_each_event_whatever_it_does_with_some() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let (seen, late, urgent) = (Log::default(), Log::default(), Log::default());
        let (seen_by, late_by, urgent_by) = (seen.clone(), late.clone(), urgent.clone());
        let second = Rc::new(RefCell::new(None));
        let (own, kept) = (events.clone(), second.clone());
        let handler = events.on(move |number: &Number, _| {
            seen_by.borrow_mut().push(number.0);
            match number.0 {
                20 => drop(own.push_at(Priority(1), Other)),
                30 => {
                    let late = late_by.clone();
                    let added = own.on(move |number: &Number, _| late.borrow_mut().push(number.0));
                    kept.replace(Some(added));
                }
                40 => drop(kept.take()),
                10 | 50 | 51 | 99 => panic!("as the test wants"),
                _ => {}
            }
        });
        let first = seen.clone();
        let _urgent = events.on(move |_: &Other, _| {
            let before = first.borrow().last().copied();
            urgent_by.borrow_mut().push(before);
        });
        (0..100).for_each(|number| drop(events.push(Number(number))));
        events.drain().await;
        assert_eq!(*seen.borrow(), Vec::from_iter(0..100));
        assert_eq!(*late.borrow(), Vec::from_iter(31..40));
        assert_eq!(*urgent.borrow(), [Some(20)]);
        let stats = events.stats();
        let of_handler = &stats.types[0].handlers[0];
        assert_eq!((of_handler.calls, of_handler.panics), (100, 4));
        assert_eq!(stats.counts.dispatched, 101);
        drop(handler);
    });
}

#[test]
fn a_handler_that_takes_itself_out_sees_no_more_and_who_came_instead_does() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let log: Log<(&str, u64)> = Log::default();
        let registration = Rc::new(RefCell::new(None));
        let (own, kept, noted) = (events.clone(), registration.clone(), log.clone());
        let first = events.on(move |number: &Number, _| {
            noted.borrow_mut().push(("first", number.0));
            if number.0 == 2 {
                let noted = noted.clone();
                let next = own.on(move |number: &Number, _| {
                    noted.borrow_mut().push(("next", number.0));
                });
                drop(kept.replace(Some(next)));
            }
        });
        registration.replace(Some(first));
        (0..5).for_each(|number| drop(events.push(Number(number))));
        events.drain().await;
        let expected = [
            ("first", 0),
            ("first", 1),
            ("first", 2),
            ("next", 3),
            ("next", 4),
        ];
        assert_eq!(*log.borrow(), expected);
    });
}

#[test]
fn what_handlers_that_are_alone_leave_is_dropped_also_where_that_panics() {
    struct Bomb(u64, Rc<Cell<u64>>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.1.set(self.1.get() + 1);
            if self.0 == 3 {
                panic!("as the test wants");
            }
        }
    }
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let dropped = Rc::new(Cell::new(0));
        // Those whose handler panics, one of which panics when it is dropped, too.
        let handler = events.on(|bomb: &Bomb, _| assert!(bomb.0 != 3 && bomb.0 != 9));
        (0..10).for_each(|number| drop(events.push(Bomb(number, dropped.clone()))));
        events.drain().await;
        assert_eq!(dropped.get(), 10);
        assert_eq!(events.stats().panics, 2);
        drop(handler);
    });
}

#[test]
fn an_event_that_panics_when_dropped_does_not_end_the_dispatcher() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            if !thread::panicking() {
                panic!("as the test wants");
            }
        }
    }
    with_loop(async |handle| {
        let events = Events::new(&handle);
        events.push(Bad).unwrap();
        events.push(Number(1)).unwrap();
        events.drain().await;
        assert_eq!(events.stats().counts.dispatched, 2);
    });
}

#[test]
fn a_full_queue_gives_the_event_back() {
    with_loop(async |handle| {
        let events = bounded(&handle, 2, WhenFull::Refuse);
        events.push(Number(1)).unwrap();
        events.push(Number(2)).unwrap();
        let refused = events.push(Number(3)).unwrap_err();
        assert!(refused.is_full());
        assert_eq!(refused.into_event(), Number(3));
        events.drain().await;
        events.push(Number(4)).unwrap();
        let stats = events.stats();
        assert_eq!((stats.refused, stats.counts.pushed), (1, 3));
        assert_eq!(stats.counts.waiting_peak, 2);
    });
}

#[test]
fn a_full_queue_may_drop_the_oldest_of_the_least_urgent() {
    with_loop(async |handle| {
        let events = bounded(&handle, 3, WhenFull::DropOldest);
        let log = Log::default();
        let seen = log.clone();
        let _handler = events.on(move |number: &Number, _| seen.borrow_mut().push(number.0));
        for (priority, number) in [(9, 1), (5, 2), (9, 3), (9, 4), (5, 5)] {
            events.push_at(Priority(priority), Number(number)).unwrap();
        }
        let least = events.push_at(Priority(10), Number(6)).unwrap_err();
        assert!(least.is_full());
        events.drain().await;
        assert_eq!(*log.borrow(), [2, 5, 4]);
        assert_eq!(events.stats().counts.dropped, 2);
    });
}

#[test]
fn who_waits_for_room_gets_it_in_turn_and_may_give_up() {
    with_loop(async |handle| {
        let events = bounded(&handle, 1, WhenFull::Refuse);
        let log = Log::default();
        let seen = log.clone();
        let _handler = events.on(move |number: &Number, _| seen.borrow_mut().push(number.0));
        events.push(Number(0)).unwrap();
        let mut senders: Vec<_> = (1..=5)
            .map(|number| {
                let events = events.clone();
                handle.spawn(async move { events.push_wait(Number(number)).await.unwrap() })
            })
            .collect();
        handle.yield_now().await;
        drop(senders.remove(2));
        for sender in senders {
            sender.await;
        }
        events.drain().await;
        let seen: Vec<u64> = log.borrow().clone();
        assert!(
            seen == [0, 1, 2, 4, 5] || seen == [0, 1, 2, 3, 4, 5],
            "{seen:?}"
        );
        assert_eq!(events.stats().counts.waiting_peak, 1);
    });
}

#[test]
fn futures_run_in_the_order_of_the_events_until_they_wait() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let log = Log::default();
        let (early, late, yielder) = (log.clone(), log.clone(), handle.clone());
        let _coroutine = events.on_async(move |number: &Number, _| {
            let (log, number, handle) = (early.clone(), number.0, yielder.clone());
            async move {
                log.borrow_mut().push(number);
                if number == 2 {
                    handle.yield_now().await;
                    log.borrow_mut().push(20);
                }
            }
        });
        let _handler = events.on(move |number: &Number, _| late.borrow_mut().push(number.0 + 10));
        for number in 1..=3 {
            events.push(Number(number)).unwrap();
        }
        events.drain().await;
        assert_eq!(*log.borrow(), [1, 11, 2, 12, 3, 13, 20]);
        assert_eq!(events.stats().running, 0);
    });
}

#[test]
fn what_a_future_captured_goes_when_it_ends_and_not_with_the_next_event() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let held = Rc::new(());
        let theirs = held.clone();
        let _handler = events.on_async(move |_: &Number, _| {
            let held = theirs.clone();
            async move { drop(held.clone()) }
        });
        events.push(Number(1)).unwrap();
        events.drain().await;
        assert_eq!(Rc::strong_count(&held), 2);
    });
}

#[test]
fn an_event_that_waits_alone_has_its_place_once_others_come() {
    with_loop(async |handle| {
        let events = bounded(&handle, 3, WhenFull::DropOldest);
        let log = Log::default();
        let seen = log.clone();
        let _handler = events.on(move |number: &Number, _| seen.borrow_mut().push(number.0));
        events.push(Number(0)).unwrap();
        events.dispatch(1);
        // Like the one before it, and alone.
        events.push(Number(1)).unwrap();
        assert_eq!(events.stats().counts.waiting, 1);
        events.push(Number(2)).unwrap();
        events.push_at(Priority(5), Number(3)).unwrap();
        events.drain().await;
        assert_eq!(*log.borrow(), [0, 3, 1, 2]);
        // Alone again, and the oldest of the least urgent when there is no room.
        events.push(Number(4)).unwrap();
        events.dispatch(1);
        for number in 5..=8 {
            events.push(Number(number)).unwrap();
        }
        events.drain().await;
        assert_eq!(log.borrow()[4..], [4, 6, 7, 8]);
        let counts = events.stats().counts;
        assert_eq!(
            (counts.pushed, counts.dispatched, counts.dropped),
            (9, 8, 1)
        );
    });
}

#[test]
fn an_event_that_its_own_handler_pushes_is_found_in_a_level_that_was_to_go() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let (seen, pusher) = (Rc::new(Cell::new(0)), events.clone());
        let theirs = seen.clone();
        let _handler = events.on(move |number: &Number, meta| {
            theirs.set(theirs.get() + 1);
            if number.0 > 0 {
                let again = Number(number.0 - 1);
                pusher.push_at(meta.priority, again).unwrap();
            }
        });
        // More priorities than are kept when they are empty.
        for priority in 0..200 {
            events.push_at(Priority(priority), Number(2)).unwrap();
            events.drain().await;
        }
        assert_eq!(seen.get(), 600);
        assert_eq!(events.stats().counts.dispatched, 600);
    });
}

#[test]
fn an_event_is_done_when_the_futures_of_its_handlers_are() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let steps = Rc::new(Cell::new(0));
        let (their_steps, yielder) = (steps.clone(), handle.clone());
        let handler = events.on_async(move |_: &Number, _| {
            let (steps, handle) = (their_steps.clone(), yielder.clone());
            async move {
                for _ in 0..3 {
                    handle.yield_now().await;
                }
                steps.set(steps.get() + 1);
            }
        });
        let done = events.push_and_wait(Number(1)).unwrap();
        assert_eq!(done.await, Disposition::Handled);
        assert_eq!(steps.get(), 1);
        // A cancelled future is done, too.
        let done = events.push_and_wait(Number(1)).unwrap();
        events.dispatch(1);
        assert_eq!(events.stats().running, 1);
        drop(handler);
        assert_eq!(done.await, Disposition::Handled);
        assert_eq!((steps.get(), events.stats().running), (1, 0));
        let unhandled = events.push_and_wait(Other).unwrap();
        assert_eq!(unhandled.await, Disposition::Unhandled);
    });
}

#[test]
fn awaiting_an_event_of_a_queue_that_goes_ends() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let done = events.push_and_wait(Number(1)).unwrap();
        drop(events);
        assert_eq!(done.await, Disposition::Dropped);
    });
}

#[test]
fn dispatching_pauses_while_too_many_futures_run() {
    with_loop(async |handle| {
        let options = Options {
            running_max: 2,
            ..Options::default()
        };
        let events = Events::with_options(&handle, options);
        let (most, watched, yielder) = (Rc::new(Cell::new(0)), events.clone(), handle.clone());
        let their_most = most.clone();
        let handler = events.on_async(move |_: &Number, _| {
            let (most, events, handle) = (their_most.clone(), watched.clone(), yielder.clone());
            async move {
                handle.yield_now().await;
                most.set(events.stats().running.max(most.get()));
            }
        });
        for number in 0..50 {
            events.push(Number(number)).unwrap();
        }
        events.drain().await;
        assert_eq!((most.get(), events.stats().counts.dispatched), (2, 50));
        drop(handler);
    });
}

#[test]
fn a_coroutine_awaits_events_and_learns_what_it_missed() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let next = events.next::<Number>();
        let mut stream = events.stream::<Number>(2);
        for number in 1..=3 {
            events.push(Number(number)).unwrap();
        }
        assert_eq!(next.await.0, Number(1));
        events.drain().await;
        assert_eq!(stream.next().await.0, Number(1));
        assert_eq!(stream.next().await.0, Number(2));
        assert_eq!((stream.try_next(), stream.missed()), (None, 1));
    });
}

#[test]
fn statistics_by_type_and_priority_add_up() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        events.set_timing(true);
        let _handler = events.on(|_: &Number, _| ());
        for index in 0..300_u64 {
            events
                .push_at(Priority(index % 100), Number(index))
                .unwrap();
            events.push_at(Priority(index % 3), Other).unwrap();
        }
        assert_eq!(events.stats().counts.waiting, 600);
        events.drain().await;
        let stats = events.stats();
        let sum = |of: &dyn Fn(&prony_runtime::events::Counts) -> u64| {
            let by_type: u64 = stats.types.iter().map(|one| of(&one.counts)).sum();
            let by_priority: u64 = stats.priorities.iter().map(|one| of(&one.counts)).sum();
            assert_eq!(by_type, by_priority);
            by_type
        };
        assert_eq!(sum(&|counts| counts.pushed), 600);
        assert_eq!(sum(&|counts| counts.unhandled), 300);
        assert_eq!(stats.counts.waiting_peak, 600);
        let handler = &stats.types[0].handlers[0];
        assert_eq!((handler.kind, handler.calls), ("handler", 300));
        assert!(handler.registered_at.contains("events.rs"));
        assert!(handler.time >= handler.time_max);
    });
}

#[test]
fn statistics_can_be_written_as_json() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        events.push_at(Priority(3), Other).unwrap();
        let json = serde_json::to_value(events.stats()).unwrap();
        assert_eq!(json["counts"]["waiting"], 1);
        assert_eq!(json["types"][0]["priorities"][0]["priority"], 3);
        assert_eq!(json["types"][0]["counts"]["waiting_peak"], 1);
    });
}

#[test]
fn closing_brings_in_what_was_sent_and_refuses_the_rest() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let count = Rc::new(Cell::new(0));
        let seen = count.clone();
        let _handler = events.on(move |_: &Number, _| seen.set(seen.get() + 1));
        let inlet = events.inlet(8);
        events.push(Number(1)).unwrap();
        inlet.send(Number(2)).unwrap();
        events.close().await;
        assert_eq!(count.get(), 2);
        assert!(matches!(
            events.push(Number(3)),
            Err(PushError::Closed(Number(3)))
        ));
        assert!(matches!(
            inlet.send(Number(4)),
            Err(PushError::Closed(Number(4)))
        ));
        assert!(matches!(
            events.push_wait(Number(5)).await,
            Err(PushError::Closed(_))
        ));
    });
}

#[test]
fn an_inlet_holds_its_limit_and_outlives_its_queue() {
    with_loop(async |handle| {
        let events = Events::new(&handle);
        let inlet = events.inlet(2);
        inlet.send(Number(1)).unwrap();
        inlet.send(Number(2)).unwrap();
        assert!(inlet.send(Number(3)).unwrap_err().is_full());
        inlet.send_wait(Number(4)).await.unwrap();
        events.drain().await;
        drop(events);
        assert!(!inlet.send(Number(5)).unwrap_err().is_full());
    });
}

/// One event of a sender.
struct Sent {
    sender: usize,
    number: u64,
}

/// Sends so many events, with back-pressure where `waits`, else trying again.
fn send_all(inlet: &prony_runtime::events::Inlet<Sent>, sender: usize, count: u64, waits: bool) {
    let send = async |handle: Handle| {
        for number in 0..count {
            if waits {
                inlet.send_wait(Sent { sender, number }).await.unwrap();
                continue;
            }
            while let Err(full) = inlet.send(Sent { sender, number }) {
                assert!(full.is_full());
                handle.yield_now().await;
            }
        }
    };
    with_loop(send);
}

#[test]
fn many_threads_into_one_inlet_lose_and_double_nothing_and_keep_their_order() {
    const SENDERS: usize = 4;
    const EACH: u64 = 5_000;
    for config in configs() {
        run(&config, async |handle| {
            receive_all(handle, SENDERS, EACH).await
        })
        .expect("a loop");
    }
}

/// Receives what so many threads send through one inlet.
async fn receive_all(handle: Handle, senders: usize, each: u64) {
    // Smaller than the inlet, so that the inlet itself has to wait for room.
    let events = bounded(&handle, 16, WhenFull::Refuse);
    let next: Rc<RefCell<Vec<u64>>> = Rc::new(RefCell::new(vec![0; senders]));
    let seen = next.clone();
    let _handler = events.on(move |sent: &Sent, _| {
        let expected = &mut seen.borrow_mut()[sent.sender];
        assert_eq!(sent.number, *expected);
        *expected += 1;
    });
    let inlet = events.inlet(64);
    let threads: Vec<_> = (0..senders)
        .map(|sender| {
            let inlet = inlet.clone();
            thread::spawn(move || send_all(&inlet, sender, each, sender % 2 == 0))
        })
        .collect();
    drop(inlet);
    events.inlets_gone().await;
    events.drain().await;
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*next.borrow(), vec![each; senders]);
    let stats = events.stats();
    assert_eq!(stats.counts.dispatched, each * senders as u64);
    assert_eq!(stats.panics, 0);
}
