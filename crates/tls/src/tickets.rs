//! Sessions of one server, for many connections that go on from them: the newest first, up to a limit.
//! `rustls` keeps eight tickets of a server, and a hundred connections that are opened at once want one each.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The sessions.
#[derive(Debug)]
pub struct Tickets {
    kept: Mutex<KeptSessions>,
    tickets_max: usize,
}

#[derive(Debug, Default)]
struct KeptSessions {
    group: Option<NamedGroup>,
    /// Of TLS 1.2, which may go on any number of times.
    session: Option<Tls12ClientSessionValue>,
    /// Of TLS 1.3, each good for one connection.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Tickets {
    /// None yet; at most so many.
    pub fn new(tickets_max: usize) -> Arc<Tickets> {
        Arc::new(Tickets {
            kept: Mutex::default(),
            tickets_max,
        })
    }

    fn kept(&self) -> MutexGuard<'_, KeptSessions> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.kept().session = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().session.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept().session = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tickets.len() >= self.tickets_max {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().tickets.pop_back()
    }
}
