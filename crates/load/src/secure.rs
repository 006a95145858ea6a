//! TLS under HTTP: the handshake of a connection, and a [`Protocol`] whose bytes are records, over another.
//! Not for: the records themselves (`prony_tls`), or opening the connection (`connection`).

use prony_engine::{Handle, SendBuf, Stream};
use prony_record::{HttpProtocol, LoadTls, SpokenTls};
use prony_tls::{
    Advanced, HandshakeFacts, Handshaking, Offer, PlainData, TlsConfig, TlsError, TlsSession,
    TlsSettings, TlsVersion, TlsVersions,
};

use crate::failure::Failure;
use crate::protocol::{Answered, BufferSource, Progress, Protocol, Reuse};
use crate::source::EncodedRequest;

/// Tickets that are kept for each connection: a server sends some with each handshake, and one is used up by the next.
const TICKETS_EACH: usize = 2;

/// With whom a thread's connections speak TLS, and how.
#[derive(Clone, Debug)]
pub struct SecureTarget {
    config: TlsConfig,
    host: String,
    keeps_sessions: bool,
    offer: Offer,
}

impl SecureTarget {
    /// What `tls` asks for, checked.
    ///
    /// # Errors
    /// [`TlsError::BadSetting`] and [`TlsError::NoRoots`].
    pub fn new(tls: &LoadTls, protocol: HttpProtocol) -> Result<SecureTarget, TlsError> {
        let mut settings = match tls.authorities.is_empty() {
            true => TlsSettings::default(),
            false => TlsSettings::trusting_nobody(),
        };
        for file in &tls.authorities {
            settings.add_roots_file(file)?;
        }
        if tls.logs_keys {
            settings.log_keys_where_asked()?;
        }
        if tls.insecure {
            settings.danger_accept_invalid_certificates();
        }
        if let Some((certificate, key)) = &tls.identity {
            settings.client_certificate_files(certificate, key)?;
        }
        let only = |version| TlsVersions {
            min: version,
            max: version,
        };
        settings.versions = match tls.version {
            None => TlsVersions::default(),
            Some(SpokenTls::Tls12) => only(TlsVersion::Tls12),
            Some(SpokenTls::Tls13) => only(TlsVersion::Tls13),
        };
        let config = settings.build()?;
        config.name_for(&tls.host)?;
        Ok(SecureTarget {
            config,
            host: tls.host.clone(),
            keeps_sessions: !tls.no_resumption,
            offer: match protocol {
                HttpProtocol::Http2 => Offer::Http2,
                HttpProtocol::Http1 => Offer::Http1,
            },
        })
    }

    /// The same for one thread of so many connections, with sessions of its own.
    pub fn for_thread(&self, connections: usize) -> SecureTarget {
        let tickets_max = match self.keeps_sessions {
            true => connections.saturating_mul(TICKETS_EACH),
            false => 0,
        };
        SecureTarget {
            config: self.config.with_tickets(tickets_max),
            ..self.clone()
        }
    }

    /// Goes through the handshake on `stream`. The caller sets the time limit.
    ///
    /// # Errors
    /// [`TlsError`] by name; the alert, where there is one, is posted.
    pub async fn handshake(
        &self,
        handle: &Handle,
        stream: &Stream,
    ) -> Result<(Box<TlsSession>, HandshakeFacts), TlsError> {
        let mut out = handle.take_buffer();
        let (config, host) = (&self.config, &self.host);
        let mut handshaking = Handshaking::client(config, host, self.offer, &mut out)?;
        stream.post(out)?;
        loop {
            let received = stream.recv().await?;
            if received.is_empty() {
                return Err(TlsError::HandshakeCut);
            }
            let mut out = handle.take_buffer();
            let advanced = handshaking.advance(&received, &mut out);
            let posted = stream.post(out);
            match advanced? {
                Advanced::More(more) => handshaking = more,
                Advanced::Done(session, facts) => {
                    posted?;
                    return Ok((session, facts));
                }
            }
            posted?;
        }
    }
}

/// A protocol on one connection under TLS.
pub struct Secure<P> {
    session: Box<TlsSession>,
    http: P,
    /// The plain bytes of a request before they are encrypted.
    plain: Vec<u8>,
    /// Decrypted bytes that `http` has not taken yet.
    decrypted: Vec<u8>,
    used: usize,
    /// What TLS said when it failed.
    fault: Option<TlsError>,
}

impl<P: Protocol> Secure<P> {
    /// `http` on a connection whose handshake is complete.
    pub fn new(session: Box<TlsSession>, http: P) -> Secure<P> {
        Secure {
            session,
            http,
            plain: Vec::new(),
            decrypted: Vec::new(),
            used: 0,
            fault: None,
        }
    }

    fn failed(&mut self, fault: TlsError) -> Failure {
        let failure = Failure::after_handshake(&fault);
        self.fault = Some(fault);
        failure
    }

    /// What happened next, or TLS's own failure.
    fn next_progress(&mut self) -> Result<Result<Progress, Failure>, TlsError> {
        loop {
            if self.used < self.decrypted.len() {
                let mut rest = &self.decrypted[self.used..];
                let progress = self.http.received(&mut rest);
                self.used = self.decrypted.len() - rest.len();
                match progress {
                    Ok(Progress::Pending) => {}
                    other => return Ok(other),
                }
            }
            self.decrypted.clear();
            self.used = 0;
            match self.session.next_data()? {
                PlainData::More => return Ok(Ok(Progress::Pending)),
                PlainData::Ended => return Ok(self.at_end()),
                PlainData::Data(data) => {
                    let mut rest = data;
                    let progress = self.http.received(&mut rest);
                    // An answer mostly ends with its record: then there is nothing to keep.
                    self.decrypted.extend_from_slice(rest);
                    match progress {
                        Ok(Progress::Pending) => {}
                        other => return Ok(other),
                    }
                }
            }
        }
    }

    /// The peer has ended its side as TLS does it.
    fn at_end(&mut self) -> Result<Progress, Failure> {
        match self.http.ended() {
            Ok(answered) => Ok(Progress::Answered(answered)),
            Err(_) => Ok(Progress::Ended),
        }
    }

    /// An answer with what came behind it in the same bytes.
    fn followed(&mut self, answered: Answered) -> Result<Answered, TlsError> {
        if answered.reuse != Reuse::Yes || !self.http.expects_nothing() {
            return Ok(answered);
        }
        let reuse = match self.session.next_data()? {
            PlainData::Data(_) => Reuse::Stray,
            PlainData::Ended => Reuse::ClosedByServer,
            PlainData::More => Reuse::Yes,
        };
        Ok(Answered { reuse, ..answered })
    }
}

impl<P: Protocol> Protocol for Secure<P> {
    fn hello(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        let plain = &mut self.plain;
        let bytes = self.http.hello(&mut || std::mem::take(plain))?;
        let mut out = buffer();
        self.session.encrypt(bytes.as_slice(), &mut out).ok()?;
        Some(SendBuf::Owned(out))
    }

    fn is_ready(&self) -> bool {
        self.http.is_ready()
    }

    fn places(&self) -> usize {
        self.http.places()
    }

    fn send(
        &mut self,
        place: usize,
        request: &EncodedRequest,
        buffer: BufferSource<'_>,
    ) -> Result<SendBuf, Failure> {
        let plain = &mut self.plain;
        let bytes = self
            .http
            .send(place, request, &mut || std::mem::take(plain))?;
        let mut out = buffer();
        let encrypted = self.session.encrypt(bytes.as_slice(), &mut out);
        self.keep(bytes);
        match encrypted {
            Ok(()) => Ok(SendBuf::Owned(out)),
            Err(fault) => Err(self.failed(fault)),
        }
    }

    fn received(&mut self, bytes: &mut &[u8]) -> Result<Progress, Failure> {
        if !bytes.is_empty() {
            self.session.take_in(bytes);
            *bytes = &[];
        }
        let progress = self.next_progress().and_then(|progress| match progress {
            Ok(Progress::Answered(answered)) => self
                .followed(answered)
                .map(|one| Ok(Progress::Answered(one))),
            other => Ok(other),
        });
        progress.unwrap_or_else(|fault| Err(self.failed(fault)))
    }

    fn begun(&mut self, note: &mut dyn FnMut(usize)) {
        self.http.begun(note);
    }

    fn output(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        let plain = &mut self.plain;
        let bytes = self.http.output(&mut || std::mem::take(plain))?;
        let mut out = buffer();
        let encrypted = self.session.encrypt(bytes.as_slice(), &mut out);
        self.keep(bytes);
        encrypted.is_ok().then_some(SendBuf::Owned(out))
    }

    fn close(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        let mut out = buffer();
        let plain = &mut self.plain;
        if let Some(bytes) = self.http.close(&mut || std::mem::take(plain)) {
            self.session.encrypt(bytes.as_slice(), &mut out).ok()?;
        }
        let closed = self.fault.is_none() && self.session.close(&mut out).is_ok();
        closed.then_some(SendBuf::Owned(out))
    }

    fn expects_nothing(&self) -> bool {
        self.http.expects_nothing()
    }

    fn fault(&self) -> Option<&TlsError> {
        self.fault.as_ref()
    }

    /// The end of the stream without TLS's own end cuts an answer that only the end would delimit.
    fn ended(&mut self) -> Result<Answered, Failure> {
        Err(Failure::Closed)
    }
}

impl<P> Secure<P> {
    /// Keeps the memory of bytes that were encrypted.
    fn keep(&mut self, bytes: SendBuf) {
        if let SendBuf::Owned(mut bytes) = bytes {
            bytes.clear();
            self.plain = bytes;
        }
    }
}
