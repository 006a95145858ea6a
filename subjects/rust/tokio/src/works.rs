//! Tasks that wake one another, events through channels, and messages to JSON and back.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_local;

use crate::Outcome;

/// A task awaits a `Notify`; another, spawned for each round, notifies it.
pub async fn coroutine(count: u64) -> Outcome {
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
    Outcome {
        checksum: sum.get(),
        bytes: 0,
    }
}

struct Event {
    id: u64,
    _origin: u64,
    kind: u32,
    _priority: u64,
}

type Handler = Box<dyn Fn(&Event)>;

/// A channel for each priority, of which the first that has something is next.
struct Queue {
    channels: Vec<mpsc::UnboundedReceiver<Event>>,
}

impl Queue {
    fn new(priorities: usize) -> (Vec<mpsc::UnboundedSender<Event>>, Queue) {
        let (senders, channels) = (0..priorities).map(|_| mpsc::unbounded_channel()).unzip();
        (senders, Queue { channels })
    }

    /// The next event, or nothing when all senders are gone and all has been received.
    async fn next(&mut self) -> Option<Event> {
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
}

/// All events are sent before the first is received; there is no handler for them.
pub async fn event(count: u64, priorities: u64) -> Outcome {
    let (senders, mut queue) = Queue::new(priorities as usize);
    let handlers: HashMap<u32, Handler> = HashMap::new();
    let mut checksum = 0u64;
    let mut dispatched = 0u64;
    for id in 1..=count {
        let level = (id - 1) % priorities;
        let event = Event {
            id,
            _origin: 0,
            kind: 1,
            _priority: 1000 + level,
        };
        assert!(
            senders[level as usize].send(event).is_ok(),
            "the queue is there"
        );
    }
    drop(senders);
    while let Some(event) = queue.next().await {
        match handlers.get(&event.kind) {
            Some(handler) => handler(&event),
            None => {
                dispatched += 1;
                checksum = checksum.wrapping_add(event.id.wrapping_mul(dispatched % 7 + 1));
            }
        }
    }
    Outcome { checksum, bytes: 0 }
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Message {
    id: u64,
    val: String,
}

/// A message to JSON in a fresh buffer, and back.
pub fn serializer(count: u64) -> Outcome {
    let mut outcome = Outcome::default();
    for i in 0..count {
        let message = Message {
            id: 20 + i % 64,
            val: "five hundred".to_owned(),
        };
        let text = serde_json::to_string(&message).expect("a message that can be written");
        let back: Message = serde_json::from_str(&text).expect("a message that can be read");
        assert!(
            back == message,
            "a message did not come back as it was: {text}"
        );
        outcome.bytes += text.len() as u64;
        outcome.checksum = outcome
            .checksum
            .wrapping_add(back.id + back.val.len() as u64);
    }
    outcome
}
