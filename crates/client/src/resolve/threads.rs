//! The threads that make the system's blocking call. Not for: caches and overrides.
//!
//! A question ([`Question`]) is shared by the thread that answers it and all tasks that
//! wait for it; the thread wakes them from outside of their loop.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use super::{Lookup, ResolveError};

/// How long a thread stays that has nothing to do.
const IDLE: Duration = Duration::from_secs(5);

/// Addresses, or the error of the system.
type Answer = Result<Vec<IpAddr>, String>;

/// `getaddrinfo`; each address once, in its order.
pub(super) fn ask_system(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut addresses = Vec::new();
    for address in (name, 0).to_socket_addrs()? {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    Ok(addresses)
}

/// A few threads and the names that wait for them. Dropping it ends the threads, each
/// after the call that it is in.
pub(super) struct Threads {
    pool: Arc<ThreadPool>,
    waiting_names_max: usize,
    threads_max: usize,
}

struct ThreadPool {
    lookup: Lookup,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<Question>>,
    /// Lookups in progress, shared by all requests for the same name.
    questions: HashMap<String, Weak<Question>>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

struct Question {
    name: String,
    state: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    answer: Option<Answer>,
    /// The wakers, by the number of the waiter.
    wakers: Vec<(u64, Waker)>,
    next: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing runs inside that could leave it half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    pub(super) fn new(lookup: Lookup, threads_max: usize, waiting_names_max: usize) -> Threads {
        Threads {
            pool: Arc::new(ThreadPool {
                lookup,
                state: Mutex::default(),
                work: Condvar::new(),
            }),
            waiting_names_max,
            threads_max: threads_max.max(1),
        }
    }

    /// Asks; the answer is to be awaited.
    pub(super) fn ask(&self, name: &str) -> Result<Inquiry, ResolveError> {
        let mut state = lock(&self.pool.state);
        if let Some(question) = state.questions.get(name).and_then(Weak::upgrade) {
            return Ok(Inquiry::new(question));
        }
        if state.queue.len() >= self.waiting_names_max {
            // Abandoned lookups take no place.
            state.queue.retain(|one| Arc::strong_count(one) > 1);
        }
        if state.queue.len() >= self.waiting_names_max {
            return Err(ResolveError::Busy {
                waiting_names_max: self.waiting_names_max,
            });
        }
        if state.idle <= state.queue.len() && state.threads < self.threads_max {
            match self.pool.start() {
                Ok(()) => state.threads += 1,
                // Those that there are will come to it.
                Err(_) if state.threads > 0 => {}
                Err(error) => {
                    let reason = error.to_string();
                    return Err(ResolveError::NoThread { reason });
                }
            }
        }
        let question = Arc::new(Question {
            name: name.to_owned(),
            state: Mutex::default(),
        });
        state
            .questions
            .retain(|_, question| question.strong_count() > 0);
        let weak = Arc::downgrade(&question);
        state.questions.insert(name.to_owned(), weak);
        state.queue.push_back(question.clone());
        drop(state);
        self.pool.work.notify_one();
        Ok(Inquiry::new(question))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let mut state = lock(&self.pool.state);
        state.is_over = true;
        state.queue.clear();
        drop(state);
        self.pool.work.notify_all();
    }
}

impl ThreadPool {
    fn start(self: &Arc<ThreadPool>) -> io::Result<()> {
        let pool = self.clone();
        thread::Builder::new()
            .name("prony-resolve".to_owned())
            .spawn(move || {
                let leaving = Leaving(&pool);
                while let Some(question) = leaving.0.next() {
                    let answering = Answering(&question);
                    let answer = (leaving.0.lookup)(&question.name);
                    answering.give(answer.map_err(|error| error.to_string()));
                }
            })
            .map(drop)
    }

    /// The next lookup that a request waits for; None when it is time to end.
    fn next(&self) -> Option<Arc<Question>> {
        let mut state = lock(&self.state);
        loop {
            if state.is_over {
                return None;
            }
            while let Some(question) = state.queue.pop_front() {
                // The lookup is abandoned if the queue held the only reference.
                if Arc::strong_count(&question) > 1 {
                    return Some(question);
                }
            }
            state.idle += 1;
            let waited = self.work.wait_timeout(state, IDLE);
            let (again, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = again;
            state.idle -= 1;
            if timeout.timed_out() && state.queue.is_empty() {
                return None;
            }
        }
    }
}

/// Counts a thread out, however it ends.
struct Leaving<'a>(&'a ThreadPool);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).threads -= 1;
    }
}

/// Answers a question, at the latest when it is dropped by a lookup that panics.
struct Answering<'a>(&'a Question);

impl Answering<'_> {
    fn give(&self, answer: Answer) {
        let mut state = lock(&self.0.state);
        state.answer.get_or_insert(answer);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        for (_, waker) in wakers {
            waker.wake();
        }
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.give(Err("the look-up panicked".to_owned()));
    }
}

/// Waits for an answer.
pub(super) struct Inquiry {
    question: Arc<Question>,
    number: u64,
}

impl Inquiry {
    fn new(question: Arc<Question>) -> Inquiry {
        let mut state = lock(&question.state);
        let number = state.next;
        state.next += 1;
        drop(state);
        Inquiry { question, number }
    }
}

impl Future for Inquiry {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut state = lock(&self.question.state);
        if let Some(answer) = &state.answer {
            return Poll::Ready(answer.clone());
        }
        let place_of_waker = state.wakers.iter().position(|one| one.0 == self.number);
        let before = place_of_waker.map(|place| state.wakers.swap_remove(place));
        state.wakers.push((self.number, cx.waker().clone()));
        // Not while it is locked: a waker that goes may drop what waits here.
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        let mut state = lock(&self.question.state);
        let place_of_waker = state.wakers.iter().position(|one| one.0 == self.number);
        let waker = place_of_waker.map(|place| state.wakers.swap_remove(place));
        drop(state);
        drop(waker);
    }
}
