//! The bytes of a connection, with TLS under them or without: blocking, with a time-out on every wait.
//! Not for: what the bytes mean ([`super::BlockingConnection`]).

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use prony_tls::{
    Advanced, HandshakeFacts, Handshaking, Offer, PlainData, TlsConfig, TlsError, TlsSession,
    TlsSettings,
};

/// Bytes that one read takes at most.
const READ_BYTES_MAX: usize = 64 << 10;

/// A server, as one connects to it.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The address it listens at.
    pub address: SocketAddr,
    /// What `Host` says.
    pub authority: &'a str,
    /// What its certificate must be; `None`: there is no TLS.
    pub trust: Option<&'a Trust>,
}

/// The certificates of a server that are taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Trust {
    /// The one in this file, and no other.
    Certificate(PathBuf),
    /// One that an authority of this machine has signed.
    Machine,
}

/// A connection.
pub struct BlockingStream {
    tcp: TcpStream,
    session: Option<Box<TlsSession>>,
    buffer: Vec<u8>,
}

impl BlockingStream {
    /// Connects, and goes through the handshake where there is TLS, for which `offer` is what ALPN offers.
    ///
    /// # Errors
    /// A sentence.
    pub fn open(
        to: &Destination<'_>,
        offer: Offer,
        timeout: Duration,
    ) -> Result<(BlockingStream, HandshakeFacts), String> {
        let failed = |error: io::Error| format!("cannot connect to {}: {error}", to.address);
        let tcp = TcpStream::connect_timeout(&to.address, timeout).map_err(failed)?;
        tcp.set_nodelay(true).map_err(failed)?;
        tcp.set_read_timeout(Some(timeout)).map_err(failed)?;
        tcp.set_write_timeout(Some(timeout)).map_err(failed)?;
        let mut stream = BlockingStream {
            tcp,
            session: None,
            buffer: vec![0; READ_BYTES_MAX],
        };
        let Some(trust) = to.trust else {
            return Ok((stream, HandshakeFacts::default()));
        };
        let facts = trust
            .config()
            .map_err(io::Error::other)
            .and_then(|config| stream.shake_hands(&config, name_in(to.authority), offer))
            .map_err(|error| format!("no TLS with {}: {error}", to.address))?;
        Ok((stream, facts))
    }

    fn shake_hands(
        &mut self,
        config: &TlsConfig,
        name: &str,
        offer: Offer,
    ) -> io::Result<HandshakeFacts> {
        let mut out = Vec::new();
        let mut handshaking =
            Handshaking::client(config, name, offer, &mut out).map_err(io::Error::other)?;
        loop {
            self.tcp.write_all(&out)?;
            out.clear();
            let count = self.tcp.read(&mut self.buffer)?;
            if count == 0 {
                return Err(io::Error::other(TlsError::HandshakeCut));
            }
            let advanced = handshaking.advance(&self.buffer[..count], &mut out);
            match advanced {
                Ok(Advanced::More(more)) => handshaking = more,
                Ok(Advanced::Done(session, facts)) => {
                    self.tcp.write_all(&out)?;
                    self.session = Some(session);
                    return Ok(facts);
                }
                Err(error) => {
                    // The alert is a courtesy: the error is what is reported.
                    let _ = self.tcp.write_all(&out);
                    return Err(io::Error::other(error));
                }
            }
        }
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// Of the socket, and of TLS.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(session) = &mut self.session else {
            return self.tcp.write_all(bytes);
        };
        let mut records = Vec::new();
        session
            .encrypt(bytes, &mut records)
            .map_err(io::Error::other)?;
        self.tcp.write_all(&records)
    }

    /// Appends what comes next to `received`; false where the peer has ended.
    ///
    /// # Errors
    /// Of the socket, and of TLS, the end of TCP without TLS's own among them.
    pub fn read_more(&mut self, received: &mut Vec<u8>) -> io::Result<bool> {
        let before = received.len();
        loop {
            if let Some(session) = &mut self.session {
                loop {
                    match session.next_data().map_err(io::Error::other)? {
                        PlainData::Data(data) => received.extend_from_slice(data),
                        PlainData::Ended => return Ok(received.len() > before),
                        PlainData::More => break,
                    }
                }
                if received.len() > before {
                    return Ok(true);
                }
            }
            let count = match self.tcp.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let bytes = &self.buffer[..count];
            match &mut self.session {
                None => {
                    received.extend_from_slice(bytes);
                    return Ok(count > 0);
                }
                Some(_) if count == 0 => {
                    return Err(io::Error::other("the connection ended without TLS's end"));
                }
                Some(session) => session.take_in(bytes),
            }
        }
    }
}

impl Trust {
    fn config(&self) -> Result<TlsConfig, TlsError> {
        let mut settings = TlsSettings::default();
        if let Trust::Certificate(file) = self {
            settings = TlsSettings::trusting_nobody();
            settings.add_roots_file(file)?;
        }
        settings.build()
    }
}

/// The name or address in `HOST:PORT`, without brackets.
pub fn name_in(authority: &str) -> &str {
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::name_in;

    #[test]
    fn a_name_has_neither_port_nor_brackets() {
        let names = ["127.0.0.1:80", "[::1]:80", "a.test:443"].map(name_in);
        assert_eq!(names, ["127.0.0.1", "::1", "a.test"]);
    }
}
