//! The client through proxies: what it asks them for, and that each refusal has its
//! name; in simulated worlds.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use crate::secure::{Authority, Demands, ServerTls, Valid};
use prony_base::Nanos;
use prony_client::proxy::{Proxies, Proxy};
use prony_client::{Client, Error, Kind, RequestPhase, Settings, TimeLimit, Version};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream};

const PROXY: &str = "http://10.0.0.9:3128";
const REFUSAL: &[u8] = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
const OPEN: &[u8] = b"HTTP/1.1 200 Connection established\r\nvia: prony\r\n\r\n";

/// Plays a client in a world where a proxy treats each connection as `each` does.
fn play<T: 'static, S: Future<Output = ()> + 'static, C: Future<Output = T> + 'static>(
    seed: u64,
    each: impl Fn(Handle, Stream) -> S + 'static,
    client: impl FnOnce(Handle) -> C + 'static,
) -> T {
    let mut world = World::new(seed, SimOptions::default());
    let (stop, mut stopped) = prony_engine::mailbox::<()>(1);
    world.spawn_loop(&Config::default(), async move |handle| {
        let address = SocketAddr::from(([10, 0, 0, 9], 3128));
        let listener = handle.listen(address, &ListenOptions::default());
        let listener = listener.expect("listens");
        let inner = handle.clone();
        let serving = handle.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                inner.spawn(each(inner.clone(), stream)).detach();
            }
        });
        stopped.recv().await;
        drop(serving);
    });
    let outcome = world.spawn_loop(&Config::default(), async move |handle| {
        handle.sleep(Nanos::from_millis(1)).await;
        let value = client(handle).await;
        drop(stop);
        value
    });
    let played = world.run(Nanos::from_secs(600));
    let outcome = outcome.take();
    played.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    outcome.expect("the client has ended")
}

/// A head, byte for byte; empty at the end.
async fn head(stream: &Stream) -> String {
    let mut all = Vec::new();
    while !all.ends_with(b"\r\n\r\n") {
        match stream.recv().await {
            Ok(bytes) if !bytes.is_empty() => all.extend_from_slice(&bytes),
            _ => return String::new(),
        }
    }
    String::from_utf8(all).expect("text")
}

async fn until_gone(stream: &Stream) {
    while stream.recv().await.is_ok_and(|bytes| !bytes.is_empty()) {}
}

fn settings(proxy: &str) -> Settings {
    Settings {
        proxies: Proxies::all(Proxy::new(proxy).expect("an address")),
        ..Settings::default()
    }
}

/// Asks for `url` through a proxy that answers with these bytes, split at `split`, and
/// then ends its side where `ends`.
fn asked(
    seed: u64,
    url: &'static str,
    (answer, split, ends): (&'static [u8], usize, bool),
) -> Result<u16, Error> {
    play(
        seed,
        move |handle, stream| async move {
            if head(&stream).await.is_empty() {
                return;
            }
            let (first, second) = answer.split_at(split);
            let _ = stream.post(first);
            let _ = stream.flush().await;
            handle.sleep(Nanos::from_millis(1)).await;
            let _ = stream.post(second);
            if ends {
                stream.shutdown_write();
            }
            until_gone(&stream).await;
        },
        async move |handle| {
            let mut settings = settings(PROXY);
            settings.connect_timeout = Nanos::from_secs(2);
            let client = Client::new(&handle, settings);
            let answer = client.get(url).send().await?;
            let status = answer.status();
            answer.bytes().await?;
            Ok(status)
        },
    )
}

#[test]
fn http_is_asked_for_in_absolute_form_and_connections_are_kept() {
    let heads = Rc::new(RefCell::new(Vec::new()));
    let theirs = heads.clone();
    play(
        1,
        move |_, stream| {
            let heads = theirs.clone();
            async move {
                loop {
                    let asked = head(&stream).await;
                    if asked.is_empty() {
                        return;
                    }
                    heads.borrow_mut().push(asked);
                    let _ = stream.post("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
                }
            }
        },
        async |handle| {
            let client = Client::new(&handle, settings("http://us%65r:pass@10.0.0.9:3128"));
            for _ in 0..2 {
                let answer = client.get("http://nowhere.test:81/a?b=c#d").send().await;
                let answer = answer.expect("the proxy's answer");
                assert_eq!(answer.text().await.expect("a body"), "ok");
            }
            assert_eq!(client.counts().connected, 1);
        },
    );
    let heads = heads.borrow();
    assert_eq!(heads.len(), 2);
    for head in heads.iter() {
        assert!(
            head.starts_with("GET http://nowhere.test:81/a?b=c HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(head.contains("host: nowhere.test:81\r\n"), "{head}");
        assert!(
            head.contains("proxy-authorization: Basic dXNlcjpwYXNz\r\n"),
            "{head}"
        );
    }
}

#[test]
fn an_exception_is_asked_directly() {
    play(
        2,
        async |_, stream| {
            let asked = head(&stream).await;
            assert!(asked.starts_with("GET /x HTTP/1.1\r\n"), "{asked}");
            let _ = stream.post("HTTP/1.1 204 No Content\r\n\r\n");
            until_gone(&stream).await;
        },
        async |handle| {
            let mut settings = settings("http://10.9.9.9:1");
            settings.proxies = settings.proxies.except("10.0.0.0/8");
            let client = Client::new(&handle, settings);
            let answer = client.get("http://10.0.0.9:3128/x").send().await;
            assert_eq!(answer.expect("the server's").status(), 204);
        },
    );
}

#[test]
fn https_goes_through_a_tunnel_and_what_it_carries_stays_secret() {
    let authority = Authority::new("an authority");
    let server = authority.sign("host.test", Valid::Now);
    let server = server.server(Demands::default());
    let tls = authority.trusted();
    for seed in 0..20 {
        let (server, tls) = (server.clone(), tls.clone());
        play(
            seed,
            move |handle, stream| {
                let server = server.clone();
                async move {
                    let asked = head(&stream).await;
                    assert!(
                        asked.starts_with("CONNECT host.test:443 HTTP/1.1\r\n"),
                        "{asked}"
                    );
                    assert!(
                        asked.contains("proxy-authorization: Basic YTpi\r\n"),
                        "{asked}"
                    );
                    stream.post(OPEN).expect("room");
                    // From here on it is the server that speaks.
                    let mut inside = ServerTls::new(&handle, stream, server);
                    inside.handshake().await.expect("a handshake");
                    for _ in 0..2 {
                        let asked = inside.read_until(b"\r\n\r\n").await.expect("a request");
                        let asked = String::from_utf8(asked).expect("text");
                        assert!(asked.starts_with("GET /in HTTP/1.1\r\n"), "{asked}");
                        assert!(!asked.contains("proxy-authorization"), "{asked}");
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\ninside";
                        inside.write(answer).await.expect("room");
                    }
                    let _ = inside.read().await;
                }
            },
            async move |handle| {
                let mut settings = settings("http://a:b@10.0.0.9:3128");
                settings.tls = tls;
                let client = Client::new(&handle, settings);
                for reused in [false, true] {
                    let answer = client.get("https://host.test/in").send().await;
                    let answer = answer.expect("an answer");
                    assert_eq!(answer.version(), Version::Http11);
                    assert_eq!(answer.timing().reused, reused);
                    assert_eq!(answer.timing().secured.is_some(), !reused);
                    assert_eq!(answer.text().await.expect("a body"), "inside");
                }
            },
        );
    }
}

#[test]
fn a_certificate_behind_a_proxy_is_verified_for_the_server() {
    let authority = Authority::new("an authority");
    let server = authority.sign("10.0.0.9", Valid::Now);
    let server = server.server(Demands::default());
    let tls = authority.trusted();
    let error = play(
        3,
        move |handle, stream| {
            let server = server.clone();
            async move {
                head(&stream).await;
                stream.post(OPEN).expect("room");
                let _ = ServerTls::new(&handle, stream, server).handshake().await;
            }
        },
        async move |handle| {
            let mut settings = settings(PROXY);
            settings.tls = tls;
            let client = Client::new(&handle, settings);
            let answer = client.get("https://host.test/").send().await;
            answer.map(|_| ()).expect_err("the proxy's own certificate")
        },
    );
    assert_eq!(error.phase(), RequestPhase::Tls);
    assert_eq!(error.kind().name(), "tls_wrong_host", "{error}");
}

#[test]
fn refusals_have_their_names_wherever_they_are_split() {
    const WHO: &[u8] = b"HTTP/1.1 407 Who\r\nproxy-authenticate: Basic realm=x\r\n\
                         content-length: 0\r\n\r\n";
    for split in 0..REFUSAL.len() {
        let error = asked(split as u64, "https://host.test/", (REFUSAL, split, false));
        let error = error.expect_err("refused");
        assert_eq!(error.phase(), RequestPhase::Proxy);
        assert!(matches!(error.kind(), Kind::ProxyRefused(403)), "{error}");
        assert_eq!(error.remote_addr(), "10.0.0.9:3128".parse().ok());
    }
    for split in 0..WHO.len() {
        let error = asked(split as u64, "https://host.test/", (WHO, split, false));
        let error = error.expect_err("no credentials");
        assert!(matches!(error.kind(), Kind::ProxyCredentials), "{error}");
    }
    let error = asked(1, "http://host.test/", (WHO, 3, false));
    let error = error.expect_err("no credentials for http either");
    assert!(matches!(error.kind(), Kind::ProxyCredentials), "{error}");
    assert_eq!(error.phase(), RequestPhase::Proxy);
    // Any other answer in http may be the server's.
    assert_eq!(
        asked(1, "http://host.test/", (REFUSAL, 3, false)).expect("an answer"),
        403
    );
}

#[test]
fn a_proxy_that_closes_in_the_middle_is_told() {
    for cut in 0..OPEN.len() {
        let part = &OPEN[..cut];
        let error = asked(cut as u64, "https://host.test/", (part, cut / 2, true));
        let error = error.expect_err("closed");
        let expected = match cut {
            0 => matches!(error.kind(), Kind::Closed),
            _ => matches!(error.kind(), Kind::Truncated),
        };
        assert!(
            expected && error.phase() == RequestPhase::Proxy,
            "cut at {cut}: {error}"
        );
    }
    // Behind the answer it is the handshake that ends.
    let error = asked(1, "https://host.test/", (OPEN, 5, true)).expect_err("closed");
    assert_eq!(error.phase(), RequestPhase::Tls);
    assert_eq!(error.kind().name(), "tls_handshake_cut", "{error}");
}

#[test]
fn a_proxy_that_says_nothing_or_nonsense_is_told() {
    let error = asked(1, "https://host.test/", (b"", 0, false)).expect_err("silence");
    assert_eq!(error.phase(), RequestPhase::Proxy);
    assert!(
        matches!(error.kind(), Kind::TimedOut(TimeLimit::Connect, _)),
        "{error}"
    );
    let error = asked(1, "https://host.test/", (b"SSH-2.0-x\r\n\r\n", 2, false));
    let error = error.expect_err("no HTTP");
    assert!(matches!(error.kind(), Kind::Wire(_)), "{error}");
    let early = b"HTTP/1.1 200 OK\r\n\r\nand more";
    let error = asked(1, "https://host.test/", (early, 0, false)).expect_err("too early");
    assert!(error.to_string().contains("behind its answer"), "{error}");
}

#[test]
fn a_proxy_that_is_not_there_is_an_error_of_connecting() {
    let error = play(
        4,
        async |_, _| {},
        async |handle| {
            let client = Client::new(&handle, settings("http://10.0.0.8:1"));
            let answer = client.get("https://host.test/").send().await;
            answer.map(|_| ()).expect_err("nobody listens")
        },
    );
    assert_eq!(error.phase(), RequestPhase::Connect);
    assert!(matches!(error.kind(), Kind::Refused(_)), "{error}");
    assert_eq!(error.remote_addr(), "10.0.0.8:1".parse().ok());
}

#[test]
fn the_way_to_the_proxy_itself_can_be_secured() {
    let authority = Authority::new("an authority");
    let proxy = authority.sign("10.0.0.9", Valid::Now);
    let proxy = proxy.server(Demands::default());
    let tls = authority.trusted();
    play(
        5,
        move |handle, stream| {
            let proxy = proxy.clone();
            async move {
                let mut outer = ServerTls::new(&handle, stream, proxy);
                outer.handshake().await.expect("a handshake");
                let asked = outer.read_until(b"\r\n\r\n").await.expect("a request");
                assert!(asked.starts_with(b"GET http://host.test/ HTTP/1.1\r\n"));
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                outer.write(answer).await.expect("room");
                let _ = outer.read().await;
            }
        },
        async move |handle| {
            let mut settings = settings("https://10.0.0.9:3128");
            settings.tls = tls;
            let client = Client::new(&handle, settings);
            let answer = client.get("http://host.test/").send().await;
            assert_eq!(answer.expect("an answer").status(), 200);
        },
    );
}
