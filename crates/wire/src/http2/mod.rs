//! HTTP/2 (RFC 9113) between bytes and values, as far as client and server share it: frames, and header fields by
//! HPACK (RFC 7541).
//!
//! Not for: streams, windows and what a peer may do when, which are the side's own.

mod answer;
mod decode;
mod frame;
mod hpack;
mod huffman;
mod rules;

pub use answer::put_answer_head;
pub use decode::{BadBlock, FieldDecoder, ListSize, TABLE_BYTES};
pub use frame::{
    FRAME_BYTES, FRAME_HEAD_BYTES, FrameHead, PREFACE, STREAM_LAST, WINDOW_AT_FIRST, WINDOW_MAX,
    code, flag, kind, put_frame_head, put_setting, setting, unpadded,
};
pub use hpack::{put_field, put_integer, put_status, put_string, take_integer, take_string};
pub use huffman::{BadHuffman, unfold};
pub use rules::{FieldFault, FieldRules, FieldSection};
