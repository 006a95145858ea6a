//! One request of a connection of HTTP/2 and its answer, at the place of a stream; used again for later ones.

use std::net::SocketAddr;
use std::rc::Rc;

use super::sender::{FrameSender, StreamSender};
use crate::response::{After, Response};
use crate::server::handler::Handler;
use crate::server::incoming::Incoming;
use crate::server::output::Output;
use crate::server::state::ServerState;
use crate::server::wire::Wire;
use prony_engine::Alarm;

/// A request that is received, then answered.
pub(super) struct Http2Exchange {
    pub(super) incoming: Incoming,
    pub(super) response: Response,
}

impl Http2Exchange {
    /// One for the streams at this place.
    pub(super) fn new(
        shared: &Rc<ServerState>,
        frames: &Rc<FrameSender>,
        place: usize,
        peer: Option<SocketAddr>,
    ) -> Box<Http2Exchange> {
        let stream = StreamSender {
            frames: Rc::clone(frames),
            place,
        };
        Box::new(Http2Exchange {
            incoming: Incoming::default(),
            response: Response::new(Output {
                shared: Rc::clone(shared),
                stream: Wire::Http2(stream),
                out: Vec::new(),
                alarm: Alarm::default(),
                peer,
            }),
        })
    }
}

/// Calls the handler, and waits until its answer is on its way; yields whether that is whole.
pub(super) async fn answer<H: Handler>(
    handler: &H,
    mut exchange: Box<Http2Exchange>,
) -> (Box<Http2Exchange>, bool) {
    let Http2Exchange { incoming, response } = &mut *exchange;
    response.output.shared.counters.requests.add(1);
    let request = incoming.request();
    response.begin(&request.head);
    handler.handle(&request, response).await;
    response.give_rest().await;
    let is_whole = response.conclude() != After::Abort;
    let memory = &response.output.shared.options.body_memory;
    incoming.clear(memory);
    (exchange, is_whole)
}
