//! Tasks that wake one another, events through channels, and messages to JSON and back.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::hint::black_box;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_local;

use crate::{Handling, Json, WorkOutcome};

/// An event: what every one has, and what it carries.
struct Event<P> {
    id: u64,
    _origin: u64,
    kind: u32,
    _priority: u64,
    load: P,
}

/// What an event of the work `event` carries.
trait Load: Copy + 'static {
    fn of(id: u64) -> Self;
    /// The sum of its words.
    fn sum(self) -> u64;
}

impl Load for () {
    fn of(_: u64) -> Self {}
    fn sum(self) -> u64 {
        0
    }
}

impl Load for [u64; 4] {
    fn of(id: u64) -> Self {
        [id, id + 1, id + 2, id + 3]
    }
    fn sum(self) -> u64 {
        self.into_iter().fold(0, u64::wrapping_add)
    }
}

/// What is called with each event of a kind: a function, or one whose future the dispatcher awaits.
enum Handler<P> {
    Plain(Box<dyn Fn(&Event<P>)>),
    Coroutine(Box<dyn Fn(&Event<P>) -> Pin<Box<dyn Future<Output = ()>>>>),
}

type Handlers<P> = HashMap<u32, Handler<P>>;

/// A channel for each priority, of which the first that has something is next.
struct Queue<P> {
    channels: Vec<mpsc::UnboundedReceiver<Event<P>>>,
}

impl<P> Queue<P> {
    fn new(priorities: usize) -> (Vec<mpsc::UnboundedSender<Event<P>>>, Queue<P>) {
        let (senders, channels) = (0..priorities).map(|_| mpsc::unbounded_channel()).unzip();
        (senders, Queue { channels })
    }

    /// The next event, or nothing when all senders are gone and all has been received.
    async fn next(&mut self) -> Option<Event<P>> {
        poll_fn(|context| {
            let mut open = false;
            for channel in &mut self.channels {
                match channel.poll_recv(context) {
                    Poll::Ready(Some(event)) => return Poll::Ready(Some(event)),
                    Poll::Ready(None) => {}
                    Poll::Pending => open = true,
                }
            }
            if open {
                Poll::Pending
            } else {
                Poll::Ready(None)
            }
        })
        .await
    }

    /// Calls the handlers of all events that come; yields how many came.
    async fn dispatch(mut self, handlers: Handlers<P>) -> u64 {
        let mut dispatched = 0;
        while let Some(event) = self.next().await {
            dispatched += 1;
            match handlers.get(&event.kind) {
                Some(Handler::Plain(handler)) => handler(&event),
                Some(Handler::Coroutine(handler)) => handler(&event).await,
                None => {}
            }
        }
        dispatched
    }
}

const RESUME: u32 = 1;
const USELESS: u32 = 2;

/// A task awaits a `Notify`; for each round an event goes through the queue, whose handler notifies it.
pub async fn coroutine(count: u64) -> WorkOutcome {
    let sum = Rc::new(Cell::new(0u64));
    let ready = Rc::new(Notify::new());
    let (senders, queue) = Queue::new(1);
    let handler = Handler::Coroutine(Box::new({
        let (sum, ready) = (sum.clone(), ready.clone());
        move |event: &Event<u64>| {
            let (sum, ready, round) = (sum.clone(), ready.clone(), event.load);
            Box::pin(async move {
                sum.set(sum.get().wrapping_add(round));
                ready.notify_one();
            })
        }
    }));
    let dispatching = spawn_local(queue.dispatch(Handlers::from([(RESUME, handler)])));
    let waiting = spawn_local({
        let sum = sum.clone();
        async move {
            for round in 0..count {
                let event = Event {
                    id: round + 1,
                    _origin: 1,
                    kind: RESUME,
                    _priority: 1000,
                    load: round,
                };
                assert!(senders[0].send(event).is_ok(), "the queue is there");
                ready.notified().await;
                sum.set(sum.get().wrapping_add(1));
            }
        }
    });
    waiting.await.expect("the task has ended");
    dispatching.await.expect("the dispatcher has ended");
    WorkOutcome {
        checksum: sum.get(),
        bytes: 0,
    }
}

/// The same by tokio's own means: a task awaits a `Notify`; another, spawned for each round, notifies it.
pub async fn coroutine_by_tasks(count: u64) -> WorkOutcome {
    let sum = Rc::new(Cell::new(0u64));
    let ready = Rc::new(Notify::new());
    let waiting = spawn_local({
        let (sum, ready) = (sum.clone(), ready.clone());
        async move {
            for round in 0..count {
                spawn_local({
                    let (sum, ready) = (sum.clone(), ready.clone());
                    async move {
                        sum.set(sum.get().wrapping_add(round));
                        ready.notify_one();
                    }
                });
                ready.notified().await;
                sum.set(sum.get().wrapping_add(1));
            }
        }
    });
    waiting.await.expect("the task has ended");
    WorkOutcome {
        checksum: sum.get(),
        bytes: 0,
    }
}

/// What the handler of the work `event` adds up.
#[derive(Default)]
struct Seen {
    number: Cell<u64>,
    sum: Cell<u64>,
}

impl Seen {
    fn note(&self, id: u64, load: impl Load) {
        self.number.set(self.number.get() + 1);
        let weighed = id.wrapping_mul(self.number.get() % 7 + 1);
        let sum = self.sum.get().wrapping_add(weighed);
        self.sum.set(sum.wrapping_add(load.sum()));
    }
}

fn handlers<P: Load>(how: Handling, seen: Rc<Seen>) -> Handlers<P> {
    let handler = match how {
        Handling::Plain => Handler::Plain(Box::new(move |event: &Event<P>| {
            seen.note(event.id, event.load)
        })),
        Handling::Coroutine => Handler::Coroutine(Box::new(move |event: &Event<P>| {
            let (seen, id, load) = (seen.clone(), event.id, event.load);
            Box::pin(async move { seen.note(id, load) })
        })),
        Handling::None => return Handlers::new(),
    };
    Handlers::from([(USELESS, handler)])
}

/// All events are sent before the first is received; a handler sees each.
pub async fn event(count: u64, priorities: u64, handling: Handling, words: bool) -> WorkOutcome {
    if words {
        pushed_and_dispatched::<[u64; 4]>(count, priorities, handling).await
    } else {
        pushed_and_dispatched::<()>(count, priorities, handling).await
    }
}

async fn pushed_and_dispatched<P: Load>(count: u64, priorities: u64, how: Handling) -> WorkOutcome {
    let (senders, queue) = Queue::new(priorities as usize);
    let seen = Rc::new(Seen::default());
    for id in 1..=count {
        let level = (id - 1) % priorities;
        let event = Event {
            id,
            _origin: 1,
            kind: USELESS,
            _priority: 1000 + level,
            load: P::of(id),
        };
        assert!(
            senders[level as usize].send(event).is_ok(),
            "the queue is there"
        );
    }
    drop(senders);
    let dispatched = queue.dispatch(handlers::<P>(how, seen.clone())).await;
    let checksum = match how {
        Handling::None => dispatched,
        _ => seen.sum.get(),
    };
    WorkOutcome { checksum, bytes: 0 }
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Message {
    id: u64,
    val: String,
}

/// A message that owns its text to JSON in a fresh buffer, and back to another, by this library.
pub fn serializer(count: u64, json: Json) -> WorkOutcome {
    match json {
        Json::SerdeJson => there_and_back(count, |message| {
            let text = serde_json::to_string(message).expect("a message that can be written");
            let back = serde_json::from_str(&text).expect("a message that can be read");
            (text.len(), back)
        }),
        Json::SonicRs => there_and_back(count, |message| {
            let text = sonic_rs::to_string(message).expect("a message that can be written");
            let back = sonic_rs::from_str(&text).expect("a message that can be read");
            (text.len(), back)
        }),
        Json::SimdJson => there_and_back(count, |message| {
            // It reads in place, and leaves the text changed.
            let mut text = simd_json::to_vec(message).expect("a message that can be written");
            let length = text.len();
            let back = simd_json::from_slice(&mut text).expect("a message that can be read");
            (length, back)
        }),
    }
}

/// `pass` writes a message and reads it again: the bytes that were written, and what was read.
fn there_and_back(count: u64, pass: impl Fn(&Message) -> (usize, Message)) -> WorkOutcome {
    let mut outcome = WorkOutcome::default();
    let mut message = Message {
        id: 0,
        val: black_box("five hundred".to_owned()),
    };
    for i in 0..count {
        message.id = 20 + i % 64;
        let (bytes, back) = pass(&message);
        assert!(back == message, "a message did not come back as it was");
        outcome.bytes += bytes as u64;
        outcome.checksum = outcome
            .checksum
            .wrapping_add(back.id + back.val.len() as u64);
    }
    outcome
}
