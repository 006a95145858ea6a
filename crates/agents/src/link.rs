//! Messages over a carrier that may lose, repeat and reorder them: numbered, acknowledged, sent again until they are.
//!
//! An envelope has the number of its message, and the number of the last one that was heard in turn. What comes early is kept until its
//! turn. Without I/O and without a clock of its own.

use std::collections::{BTreeMap, VecDeque};

use prony_base::{Instant, Nanos};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// After so long without an acknowledgement a message is sent again.
const RESEND_AFTER: Nanos = Nanos::from_millis(250);
/// What was heard is acknowledged at the latest after this, with a message or without.
const ACKNOWLEDGE_AFTER: Nanos = Nanos::from_millis(100);
/// Messages that are kept until those before them have come; of others it is waited that they come again.
const EARLY_MAX: usize = 1_024;
/// Bytes that may wait for an acknowledgement.
const UNACKNOWLEDGED_MAX: usize = 256 << 20;

/// An envelope, a line of JSON.
#[derive(Serialize, Deserialize)]
struct NumberedLine<M> {
    /// Number of the message, from 1; 0: it has none, and no turn, or there is no message.
    number: u64,
    /// Number of the last message that was heard in turn.
    heard: u64,
    message: Option<M>,
}

/// Why a link cannot go on.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LinkFault {
    /// What came is no envelope.
    #[error("what it says is no message of Prony's: {0}")]
    Malformed(String),
    /// It acknowledges what was never said.
    #[error("it acknowledges message {heard}, and the last was {sent}")]
    Unsaid {
        /// What it says that it heard.
        heard: u64,
        /// What was said.
        sent: u64,
    },
    /// Too much waits for an acknowledgement.
    #[error("it has not acknowledged {} MiB of messages", .0 >> 20)]
    Unheard(usize),
}

/// One end of a link.
#[derive(Debug)]
pub struct MessageLink {
    /// Messages that are not acknowledged, as they were sent last.
    waiting: VecDeque<(u64, Vec<u8>)>,
    waiting_bytes: usize,
    /// When the oldest of them was sent last.
    sent_at: Instant,
    /// Number of the last message that was said.
    said: u64,
    /// Number of the last message that was heard in turn.
    heard: u64,
    /// Lines that came before their turn.
    early: BTreeMap<u64, Vec<u8>>,
    /// Since when an acknowledgement is due.
    owed_since: Option<Instant>,
    /// A carrier that neither loses nor repeats: nothing is sent again.
    is_reliable: bool,
    /// Messages that were sent again, and that came twice or out of turn.
    pub repeated: u64,
}

impl MessageLink {
    /// Nothing said. `is_reliable`: of the carrier.
    pub fn new(is_reliable: bool) -> MessageLink {
        MessageLink {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            sent_at: Instant::ZERO,
            said: 0,
            heard: 0,
            early: BTreeMap::new(),
            owed_since: None,
            is_reliable,
            repeated: 0,
        }
    }

    /// The line that says `message`.
    ///
    /// # Errors
    /// Too much waits for an acknowledgement.
    pub fn say(&mut self, message: &impl Serialize, now: Instant) -> Result<Vec<u8>, LinkFault> {
        self.said += 1;
        let line = self.line(self.said, Some(message));
        if self.waiting.is_empty() {
            self.sent_at = now;
        }
        if !self.is_reliable {
            self.waiting_bytes += line.len();
            self.waiting.push_back((self.said, line.clone()));
        }
        match self.waiting_bytes > UNACKNOWLEDGED_MAX {
            true => Err(LinkFault::Unheard(self.waiting_bytes)),
            false => Ok(line),
        }
    }

    /// A line that says `message` at once, and is not said again where it is lost: for what is of no use when it is late.
    pub fn say_once(&mut self, message: &impl Serialize) -> Vec<u8> {
        self.line(0, Some(message))
    }

    fn line(&mut self, number: u64, message: Option<&impl Serialize>) -> Vec<u8> {
        self.owed_since = None;
        let heard = self.heard;
        let envelope = NumberedLine {
            number,
            heard,
            message,
        };
        let mut line = serde_json::to_vec(&envelope).expect("a message has no keys but texts");
        line.push(b'\n');
        line
    }

    /// Takes a line; the messages whose turn it is.
    ///
    /// # Errors
    /// It is no envelope, or acknowledges what was never said.
    pub fn hear<M: DeserializeOwned>(
        &mut self,
        line: &[u8],
        now: Instant,
    ) -> Result<Vec<M>, LinkFault> {
        let envelope = opened::<M>(line)?;
        if envelope.heard > self.said {
            return Err(LinkFault::Unsaid {
                heard: envelope.heard,
                sent: self.said,
            });
        }
        let is_heard = |(number, _): &mut (u64, Vec<u8>)| *number <= envelope.heard;
        while let Some((_, line)) = self.waiting.pop_front_if(is_heard) {
            self.waiting_bytes -= line.len();
            self.sent_at = now;
        }
        if envelope.number == 0 {
            return Ok(Vec::from_iter(envelope.message));
        }
        self.owed_since.get_or_insert(now);
        if envelope.number != self.heard + 1 {
            self.repeated += 1;
            if envelope.number > self.heard && self.early.len() < EARLY_MAX {
                self.early.insert(envelope.number, line.to_vec());
            }
            return Ok(Vec::new());
        }
        self.heard = envelope.number;
        let mut messages = Vec::from_iter(envelope.message);
        while let Some(line) = self.early.remove(&(self.heard + 1)) {
            self.heard += 1;
            messages.extend(opened::<M>(&line)?.message);
        }
        Ok(messages)
    }

    /// The lines that are due at `now`: what was not acknowledged, or an acknowledgement.
    pub fn due(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if self.is_reliable {
            return Vec::new();
        }
        if !self.waiting.is_empty() && now >= self.sent_at + RESEND_AFTER {
            self.sent_at = now;
            self.repeated += self.waiting.len() as u64;
            return self.waiting.iter().map(|(_, line)| line.clone()).collect();
        }
        if self
            .owed_since
            .is_some_and(|since| now >= since + ACKNOWLEDGE_AFTER)
        {
            return vec![self.line(0, None::<&()>)];
        }
        Vec::new()
    }
}

fn opened<M: DeserializeOwned>(line: &[u8]) -> Result<NumberedLine<M>, LinkFault> {
    serde_json::from_slice(line).map_err(|error| LinkFault::Malformed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use prony_base::Random;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the carrier does to the lines: all messages arrive, once each and in their order.
        #[test]
        fn all_is_heard_once_and_in_turn(seed: u64, loss in 0_u64..60, count in 1_u64..60) {
            let mut random = Random::of(seed, "carrier");
            let (mut here, mut there) = (MessageLink::new(false), MessageLink::new(false));
            let (mut to_there, mut to_here): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
            let (mut said, mut heard) = (0, Vec::new());
            let mut now = Instant(1);
            while heard.len() < count as usize {
                now = now + Nanos::from_millis(20);
                if said < count {
                    to_there.push(here.say(&said, now).unwrap());
                    said += 1;
                }
                for (link, lines) in [(&mut here, &mut to_there), (&mut there, &mut to_here)] {
                    lines.extend(link.due(now));
                }
                for is_there in [true, false] {
                    let lines = if is_there { &mut to_there } else { &mut to_here };
                    let mut arrive = Vec::new();
                    while !lines.is_empty() && random.below(3) > 0 {
                        let at = random.below(lines.len() as u64) as usize;
                        let is_kept = random.below(10) == 0;
                        let line = if is_kept { lines[at].clone() } else { lines.remove(at) };
                        if random.below(100) >= loss {
                            arrive.push(line);
                        }
                    }
                    for line in arrive {
                        if is_there {
                            heard.extend(there.hear::<u64>(&line, now).unwrap());
                        } else {
                            prop_assert_eq!(here.hear::<u64>(&line, now).unwrap(), vec![0; 0]);
                        }
                    }
                }
                prop_assert!(now < Instant(1) + Nanos::from_secs(3_600), "{:?}", heard);
            }
            prop_assert_eq!(heard, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn no_line_is_too_odd(line: Vec<u8>) {
            let _ = MessageLink::new(false).hear::<crate::message::FromAgent>(&line, Instant(1));
        }
    }

    #[test]
    fn what_was_never_said_is_not_acknowledged() {
        let fault = MessageLink::new(false)
            .hear::<u64>(br#"{"number":1,"heard":3,"message":5}"#, Instant(1));
        assert_eq!(fault, Err(LinkFault::Unsaid { heard: 3, sent: 0 }));
    }
}
