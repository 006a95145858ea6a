//! What follows an answer as it comes, and says at its end whether it is right. One value for each connection, chosen when it is
//! opened: the checks of a load, or what a user's steps check and take.

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
