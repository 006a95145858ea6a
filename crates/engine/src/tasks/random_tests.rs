//! Tasks that spawn, wake, cancel, await, fail and end in random order, so that every
//! order of letting go of a task's memory comes up. To be run under Miri or a sanitizer
//! as well; what is counted here is that nothing is leaked or dropped twice.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use prony_base::Random;

use super::{Entered, JoinOutcome, Main, Task, TaskId, Tasks};

const STEPS: usize = 60;

/// Counts what is alive, and finds what is dropped twice.
struct Token(Rc<Cell<i64>>);

impl Token {
    fn new(alive: &Rc<Cell<i64>>) -> Token {
        alive.set(alive.get() + 1);
        Token(alive.clone())
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

struct Harness {
    tasks: Rc<Tasks>,
    random: RefCell<Random>,
    alive: Rc<Cell<i64>>,
    handles: RefCell<Vec<Task<Token>>>,
    ids: RefCell<Vec<TaskId>>,
    wakers: RefCell<Vec<Waker>>,
}

impl Harness {
    fn below(&self, count: usize) -> usize {
        self.random.borrow_mut().below(count.max(1) as u64) as usize
    }

    fn take_handle(&self) -> Option<Task<Token>> {
        let at = self.below(self.handles.borrow().len());
        let mut handles = self.handles.borrow_mut();
        (at < handles.len()).then(|| handles.swap_remove(at))
    }

    fn spawn(self: &Rc<Harness>) {
        let token = Token::new(&self.alive);
        // Futures of several sizes, so that allocations are used again and mixed up.
        match self.below(3) {
            0 => self.start(token, [0_u8; 1]),
            1 => self.start(token, [0_u8; 200]),
            _ => self.start(token, [0_u8; 2_000]),
        }
    }

    fn start<const BYTES: usize>(self: &Rc<Harness>, token: Token, ballast: [u8; BYTES]) {
        let harness = self.clone();
        let work = async move {
            for _ in 0..harness.below(4) {
                harness.act();
                let mut waited = false;
                std::future::poll_fn(|cx| {
                    harness.wakers.borrow_mut().push(cx.waker().clone());
                    match std::mem::replace(&mut waited, true) {
                        false => Poll::Pending,
                        true => Poll::Ready(()),
                    }
                })
                .await;
            }
            assert!(harness.below(8) > 0, "it fails");
            assert!(ballast.iter().all(|&byte| byte == 0));
            drop(token);
            Token::new(&harness.alive)
        };
        let catches = true;
        let task = self.tasks.spawn_on(self.tasks.loop_id, work, catches);
        self.ids.borrow_mut().push(task.id());
        self.handles.borrow_mut().push(task);
    }

    /// Something, from inside a task or from outside.
    fn act(self: &Rc<Harness>) {
        match self.below(9) {
            0..=2 => self.spawn(),
            3 => drop(self.take_handle()),
            4 => self.take_handle().into_iter().for_each(Task::detach),
            5 => {
                let at = self.below(self.ids.borrow().len());
                let id = self.ids.borrow().get(at).copied();
                id.map(|id| self.tasks.cancel(id));
            }
            6 => self.ask(),
            _ => {
                let wakers = self.wakers.take();
                wakers.into_iter().for_each(Waker::wake);
            }
        }
    }

    fn ask(&self) {
        let Some(mut task) = self.take_handle() else {
            return;
        };
        let waker = self.wakers.borrow().last().cloned();
        let waker = waker.as_ref().unwrap_or(Waker::noop());
        match task.poll_outcome(&Context::from_waker(waker)) {
            Poll::Ready(JoinOutcome::Value(token)) => assert!(token.0.get() > 0),
            Poll::Ready(_) => {}
            Poll::Pending => self.handles.borrow_mut().push(task),
        }
    }
}

fn play(seed: u64) {
    let tasks = Tasks::new(41_000);
    let harness = Rc::new(Harness {
        tasks: tasks.clone(),
        random: RefCell::new(Random::of(seed, "tasks")),
        alive: Rc::default(),
        handles: RefCell::default(),
        ids: RefCell::default(),
        wakers: RefCell::default(),
    });
    for _ in 0..STEPS {
        let polls = harness.below(5);
        let _entered = Entered::new(tasks.loop_id, tasks.queue.clone());
        harness.act();
        tasks.run(&mut Main::none(), polls);
    }
    tasks.cancel_all();
    assert_eq!(tasks.len(), 0);
    drop(harness.handles.take());
    tasks.cancel_all();
    let counts = tasks.counts();
    let ended = counts.finished + counts.panicked + counts.cancelled;
    assert_eq!(ended, counts.spawned, "seed {seed}: each ends once");
    assert_eq!(harness.alive.get(), 0, "seed {seed}: nothing is left");
    assert_eq!(
        Rc::strong_count(&harness),
        1,
        "seed {seed}: no future is left"
    );
}

#[test]
fn in_every_order_each_task_ends_once_and_nothing_is_left() {
    let print = std::panic::take_hook();
    // Hundreds of panics are wanted here, and not their texts; others' go on.
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&"it fails") {
            print(info);
        }
    }));
    // Miri takes a thousand times as long.
    let seeds = if cfg!(miri) {
        6
    } else {
        prony_testkit::seeds(400, 20_000)
    };
    (0..seeds).for_each(play);
}
