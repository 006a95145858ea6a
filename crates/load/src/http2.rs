//! HTTP/2 (RFC 9113) as a [`Protocol`]: each place of a connection has a stream of its own. Frames in, frames out, no I/O.
//!
//! Only a generator's side of it: what it sends was encoded before, of answers it reads what is counted (status,
//! length, body), and its windows are as large as there are, so that the server's speed is measured and not ours.
//! Not for: the fields (`hpack`), TLS (`secure`).

use std::collections::VecDeque;
use std::rc::Rc;

use prony_engine::SendBuf;
use prony_wire::http2::{
    FRAME_BYTES, FrameHead, PREFACE, STREAM_LAST, WINDOW_AT_FIRST, WINDOW_MAX, code, flag, kind,
    put_frame_head, put_setting, setting, unpadded,
};

use crate::answer_fields::{AnswerFields, NoFields};
use crate::failure::{Failure, ProtocolFault};
use crate::filled::FilledRequest;
use crate::follow::AnswerFollower;
use crate::hpack::{self, AnswerHead, HeadReader};
use crate::http1::SWITCHED;
use crate::protocol::{Answered, BufferSource, Progress, Protocol, Reuse};
use crate::source::EncodedRequest;

/// Most bytes of an answer's head.
const BLOCK_BYTES_MAX: usize = 64 << 10;
/// Received bytes after which the server is granted as many again.
const GRANT_FROM: u32 = 1 << 30;
/// Frames without an answer among them, after which a server is not waited for any more.
const IDLE_FRAMES_MAX: u32 = 10_000;

/// The request of one place, and its answer so far.
#[derive(Default)]
struct StreamState {
    head: AnswerHead,
    expected: Option<Rc<[u8]>>,
    body_bytes: usize,
    is_right: bool,
    is_head_request: bool,
    /// Received bytes that the server was not granted again.
    ungranted: u32,
    send_window: i64,
    /// The rest of its body, from there on.
    unsent: Option<(Rc<[u8]>, usize)>,
    /// What its answer is checked by.
    checker: Option<Box<dyn AnswerFollower>>,
}

/// One connection.
pub struct Http2Client<F = NoFields> {
    scheme: u8,
    /// The stream of each place; 0: none.
    streams: Vec<u32>,
    places: Vec<StreamState>,
    next_stream: u32,
    /// The frame that is read, once its header has come.
    frame: Option<FrameHead>,
    /// The beginning of a header or a frame.
    part: Vec<u8>,
    /// A head that continues in further frames: its stream, and whether that ends with it.
    block: Vec<u8>,
    continued: Option<(u32, bool)>,
    /// Places whose answers have begun in these bytes.
    begun: Vec<usize>,
    happened: VecDeque<Progress>,
    out: Vec<u8>,
    /// A request that is being filled in.
    scratch: Vec<u8>,
    send_window: i64,
    window_at_first: i64,
    frame_bytes_max: usize,
    ungranted: u32,
    has_settings: bool,
    streams_max: u32,
    is_leaving: bool,
    idle_frames: u32,
    /// Bytes of bodies that were sent, twice (each is of a stream's window and of the connection's), less those that the server granted
    /// since: it may say so in as many frames as it likes.
    ungranted_to_send: u64,
    heads: HeadReader,
    /// What is read of answers' fields, and added to requests.
    fields: F,
}

/// The server broke a rule: the connection is of no more use.
fn broken<T>(rule: &'static str) -> Result<T, Failure> {
    Err(Failure::Protocol(ProtocolFault::Rule(rule)))
}

const NOT_CONTINUED: &str = "a head is not continued as it must be";
const NOT_OF_A_STREAM: &str = "a frame of the connection names a stream";
const WINDOW_TOO_LARGE: &str = "a window grows beyond 2,147,483,647";
const BAD_LENGTH: Failure = Failure::Protocol(ProtocolFault::Rule(
    "a frame has another length than its type allows",
));
const BAD_PADDING: Failure = Failure::Protocol(ProtocolFault::Rule(
    "a frame's padding is longer than the frame",
));

impl<F: AnswerFields> Http2Client<F> {
    /// A connection with as many places, before anything was sent.
    pub fn new(places: usize, is_secure: bool, fields: F) -> Http2Client<F> {
        let mut states = Vec::new();
        states.resize_with(places, StreamState::default);
        Http2Client {
            scheme: match is_secure {
                true => hpack::SCHEME_HTTPS,
                false => hpack::SCHEME_HTTP,
            },
            streams: vec![0; places],
            places: states,
            next_stream: 1,
            frame: None,
            part: Vec::new(),
            block: Vec::new(),
            continued: None,
            begun: Vec::new(),
            happened: VecDeque::new(),
            out: Vec::new(),
            scratch: Vec::new(),
            send_window: WINDOW_AT_FIRST,
            window_at_first: WINDOW_AT_FIRST,
            frame_bytes_max: FRAME_BYTES,
            ungranted: 0,
            has_settings: false,
            streams_max: u32::MAX,
            is_leaving: false,
            idle_frames: 0,
            ungranted_to_send: 0,
            heads: HeadReader::default(),
            fields,
        }
    }

    /// The same, with answers that are followed: each place by one of its own.
    pub fn followed(
        mut self,
        follower: impl Fn() -> Option<Box<dyn AnswerFollower>>,
    ) -> Http2Client<F> {
        for state in &mut self.places {
            state.checker = follower();
        }
        self
    }

    /// Appends a request's fields in as many frames as they need.
    fn head_frames(&self, stream: u32, block: &[u8], ends: bool, out: &mut Vec<u8>) {
        let ends = if ends { flag::END_STREAM } else { 0 };
        let whole = block.len() + 1;
        let first = whole.min(FRAME_BYTES);
        let flags = match first == whole {
            true => ends | flag::END_HEADERS,
            false => ends,
        };
        put_frame_head(out, first, kind::HEADERS, flags, stream);
        out.push(self.scheme);
        let (now, mut rest) = block.split_at(first - 1);
        out.extend_from_slice(now);
        while !rest.is_empty() {
            let (now, after) = rest.split_at(rest.len().min(FRAME_BYTES));
            let flags = if after.is_empty() {
                flag::END_HEADERS
            } else {
                0
            };
            put_frame_head(out, now.len(), kind::CONTINUATION, flags, stream);
            out.extend_from_slice(now);
            rest = after;
        }
    }

    /// Appends a request whose fields are filled in. Its body is copied where the windows do not take it at once.
    fn send_filled(&mut self, place: usize, filled: &FilledRequest, out: &mut Vec<u8>) {
        let stream = self.streams[place];
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        filled.write_block(&mut scratch);
        self.fields.add(&mut scratch);
        let block = scratch.len();
        filled.write_body(&mut scratch);
        let (block, body) = scratch.split_at(block);
        self.head_frames(stream, block, body.is_empty(), out);
        let window = self.send_window.min(self.places[place].send_window).max(0) as usize;
        if body.len() > window.min(self.frame_bytes_max) {
            self.places[place].unsent = Some((Rc::from(body), 0));
            self.send_body(place, out);
        } else if !body.is_empty() {
            put_frame_head(out, body.len(), kind::DATA, flag::END_STREAM, stream);
            out.extend_from_slice(body);
            self.send_window -= body.len() as i64;
            self.places[place].send_window -= body.len() as i64;
        }
        self.scratch = scratch;
    }

    fn place_of(&self, stream: u32) -> Option<usize> {
        self.streams.iter().position(|&of| of == stream)
    }

    /// Takes the header of the next frame; false where more bytes are needed.
    fn take_head(&mut self, bytes: &mut &[u8]) -> Result<bool, Failure> {
        let Some(head) = FrameHead::take(&mut self.part, bytes) else {
            return Ok(false);
        };
        // A server may leave before it has said anything else.
        if !self.has_settings && !matches!(head.kind, kind::SETTINGS | kind::GOAWAY) {
            return Err(Failure::Protocol(ProtocolFault::NotHttp2));
        }
        if head.length > FRAME_BYTES {
            return broken("a frame has more than 16,384 bytes, which no setting allows");
        }
        self.frame = Some(head);
        Ok(true)
    }

    /// Goes on with the frame that is read; false where more bytes are needed.
    fn take_frame(&mut self, frame: FrameHead, bytes: &mut &[u8]) -> Result<bool, Failure> {
        if frame.kind == kind::DATA && !frame.has(flag::PADDED) && self.continued.is_none() {
            return self.take_data(frame, bytes);
        }
        let missing = frame.length - self.part.len();
        if missing > bytes.len() {
            self.part.extend_from_slice(bytes);
            *bytes = &[];
            return Ok(false);
        }
        let (payload, rest) = bytes.split_at(missing);
        *bytes = rest;
        self.frame = None;
        if self.part.is_empty() {
            self.whole(frame, payload)?;
        } else {
            let mut part = std::mem::take(&mut self.part);
            part.extend_from_slice(payload);
            self.whole(frame, &part)?;
            part.clear();
            self.part = part;
        }
        Ok(true)
    }

    /// A part of a body, as it comes.
    fn take_data(&mut self, mut frame: FrameHead, bytes: &mut &[u8]) -> Result<bool, Failure> {
        let count = frame.length.min(bytes.len());
        let (data, rest) = bytes.split_at(count);
        *bytes = rest;
        frame.length -= count;
        let is_whole = frame.length == 0;
        self.frame = (!is_whole).then_some(frame);
        self.data(frame, data, count, is_whole)?;
        Ok(is_whole)
    }

    /// Bytes of a body, of which `counted` enter the windows.
    fn data(
        &mut self,
        frame: FrameHead,
        data: &[u8],
        counted: usize,
        is_whole: bool,
    ) -> Result<(), Failure> {
        self.check_stream(frame.stream)?;
        self.ungranted += counted as u32;
        if self.ungranted >= GRANT_FROM {
            let granted = std::mem::take(&mut self.ungranted);
            self.grant(0, granted);
        }
        // Data of a stream that was given up may still come.
        let Some(place) = self.place_of(frame.stream) else {
            return Ok(());
        };
        let ends = is_whole && frame.has(flag::END_STREAM);
        let state = &mut self.places[place];
        if state.head.status == 0 {
            self.malformed(place, ProtocolFault::Rule("a body came before its head"));
            return Ok(());
        }
        if let Some(checker) = &mut state.checker {
            checker.body(data);
        }
        if !data.is_empty() {
            self.idle_frames = 0;
        }
        let end = state.body_bytes + data.len();
        if let Some(expected) = &state.expected {
            state.is_right &= expected.get(state.body_bytes..end) == Some(data);
        }
        state.body_bytes = end;
        state.ungranted += counted as u32;
        if state.ungranted >= GRANT_FROM && !ends {
            let granted = std::mem::take(&mut state.ungranted);
            self.grant(frame.stream, granted);
        }
        if ends {
            self.answered(place);
        }
        Ok(())
    }

    /// What a frame means that has come whole.
    fn whole(&mut self, frame: FrameHead, payload: &[u8]) -> Result<(), Failure> {
        if self.continued.is_some() != (frame.kind == kind::CONTINUATION) {
            return broken(NOT_CONTINUED);
        }
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MAX {
            return broken("10,000 frames came without an answer among them");
        }
        match frame.kind {
            kind::DATA => {
                let data = unpadded(frame, payload).ok_or(BAD_PADDING)?;
                self.data(frame, data, payload.len(), true)
            }
            kind::HEADERS => {
                self.check_stream(frame.stream)?;
                let mut block = unpadded(frame, payload).ok_or(BAD_PADDING)?;
                if frame.has(flag::PRIORITY) {
                    block = block.get(5..).ok_or(BAD_LENGTH)?;
                }
                let ends = frame.has(flag::END_STREAM);
                if frame.has(flag::END_HEADERS) {
                    return self.head(frame.stream, block, ends);
                }
                self.block.extend_from_slice(block);
                self.continued = Some((frame.stream, ends));
                Ok(())
            }
            kind::CONTINUATION => self.continuation(frame, payload),
            kind::RST_STREAM => {
                self.check_stream(frame.stream)?;
                let reason = four(payload)?;
                if let Some(place) = self.place_of(frame.stream) {
                    let failure = match reason {
                        code::REFUSED_STREAM => Failure::RefusedStream,
                        _ => Failure::StreamReset,
                    };
                    self.failed(place, failure);
                }
                Ok(())
            }
            kind::SETTINGS => self.settings(frame, payload),
            kind::PUSH_PROMISE => broken("the server pushes, which the settings forbid"),
            kind::PING | kind::GOAWAY if frame.stream != 0 => broken(NOT_OF_A_STREAM),
            kind::PING if payload.len() == 8 => {
                if !frame.has(flag::ACK) {
                    put_frame_head(&mut self.out, 8, kind::PING, flag::ACK, 0);
                    self.out.extend_from_slice(payload);
                }
                Ok(())
            }
            kind::PING => Err(BAD_LENGTH),
            kind::GOAWAY => self.goaway(payload),
            kind::WINDOW_UPDATE => self.window_update(frame.stream, four(payload)?),
            // Of an unknown type: to be ignored.
            _ => Ok(()),
        }
    }

    fn continuation(&mut self, frame: FrameHead, payload: &[u8]) -> Result<(), Failure> {
        let Some((stream, ends)) = self.continued.filter(|(stream, _)| *stream == frame.stream)
        else {
            return broken(NOT_CONTINUED);
        };
        if self.block.len() + payload.len() > BLOCK_BYTES_MAX {
            return broken("a head has more than 64 KiB");
        }
        self.block.extend_from_slice(payload);
        if frame.has(flag::END_HEADERS) {
            self.continued = None;
            let mut block = std::mem::take(&mut self.block);
            self.head(stream, &block, ends)?;
            block.clear();
            self.block = block;
        }
        Ok(())
    }

    /// Only streams that were opened here may be named.
    fn check_stream(&self, stream: u32) -> Result<(), Failure> {
        match stream % 2 == 1 && stream < self.next_stream {
            true => Ok(()),
            false => broken("a frame names a stream that was not opened"),
        }
    }

    /// The head of an answer, or its trailers.
    fn head(&mut self, stream: u32, block: &[u8], ends: bool) -> Result<(), Failure> {
        let Some(place) = self.place_of(stream) else {
            // A block that cannot be read is the connection's fault (RFC 9113, section 4.3), whosever it is.
            return match self.heads.trailers(block) {
                Err(fault @ ProtocolFault::Block) => Err(Failure::Protocol(fault)),
                _ => Ok(()),
            };
        };
        match self.take_fields(place, block, ends) {
            Ok(true) if ends => self.answered(place),
            Ok(true) => self.begun.push(place),
            Ok(false) => {}
            Err(fault @ ProtocolFault::Block) => return Err(Failure::Protocol(fault)),
            Err(fault) => self.malformed(place, fault),
        }
        Ok(())
    }

    /// Takes the fields of the answer of `place`, or of its trailers. False: of an interim answer, which another will follow.
    fn take_fields(
        &mut self,
        place: usize,
        block: &[u8],
        ends: bool,
    ) -> Result<bool, ProtocolFault> {
        let (state, fields) = (&mut self.places[place], &mut self.fields);
        if state.head.status != 0 {
            self.heads.trailers(block)?;
            let rule = ProtocolFault::Rule("an answer goes on after its trailers");
            return ends.then_some(true).ok_or(rule);
        }
        let mut checker = state.checker.as_deref_mut();
        let mut field = |status: u16, name: &[u8], value: &[u8]| {
            if status >= 200 {
                fields.field(name, value, checker.as_deref_mut());
            }
        };
        let head = match F::READS {
            true => self.heads.head(block, Some(&mut field)),
            false => self.heads.head(block, None),
        }?;
        match head.status {
            101 => Err(ProtocolFault::Rule(SWITCHED)),
            100..200 if ends => Err(ProtocolFault::Rule("an interim answer ends its stream")),
            100..200 => Ok(false),
            _ => {
                state.head = head;
                Ok(true)
            }
        }
    }

    /// The answer of `place` breaks a rule: it has failed, and its stream is given up (RFC 9113, section 8.1.1).
    fn malformed(&mut self, place: usize, fault: ProtocolFault) {
        self.reset(self.streams[place], code::PROTOCOL_ERROR);
        self.failed(place, Failure::Protocol(fault));
    }

    /// The request of `place` has failed; the connection is of further use.
    fn failed(&mut self, place: usize, failure: Failure) {
        self.streams[place] = 0;
        self.places[place].unsent = None;
        self.begun.retain(|&begun| begun != place);
        self.idle_frames = 0;
        self.happened.push_back(Progress::Failed(place, failure));
    }

    fn reset(&mut self, stream: u32, code: u32) {
        put_frame_head(&mut self.out, 4, kind::RST_STREAM, 0, stream);
        self.out.extend_from_slice(&code.to_be_bytes());
    }

    /// The answer of `place` has ended.
    fn answered(&mut self, place: usize) {
        let stream = std::mem::take(&mut self.streams[place]);
        self.begun.retain(|&begun| begun != place);
        self.idle_frames = 0;
        if self.places[place].unsent.take().is_some() {
            // It was answered before it was sent: the rest is not wanted.
            self.reset(stream, code::CANCEL);
        }
        let state = &mut self.places[place];
        let has_none = state.is_head_request || matches!(state.head.status, 204 | 304);
        let announced = match has_none {
            true => Some(0),
            false => state.head.length,
        };
        if announced.is_some_and(|length| length != state.body_bytes as u64) {
            let fault = ProtocolFault::Rule(match has_none {
                true => "an answer that has no body (to HEAD, 204, 304) has one",
                false => "a body has another length than its content-length",
            });
            let failed = Progress::Failed(place, Failure::Protocol(fault));
            return self.happened.push_back(failed);
        }
        let expected = state.expected.as_ref();
        let is_whole = expected.is_none_or(|expected| expected.len() == state.body_bytes);
        let is_right = state.is_right && is_whole;
        let (is_right, check) = match &mut state.checker {
            Some(checker) => checker.end(state.head.status).judged(is_right),
            None => (is_right, None),
        };
        self.happened.push_back(Progress::Answered(Answered {
            place,
            status: state.head.status,
            check,
            is_right,
            reuse: Reuse::Yes,
        }));
    }

    fn settings(&mut self, frame: FrameHead, payload: &[u8]) -> Result<(), Failure> {
        if frame.stream != 0 {
            return broken(NOT_OF_A_STREAM);
        }
        if !payload.len().is_multiple_of(6) || (frame.has(flag::ACK) && !payload.is_empty()) {
            return Err(BAD_LENGTH);
        }
        if frame.has(flag::ACK) {
            return Ok(());
        }
        for entry in payload.chunks_exact(6) {
            let number = u16::from_be_bytes([entry[0], entry[1]]);
            let value = four(&entry[2..])?;
            match number {
                setting::ENABLE_PUSH if value != 0 => {
                    return broken("SETTINGS: a server's ENABLE_PUSH is not 0");
                }
                setting::MAX_CONCURRENT_STREAMS => self.streams_max = value,
                setting::INITIAL_WINDOW_SIZE => self.set_first_window(i64::from(value))?,
                setting::MAX_FRAME_SIZE => match (value as usize, value >> 24) {
                    (FRAME_BYTES.., 0) => self.frame_bytes_max = value as usize,
                    _ => {
                        return broken("SETTINGS: MAX_FRAME_SIZE is not from 16,384 to 16,777,215");
                    }
                },
                _ => {}
            }
        }
        self.has_settings = true;
        put_frame_head(&mut self.out, 0, kind::SETTINGS, flag::ACK, 0);
        self.send_bodies();
        Ok(())
    }

    /// The first window of streams is `window` from now on; those that are open change by as much (RFC 9113, section 6.9.2).
    fn set_first_window(&mut self, window: i64) -> Result<(), Failure> {
        if window > WINDOW_MAX {
            return broken("SETTINGS: INITIAL_WINDOW_SIZE is over 2,147,483,647");
        }
        let change = window - self.window_at_first;
        self.window_at_first = window;
        for (stream, state) in self.streams.iter().zip(&mut self.places) {
            state.send_window += change;
            if *stream != 0 && state.send_window > WINDOW_MAX {
                return broken(WINDOW_TOO_LARGE);
            }
        }
        Ok(())
    }

    fn goaway(&mut self, payload: &[u8]) -> Result<(), Failure> {
        let last = payload.get(..8).ok_or(BAD_LENGTH)?;
        let last = four(&last[..4])? & STREAM_LAST;
        if !std::mem::replace(&mut self.is_leaving, true) {
            self.happened.push_back(Progress::Leaving);
        }
        for place in 0..self.streams.len() {
            if self.streams[place] > last {
                self.failed(place, Failure::GoneAway);
            }
        }
        Ok(())
    }

    fn window_update(&mut self, stream: u32, more: u32) -> Result<(), Failure> {
        let more = i64::from(more & STREAM_LAST);
        if more > 0 && self.ungranted_to_send > 0 {
            self.ungranted_to_send = self.ungranted_to_send.saturating_sub(more as u64);
            self.idle_frames -= 1;
        }
        let window = match stream {
            0 => &mut self.send_window,
            _ => {
                self.check_stream(stream)?;
                match self.place_of(stream) {
                    Some(place) => &mut self.places[place].send_window,
                    None => return Ok(()),
                }
            }
        };
        *window += more;
        if more == 0 {
            return broken("WINDOW_UPDATE by 0");
        }
        if *window > WINDOW_MAX {
            return broken(WINDOW_TOO_LARGE);
        }
        self.send_bodies();
        Ok(())
    }

    /// Lets the server send `more` bytes of a stream, or of all.
    fn grant(&mut self, stream: u32, more: u32) {
        put_frame_head(&mut self.out, 4, kind::WINDOW_UPDATE, 0, stream);
        self.out.extend_from_slice(&more.to_be_bytes());
    }

    /// Sends what the windows allow of bodies that wait for them.
    fn send_bodies(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        for place in 0..self.places.len() {
            if self.places[place].unsent.is_some() {
                self.send_body(place, &mut out);
            }
        }
        self.out = out;
    }

    fn send_body(&mut self, place: usize, out: &mut Vec<u8>) {
        let (stream, state) = (self.streams[place], &mut self.places[place]);
        let Some((body, mut from)) = state.unsent.take() else {
            return;
        };
        while from < body.len() {
            let window = self.send_window.min(state.send_window).max(0) as usize;
            let count = (body.len() - from).min(self.frame_bytes_max).min(window);
            if count == 0 {
                state.unsent = Some((body, from));
                return;
            }
            let is_last = from + count == body.len();
            let flags = if is_last { flag::END_STREAM } else { 0 };
            put_frame_head(out, count, kind::DATA, flags, stream);
            out.extend_from_slice(&body[from..from + count]);
            from += count;
            self.send_window -= count as i64;
            state.send_window -= count as i64;
            self.ungranted_to_send += 2 * count as u64;
        }
    }
}

fn four(bytes: &[u8]) -> Result<u32, Failure> {
    let bytes = bytes.try_into().map_err(|_| BAD_LENGTH)?;
    Ok(u32::from_be_bytes(bytes))
}

impl<F: AnswerFields> Protocol for Http2Client<F> {
    fn hello(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        let mut out = buffer();
        out.extend_from_slice(PREFACE);
        // No table for fields, no pushes, the largest window.
        let settings = [
            (setting::HEADER_TABLE_SIZE, 0),
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, WINDOW_MAX as u32),
        ];
        put_frame_head(&mut out, settings.len() * 6, kind::SETTINGS, 0, 0);
        for (number, value) in settings {
            put_setting(&mut out, number, value);
        }
        put_frame_head(&mut out, 4, kind::WINDOW_UPDATE, 0, 0);
        out.extend_from_slice(&((WINDOW_MAX - WINDOW_AT_FIRST) as u32).to_be_bytes());
        Some(SendBuf::Owned(out))
    }

    fn is_ready(&self) -> bool {
        self.has_settings
    }

    fn places(&self) -> usize {
        self.streams.len().min(self.streams_max as usize)
    }

    fn send(
        &mut self,
        place: usize,
        request: &EncodedRequest,
        buffer: BufferSource<'_>,
    ) -> Result<SendBuf, Failure> {
        if request.http2.is_none() && request.filled.is_none() {
            return broken("a request is not of HTTP/2");
        }
        let stream = self.next_stream;
        self.next_stream += 2;
        if self.next_stream >= STREAM_LAST && !self.is_leaving {
            self.is_leaving = true;
            self.happened.push_back(Progress::Leaving);
        }
        self.streams[place] = stream;
        let mut checker = self.places[place].checker.take();
        if let Some(checker) = &mut checker {
            checker.begin(Some(request));
        }
        self.places[place] = StreamState {
            expected: request.expected_body.clone(),
            is_right: true,
            is_head_request: request.method == prony_wire::Method::Head,
            send_window: self.window_at_first,
            checker,
            ..StreamState::default()
        };
        let mut out = buffer();
        // Resets first: to the server a stream that was given up is open until it hears so.
        out.append(&mut self.out);
        match (&request.filled, &request.http2) {
            (Some(filled), _) => self.send_filled(place, filled, &mut out),
            (None, Some(parts)) => {
                let has_body = !parts.body.is_empty();
                self.places[place].unsent = has_body.then(|| (Rc::clone(&parts.body), 0));
                if F::READS {
                    let mut block = parts.block.to_vec();
                    self.fields.add(&mut block);
                    self.head_frames(stream, &block, !has_body, &mut out);
                } else {
                    self.head_frames(stream, &parts.block, !has_body, &mut out);
                }
                self.send_body(place, &mut out);
            }
            (None, None) => {}
        }
        Ok(SendBuf::Owned(out))
    }

    fn received(&mut self, bytes: &mut &[u8]) -> Result<Progress, Failure> {
        loop {
            if let Some(progress) = self.happened.pop_front() {
                return Ok(progress);
            }
            let goes_on = match self.frame {
                None => self.take_head(bytes)?,
                Some(frame) => self.take_frame(frame, bytes)?,
            };
            if !goes_on && self.happened.is_empty() {
                return Ok(Progress::Pending);
            }
        }
    }

    fn begun(&mut self, note: &mut dyn FnMut(usize)) {
        self.begun.drain(..).for_each(note);
    }

    fn output(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        if self.out.is_empty() {
            return None;
        }
        let mut out = buffer();
        out.append(&mut self.out);
        Some(SendBuf::Owned(out))
    }

    fn close(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        let mut out = buffer();
        put_frame_head(&mut out, 8, kind::GOAWAY, 0, 0);
        out.extend_from_slice(&[0; 8]);
        Some(SendBuf::Owned(out))
    }

    /// Frames of the connection may come at any time.
    fn expects_nothing(&self) -> bool {
        false
    }

    fn ended(&mut self) -> Result<Answered, Failure> {
        Err(Failure::Closed)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use prony_wire::Method;
    use prony_wire::http2::{FieldFault, put_field, put_status, put_string};
    use proptest::prelude::*;

    use super::*;
    use crate::answer_fields::AllFields;
    use crate::redirect::chain::HopChain;
    use crate::redirect::follower::HopFollower;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_frame_head(&mut out, payload.len(), kind, flags, stream);
        out.extend_from_slice(payload);
        out
    }

    fn request(body: usize, expected: Option<&[u8]>) -> EncodedRequest {
        let mut bytes = b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n".to_vec();
        bytes.resize(bytes.len() + body, b'x');
        EncodedRequest {
            method: Method::Get,
            expected_body: expected.map(Rc::from),
            closes: false,
            http2: Some(hpack::of_http1(&bytes)),
            filled: None,
            step: 0,
            user: None,
            chain: None,
            bytes: bytes.into(),
        }
    }

    /// The bytes of bodies in some frames.
    fn data_bytes(frames: &[u8]) -> usize {
        let (mut rest, mut data) = (frames, 0);
        while let Some((head, after)) = rest.split_first_chunk() {
            let head = FrameHead::read(*head);
            data += if head.kind == kind::DATA {
                head.length
            } else {
                0
            };
            rest = &after[head.length..];
        }
        data
    }

    /// A connection of three places with a request on each, after the server's settings.
    fn asked(expected: Option<&[u8]>) -> Http2Client {
        let mut http2 = Http2Client::new(3, false, NoFields);
        let settings = frame(kind::SETTINGS, 0, 0, &[]);
        assert_eq!(http2.received(&mut &settings[..]), Ok(Progress::Pending));
        assert!(http2.is_ready());
        assert!(http2.output(&mut Vec::new).is_some());
        for place in 0..3 {
            http2
                .send(place, &request(0, expected), &mut Vec::new)
                .unwrap();
        }
        http2
    }

    /// Everything that happened in these parts.
    fn all<F: AnswerFields>(
        http2: &mut Http2Client<F>,
        parts: &[&[u8]],
    ) -> Result<Vec<Progress>, Failure> {
        let mut seen = Vec::new();
        for part in parts {
            let mut rest = *part;
            loop {
                match http2.received(&mut rest)? {
                    Progress::Pending => break,
                    other => seen.push(other),
                }
            }
            assert!(rest.is_empty());
        }
        Ok(seen)
    }

    fn answered(place: usize, status: u16, is_right: bool) -> Progress {
        Progress::Answered(Answered {
            place,
            status,
            is_right,
            check: None,
            reuse: Reuse::Yes,
        })
    }

    /// 404 on the second stream in a head that continues, the others interleaved: in parts and padded, and with trailers.
    fn answers() -> Vec<u8> {
        [
            frame(kind::HEADERS, flag::END_HEADERS, 1, b"\x88\x0f\x0d\x015"),
            frame(kind::HEADERS, flag::END_STREAM, 3, b""),
            frame(kind::CONTINUATION, flag::END_HEADERS, 3, b"\x8d"),
            frame(kind::DATA, 0, 1, b"He"),
            frame(kind::HEADERS, flag::END_HEADERS, 5, b"\x48\x03103"),
            frame(
                kind::HEADERS,
                flag::END_HEADERS | flag::PRIORITY,
                5,
                b"\0\0\0\0\0\x88",
            ),
            frame(kind::PING, 0, 0, b"12345678"),
            frame(kind::DATA, flag::PADDED, 1, b"\x02llo--"),
            frame(kind::DATA, flag::END_STREAM, 1, b""),
            frame(kind::DATA, 0, 5, b"Jello"),
            frame(
                kind::HEADERS,
                flag::END_HEADERS | flag::END_STREAM,
                5,
                b"\0\x01a\x01b",
            ),
        ]
        .concat()
    }

    proptest! {
        #[test]
        fn streams_are_told_apart_however_their_frames_are_split(cuts in prop::collection::btree_set(1..answers().len(), 0..12)) {
            let bytes = answers();
            let mut parts = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                parts.push(&bytes[from..cut]);
                from = cut;
            }
            let mut http2 = asked(Some(b"Hello"));
            let seen = all(&mut http2, &parts);
            let expected = vec![answered(1, 404, false), answered(0, 200, true), answered(2, 200, false)];
            prop_assert_eq!(seen, Ok(expected));
            prop_assert_eq!(&http2.streams, &[0, 0, 0]);
            let Some(SendBuf::Owned(out)) = http2.output(&mut Vec::new) else { panic!("no answer to the ping") };
            prop_assert_eq!(out, frame(kind::PING, flag::ACK, 0, b"12345678"));
        }

        #[test]
        fn whatever_comes_is_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), kinds in prop::collection::vec((0_u8..11, any::<u8>(), 0_u32..8), 0..20)) {
            let _ = all(&mut asked(None), &[&bytes]);
            let mut frames = Vec::new();
            for (at, (kind, flags, stream)) in kinds.into_iter().enumerate() {
                let payload = bytes.get(at * 7..at * 7 + usize::from(flags % 12)).unwrap_or_default();
                frames.extend(frame(kind, flags, stream, payload));
            }
            let _ = all(&mut asked(None), &[&frames]);
        }
    }

    #[test]
    fn a_redirect_leads_on_in_its_own_place() {
        let follower =
            || -> Option<Box<dyn AnswerFollower>> { Some(Box::new(HopFollower::new(None, 0))) };
        let fields = AllFields::new(false);
        let mut http2 = Http2Client::new(2, false, fields).followed(follower);
        let settings = frame(kind::SETTINGS, 0, 0, &[]);
        assert_eq!(http2.received(&mut &settings[..]), Ok(Progress::Pending));
        let chains = [(); 2].map(|()| Rc::new(RefCell::new(HopChain::new(1, false, false))));
        for (place, chain) in chains.iter().enumerate() {
            let mut request = request(0, Some(b"Hello"));
            request.chain = Some(Rc::clone(chain));
            http2.send(place, &request, &mut Vec::new).unwrap();
        }
        let mut block = Vec::new();
        put_status(&mut block, 302);
        put_field(&mut block, "location", b"/next");
        let moved = frame(
            kind::HEADERS,
            flag::END_HEADERS | flag::END_STREAM,
            3,
            &block,
        );
        let seen = all(&mut http2, &[&moved]);
        // What is expected is expected of the last answer.
        assert_eq!(seen, Ok(vec![answered(1, 302, true)]));
        assert!(!chains[0].borrow().has_next());
        let next = chains[1].borrow_mut().take_next().unwrap();
        assert!(next.bytes.starts_with(b"GET /next HTTP/1.1\r\n") && next.http2.is_some());
    }

    #[test]
    fn refused_and_reset_streams_and_those_that_a_leaving_server_drops_are_told_apart() {
        let bytes = [
            frame(kind::RST_STREAM, 0, 1, &7_u32.to_be_bytes()),
            frame(kind::GOAWAY, 0, 0, b"\0\0\0\x03\0\0\0\0"),
            frame(kind::RST_STREAM, 0, 3, &2_u32.to_be_bytes()),
        ]
        .concat();
        let mut http2 = asked(None);
        let expected = vec![
            Progress::Failed(0, Failure::RefusedStream),
            Progress::Leaving,
            Progress::Failed(2, Failure::GoneAway),
            Progress::Failed(1, Failure::StreamReset),
        ];
        assert_eq!(all(&mut http2, &[&bytes]), Ok(expected));
    }

    /// Fields on stream 3 as a hostile server writes them: literals that enter no table.
    fn fields(flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            block.push(0);
            put_string(&mut block, name.as_bytes());
            put_string(&mut block, value.as_bytes());
        }
        frame(kind::HEADERS, flag::END_HEADERS | flags, 3, &block)
    }

    /// Answers that are malformed, and what is said of each.
    fn malformed_answers() -> Vec<(Vec<u8>, &'static str)> {
        let ok = (":status", "200");
        let head = |of: &[(&str, &str)]| fields(flag::END_STREAM, of);
        let first = frame(kind::HEADERS, flag::END_HEADERS, 3, b"\x88\x0f\x0d\x015");
        let after_head = |frame: Vec<u8>| [first.clone(), frame].concat();
        let trailers = |flags: u8, of: &[(&str, &str)]| after_head(fields(flags, of));
        vec![
            (head(&[ok, ok]), "a pseudo-header field is there twice"),
            (head(&[ok, ("Date", "now")]), "an upper-case letter"),
            (head(&[ok, ("a", "b\r\nc: d")]), "a control byte"),
            (head(&[ok, ("a ", "b")]), "a byte that no name may have"),
            (
                head(&[ok, ("connection", "close")]),
                "of a connection of HTTP/1.1",
            ),
            (
                head(&[ok, ("transfer-encoding", "chunked")]),
                "of a connection of HTTP/1.1",
            ),
            (head(&[("a", "b"), ok]), "behind a regular one"),
            (head(&[ok, (":path", "/")]), "that is not known"),
            (head(&[("a", "b")]), "has no :status"),
            (head(&[(":status", "20")]), "not three digits"),
            (
                head(&[ok, ("content-length", "x")]),
                "a content-length is no number",
            ),
            (
                head(&[(":status", "103")]),
                "an interim answer ends its stream",
            ),
            (head(&[(":status", "101")]), "(101)"),
            (trailers(1, &[ok]), "a pseudo-header field in trailers"),
            (trailers(1, &[("X", "y")]), "an upper-case letter"),
            (trailers(0, &[("x", "y")]), "goes on after its trailers"),
            (
                frame(kind::DATA, 0, 3, b"no head"),
                "a body came before its head",
            ),
            (
                after_head(frame(kind::DATA, 1, 3, b"Hell")),
                "another length than its content-length",
            ),
        ]
    }

    #[test]
    fn an_answer_that_breaks_a_rule_fails_by_its_name_and_alone() {
        for (bytes, named) in malformed_answers() {
            let whole = frame(
                kind::HEADERS,
                flag::END_HEADERS | flag::END_STREAM,
                1,
                b"\x88",
            );
            let late = frame(kind::DATA, flag::END_STREAM, 3, b"late");
            let mut http2 = asked(None);
            let seen = all(&mut http2, &[&bytes, &late, &whole]).expect(named);
            let [Progress::Failed(1, Failure::Protocol(fault)), next] = &seen[..] else {
                panic!("{named}: {seen:?}");
            };
            assert!(fault.to_string().contains(named), "{named}: {fault}");
            assert_eq!(*next, answered(0, 200, true));
            http2.begun(&mut |place| panic!("{named}: {place}"));
        }
        // The value's CR is hidden in Huffman's code.
        let hidden = frame(
            kind::HEADERS,
            flag::END_HEADERS | flag::END_STREAM,
            3,
            b"\x88\x00\x01a\x84\xff\xff\xff\xfb",
        );
        let seen = all(&mut asked(None), &[&hidden]).expect("a stream's fault");
        let fault = ProtocolFault::Fields(FieldFault::Value);
        assert_eq!(seen, [Progress::Failed(1, Failure::Protocol(fault))]);
    }

    #[test]
    fn a_server_is_told_that_its_answer_is_malformed() {
        let mut http2 = asked(None);
        all(&mut http2, &[&frame(kind::HEADERS, 5, 3, b"\x88\x88")]).unwrap();
        let out = http2.output(&mut Vec::new).expect("a reset");
        assert_eq!(out.as_slice(), frame(kind::RST_STREAM, 0, 3, &[0, 0, 0, 1]));
    }

    #[test]
    fn a_new_stream_was_opened_before_the_reset_of_the_one_that_was_given_up() {
        let mut http2 = asked(None);
        all(&mut http2, &[&frame(kind::HEADERS, 4, 3, b"\x88\x88")]).unwrap();
        let sent = http2.send(1, &request(0, None), &mut Vec::new).unwrap();
        let reset = frame(kind::RST_STREAM, 0, 3, &[0, 0, 0, 1]);
        assert!(sent.as_slice().starts_with(&reset), "{:?}", sent.as_slice());
        assert!(http2.output(&mut Vec::new).is_none());
    }

    #[test]
    fn an_answer_without_a_body_that_had_one_was_taken() {
        let body = frame(kind::DATA, flag::END_STREAM, 1, b"Hello");
        for (status, is_head) in [(b"\x89", false), (b"\x8b", false), (b"\x88", true)] {
            let mut http2 = Http2Client::new(1, false, NoFields);
            all(&mut http2, &[&frame(kind::SETTINGS, 0, 0, &[])]).unwrap();
            let asked = EncodedRequest {
                method: if is_head { Method::Head } else { Method::Get },
                ..request(0, None)
            };
            http2.send(0, &asked, &mut Vec::new).unwrap();
            let head = frame(kind::HEADERS, flag::END_HEADERS, 1, status);
            let seen = all(&mut http2, &[&head, &body]).unwrap();
            let [Progress::Failed(0, Failure::Protocol(fault))] = &seen[..] else {
                panic!("{seen:?}");
            };
            assert!(fault.to_string().contains("has one"), "{fault}");
        }
    }

    /// A server that grants each few bytes of a large body anew was taken for one that floods.
    #[test]
    fn windows_may_be_widened_in_many_frames_as_far_as_bytes_were_sent() {
        let mut http2 = asked(None);
        all(&mut http2, &[&frame(kind::HEADERS, 5, 1, b"\x88")]).unwrap();
        http2
            .send(0, &request(60_000, None), &mut Vec::new)
            .unwrap();
        let grants = |http2: &mut Http2Client, count: u32, each: u32| {
            let both = [0, 7].map(|of| frame(kind::WINDOW_UPDATE, 0, of, &each.to_be_bytes()));
            (0..count).try_for_each(|_| all(http2, &[&both[0], &both[1]]).map(drop))
        };
        assert_eq!(grants(&mut http2, 20_000, 3), Ok(()));
        // All that was sent is granted again: more of them move nothing.
        assert_eq!(grants(&mut http2, 4_000, 1), Ok(()));
        assert!(grants(&mut http2, 2_000, 1).is_err());
        // Padded data, in as many frames as there are bytes.
        let mut http2 = asked(None);
        all(&mut http2, &[&frame(kind::HEADERS, 4, 1, b"\x88")]).unwrap();
        let padded = frame(kind::DATA, flag::PADDED, 1, b"\x01x\0");
        for _ in 0..20_000 {
            assert_eq!(all(&mut http2, &[&padded]), Ok(Vec::new()));
        }
    }

    #[test]
    fn a_block_that_cannot_be_read_is_the_connections_fault_on_a_stream_that_has_ended_too() {
        let mut http2 = asked(None);
        all(&mut http2, &[&frame(kind::HEADERS, 5, 1, b"\x88")]).unwrap();
        let late = all(&mut http2, &[&frame(kind::HEADERS, 5, 1, b"\xc0")]);
        assert_eq!(late, Err(Failure::Protocol(ProtocolFault::Block)));
    }

    #[test]
    fn a_body_is_sent_as_far_as_the_windows_allow() {
        let mut http2 = asked(None);
        all(&mut http2, &[&frame(kind::HEADERS, 5, 1, b"\x88")]).unwrap();
        let sent = http2
            .send(0, &request(100_000, None), &mut Vec::new)
            .unwrap();
        assert_eq!(data_bytes(sent.as_slice()), 65_535);
        // The connection's window alone is not enough, then both are.
        let more = 50_000_u32.to_be_bytes();
        all(&mut http2, &[&frame(kind::WINDOW_UPDATE, 0, 0, &more)]).unwrap();
        assert!(http2.output(&mut Vec::new).is_none());
        all(&mut http2, &[&frame(kind::WINDOW_UPDATE, 0, 7, &more)]).unwrap();
        let rest = http2.output(&mut Vec::new).unwrap();
        assert_eq!(data_bytes(rest.as_slice()), 100_000 - 65_535);
    }

    /// A request with a body of so many bytes and a field, filled in.
    fn filled(body: usize) -> EncodedRequest {
        let mut bytes = b"POST /a HTTP/1.1\r\nHost: b\r\n\r\n{counter}".to_vec();
        bytes.resize(bytes.len() + body - 1, b'x');
        let mut filled = FilledRequest::compile(&bytes, &[]).unwrap();
        filled.fill(|_, out| out.push(b'1'));
        EncodedRequest {
            filled: Some(Box::new(filled)),
            ..request(0, None)
        }
    }

    /// What of bodies the connection has to send.
    fn more(http2: &mut Http2Client) -> usize {
        let out = http2.output(&mut Vec::new);
        out.map_or(0, |out| data_bytes(out.as_slice()))
    }

    #[test]
    fn bodies_on_several_streams_do_not_overrun_the_connections_window() {
        for request in [&request, &(|body, _: Option<&[u8]>| filled(body))]
            as [&dyn Fn(usize, Option<&[u8]>) -> EncodedRequest; 2]
        {
            let mut http2 = Http2Client::new(5, false, NoFields);
            let sent: Vec<usize> = (0..5)
                .map(|place| {
                    let sent = http2.send(place, &request(15_000, None), &mut Vec::new);
                    data_bytes(sent.unwrap().as_slice())
                })
                .collect();
            assert_eq!(sent, [15_000, 15_000, 15_000, 15_000, 5_535]);
            let settings = frame(kind::SETTINGS, 0, 0, &[]);
            let grant = |more: u32| frame(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
            all(&mut http2, &[&settings, &grant(10)]).unwrap();
            assert_eq!(more(&mut http2), 10);
            all(&mut http2, &[&grant(100_000)]).unwrap();
            assert_eq!(more(&mut http2), 15_000 - 5_545);
        }
    }

    #[test]
    fn a_first_window_that_the_server_changes_holds_for_streams_that_are_open_and_for_new_ones() {
        let first = |window: u32| {
            let mut entry = Vec::new();
            put_setting(&mut entry, setting::INITIAL_WINDOW_SIZE, window);
            frame(kind::SETTINGS, 0, 0, &entry)
        };
        let grant = |more: u32| frame(kind::WINDOW_UPDATE, 0, 1, &more.to_be_bytes());
        for request in [request(100, None), filled(100)] {
            let mut http2 = Http2Client::new(2, false, NoFields);
            all(&mut http2, &[&first(10)]).unwrap();
            assert_eq!(more(&mut http2), 0);
            let sent = http2.send(0, &request, &mut Vec::new).unwrap();
            assert_eq!(data_bytes(sent.as_slice()), 10);
            all(&mut http2, &[&first(30)]).unwrap();
            assert_eq!(more(&mut http2), 20);
            // Below zero: 30 bytes are sent, and 5 would have been allowed.
            all(&mut http2, &[&first(5), &grant(25)]).unwrap();
            assert_eq!(more(&mut http2), 0);
            all(&mut http2, &[&grant(1)]).unwrap();
            assert_eq!(more(&mut http2), 1);
            let sent = http2.send(1, &request, &mut Vec::new).unwrap();
            assert_eq!(data_bytes(sent.as_slice()), 5);
        }
        // A stream that was granted more may not be raised beyond the largest window.
        let mut http2 = asked(None);
        let most = first(WINDOW_MAX as u32);
        let failed = all(&mut http2, &[&grant(1), &most]);
        assert_eq!(failed, broken(WINDOW_TOO_LARGE));
    }

    #[test]
    fn what_comes_first_is_settings_or_it_is_not_http2() {
        for wrong in [
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            frame(kind::PING, 0, 0, b"12345678"),
        ] {
            let mut http2 = Http2Client::new(1, false, NoFields);
            let failed = Failure::Protocol(ProtocolFault::NotHttp2);
            assert_eq!(all(&mut http2, &[&wrong]), Err(failed));
        }
        let mut http2 = Http2Client::new(1, false, NoFields);
        let left = all(&mut http2, &[&frame(kind::GOAWAY, 0, 0, &[0; 8])]);
        assert_eq!(left, Ok(vec![Progress::Leaving]));
    }

    fn set(number: u16, value: u32) -> Vec<u8> {
        let mut entry = Vec::new();
        put_setting(&mut entry, number, value);
        frame(kind::SETTINGS, 0, 0, &entry)
    }

    /// Frames with which a connection is of no more use, and what is said of each.
    fn broken_frames() -> Vec<(Vec<u8>, &'static str)> {
        let ping = frame(kind::PING, 0, 0, b"12345678");
        vec![
            (
                frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, b"\0\0\0\x02\x82"),
                "pushes",
            ),
            (
                frame(kind::HEADERS, flag::END_HEADERS, 2, b"\x88"),
                "was not opened",
            ),
            (
                frame(kind::HEADERS, flag::END_HEADERS, 99, b"\x88"),
                "was not opened",
            ),
            (frame(kind::HEADERS, flag::END_HEADERS, 1, b"\xc0"), "HPACK"),
            (
                frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"\x88"),
                "continued",
            ),
            (
                frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]),
                "WINDOW_UPDATE by 0",
            ),
            (
                frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
                "grows beyond",
            ),
            (
                frame(kind::WINDOW_UPDATE, 0, 0, &[1]),
                "another length than its type",
            ),
            (
                frame(kind::SETTINGS, 0, 0, b"12345"),
                "another length than its type",
            ),
            (
                frame(kind::SETTINGS, flag::ACK, 0, b"123456"),
                "another length than its type",
            ),
            (frame(kind::SETTINGS, 0, 1, b""), "names a stream"),
            (
                frame(kind::GOAWAY, 0, 0, b"1234567"),
                "another length than its type",
            ),
            (frame(kind::GOAWAY, 0, 1, b"12345678"), "names a stream"),
            (
                frame(kind::PING, 0, 0, b"1"),
                "another length than its type",
            ),
            (frame(kind::DATA, flag::PADDED, 1, b"\x05abc"), "padding"),
            (vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1], "more than 16,384 bytes"),
            (
                ping.repeat(IDLE_FRAMES_MAX as usize + 1),
                "without an answer",
            ),
            (
                [
                    frame(kind::HEADERS, 0, 1, b"\x88"),
                    frame(kind::CONTINUATION, 0, 1, &[0; 16_000]).repeat(5),
                ]
                .concat(),
                "more than 64 KiB",
            ),
        ]
    }

    #[test]
    fn a_server_that_breaks_the_rules_or_floods_is_not_waited_for_and_the_rule_is_named() {
        let settings = [
            (
                set(setting::INITIAL_WINDOW_SIZE, 1 << 31),
                "INITIAL_WINDOW_SIZE is over",
            ),
            (
                set(setting::MAX_FRAME_SIZE, 1),
                "MAX_FRAME_SIZE is not from",
            ),
            (
                set(setting::MAX_FRAME_SIZE, 16_383),
                "MAX_FRAME_SIZE is not from",
            ),
            (
                set(setting::MAX_FRAME_SIZE, 1 << 24),
                "MAX_FRAME_SIZE is not from",
            ),
            (set(setting::ENABLE_PUSH, 1), "ENABLE_PUSH is not 0"),
        ];
        for (bytes, named) in broken_frames().iter().chain(&settings) {
            let Err(Failure::Protocol(fault)) = all(&mut asked(None), &[bytes]) else {
                panic!("{named}");
            };
            assert!(fault.to_string().contains(named), "{named}: {fault}");
        }
        for value in [16_384, (1 << 24) - 1] {
            let taken = all(&mut asked(None), &[&set(setting::MAX_FRAME_SIZE, value)]);
            assert_eq!(taken, Ok(Vec::new()));
        }
    }
}
