//! The sending side of a connection of HTTP/2: its frames on their way out, which all of its streams share, within the
//! client's windows. No I/O: the connection posts what is here.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use prony_wire::http2::{
    FRAME_BYTES, FRAME_HEAD_BYTES, WINDOW_AT_FIRST, WINDOW_MAX, code, flag, kind, put_frame_head,
};

/// Bytes of frames from which on bodies wait until these are posted.
const OUT_BYTES_MAX: usize = 64 << 10;
/// Most bytes of memory that are kept for the unsent body of a further answer.
const UNSENT_KEPT_BYTES_MAX: usize = 64 << 10;
/// Most bytes of a frame of data, and of what a stream frames before it is another's turn.
const DATA_BYTES_MAX: usize = FRAME_BYTES;

/// The frames of one connection.
pub(crate) struct FrameSender(RefCell<SenderState>);

/// INVARIANT: of the bytes that a connection may hold, half are for frames, posted or not, and half for bodies that were
/// given whole and wait for windows. Bodies in pieces wait with their handlers, so that windows which a client keeps shut
/// cost nothing here.
struct SenderState {
    /// Not posted yet.
    out: Vec<u8>,
    /// Bytes that are posted and not sent.
    posted_bytes: usize,
    /// Most bytes of frames, and of `unsent_bytes` when a further request is answered.
    half_bytes_max: usize,
    /// What waits of the bodies of all streams.
    unsent_bytes: usize,
    /// Memory for the next body that has to wait.
    spare: Vec<u8>,
    window: i64,
    window_at_first: i64,
    streams: Vec<OutStream>,
    /// The place from which on streams are looked at, so that each has its turn.
    turn: usize,
    /// The frame of data at the end of `out`, which may get longer: its stream, and where it begins.
    last_data: Option<(u32, usize)>,
    /// Frames of data since that was asked last.
    data_frames: u32,
    /// Bytes of bodies that were framed, on all streams.
    framed_bytes: u64,
}

/// The answer on one stream.
#[derive(Default)]
struct OutStream {
    /// 0: none.
    id: u32,
    window: i64,
    /// What waits of a body that was given whole.
    unsent: Vec<u8>,
    /// How much of that is sent.
    from: usize,
    /// Bytes that it may frame before its next turn.
    turn_bytes: usize,
    /// Its handler waits for its turn.
    waits: bool,
    /// Nothing is added any more.
    is_whole: bool,
    /// Its last frame is written.
    has_ended: bool,
}

impl OutStream {
    fn unsent(&self) -> usize {
        self.unsent.len() - self.from
    }
}

/// A window that would pass its limit.
pub(super) struct WindowTooLarge;

impl FrameSender {
    /// A sender that holds about `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> FrameSender {
        FrameSender(RefCell::new(SenderState {
            out: Vec::new(),
            posted_bytes: 0,
            half_bytes_max: (bytes_max / 2).max(1),
            unsent_bytes: 0,
            spare: Vec::new(),
            window: WINDOW_AT_FIRST,
            window_at_first: WINDOW_AT_FIRST,
            streams: Vec::new(),
            turn: 0,
            last_data: None,
            data_frames: 0,
            framed_bytes: 0,
        }))
    }

    /// Appends a frame.
    pub(super) fn frame(&self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let state = &mut *self.0.borrow_mut();
        state.last_data = None;
        put_frame_head(&mut state.out, payload.len(), kind, flags, stream);
        state.out.extend_from_slice(payload);
    }

    /// Begins a stream at a place that has none.
    pub(super) fn open(&self, place: usize, id: u32) {
        let state = &mut *self.0.borrow_mut();
        if state.streams.len() <= place {
            state.streams.resize_with(place + 1, OutStream::default);
        }
        let stream = &mut state.streams[place];
        stream.id = id;
        stream.window = state.window_at_first;
        stream.turn_bytes = DATA_BYTES_MAX;
        stream.waits = false;
        stream.is_whole = false;
        stream.has_ended = false;
    }

    /// Ends a stream; whether its answer went out whole.
    pub(super) fn close(&self, place: usize) -> bool {
        let state = &mut *self.0.borrow_mut();
        let Some(stream) = state.streams.get_mut(place) else {
            return false;
        };
        stream.id = 0;
        stream.waits = false;
        let has_ended = stream.has_ended;
        state.forget_unsent(place);
        has_ended
    }

    /// Lets the client's new first window apply to all of its streams.
    pub(super) fn set_first_window(&self, bytes: i64) -> Result<(), WindowTooLarge> {
        let state = &mut *self.0.borrow_mut();
        let change = bytes - std::mem::replace(&mut state.window_at_first, bytes);
        for stream in &mut state.streams {
            stream.window += change;
            if stream.id != 0 && stream.window > WINDOW_MAX {
                return Err(WindowTooLarge);
            }
        }
        Ok(())
    }

    /// Widens the window of the stream at a place, or of the connection.
    pub(super) fn widen(&self, place: Option<usize>, bytes: i64) -> Result<(), WindowTooLarge> {
        let state = &mut *self.0.borrow_mut();
        let window = match place {
            None => &mut state.window,
            Some(place) => match state.streams.get_mut(place) {
                Some(stream) => &mut stream.window,
                None => return Ok(()),
            },
        };
        *window += bytes;
        match *window > WINDOW_MAX {
            true => Err(WindowTooLarge),
            false => Ok(()),
        }
    }

    /// Frames what waits of whole bodies, a frame of each stream in turn. Yields the place whose handler is to go on now,
    /// because it is its turn or all of its body is framed; then there may be more.
    pub(super) fn pump(&self, posted_bytes: usize) -> Option<usize> {
        let state = &mut *self.0.borrow_mut();
        state.posted_bytes = posted_bytes;
        let count = state.streams.len();
        let mut idle = 0;
        while idle < count && state.room() > 0 && state.window > 0 {
            let place = state.turn % count;
            state.turn = (place + 1) % count;
            let stream = &mut state.streams[place];
            if stream.id == 0 || stream.window <= 0 {
                idle += 1;
                continue;
            }
            stream.turn_bytes = DATA_BYTES_MAX;
            if std::mem::take(&mut stream.waits) {
                return Some(place);
            }
            match state.frame_unsent(place) {
                true if state.streams[place].unsent() == 0 => return Some(place),
                true => idle = 0,
                false => idle += 1,
            }
        }
        None
    }

    /// Whether the client takes so little that nothing more is to be read or made for it.
    pub(super) fn is_full(&self, posted_bytes: usize) -> bool {
        let state = &mut *self.0.borrow_mut();
        state.posted_bytes = posted_bytes;
        state.room() == 0
    }

    /// Whether a further request may be answered now, whose whole body may have to wait.
    pub(super) fn may_answer(&self) -> bool {
        let state = self.0.borrow();
        state.unsent_bytes == 0 || state.unsent_bytes < state.half_bytes_max
    }

    /// Frames of data since the last call.
    pub(super) fn take_data_frames(&self) -> u32 {
        std::mem::take(&mut self.0.borrow_mut().data_frames)
    }

    /// Bytes that wait to be posted.
    pub(super) fn out_bytes(&self) -> usize {
        self.0.borrow().out.len()
    }

    /// What is to be posted; `spare` is an empty buffer for what follows.
    pub(super) fn take_out(&self, spare: Vec<u8>) -> Vec<u8> {
        let state = &mut *self.0.borrow_mut();
        state.last_data = None;
        std::mem::replace(&mut state.out, spare)
    }
}

impl SenderState {
    /// How many bytes more may be framed before some are posted or sent.
    fn room(&self) -> usize {
        let held = self
            .half_bytes_max
            .saturating_sub(self.posted_bytes + self.out.len());
        held.min(OUT_BYTES_MAX.saturating_sub(self.out.len()))
    }

    /// How many bytes of its body the stream at a place may frame now.
    fn room_of(&self, place: usize) -> usize {
        let stream = &self.streams[place];
        let window = self.window.min(stream.window).max(0) as usize;
        window.min(stream.turn_bytes).min(self.room())
    }

    /// Frames as much of `bytes` as may be sent at once, in one frame; how much that is.
    fn frame_some(&mut self, place: usize, bytes: &[u8], is_whole: bool) -> usize {
        let room = self.room_of(place);
        let id = self.streams[place].id;
        let begun = self.last_data.filter(|(of, _)| *of == id);
        let length = begun.map_or(0, |(_, start)| self.out.len() - start - FRAME_HEAD_BYTES);
        let (start, length) = match begun {
            Some((_, start)) if length < DATA_BYTES_MAX => (start, length),
            _ => (self.out.len(), 0),
        };
        let count = bytes.len().min(room).min(DATA_BYTES_MAX - length);
        let ends = is_whole && count == bytes.len();
        if count == 0 && !ends {
            return 0;
        }
        if start == self.out.len() {
            put_frame_head(&mut self.out, 0, kind::DATA, 0, id);
            self.last_data = Some((id, start));
            self.data_frames = self.data_frames.saturating_add(1);
        }
        self.out.extend_from_slice(&bytes[..count]);
        let [_, a, b, c] = ((length + count) as u32).to_be_bytes();
        self.out[start..start + 3].copy_from_slice(&[a, b, c]);
        self.out[start + 4] = if ends { flag::END_STREAM } else { 0 };
        let stream = &mut self.streams[place];
        stream.window -= count as i64;
        stream.turn_bytes -= count;
        stream.has_ended |= ends;
        self.window -= count as i64;
        self.framed_bytes += count as u64;
        count
    }

    /// Frames one frame of what waits at a place; whether there was one.
    fn frame_unsent(&mut self, place: usize) -> bool {
        let stream = &mut self.streams[place];
        if stream.unsent() == 0 {
            return false;
        }
        let (is_whole, from) = (stream.is_whole, stream.from);
        let unsent = std::mem::take(&mut stream.unsent);
        let count = self.frame_some(place, &unsent[from..], is_whole);
        let stream = &mut self.streams[place];
        stream.unsent = unsent;
        stream.from += count;
        self.unsent_bytes -= count;
        if stream.unsent() == 0 {
            self.forget_unsent(place);
        }
        count > 0
    }

    /// Drops what waits at a place. Its memory is kept once, for whichever stream needs it next.
    fn forget_unsent(&mut self, place: usize) {
        let stream = &mut self.streams[place];
        self.unsent_bytes -= stream.unsent();
        stream.from = 0;
        let mut unsent = std::mem::take(&mut stream.unsent);
        if unsent.capacity() <= UNSENT_KEPT_BYTES_MAX && unsent.capacity() > self.spare.capacity() {
            unsent.clear();
            self.spare = unsent;
        }
    }
}

/// The answer's side of one stream.
pub(crate) struct StreamSender {
    pub(super) frames: Rc<FrameSender>,
    pub(super) place: usize,
}

impl StreamSender {
    /// Appends the frame of a head that `write` writes; with `ends` nothing follows it.
    ///
    /// # Errors
    /// Those of `write`; then nothing is appended.
    #[inline]
    pub(crate) fn head<E>(
        &self,
        ends: bool,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let state = &mut *self.frames.0.borrow_mut();
        let Some(stream) = state.streams.get_mut(self.place) else {
            return Ok(());
        };
        state.last_data = None;
        let out = &mut state.out;
        let start = out.len();
        put_frame_head(out, 0, kind::HEADERS, 0, stream.id);
        if let Err(error) = write(out) {
            out.truncate(start);
            return Err(error);
        }
        let length = out.len() - start - FRAME_HEAD_BYTES;
        let end = if ends { flag::END_STREAM } else { 0 };
        if length <= FRAME_BYTES {
            let [_, a, b, c] = (length as u32).to_be_bytes();
            out[start..start + 3].copy_from_slice(&[a, b, c]);
            out[start + 4] = end | flag::END_HEADERS;
        } else {
            split_head(out, start, end, stream.id);
        }
        stream.is_whole = ends;
        stream.has_ended = ends;
        Ok(())
    }

    /// Appends to the body: what may be sent becomes frames, the rest is kept. With `ends` nothing follows.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] where more comes after the end.
    pub(crate) fn data(&self, bytes: &[u8], ends: bool) -> io::Result<()> {
        let state = &mut *self.frames.0.borrow_mut();
        let Some(stream) = state.streams.get_mut(self.place) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        if stream.is_whole {
            return match bytes.is_empty() {
                true => Ok(()),
                false => Err(io::ErrorKind::BrokenPipe.into()),
            };
        }
        stream.is_whole = ends;
        let mut rest = bytes;
        if stream.unsent() == 0 {
            loop {
                let count = state.frame_some(self.place, rest, ends);
                rest = &rest[count..];
                if count == 0 || rest.is_empty() {
                    break;
                }
            }
        }
        if !rest.is_empty() {
            let stream = &mut state.streams[self.place];
            if stream.unsent.capacity() == 0 {
                stream.unsent = std::mem::take(&mut state.spare);
            }
            stream.unsent.extend_from_slice(rest);
            state.unsent_bytes += rest.len();
        }
        Ok(())
    }

    /// Ready with how many bytes of the body may be framed at once; until then the stream waits for its turn, in which
    /// the connection polls it.
    pub(crate) fn poll_room(&self) -> Poll<io::Result<usize>> {
        let state = &mut *self.frames.0.borrow_mut();
        if state.streams.len() <= self.place {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = state.room_of(self.place);
        let stream = &mut state.streams[self.place];
        stream.waits |= room == 0;
        match stream.waits {
            true => Poll::Pending,
            false => Poll::Ready(Ok(room)),
        }
    }

    /// Bytes of the body that wait for a window, or for others to be posted.
    pub(crate) fn unsent_bytes(&self) -> usize {
        let state = self.frames.0.borrow();
        state.streams.get(self.place).map_or(0, OutStream::unsent)
    }

    /// A number that changes as the client takes what is sent: on any stream where this one waits for its turn among them, and on this
    /// one where it waits for its own window.
    pub(crate) fn progress(&self) -> u64 {
        let state = self.frames.0.borrow();
        match state.streams.get(self.place) {
            Some(stream) if stream.window > 0 => state.framed_bytes,
            Some(stream) => stream.unsent() as u64,
            None => 0,
        }
    }

    /// Ready once nothing waits. The connection polls the stream then.
    pub(crate) fn poll_sent(&self) -> Poll<io::Result<()>> {
        match self.unsent_bytes() {
            0 => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }
}

/// Splits the head that was written from `start` on into several frames.
#[cold]
fn split_head(out: &mut Vec<u8>, start: usize, end: u8, id: u32) {
    let block = out.split_off(start + FRAME_HEAD_BYTES);
    out.truncate(start);
    let last = block.chunks(FRAME_BYTES).count() - 1;
    for (number, part) in block.chunks(FRAME_BYTES).enumerate() {
        let (kind, mut flags) = match number {
            0 => (kind::HEADERS, end),
            _ => (kind::CONTINUATION, 0),
        };
        if number == last {
            flags |= flag::END_HEADERS;
        }
        put_frame_head(out, part.len(), kind, flags, id);
        out.extend_from_slice(part);
    }
}

/// The payload of a GOAWAY: the last stream that is answered, the code, and why.
pub(super) fn goaway(last: u32, code: u32, why: &str) -> Vec<u8> {
    [&last.to_be_bytes()[..], &code.to_be_bytes(), why.as_bytes()].concat()
}

/// The payload of a shutdown that has begun: any stream is still answered.
pub(super) fn goaway_soon() -> Vec<u8> {
    goaway(WINDOW_MAX as u32, code::NO_ERROR, "the server is stopping")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type, flags and length of each frame.
    fn frames(bytes: &[u8]) -> Vec<(u8, u8, usize)> {
        let (mut rest, mut seen) = (bytes, Vec::new());
        while let Some((head, after)) = rest.split_first_chunk() {
            let head = prony_wire::http2::FrameHead::read(*head);
            seen.push((head.kind, head.flags, head.length));
            rest = &after[head.length..];
        }
        seen
    }

    fn stream(frames: &Rc<FrameSender>, place: usize, id: u32) -> StreamSender {
        frames.open(place, id);
        StreamSender {
            frames: Rc::clone(frames),
            place,
        }
    }

    #[test]
    fn a_body_is_sent_as_far_as_the_windows_allow_and_streams_take_turns() {
        let sender = Rc::new(FrameSender::new(1 << 20));
        assert!(sender.set_first_window(20_000).is_ok());
        let (one, two) = (stream(&sender, 0, 1), stream(&sender, 1, 3));
        one.data(&[b'x'; 50_000], true).unwrap();
        two.data(&[b'y'; 50_000], true).unwrap();
        let sent = frames(&sender.take_out(Vec::new()));
        assert_eq!(sent, [(0, 0, 16_384); 2]);
        assert_eq!(sender.pump(0), None);
        let sent = frames(&sender.take_out(Vec::new()));
        assert_eq!(sent, [(0, 0, 3_616); 2]);
        assert_eq!((one.unsent_bytes(), two.unsent_bytes()), (30_000, 30_000));
        assert!(sender.widen(Some(0), 40_000).is_ok() && sender.widen(Some(1), 40_000).is_ok());
        assert_eq!(sender.pump(0), None);
        // The connection's window had 65,535 bytes.
        let sent = frames(&sender.take_out(Vec::new()));
        assert_eq!(sent, [(0, 0, 16_384), (0, 0, 9_151)]);
        assert!(sender.widen(None, 100_000).is_ok());
        // Each handler hears that its body is framed.
        assert_eq!([(); 3].map(|()| sender.pump(0)), [Some(0), Some(1), None]);
        let sent = frames(&sender.take_out(Vec::new()));
        let total: usize = sent.iter().map(|(_, _, length)| length).sum();
        assert_eq!(
            (total, sent.iter().filter(|frame| frame.1 == 1).count()),
            (34_465, 2)
        );
        assert!(sender.close(0) && sender.close(1));
        assert!(sender.widen(None, WINDOW_MAX).is_err());
    }

    #[test]
    fn bodies_wait_while_much_is_posted_and_nothing_follows_their_end() {
        let sender = Rc::new(FrameSender::new(200_000));
        let one = stream(&sender, 0, 1);
        assert_eq!(sender.pump(100_000), None);
        one.data(b"Hello", true).unwrap();
        assert_eq!((sender.out_bytes(), one.unsent_bytes()), (0, 5));
        assert_eq!(sender.pump(99_998), None);
        let framed = (sender.out_bytes(), one.unsent_bytes());
        assert_eq!(framed, (FRAME_HEAD_BYTES + 2, 3));
        assert!(one.data(b"more", false).is_err());
        sender.take_out(Vec::new());
        assert_eq!(sender.pump(0), Some(0));
        assert_eq!(frames(&sender.take_out(Vec::new())), [(0, 1, 3)]);
        // Nothing but the end.
        let two = stream(&sender, 1, 3);
        two.data(&[], true).unwrap();
        assert_eq!(frames(&sender.take_out(Vec::new())), [(0, 1, 0)]);
        assert!(sender.close(1));
    }

    #[test]
    fn an_answer_timed_out_while_the_client_took_others() {
        let sender = Rc::new(FrameSender::new(1 << 20));
        assert!(sender.widen(None, 1 << 20).is_ok());
        let (one, two) = (stream(&sender, 0, 1), stream(&sender, 1, 3));
        assert_eq!(one.data(&[b'x'; 16_384], false).ok(), Some(()));
        assert!(one.poll_room().is_pending());
        let waits = one.progress();
        assert_eq!(one.progress(), waits);
        two.data(b"y", false).unwrap();
        assert_ne!(one.progress(), waits);
        // Behind a window of its own that is shut, it waits for nobody else.
        assert!(sender.widen(Some(0), -100_000).is_ok());
        let shut = one.progress();
        two.data(b"y", false).unwrap();
        assert_eq!(one.progress(), shut);
    }

    /// What a stream in pieces frames until it has to wait.
    fn pour(stream: &StreamSender) {
        while let Poll::Ready(Ok(room)) = stream.poll_room() {
            stream.data(&vec![b'x'; room.min(1_000)], false).unwrap();
        }
    }

    #[test]
    fn bodies_in_pieces_hold_nothing_and_take_turns() {
        let sender = Rc::new(FrameSender::new(400_000));
        assert!(
            sender.set_first_window(1_000_000).is_ok() && sender.widen(None, 1_000_000).is_ok()
        );
        let (one, two) = (stream(&sender, 0, 1), stream(&sender, 1, 3));
        pour(&one);
        pour(&two);
        // Small pieces are put together.
        let sent = sender.take_out(Vec::new());
        assert_eq!(frames(&sent), [(0, 0, 16_384); 2]);
        let mut turns = Vec::new();
        while let Some(place) = sender.pump(0) {
            turns.push(place);
            pour([&one, &two][place]);
        }
        assert_eq!(turns, [0, 1, 0, 1]);
        assert_eq!(sender.out_bytes() / 10_000, 6);
        assert_eq!((one.unsent_bytes(), two.unsent_bytes()), (0, 0));
        assert!(sender.is_full(0) && sender.may_answer());
        // A window that is shut costs no one a turn, and its stream nothing.
        assert!(sender.widen(Some(0), -2_000_000).is_ok());
        sender.take_out(Vec::new());
        assert_eq!(sender.pump(0), Some(1));
        assert_eq!(sender.pump(200_000), None);
    }

    #[test]
    fn memory_of_whole_bodies_that_wait_is_bounded_and_kept_once() {
        let sender = Rc::new(FrameSender::new(100_000));
        assert!(sender.set_first_window(0).is_ok());
        let streams: Vec<_> = (0..3)
            .map(|place| stream(&sender, place, 2 * place as u32 + 1))
            .collect();
        for (one, may_answer) in streams.iter().zip([true, true, false]) {
            one.data(&[b'x'; 20_000], true).unwrap();
            assert_eq!(sender.may_answer(), may_answer);
        }
        for place in 0..3 {
            assert!(!sender.close(place));
        }
        assert!(sender.may_answer());
        let state = sender.0.borrow();
        let kept = state.streams.iter().map(|stream| stream.unsent.capacity());
        assert_eq!((state.unsent_bytes, kept.sum::<usize>()), (0, 0));
        assert!((1..=UNSENT_KEPT_BYTES_MAX).contains(&state.spare.capacity()));
    }

    #[test]
    fn a_head_is_one_frame_or_several_or_nothing() {
        let sender = Rc::new(FrameSender::new(100_000));
        let one = stream(&sender, 0, 1);
        let put = |bytes: usize| {
            move |out: &mut Vec<u8>| -> Result<(), ()> {
                out.resize(out.len() + bytes, 0);
                Ok(())
            }
        };
        one.head(true, put(7)).unwrap();
        one.head(false, put(40_000)).unwrap();
        assert!(one.head(true, |_| Err(())).is_err());
        let sent = frames(&sender.take_out(Vec::new()));
        assert_eq!(
            sent,
            [(1, 5, 7), (1, 0, 16_384), (9, 0, 16_384), (9, 4, 7_232)]
        );
    }
}
