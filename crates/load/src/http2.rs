//! HTTP/2 (RFC 9113) as a [`Protocol`]: each place of a connection has a stream of its own. Frames in, frames out, no I/O.
//!
//! Only a generator's side of it: what it sends was encoded before, of answers it reads what is counted (status,
//! length, body), and its windows are as large as there are, so that the server's speed is measured and not ours.
//! Not for: the fields (`hpack`), TLS (`secure`).

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use prony_engine::SendBuf;
use prony_wire::http2::{
    FRAME_BYTES, FrameHead, PREFACE, STREAM_LAST, WINDOW_AT_FIRST, WINDOW_MAX, code, flag, kind,
    put_frame_head, put_setting, setting, unpadded,
};

use crate::answer_fields::{AnswerFields, NoFields};
use crate::checks::{AnswerChecker, Checks};
use crate::failure::Failure;
use crate::filled::FilledRequest;
use crate::hpack::{self, AnswerHead};
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
    checker: Option<Box<AnswerChecker>>,
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
    /// What is read of answers' fields, and added to requests.
    fields: F,
}

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
            fields,
        }
    }

    /// The same, with answers checked by `checks`.
    pub fn checked(mut self, checks: Option<&Arc<Checks>>) -> Http2Client<F> {
        for state in &mut self.places {
            state.checker = checks.and_then(Checks::checker);
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
        if head.length > FRAME_BYTES {
            return Err(Failure::Protocol);
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
            return Err(Failure::Protocol);
        }
        if let Some(checker) = &mut state.checker {
            checker.body(data);
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
            return Err(Failure::Protocol);
        }
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MAX {
            return Err(Failure::Protocol);
        }
        match frame.kind {
            kind::DATA => {
                let data = unpadded(frame, payload).ok_or(Failure::Protocol)?;
                self.data(frame, data, payload.len(), true)
            }
            kind::HEADERS => {
                self.check_stream(frame.stream)?;
                let mut block = unpadded(frame, payload).ok_or(Failure::Protocol)?;
                if frame.has(flag::PRIORITY) {
                    block = block.get(5..).ok_or(Failure::Protocol)?;
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
                    self.streams[place] = 0;
                    self.places[place].unsent = None;
                    let failure = match reason {
                        code::REFUSED_STREAM => Failure::RefusedStream,
                        _ => Failure::StreamReset,
                    };
                    self.happened.push_back(Progress::Failed(place, failure));
                }
                Ok(())
            }
            kind::SETTINGS => self.settings(frame, payload),
            kind::PUSH_PROMISE => Err(Failure::Protocol),
            kind::PING if frame.stream == 0 && payload.len() == 8 => {
                if !frame.has(flag::ACK) {
                    put_frame_head(&mut self.out, 8, kind::PING, flag::ACK, 0);
                    self.out.extend_from_slice(payload);
                }
                Ok(())
            }
            kind::PING => Err(Failure::Protocol),
            kind::GOAWAY => self.goaway(payload),
            kind::WINDOW_UPDATE => self.window_update(frame.stream, four(payload)?),
            // Of an unknown type: to be ignored.
            _ => Ok(()),
        }
    }

    fn continuation(&mut self, frame: FrameHead, payload: &[u8]) -> Result<(), Failure> {
        let Some((stream, ends)) = self.continued.filter(|(stream, _)| *stream == frame.stream)
        else {
            return Err(Failure::Protocol);
        };
        if self.block.len() + payload.len() > BLOCK_BYTES_MAX {
            return Err(Failure::Protocol);
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
            false => Err(Failure::Protocol),
        }
    }

    /// The head of an answer, or its trailers.
    fn head(&mut self, stream: u32, block: &[u8], ends: bool) -> Result<(), Failure> {
        let head = hpack::read(block).map_err(|_| Failure::Protocol)?;
        let Some(place) = self.place_of(stream) else {
            return Ok(());
        };
        let state = &mut self.places[place];
        match (state.head.status, head.status) {
            // Trailers end the stream.
            (1.., _) if ends => {}
            (1.., _) | (0, 0) => return Err(Failure::Protocol),
            // It will follow.
            (0, 100..200) if !ends => return Ok(()),
            (0, 100..200) => return Err(Failure::Protocol),
            _ => {
                state.head = head;
                self.fields.answered(block, state.checker.as_deref_mut())?;
            }
        }
        match ends {
            true => self.answered(place),
            false => self.begun.push(place),
        }
        Ok(())
    }

    /// The answer of `place` has ended.
    fn answered(&mut self, place: usize) {
        let stream = std::mem::take(&mut self.streams[place]);
        self.begun.retain(|&begun| begun != place);
        self.idle_frames = 0;
        let state = &mut self.places[place];
        if state.unsent.take().is_some() {
            // It was answered before it was sent: the rest is not wanted.
            put_frame_head(&mut self.out, 4, kind::RST_STREAM, 0, stream);
            self.out.extend_from_slice(&code::CANCEL.to_be_bytes());
        }
        let has_none = state.is_head_request || matches!(state.head.status, 204 | 304);
        let announced = state.head.length.filter(|_| !has_none);
        if announced.is_some_and(|length| length != state.body_bytes as u64) {
            let failed = Progress::Failed(place, Failure::Protocol);
            return self.happened.push_back(failed);
        }
        let expected = state.expected.as_ref();
        let is_whole = expected.is_none_or(|expected| expected.len() == state.body_bytes);
        let check = match &mut state.checker {
            Some(checker) => checker.end(state.head.status),
            None => None,
        };
        self.happened.push_back(Progress::Answered(Answered {
            place,
            status: state.head.status,
            check,
            is_right: state.is_right && is_whole,
            reuse: Reuse::Yes,
        }));
    }

    fn settings(&mut self, frame: FrameHead, payload: &[u8]) -> Result<(), Failure> {
        if frame.stream != 0 || !payload.len().is_multiple_of(6) {
            return Err(Failure::Protocol);
        }
        if frame.has(flag::ACK) {
            return Ok(());
        }
        for setting in payload.chunks_exact(6) {
            let number = u16::from_be_bytes([setting[0], setting[1]]);
            let value = four(&setting[2..])?;
            match number {
                3 => self.streams_max = value,
                4 if i64::from(value) > WINDOW_MAX => return Err(Failure::Protocol),
                4 => {
                    let change = i64::from(value) - self.window_at_first;
                    self.window_at_first = i64::from(value);
                    for state in &mut self.places {
                        state.send_window += change;
                    }
                }
                5 => self.frame_bytes_max = (value as usize).clamp(FRAME_BYTES, (1 << 24) - 1),
                _ => {}
            }
        }
        self.has_settings = true;
        put_frame_head(&mut self.out, 0, kind::SETTINGS, flag::ACK, 0);
        self.send_bodies();
        Ok(())
    }

    fn goaway(&mut self, payload: &[u8]) -> Result<(), Failure> {
        let last = four(payload.get(..4).ok_or(Failure::Protocol)?)? & STREAM_LAST;
        if !std::mem::replace(&mut self.is_leaving, true) {
            self.happened.push_back(Progress::Leaving);
        }
        for place in 0..self.streams.len() {
            if self.streams[place] > last {
                self.streams[place] = 0;
                self.places[place].unsent = None;
                let failed = Progress::Failed(place, Failure::GoneAway);
                self.happened.push_back(failed);
            }
        }
        Ok(())
    }

    fn window_update(&mut self, stream: u32, more: u32) -> Result<(), Failure> {
        let more = i64::from(more & STREAM_LAST);
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
        if more == 0 || *window > WINDOW_MAX {
            return Err(Failure::Protocol);
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
        }
    }
}

fn four(bytes: &[u8]) -> Result<u32, Failure> {
    let bytes = bytes.try_into().map_err(|_| Failure::Protocol)?;
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
            return Err(Failure::Protocol);
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
            checker.begin();
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
        match (&request.filled, &request.http2) {
            (Some(filled), _) => self.send_filled(place, filled, &mut out),
            (None, Some(parts)) => {
                let has_body = !parts.body.is_empty();
                self.places[place].unsent = has_body.then(|| (Rc::clone(&parts.body), 0));
                if F::ADDS {
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
    use prony_wire::Method;
    use prony_wire::http2::FRAME_HEAD_BYTES;
    use proptest::prelude::*;

    use super::*;

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
            bytes: bytes.into(),
        }
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
    fn all(http2: &mut Http2Client, parts: &[&[u8]]) -> Result<Vec<Progress>, Failure> {
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

    #[test]
    fn a_body_of_another_length_than_announced_is_no_answer() {
        let bytes = [
            frame(kind::HEADERS, flag::END_HEADERS, 1, b"\x88\x0f\x0d\x015"),
            frame(kind::DATA, flag::END_STREAM, 1, b"Hell"),
        ]
        .concat();
        let failed = vec![Progress::Failed(0, Failure::Protocol)];
        assert_eq!(all(&mut asked(None), &[&bytes]), Ok(failed));
    }

    #[test]
    fn a_body_is_sent_as_far_as_the_windows_allow() {
        let mut http2 = asked(None);
        all(&mut http2, &[&frame(kind::HEADERS, 5, 1, b"\x88")]).unwrap();
        let sent = http2
            .send(0, &request(100_000, None), &mut Vec::new)
            .unwrap();
        let length = |bytes: &[u8]| -> usize {
            let (mut rest, mut data) = (bytes, 0);
            while let Some((head, after)) = rest.split_at_checked(FRAME_HEAD_BYTES) {
                let length = usize::from(head[1]) << 8 | usize::from(head[2]);
                data += if head[3] == kind::DATA { length } else { 0 };
                rest = &after[length..];
            }
            data
        };
        assert_eq!(length(sent.as_slice()), 65_535);
        // The connection's window alone is not enough, then both are.
        let more = 50_000_u32.to_be_bytes();
        all(&mut http2, &[&frame(kind::WINDOW_UPDATE, 0, 0, &more)]).unwrap();
        assert!(http2.output(&mut Vec::new).is_none());
        all(&mut http2, &[&frame(kind::WINDOW_UPDATE, 0, 7, &more)]).unwrap();
        let rest = http2.output(&mut Vec::new).unwrap();
        assert_eq!(length(rest.as_slice()), 100_000 - 65_535);
    }

    #[test]
    fn a_server_that_breaks_the_rules_or_floods_is_not_waited_for() {
        let ping = frame(kind::PING, 0, 0, b"12345678");
        let wrong = [
            frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, b"\0\0\0\x02\x82"),
            frame(kind::HEADERS, flag::END_HEADERS, 2, b"\x88"),
            frame(kind::HEADERS, flag::END_HEADERS, 99, b"\x88"),
            frame(kind::DATA, 0, 1, b"no head"),
            frame(kind::HEADERS, flag::END_HEADERS, 1, b"\xc0"),
            frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"\x88"),
            frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]),
            frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            frame(kind::SETTINGS, 0, 0, b"\0\x04\xff\xff\xff\xff"),
            frame(kind::SETTINGS, 0, 0, b"12345"),
            frame(kind::DATA, flag::PADDED, 1, b"\x05abc"),
            vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1],
            ping.repeat(IDLE_FRAMES_MAX as usize + 1),
            [
                frame(kind::HEADERS, 0, 1, b"\x88"),
                frame(kind::CONTINUATION, 0, 1, &[0; 16_000]).repeat(5),
            ]
            .concat(),
        ];
        for (number, bytes) in wrong.iter().enumerate() {
            assert_eq!(
                all(&mut asked(None), &[bytes]),
                Err(Failure::Protocol),
                "{number}"
            );
        }
    }
}
