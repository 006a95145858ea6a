//! The event queue against a model that is too simple to be wrong: a list of all that
//! waits, of which the first by (priority, number) goes next.

use std::cell::RefCell;
use std::rc::Rc;

use prony_engine::{Config, Handle, run};
use prony_runtime::events::{Events, Options, Originator, Priority, Registration, WhenFull};
use proptest::prelude::*;

/// Events of one of four types; the last has a destructor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Small(u64);
#[derive(Clone, Copy, Debug, PartialEq)]
struct Large(u64, [u64; 30]);
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unwatched(u64);
#[derive(Clone, Debug, PartialEq)]
struct Owning(Box<u64>);

#[derive(Clone, Debug)]
enum Step {
    Push {
        kind: u8,
        priority: u64,
        originator: u64,
        count: u8,
    },
    /// One event, whose handler pushes these.
    Parent {
        priority: u64,
        children: Vec<u64>,
    },
    Dispatch(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let priority = prop_oneof![0..4_u64, 0..200_u64, Just(u64::MAX)];
    let push = (0..4_u8, priority.clone(), 0..2_u64, 1..12_u8).prop_map(
        |(kind, priority, originator, count)| Step::Push {
            kind,
            priority,
            originator,
            count,
        },
    );
    let children = prop::collection::vec(0..4_u64, 0..4);
    let parent =
        (priority, children).prop_map(|(priority, children)| Step::Parent { priority, children });
    let dispatch = (1..30_u32).prop_map(Step::Dispatch);
    prop::collection::vec(prop_oneof![4 => push, 1 => parent, 3 => dispatch], 0..120)
}

/// What waits, in no order: priority, number, kind, children.
type Waiting = Vec<(u64, u64, u8, Vec<u64>)>;

#[derive(Default)]
struct Model {
    waiting: Waiting,
    last_id: u64,
    limit: usize,
    drops: bool,
    seen: Vec<(u64, u64, u8)>,
    pushed: u64,
    dropped: u64,
}

impl Model {
    fn push(&mut self, priority: u64, kind: u8, children: Vec<u64>) -> bool {
        if self.waiting.len() >= self.limit {
            // Of the greatest priority the smallest number.
            let victim = (0..self.waiting.len())
                .max_by_key(|&index| (self.waiting[index].0, u64::MAX - self.waiting[index].1));
            match victim {
                Some(victim) if self.drops && priority <= self.waiting[victim].0 => {
                    self.waiting.remove(victim);
                    self.dropped += 1;
                }
                _ => return false,
            }
        }
        self.last_id += 1;
        self.pushed += 1;
        self.waiting.push((priority, self.last_id, kind, children));
        true
    }

    fn dispatch(&mut self, count: u32) {
        for _ in 0..count {
            let next = (0..self.waiting.len())
                .min_by_key(|&index| (self.waiting[index].0, self.waiting[index].1));
            let Some(next) = next else {
                return;
            };
            let (priority, id, kind, children) = self.waiting.remove(next);
            if kind != 2 {
                self.seen.push((priority, id, kind));
            }
            for child in children {
                self.push(child, 0, Vec::new());
            }
        }
    }
}

type Seen = Rc<RefCell<Vec<(u64, u64, u8)>>>;

/// An event that makes its handler push others.
struct Parent(Vec<u64>);

fn watch(events: &Events, seen: &Seen) -> Vec<Registration> {
    let list = |kind: u8| {
        let seen = seen.clone();
        move |id: u64, priority: u64| seen.borrow_mut().push((priority, id, kind))
    };
    let (small, large, owning, parent) = (list(0), list(1), list(3), list(4));
    let pusher = events.emitter::<Small>();
    vec![
        events.on(move |_: &Small, meta| small(meta.id.0, meta.priority.0)),
        events.on(move |_: &Large, meta| large(meta.id.0, meta.priority.0)),
        events.on(move |_: &Owning, meta| owning(meta.id.0, meta.priority.0)),
        events.on(move |event: &Parent, meta| {
            parent(meta.id.0, meta.priority.0);
            for priority in &event.0 {
                let _ = pusher.push_at(Priority(*priority), Small(0));
            }
        }),
    ]
}

fn push(events: &Events, kind: u8, priority: u64, originator: u64) -> bool {
    let (priority, originator) = (Priority(priority), Originator(originator));
    match kind {
        0 => events
            .emitter()
            .from(originator)
            .push_at(priority, Small(1))
            .is_ok(),
        1 => events
            .emitter()
            .from(originator)
            .push_at(priority, Large(1, [2; 30]))
            .is_ok(),
        2 => events
            .emitter()
            .from(originator)
            .push_at(priority, Unwatched(1))
            .is_ok(),
        _ => events
            .emitter()
            .from(originator)
            .push_at(priority, Owning(Box::new(1)))
            .is_ok(),
    }
}

fn compare(handle: &Handle, steps: &[Step], limit: u64, drops: bool) {
    let when_full = if drops {
        WhenFull::DropOldest
    } else {
        WhenFull::Refuse
    };
    let options = Options {
        waiting_max: limit,
        when_full,
        ..Options::default()
    };
    let events = Events::with_options(handle, options);
    let mut model = Model {
        limit: limit as usize,
        drops,
        ..Model::default()
    };
    let seen = Seen::default();
    let handlers = watch(&events, &seen);
    for step in steps {
        match step.clone() {
            Step::Push {
                kind,
                priority,
                originator,
                count,
            } => {
                for _ in 0..count {
                    let taken = push(&events, kind, priority, originator);
                    assert_eq!(taken, model.push(priority, kind, Vec::new()));
                }
            }
            Step::Parent { priority, children } => {
                let taken = events
                    .push_at(Priority(priority), Parent(children.clone()))
                    .is_ok();
                assert_eq!(taken, model.push(priority, 4, children));
            }
            Step::Dispatch(count) => {
                events.dispatch(count);
                model.dispatch(count);
            }
        }
        assert_eq!(*seen.borrow(), model.seen);
        assert_eq!(events.waiting(), model.waiting.len() as u64);
    }
    let counts = events.stats().counts;
    assert_eq!(
        (counts.pushed, counts.dropped),
        (model.pushed, model.dropped)
    );
    assert_eq!(
        counts.pushed,
        counts.dispatched + counts.dropped + counts.waiting
    );
    drop(handlers);
}

proptest! {
    #[test]
    fn events_leave_in_the_order_of_the_model(
        steps in steps(),
        limit in prop_oneof![1..20_u64, Just(10_000)],
        drops in any::<bool>(),
    ) {
        run(&Config::default(), async |handle| compare(&handle, &steps, limit, drops))
            .expect("a loop");
    }
}
