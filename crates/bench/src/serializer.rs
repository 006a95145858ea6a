//! A message to JSON in a fresh buffer, read back, both fields compared.

use prony_wire::json::{self, Text};

use crate::crew::{Share, at_once};
use crate::{BenchError, Done, Order, Work};

json::message! {
    struct Message<'a> {
        id: u64,
        val: Text<'a>,
    }
}

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "messages", round_trips)
}

fn round_trips(order: &Order) -> Result<Share, BenchError> {
    // Not known to the compiler, and different in each round, so that nothing of it can
    // be done beforehand.
    let val = std::hint::black_box("five hundred".to_owned());
    let mut share = Share::default();
    for round in 0..order.count {
        let sent = Message {
            id: 20 + round % 64,
            val: Text::Borrowed(&val),
        };
        let text = std::hint::black_box(json::to_vec(&sent));
        let wrong = |wrong: String| BenchError::Wrong {
            work: Work::Serializer,
            wrong,
        };
        let read: Message<'_> =
            json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if read.id != sent.id || read.val != sent.val {
            return Err(wrong(format!("message {round} came back changed")));
        }
        share.bytes += text.len() as u64;
        share.checksum += read.id + read.val.len() as u64;
    }
    Ok(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_checksum_are_those_of_the_messages() {
        let order = Order {
            count: 128,
            threads: 2,
            ..Order::default()
        };
        let line = run(&order).unwrap().line;
        // 20 to 83, each with two digits: 30 bytes a message.
        assert_eq!(line.bytes, 2 * 128 * 30);
        let ids: u64 = (20..84).sum();
        assert_eq!(line.checksum, (2 * (2 * ids + 128 * 12)).to_string());
    }
}
