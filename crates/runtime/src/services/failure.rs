//! Failures of starts and stops, and panics of users' code as values.
//! Not for: what follows from a failure (`pump`).

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason why a service could not start or stop: a sentence. Made from any error by `?`.
///
/// It is one word, so that a result of a start is one, which the compiler hands
/// over in a register.
pub struct Failure(Box<Message>);

struct Message(String);

impl Failure {
    /// A failure that says this.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure(Box::new(Message(message.into())))
    }
}

impl<E: std::error::Error> From<E> for Failure {
    /// The error and what caused it, in one line.
    fn from(error: E) -> Failure {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Failure::new(message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({:?})", self.0.0)
    }
}

/// Runs user code; the message of its panic where there was one. The code's own
/// state may be left half changed, but none of ours: nothing of it is borrowed.
#[inline]
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_message(&*panic))
}

#[cold]
fn panic_message(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::new(text.unwrap_or_else(|| "a panic without a message".to_owned()))
}
