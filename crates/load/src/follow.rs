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

    /// The answer is whole: the first check that it fails, by number.
    fn end(&mut self, status: u16) -> Option<u16>;
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
