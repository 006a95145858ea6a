//! Answers with a content coding: their bodies are decoded as they come, so that what is expected is expected of what they stand for.
//!
//! Not for: loads that ask for no coding, which have nothing of this on their way; nor the codings themselves (`prony_codings`).

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prony_codings::{DecodeError, DecodeSettings, Decoder, PIECE_BYTES_MAX};
use prony_record::CodedReport;
use prony_wire::Headers;

use crate::follow::{AnswerEnd, AnswerFollower};
use crate::source::EncodedRequest;

/// What an answer that cannot be decoded is called among the checks of a load.
pub const UNDECODED: &str = "body that does not decode";

/// The codings that are asked for, as `Accept-Encoding` has them.
pub fn accepted_codings() -> String {
    let codings = DecodeSettings::all().accept_encoding();
    codings.unwrap_or_default()
}

/// What the body of an answer stands for, where `codings` are the values of its `Content-Encoding`.
///
/// # Errors
/// Why it cannot be decoded, in words.
pub fn decoded(codings: &[String], body: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut open = |codings: &[String]| -> Result<(), DecodeError> {
        let names = codings.iter().map(String::as_str);
        let Some(mut decoder) = Decoder::new(names, &DecodeSettings::all())? else {
            out.extend_from_slice(body);
            return Ok(());
        };
        each_piece(&mut decoder, body, &mut Vec::new(), |piece| {
            out.extend_from_slice(piece);
        })?;
        decoder.finish()
    };
    open(codings).map_err(|error| format!("{UNDECODED}: {error}"))?;
    Ok(out)
}

/// Gives all that comes of `data` to `take`.
fn each_piece(
    decoder: &mut Decoder,
    mut data: &[u8],
    piece: &mut Vec<u8>,
    mut take: impl FnMut(&[u8]),
) -> Result<(), DecodeError> {
    loop {
        piece.clear();
        let used = decoder.decode(data, piece)?;
        data = &data[used..];
        take(piece);
        // A piece that is not full says that nothing is held back.
        if piece.len() < PIECE_BYTES_MAX {
            return Ok(());
        }
    }
}

/// Counts of all threads of a run.
#[derive(Debug, Default)]
pub struct CodedCounts {
    answers: AtomicU64,
    coded: AtomicU64,
    wire_bytes: AtomicU64,
    decoded_bytes: AtomicU64,
}

impl CodedCounts {
    /// What a report says of them.
    pub fn report(&self) -> CodedReport {
        CodedReport {
            answers: self.answers.load(Relaxed),
            coded: self.coded.load(Relaxed),
            wire_bytes: self.wire_bytes.load(Relaxed),
            decoded_bytes: self.decoded_bytes.load(Relaxed),
        }
    }
}

/// Follows one answer after the other, and lets another follow what their bodies stand for.
pub struct DecodingFollower {
    inner: Option<Box<dyn AnswerFollower>>,
    counts: Arc<CodedCounts>,
    /// The number of the check that says that a body does not decode.
    check: u16,
    settings: DecodeSettings,
    /// The values of `Content-Encoding`, in their order.
    codings: Vec<String>,
    /// Of a body that has begun and is coded.
    decoder: Option<Decoder>,
    has_body: bool,
    is_broken: bool,
    expected: Option<Rc<[u8]>>,
    is_right: bool,
    wire_bytes: u64,
    decoded_bytes: usize,
    piece: Vec<u8>,
}

impl DecodingFollower {
    /// A follower of answers whose bodies `inner` is to follow.
    pub fn new(
        inner: Option<Box<dyn AnswerFollower>>,
        counts: &Arc<CodedCounts>,
        check: u16,
    ) -> DecodingFollower {
        DecodingFollower {
            inner,
            counts: Arc::clone(counts),
            check,
            settings: DecodeSettings::all(),
            codings: Vec::new(),
            decoder: None,
            has_body: false,
            is_broken: false,
            expected: None,
            is_right: true,
            wire_bytes: 0,
            decoded_bytes: 0,
            piece: Vec::new(),
        }
    }

    /// The decoder for a body that begins; `None`: it is sent as it is.
    fn open(&mut self) {
        self.has_body = true;
        let codings = self.codings.iter().map(String::as_str);
        match Decoder::new(codings, &self.settings) {
            Ok(decoder) => self.decoder = decoder,
            Err(_) => self.is_broken = true,
        }
    }

    /// Takes in bytes that the body stands for.
    fn plain(
        expected: Option<&Rc<[u8]>>,
        (is_right, so_far): (&mut bool, &mut usize),
        inner: &mut Option<Box<dyn AnswerFollower>>,
        data: &[u8],
    ) {
        let end = *so_far + data.len();
        *is_right &= expected.is_none_or(|of| of.get(*so_far..end) == Some(data));
        *so_far = end;
        if let Some(inner) = inner {
            inner.body(data);
        }
    }
}

impl AnswerFollower for DecodingFollower {
    fn begin(&mut self, request: Option<&EncodedRequest>) {
        self.codings.clear();
        self.decoder = None;
        (self.has_body, self.is_broken, self.is_right) = (false, false, true);
        (self.wire_bytes, self.decoded_bytes) = (0, 0);
        self.expected = request.and_then(|request| request.expected_body.clone());
        if let Some(inner) = &mut self.inner {
            inner.begin(request);
        }
    }

    fn head(&mut self, headers: &Headers<'_>) {
        let values = headers.get_all("content-encoding");
        let values = values.map(|of| String::from_utf8_lossy(of).into_owned());
        self.codings.extend(values);
        if let Some(inner) = &mut self.inner {
            inner.head(headers);
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        if name == b"content-encoding" {
            let value = String::from_utf8_lossy(value);
            self.codings.push(value.into_owned());
        }
        if let Some(inner) = &mut self.inner {
            inner.field(name, value);
        }
    }

    fn body(&mut self, data: &[u8]) {
        self.wire_bytes += data.len() as u64;
        if !self.has_body {
            self.open();
        }
        if self.is_broken {
            return;
        }
        let expected = self.expected.as_ref();
        let so_far = (&mut self.is_right, &mut self.decoded_bytes);
        let inner = &mut self.inner;
        match &mut self.decoder {
            None => DecodingFollower::plain(expected, so_far, inner, data),
            Some(decoder) => {
                let (is_right, bytes) = so_far;
                let taken = each_piece(decoder, data, &mut self.piece, |piece| {
                    DecodingFollower::plain(expected, (&mut *is_right, &mut *bytes), inner, piece);
                });
                self.is_broken = taken.is_err();
            }
        }
    }

    fn passed_over(&mut self, status: u16, fault: Option<u16>) {
        if let Some(inner) = &mut self.inner {
            inner.passed_over(status, fault);
        }
    }

    fn end(&mut self, status: u16) -> AnswerEnd {
        let is_coded = self.decoder.is_some();
        if let Some(decoder) = &mut self.decoder {
            self.is_broken |= decoder.finish().is_err();
        }
        if self.is_broken {
            self.passed_over(status, Some(self.check));
            return AnswerEnd::Rejected(self.check);
        }
        for (count, more) in [
            (&self.counts.answers, 1),
            (&self.counts.coded, u64::from(is_coded)),
            (&self.counts.wire_bytes, self.wire_bytes),
            (&self.counts.decoded_bytes, self.decoded_bytes as u64),
        ] {
            count.fetch_add(more, Relaxed);
        }
        let expected = self.expected.as_ref();
        let is_right = self.is_right && expected.is_none_or(|of| of.len() == self.decoded_bytes);
        let inner = self.inner.as_mut();
        match inner.map_or(AnswerEnd::Passed, |inner| inner.end(status)) {
            AnswerEnd::Passed => AnswerEnd::Decoded(is_right, None),
            AnswerEnd::Failed(check) => AnswerEnd::Decoded(is_right, Some(check)),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_record::PreparedRequest;

    use super::*;
    use crate::source::decode;

    /// `hello` in each coding: gzip as the client library's own example has it; the others are what its servers sent.
    const GZIP: &[u8] = &[
        31, 139, 8, 0, 0, 0, 0, 0, 0, 255, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0,
        0,
    ];
    /// One block of zstd as it is, without compression.
    const ZSTD: &[u8] = &[
        0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x05, 0x29, 0x00, 0x00, b'h', b'e', b'l', b'l', b'o',
    ];

    /// What comes of a body in pieces of `size`, and of the counts.
    fn end(coding: &str, body: &[u8], size: usize, expected: &str) -> (AnswerEnd, CodedReport) {
        let counts = Arc::default();
        let mut follower = DecodingFollower::new(None, &counts, 7);
        let mut request = decode(&PreparedRequest::default());
        request.expected_body = Some(Rc::from(expected.as_bytes()));
        let mut last = AnswerEnd::Passed;
        // The second time: nothing is left of the first.
        for _ in 0..2 {
            follower.begin(Some(&request));
            if !coding.is_empty() {
                follower.field(b"content-encoding", coding.as_bytes());
            }
            body.chunks(size).for_each(|piece| follower.body(piece));
            last = follower.end(200);
        }
        (last, counts.report())
    }

    #[test]
    fn a_body_is_judged_by_what_it_stands_for_however_it_is_split() {
        for (coding, body) in [
            ("gzip", GZIP),
            ("X-GZIP", GZIP),
            ("zstd", ZSTD),
            ("", b"hello"),
        ] {
            for size in 1..=body.len() {
                let (right, counts) = end(coding, body, size, "hello");
                assert_eq!(right, AnswerEnd::Decoded(true, None), "{coding} {size}");
                let expected = CodedReport {
                    answers: 2,
                    coded: if coding.is_empty() { 0 } else { 2 },
                    wire_bytes: 2 * body.len() as u64,
                    decoded_bytes: 10,
                };
                assert_eq!(counts, expected, "{coding} {size}");
                for wrong in ["hell", "hello!", "jello"] {
                    let (end, _) = end(coding, body, size, wrong);
                    assert_eq!(end, AnswerEnd::Decoded(false, None), "{coding} {wrong}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_decode_has_failed_by_name_and_is_in_no_count() {
        let cut = &GZIP[..GZIP.len() - 1];
        for (coding, body) in [
            ("gzip", cut),
            ("gzip", b"hello"),
            ("zstd", GZIP),
            ("lzma", b"x"),
        ] {
            let (end, counts) = end(coding, body, 3, "hello");
            assert_eq!(end, AnswerEnd::Rejected(7), "{coding}");
            assert_eq!(counts, CodedReport::default(), "{coding}");
        }
        // An answer without a body has nothing to decode.
        assert_eq!(end("gzip", b"", 1, "").0, AnswerEnd::Decoded(true, None));
    }

    #[test]
    fn a_body_is_decoded_as_a_whole() {
        let gzip = ["gzip".to_owned()];
        assert_eq!(decoded(&gzip, GZIP), Ok(b"hello".to_vec()));
        assert_eq!(decoded(&[], b"hello"), Ok(b"hello".to_vec()));
        assert!(decoded(&gzip, b"hello").is_err_and(|why| why.starts_with(UNDECODED)));
        assert!(accepted_codings().contains("gzip"));
    }

    #[test]
    fn a_body_that_came_at_once_and_is_more_than_a_piece_is_decoded_to_its_end() {
        // One block of zstd that repeats a byte.
        let length = PIECE_BYTES_MAX as u32 + 1;
        let mut body = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
        body.extend(length.to_le_bytes());
        body.extend(&(length << 3 | 0b011).to_le_bytes()[..3]);
        body.push(b'x');
        let (end, counts) = end("zstd", &body, body.len(), &"x".repeat(length as usize));
        assert_eq!(end, AnswerEnd::Decoded(true, None));
        assert_eq!(counts.decoded_bytes, 2 * u64::from(length));
    }
}
