//! Random schedules of waiting, setting and giving up, each compared with a simple
//! model: no wake-up is lost, none comes twice, and the order is that of coming.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use prony_runtime::coroutines::{AutoEvent, ManualEvent, Mutex, Semaphore, TrySendError, channel};
use proptest::prelude::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future polled by hand, and how often it was woken.
struct Waiting<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    count: Arc<Count>,
}

impl<'a, T> Waiting<'a, T> {
    fn new(future: impl Future<Output = T> + 'a) -> Waiting<'a, T> {
        Waiting {
            future: Box::pin(future),
            count: Arc::default(),
        }
    }

    fn poll(&mut self) -> Poll<T> {
        let waker = Waker::from(self.count.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn woken(&self) -> usize {
        self.count.0.load(Ordering::Relaxed)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Wait,
    Set,
    Reset,
    /// Polls one of those that wait.
    Poll(usize),
    /// Drops one of those that wait.
    GiveUp(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Wait),
        4 => Just(Step::Set),
        1 => Just(Step::Reset),
        3 => any::<usize>().prop_map(Step::Poll),
        3 => any::<usize>().prop_map(Step::GiveUp),
    ];
    proptest::collection::vec(step, 0..80)
}

/// Who waits, who may go on, and whether the next need not wait.
#[derive(Default)]
struct Model {
    queue: VecDeque<usize>,
    let_go: BTreeSet<usize>,
    is_set: bool,
}

impl Model {
    fn set_auto(&mut self) {
        match self.queue.pop_front() {
            Some(first) => {
                self.let_go.insert(first);
            }
            None => self.is_set = true,
        }
    }

    fn leave(&mut self, number: usize) -> bool {
        self.queue.retain(|&other| other != number);
        self.let_go.remove(&number)
    }
}

fn check<T>(waiting: &BTreeMap<usize, Waiting<'_, T>>, model: &Model) -> Result<(), TestCaseError> {
    for (number, one) in waiting {
        let expected = usize::from(model.let_go.contains(number));
        prop_assert_eq!(one.woken(), expected, "wake-ups of {}", number);
    }
    Ok(())
}

fn pick<T>(waiting: &BTreeMap<usize, T>, any: usize) -> Option<usize> {
    let at = any.checked_rem(waiting.len())?;
    waiting.keys().nth(at).copied()
}

proptest! {
    #[test]
    fn an_auto_event_lets_one_go_for_each_set(steps in steps()) {
        let event = AutoEvent::new();
        let (mut waiting, mut model, mut next) = (BTreeMap::new(), Model::default(), 0);
        for step in steps {
            match step {
                Step::Wait => {
                    let mut one = Waiting::new(event.wait());
                    let goes_on = one.poll().is_ready();
                    prop_assert_eq!(goes_on, std::mem::take(&mut model.is_set));
                    if !goes_on {
                        model.queue.push_back(next);
                        waiting.insert(next, one);
                        next += 1;
                    }
                }
                Step::Set => {
                    event.set();
                    model.set_auto();
                }
                Step::Reset => prop_assert_eq!(event.reset(), std::mem::take(&mut model.is_set)),
                Step::Poll(any) => if let Some(number) = pick(&waiting, any) {
                    let ready = waiting.get_mut(&number).is_some_and(|one| one.poll().is_ready());
                    prop_assert_eq!(ready, model.let_go.contains(&number));
                    if ready {
                        model.leave(number);
                        waiting.remove(&number);
                    }
                },
                Step::GiveUp(any) => if let Some(number) = pick(&waiting, any) {
                    waiting.remove(&number);
                    if model.leave(number) {
                        model.set_auto();
                    }
                },
            }
            check(&waiting, &model)?;
            prop_assert_eq!(event.waiting(), model.queue.len());
            prop_assert_eq!(event.is_set(), model.is_set);
        }
    }

    #[test]
    fn a_manual_event_lets_go_whoever_waited_when_it_was_set(steps in steps()) {
        let event = ManualEvent::new();
        let (mut waiting, mut model, mut next) = (BTreeMap::new(), Model::default(), 0);
        for step in steps {
            match step {
                Step::Wait => {
                    let mut one = Waiting::new(event.wait());
                    let goes_on = one.poll().is_ready();
                    prop_assert_eq!(goes_on, model.is_set);
                    if !goes_on {
                        model.queue.push_back(next);
                        waiting.insert(next, one);
                        next += 1;
                    }
                }
                Step::Set => {
                    event.set();
                    model.is_set = true;
                    model.let_go.extend(model.queue.drain(..));
                }
                Step::Reset => prop_assert_eq!(event.reset(), std::mem::take(&mut model.is_set)),
                Step::Poll(any) => if let Some(number) = pick(&waiting, any) {
                    let ready = waiting.get_mut(&number).is_some_and(|one| one.poll().is_ready());
                    prop_assert_eq!(ready, model.let_go.contains(&number));
                    if ready {
                        model.leave(number);
                        waiting.remove(&number);
                    }
                },
                Step::GiveUp(any) => if let Some(number) = pick(&waiting, any) {
                    waiting.remove(&number);
                    model.leave(number);
                },
            }
            check(&waiting, &model)?;
            prop_assert_eq!(event.waiting(), model.queue.len());
            prop_assert_eq!(event.is_set(), model.is_set);
        }
    }

    /// A mutex is a semaphore of one permit, made of the same gate.
    #[test]
    fn a_semaphore_is_fair_and_loses_no_permit(permits in 1_usize..4, steps in steps()) {
        let semaphore = Semaphore::new(permits);
        let mut waiting = BTreeMap::new();
        let mut held = VecDeque::new();
        let (mut model, mut free, mut next) = (Model::default(), permits, 0);
        let give = |model: &mut Model, free: &mut usize| match model.queue.pop_front() {
            Some(first) => { model.let_go.insert(first); }
            None => *free += 1,
        };
        for step in steps {
            match step {
                Step::Wait => {
                    let mut one = Waiting::new(semaphore.acquire());
                    match one.poll() {
                        Poll::Ready(permit) => {
                            prop_assert!(free > 0);
                            free -= 1;
                            held.push_back(permit);
                        }
                        Poll::Pending => {
                            prop_assert_eq!(free, 0);
                            model.queue.push_back(next);
                            waiting.insert(next, one);
                            next += 1;
                        }
                    }
                }
                Step::Set => if held.pop_front().is_some() {
                    give(&mut model, &mut free);
                },
                Step::Reset => {
                    let permit = semaphore.try_acquire();
                    prop_assert_eq!(permit.is_some(), free > 0);
                    free -= usize::from(permit.is_some());
                    held.extend(permit);
                }
                Step::Poll(any) => if let Some(number) = pick(&waiting, any) {
                    let polled = waiting.get_mut(&number).map(Waiting::poll);
                    let may = model.let_go.contains(&number);
                    prop_assert_eq!(matches!(polled, Some(Poll::Ready(_))), may);
                    if let Some(Poll::Ready(permit)) = polled {
                        model.leave(number);
                        waiting.remove(&number);
                        held.push_back(permit);
                    }
                },
                Step::GiveUp(any) => if let Some(number) = pick(&waiting, any) {
                    waiting.remove(&number);
                    if model.leave(number) {
                        give(&mut model, &mut free);
                    }
                },
            }
            check(&waiting, &model)?;
            prop_assert_eq!(semaphore.free(), free);
            prop_assert_eq!(held.len() + free + model.let_go.len(), permits);
        }
    }

    #[test]
    fn a_channel_gives_each_value_once_and_in_order(
        limit in 1_usize..4,
        steps in steps(),
        close_at in 0_usize..160,
    ) {
        let (sender, receiver) = channel(limit);
        let mut receiver = Some(receiver);
        // Sends under way; those who may go on; and what is in the channel.
        let (mut waiting, mut model, mut next) = (BTreeMap::new(), Model::default(), 0);
        let (mut values, mut free) = (VecDeque::new(), limit);
        let give = |model: &mut Model, free: &mut usize| match model.queue.pop_front() {
            Some(first) => { model.let_go.insert(first); }
            None => *free += 1,
        };
        for (at, step) in steps.into_iter().enumerate() {
            if at == close_at {
                receiver = None;
                model.let_go.extend(model.queue.drain(..));
            }
            let is_open = receiver.is_some();
            match step {
                Step::Wait => {
                    let mut one = Waiting::new(sender.send(next));
                    match one.poll() {
                        Poll::Ready(Ok(())) => {
                            prop_assert!(is_open && free > 0);
                            free -= 1;
                            values.push_back(next);
                        }
                        Poll::Ready(Err(error)) => {
                            prop_assert!(!is_open);
                            prop_assert_eq!(error.0, next);
                        }
                        Poll::Pending => {
                            prop_assert!(is_open && free == 0);
                            model.queue.push_back(next);
                            waiting.insert(next, one);
                        }
                    }
                    next += 1;
                }
                Step::Set => if let Some(receiver) = &mut receiver {
                    let value = receiver.try_recv();
                    prop_assert_eq!(value, values.pop_front());
                    if value.is_some() {
                        give(&mut model, &mut free);
                    }
                },
                Step::Reset => {
                    match sender.try_send(next) {
                        Ok(()) => {
                            prop_assert!(is_open && free > 0);
                            free -= 1;
                            values.push_back(next);
                        }
                        Err(TrySendError::Full(value)) => {
                            prop_assert!(is_open && free == 0 && value == next);
                        }
                        Err(TrySendError::Closed(value)) => prop_assert!(!is_open && value == next),
                    }
                    next += 1;
                }
                Step::Poll(any) => if let Some(number) = pick(&waiting, any) {
                    let polled = waiting.get_mut(&number).map(Waiting::poll);
                    let may = model.let_go.contains(&number);
                    prop_assert_eq!(matches!(polled, Some(Poll::Ready(_))), may);
                    if let Some(Poll::Ready(sent)) = polled {
                        prop_assert_eq!(sent.is_ok(), is_open);
                        if is_open {
                            values.push_back(number);
                        }
                        model.leave(number);
                        waiting.remove(&number);
                    }
                },
                Step::GiveUp(any) => if let Some(number) = pick(&waiting, any) {
                    waiting.remove(&number);
                    if model.leave(number) && is_open {
                        give(&mut model, &mut free);
                    }
                },
            }
            check(&waiting, &model)?;
            if let Some(receiver) = &receiver {
                prop_assert_eq!(receiver.len(), values.len());
                prop_assert_eq!(values.len() + free + model.let_go.len(), limit);
            }
        }
    }
}

#[test]
fn a_receiver_is_woken_by_a_value_and_by_the_last_sender() {
    let (sender, mut receiver) = channel(1);
    let other = sender.clone();
    let mut first = Waiting::new(receiver.recv());
    assert!(first.poll().is_pending());
    sender.try_send("value").expect("there is room");
    assert_eq!(first.woken(), 1);
    assert_eq!(first.poll(), Poll::Ready(Some("value")));
    drop(first);
    let mut second = Waiting::new(receiver.recv());
    assert!(second.poll().is_pending());
    drop(sender);
    assert_eq!(second.woken(), 0);
    drop(other);
    assert_eq!(second.woken(), 1);
    assert_eq!(second.poll(), Poll::Ready(None));
}

thread_local! {
    static LOCKING: RefCell<Option<Pin<Box<dyn Future<Output = u32>>>>> = RefCell::default();
}

/// Polls what is in `LOCKING` as soon as it is woken, inside of whatever wakes it.
struct PollsAtOnce;

impl Wake for PollsAtOnce {
    fn wake(self: Arc<Self>) {
        let mut locking = LOCKING.take().expect("it waits");
        let polled = locking
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(7));
    }
}

#[test]
fn a_mutex_is_free_already_when_the_next_one_is_woken() {
    let mutex = Rc::new(Mutex::new(7));
    let held = mutex.try_lock().expect("nobody holds it");
    let theirs = mutex.clone();
    let mut locking: Pin<Box<dyn Future<Output = u32>>> =
        Box::pin(async move { *theirs.lock().await });
    let waker = Waker::from(Arc::new(PollsAtOnce));
    assert!(
        locking
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    LOCKING.set(Some(locking));
    drop(held);
    assert!(LOCKING.take().is_none(), "it was polled");
    assert!(mutex.try_lock().is_some());
}
