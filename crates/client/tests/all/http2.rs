//! The client's HTTP/2, against a server in simulated worlds and one that plays by no
//! rules.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::rc::Rc;

use crate::http2_server::{Manners, Seen, pattern, serve};
use prony_base::Nanos;
use prony_client::cookies::CookieJar;
use prony_client::decode::DecodeSettings;
use prony_client::multipart::Form;
use prony_client::{
    Body, Client, Counts, Error, HttpVersion, Kind, RequestPhase, Settings, TimeLimit, Version,
};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream};

const ROOT: &str = "http://10.0.0.1:80";

fn settings() -> Settings {
    Settings {
        version: HttpVersion::Http2,
        ..Settings::default()
    }
}

/// Plays a client in a world with a server that treats each connection as `each` does.
fn play_with<T: 'static, S: Future<Output = ()> + 'static, C: Future<Output = T> + 'static>(
    seed: u64,
    each: impl Fn(Handle, Stream) -> S + 'static,
    client: impl FnOnce(Handle) -> C + 'static,
) -> T {
    let mut world = World::new(seed, SimOptions::default());
    let (stop, stopped) = prony_engine::mailbox::<()>(1);
    world.spawn_loop(&Config::default(), async move |handle| {
        let address = SocketAddr::from(([10, 0, 0, 1], 80));
        let listener = handle.listen(address, &ListenOptions::default());
        let listener = listener.expect("listens");
        let inner = handle.clone();
        let serving = handle.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                inner.spawn(each(inner.clone(), stream)).detach();
            }
        });
        let mut stopped = stopped;
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

fn play<C: Future<Output = ()> + 'static>(
    seed: u64,
    manners: Manners,
    client: impl FnOnce(Handle, Rc<Seen>) -> C + 'static,
) {
    let seen = Rc::<Seen>::default();
    let theirs = seen.clone();
    play_with(
        seed,
        move |handle, stream| serve(handle, stream, manners, theirs.clone()),
        move |handle| client(handle, seen),
    );
}

fn adds_up(counts: Counts) {
    let ended = counts.answered + counts.failed + counts.cancelled;
    assert_eq!(counts.started, ended + counts.in_flight, "{counts:?}");
}

/// Asks for so many patterns at once and looks at all of them.
async fn many(handle: &Handle, client: &Client, count: usize) {
    let asked: Vec<_> = (0..count)
        .map(|place| {
            let client = client.clone();
            handle.spawn(async move {
                let length = place * 131;
                let answer = client.get(&format!("{ROOT}/large/{length}")).send().await?;
                assert_eq!(answer.status(), 200);
                assert_eq!(answer.version(), Version::Http2);
                assert!(answer.bytes().await? == pattern(length), "{length}");
                Ok::<_, Error>(())
            })
        })
        .collect();
    for one in asked {
        one.await.expect("an answer");
    }
}

#[test]
fn many_requests_at_once_share_one_connection() {
    for seed in 0..10 {
        play(seed, Manners::default(), async |handle, seen| {
            let client = Client::new(&handle, settings());
            many(&handle, &client, 100).await;
            let counts = client.counts();
            assert_eq!((counts.answered, counts.connected), (100, 1), "{counts:?}");
            assert_eq!((seen.connections.get(), seen.requests.get()), (1, 100));
            assert!(seen.at_once_max.get() > 10, "{}", seen.at_once_max.get());
            assert_eq!((counts.connections, counts.idle), (1, 1), "{counts:?}");
            adds_up(counts);
        });
    }
}

#[test]
fn no_more_streams_than_the_server_allows() {
    for (seed, most) in [(1, 1), (2, 3), (3, 10)] {
        let manners = Manners {
            streams_max: Some(most),
            ..Manners::default()
        };
        play(seed, manners, async move |handle, seen| {
            let mut settings = settings();
            settings.connections_per_host_max = 1;
            let client = Client::new(&handle, settings);
            // The server's limit is known from here on.
            many(&handle, &client, 1).await;
            many(&handle, &client, 40).await;
            assert!(seen.at_once_max.get() <= most as usize);
            assert_eq!(seen.connections.get(), 1);
            assert_eq!(client.counts().answered, 41);
        });
    }
}

#[test]
fn more_than_one_connection_holds_goes_over_more() {
    let manners = Manners {
        streams_max: Some(2),
        ..Manners::default()
    };
    play(5, manners, async |handle, seen| {
        let client = Client::new(&handle, settings());
        many(&handle, &client, 1).await;
        many(&handle, &client, 20).await;
        assert!(seen.connections.get() > 1, "{}", seen.connections.get());
        let counts = client.counts();
        assert_eq!(counts.connected as usize, seen.connections.get());
        assert_eq!(counts.answered, 21);
    });
}

#[test]
fn large_bodies_go_both_ways_within_the_windows() {
    for seed in 0..3 {
        play(seed, Manners::default(), async |handle, _| {
            let mut settings = settings();
            settings.collected_bytes_max = 20 << 20;
            let client = Client::new(&handle, settings);
            let bytes = pattern(10_000_000);
            let echoed = client.post(&format!("{ROOT}/echo")).body(bytes.clone());
            let answer = echoed.send().await.expect("a head");
            assert!(answer.bytes().await.expect("the echo") == bytes);
        });
    }
}

#[test]
fn bodies_of_pieces_are_streamed_and_their_length_is_told_where_it_is_known() {
    play(4, Manners::default(), async |handle, seen| {
        let client = Client::new(&handle, settings());
        let url = format!("{ROOT}/echo");
        let pieces = || (0..50).map(|piece| Ok(vec![piece as u8; 3_000]));
        let wanted: Vec<u8> = (0..50).flat_map(|piece| vec![piece as u8; 3_000]).collect();
        for length in [None, Some(150_000)] {
            let body = Body::pieces(pieces(), length);
            let answer = client.put(&url).body(body).send().await.expect("a head");
            assert!(answer.bytes().await.expect("the echo") == wanted);
            let heads = seen.heads.borrow();
            let told = heads
                .last()
                .expect("a request")
                .headers()
                .get("content-length");
            assert_eq!(told.is_some(), length.is_some());
        }
        let body = Body::pieces(pieces(), Some(150_001));
        let sent = client.put(&url).body(body).send().await;
        let error = match sent {
            Ok(answer) => answer.bytes().await.expect_err("too few"),
            Err(error) => error,
        };
        assert!(matches!(error.kind(), Kind::BodyLength { .. }), "{error}");
        adds_up(client.counts());
    });
}

#[test]
fn a_source_that_fails_ends_its_request_at_once() {
    for seed in 0..10 {
        play(seed, Manners::default(), async |handle, seen| {
            let client = Client::new(&handle, settings());
            let begun = handle.now();
            for path in ["/silent", "/echo"] {
                let pieces = [Ok(pattern(9_000)), Err(io::Error::other("no more of it"))];
                let body = Body::pieces(pieces.into_iter(), None);
                let sent = client
                    .post(&format!("{ROOT}{path}"))
                    .body(body)
                    .send()
                    .await;
                let error = match sent {
                    Ok(answer) => answer.bytes().await.expect_err("it is not whole"),
                    Err(error) => error,
                };
                let is_named = matches!(error.kind(), Kind::BodySource(_));
                assert!(
                    is_named && error.phase() == RequestPhase::Send,
                    "{path}: {error}"
                );
            }
            assert!(handle.now().since(begun) < Nanos::from_secs(1));
            // The server was told, and the connection is as good as before.
            many(&handle, &client, 3).await;
            handle.sleep(Nanos::from_millis(50)).await;
            assert_eq!((seen.cancelled.get(), seen.connections.get()), (2, 1));
            let counts = client.counts();
            assert_eq!((counts.answered, counts.failed), (3, 2), "{counts:?}");
        });
    }
}

#[test]
fn heads_are_as_http2_has_them() {
    play(6, Manners::default(), async |handle, seen| {
        let client = Client::new(&handle, settings());
        let url = format!("{ROOT}/some/5?a=b");
        let asked = client.get(&url).header("X-Mixed", "Case");
        let answer = asked.header("connection", "close").send().await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.header("x-path"), Some(&b"/some/5"[..]));
        assert_eq!(answer.bytes().await.expect("a body").len(), 5);
        let heads = seen.heads.borrow();
        let head = heads.last().expect("a request");
        assert_eq!(head.uri(), "http://10.0.0.1/some/5?a=b");
        assert_eq!(head.headers()["x-mixed"], "Case");
        assert!(
            head.headers()["user-agent"]
                .as_bytes()
                .starts_with(b"prony/")
        );
        for absent in ["host", "connection", "content-length", "transfer-encoding"] {
            assert!(!head.headers().contains_key(absent), "{absent}");
        }
    });
}

#[test]
fn answers_without_a_body_end_at_once() {
    play(7, Manners::default(), async |handle, _| {
        let client = Client::new(&handle, settings());
        let answer = client
            .get(&format!("{ROOT}/none"))
            .send()
            .await
            .expect("204");
        assert_eq!(answer.status(), 204);
        assert!(answer.bytes().await.expect("nothing").is_empty());
        let answer = client.head(&format!("{ROOT}/x")).send().await.expect("200");
        assert_eq!(answer.content_length(), Some(1_000));
        assert!(answer.bytes().await.expect("nothing").is_empty());
        let mut answer = client
            .get(&format!("{ROOT}/trailers"))
            .send()
            .await
            .expect("200");
        while answer.chunk().await.expect("a body").is_some() {}
        let trailers = answer.trailers().expect("trailers");
        assert_eq!(trailers.get("x-sum"), Some(&b"4"[..]));
        assert_eq!(client.counts().answered, 3);
    });
}

#[test]
fn a_stream_that_is_reset_fails_alone() {
    for seed in 0..10 {
        play(seed, Manners::default(), async |handle, seen| {
            let client = Client::new(&handle, settings());
            let error = client.get(&format!("{ROOT}/reset")).send().await;
            let error = error.expect_err("a reset");
            assert!(matches!(error.kind(), Kind::Http2(_)), "{error}");
            assert_eq!(error.phase(), RequestPhase::Wait);
            let broken = client.get(&format!("{ROOT}/broken")).send().await;
            let error = match broken {
                Ok(answer) => answer.bytes().await.expect_err("a reset"),
                Err(error) => error,
            };
            assert!(matches!(error.kind(), Kind::Http2(_)), "{error}");
            many(&handle, &client, 3).await;
            assert_eq!(seen.connections.get(), 1);
            let counts = client.counts();
            assert_eq!((counts.answered, counts.failed), (3, 2), "{counts:?}");
        });
    }
}

#[test]
fn a_refused_stream_is_asked_for_again_even_by_post() {
    play(8, Manners::default(), async |handle, seen| {
        let client = Client::new(&handle, settings());
        let asked = client.post(&format!("{ROOT}/refused/1")).body("body");
        let answer = asked.send().await.expect("the second time");
        assert_eq!(answer.status(), 200);
        assert_eq!((seen.requests.get(), client.counts().resent), (2, 1));
        // But not for ever.
        let error = client.get(&format!("{ROOT}/refused/99")).send().await;
        let error = error.expect_err("always refused");
        assert!(matches!(error.kind(), Kind::NotHandled(_)), "{error}");
    });
}

#[test]
fn a_server_that_goes_away_loses_nothing() {
    for seed in 0..20 {
        let manners = Manners {
            goes_after: Some(3),
            ..Manners::default()
        };
        play(seed, manners, async |handle, seen| {
            let client = Client::new(&handle, settings());
            for _ in 0..4 {
                many(&handle, &client, 3).await;
            }
            assert!(seen.connections.get() > 1);
            let counts = client.counts();
            assert_eq!((counts.answered, counts.failed), (12, 0), "{counts:?}");
            adds_up(counts);
        });
    }
}

#[test]
fn an_answer_that_does_not_wait_for_the_body_is_the_answer() {
    play(9, Manners::default(), async |handle, _| {
        let client = Client::new(&handle, settings());
        let asked = client
            .post(&format!("{ROOT}/early"))
            .body(pattern(3_000_000));
        let answer = asked.send().await.expect("an answer");
        assert_eq!(answer.status(), 413);
        assert_eq!(answer.bytes().await.expect("a body"), b"too much");
        many(&handle, &client, 2).await;
    });
}

#[test]
fn a_request_that_is_dropped_is_cancelled_and_the_connection_goes_on() {
    play(10, Manners::default(), async |handle, seen| {
        let client = Client::new(&handle, settings());
        many(&handle, &client, 1).await;
        let asked = client.get(&format!("{ROOT}/silent")).send();
        let waited = handle.timeout(Nanos::from_millis(50), asked).await;
        assert!(waited.is_err());
        let mut answer = client
            .get(&format!("{ROOT}/large/3000000"))
            .send()
            .await
            .expect("200");
        assert!(answer.chunk().await.expect("some").is_some());
        drop(answer);
        many(&handle, &client, 2).await;
        handle.sleep(Nanos::from_millis(50)).await;
        assert_eq!((seen.cancelled.get(), seen.connections.get()), (2, 1));
        let counts = client.counts();
        assert_eq!((counts.answered, counts.cancelled), (3, 2), "{counts:?}");
        assert_eq!((counts.in_flight, counts.idle), (0, 1), "{counts:?}");
    });
}

#[test]
fn silence_ends_in_a_time_out_by_name() {
    play(11, Manners::default(), async |handle, _| {
        let mut settings = settings();
        settings.first_byte_timeout = Nanos::from_millis(20);
        let client = Client::new(&handle, settings);
        let error = client.get(&format!("{ROOT}/silent")).send().await;
        let error = error.expect_err("silence");
        let limit = matches!(error.kind(), Kind::TimedOut(TimeLimit::FirstByte, _));
        assert!(limit && error.phase() == RequestPhase::Wait, "{error}");
    });
}

#[test]
fn a_shared_connection_that_rests_too_long_is_closed() {
    play(12, Manners::default(), async |handle, seen| {
        let mut settings = settings();
        settings.idle_timeout = Nanos::from_millis(100);
        let client = Client::new(&handle, settings);
        many(&handle, &client, 2).await;
        handle.sleep(Nanos::from_millis(50)).await;
        assert_eq!(client.counts().connections, 1);
        handle.sleep(Nanos::from_millis(100)).await;
        assert_eq!(client.counts().connections, 0);
        many(&handle, &client, 2).await;
        assert_eq!(seen.connections.get(), 2);
    });
}

#[test]
fn a_queue_that_is_full_says_so_and_others_get_their_turn() {
    let manners = Manners {
        streams_max: Some(1),
        ..Manners::default()
    };
    play(13, manners, async |handle, _| {
        let mut settings = settings();
        settings.connections_per_host_max = 1;
        settings.queue_max = 2;
        let client = Client::new(&handle, settings);
        many(&handle, &client, 1).await;
        let asked: Vec<_> = (0..6)
            .map(|_| {
                let one = client.get(&format!("{ROOT}/large/100000")).send();
                handle.spawn(async { one.await?.bytes().await.map(|bytes| bytes.len()) })
            })
            .collect();
        let mut full = 0;
        for one in asked {
            match one.await {
                Ok(length) => assert_eq!(length, 100_000),
                Err(error) => {
                    assert!(matches!(error.kind(), Kind::QueueFull(2)), "{error}");
                    full += 1;
                }
            }
        }
        assert_eq!(full, 3);
    });
}

/// What a request fails with when the server sends these bytes and then its end, after
/// the client's first.
fn nonsense(seed: u64, bytes: &'static [u8]) -> Error {
    play_with(
        seed,
        move |_, stream| async move {
            let _ = stream.recv().await;
            let _ = stream.post(bytes);
            stream.shutdown_write();
            while stream.recv().await.is_ok_and(|bytes| !bytes.is_empty()) {}
        },
        async |handle| {
            let client = Client::new(&handle, settings());
            let asked = client.post(ROOT).body("x").send().await;
            match asked {
                Ok(answer) => answer.bytes().await.expect_err("nonsense"),
                Err(error) => error,
            }
        },
    )
}

#[test]
fn frames_that_break_the_rules_are_errors_by_name() {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    assert_eq!(SETTINGS.len(), 9);
    for seed in 0..5 {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"[..],
            // A length that no frame may have.
            b"\xff\xff\xff\x04\0\0\0\0\0",
            // Settings, then DATA on a stream that was never opened.
            b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x00\x00\0\0\0\x09x",
            // Settings, then header lines that HPACK cannot read.
            b"\0\0\0\x04\0\0\0\0\0\0\0\x02\x01\x04\0\0\0\x01\xff\xff",
            // Settings, then the peer's end of all, with a code.
            b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0b",
        ] {
            let error = nonsense(seed, bytes);
            assert!(
                matches!(error.kind(), Kind::Http2(_)),
                "{}: {error:?}",
                bytes.escape_ascii()
            );
        }
    }
    // An end instead of an answer.
    for bytes in [&b""[..], SETTINGS, b"\0\0\0\x04\0"] {
        let error = nonsense(1, bytes);
        let is_end = matches!(
            error.kind(),
            Kind::Truncated | Kind::Closed | Kind::Reset(_) | Kind::Http2(_)
        );
        assert!(is_end, "{}: {error:?}", bytes.escape_ascii());
    }
}

#[test]
fn a_redirect_takes_the_body_along_or_says_that_it_is_gone() {
    for seed in 0..20 {
        play(seed, Manners::default(), async move |handle, seen| {
            let client = Client::new(&handle, settings());
            let ask = |path: &str| client.post(&format!("{ROOT}{path}"));
            for path in ["/to/307", "/early-to/308"] {
                let bytes = ask(path).body(pattern(200_000)).send().await;
                let bytes = bytes.expect("an answer").bytes().await.expect("a body");
                assert!(bytes == pattern(200_000), "{path}: {} bytes", bytes.len());
                let form = || Form::new().bytes("f", "f", pattern(300_000));
                let answer = ask(path).multipart(form()).send().await.expect("an answer");
                let length = answer.bytes().await.expect("a body").len() as u64;
                assert_eq!(form().build().length(), Some(length), "{path}");
                let once = [Ok(pattern(10))].into_iter();
                let error = ask(path).body_stream(once, None).send().await;
                let error = error.expect_err("it was read once");
                assert_eq!(error.kind().name(), "body_spent", "{error}");
            }
            let see_other = ask("/to/303").body("gone").send().await.expect("an answer");
            assert_eq!(see_other.bytes().await.expect("a body"), b"");
            let head = seen.heads.borrow_mut().pop().expect("it was asked");
            assert_eq!(head.method(), http::Method::GET);
            adds_up(client.counts());
            assert_eq!(client.counts().connected, 1);
        });
    }
}

#[test]
fn codings_are_asked_for_and_taken_off() {
    play(1, Manners::default(), async |handle, seen| {
        let client = Client::new(
            &handle,
            Settings {
                decode: DecodeSettings::all(),
                cookies: Some(CookieJar::default()),
                ..settings()
            },
        );
        let text = pattern(1_000).repeat(300);
        let level = flate2::Compression::default();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
        encoder.write_all(&text).expect("memory");
        let coded = encoder.finish().expect("memory");
        let ask = async |body: Vec<u8>| {
            let request = client.post(&format!("{ROOT}/gzip")).body(body);
            request.send().await?.bytes().await
        };
        assert!(ask(coded.clone()).await.expect("a body") == text);
        let head = seen.heads.borrow_mut().pop().expect("it was asked");
        let asked = head
            .headers()
            .get("accept-encoding")
            .expect("it was asked for");
        assert_eq!(asked, "zstd, br, gzip, deflate");
        let cut = ask(coded[..coded.len() / 2].to_vec()).await;
        let error = cut.expect_err("it was cut");
        assert_eq!(
            (error.phase(), error.kind().name()),
            (RequestPhase::Decode, "coding_cut_off")
        );
        let counts = client.counts();
        assert_eq!((counts.answered, counts.failed), (1, 1));
        adds_up(counts);
    });
}
