//! The client's TLS, in simulated worlds and over real sockets: whom it trusts, and
//! that every fault has its name.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use crate::secure::{
    Authority, Demands, Identity, Over, ServerTls, Valid, self_signed, self_signed_when,
};
use prony_base::Nanos;
use prony_client::tls::{Offer, TlsConfig, TlsError, TlsSettings, TlsStream, TlsVersion};
use prony_client::{Client, Error, Kind, RequestPhase, Settings, Transport};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, DriverChoice, Handle, ListenOptions, Stream, run};
use rustls::ServerConfig;

const HOST: &str = "host.test";

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 443))
}

/// Plays a server, which gets the first connection, and a client, which gets its
/// transport, in a simulated world.
fn play<T: 'static, S: Future<Output = ()> + 'static, C: Future<Output = T> + 'static>(
    seed: u64,
    server: impl FnOnce(Handle, Stream) -> S + 'static,
    client: impl FnOnce(Handle, Transport) -> C + 'static,
) -> T {
    let mut world = World::new(seed, SimOptions::default());
    world.spawn_loop(&Config::default(), async move |handle| {
        let listener = handle.listen(address(), &ListenOptions::default());
        let (stream, _) = listener.expect("listens").accept().await.expect("a client");
        server(handle, stream).await;
    });
    let outcome = world.spawn_loop(&Config::default(), async move |handle| {
        handle.sleep(Nanos::from_millis(1)).await;
        let stream = handle.connect(address()).await.expect("connects");
        client(handle, Transport::Plain(stream)).await
    });
    let played = world.run(Nanos::from_secs(600));
    let outcome = outcome.take();
    played.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    outcome.expect("the client has ended")
}

/// A handshake with a server of this configuration.
fn shake(server: Arc<ServerConfig>, settings: &TlsSettings) -> Result<(), TlsError> {
    let config = settings.build().expect("good settings");
    play(
        1,
        async move |handle, stream| {
            let mut server = ServerTls::new(&handle, stream, server);
            if server.handshake().await.is_ok() {
                let _ = server.write(b"hello").await;
                // Until the client has gone.
                while server.read().await.is_ok_and(|bytes| !bytes.is_empty()) {}
            }
        },
        async move |handle, transport| {
            let secured = TlsStream::handshake(&handle, transport, HOST, &config, Offer::Either);
            let mut stream = secured.await?;
            match poll_fn(|cx| stream.poll_recv(cx)).await {
                Ok(bytes) => {
                    assert_eq!(&bytes[..], b"hello");
                    Ok(())
                }
                Err(error) => Err(TlsError::within(&error).expect("of TLS").clone()),
            }
        },
    )
}

fn signed(name: &str, valid: Valid) -> (Authority, Arc<ServerConfig>) {
    let authority = Authority::new("an authority");
    let server = authority.sign(name, valid).server(Demands::default());
    (authority, server)
}

#[test]
fn a_server_that_an_own_authority_signed_is_trusted() {
    let (authority, server) = signed(HOST, Valid::Now);
    shake(server, &authority.trusted()).expect("trusted");
}

#[test]
fn nobody_is_trusted_by_accident() {
    let (_, server) = signed(HOST, Valid::Now);
    let stranger = Authority::new("a stranger").trusted();
    let error = shake(server, &stranger).expect_err("nobody knows the issuer");
    assert!(matches!(error, TlsError::UnknownIssuer), "{error:?}");
    assert!(error.is_about_trust());
}

#[test]
fn each_fault_of_a_certificate_has_its_name() {
    for (host, valid, name, words) in [
        (HOST, Valid::NoMore, "tls_expired", "has expired, "),
        (HOST, Valid::NotYet, "tls_not_yet_valid", "not valid yet"),
        (
            "other.test",
            Valid::Now,
            "tls_wrong_host",
            "is not for host.test, but for ",
        ),
    ] {
        let (authority, server) = signed(host, valid);
        let error = shake(server, &authority.trusted()).expect_err(name);
        assert_eq!(error.name(), name, "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.is_about_trust());
    }
}

#[test]
fn a_self_signed_certificate_is_named_so_and_trusted_where_it_is_given() {
    for is_authority in [false, true] {
        let identity = self_signed(HOST, is_authority);
        let server = identity.server(Demands::default());
        let stranger = Authority::new("a stranger").trusted();
        let error = shake(server, &stranger).expect_err("self-signed");
        assert!(matches!(error, TlsError::SelfSigned), "{error:?}");
    }
    for is_authority in [false, true] {
        let identity = self_signed(HOST, is_authority);
        shake(identity.server(Demands::default()), &trusting(&identity)).expect("given");
    }
}

/// Trusts this certificate and nobody else.
fn trusting(identity: &Identity) -> TlsSettings {
    let mut settings = TlsSettings::trusting_nobody();
    let pem = identity.certificate.pem();
    settings.add_roots_pem(pem.as_bytes()).expect("a root");
    settings
}

#[test]
fn a_certificate_that_is_given_is_still_held_to_its_name_and_dates() {
    for is_authority in [false, true] {
        for (host, valid, name) in [
            (HOST, Valid::NoMore, "tls_expired"),
            (HOST, Valid::NotYet, "tls_not_yet_valid"),
            ("other.test", Valid::Now, "tls_wrong_host"),
        ] {
            let identity = self_signed_when(host, is_authority, valid);
            let server = identity.server(Demands::default());
            let error = shake(server, &trusting(&identity)).expect_err(name);
            assert_eq!(error.name(), name, "{error:?}");
        }
    }
}

#[test]
fn a_given_certificate_is_trusted_without_its_issuer_and_only_itself() {
    let authority = Authority::new("an authority");
    let (given, other) = (
        authority.sign(HOST, Valid::Now),
        authority.sign(HOST, Valid::Now),
    );
    let settings = trusting(&given);
    for old in [false, true] {
        let demands = Demands {
            old,
            ..Demands::default()
        };
        shake(given.server(demands), &settings).expect("given");
        let error = shake(other.server(demands), &settings).expect_err("another");
        assert!(matches!(error, TlsError::UnknownIssuer), "{error:?}");
    }
    // It shows what was given and has not its key.
    let impostor = Identity {
        certificate: self_signed(HOST, true).certificate,
        key: self_signed(HOST, true).key,
    };
    let settings = trusting(&impostor);
    let error =
        shake(impostor.server(Demands::default()), &settings).expect_err("the key is another");
    assert!(error.is_about_trust(), "{error:?}");
}

#[test]
fn verification_is_off_only_when_asked_for_by_name() {
    let stranger = Authority::new("a stranger");
    let mut settings = stranger.trusted();
    assert!(!settings.accepts_invalid_certificates());
    settings.danger_accept_invalid_certificates();
    for (host, valid) in [(HOST, Valid::NoMore), ("other.test", Valid::Now)] {
        let (_, server) = signed(host, valid);
        shake(server, &settings).expect("anything goes");
    }
    let server = self_signed("x", true).server(Demands::default());
    shake(server, &settings).expect("anything goes");
}

#[test]
fn a_server_name_that_was_set_is_what_is_verified() {
    let (authority, server) = signed("inner.test", Valid::Now);
    let mut settings = authority.trusted();
    settings.server_name = Some("inner.test".to_owned());
    shake(server, &settings).expect("the name that was set");
    settings.server_name = Some("not a name".to_owned());
    let error = settings.build().expect_err("no name");
    assert!(matches!(error, TlsError::BadServerName(_)), "{error:?}");
}

#[test]
fn a_client_certificate_is_shown_where_it_is_wanted() {
    let authority = Authority::new("an authority");
    let clients = Authority::new("of the clients");
    let identity = authority.sign(HOST, Valid::Now);
    for old in [false, true] {
        let server = identity.server(Demands {
            clients_of: Some(&clients),
            old,
            ..Demands::default()
        });
        let mut settings = authority.trusted();
        let error = shake(server.clone(), &settings).expect_err("no certificate");
        let wanted = "tls_client_certificate_required";
        assert_eq!(error.name(), wanted, "{error:?}");
        let show = |settings: &mut TlsSettings, one: &Identity| {
            let (pem, key) = (one.certificate.pem(), one.key.serialize_pem());
            settings
                .client_certificate_pem(pem.as_bytes(), key.as_bytes())
                .expect("certificate and key");
        };
        show(&mut settings, &clients.sign("me", Valid::Now));
        shake(server.clone(), &settings).expect("shown");
        show(&mut settings, &authority.sign("me", Valid::Now));
        let error = shake(server, &settings).expect_err("of the wrong authority");
        let name = error.name();
        assert_eq!(name, "tls_client_certificate_refused", "{error:?}");
    }
}

#[test]
fn settings_that_cannot_work_are_told_when_they_are_made() {
    let mut settings = TlsSettings::default();
    for pem in [
        &b"nothing"[..],
        b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
    ] {
        let error = settings.add_roots_pem(pem).expect_err("no certificate");
        assert_eq!(error.name(), "tls_bad_setting");
    }
    let error = settings.add_roots_file("/nonexistent/ca.pem");
    let text = error.expect_err("no file").to_string();
    assert!(text.contains("/nonexistent/ca.pem"), "{text}");
    let (one, other) = (self_signed("a", false), self_signed("a", false));
    let (pem, key) = (one.certificate.pem(), other.key.serialize_pem());
    settings.system_roots = false;
    settings.add_roots_pem(pem.as_bytes()).expect("a root");
    settings
        .client_certificate_pem(pem.as_bytes(), key.as_bytes())
        .expect("both are what they are");
    let error = settings.build().expect_err("another's key");
    assert_eq!(error.name(), "tls_bad_setting", "{error:?}");
    let nobody = TlsSettings::trusting_nobody();
    let error = nobody.build().expect_err("nobody is trusted");
    assert!(matches!(error, TlsError::NoRoots(_)), "{error:?}");
}

#[test]
fn the_protocol_that_the_server_chose_can_be_read() {
    let authority = Authority::new("an authority");
    let identity = authority.sign(HOST, Valid::Now);
    for (served, offer, chosen) in [
        (&["h2", "http/1.1"][..], Offer::Either, Some(&b"h2"[..])),
        (&["h2", "http/1.1"], Offer::Http1, Some(b"http/1.1")),
        (&["http/1.1"], Offer::Either, Some(b"http/1.1")),
        (&[], Offer::Either, None),
    ] {
        let server = identity.server(Demands {
            protocols: served,
            ..Demands::default()
        });
        let config = authority.trusted().build().expect("good settings");
        let (got, is_http2, version) = play(
            2,
            async move |handle, stream| {
                let mut server = ServerTls::new(&handle, stream, server);
                server.handshake().await.expect("a handshake");
                let _ = server.read().await;
            },
            async move |handle, transport| {
                let secured = TlsStream::handshake(&handle, transport, HOST, &config, offer);
                let stream = secured.await.expect("a handshake");
                assert!(!stream.is_resumed());
                assert_eq!(stream.certificates().count(), 1);
                (
                    stream.protocol().map(<[u8]>::to_vec),
                    stream.is_http2(),
                    stream.version(),
                )
            },
        );
        assert_eq!(got.as_deref(), chosen);
        assert_eq!((is_http2, version), (chosen == Some(b"h2"), "TLS 1.3"));
    }
    // A server of HTTP/2 alone, asked for HTTP/1.1 alone, says so.
    let server = identity.server(Demands {
        protocols: &["spdy"],
        ..Demands::default()
    });
    let error = shake(server, &authority.trusted()).expect_err("nothing in common");
    assert!(
        error
            .to_string()
            .contains("no_application_protocol: it speaks none"),
        "{error}"
    );
}

#[test]
fn an_old_version_is_refused_where_only_the_new_is_wanted() {
    let authority = Authority::new("an authority");
    let server = authority.sign(HOST, Valid::Now).server(Demands {
        old: true,
        ..Demands::default()
    });
    let mut settings = authority.trusted();
    shake(server.clone(), &settings).expect("TLS 1.2");
    settings.versions.min = TlsVersion::Tls13;
    let error = shake(server, &settings).expect_err("too old");
    let name = error.name();
    assert!(name == "tls_alert" || name == "tls_protocol", "{error:?}");
}

#[test]
fn plain_http_on_the_port_is_named_so() {
    let (authority, _) = signed(HOST, Valid::Now);
    let plain = |answer: &'static [u8], seed| {
        let config = authority.trusted().build().expect("good settings");
        play(
            seed,
            async move |_, stream| {
                let _ = stream.recv().await;
                let _ = stream.post(answer);
                while stream.recv().await.is_ok_and(|bytes| !bytes.is_empty()) {}
            },
            async move |handle, transport| {
                let secured = TlsStream::handshake(&handle, transport, HOST, &config, Offer::Http1);
                secured.await.expect_err("no TLS")
            },
        )
    };
    for seed in 0..20 {
        let error = plain(b"HTTP/1.1 400 Bad Request\r\n\r\n", seed);
        assert_eq!(error.name(), "tls_not_spoken", "{error:?}");
    }
    let error = plain(b"SSH-2.0-x\r\n", 1);
    assert!(error.to_string().contains("it began with \"S"), "{error}");
    // It begins as TLS does and goes on otherwise.
    let error = plain(b"\x16\x03\x03\x00\x05hello and more", 1);
    assert_eq!(error.name(), "tls_protocol", "{error:?}");
}

/// A handshake with a server that closes after so many bytes; Ok is how many it sent.
fn cut(bytes: usize, server: Arc<ServerConfig>, config: TlsConfig) -> Result<usize, TlsError> {
    let sent = Rc::new(Cell::new(0));
    let count = sent.clone();
    play(
        bytes as u64,
        async move |handle, stream| {
            let server = ServerTls::new(&handle, stream, server);
            let mut server = server.cut_after(bytes);
            let shaken = server.handshake().await;
            count.set(server.sent_of(bytes));
            if shaken.is_ok() {
                let _ = server.write(b"x").await;
                count.set(server.sent_of(bytes));
            }
        },
        async move |handle, transport| {
            let secured = TlsStream::handshake(&handle, transport, HOST, &config, Offer::Http1);
            let mut stream = secured.await?;
            match poll_fn(|cx| stream.poll_recv(cx)).await {
                Ok(received) => assert_eq!(&received[..], b"x"),
                Err(error) => return Err(TlsError::within(&error).expect("of TLS").clone()),
            }
            Ok(())
        },
    )
    .map(|()| sent.get())
}

/// Bytes by which the one signature of a handshake may differ from another: its two
/// numbers are written without leading zeros.
const SIGNATURE_SPREAD: usize = 16;

#[test]
fn a_handshake_that_is_cut_at_any_byte_ends_with_a_name() {
    let (authority, server) = signed(HOST, Valid::Now);
    let config = authority.trusted().build().expect("good settings");
    let whole = cut(1 << 20, server.clone(), config.clone()).expect("uncut");
    assert!(whole > 600, "{whole}");
    let mut names = [0, 0];
    for bytes in 0..whole {
        // No session is taken up: every handshake is a whole one.
        let config = authority.trusted().build().expect("good settings");
        let error = match cut(bytes, server.clone(), config) {
            Err(error) => error,
            // Signatures are some bytes longer or shorter from one to the next.
            Ok(sent) => {
                assert!(whole - sent <= SIGNATURE_SPREAD, "{sent} of {whole}");
                continue;
            }
        };
        match error {
            TlsError::HandshakeCut => names[0] += 1,
            TlsError::Truncated => names[1] += 1,
            // A client that still speaks to a closed socket can be told by a reset.
            TlsError::Io(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            other => panic!("cut at {bytes}: {other:?}"),
        }
    }
    assert!(names[0] > 0 && names[1] > 0, "{names:?}");
}

#[test]
fn bytes_that_come_one_at_a_time_are_as_good() {
    let (authority, server) = signed(HOST, Valid::Now);
    let config = authority.trusted().build().expect("good settings");
    let text = play(
        3,
        async move |handle, stream| {
            let server = ServerTls::new(&handle, stream, server);
            let mut server = server.in_pieces(1);
            server.handshake().await.expect("a handshake");
            let asked = server.read_until(b"!").await.expect("a question");
            server.write(&asked).await.expect("an answer");
            server.close().await;
        },
        async move |handle, transport| {
            let secured = TlsStream::handshake(&handle, transport, HOST, &config, Offer::Http1);
            let mut stream = secured.await.expect("a handshake");
            stream.post("how are you!").expect("room");
            all(&mut stream).await.expect("an answer and an end")
        },
    );
    assert_eq!(text, b"how are you!");
}

/// All plain bytes to the end.
async fn all(stream: &mut TlsStream) -> Result<Vec<u8>, TlsError> {
    let mut all = Vec::new();
    loop {
        match poll_fn(|cx| stream.poll_recv(cx)).await {
            Ok(bytes) if bytes.is_empty() => return Ok(all),
            Ok(bytes) => all.extend_from_slice(&bytes),
            Err(error) => return Err(TlsError::within(&error).expect("of TLS").clone()),
        }
    }
}

#[test]
fn an_end_without_goodbye_is_told_and_one_with_it_is_an_end() {
    let (authority, server) = signed(HOST, Valid::Now);
    for is_polite in [true, false] {
        let config = authority.trusted().build().expect("good settings");
        let server = server.clone();
        let ended = play(
            4,
            async move |handle, stream| {
                let mut server = ServerTls::new(&handle, stream, server);
                server.handshake().await.expect("a handshake");
                server.write(b"some").await.expect("room");
                if is_polite {
                    server.close().await;
                }
            },
            async move |handle, transport| {
                let secured = TlsStream::handshake(&handle, transport, HOST, &config, Offer::Http1);
                let mut stream = secured.await.expect("a handshake");
                let first = poll_fn(|cx| stream.poll_recv(cx)).await.expect("some");
                assert_eq!(&first[..], b"some");
                let ended = all(&mut stream).await;
                // And so it stays.
                assert_eq!(all(&mut stream).await.is_ok(), ended.is_ok());
                ended
            },
        );
        match ended {
            Ok(rest) => assert!(is_polite && rest.is_empty()),
            Err(error) => assert!(
                !is_polite && matches!(error, TlsError::Truncated),
                "{error:?}"
            ),
        }
    }
}

/// Sends `bytes` to a server that gives them back, and has its goodbye heard.
async fn echoed(handle: &Handle, transport: Transport, config: &TlsConfig, bytes: Vec<u8>) -> bool {
    let secured = TlsStream::handshake(handle, transport, HOST, config, Offer::Http1);
    let mut stream = secured.await.expect("a handshake");
    let is_resumed = stream.is_resumed();
    stream.post(bytes.clone()).expect("room for one post");
    assert!(stream.posted_bytes() > 0);
    let mut got = Vec::new();
    while got.len() < bytes.len() {
        let more = poll_fn(|cx| stream.poll_recv(cx)).await.expect("the echo");
        got.extend_from_slice(&more);
    }
    assert!(got == bytes, "other bytes");
    poll_fn(|cx| stream.poll_flush(cx))
        .await
        .expect("all is out");
    assert_eq!(stream.posted_bytes(), 0);
    stream.shutdown_write();
    assert!(stream.post("more").is_err());
    assert!(all(&mut stream).await.expect("a goodbye").is_empty());
    is_resumed
}

async fn echo(mut server: ServerTls) -> Result<(), Over> {
    server.handshake().await?;
    loop {
        let bytes = server.read().await?;
        if bytes.is_empty() {
            server.close().await;
            return Ok(());
        }
        server.write(&bytes).await?;
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| (place * 7 + place / 251) as u8)
        .collect()
}

#[test]
fn pieces_that_are_kept_stay_what_they_are() {
    let (authority, server) = signed(HOST, Valid::Now);
    let config = authority.trusted().build().expect("good settings");
    let pieces = play(
        8,
        async move |handle, stream| {
            let mut server = ServerTls::new(&handle, stream, server);
            server.handshake().await.expect("a handshake");
            server.write(&pattern(300_000)).await.expect("room");
            server.close().await;
        },
        async move |handle, transport| {
            let secured = TlsStream::handshake(&handle, transport, HOST, &config, Offer::Http1);
            let mut stream = secured.await.expect("a handshake");
            let mut pieces = Vec::new();
            loop {
                let piece = poll_fn(|cx| stream.poll_recv(cx)).await.expect("bytes");
                if piece.is_empty() {
                    return pieces;
                }
                pieces.push(piece);
            }
        },
    );
    assert!(pieces.len() > 2, "{}", pieces.len());
    let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
    assert!(whole == pattern(300_000), "other bytes");
}

#[test]
fn large_bodies_go_both_ways_in_any_weather() {
    let (authority, server) = signed(HOST, Valid::Now);
    for seed in 0..10 {
        let config = authority.trusted().build().expect("good settings");
        let server = server.clone();
        play(
            seed,
            async move |handle, stream| {
                let echoed = echo(ServerTls::new(&handle, stream, server)).await;
                echoed.expect("a polite client");
            },
            async move |handle, transport| {
                echoed(&handle, transport, &config, pattern(700_000)).await;
            },
        );
    }
}

/// Runs `work` over real sockets beside a server that echoes, on both drivers.
fn beside_echo<F: Future<Output = ()>>(
    server: &Arc<ServerConfig>,
    work: impl Fn(Handle, SocketAddr) -> F,
) {
    // A receive of many records, too.
    let kinds = [
        (DriverChoice::Auto, 4 << 10),
        (DriverChoice::Auto, 256 << 10),
        (DriverChoice::Epoll, 256 << 10),
    ];
    for (driver, recv_buffer_bytes) in kinds {
        let config = Config {
            driver,
            recv_buffer_bytes,
            recv_buffers: 16,
            ..Config::default()
        };
        run(&config, |handle| async {
            let any = "127.0.0.1:0".parse().expect("an address");
            let listener = handle.listen(any, &ListenOptions::default());
            let listener = listener.expect("a free port");
            let address = listener.local_addr();
            let (inner, server) = (handle.clone(), server.clone());
            let serving = handle.spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let server = ServerTls::new(&inner, stream, server.clone());
                    inner.spawn(async { drop(echo(server).await) }).detach();
                }
            });
            work(handle, address).await;
            drop(serving);
        })
        .expect("the loop runs");
    }
}

#[test]
fn a_second_connection_takes_up_the_first_ones_session_unless_that_is_off() {
    let (authority, server) = signed(HOST, Valid::Now);
    beside_echo(&server, async |handle, address| {
        for sessions_max in [0, 8] {
            let mut settings = authority.trusted();
            settings.sessions_max = sessions_max;
            let config = settings.build().expect("good settings");
            let mut resumed = Vec::new();
            for _ in 0..3 {
                let stream = handle.connect(address).await.expect("connects");
                let transport = Transport::Plain(stream);
                resumed.push(echoed(&handle, transport, &config, pattern(3_000_000)).await);
            }
            let again = sessions_max > 0;
            assert_eq!(resumed, [false, again, again]);
        }
    });
}

/// A body asked for by a whole client, from a server that answers one request with
/// these bytes and then ends, politely or not, and treats further connections the same.
fn fetched(
    answer: &'static [u8],
    is_polite: bool,
    times: usize,
) -> (Vec<Result<String, Error>>, u64) {
    let (authority, server) = signed("10.0.0.1", Valid::Now);
    let mut world = World::new(7, SimOptions::default());
    let (stop, mut stopped) = prony_engine::mailbox::<()>(1);
    world.spawn_loop(&Config::default(), async move |handle| {
        let listener = handle.listen(address(), &ListenOptions::default());
        let listener = listener.expect("listens");
        let inner = handle.clone();
        let serving = handle.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut server = ServerTls::new(&inner, stream, server.clone());
                let answering = async move {
                    server.handshake().await?;
                    server.read_until(b"\r\n\r\n").await?;
                    server.write(answer).await?;
                    if is_polite {
                        server.close().await;
                    }
                    Ok::<_, Over>(())
                };
                inner.spawn(async { drop(answering.await) }).detach();
            }
        });
        stopped.recv().await;
        drop(serving);
    });
    let outcome = world.spawn_loop(&Config::default(), async move |handle| {
        handle.sleep(Nanos::from_millis(1)).await;
        let settings = Settings {
            tls: authority.trusted(),
            ..Settings::default()
        };
        let client = Client::new(&handle, settings);
        let mut all = Vec::new();
        for _ in 0..times {
            all.push(match client.get("https://10.0.0.1/").send().await {
                Ok(answer) => answer.text().await,
                Err(error) => Err(error),
            });
        }
        drop(stop);
        (all, client.counts().connected)
    });
    world.run(Nanos::from_secs(600)).expect("it ends");
    outcome.take().expect("the client has ended")
}

#[test]
fn a_body_without_length_that_ends_without_goodbye_is_cut_off() {
    let endless = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nthe body";
    let (polite, _) = fetched(endless, true, 1);
    assert_eq!(polite[0].as_deref().expect("whole"), "the body");
    let (rude, _) = fetched(endless, false, 1);
    let error = rude[0].as_ref().expect_err("cut off");
    assert_eq!(
        (error.phase(), error.kind().name()),
        (RequestPhase::Body, "tls_truncated")
    );
}

#[test]
fn a_body_of_known_length_needs_no_goodbye_and_its_connection_is_not_used_again() {
    let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nthe body";
    for is_polite in [true, false] {
        let (answers, connected) = fetched(whole, is_polite, 3);
        for answer in answers {
            assert_eq!(answer.expect("whole"), "the body");
        }
        assert_eq!(connected, 3);
    }
    let (short, _) = fetched(
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nthe body",
        true,
        1,
    );
    let error = short[0].as_ref().expect_err("a byte is missing");
    assert!(matches!(error.kind(), Kind::Truncated), "{error}");
}

#[test]
fn an_end_instead_of_an_answer_is_one_by_any_manners() {
    for is_polite in [true, false] {
        let (none, _) = fetched(b"", is_polite, 1);
        let error = none[0].as_ref().expect_err("no answer");
        assert!(matches!(error.kind(), Kind::Closed), "{error}");
    }
}
