//! What frames of a client mean (RFC 9113): requests that are whole, and streams that end. Bytes and times in, frames
//! and events out; no I/O.
//!
//! Everything that a client can have the server do for nothing has a limit, after which the connection ends with
//! `ENHANCE_YOUR_CALM`: see [`Calm`].

mod control;
mod streams;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::Instant;
use prony_wire::http2::{
    FRAME_BYTES, FieldDecoder, FrameHead, ListSize, PREFACE, WINDOW_AT_FIRST, WINDOW_MAX, code,
    flag, kind, put_setting, setting, unpadded,
};

use super::exchange::Http2Exchange;
use super::fields::{FieldReader, HeadFault};
use super::sender::FrameSender;
use crate::server::state::ServerState;

/// Requests that a client may have open at once.
pub(super) const STREAMS_MAX: usize = 256;
/// Bytes of bodies that a client may send ahead, on one stream and on all of a connection.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Frames of a head beside its first.
const CONTINUATIONS_MAX: u32 = 64;
/// Bytes of a head's block for each byte that its fields may have: a text may be longer in Huffman's code.
const BLOCK_FACTOR: usize = 4;
/// Frames that bring nothing, beyond those that requests account for.
const IDLE_FRAMES_MAX: u32 = 1_000;
/// Streams that are reset, beyond one for each four requests.
const RESETS_MAX: u32 = 1_000;
/// How many streams that ended are remembered, as frames of theirs may be on their way.
const ENDED_MAX: usize = 64;

const CONTINUE: &[u8] = b"\x08\x03100";

/// The connection cannot go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Fatal {
    pub(super) code: u32,
    pub(super) why: &'static str,
}

/// What came of some bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SessionEvent {
    /// The request at this place is whole.
    Whole(usize),
    /// The stream at this place is reset: its handler is to be dropped, then
    /// [`dropped`](Http2Session::dropped) is called.
    Cancelled(usize),
    /// All bytes are used.
    More,
}

/// The budget that a client has left for frames and resets that bring no request forward.
#[derive(Debug)]
struct Calm {
    idle_frames: u32,
    resets: u32,
    /// Requests that count towards another reset.
    requests: u32,
}

/// One stream.
#[derive(Clone, Copy, Debug, Default)]
struct StreamPlace {
    /// 0: none.
    id: u32,
    is_answering: bool,
    window: i64,
    received: u64,
    length: Option<u64>,
    /// When the body has to have brought more.
    due: Instant,
}

/// A head whose frames have not all come.
#[derive(Clone, Copy, Debug)]
struct PartialHead {
    stream: u32,
    ends: bool,
    continuations: u32,
}

/// A client's side of one connection.
pub(super) struct Http2Session {
    shared: Rc<ServerState>,
    pub(super) frames: Rc<FrameSender>,
    peer: Option<SocketAddr>,
    preface: &'static [u8],
    has_settings: bool,
    /// The frame that is read, once its header has come.
    frame: Option<FrameHead>,
    /// The beginning of a header or a payload.
    part: Vec<u8>,
    block: Vec<u8>,
    partial_head: Option<PartialHead>,
    decoder: FieldDecoder,
    places: Vec<StreamPlace>,
    /// What is at the places; None: with the handler.
    exchanges: Vec<Option<Box<Http2Exchange>>>,
    free: Vec<usize>,
    last: u32,
    /// Streams that ended, and whether the server ended them early: a ring.
    ended: [(u32, bool); ENDED_MAX],
    ended_next: usize,
    window: i64,
    /// Data came since windows were widened last.
    has_new_data: bool,
    calm: Calm,
    /// Since when a frame or a head is not whole.
    partial_since: Option<Instant>,
    has_announced_stop: bool,
    is_leaving: bool,
}

type SessionResult = Result<SessionEvent, Fatal>;

const fn fatal(code: u32, why: &'static str) -> Fatal {
    Fatal { code, why }
}

const TRUNCATED: Fatal = fatal(code::FRAME_SIZE_ERROR, "a frame has the wrong length");

impl Calm {
    fn spend_frame(&mut self, frames: &FrameSender) -> Result<(), Fatal> {
        if self.idle_frames == 0 {
            // Windows are granted for data, two for each frame.
            let earned = frames.take_data_frames().saturating_mul(2);
            self.idle_frames = earned.min(IDLE_FRAMES_MAX);
        }
        let left = self.idle_frames.checked_sub(1);
        self.idle_frames = left.ok_or(fatal(
            code::ENHANCE_YOUR_CALM,
            "more than 1,000 frames brought nothing",
        ))?;
        Ok(())
    }

    fn spend_reset(&mut self) -> Result<(), Fatal> {
        let left = self.resets.checked_sub(1);
        self.resets = left.ok_or(fatal(
            code::ENHANCE_YOUR_CALM,
            "more than 1,000 streams were reset, and more than one for each four requests",
        ))?;
        Ok(())
    }

    fn earn(&mut self) {
        self.idle_frames = (self.idle_frames + 2).min(IDLE_FRAMES_MAX);
        self.requests += 1;
        if self.requests >= 4 {
            self.requests = 0;
            self.resets = (self.resets + 1).min(RESETS_MAX);
        }
    }
}

impl Http2Session {
    /// A connection before its first byte. The server's settings are its first frames.
    pub(super) fn new(shared: &Rc<ServerState>, peer: Option<SocketAddr>) -> Http2Session {
        let options = &shared.options;
        let frames = FrameSender::new(options.response_buffer_bytes_max);
        let mut settings = Vec::new();
        let list_bytes_max = u32::try_from(options.limits.head_bytes_max).unwrap_or(u32::MAX);
        for (number, value) in [
            (setting::MAX_CONCURRENT_STREAMS, STREAMS_MAX as u32),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, list_bytes_max),
        ] {
            put_setting(&mut settings, number, value);
        }
        frames.frame(kind::SETTINGS, 0, 0, &settings);
        let more = CONNECTION_WINDOW - WINDOW_AT_FIRST as u32;
        frames.frame(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        Http2Session {
            shared: Rc::clone(shared),
            frames: Rc::new(frames),
            peer,
            preface: PREFACE,
            has_settings: false,
            frame: None,
            part: Vec::new(),
            block: Vec::new(),
            partial_head: None,
            decoder: FieldDecoder::default(),
            places: Vec::new(),
            exchanges: Vec::new(),
            free: Vec::new(),
            last: 0,
            ended: [(0, false); ENDED_MAX],
            ended_next: 0,
            window: i64::from(CONNECTION_WINDOW),
            has_new_data: false,
            calm: Calm {
                idle_frames: IDLE_FRAMES_MAX,
                resets: RESETS_MAX,
                requests: 0,
            },
            partial_since: None,
            has_announced_stop: false,
            is_leaving: false,
        }
    }

    /// Takes bytes until something happens or they are used up.
    ///
    /// # Errors
    /// What ends the connection.
    pub(super) fn take(&mut self, bytes: &mut &[u8]) -> SessionResult {
        if !self.preface.is_empty() {
            let count = self.preface.len().min(bytes.len());
            let (expected, left) = self.preface.split_at(count);
            if &bytes[..count] != expected {
                return Err(fatal(
                    code::PROTOCOL_ERROR,
                    "this is not the preface of HTTP/2",
                ));
            }
            self.preface = left;
            *bytes = &bytes[count..];
        }
        loop {
            let goes_on = match self.frame {
                None => self.take_head(bytes)?,
                Some(frame) => match self.take_frame(frame, bytes)? {
                    Some(SessionEvent::More) => true,
                    Some(event) => return Ok(event),
                    None => false,
                },
            };
            if !goes_on {
                self.note_partial();
                return Ok(SessionEvent::More);
            }
        }
    }

    /// Notes since when something is not whole.
    fn note_partial(&mut self) {
        let is_data = self.frame.is_some_and(|frame| frame.kind == kind::DATA);
        let is_partial = !self.preface.is_empty()
            || (!self.part.is_empty() || self.frame.is_some() || self.partial_head.is_some())
                && !is_data;
        match is_partial {
            true => self.partial_since = self.partial_since.or(Some(self.shared.now())),
            false => self.partial_since = None,
        }
    }

    /// Takes the header of the next frame; false where more bytes are needed.
    fn take_head(&mut self, bytes: &mut &[u8]) -> Result<bool, Fatal> {
        let Some(frame) = FrameHead::take(&mut self.part, bytes) else {
            return Ok(false);
        };
        if !self.has_settings && (frame.kind != kind::SETTINGS || frame.has(flag::ACK)) {
            return Err(fatal(
                code::PROTOCOL_ERROR,
                "the first frame is not SETTINGS",
            ));
        }
        if frame.length > FRAME_BYTES {
            return Err(fatal(
                code::FRAME_SIZE_ERROR,
                "a frame is longer than 16 KiB",
            ));
        }
        if self.partial_head.is_some() != (frame.kind == kind::CONTINUATION) {
            return Err(fatal(
                code::PROTOCOL_ERROR,
                "a head is not continued as it must be",
            ));
        }
        if frame.kind == kind::DATA {
            self.begin_data(frame)?;
        }
        self.frame = Some(frame);
        if self.partial_head.is_none() {
            self.partial_since = None;
        }
        Ok(true)
    }

    /// Goes on with the frame that is read; None where more bytes are needed.
    fn take_frame(
        &mut self,
        frame: FrameHead,
        bytes: &mut &[u8],
    ) -> Result<Option<SessionEvent>, Fatal> {
        if frame.kind == kind::DATA && !frame.has(flag::PADDED) {
            return self.take_data(frame, bytes);
        }
        let missing = frame.length - self.part.len();
        if missing > bytes.len() {
            self.part.extend_from_slice(bytes);
            *bytes = &[];
            return Ok(None);
        }
        let (payload, rest) = bytes.split_at(missing);
        *bytes = rest;
        self.frame = None;
        if self.part.is_empty() {
            return self.whole(frame, payload).map(Some);
        }
        let mut part = std::mem::take(&mut self.part);
        part.extend_from_slice(payload);
        let event = self.whole(frame, &part)?;
        part.clear();
        self.part = part;
        Ok(Some(event))
    }

    /// A part of a body, as it comes.
    fn take_data(
        &mut self,
        mut frame: FrameHead,
        bytes: &mut &[u8],
    ) -> Result<Option<SessionEvent>, Fatal> {
        let count = frame.length.min(bytes.len());
        let (data, rest) = bytes.split_at(count);
        *bytes = rest;
        frame.length -= count;
        let is_whole = frame.length == 0;
        self.frame = (!is_whole).then_some(frame);
        let event = self.data(frame, data, is_whole)?;
        Ok((is_whole || event != SessionEvent::More).then_some(event))
    }

    /// What a frame means that has come whole.
    fn whole(&mut self, frame: FrameHead, payload: &[u8]) -> SessionResult {
        match frame.kind {
            kind::DATA => {
                let data = unpadded(frame, payload).ok_or(PADDING)?;
                return self.data(frame, data, true);
            }
            kind::HEADERS => return self.headers(frame, payload),
            kind::CONTINUATION => return self.continuation(frame, payload),
            kind::RST_STREAM => return self.reset(frame, payload),
            kind::WINDOW_UPDATE => return self.window_update(frame, payload),
            kind::SETTINGS => self.settings(frame, payload)?,
            kind::PING => self.ping(frame, payload)?,
            kind::GOAWAY => self.goaway(frame, payload)?,
            kind::PRIORITY => self.priority(frame, payload)?,
            kind::PUSH_PROMISE => {
                return Err(fatal(code::PROTOCOL_ERROR, "clients push nothing"));
            }
            // Of an unknown type: to be ignored.
            _ => self.calm.spend_frame(&self.frames)?,
        }
        Ok(SessionEvent::More)
    }

    fn headers(&mut self, frame: FrameHead, payload: &[u8]) -> SessionResult {
        if frame.stream.is_multiple_of(2) {
            return Err(fatal(
                code::PROTOCOL_ERROR,
                "clients open streams of odd numbers",
            ));
        }
        let mut block = unpadded(frame, payload).ok_or(PADDING)?;
        if frame.has(flag::PRIORITY) {
            let (priority, rest) = block.split_at_checked(5).ok_or(TRUNCATED)?;
            check_dependency(frame.stream, priority)?;
            block = rest;
        }
        let ends = frame.has(flag::END_STREAM);
        if frame.has(flag::END_HEADERS) {
            return self.head(frame.stream, block, ends);
        }
        self.block.clear();
        self.block.extend_from_slice(block);
        self.partial_head = Some(PartialHead {
            stream: frame.stream,
            ends,
            continuations: 0,
        });
        Ok(SessionEvent::More)
    }

    fn continuation(&mut self, frame: FrameHead, payload: &[u8]) -> SessionResult {
        let Some(head) = self
            .partial_head
            .as_mut()
            .filter(|head| head.stream == frame.stream)
        else {
            return Err(fatal(
                code::PROTOCOL_ERROR,
                "a head is not continued as it must be",
            ));
        };
        head.continuations += 1;
        let PartialHead {
            ends,
            continuations,
            ..
        } = *head;
        let block_bytes_max = self.shared.options.limits.head_bytes_max * BLOCK_FACTOR;
        if continuations > CONTINUATIONS_MAX || self.block.len() + payload.len() > block_bytes_max {
            return Err(fatal(
                code::ENHANCE_YOUR_CALM,
                "a head has too many frames or bytes",
            ));
        }
        self.block.extend_from_slice(payload);
        if !frame.has(flag::END_HEADERS) {
            return Ok(SessionEvent::More);
        }
        self.partial_head = None;
        let block = std::mem::take(&mut self.block);
        let event = self.head(frame.stream, &block, ends);
        self.block = block;
        event
    }

    /// A whole head: that of a new stream, or the trailers of one.
    fn head(&mut self, id: u32, block: &[u8], ends: bool) -> SessionResult {
        if let Some(place) = self.place_of(id) {
            return self.trailers(place, block, ends);
        }
        if id <= self.last {
            return match self.ended(id) {
                Some(true) => self.ignore(block),
                Some(false) => Err(fatal(
                    code::STREAM_CLOSED,
                    "a head came on a stream that has ended",
                )),
                None => Err(fatal(
                    code::PROTOCOL_ERROR,
                    "a stream was opened out of order",
                )),
            };
        }
        self.last = id;
        if self.is_leaving {
            return self.ignore(block);
        }
        let Some(place) = self.take_place() else {
            self.ignore(block)?;
            self.calm.spend_reset()?;
            self.send_reset(id, code::REFUSED_STREAM);
            self.note_ended(id, true);
            return Ok(SessionEvent::More);
        };
        self.open(place, id, block, ends)
    }

    /// Reads a block that changes nothing but the table.
    fn ignore(&mut self, block: &[u8]) -> SessionResult {
        self.calm.spend_frame(&self.frames)?;
        let read = self.decoder.decode(block, 0, |_, _| {});
        read.map_err(|_| BAD_BLOCK)?;
        Ok(SessionEvent::More)
    }

    fn open(&mut self, place: usize, id: u32, block: &[u8], ends: bool) -> SessionResult {
        let options = &self.shared.options;
        let limits = &options.limits;
        let Some(exchange) = self.exchanges[place].as_mut() else {
            return Ok(SessionEvent::More);
        };
        let mut reader = FieldReader::new(&mut exchange.incoming, limits);
        let size = self
            .decoder
            .decode(block, limits.head_bytes_max, |name, value| {
                reader.field(name, value);
            });
        let size = size.map_err(|_| BAD_BLOCK)?;
        let mut read = reader.finish(ends);
        if size == ListSize::TooLarge {
            read = Err(HeadFault::Refused(431, "the header fields are too long"));
        }
        let length = match exchange.incoming.framing {
            prony_wire::Framing::Length(length) => Some(length),
            _ => None,
        };
        if read.is_ok() && length.is_some_and(|length| length > limits.body_bytes_max) {
            read = Err(HeadFault::Refused(413, TOO_LARGE));
        }
        let now = self.shared.now();
        exchange.incoming.began = now;
        self.frames.open(place, id);
        self.places[place] = StreamPlace {
            id,
            is_answering: false,
            window: i64::from(STREAM_WINDOW),
            received: 0,
            length,
            due: if ends {
                Instant::NEVER
            } else {
                now + options.body_timeout
            },
        };
        match read {
            Ok(()) if ends => Ok(self.request_is_whole(place)),
            Ok(()) => {
                if exchange.incoming.expects_continue {
                    self.frames
                        .frame(kind::HEADERS, flag::END_HEADERS, id, CONTINUE);
                }
                Ok(SessionEvent::More)
            }
            Err(HeadFault::Malformed) => self.break_off(place, code::PROTOCOL_ERROR),
            Err(HeadFault::Wrong(error)) => self.refuse(place, error.status(), &error, ends),
            Err(HeadFault::Refused(status, why)) => self.refuse(place, status, &why, ends),
        }
    }

    fn trailers(&mut self, place: usize, block: &[u8], ends: bool) -> SessionResult {
        let mut is_right = ends;
        let limits = self.shared.options.limits;
        let read = self
            .decoder
            .decode(block, limits.trailer_bytes_max, |name, _| {
                is_right &= !name.starts_with(b":") && !name.iter().any(u8::is_ascii_uppercase);
            });
        read.map_err(|_| BAD_BLOCK)?;
        if self.places[place].is_answering {
            return self.break_off(place, code::STREAM_CLOSED);
        }
        match is_right {
            true => self.end_of_body(place),
            false => self.break_off(place, code::PROTOCOL_ERROR),
        }
    }

    fn request_is_whole(&mut self, place: usize) -> SessionEvent {
        self.calm.earn();
        self.places[place].is_answering = true;
        self.places[place].due = Instant::NEVER;
        SessionEvent::Whole(place)
    }

    /// The header of a frame of data: all of it enters the windows.
    fn begin_data(&mut self, frame: FrameHead) -> Result<(), Fatal> {
        if frame.stream.is_multiple_of(2) || frame.stream > self.last {
            return Err(fatal(
                code::PROTOCOL_ERROR,
                "data came on a stream that is not open",
            ));
        }
        if frame.length == 0 && !frame.has(flag::END_STREAM) {
            self.calm.spend_frame(&self.frames)?;
        }
        let length = frame.length as i64;
        self.window -= length;
        let mut is_within = self.window >= 0;
        if let Some(place) = self.place_of(frame.stream) {
            self.places[place].window -= length;
            is_within &= self.places[place].window >= 0;
        }
        if !is_within {
            return Err(fatal(
                code::FLOW_CONTROL_ERROR,
                "more data came than the window allows",
            ));
        }
        self.has_new_data = true;
        Ok(())
    }

    fn data(&mut self, frame: FrameHead, data: &[u8], is_whole: bool) -> SessionResult {
        let Some(place) = self.place_of(frame.stream) else {
            return match self.ended(frame.stream) {
                Some(true) => Ok(SessionEvent::More),
                _ => {
                    self.calm.spend_frame(&self.frames)?;
                    if is_whole {
                        self.send_reset(frame.stream, code::STREAM_CLOSED);
                    }
                    Ok(SessionEvent::More)
                }
            };
        };
        let options = &self.shared.options;
        let stream = &mut self.places[place];
        if stream.is_answering {
            return self.break_off(place, code::STREAM_CLOSED);
        }
        stream.received += data.len() as u64;
        let ends = is_whole && frame.has(flag::END_STREAM);
        if stream.length.is_some_and(|length| stream.received > length) {
            return self.break_off(place, code::PROTOCOL_ERROR);
        }
        if stream.received > options.limits.body_bytes_max {
            return self.refuse(place, 413, &TOO_LARGE, ends);
        }
        if let Some(exchange) = self.exchanges[place].as_mut() {
            if !data.is_empty() && !exchange.incoming.put(data, &options.body_memory) {
                let why = "there is no memory for the request's body just now";
                return self.refuse(place, 503, &why, ends);
            }
            let whole = options.body_time(stream.received);
            let due = exchange.incoming.began + whole;
            stream.due = due.min(self.shared.now() + options.body_timeout);
        }
        match ends {
            true => self.end_of_body(place),
            false => Ok(SessionEvent::More),
        }
    }

    /// Widens windows again once half of them is used, padding too: for all data that came together, just before that is
    /// sent. A client that sends more than it was granted is found as long as nothing is granted in between.
    pub(super) fn grant(&mut self) {
        if !std::mem::take(&mut self.has_new_data) {
            return;
        }
        let bodies = self.places.iter_mut();
        let bodies = bodies.filter(|stream| stream.id != 0 && !stream.is_answering);
        let bodies = bodies.map(|stream| (stream.id, &mut stream.window, STREAM_WINDOW));
        let connection = (0, &mut self.window, CONNECTION_WINDOW);
        for (id, window, whole) in bodies.chain([connection]) {
            let used = i64::from(whole) - *window;
            if used >= i64::from(whole / 2) {
                *window += used;
                let granted = (used as u32).to_be_bytes();
                self.frames.frame(kind::WINDOW_UPDATE, 0, id, &granted);
            }
        }
    }

    fn end_of_body(&mut self, place: usize) -> SessionResult {
        let stream = &self.places[place];
        if stream
            .length
            .is_some_and(|length| length != stream.received)
        {
            return self.break_off(place, code::PROTOCOL_ERROR);
        }
        Ok(self.request_is_whole(place))
    }
}

const PADDING: Fatal = fatal(
    code::PROTOCOL_ERROR,
    "a frame's padding is longer than the frame",
);
const BAD_BLOCK: Fatal = fatal(
    code::COMPRESSION_ERROR,
    "a header block breaks HPACK's rules",
);
const TOO_LARGE: &str = "the request's body is too large";

/// No stream depends on itself.
fn check_dependency(id: u32, priority: &[u8]) -> Result<(), Fatal> {
    match four(&priority[..4])? & WINDOW_MAX as u32 == id {
        true => Err(fatal(code::PROTOCOL_ERROR, "a stream depends on itself")),
        false => Ok(()),
    }
}

fn four(bytes: &[u8]) -> Result<u32, Fatal> {
    bytes
        .try_into()
        .map(u32::from_be_bytes)
        .map_err(|_| TRUNCATED)
}
