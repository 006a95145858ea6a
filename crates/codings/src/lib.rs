//! Content codings off the bodies of answers: gzip, deflate, br, zstd, and stacks of them.
//!
//! For: bytes in, bytes out, in bounded memory and however they are split ([`Decoder`]);
//! and what to ask for ([`DecodeSettings::accept_encoding`]). Not for: transfer codings
//! (`prony-wire`), or parts of a body (206), which no decoder can begin in the middle of.
//!
//! ```
//! use prony_codings::{DecodeSettings, Decoder, PIECE_BYTES_MAX};
//!
//! let settings = DecodeSettings::all();
//! let mut decoder = Decoder::new(["GZip"], &settings)?.expect("there is a coding");
//! let mut rest: &[u8] = &[
//!     31, 139, 8, 0, 0, 0, 0, 0, 0, 255, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
//! ];
//! let mut body = Vec::new();
//! let mut piece = Vec::new();
//! loop {
//!     let used = decoder.decode(rest, &mut piece)?;
//!     rest = &rest[used..];
//!     body.extend_from_slice(&piece);
//!     // A piece that is not full says that nothing is held back.
//!     if piece.len() < PIECE_BYTES_MAX {
//!         break;
//!     }
//!     piece.clear();
//! }
//! decoder.finish()?;
//! assert_eq!(body, b"hello");
//! # Ok::<(), prony_codings::DecodeError>(())
//! ```
//!
//! # Limits
//! A few bytes can stand for gigabytes. Output comes in pieces, so that memory is bounded
//! by the windows of the codings (gzip and deflate 32 KiB, zstd 8 MiB as RFC 9659 has it,
//! br 16 MiB) and one piece for each; what comes out in all is bounded by
//! [`DecodeSettings::decoded_bytes_max`] and by [`DecodeSettings::ratio_max`].

#![forbid(unsafe_code)]

mod codec;

use std::fmt;

use codec::{Codec, Step};

/// The most that one call gives, in bytes.
pub const PIECE_BYTES_MAX: usize = 64 << 10;
/// The most codings that one body may have.
pub const CODINGS_MAX: usize = 4;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// RFC 1952; several members in a row are one body.
    Gzip,
    /// RFC 1950, and RFC 1951 alone, which servers send under the same name.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878; several frames in a row are one body.
    Zstd,
}

impl Coding {
    /// Its name in headers.
    pub const fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    fn from_name(name: &str) -> Option<Coding> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match () {
            () if is("gzip") || is("x-gzip") => Some(Coding::Gzip),
            () if is("deflate") => Some(Coding::Deflate),
            () if is("br") => Some(Coding::Brotli),
            () if is("zstd") => Some(Coding::Zstd),
            () => None,
        }
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is asked for, and how much may come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeSettings {
    /// Codings to ask for, the best first. None: no Accept-Encoding is sent, and bodies are
    /// left as they come.
    pub codings: Vec<Coding>,
    /// Bytes that may come out of one body.
    pub decoded_bytes_max: u64,
    /// How many times longer a body may become, once `ratio_free_bytes` have come out of it.
    /// No deflated stream is over 1032; br and zstd have no such bound, and lines that are
    /// all the same do become a few thousand times shorter.
    pub ratio_max: u64,
    /// Bytes that come out before the ratio counts.
    pub ratio_free_bytes: u64,
}

impl Default for DecodeSettings {
    /// Nothing is asked for, and nothing decoded.
    fn default() -> DecodeSettings {
        DecodeSettings {
            codings: Vec::new(),
            decoded_bytes_max: 16 << 30,
            ratio_max: 10_000,
            ratio_free_bytes: 16 << 20,
        }
    }
}

impl DecodeSettings {
    /// All codings, those first that give the shortest bodies.
    pub fn all() -> DecodeSettings {
        DecodeSettings {
            codings: vec![Coding::Zstd, Coding::Brotli, Coding::Gzip, Coding::Deflate],
            ..DecodeSettings::default()
        }
    }

    /// The value of the Accept-Encoding header; None where nothing is asked for.
    pub fn accept_encoding(&self) -> Option<String> {
        let names: Vec<&str> = self.codings.iter().map(|coding| coding.name()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// Takes the codings of one body off it.
pub struct Decoder {
    /// In the order in which bytes run through them: the coding named last comes first.
    /// INVARIANT: one to [`CODINGS_MAX`].
    stages: Vec<CodingStep>,
    taken: u64,
    limits: DecodeSettings,
    failed: Option<DecodeError>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codings = self.stages.iter().map(|stage| stage.codec.coding());
        f.debug_list().entries(codings).finish()
    }
}

/// One coding, and what came out of the one before and waits for it.
struct CodingStep {
    codec: Codec,
    /// At most one piece; unused in the first stage, which reads from the caller.
    waiting: Vec<u8>,
    waiting_from: usize,
    made: u64,
}

impl Decoder {
    /// For a body whose Content-Encoding has these values, in their order. None where they
    /// name no coding but `identity`.
    ///
    /// # Errors
    /// [`DecodeError::Unknown`] and [`DecodeError::TooMany`].
    pub fn new<'a>(
        values: impl IntoIterator<Item = &'a str>,
        settings: &DecodeSettings,
    ) -> Result<Option<Decoder>, DecodeError> {
        let mut stages = Vec::new();
        let names = values.into_iter().flat_map(|value| value.split(','));
        for name in names.map(str::trim) {
            if name.is_empty() || name.eq_ignore_ascii_case("identity") {
                continue;
            }
            let coding = Coding::from_name(name)
                .ok_or_else(|| DecodeError::Unknown(name.chars().take(100).collect()))?;
            if stages.len() == CODINGS_MAX {
                return Err(DecodeError::TooMany);
            }
            stages.push(CodingStep {
                codec: Codec::new(coding)?,
                waiting: Vec::new(),
                waiting_from: 0,
                made: 0,
            });
        }
        stages.reverse();
        Ok((!stages.is_empty()).then(|| Decoder {
            stages,
            taken: 0,
            limits: settings.clone(),
            failed: None,
        }))
    }

    /// Takes some of `input` and adds what comes of it to `out`, which is never longer than
    /// [`PIECE_BYTES_MAX`] then. Returns how many bytes were taken. Where `out` is full,
    /// more may be held back: empty it and call again with the rest of the input, be it
    /// nothing. Where it is not full, all was taken and all that can be given was.
    ///
    /// # Errors
    /// [`DecodeError`]; the first is final and comes again.
    pub fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.run(input, out);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    /// To be called at the end of the body. One without a single byte is fine.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`], and what failed before.
    pub fn finish(&mut self) -> Result<(), DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let cut = self
            .stages
            .iter()
            .find(|stage| stage.codec.is_within() || stage.waiting.len() > stage.waiting_from);
        match cut {
            Some(stage) => Err(DecodeError::Truncated(stage.codec.coding())),
            None => Ok(()),
        }
    }

    fn run(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, DecodeError> {
        out.reserve(PIECE_BYTES_MAX.saturating_sub(out.len()));
        let mut used = 0;
        loop {
            let mut has_moved = false;
            // From the last, which makes room for those before it.
            for place in (0..self.stages.len()).rev() {
                let step = self.step(place, &input[used..], out)?;
                has_moved |= step.used > 0 || step.made > 0;
                if place == 0 {
                    used += step.used;
                    self.taken += step.used as u64;
                }
                self.check(place)?;
            }
            if !has_moved || out.len() >= PIECE_BYTES_MAX {
                return Ok(used);
            }
        }
    }

    /// One call of one codec.
    fn step(&mut self, place: usize, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        let (stage, after) = self.stages[place..]
            .split_first_mut()
            .ok_or(DecodeError::TooMany)?;
        let out = match after.first_mut() {
            None => out,
            Some(next) if next.waiting_from < next.waiting.len() => return Ok(Step::NONE),
            Some(next) => {
                next.waiting.clear();
                next.waiting_from = 0;
                next.waiting.reserve(PIECE_BYTES_MAX);
                &mut next.waiting
            }
        };
        let step = match place {
            0 => stage.codec.step(input, out)?,
            _ => {
                let step = stage
                    .codec
                    .step(&stage.waiting[stage.waiting_from..], out)?;
                stage.waiting_from += step.used;
                step
            }
        };
        stage.made += step.made as u64;
        Ok(step)
    }

    fn check(&self, place: usize) -> Result<(), DecodeError> {
        let made = self.stages[place].made;
        let limits = &self.limits;
        if made > limits.decoded_bytes_max {
            return Err(DecodeError::TooLong {
                decoded_bytes_max: limits.decoded_bytes_max,
            });
        }
        let allowed = self.taken.saturating_mul(limits.ratio_max);
        if made > limits.ratio_free_bytes && made > allowed {
            return Err(DecodeError::TooDense {
                taken: self.taken,
                made,
                ratio_max: limits.ratio_max,
            });
        }
        Ok(())
    }
}

/// Why a body could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// No coding that is known here; the first 100 characters of its name.
    Unknown(String),
    /// More codings than [`CODINGS_MAX`].
    TooMany,
    /// The bytes are not in the coding that the header names.
    Garbage {
        /// The coding.
        coding: Coding,
        /// What its library says.
        said: String,
    },
    /// The body ended within the coding.
    Truncated(Coding),
    /// More bytes follow the end of the coding.
    Trailing(Coding),
    /// More bytes came out than [`DecodeSettings::decoded_bytes_max`].
    TooLong {
        /// The limit.
        decoded_bytes_max: u64,
    },
    /// So many more came out than went in that it can only be meant to harm.
    TooDense {
        /// Bytes that went in.
        taken: u64,
        /// Bytes that came out.
        made: u64,
        /// The limit, from [`DecodeSettings::ratio_max`].
        ratio_max: u64,
    },
}

impl DecodeError {
    /// Its name in one word, as programs print it.
    pub const fn kind_name(&self) -> &'static str {
        match self {
            DecodeError::Unknown(_) | DecodeError::TooMany => "unknown_coding",
            DecodeError::Garbage { .. } => "bad_coding",
            DecodeError::Truncated(_) => "coding_cut_off",
            DecodeError::Trailing(_) => "coding_overrun",
            DecodeError::TooLong { .. } | DecodeError::TooDense { .. } => "decoded_too_long",
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Unknown(name) => write!(f, "unknown content coding `{name}`"),
            DecodeError::TooMany => {
                write!(f, "more content codings than codings_max = {CODINGS_MAX}")
            }
            DecodeError::Garbage { coding, said } => {
                write!(f, "the body is not in {coding} as its header says: {said}")
            }
            DecodeError::Truncated(coding) => {
                write!(f, "the body ended in the middle of its {coding} coding")
            }
            DecodeError::Trailing(coding) => {
                write!(
                    f,
                    "bytes that are no {coding} follow the end of the {coding} coding"
                )
            }
            DecodeError::TooLong { decoded_bytes_max } => write!(
                f,
                "the decoded body is longer than decoded_bytes_max = {decoded_bytes_max}"
            ),
            DecodeError::TooDense {
                taken,
                made,
                ratio_max,
            } => write!(
                f,
                "{taken} bytes decode to {made} or more, more than ratio_max = {ratio_max} times \
                 as many"
            ),
        }
    }
}

impl std::error::Error for DecodeError {}

#[cfg(test)]
mod tests;
