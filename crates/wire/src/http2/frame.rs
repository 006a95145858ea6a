//! Frames (RFC 9113, sections 4 and 6).

/// The first bytes of a client.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame's header.
pub const FRAME_HEAD_BYTES: usize = 9;
/// Most bytes of a payload that every peer takes.
pub const FRAME_BYTES: usize = 1 << 14;
/// The largest window there is, in bytes.
pub const WINDOW_MAX: i64 = (1 << 31) - 1;
/// Windows before anything was said about them, in bytes.
pub const WINDOW_AT_FIRST: i64 = 65_535;
/// The last number of a stream.
pub const STREAM_LAST: u32 = (1 << 31) - 1;

/// Types of frames.
#[allow(missing_docs)]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
#[allow(missing_docs)]
pub mod flag {
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 32;
}

/// Numbers of settings.
#[allow(missing_docs)]
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Codes of errors (section 7).
#[allow(missing_docs)]
pub mod code {
    pub const NO_ERROR: u32 = 0;
    pub const PROTOCOL_ERROR: u32 = 1;
    pub const INTERNAL_ERROR: u32 = 2;
    pub const FLOW_CONTROL_ERROR: u32 = 3;
    pub const STREAM_CLOSED: u32 = 5;
    pub const FRAME_SIZE_ERROR: u32 = 6;
    pub const REFUSED_STREAM: u32 = 7;
    pub const CANCEL: u32 = 8;
    pub const COMPRESSION_ERROR: u32 = 9;
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}

/// A frame's header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FrameHead {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// The stream; 0: the connection.
    pub stream: u32,
    /// Bytes of the payload.
    pub length: usize,
}

impl FrameHead {
    /// Reads a header.
    #[inline]
    pub fn read([a, b, c, kind, flags, s @ ..]: [u8; FRAME_HEAD_BYTES]) -> FrameHead {
        FrameHead {
            kind,
            flags,
            stream: u32::from_be_bytes(s) & STREAM_LAST,
            length: u32::from_be_bytes([0, a, b, c]) as usize,
        }
    }

    /// Takes a header from the front of `bytes`, with what came of it before in `part`; `None` where more bytes are needed,
    /// which `part` then has.
    #[inline]
    pub fn take(part: &mut Vec<u8>, bytes: &mut &[u8]) -> Option<FrameHead> {
        if let (true, Some((head, rest))) = (part.is_empty(), bytes.split_first_chunk()) {
            *bytes = rest;
            return Some(FrameHead::read(*head));
        }
        let (more, rest) = bytes.split_at((FRAME_HEAD_BYTES - part.len()).min(bytes.len()));
        part.extend_from_slice(more);
        *bytes = rest;
        let head = part[..].try_into().ok()?;
        part.clear();
        Some(FrameHead::read(head))
    }

    /// Whether it has this flag.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame's header; `length` is the payload's, under 2^24 bytes.
#[inline]
pub fn put_frame_head(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [s, t, u, v] = stream.to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags, s, t, u, v]);
}

/// Appends one setting.
pub fn put_setting(out: &mut Vec<u8>, number: u16, value: u32) {
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}

/// A payload without its padding; None where that is longer than what there is.
pub fn unpadded(frame: FrameHead, payload: &[u8]) -> Option<&[u8]> {
    if !frame.has(flag::PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    let length = rest.len().checked_sub(usize::from(padding))?;
    rest.get(..length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_taken_at_every_split() {
        let mut out = Vec::new();
        put_frame_head(&mut out, 5, kind::DATA, flag::END_STREAM, 7);
        out.extend_from_slice(b"hello");
        for split in 0..=FRAME_HEAD_BYTES {
            let (mut first, mut second) = out.split_at(split);
            let mut part = Vec::new();
            let head = FrameHead::take(&mut part, &mut first)
                .or_else(|| FrameHead::take(&mut part, &mut second))
                .expect("all of it came");
            assert_eq!((head.length, head.kind, head.stream), (5, kind::DATA, 7));
            assert!(part.is_empty());
            assert_eq!([first, second].concat(), b"hello");
        }
    }

    #[test]
    fn a_frame_header_is_read_as_it_was_written() {
        let mut out = Vec::new();
        put_frame_head(&mut out, 70_000, kind::PING, flag::ACK, 5);
        assert_eq!(out, [1, 0x11, 0x70, 6, 1, 0, 0, 0, 5]);
        let mut bytes: [u8; FRAME_HEAD_BYTES] = out.try_into().unwrap();
        // The reserved bit is to be ignored.
        bytes[5] = 0x80;
        let head = FrameHead {
            kind: kind::PING,
            flags: flag::ACK,
            stream: 5,
            length: 70_000,
        };
        assert_eq!(FrameHead::read(bytes), head);
    }

    #[test]
    fn padding_is_taken_off_and_may_not_exceed_the_payload() {
        let padded = FrameHead {
            flags: flag::PADDED,
            ..FrameHead::default()
        };
        assert_eq!(unpadded(padded, b"\x02ab--"), Some(&b"ab"[..]));
        assert_eq!(unpadded(padded, b"\x00"), Some(&b""[..]));
        assert_eq!(unpadded(padded, b"\x05ab--"), None);
        assert_eq!(unpadded(padded, b""), None);
        assert_eq!(unpadded(FrameHead::default(), b"\x05"), Some(&b"\x05"[..]));
    }
}
