//! What of a request becomes which value of the environ, found before Lua is entered.
//!
//! Header names come again and again, so what became of one is kept: of at most
//! [`NAMES_MAX`] spellings, because whoever sends a request may invent names.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use prony_http::{Header, Method, Request, Version};
use rustc_hash::FxHashMap;

use super::failure::Failure;
use crate::percent;

/// Spellings of header names that are kept, and keys.
pub(super) const NAMES_MAX: usize = 256;

/// A slice without its lifetime. It is made of a slice, and read by `unsafe` code alone, which
/// knows that the slice is still there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Bytes {
    start: *const u8,
    length: usize,
}

impl Bytes {
    /// The first of [`len`](Bytes::len) bytes.
    pub fn start(self) -> *const u8 {
        self.start
    }

    pub fn len(self) -> usize {
        self.length
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes {
            start: bytes.as_ptr(),
            length: bytes.len(),
        }
    }
}

/// One request, looked through. Its memory is used again for the next.
///
/// INVARIANT: all slices are of the request that was last given to [`Plan::begin`], of the
/// memory here, or constants; they are used only while that request is borrowed.
#[derive(Debug)]
pub(super) struct Plan {
    pub method: Method,
    pub version: Version,
    /// Percent-encoding taken off.
    pub path: Bytes,
    pub query: Bytes,
    pub target: Bytes,
    pub body: Bytes,
    /// The body came in chunks: its length is known only now.
    pub is_chunked: bool,
    pub lines: Vec<Line>,
    /// Keys that are not kept, one after another.
    pub keys: Vec<u8>,
    pub peer: Peer,
    seen: [u64; NAMES_MAX / 64],
    decoded: Vec<u8>,
    key: Vec<u8>,
}

/// One value that a header gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub key: LineKey,
    pub value: Bytes,
    /// The key has a value already: what stands between that and this.
    pub joint: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum LineKey {
    /// A value of the registry.
    Kept(i32),
    /// These bytes of the plan's keys.
    Own(usize, usize),
}

/// The client's address as text; that of the last client is kept.
#[derive(Debug, Default)]
pub(super) struct Peer {
    ip: Option<IpAddr>,
    pub ip_text: String,
    port: u16,
    pub port_text: String,
}

impl Default for Plan {
    fn default() -> Plan {
        let none = Bytes::from(&b""[..]);
        Plan {
            method: Method::Get,
            version: Version::Http11,
            path: none,
            query: none,
            target: none,
            body: none,
            is_chunked: false,
            lines: Vec::new(),
            keys: Vec::new(),
            peer: Peer::default(),
            seen: [0; NAMES_MAX / 64],
            decoded: Vec::new(),
            key: Vec::new(),
        }
    }
}

impl Plan {
    /// Looks at all but the headers.
    pub fn begin(&mut self, request: &Request<'_>, peer: Option<SocketAddr>) {
        self.method = request.method();
        self.version = request.version();
        self.query = request.query().as_bytes().into();
        self.target = request.target().as_bytes().into();
        self.body = request.body().into();
        self.path = request.path().as_bytes().into();
        if request.path().contains('%') {
            self.decoded.clear();
            percent::decode(request.path(), &mut self.decoded);
            self.path = self.decoded.as_slice().into();
        }
        self.is_chunked = false;
        self.lines.clear();
        self.keys.clear();
        self.seen = [0; NAMES_MAX / 64];
        self.peer.set(peer);
    }

    /// Looks at a header. `keep` makes a value of the registry of a key.
    #[inline]
    pub fn add(
        &mut self,
        header: Header<'_>,
        names: &mut Names,
        keep: impl FnOnce(&[u8]) -> Result<i32, Failure>,
    ) -> Result<(), Failure> {
        let is = match names.uses.get(header.name.as_bytes()) {
            Some(&is) => is,
            None => self.learn(header.name.as_bytes(), names, keep)?,
        };
        match is {
            Use::Key(number) => {
                let (word, bit) = (usize::from(number) / 64, 1 << (number % 64));
                let is_repeated = self.seen[word] & bit != 0;
                self.seen[word] |= bit;
                let key = names.keys[usize::from(number)];
                self.put(
                    LineKey::Kept(key.reference),
                    header.value,
                    is_repeated,
                    key.joint,
                );
            }
            Use::OwnKey => self.add_rare(header.value),
            Use::Chunked => self.is_chunked = true,
            Use::Nothing => {}
        }
        Ok(())
    }

    fn put(&mut self, key: LineKey, value: &[u8], is_repeated: bool, joint: Option<&'static str>) {
        // What may be given once only and is given again is the same, or was refused.
        if is_repeated && joint.is_none() {
            return;
        }
        self.lines.push(Line {
            key,
            value: value.into(),
            joint: joint.filter(|_| is_repeated),
        });
    }

    /// A header whose key found no place among those that are kept: the key is in `key`.
    #[cold]
    fn add_rare(&mut self, value: &[u8]) {
        let before = self.lines.iter().find_map(|line| match line.key {
            LineKey::Own(start, end) if self.keys[start..end] == self.key => Some((start, end)),
            _ => None,
        });
        let (start, end) = before.unwrap_or_else(|| {
            let start = self.keys.len();
            self.keys.extend_from_slice(&self.key);
            (start, self.keys.len())
        });
        self.put(
            LineKey::Own(start, end),
            value,
            before.is_some(),
            joint(&self.key),
        );
    }

    /// Finds out what is done with a header of a name that was not seen before.
    #[cold]
    fn learn(
        &mut self,
        name: &[u8],
        names: &mut Names,
        keep: impl FnOnce(&[u8]) -> Result<i32, Failure>,
    ) -> Result<Use, Failure> {
        let is = match translate(name, &mut self.key) {
            Some(is) => is,
            None => match names.numbers.get(self.key.as_slice()) {
                Some(&number) => Use::Key(number),
                None if names.keys.len() == NAMES_MAX => return Ok(Use::OwnKey),
                None => Use::Key(names.add(&self.key, keep(&self.key)?)),
            },
        };
        if names.uses.len() < NAMES_MAX {
            names.uses.insert(name.into(), is);
        }
        Ok(is)
    }
}

impl Peer {
    fn set(&mut self, peer: Option<SocketAddr>) {
        let ip = peer.map(|peer| peer.ip().to_canonical());
        if ip != self.ip {
            self.ip = ip;
            self.ip_text.clear();
            if let Some(ip) = ip {
                // Writing to a string cannot fail.
                let _ = write!(self.ip_text, "{ip}");
            }
        }
        let port = peer.map_or(0, |peer| peer.port());
        if port != self.port || self.port_text.is_empty() {
            self.port = port;
            self.port_text.clear();
            let _ = write!(self.port_text, "{port}");
        }
    }
}

/// What is done with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It is the value of the key of this number.
    Key(u16),
    /// It is the value of a key that is not kept.
    OwnKey,
    /// The application does not see it: an underscore in its name would be taken for a
    /// hyphen.
    Nothing,
    /// It says that the body came in chunks, which were put together.
    Chunked,
}

/// The names that were seen, and their keys.
#[derive(Debug, Default)]
pub(super) struct Names {
    uses: FxHashMap<Box<[u8]>, Use>,
    numbers: FxHashMap<Box<[u8]>, u16>,
    /// At most [`NAMES_MAX`].
    keys: Vec<Key>,
}

#[derive(Clone, Copy, Debug)]
struct Key {
    reference: i32,
    joint: Option<&'static str>,
}

impl Names {
    fn add(&mut self, key: &[u8], reference: i32) -> u16 {
        let number = self.keys.len() as u16;
        let joint = joint(key);
        self.keys.push(Key { reference, joint });
        self.numbers.insert(key.into(), number);
        number
    }
}

/// What stands between the values of a header that is given more than once (RFC 9110,
/// section 5.3; RFC 9113, section 8.2.3); None: the first counts.
fn joint(key: &[u8]) -> Option<&'static str> {
    match key {
        b"HTTP_COOKIE" => Some("; "),
        b"CONTENT_LENGTH" | b"CONTENT_TYPE" => None,
        _ => Some(", "),
    }
}

/// The key of a header, in `out`; or what is done with it instead.
fn translate(name: &[u8], out: &mut Vec<u8>) -> Option<Use> {
    if name.contains(&b'_') {
        return Some(Use::Nothing);
    }
    if name.eq_ignore_ascii_case(b"transfer-encoding") {
        return Some(Use::Chunked);
    }
    out.clear();
    let is_bare = ["content-type", "content-length"]
        .iter()
        .any(|bare| name.eq_ignore_ascii_case(bare.as_bytes()));
    if !is_bare {
        out.extend_from_slice(b"HTTP_");
    }
    out.extend(name.iter().map(|&byte| match byte {
        b'-' => b'_',
        other => other.to_ascii_uppercase(),
    }));
    None
}
