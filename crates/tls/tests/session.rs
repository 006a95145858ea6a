//! Handshakes and records against `rustls`'s own connections as the peer, at every split and with every cipher, and what
//! goes wrong by its name.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use prony_tls::{
    Advanced, HandshakeFacts, Handshaking, Offer, PlainData, ServerTls, TlsConfig, TlsError,
    TlsSession, TlsSettings, TlsVersion, TlsVersions,
};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::crypto::ring::{self, cipher_suite as suite};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use rustls::{SupportedCipherSuite, version};

const SUITES: [SupportedCipherSuite; 6] = [
    suite::TLS13_AES_128_GCM_SHA256,
    suite::TLS13_AES_256_GCM_SHA384,
    suite::TLS13_CHACHA20_POLY1305_SHA256,
    suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// An authority, and a certificate of it.
struct World {
    authority: String,
    certificate: String,
    key: String,
}

/// Another name each time: authorities of one name would be told apart by their signatures alone.
fn authority_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("authority {}", NUMBER.fetch_add(1, Relaxed))
}

fn world_of(change: impl FnOnce(&mut CertificateParams)) -> World {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, authority_name());
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "a server");
    change(&mut params);
    let certificate = params.signed_by(&key, &authority).unwrap();
    World {
        authority: authority.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

fn world() -> World {
    world_of(|_| {})
}

impl World {
    fn settings(&self) -> TlsSettings {
        let mut settings = TlsSettings::trusting_nobody();
        settings.add_roots_pem(self.authority.as_bytes()).unwrap();
        settings
    }

    fn client(&self) -> TlsConfig {
        self.settings().build().unwrap()
    }

    fn server(&self) -> ServerTls {
        let (certificate, key) = (self.certificate.as_bytes(), self.key.as_bytes());
        ServerTls::from_pem(certificate, key, TlsVersions::default(), Offer::Http1, true).unwrap()
    }

    /// A server of `rustls` that speaks one cipher.
    fn peer(&self, suite: SupportedCipherSuite) -> ServerConnection {
        let mut provider = ring::default_provider();
        provider.cipher_suites = vec![suite];
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[suite.version()])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        ServerConnection::new(Arc::new(config)).unwrap()
    }

    /// A client of `rustls` that speaks one cipher.
    fn peer_client(&self, suite: SupportedCipherSuite) -> ClientConnection {
        let mut provider = ring::default_provider();
        provider.cipher_suites = vec![suite];
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[suite.version()])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        ClientConnection::new(Arc::new(config), name).unwrap()
    }
}

/// What of `rustls`'s connections these tests use.
trait Peer {
    fn take(&mut self, bytes: &[u8]) -> Result<(), rustls::Error>;
    fn give(&mut self) -> Vec<u8>;
    fn read(&mut self) -> Vec<u8>;
    fn write(&mut self, bytes: &[u8]);
}

macro_rules! peer {
    ($connection:ty) => {
        impl Peer for $connection {
            fn take(&mut self, mut bytes: &[u8]) -> Result<(), rustls::Error> {
                while !bytes.is_empty() {
                    self.read_tls(&mut bytes).unwrap();
                    self.process_new_packets()?;
                }
                Ok(())
            }

            fn give(&mut self) -> Vec<u8> {
                let mut bytes = Vec::new();
                while self.wants_write() {
                    self.write_tls(&mut bytes).unwrap();
                }
                bytes
            }

            fn read(&mut self) -> Vec<u8> {
                let mut bytes = Vec::new();
                let _ended_or_would_block = self.reader().read_to_end(&mut bytes);
                bytes
            }

            fn write(&mut self, bytes: &[u8]) {
                self.writer().write_all(bytes).unwrap();
            }
        }
    };
}
peer!(ServerConnection);
peer!(ClientConnection);

/// Goes through a handshake with `peer`, whose bytes come in pieces of `piece`.
fn shake(
    mut ours: Handshaking,
    mut out: Vec<u8>,
    peer: &mut dyn Peer,
    piece: usize,
) -> Result<(Box<TlsSession>, HandshakeFacts), TlsError> {
    let mut done = None;
    loop {
        peer.take(&out).unwrap();
        out.clear();
        let theirs = peer.give();
        if theirs.is_empty() {
            return Ok(done.expect("nobody has anything to say before the handshake is complete"));
        }
        for part in theirs.chunks(piece) {
            match done.as_mut() {
                None => match ours.advance(part, &mut out)? {
                    Advanced::More(more) => ours = more,
                    Advanced::Done(session, facts) => {
                        done = Some((session, facts));
                        // No further handshake is taken: this one has ended.
                        ours = Handshaking::server(&world().server()).unwrap();
                    }
                },
                Some((session, _)) => {
                    session.take_in(part);
                    assert!(matches!(session.next_data(), Ok(PlainData::More)));
                }
            }
        }
    }
}

fn client(
    config: &TlsConfig,
    peer: &mut dyn Peer,
    piece: usize,
) -> Result<(Box<TlsSession>, HandshakeFacts), TlsError> {
    let mut out = Vec::new();
    let ours = Handshaking::client(config, "localhost", Offer::Http1, &mut out)?;
    shake(ours, out, peer, piece)
}

/// All that has come, and whether the peer has ended its side.
fn read(session: &mut TlsSession) -> Result<(Vec<u8>, bool), TlsError> {
    let mut all = Vec::new();
    loop {
        match session.next_data()? {
            PlainData::More => return Ok((all, false)),
            PlainData::Data(data) => all.extend_from_slice(data),
            PlainData::Ended => return Ok((all, true)),
        }
    }
}

fn sent(session: &mut TlsSession, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    session.encrypt(bytes, &mut out).unwrap();
    out
}

/// Data in both directions, longer than a record, until one side ends.
fn converse(session: &mut TlsSession, peer: &mut dyn Peer) {
    for length in [1, 100, 16_384, 16_385, 50_000] {
        let bytes: Vec<u8> = (0..length).map(|n: u32| (n % 251) as u8).collect();
        let mut read_there = Vec::new();
        for part in sent(session, &bytes).chunks(1_000) {
            peer.take(part).unwrap();
            read_there.extend(peer.read());
        }
        assert!(read_there == bytes, "{length} bytes");
        peer.write(&bytes);
        for part in peer.give().chunks(1_000) {
            session.take_in(part);
        }
        assert_eq!(read(session).unwrap(), (bytes, false));
    }
}

#[test]
fn every_cipher_speaks_with_another_implementation_on_both_sides() {
    let world = world();
    for suite in SUITES {
        let mut peer = world.peer(suite);
        let (mut session, facts) = client(&world.client(), &mut peer, 7).unwrap();
        let version = match suite.version() == &version::TLS13 {
            true => "TLS 1.3",
            false => "TLS 1.2",
        };
        assert_eq!((facts.version, facts.is_resumed), (version, false));
        assert_eq!(facts.protocol, b"http/1.1");
        assert_eq!(facts.cipher, suite.suite().as_str().unwrap());
        converse(&mut session, &mut peer);
        peer.send_close_notify();
        session.take_in(&peer.give());
        assert_eq!(read(&mut session).unwrap(), (Vec::new(), true));

        let mut peer = world.peer_client(suite);
        let ours = Handshaking::server(&world.server()).unwrap();
        let (mut session, _) = shake(ours, Vec::new(), &mut peer, 7).unwrap();
        converse(&mut session, &mut peer);
        let mut end = Vec::new();
        session.close(&mut end).unwrap();
        peer.take(&end).unwrap();
        assert!(peer.process_new_packets().unwrap().peer_has_closed());
    }
}

#[test]
fn keys_are_changed_whoever_asks_for_it() {
    let world = world();
    let mut peer = world.peer(suite::TLS13_AES_128_GCM_SHA256);
    let (mut session, _) = client(&world.client(), &mut peer, 10_000).unwrap();
    for _ in 0..3 {
        // Asks for another key in return, which comes before the next data.
        peer.refresh_traffic_keys().unwrap();
        converse(&mut session, &mut peer);
    }
}

#[test]
fn a_peer_that_changes_keys_again_and_again_is_refused() {
    let world = world();
    let mut peer = world.peer(suite::TLS13_AES_128_GCM_SHA256);
    let (mut session, _) = client(&world.client(), &mut peer, 10_000).unwrap();
    for _ in 0..40 {
        peer.refresh_traffic_keys().unwrap();
    }
    session.take_in(&peer.give());
    assert!(matches!(read(&mut session), Err(TlsError::Protocol(_))));
}

#[test]
fn the_second_connection_goes_on_from_the_first_unless_that_is_off() {
    let world = world();
    for (tickets_max, is_resumed) in [(8, true), (0, false)] {
        for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
            let mut settings = world.settings();
            (settings.versions.min, settings.versions.max) = (version, version);
            let config = settings.build().unwrap().with_tickets(tickets_max);
            let server = world.server();
            let seen: Vec<bool> = (0..3)
                .map(|_| {
                    let (_, facts) = ours_with_ours(&config, &server).unwrap();
                    facts.is_resumed
                })
                .collect();
            assert_eq!(seen, [false, is_resumed, is_resumed]);
        }
    }
}

/// Our client with our server: the client's session and facts.
fn ours_with_ours(
    config: &TlsConfig,
    server: &ServerTls,
) -> Result<(Box<TlsSession>, HandshakeFacts), TlsError> {
    let mut to_server = Vec::new();
    let mut to_client = Vec::new();
    let mut client = Some(Handshaking::client(
        config,
        "localhost",
        Offer::Http1,
        &mut to_server,
    )?);
    let mut server = Some(Handshaking::server(server)?);
    let mut done = None;
    while !to_server.is_empty() || !to_client.is_empty() {
        if let Some(ours) = server.take() {
            let taken = std::mem::take(&mut to_server);
            if let Advanced::More(more) = ours.advance(&taken, &mut to_client)? {
                server = Some(more);
            }
        }
        to_server.clear();
        let taken = std::mem::take(&mut to_client);
        match (client.take(), &mut done) {
            (Some(ours), _) => match ours.advance(&taken, &mut to_server)? {
                Advanced::More(more) => client = Some(more),
                Advanced::Done(session, facts) => done = Some((session, facts)),
            },
            (None, Some((session, _))) => {
                session.take_in(&taken);
                assert_eq!(read(session)?, (Vec::new(), false));
            }
            (None, None) => {}
        }
    }
    Ok(done.expect("a session"))
}

#[test]
fn a_handshake_is_the_same_at_every_split_and_waits_where_it_is_cut() {
    let world = world();
    let config = world.client();
    let mut hello = Vec::new();
    let _ours = Handshaking::client(&config, "localhost", Offer::Http1, &mut hello).unwrap();
    for suite in [SUITES[0], SUITES[3]] {
        for piece in [1, 2, 3, 5, 64, 1_000] {
            client(&config, &mut world.peer(suite), piece).unwrap();
        }
        // The server's first flight, cut after each byte: nothing is complete, and nothing is an error.
        let mut out = Vec::new();
        let ours = Handshaking::client(&config, "localhost", Offer::Http1, &mut out).unwrap();
        let mut peer = world.peer(suite);
        peer.take(&out).unwrap();
        let mut ours = Some(ours);
        let flight = peer.give();
        for byte in &flight[..flight.len() - 1] {
            match ours.take().unwrap().advance(&[*byte], &mut out).unwrap() {
                Advanced::More(more) => ours = Some(more),
                Advanced::Done(..) => panic!("complete before the last byte"),
            }
        }
    }
}

#[test]
fn each_byte_that_is_changed_on_the_way_is_noticed() {
    let world = world();
    for suite in SUITES {
        let mut peer = world.peer(suite);
        let (mut session, _) = client(&world.client(), &mut peer, 10_000).unwrap();
        peer.write(b"Hello");
        let record = peer.give();
        for at in 0..record.len() {
            let mut changed = record.clone();
            changed[at] ^= 0x40;
            let mut copy = client(&world.client(), &mut world.peer(suite), 10_000)
                .unwrap()
                .0;
            copy.take_in(&changed);
            // A length that is too large waits for more; anything else fails.
            match copy.next_data() {
                Err(TlsError::Protocol(_)) => {}
                Ok(PlainData::More) if (3..5).contains(&at) => {}
                other => panic!("{suite:?}, byte {at}: {other:?}"),
            }
        }
        session.take_in(&record);
        assert_eq!(read(&mut session).unwrap().0, b"Hello");
    }
}

#[test]
fn a_fault_after_the_handshake_ended_without_an_alert() {
    use rustls::{AlertDescription as Alert, Error};
    let world = world();
    for suite in SUITES {
        let mut peer = world.peer_client(suite);
        let ours = Handshaking::server(&world.server()).unwrap();
        let (mut session, _) = shake(ours, Vec::new(), &mut peer, 10_000).unwrap();
        assert!(!session.owes_alert());
        peer.write(b"Hello");
        let mut record = peer.give();
        *record.last_mut().unwrap() ^= 1;
        session.take_in(&record);
        let fault = session.next_data().unwrap_err().to_string();
        assert!(session.owes_alert());
        // Nothing that follows is looked at.
        peer.write(b"Hello");
        session.take_in(&peer.give());
        assert_eq!(session.next_data().unwrap_err().to_string(), fault);
        let mut end = Vec::new();
        session.close(&mut end).unwrap();
        assert_eq!(
            peer.take(&end),
            Err(Error::AlertReceived(Alert::BadRecordMac))
        );
    }
    let mut peer = world.peer_client(SUITES[0]);
    let ours = Handshaking::server(&world.server()).unwrap();
    let (mut session, _) = shake(ours, Vec::new(), &mut peer, 10_000).unwrap();
    session.take_in(&[23, 3, 3, 0xff, 0xff]);
    assert!(session.next_data().is_err());
    let mut end = Vec::new();
    session.close(&mut end).unwrap();
    assert_eq!(
        peer.take(&end),
        Err(Error::AlertReceived(Alert::RecordOverflow))
    );
}

#[test]
fn a_fault_at_the_end_of_a_handshake_was_read_on_into_another() {
    let world = world();
    for suite in SUITES {
        let mut peer = world.peer_client(suite);
        let mut ours = Handshaking::server(&world.server()).unwrap();
        let mut out = Vec::new();
        let fault = loop {
            let mut theirs = peer.give();
            if !peer.is_handshaking() {
                peer.write(b"Hello");
            }
            theirs.extend(peer.give());
            if !peer.is_handshaking() || suite.version() == &version::TLS12 && !out.is_empty() {
                // The last record is changed, and what is behind it is none.
                *theirs.last_mut().unwrap() ^= 1;
                theirs.resize(theirs.len() + 100, 0);
            }
            out.clear();
            match ours.advance(&theirs, &mut out) {
                Ok(Advanced::More(more)) => ours = more,
                Ok(Advanced::Done(..)) => panic!("{suite:?}: complete"),
                Err(fault) => break fault,
            }
            peer.take(&out).unwrap();
        };
        assert!(matches!(fault, TlsError::Protocol(_)), "{fault}");
        assert!(
            matches!(peer.take(&out), Err(rustls::Error::AlertReceived(_))),
            "{suite:?}"
        );
    }
}

#[test]
fn a_certificate_signed_by_itself_was_refused_for_its_signature() {
    // As where a server made itself a new one, and its old one is trusted: the names are the same.
    let named = |key: &KeyPair| {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "localhost");
        params.self_signed(key).unwrap().pem()
    };
    let authority = named(&KeyPair::generate().unwrap());
    for algorithm in [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ED25519,
    ] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let world = World {
            authority: authority.clone(),
            certificate: named(&key),
            key: key.serialize_pem(),
        };
        let refused = refused(&world.client(), &world);
        assert!(matches!(refused, TlsError::SelfSigned), "{refused}");
        // Given beside the other it is trusted, and only for its names.
        let mut both = world.settings();
        both.add_roots_pem(world.certificate.as_bytes()).unwrap();
        assert!(ours_with_ours(&both.build().unwrap(), &world.server()).is_ok());
    }
}

fn refused(config: &TlsConfig, world: &World) -> TlsError {
    match ours_with_ours(config, &world.server()) {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error,
    }
}

#[test]
fn certificates_are_refused_by_name() {
    let good = world();
    let other = world();
    assert!(matches!(
        refused(&other.client(), &good),
        TlsError::UnknownIssuer
    ));
    let over = world_of(|params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    assert!(matches!(
        refused(&over.client(), &over),
        TlsError::Expired(_)
    ));
    let early = world_of(|params| params.not_before = rcgen::date_time_ymd(3000, 1, 1));
    assert!(matches!(
        refused(&early.client(), &early),
        TlsError::NotYetValid(_)
    ));
    let elsewhere = world_of(|params| {
        params.subject_alt_names = vec![rcgen::SanType::DnsName("a.test".try_into().unwrap())];
    });
    assert!(matches!(
        refused(&elsewhere.client(), &elsewhere),
        TlsError::WrongHost { .. }
    ));
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let own = World {
        authority: good.authority.clone(),
        certificate: own.cert.pem(),
        key: own.signing_key.serialize_pem(),
    };
    assert!(matches!(refused(&own.client(), &own), TlsError::SelfSigned));
    let mut careless = own.settings();
    careless.danger_accept_invalid_certificates();
    assert!(ours_with_ours(&careless.build().unwrap(), &own.server()).is_ok());
}

#[test]
fn no_version_and_no_protocol_in_common_are_alerts_by_name() {
    let world = world();
    let (certificate, key) = (world.certificate.as_bytes(), world.key.as_bytes());
    let old = TlsVersions {
        min: TlsVersion::Tls12,
        max: TlsVersion::Tls12,
    };
    let old = ServerTls::from_pem(certificate, key, old, Offer::Http1, true).unwrap();
    let mut settings = world.settings();
    settings.versions.min = TlsVersion::Tls13;
    assert_eq!(
        alert_of(&settings.build().unwrap(), &old),
        "protocol_version"
    );
    let versions = TlsVersions::default();
    let http2 = ServerTls::from_pem(certificate, key, versions, Offer::Http2, true).unwrap();
    assert_eq!(alert_of(&world.client(), &http2), "no_application_protocol");
}

/// The alert that our server sends our client.
fn alert_of(config: &TlsConfig, server: &ServerTls) -> String {
    let (mut hello, mut out) = (Vec::new(), Vec::new());
    let client = Handshaking::client(config, "localhost", Offer::Http1, &mut hello).unwrap();
    let server = Handshaking::server(server).unwrap();
    assert!(server.advance(&hello, &mut out).is_err());
    match client.advance(&out, &mut hello) {
        Err(TlsError::Alert(name)) => name,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no alert"),
    }
}

#[test]
fn a_server_without_tls_is_named() {
    let mut out = Vec::new();
    let config = world().client();
    let ours = Handshaking::client(&config, "localhost", Offer::Http1, &mut out).unwrap();
    let Err(error) = ours.advance(b"HTTP/1.1 400 Bad Request\r\n", &mut out) else {
        panic!("it was taken for TLS");
    };
    assert!(error.to_string().contains("use http://"), "{error}");
}

#[test]
fn a_handshake_without_end_is_refused() {
    let mut out = Vec::new();
    let config = world().client();
    let mut ours = Handshaking::client(&config, "localhost", Offer::Http1, &mut out).unwrap();
    // A record of 16 KiB after the other with parts of one message of 16 MiB.
    let mut record = vec![22, 3, 3, 0x40, 0];
    record.extend([2, 0xff, 0xff, 0xff]);
    record.resize(5 + (1 << 14), 0);
    let mut is_refused = false;
    for _ in 0..100 {
        match ours.advance(&record, &mut out) {
            Ok(Advanced::More(more)) => ours = more,
            Ok(Advanced::Done(..)) => panic!("complete"),
            Err(_) => {
                is_refused = true;
                break;
            }
        }
    }
    assert!(is_refused, "it takes in as much as it is sent");
}

#[test]
fn settings_that_trust_nobody_do_not_ask_the_system_whom_to_trust() {
    assert!(TlsSettings::default().system_roots);
    assert!(!TlsSettings::trusting_nobody().system_roots);
}

#[test]
fn a_certificate_of_the_client_that_cannot_be_read_is_named() {
    let world = world();
    let (certificate, key) = (world.certificate.as_bytes(), world.key.as_bytes());
    for (chain, key, what) in [
        (&b"nothing"[..], key, "certificate of the client"),
        (certificate, &b"nothing"[..], "key of the client"),
    ] {
        let refused = world.settings().client_certificate_pem(chain, key);
        assert!(
            matches!(&refused, Err(TlsError::BadSetting { what: named, .. }) if *named == what),
            "{refused:?}"
        );
    }
}
