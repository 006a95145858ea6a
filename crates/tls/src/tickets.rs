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
    sessions: Mutex<StoredSessions>,
    tickets_max: usize,
}

#[derive(Debug, Default)]
struct StoredSessions {
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
            sessions: Mutex::default(),
            tickets_max,
        })
    }

    fn sessions(&self) -> MutexGuard<'_, StoredSessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.sessions().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.sessions().session = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.sessions().session.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.sessions().session = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut sessions = self.sessions();
        if sessions.tickets.len() >= self.tickets_max {
            sessions.tickets.pop_front();
        }
        sessions.tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.sessions().tickets.pop_back()
    }
}
