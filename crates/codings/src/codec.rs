//! Each coding's library behind one call. Not for: stacks and limits (the crate itself).

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::{Coding, DecodeError, PIECE_BYTES_MAX};

/// The first byte of each member of gzip.
const GZIP_FIRST: u8 = 0x1f;
/// Windows of up to 8 MiB (RFC 9659, section 3).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
const WINDOW_BITS: u8 = 15;

/// What one call did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes taken.
    pub used: usize,
    /// Bytes given.
    pub made: usize,
}

impl Step {
    /// Nothing was to be done, or there was no room.
    pub(super) const NONE: Step = Step { used: 0, made: 0 };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first byte.
    Start,
    Within,
    /// After a whole stream; whether another may follow, the coding knows.
    End,
}

/// One coding being taken off.
pub(super) struct Codec {
    coding: Coding,
    at: At,
    /// Whether a whole stream has been seen.
    has_ended: bool,
    engine: Engine,
}

enum Engine {
    /// Gzip; deflate once its kind is known.
    Inflate(Decompress),
    /// Deflate, until two bytes have told whether it has a header.
    Undecided(Option<u8>),
    Brotli(Box<Brotli>),
    Zstd(DCtx<'static>),
}

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

impl Codec {
    pub(super) fn new(coding: Coding) -> Result<Codec, DecodeError> {
        let engine = match coding {
            Coding::Gzip => Engine::Inflate(Decompress::new_gzip(WINDOW_BITS)),
            Coding::Deflate => Engine::Undecided(None),
            // Strict: without windows beyond RFC 7932, which may have a gigabyte.
            Coding::Brotli => Engine::Brotli(Box::new(Brotli::new_strict(
                StandardAlloc::default(),
                StandardAlloc::default(),
                StandardAlloc::default(),
            ))),
            Coding::Zstd => Engine::Zstd(zstd_context().map_err(|said| DecodeError::Garbage {
                coding,
                said: said.to_owned(),
            })?),
        };
        Ok(Codec {
            coding,
            at: At::Start,
            has_ended: false,
            engine,
        })
    }

    pub(super) fn coding(&self) -> Coding {
        self.coding
    }

    /// Whether a stream has begun and not ended.
    pub(super) fn is_within(&self) -> bool {
        self.at == At::Within
    }

    /// Takes from `input` and adds to `out`, up to a piece in all.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        let room = PIECE_BYTES_MAX.saturating_sub(out.len());
        if room == 0 || (input.is_empty() && self.at != At::Within) {
            return Ok(Step::NONE);
        }
        if self.at == At::End
            && let Some(skipped) = self.begin_again(input)?
        {
            return Ok(skipped);
        }
        self.at = At::Within;
        let step = match &mut self.engine {
            Engine::Undecided(first) => {
                let first = *first;
                return self.decide(first, input, out);
            }
            Engine::Inflate(inflate) => inflate_step(inflate, input, out, room),
            Engine::Brotli(state) => brotli_step(state, input, out, room),
            Engine::Zstd(context) => zstd_step(context, input, out, room),
        };
        match step {
            Ok((step, is_end)) => {
                if is_end {
                    self.at = At::End;
                    self.has_ended = true;
                }
                Ok(step)
            }
            // Where it shows depends on how the bytes are split, so it has one name.
            Err(_) if self.has_ended => Err(DecodeError::Trailing(self.coding)),
            Err(said) => Err(self.garbage(&said)),
        }
    }

    fn garbage(&self, said: &dyn fmt::Display) -> DecodeError {
        DecodeError::Garbage {
            coding: self.coding,
            said: said.to_string(),
        }
    }

    /// At a byte behind a whole stream. Gives what was skipped, or None where the byte
    /// begins another stream.
    fn begin_again(&mut self, input: &[u8]) -> Result<Option<Step>, DecodeError> {
        match (&mut self.engine, self.coding) {
            (Engine::Inflate(inflate), Coding::Gzip) => {
                let zeros = input.iter().take_while(|&&byte| byte == 0).count();
                if zeros > 0 {
                    // Archives are padded with zeros, and gzip(1) skips them, too.
                    return Ok(Some(Step {
                        used: zeros,
                        made: 0,
                    }));
                }
                if input.first() != Some(&GZIP_FIRST) {
                    return Err(DecodeError::Trailing(self.coding));
                }
                *inflate = Decompress::new_gzip(WINDOW_BITS);
                self.at = At::Start;
                Ok(None)
            }
            // Its library begins the next frame by itself.
            (Engine::Zstd(_), _) => Ok(None),
            _ => Err(DecodeError::Trailing(self.coding)),
        }
    }

    /// Deflate, with less than two bytes seen: RFC 1950 begins with a method of 8 and a
    /// multiple of 31, which a first block of RFC 1951 hardly does.
    fn decide(
        &mut self,
        first: Option<u8>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, DecodeError> {
        let Some(&byte) = input.first() else {
            return Ok(Step::NONE);
        };
        let taken = Step { used: 1, made: 0 };
        let Some(first) = first else {
            self.engine = Engine::Undecided(Some(byte));
            return Ok(taken);
        };
        let has_header = first & 0x0f == 8 && u16::from_be_bytes([first, byte]).is_multiple_of(31);
        let mut inflate = Decompress::new(has_header);
        let before = out.len();
        let room = PIECE_BYTES_MAX.saturating_sub(before);
        // Two bytes are taken whole: no stream is shorter, and hardly anything comes of them.
        let (_, is_end) = inflate_step(&mut inflate, &[first, byte], out, room)
            .map_err(|said| self.garbage(&said))?;
        self.engine = Engine::Inflate(inflate);
        if is_end {
            self.at = At::End;
        }
        Ok(Step {
            made: out.len() - before,
            ..taken
        })
    }
}

/// A step, and whether the stream is at its end; or what the library says.
type Stepped = Result<(Step, bool), String>;

/// Adds up to `room` bytes to `out`.
fn inflate_step(inflate: &mut Decompress, input: &[u8], out: &mut Vec<u8>, room: usize) -> Stepped {
    let before = out.len();
    let (total_in, total_out) = (inflate.total_in(), inflate.total_out());
    out.resize(before + room, 0);
    let result = inflate.decompress(input, &mut out[before..], FlushDecompress::None);
    let made = (inflate.total_out() - total_out) as usize;
    out.truncate(before + made);
    let used = (inflate.total_in() - total_in) as usize;
    match result {
        Ok(status) => Ok((Step { used, made }, status == Status::StreamEnd)),
        Err(error) => Err(error.message().unwrap_or("invalid data").to_owned()),
    }
}

/// As [`inflate_step`].
fn brotli_step(state: &mut Brotli, input: &[u8], out: &mut Vec<u8>, room: usize) -> Stepped {
    let before = out.len();
    out.resize(before + room, 0);
    let (mut available_in, mut used) = (input.len(), 0);
    let (mut available_out, mut made, mut total) = (room, 0, 0);
    let result = BrotliDecompressStream(
        &mut available_in,
        &mut used,
        input,
        &mut available_out,
        &mut made,
        &mut out[before..],
        &mut total,
        state,
    );
    out.truncate(before + made);
    match result {
        BrotliResult::ResultFailure => Err(format!("{:?}", state.error_code)),
        BrotliResult::ResultSuccess => Ok((Step { used, made }, true)),
        BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {
            Ok((Step { used, made }, false))
        }
    }
}

/// As [`inflate_step`].
fn zstd_step(context: &mut DCtx<'_>, input: &[u8], out: &mut Vec<u8>, room: usize) -> Stepped {
    let before = out.len();
    out.resize(before + room, 0);
    let mut source = InBuffer::around(input);
    let mut target = OutBuffer::around(&mut out[before..]);
    let result = context.decompress_stream(&mut target, &mut source);
    let (used, made) = (source.pos(), target.pos());
    out.truncate(before + made);
    match result {
        Ok(hint) => Ok((Step { used, made }, hint == 0)),
        Err(code) => Err(zstd_safe::get_error_name(code).to_owned()),
    }
}

fn zstd_context() -> Result<DCtx<'static>, &'static str> {
    let mut context = DCtx::try_create().ok_or("no memory for its decoder")?;
    context
        .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))
        .map_err(zstd_safe::get_error_name)?;
    Ok(context)
}
