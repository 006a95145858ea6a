//! The places of streams, how streams end, and what comes too late.

use std::fmt;

use prony_base::Instant;
use prony_wire::Method;
use prony_wire::http2::{code, kind};

use super::{
    ENDED_MAX, Fatal, Http2Exchange, Http2Session, STREAMS_MAX, SessionEvent, SessionResult,
    StreamPlace, fatal,
};
use crate::server::http2::sender::{goaway, goaway_soon};

impl Http2Session {
    #[inline]
    pub(super) fn place_of(&self, id: u32) -> Option<usize> {
        self.places
            .iter()
            .position(|stream| stream.id == id)
            .filter(|_| id != 0)
    }

    pub(super) fn take_place(&mut self) -> Option<usize> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        let place = self.places.len();
        if place == STREAMS_MAX {
            return None;
        }
        self.places.push(StreamPlace::default());
        let exchange = Http2Exchange::new(&self.shared, &self.frames, place, self.peer);
        self.exchanges.push(Some(exchange));
        Some(place)
    }

    /// The request at a place, to be answered.
    pub(in crate::server::http2) fn take_exchange(
        &mut self,
        place: usize,
    ) -> Option<Box<Http2Exchange>> {
        self.exchanges.get_mut(place)?.take()
    }

    /// The place of the request that is whole and has waited longest to be answered.
    pub(in crate::server::http2) fn held_back(&self) -> Option<usize> {
        let waiting = self.places.iter().zip(&self.exchanges).enumerate();
        let waiting = waiting.filter(|(_, (stream, exchange))| {
            stream.id != 0 && stream.is_answering && exchange.is_some()
        });
        let first = waiting.min_by_key(|(_, (stream, _))| stream.id);
        first.map(|(place, _)| place)
    }

    /// A request was answered, or its handler broke off.
    pub(in crate::server::http2) fn answered(
        &mut self,
        place: usize,
        exchange: Box<Http2Exchange>,
        is_whole: bool,
    ) {
        self.exchanges[place] = Some(exchange);
        let id = self.places[place].id;
        let went_out = self.frames.close(place);
        if !went_out || !is_whole {
            self.send_reset(id, code::INTERNAL_ERROR);
        }
        self.free_place(place, false);
    }

    /// The handler of a stream that was reset is dropped, and its exchange with it.
    pub(in crate::server::http2) fn dropped(&mut self, place: usize) {
        let exchange = Http2Exchange::new(&self.shared, &self.frames, place, self.peer);
        self.exchanges[place] = Some(exchange);
        self.frames.close(place);
        self.free.push(place);
    }

    pub(super) fn free_place(&mut self, place: usize, is_early: bool) {
        let id = std::mem::take(&mut self.places[place].id);
        self.note_ended(id, is_early);
        self.free.push(place);
    }

    pub(super) fn note_ended(&mut self, id: u32, is_early: bool) {
        self.ended[self.ended_next] = (id, is_early);
        self.ended_next = (self.ended_next + 1) % ENDED_MAX;
    }

    /// Whether the server ended a stream early; None if it is not remembered.
    pub(super) fn ended(&self, id: u32) -> Option<bool> {
        let ended = self.ended.iter().find(|(ended, _)| *ended == id);
        ended.map(|(_, is_early)| *is_early)
    }

    /// Resets a stream that broke a rule.
    pub(super) fn break_off(&mut self, place: usize, code: u32) -> SessionResult {
        self.calm.spend_reset()?;
        self.shared.counters.streams_refused.add(1);
        self.send_reset(self.places[place].id, code);
        Ok(self.give_up(place, true))
    }

    /// Ends the stream at a place, whose handler may be at work.
    pub(super) fn give_up(&mut self, place: usize, is_early: bool) -> SessionEvent {
        if self.exchanges[place].is_none() {
            let id = std::mem::take(&mut self.places[place].id);
            self.note_ended(id, is_early);
            return SessionEvent::Cancelled(place);
        }
        self.shed(place, is_early);
        SessionEvent::More
    }

    /// Ends a stream that has no handler.
    pub(super) fn shed(&mut self, place: usize, is_early: bool) {
        if let Some(exchange) = self.exchanges[place].as_mut() {
            exchange.incoming.clear(&self.shared.options.body_memory);
        }
        self.frames.close(place);
        self.free_place(place, is_early);
    }

    /// Answers a request that passes a limit, before it is whole.
    pub(super) fn refuse(
        &mut self,
        place: usize,
        status: u16,
        why: &dyn fmt::Display,
        ends: bool,
    ) -> SessionResult {
        self.calm.spend_reset()?;
        if let Some(exchange) = self.exchanges[place].as_mut() {
            let is_head = exchange.incoming.method == Method::Head;
            exchange.response.refuse(status, why, is_head);
        }
        let id = self.places[place].id;
        let went_out = self.frames.close(place);
        match (went_out, ends) {
            (true, true) => {}
            // The rest is not wanted.
            (true, false) => self.send_reset(id, code::NO_ERROR),
            (false, _) => self.send_reset(id, code::ENHANCE_YOUR_CALM),
        }
        self.shed(place, true);
        Ok(SessionEvent::More)
    }

    pub(super) fn send_reset(&self, id: u32, code: u32) {
        self.frames
            .frame(kind::RST_STREAM, 0, id, &code.to_be_bytes());
    }

    /// Streams that are open.
    pub(in crate::server::http2) fn open_count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether it has said that it takes no more requests.
    pub(in crate::server::http2) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// When something has to have come, with no stream open or with a body or a frame that is not whole.
    pub(in crate::server::http2) fn due(&self) -> Instant {
        let partial = self
            .partial_since
            .map(|since| since + self.shared.options.header_timeout);
        let bodies = self
            .places
            .iter()
            .filter(|stream| stream.id != 0)
            .map(|stream| stream.due);
        bodies.chain(partial).min().unwrap_or(Instant::NEVER)
    }

    /// Answers requests whose bodies came too slowly.
    ///
    /// # Errors
    /// Where a frame or a head did.
    pub(in crate::server::http2) fn expire(&mut self, now: Instant) -> Result<(), Fatal> {
        let header_timeout = self.shared.options.header_timeout;
        if self
            .partial_since
            .is_some_and(|since| since + header_timeout <= now)
        {
            return Err(fatal(code::ENHANCE_YOUR_CALM, "a frame came too slowly"));
        }
        for place in 0..self.places.len() {
            if self.places[place].id != 0 && self.places[place].due <= now {
                self.refuse(place, 408, &"the request's body came too slowly", false)?;
            }
        }
        Ok(())
    }

    /// Says that the server stops: first that it will, then, with `is_last`, that it takes no more.
    pub(in crate::server::http2) fn announce_stop(&mut self, is_last: bool) {
        if is_last && !std::mem::replace(&mut self.is_leaving, true) {
            self.frames
                .frame(kind::GOAWAY, 0, 0, &goaway(self.last, code::NO_ERROR, ""));
        } else if !std::mem::replace(&mut self.has_announced_stop, true) {
            self.frames.frame(kind::GOAWAY, 0, 0, &goaway_soon());
        }
    }

    /// Says why the connection ends.
    pub(in crate::server::http2) fn say_why(&self, Fatal { code, why }: Fatal) {
        self.frames
            .frame(kind::GOAWAY, 0, 0, &goaway(self.last, code, why));
    }
}
