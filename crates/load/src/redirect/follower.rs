//! Follows answers on a connection: one that leads on is not the final one, and only that is checked.

use std::cell::RefCell;
use std::rc::Rc;

use prony_wire::Headers;

use super::chain::{HopChain, RedirectLead};
use crate::follow::{AnswerEnd, AnswerFollower};
use crate::source::EncodedRequest;

/// Follows one answer after the other.
pub struct HopFollower {
    /// What a final answer is checked by.
    inner: Option<Box<dyn AnswerFollower>>,
    /// The number of the first check that says why a redirect is not followed.
    first_fault: u16,
    chain: Option<Rc<RefCell<HopChain>>>,
    location: Option<Vec<u8>>,
    sets_cookie: bool,
}

impl HopFollower {
    /// A follower whose final answers `inner` follows.
    pub fn new(inner: Option<Box<dyn AnswerFollower>>, first_fault: u16) -> HopFollower {
        HopFollower {
            inner,
            first_fault,
            chain: None,
            location: None,
            sets_cookie: false,
        }
    }
}

impl AnswerFollower for HopFollower {
    fn begin(&mut self, request: Option<&EncodedRequest>) {
        self.location = None;
        self.sets_cookie = false;
        if let Some(request) = request {
            self.chain.clone_from(&request.chain);
            if let Some(chain) = &self.chain {
                chain.borrow_mut().sent(request);
            }
        }
        if let Some(inner) = &mut self.inner {
            inner.begin(request);
        }
    }

    fn head(&mut self, headers: &Headers<'_>) {
        self.location = headers.get("location").map(<[u8]>::to_vec);
        self.sets_cookie = headers.get("set-cookie").is_some();
        if let Some(inner) = &mut self.inner {
            inner.head(headers);
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"location" => self.location = Some(value.to_vec()),
            b"set-cookie" => self.sets_cookie = true,
            _ => {}
        }
        if let Some(inner) = &mut self.inner {
            inner.field(name, value);
        }
    }

    fn body(&mut self, data: &[u8]) {
        if let Some(inner) = &mut self.inner {
            inner.body(data);
        }
    }

    fn passed_over(&mut self, status: u16, fault: Option<u16>) {
        if let Some(inner) = &mut self.inner {
            inner.passed_over(status, fault);
        }
    }

    fn end(&mut self, status: u16) -> AnswerEnd {
        let location = self.location.as_deref();
        let lead = match &self.chain {
            None => RedirectLead::Nowhere,
            Some(chain) => {
                let mut chain = chain.borrow_mut();
                chain.answered(status, location, self.sets_cookie)
            }
        };
        let (end, fault) = match lead {
            RedirectLead::Hop => (AnswerEnd::LeadsOn, None),
            RedirectLead::Fault(fault) => {
                let number = self.first_fault + fault as u16;
                (AnswerEnd::Rejected(number), Some(number))
            }
            RedirectLead::Nowhere => {
                let inner = self.inner.as_mut();
                return inner.map_or(AnswerEnd::Passed, |inner| inner.end(status));
            }
        };
        if let Some(inner) = &mut self.inner {
            inner.passed_over(status, fault);
        }
        end
    }
}
