//! A connection of HTTP/2: the same handlers, one for each stream at a time, polled by the connection's own task.
//!
//! `session` is what frames mean, `sender` what goes out, `fields` a request's head, `exchange` one request and its
//! answer; here is the I/O, time, and the handlers' futures. Memory of futures and exchanges is used again, so that a
//! request answered in steady state allocates nothing.

mod exchange;
mod fields;
pub(super) mod sender;
mod session;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use prony_base::Instant;
use prony_engine::SendBuf;

use self::exchange::{Http2Exchange, answer};
use self::session::{Fatal, Http2Session, SessionEvent};
use super::ending::Ending;
use super::handler::Handler;
use super::output::Output;

/// Serves a connection to its end; `begun` are bytes that were received of it. What it leaves in `output` is still to
/// be sent.
pub(super) async fn serve<H: Handler>(handler: &H, output: &mut Output, begun: Vec<u8>) -> Ending {
    let shared = output.shared.clone();
    shared.counters.http2_connections.add(1);
    let peer = output.peer();
    let now = shared.now();
    let mut connection = Http2Connection {
        session: Http2Session::new(&shared, peer),
        make: |exchange| answer(handler, exchange),
        slots: Vec::new(),
        running: 0,
        rest: Vec::new(),
        is_holding_back: false,
        idle_since: now,
        kept_in_stop: now + shared.options.stop_idle_grace,
        posted: (0, now),
        output,
    };
    let taken = poll_fn(|cx| Poll::Ready(connection.take(&begun, cx))).await;
    let ended = match taken {
        Ok(()) => poll_fn(|cx| connection.poll(cx)).await,
        Err(fatal) => Http2End::Fatal(fatal),
    };
    connection.slots.clear();
    let ending = match ended {
        Http2End::Orderly => {
            connection.session.announce_stop(true);
            Ending::Orderly
        }
        Http2End::ByClient => Ending::Orderly,
        Http2End::Broken => Ending::of_broken(&connection.output.stream),
        Http2End::Fatal(fatal) => {
            connection.session.say_why(fatal);
            Ending::Linger
        }
    };
    let rest = connection.session.frames.take_out(Vec::new());
    output.out().extend_from_slice(&rest);
    ending
}

/// Why nothing more is served.
enum Http2End {
    /// No stream is open, and none is waited for.
    Orderly,
    ByClient,
    Broken,
    Fatal(Fatal),
}

/// The connection's task: `make` makes the future that answers a request.
struct Http2Connection<'o, M, F> {
    output: &'o mut Output,
    session: Http2Session,
    make: M,
    /// By place, in memory that stays.
    slots: Vec<Pin<Box<Option<F>>>>,
    /// How many of them are at work.
    running: usize,
    /// Received bytes that are not taken in yet, because the client takes too little.
    rest: Vec<u8>,
    /// Requests that are whole may have to wait for answers that wait for windows.
    is_holding_back: bool,
    /// Since when no stream was open.
    idle_since: Instant,
    /// A stop keeps the connection until here at least, for its first request.
    kept_in_stop: Instant,
    /// Bytes that were posted and not sent, and since when there are as many.
    posted: (usize, Instant),
}

impl<M, F> Http2Connection<'_, M, F>
where
    M: Fn(Box<Http2Exchange>) -> F,
    F: Future<Output = (Box<Http2Exchange>, bool)>,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Http2End> {
        loop {
            let received = match self.receive(cx) {
                Ok(received) => received,
                Err(ended) => return Poll::Ready(ended),
            };
            self.session.grant();
            let has_answered = self.running > 0 && self.poll_running(cx);
            self.stop_in_time();
            match self.send(cx) {
                Ok(false) if !received && !has_answered && !self.can_take_rest() => {}
                Ok(_) => continue,
                Err(_) => return Poll::Ready(Http2End::Broken),
            }
            if self.session.open_count() == 0 && self.session.is_leaving() {
                return Poll::Ready(Http2End::Orderly);
            }
            let due = self.due();
            let shared = &self.output.shared;
            if self.output.alarm.poll(&shared.handle, due, cx).is_pending() {
                return Poll::Pending;
            }
            if let Some(ended) = self.expire() {
                return Poll::Ready(ended);
            }
        }
    }

    /// Takes in what there is, as long as not too much is unsent; whether there was something.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, Http2End> {
        let mut received = false;
        loop {
            if self.can_take_rest() {
                let rest = std::mem::take(&mut self.rest);
                self.take(&rest, cx).map_err(Http2End::Fatal)?;
                received = true;
            }
            if self.is_full() {
                return Ok(received);
            }
            let chunk = match self.output.stream.poll_recv(cx) {
                Poll::Ready(Ok(chunk)) if chunk.is_empty() => return Err(Http2End::ByClient),
                Poll::Ready(Ok(chunk)) => chunk,
                Poll::Ready(Err(_)) => return Err(Http2End::Broken),
                Poll::Pending => return Ok(received),
            };
            self.output.shared.counters.bytes_in.add(chunk.len() as u64);
            self.take(&chunk, cx).map_err(Http2End::Fatal)?;
            self.output.stream.give_back(chunk);
            received = true;
        }
    }

    /// Whether too much waits for the client to take it.
    fn is_full(&self) -> bool {
        let posted = self.output.stream.posted_bytes();
        self.session.frames.is_full(posted)
    }

    fn can_take_rest(&self) -> bool {
        !self.rest.is_empty() && !self.is_full()
    }

    /// Takes bytes; each request is answered as soon as it is whole, unless too much waits to be sent.
    fn take(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Result<(), Fatal> {
        let mut rest = bytes;
        loop {
            match self.session.take(&mut rest)? {
                SessionEvent::More => return Ok(()),
                SessionEvent::Whole(place) if self.session.frames.may_answer() => {
                    self.start(place, cx);
                }
                SessionEvent::Whole(_) => self.is_holding_back = true,
                SessionEvent::Cancelled(place) => {
                    if let Some(slot) = self.slots.get_mut(place) {
                        slot.set(None);
                    }
                    self.running -= 1;
                    self.session.dropped(place);
                    self.note_idle();
                }
            }
            if self.is_full() {
                self.rest.extend_from_slice(rest);
                return Ok(());
            }
        }
    }

    /// Answers requests that waited, as far as that may be now.
    fn start_held_back(&mut self, cx: &mut Context<'_>) {
        while self.is_holding_back && self.session.frames.may_answer() {
            match self.session.held_back() {
                Some(place) => self.start(place, cx),
                None => self.is_holding_back = false,
            }
        }
    }

    fn start(&mut self, place: usize, cx: &mut Context<'_>) {
        let Some(exchange) = self.session.take_exchange(place) else {
            return;
        };
        while self.slots.len() <= place {
            self.slots.push(Box::pin(None));
        }
        self.slots[place].set(Some((self.make)(exchange)));
        self.running += 1;
        self.poll_slot(place, cx);
    }

    /// Lets the handler at a place go on; whether it has ended.
    fn poll_slot(&mut self, place: usize, cx: &mut Context<'_>) -> bool {
        let slot = &mut self.slots[place];
        let Some(future) = slot.as_mut().as_pin_mut() else {
            return false;
        };
        let Poll::Ready((exchange, is_whole)) = future.poll(cx) else {
            return false;
        };
        slot.set(None);
        self.running -= 1;
        self.session.answered(place, exchange, is_whole);
        self.note_idle();
        true
    }

    /// Lets all handlers go on: which of them can is not known. Whether one has ended.
    fn poll_running(&mut self, cx: &mut Context<'_>) -> bool {
        let places = 0..self.slots.len();
        places.fold(false, |any, place| self.poll_slot(place, cx) | any)
    }

    fn note_idle(&mut self) {
        if self.session.open_count() == 0 {
            self.idle_since = self.output.shared.now();
        }
    }

    /// Posts what is to go out, and lets the handlers go on whose turn it is; whether more may follow at once.
    fn send(&mut self, cx: &mut Context<'_>) -> std::io::Result<bool> {
        loop {
            let posted = self.output.stream.posted_bytes();
            while let Some(place) = self.session.frames.pump(posted) {
                self.poll_slot(place, cx);
            }
            self.start_held_back(cx);
            let bytes = self.session.frames.out_bytes();
            if bytes == 0 {
                break;
            }
            let spare = self.output.shared.handle.take_buffer();
            let out = self.session.frames.take_out(spare);
            self.output.shared.counters.bytes_out.add(bytes as u64);
            self.output.stream.post(SendBuf::Owned(out))?;
        }
        let posted = self.output.stream.posted_bytes();
        if posted != self.posted.0 {
            self.posted = (posted, self.output.shared.now());
        }
        Ok(posted > 0 && self.output.stream.poll_flush(cx)?.is_ready())
    }

    /// Says that the server stops, once it does, and takes no more when a client that knows would send nothing.
    fn stop_in_time(&mut self) {
        let Some(stop) = self.output.shared.stop() else {
            return;
        };
        let kept = stop.idle_due.max(self.kept_in_stop);
        let is_last = self.output.shared.handle.now() >= kept;
        self.session.announce_stop(is_last);
    }

    /// When something has to have happened.
    fn due(&self) -> Instant {
        let shared = &self.output.shared;
        let mut due = self.session.due();
        if self.session.open_count() == 0 {
            due = due.min(self.idle_since + shared.options.idle_timeout);
        }
        if self.posted.0 > 0 {
            due = due.min(self.posted.1 + shared.options.write_timeout);
        }
        if let Some(stop) = shared.stop() {
            let kept = stop.idle_due.max(self.kept_in_stop);
            if !self.session.is_leaving() {
                due = due.min(kept);
            }
        }
        shared.before_stop(due)
    }

    /// Something came too late, if it did.
    fn expire(&mut self) -> Option<Http2End> {
        let shared = &self.output.shared;
        let (now, options) = (shared.handle.now(), &shared.options);
        if shared.before_stop(Instant::NEVER) <= now {
            return Some(Http2End::Broken);
        }
        if self.posted.0 > 0 && self.posted.1 + options.write_timeout <= now {
            return Some(Http2End::Broken);
        }
        if self.session.open_count() == 0 && self.idle_since + options.idle_timeout <= now {
            return Some(Http2End::Orderly);
        }
        self.session.expire(now).err().map(Http2End::Fatal)
    }
}
