//! Many requests at once, their responses as they come. Not for: limits on connections,
//! which the pool keeps.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use prony_engine::{Handle, Task};

use super::builder::RequestBuilder;
use super::error::Error;
use super::response::Response;

/// A response and the place of its request.
type Ended = (usize, Result<Response, Error>);

#[derive(Default)]
struct Results {
    ended: RefCell<VecDeque<Ended>>,
    waker: Cell<Option<Waker>>,
}

/// Requests in flight, by [`Client::all`](super::Client::all). Dropping it cancels them.
pub struct All<I> {
    handle: Handle,
    requests: I,
    next_place: usize,
    at_once: usize,
    results: Rc<Results>,
    in_flight: HashMap<usize, Task<()>>,
}

impl<I> fmt::Debug for All<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "All({} in flight)", self.in_flight.len())
    }
}

impl<I: Iterator<Item = RequestBuilder>> All<I> {
    pub(super) fn new(handle: &Handle, requests: I, at_once: usize) -> All<I> {
        All {
            handle: handle.clone(),
            requests,
            next_place: 0,
            at_once: at_once.max(1),
            results: Rc::default(),
            in_flight: HashMap::new(),
        }
    }

    /// Waits for the next response; returns it with the place of its request, from 0; None when
    /// there are no more. Responses that were not returned yet count towards the limit.
    pub async fn next(&mut self) -> Option<Ended> {
        self.fill();
        if self.in_flight.is_empty() {
            return None;
        }
        let ended = poll_fn(|cx| {
            if let Some(ended) = self.results.ended.borrow_mut().pop_front() {
                return Poll::Ready(ended);
            }
            self.results.waker.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
        self.in_flight.remove(&ended.0);
        Some(ended)
    }

    fn fill(&mut self) {
        while self.in_flight.len() < self.at_once
            && let Some(request) = self.requests.next()
        {
            let (place, results) = (self.next_place, self.results.clone());
            self.next_place += 1;
            let task = self.handle.spawn(async move {
                let answer = request.send().await;
                results.ended.borrow_mut().push_back((place, answer));
                if let Some(waker) = results.waker.take() {
                    waker.wake();
                }
            });
            self.in_flight.insert(place, task);
        }
    }
}
