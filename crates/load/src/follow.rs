//! What follows an answer as it comes, and says at its end whether it is right. One value for each connection, chosen when it is
//! opened: the checks of a load, what a user's steps check and take, or a script.

use std::fmt::Debug;

use prony_wire::Headers;

use crate::source::EncodedRequest;

/// Follows one answer after the other.
pub trait AnswerFollower {
    /// Another answer begins. `request`: what it answers; `None` in a pipeline, where that was sent before.
    fn begin(&mut self, request: Option<&EncodedRequest>);

    /// Its head has come.
    fn head(&mut self, headers: &Headers<'_>);

    /// A part of its body has come.
    fn body(&mut self, data: &[u8]);

    /// A field of its head has come, of an answer whose fields come one by one, with a name in small letters.
    fn field(&mut self, name: &[u8], value: &[u8]);

    /// The answer is whole, and is not what anything is expected of: another request follows from it, or was to, and this check says
    /// why it does not.
    fn passed_over(&mut self, status: u16, fault: Option<u16>) {
        let _ = (status, fault);
    }

    /// The answer is whole.
    fn end(&mut self, status: u16) -> AnswerEnd;
}

/// What an answer comes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnswerEnd {
    /// It passes all checks.
    Passed,
    /// The first check that it fails, by number.
    Failed(u16),
    /// Another request follows from it: what is expected is expected of that one's answer.
    LeadsOn,
    /// It fails this check, and nothing else is expected of it.
    Rejected(u16),
    /// It was decoded: whether its body is the expected one, and the first check that it fails.
    Decoded(bool, Option<u16>),
}

impl AnswerEnd {
    /// Whether an answer is right, where its body is as it should be or not, and the check that it fails.
    pub fn judged(self, is_right: bool) -> (bool, Option<u16>) {
        match self {
            AnswerEnd::Passed => (is_right, None),
            AnswerEnd::Failed(check) => (is_right, Some(check)),
            AnswerEnd::LeadsOn => (true, None),
            AnswerEnd::Rejected(check) => (true, Some(check)),
            AnswerEnd::Decoded(is_right, check) => (is_right, check),
        }
    }
}

/// Makes a follower for each connection of a load.
pub trait AnswerFollowers: Debug + Send + Sync {
    /// That of a connection of thread `thread`. It passes the answer on to `checker`, and returns `failed` where the answer fails by
    /// the follower itself.
    fn follower(
        &self,
        thread: u32,
        checker: Option<Box<dyn AnswerFollower>>,
        failed: u16,
    ) -> Box<dyn AnswerFollower>;
}
