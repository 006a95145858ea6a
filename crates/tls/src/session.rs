//! A connection after its handshake: plain bytes to records and back. Sending and receiving allocate nothing once
//! their buffers have grown.

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{
    AlertDescription, ConnectionTrafficSecrets, Error, ExtractedSecrets, ProtocolVersion,
};

use crate::error::TlsError;
use crate::records::{PLAIN_BYTES_MAX, PeerFault, RecordKey, content};

/// A buffer that has grown beyond this is given back once it is empty.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Most bytes of a message of the handshake that comes after it, such as a ticket.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Most records in a row that carry nothing.
const EMPTY_MAX: u32 = 32;
/// Changes of the key that a peer may ask for in a row, before data comes.
const UPDATES_MAX: u32 = 32;

/// Messages that come after a handshake, as RFC 8446 numbers them.
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
const HELLO_REQUEST: u8 = 0;
/// A key update that asks for none in return, whole.
const KEY_UPDATE_MESSAGE: [u8; 5] = [KEY_UPDATE, 0, 0, 1, 0];
const ALERT_WARNING: u8 = 1;
const ALERT_FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
const USER_CANCELED: u8 = 90;

/// The part of `rustls` that a connection still needs: tickets and new keys.
pub enum Kernel {
    Client(KernelConnection<ClientConnectionData>),
    Server(KernelConnection<ServerConnectionData>),
}

/// A connection whose handshake is complete.
pub struct TlsSession {
    sending: RecordKey,
    receiving: RecordKey,
    kernel: Kernel,
    is_tls13: bool,
    shows_certificate: bool,
    /// Received bytes; those before `used` have been returned.
    incoming: Vec<u8>,
    used: usize,
    /// Data that came with the end of the handshake.
    first: Vec<u8>,
    has_returned_first: bool,
    /// The beginning of a message of the handshake.
    message: Vec<u8>,
    /// The peer wants this side's key changed.
    owes_update: bool,
    updates: u32,
    empty: u32,
    has_ended: bool,
    /// A violation by the peer: nothing that follows is read.
    fault: Option<PeerFault>,
    /// Most records with one key.
    records_max: u64,
}

/// The next thing that the peer sent.
#[derive(Debug, Eq, PartialEq)]
pub enum PlainData<'a> {
    /// More bytes are needed.
    More,
    /// Plain bytes.
    Data(&'a [u8]),
    /// The peer has ended its side, as TLS does it. Nothing follows.
    Ended,
}

/// The meaning of a decrypted record; of data, its place.
enum RecordStep {
    Again,
    Ended,
    Data(usize, usize),
}

impl TlsSession {
    pub(crate) fn new(
        secrets: ExtractedSecrets,
        kernel: Kernel,
        (incoming, first): (Vec<u8>, Vec<u8>),
        shows_certificate: bool,
    ) -> Result<TlsSession, TlsError> {
        let (version, suite) = match &kernel {
            Kernel::Client(client) => (client.protocol_version(), client.negotiated_cipher_suite()),
            Kernel::Server(server) => (server.protocol_version(), server.negotiated_cipher_suite()),
        };
        let is_tls13 = version == ProtocolVersion::TLSv1_3;
        let records_max = match suite {
            rustls::SupportedCipherSuite::Tls13(suite) => suite.common.confidentiality_limit,
            rustls::SupportedCipherSuite::Tls12(suite) => suite.common.confidentiality_limit,
        };
        Ok(TlsSession {
            sending: RecordKey::new(secrets.tx, is_tls13)?,
            receiving: RecordKey::new(secrets.rx, is_tls13)?,
            kernel,
            is_tls13,
            shows_certificate,
            incoming,
            used: 0,
            has_returned_first: first.is_empty(),
            first,
            message: Vec::new(),
            owes_update: false,
            updates: 0,
            empty: 0,
            has_ended: false,
            fault: None,
            records_max,
        })
    }

    /// Encrypts `plain` and appends its records to `out`.
    ///
    /// # Errors
    /// A connection of TLS 1.2 has sent as many records as its key may be used for.
    pub fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        for part in plain.chunks(PLAIN_BYTES_MAX) {
            if self.owes_update || self.sending.count() >= self.records_max {
                self.change_key(out)?;
            }
            self.sending.seal(content::DATA, part, out)?;
        }
        Ok(())
    }

    /// Appends this side's end to `out`, after a fault of the peer the alert that names it; nothing may be sent after it.
    ///
    /// # Errors
    /// As of [`encrypt`](TlsSession::encrypt).
    pub fn close(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        let alert = match self.alert_owed() {
            None => [ALERT_WARNING, CLOSE_NOTIFY],
            Some(alert) => [ALERT_FATAL, alert.into()],
        };
        self.sending.seal(content::ALERT, &alert, out)
    }

    /// Whether the peer did something wrong, which [`close`](TlsSession::close) tells it.
    pub fn owes_alert(&self) -> bool {
        self.alert_owed().is_some()
    }

    fn alert_owed(&self) -> Option<AlertDescription> {
        self.fault.as_ref()?.alert
    }

    /// Takes in received bytes, which [`next_data`](TlsSession::next_data) then decrypts.
    pub fn take_in(&mut self, received: &[u8]) {
        if self.used == self.incoming.len() {
            self.incoming.clear();
            self.incoming.shrink_to(KEPT_BYTES_MAX);
        } else if self.used > 0 {
            self.incoming.copy_within(self.used.., 0);
            self.incoming.truncate(self.incoming.len() - self.used);
        }
        self.used = 0;
        self.incoming.extend_from_slice(received);
    }

    /// The next of what was taken in: to be called until it needs more bytes.
    ///
    /// # Errors
    /// The peer's alert, or what it did wrong; the connection is then of no more use.
    pub fn next_data(&mut self) -> Result<PlainData<'_>, TlsError> {
        if !self.has_returned_first {
            self.has_returned_first = true;
            return Ok(PlainData::Data(&self.first));
        }
        if let Some(fault) = &self.fault {
            return Err(fault.error.clone());
        }
        match self.next_record() {
            Ok(None) => Ok(PlainData::More),
            Ok(Some(RecordStep::Data(from, to))) => Ok(PlainData::Data(&self.incoming[from..to])),
            Ok(Some(_)) => Ok(PlainData::Ended),
            Err(fault) => {
                let error = fault.error.clone();
                self.fault = Some(fault);
                Err(error)
            }
        }
    }

    /// The next record that has data or ends the peer's side; None: more bytes are needed.
    fn next_record(&mut self) -> Result<Option<RecordStep>, PeerFault> {
        while !self.has_ended {
            let rest = &mut self.incoming[self.used..];
            let length = match self.receiving.length_of(rest)? {
                Some(length) if length <= rest.len() => length,
                _ => return Ok(None),
            };
            let begin = self.used;
            let opened = self.receiving.open(&mut rest[..length])?;
            self.used += length;
            match self.step(opened.content, begin + opened.from, begin + opened.to)? {
                RecordStep::Again => {}
                RecordStep::Ended => self.has_ended = true,
                data => return Ok(Some(data)),
            }
        }
        Ok(Some(RecordStep::Ended))
    }

    /// The meaning of the record whose plain bytes are from `from` to `to`.
    fn step(&mut self, kind: u8, from: usize, to: usize) -> Result<RecordStep, PeerFault> {
        match kind {
            content::HANDSHAKE | content::ALERT if self.is_tls13 && from == to => {
                Err(unexpected("an empty record"))
            }
            _ if self.is_tls13 && kind != content::HANDSHAKE && !self.message.is_empty() => {
                Err(unexpected("a record within a message"))
            }
            content::DATA if from == to => {
                self.empty += 1;
                match self.empty > EMPTY_MAX {
                    true => Err(unexpected("too many empty records")),
                    false => Ok(RecordStep::Again),
                }
            }
            content::DATA => {
                (self.empty, self.updates) = (0, 0);
                Ok(RecordStep::Data(from, to))
            }
            content::ALERT => self.alert(from, to),
            content::HANDSHAKE => {
                let part = &self.incoming[from..to];
                if self.message.len() + part.len() > MESSAGE_BYTES_MAX {
                    let too_long = "a message that is too long";
                    return Err(broke(AlertDescription::DecodeError, too_long));
                }
                self.message.extend_from_slice(part);
                self.messages()?;
                Ok(RecordStep::Again)
            }
            content::CHANGE_CIPHER_SPEC => {
                Err(unexpected("a change of the cipher after the handshake"))
            }
            _ => Err(unexpected("a record of an unknown type")),
        }
    }

    fn alert(&self, from: usize, to: usize) -> Result<RecordStep, PeerFault> {
        match self.incoming[from..to] {
            [_, CLOSE_NOTIFY] => Ok(RecordStep::Ended),
            [_, USER_CANCELED] => Ok(RecordStep::Again),
            // Before TLS 1.3 there are warnings, which end nothing.
            [ALERT_WARNING, _] if !self.is_tls13 => Ok(RecordStep::Again),
            [_, alert] => Err(PeerFault {
                alert: None,
                error: self.error(Error::AlertReceived(AlertDescription::from(alert))),
            }),
            _ => {
                let length = "an alert of another length than two bytes";
                Err(broke(AlertDescription::DecodeError, length))
            }
        }
    }

    /// Takes the messages that are whole.
    fn messages(&mut self) -> Result<(), PeerFault> {
        let mut message = std::mem::take(&mut self.message);
        let mut used = 0;
        while let Some(&[kind, a, b, c]) = message[used..].first_chunk::<4>() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            let Some(body) = message.get(used + 4..used + 4 + length) else {
                break;
            };
            self.message(kind, body)?;
            used += 4 + length;
            if kind == KEY_UPDATE && self.is_tls13 && used < message.len() {
                return Err(unexpected(
                    "a message behind a change of the key, in one record",
                ));
            }
        }
        message.drain(..used);
        self.message = message;
        Ok(())
    }

    fn message(&mut self, kind: u8, body: &[u8]) -> Result<(), PeerFault> {
        match (kind, &mut self.kernel) {
            (NEW_SESSION_TICKET, Kernel::Client(client)) if self.is_tls13 => {
                let taken = client.handle_new_session_ticket(body);
                taken.map_err(|error| PeerFault {
                    alert: Some(AlertDescription::DecodeError),
                    error: self.error(error),
                })
            }
            (KEY_UPDATE, _) if self.is_tls13 => {
                self.updates += 1;
                let (true, [asks @ (0 | 1)]) = (self.updates <= UPDATES_MAX, body) else {
                    let how = "a change of the key as it may not be";
                    return Err(broke(AlertDescription::IllegalParameter, how));
                };
                self.owes_update |= *asks == 1;
                let secret = match &mut self.kernel {
                    Kernel::Client(client) => client.update_rx_secret(),
                    Kernel::Server(server) => server.update_rx_secret(),
                };
                self.receiving = self.renewed(secret).map_err(|error| PeerFault {
                    alert: Some(AlertDescription::InternalError),
                    error,
                })?;
                Ok(())
            }
            // A peer of TLS 1.2 may ask for another handshake, and may be ignored.
            (HELLO_REQUEST, Kernel::Client(_)) if !self.is_tls13 => Ok(()),
            _ => Err(unexpected("a message that had no place there")),
        }
    }

    /// Announces a new key for what this side sends, and takes it.
    #[cold]
    fn change_key(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        if !self.is_tls13 {
            let spent = "the key of this connection may be used for no further record";
            return Err(TlsError::Protocol(spent.to_owned()));
        }
        self.owes_update = false;
        self.sending
            .seal(content::HANDSHAKE, &KEY_UPDATE_MESSAGE, out)?;
        let secret = match &mut self.kernel {
            Kernel::Client(client) => client.update_tx_secret(),
            Kernel::Server(server) => server.update_tx_secret(),
        };
        self.sending = self.renewed(secret)?;
        Ok(())
    }

    fn renewed(
        &self,
        secret: Result<(u64, ConnectionTrafficSecrets), Error>,
    ) -> Result<RecordKey, TlsError> {
        let secret = secret.map_err(|error| self.error(error))?;
        RecordKey::new(secret, self.is_tls13)
    }

    fn error(&self, error: Error) -> TlsError {
        TlsError::new(error, self.shows_certificate)
    }
}

fn broke(alert: AlertDescription, how: &str) -> PeerFault {
    PeerFault::new(alert, &format!("the peer broke the rules: {how}"))
}

fn unexpected(how: &str) -> PeerFault {
    broke(AlertDescription::UnexpectedMessage, how)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, version};

    use super::*;
    use crate::{Advanced, Handshaking, Offer, ServerTls, TlsVersions};

    /// A server of TLS 1.3 after its handshake, and the key of its client.
    fn shaken() -> (Box<TlsSession>, RecordKey) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.enable_secret_extraction = true;
        let name = ServerName::try_from("localhost").unwrap();
        let mut peer = ClientConnection::new(Arc::new(config), name).unwrap();
        let (certificate, key) = (certificate.as_bytes(), key.as_bytes());
        let versions = TlsVersions::default();
        let server = ServerTls::from_pem(certificate, key, versions, Offer::Http1, false).unwrap();
        let mut ours = Handshaking::server(&server).unwrap();
        loop {
            let (mut theirs, mut out) = (Vec::new(), Vec::new());
            peer.write_tls(&mut theirs).unwrap();
            match ours.advance(&theirs, &mut out).unwrap() {
                Advanced::More(more) => ours = more,
                Advanced::Done(session, _) => {
                    let secrets = peer.dangerous_extract_secrets().unwrap();
                    return (session, RecordKey::new(secrets.tx, true).unwrap());
                }
            }
            peer.read_tls(&mut out.as_slice()).unwrap();
            peer.process_new_packets().unwrap();
        }
    }

    /// The lengths of what is in each record.
    fn lengths(mut bytes: &[u8]) -> Vec<usize> {
        let mut all = Vec::new();
        while let [_, _, _, high, low, rest @ ..] = bytes {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            all.push(length);
            bytes = &rest[length..];
        }
        all
    }

    /// Behind data and a message come the type of what it is, and 16 bytes of a tag.
    const DATA: usize = 1 + 17;
    const CHANGE: usize = 5 + 17;

    #[test]
    fn a_key_is_changed_where_the_peer_asks_and_where_it_is_spent() {
        for (asks, sent) in [(0, vec![DATA]), (1, vec![CHANGE, DATA])] {
            let (mut session, mut key) = shaken();
            let mut update = Vec::new();
            let message = [KEY_UPDATE, 0, 0, 1, asks];
            key.seal(content::HANDSHAKE, &message, &mut update).unwrap();
            session.take_in(&update);
            assert!(matches!(session.next_data(), Ok(PlainData::More)));
            let mut out = Vec::new();
            session.encrypt(b"x", &mut out).unwrap();
            assert_eq!(lengths(&out), sent, "{asks}");
            out.clear();
            session.encrypt(b"x", &mut out).unwrap();
            assert_eq!(lengths(&out), [DATA], "{asks}");
        }
        let (mut session, _) = shaken();
        session.records_max = session.sending.count() + 2;
        let mut out = Vec::new();
        for _ in 0..4 {
            session.encrypt(b"x", &mut out).unwrap();
        }
        assert_eq!(lengths(&out), [DATA, DATA, CHANGE, DATA, DATA]);
        assert_eq!(session.sending.count(), 2);
    }

    #[test]
    fn a_record_whose_end_comes_later_is_kept() {
        let (mut session, mut key) = shaken();
        let mut sealed = Vec::new();
        for plain in [&b"one"[..], &b"and another"[..]] {
            key.seal(content::DATA, plain, &mut sealed).unwrap();
        }
        let (first, rest) = sealed.split_at(sealed.len() - 3);
        session.take_in(first);
        assert!(matches!(session.next_data(), Ok(PlainData::Data(b"one"))));
        assert!(matches!(session.next_data(), Ok(PlainData::More)));
        session.take_in(rest);
        assert!(matches!(
            session.next_data(),
            Ok(PlainData::Data(b"and another"))
        ));
    }

    #[test]
    fn what_may_not_follow_a_handshake_is_an_unexpected_message() {
        let update = &KEY_UPDATE_MESSAGE[..];
        let (half, rest) = update.split_at(2);
        let twice = [update, update].concat();
        let data = (content::DATA, &b"Hello"[..]);
        for (how, records) in [
            ("zeros alone", vec![(0, &b"\0\0"[..])]),
            (
                "a message behind another key",
                vec![(content::HANDSHAKE, &twice[..])],
            ),
            (
                "data in it",
                vec![(content::HANDSHAKE, half), data, (content::HANDSHAKE, rest)],
            ),
            (
                "an alert in it",
                vec![(content::HANDSHAKE, half), (content::ALERT, &[1, 0])],
            ),
            ("an empty message", vec![(content::HANDSHAKE, b"")]),
            ("an empty alert", vec![(content::ALERT, b"")]),
        ] {
            let (mut session, mut key) = shaken();
            let mut sealed = Vec::new();
            for (content, plain) in records {
                key.seal(content, plain, &mut sealed).unwrap();
            }
            session.take_in(&sealed);
            let fault = session.next_record().map(|_| ()).unwrap_err();
            assert_eq!(
                fault.alert,
                Some(AlertDescription::UnexpectedMessage),
                "{how}"
            );
        }
        // In the clear, and as it was meant.
        let (mut session, _) = shaken();
        session.take_in(&[content::CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1]);
        let fault = session.next_record().map(|_| ()).unwrap_err();
        assert_eq!(fault.alert, Some(AlertDescription::UnexpectedMessage));
        let (mut session, mut key) = shaken();
        let mut sealed = Vec::new();
        for (content, plain) in [(content::HANDSHAKE, half), (content::HANDSHAKE, rest)] {
            key.seal(content, plain, &mut sealed).unwrap();
        }
        session.take_in(&sealed);
        assert!(matches!(session.next_data(), Ok(PlainData::More)));
    }
}
