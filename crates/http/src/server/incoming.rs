//! A request that is received in several parts, copied together. Not for: how it is framed (`connection`, `http2`).

use prony_base::Instant;
use prony_wire::{Framing, Method, OwnedHeaders, RequestHead, Version};

use crate::budget::{Budget, Share};
use crate::request::Request;

/// Most bytes of memory that are kept for the bodies of further requests.
const BODY_KEPT_BYTES_MAX: usize = 64 << 10;

/// A request that is received in several chunks, copied together.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Its head was received, its end was not.
    pub(super) is_open: bool,
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) version: Version,
    pub(super) headers: OwnedHeaders,
    pub(super) framing: Framing,
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
    /// When its head was complete.
    pub(super) began: Instant,
    /// At most `body_bytes_max` bytes, by the reader.
    pub(super) body: Vec<u8>,
    /// Its share of the memory for bodies. INVARIANT: no less than the body's capacity.
    pub(super) share: Share,
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming {
            is_open: false,
            method: Method::Get,
            target: String::new(),
            version: Version::Http11,
            headers: OwnedHeaders::default(),
            framing: Framing::None,
            keep_alive: false,
            expects_continue: false,
            began: Instant::ZERO,
            body: Vec::new(),
            share: Share::default(),
        }
    }
}

impl Incoming {
    pub(super) fn start(&mut self, head: &RequestHead<'_>, now: Instant) {
        self.is_open = true;
        self.began = now;
        self.method = head.method;
        self.target.clear();
        self.target.push_str(head.target);
        self.version = head.version;
        self.headers.copy_from(&head.headers);
        self.framing = head.framing;
        self.keep_alive = head.keep_alive;
        self.expects_continue = head.expects_continue;
    }

    pub(super) fn request(&self) -> Request<'_> {
        Request {
            head: RequestHead {
                method: self.method,
                target: &self.target,
                version: self.version,
                headers: self.headers.as_headers(),
                framing: self.framing,
                keep_alive: self.keep_alive,
                expects_continue: self.expects_continue,
            },
            body: &self.body,
        }
    }

    /// Adds to the body; false if there is no memory for it.
    #[inline]
    pub(super) fn put(&mut self, data: &[u8], memory: &Budget) -> bool {
        let length = self.body.len() + data.len();
        if length > self.body.capacity() && !self.grow(length, memory) {
            return false;
        }
        self.body.extend_from_slice(data);
        true
    }

    /// Reserves memory for a body of `length` bytes, and for more where more may follow.
    fn grow(&mut self, length: usize, memory: &Budget) -> bool {
        let whole = match self.framing {
            Framing::Length(whole) => usize::try_from(whole).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let doubled = self.body.capacity().saturating_mul(2).min(whole);
        let capacity = doubled.max(length);
        if !self.share.grow_to(capacity as u64, memory) {
            return false;
        }
        self.body.reserve_exact(capacity - self.body.len());
        true
    }

    pub(super) fn clear(&mut self, memory: &Budget) {
        self.is_open = false;
        self.body.clear();
        // What is kept for the next body must not keep others from having theirs.
        if self.body.capacity() > BODY_KEPT_BYTES_MAX || memory.is_scarce() {
            self.body = Vec::new();
            self.share = Share::default();
        }
    }
}
