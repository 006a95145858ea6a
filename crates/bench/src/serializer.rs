//! A message that owns its text to JSON in a fresh buffer, read back into another that owns
//! its text, both fields compared.
//!
//! Writing and reading are asked of a serialiser of messages behind a pointer, as an
//! application gets one from its services: which format is behind it is not known to who
//! asks, and [`Json`] is the same code for every declared type.

use std::rc::Rc;

use prony_wire::json::{self, Value};

use crate::threads::{ThreadResult, at_once};
use crate::{BenchError, Done, Order, Work};

json::message! {
    #[derive(Debug, PartialEq)]
    struct Message {
        id: u64,
        val: String,
    }
}

/// Values of one type as bytes, and back.
trait Serializer<T> {
    fn write(&self, value: &T) -> Vec<u8>;
    fn read(&self, bytes: &[u8]) -> Result<T, json::Error>;
}

/// Any declared message as JSON.
struct Json;

impl<T: Value> Serializer<T> for Json {
    fn write(&self, value: &T) -> Vec<u8> {
        json::to_vec(value)
    }

    fn read(&self, bytes: &[u8]) -> Result<T, json::Error> {
        json::from_slice(bytes)
    }
}

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "messages", round_trips)
}

fn round_trips(order: &Order) -> Result<ThreadResult, BenchError> {
    // Neither the text nor the serialiser is known to the compiler, and the number differs
    // in each round, so that nothing of it can be done beforehand.
    let serializer: Rc<dyn Serializer<Message>> = Rc::new(Json);
    let serializer = std::hint::black_box(serializer);
    let mut sent = Message {
        id: 0,
        val: std::hint::black_box("five hundred".to_owned()),
    };
    let mut result = ThreadResult::default();
    for round in 0..order.count {
        sent.id = 20 + round % 64;
        let text = serializer.write(&sent);
        let wrong = |wrong: String| BenchError::Wrong {
            work: Work::Serializer,
            wrong,
        };
        let read = serializer
            .read(&text)
            .map_err(|error| wrong(error.to_string()))?;
        if read != sent {
            return Err(wrong(format!("message {round} came back changed")));
        }
        result.bytes += text.len() as u64;
        result.checksum += read.id + read.val.len() as u64;
    }
    Ok(result)
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
