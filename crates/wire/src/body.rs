//! Bodies: where they end, and chunked coding taken off.
//!
//! Both readers use it; they differ in one leniency (white space between a
//! chunk size and its CRLF, which some servers pad with).

use crate::facts::name_fault;
use crate::gather::{Gather, Gathered};
use crate::headers::is_value_byte;
use crate::{Error, HEADERS_CAP, Headers, Limit, Limits};

/// How a body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunked coding.
    Chunked,
    /// All bytes until the stream ends; responses only.
    UntilClose,
}

/// The end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End<'a> {
    /// Whether this side allows another message on the connection.
    pub keep_alive: bool,
    /// Trailers, which are apart from headers on purpose: they came too late
    /// to be trusted as such.
    pub trailers: Headers<'a>,
}

/// One step in reading a body.
pub(crate) enum Step<'a> {
    /// All input is used; more is needed.
    More,
    /// Bytes of the body.
    Data(&'a [u8]),
    /// The body is whole.
    End(Headers<'a>),
}

/// A body under way.
#[derive(Debug)]
pub(crate) enum Body {
    Length { left: u64 },
    Chunked(Chunked),
    UntilClose { taken: u64 },
}

impl Body {
    /// A body in this framing. `lenient`: of a response.
    pub(crate) fn new(framing: Framing, lenient: bool) -> Body {
        match framing {
            Framing::None => Body::Length { left: 0 },
            Framing::Length(left) => Body::Length { left },
            Framing::Chunked => Body::Chunked(Chunked::new(lenient)),
            Framing::UntilClose => Body::UntilClose { taken: 0 },
        }
    }

    /// Whether the stream's end is this body's end.
    pub(crate) fn ends_with_stream(&self) -> bool {
        matches!(self, Body::UntilClose { .. })
    }

    /// Whether nothing of it is missing.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Body::Length { left: 0 })
    }

    /// How many bytes follow that are nothing but body, as far as known.
    pub(crate) fn plain_bytes_left(&self) -> u64 {
        match self {
            Body::Length { left } => *left,
            Body::Chunked(chunked) => chunked.data_left(),
            Body::UntilClose { .. } => u64::MAX,
        }
    }

    /// Counts `count` bytes as taken that never came through `next`.
    pub(crate) fn skip(&mut self, count: u64) {
        match self {
            Body::Length { left } => *left = left.saturating_sub(count),
            Body::Chunked(chunked) => chunked.skip(count),
            Body::UntilClose { taken } => *taken = taken.saturating_add(count),
        }
    }

    #[inline]
    pub(crate) fn next<'a>(
        &mut self,
        input: &'a [u8],
        gather: &'a mut Gather,
        limits: &Limits,
    ) -> Result<(usize, Step<'a>), Error> {
        match self {
            Body::Length { left: 0 } => Ok((0, Step::End(Headers::default()))),
            Body::Length { left } => Ok(data(input, left)),
            Body::Chunked(chunked) => chunked.next(input, gather, limits),
            Body::UntilClose { taken } => {
                let mut left = limits.body_bytes_max.saturating_sub(*taken);
                if left == 0 && !input.is_empty() {
                    return Err(Limit::Body.reached(limits));
                }
                let (used, step) = data(input, &mut left);
                *taken += used as u64;
                Ok((used, step))
            }
        }
    }
}

/// Takes up to `left` bytes of `input` as data.
fn data<'a>(input: &'a [u8], left: &mut u64) -> (usize, Step<'a>) {
    if input.is_empty() {
        return (0, Step::More);
    }
    let used = usize::try_from(*left)
        .unwrap_or(usize::MAX)
        .min(input.len());
    *left -= used as u64;
    (used, Step::Data(&input[..used]))
}

/// Takes chunked coding off, byte by byte outside of data, so that a line
/// split over chunks needs no buffer.
#[derive(Debug)]
pub(crate) struct Chunked {
    place: Place,
    /// Bytes of the current chunk-size line.
    line_bytes: usize,
    /// Bytes of data announced so far.
    announced: u64,
    lenient: bool,
}

/// Where in the coding the next byte stands.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In a chunk size; `None` before its first digit.
    Size(Option<u64>),
    /// After a size, within white space, which leads to an extension (RFC 9112, section
    /// 7.1.1), or, in responses only, to CRLF.
    Space(u64),
    /// In extensions.
    Extension(u64),
    /// After the CR of a size line.
    SizeFeed(u64),
    /// In data.
    Data(u64),
    /// After data.
    DataReturn,
    /// After the CR that follows data.
    DataFeed,
    /// After the size line of the last chunk.
    Trailers,
}

impl Chunked {
    fn new(lenient: bool) -> Chunked {
        Chunked {
            place: Place::Size(None),
            line_bytes: 0,
            announced: 0,
            lenient,
        }
    }

    fn data_left(&self) -> u64 {
        match self.place {
            Place::Data(left) => left,
            _ => 0,
        }
    }

    fn skip(&mut self, count: u64) {
        if let Place::Data(left) = self.place {
            self.place = after_data(left.saturating_sub(count));
        }
    }

    fn next<'a>(
        &mut self,
        input: &'a [u8],
        gather: &'a mut Gather,
        limits: &Limits,
    ) -> Result<(usize, Step<'a>), Error> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match self.place {
                Place::Data(mut left) => {
                    let (taken, step) = data(rest, &mut left);
                    self.place = after_data(left);
                    return Ok((used + taken, step));
                }
                Place::Trailers => {
                    let (taken, step) = trailers(rest, gather, limits)?;
                    return Ok((used + taken, step));
                }
                _ => {
                    let Some(&byte) = rest.first() else {
                        return Ok((used, Step::More));
                    };
                    self.place = self.framing_byte(byte, limits)?;
                    used += 1;
                }
            }
        }
    }

    /// One byte that is neither data nor trailer.
    #[inline]
    fn framing_byte(&mut self, byte: u8, limits: &Limits) -> Result<Place, Error> {
        match (self.place, byte) {
            (Place::Size(Some(size)) | Place::Extension(size), b'\r') => Ok(Place::SizeFeed(size)),
            (Place::Space(size), b'\r') if self.lenient => Ok(Place::SizeFeed(size)),
            (Place::SizeFeed(size), b'\n') => self.chunk(size, limits),
            (Place::DataReturn, b'\r') => Ok(Place::DataFeed),
            (Place::DataFeed, b'\n') => Ok(Place::Size(None)),
            (Place::SizeFeed(_) | Place::DataFeed, _) => Err(Error::BareCarriageReturn),
            (Place::DataReturn, _) => Err(Error::BadChunkEnd),
            (place, byte) => self.size_line_byte(place, byte, limits),
        }
    }

    /// A byte of a size line before its CRLF.
    fn size_line_byte(&mut self, place: Place, byte: u8, limits: &Limits) -> Result<Place, Error> {
        self.line_bytes += 1;
        if self.line_bytes > limits.chunk_line_bytes_max {
            return Err(Limit::ChunkLine.reached(limits));
        }
        match (place, byte) {
            (_, b'\n') => Err(Error::BareLineFeed),
            (Place::Size(Some(size)) | Place::Space(size), b';') => Ok(Place::Extension(size)),
            (Place::Size(Some(size)) | Place::Space(size), b' ' | b'\t') => Ok(Place::Space(size)),
            (Place::Size(size), _) => Ok(Place::Size(Some(more_hex(size.unwrap_or(0), byte)?))),
            (Place::Extension(size), _) if is_value_byte(byte) => Ok(Place::Extension(size)),
            (Place::Extension(_), _) => Err(Error::BadChunkExtension),
            _ => Err(Error::BadChunkSize),
        }
    }

    /// A size line is whole.
    fn chunk(&mut self, size: u64, limits: &Limits) -> Result<Place, Error> {
        self.line_bytes = 0;
        if size == 0 {
            return Ok(Place::Trailers);
        }
        match self.announced.checked_add(size) {
            Some(announced) if announced <= limits.body_bytes_max => {
                self.announced = announced;
                Ok(Place::Data(size))
            }
            _ => Err(Limit::Body.reached(limits)),
        }
    }
}

fn after_data(left: u64) -> Place {
    match left {
        0 => Place::DataReturn,
        left => Place::Data(left),
    }
}

fn more_hex(size: u64, byte: u8) -> Result<u64, Error> {
    let digit = (byte as char).to_digit(16).ok_or(Error::BadChunkSize)?;
    match size >> 60 {
        0 => Ok(size << 4 | u64::from(digit)),
        _ => Err(Error::ChunkSizeOverflow),
    }
}

/// The trailer section, which is at least an empty line.
fn trailers<'a>(
    input: &'a [u8],
    gather: &'a mut Gather,
    limits: &Limits,
) -> Result<(usize, Step<'a>), Error> {
    match gather.take(input, limits.trailer_bytes_max)? {
        (used, Gathered::Part) => Ok((used, Step::More)),
        (_, Gathered::TooLong { .. }) => Err(Limit::Trailer.reached(limits)),
        (used, Gathered::Whole(b"\r\n")) => Ok((used, Step::End(Headers::default()))),
        (used, Gathered::Whole(section)) => Ok((used, Step::End(parse_trailers(section, limits)?))),
    }
}

fn parse_trailers<'a>(section: &'a [u8], limits: &Limits) -> Result<Headers<'a>, Error> {
    let mut table = [httparse::EMPTY_HEADER; HEADERS_CAP];
    let limits = &Limits {
        headers_max: limits.headers_max.min(HEADERS_CAP),
        ..*limits
    };
    let table = &mut table[..limits.headers_max];
    match httparse::parse_headers(section, table) {
        Ok(httparse::Status::Complete((used, headers))) if used == section.len() => {
            Ok(Headers::checked(section, headers.len()))
        }
        Ok(_) => Err(Error::BadHeaderName),
        Err(error) => Err(name_fault((b"", section), error, limits)),
    }
}
