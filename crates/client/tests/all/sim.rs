//! The client in simulated networks: answers that come byte by byte, break off at every
//! place or never come; connections that are few, rest too long or are dead; and time,
//! which is exact here. The server is a script.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::{Instant, Nanos};
use prony_client::{Client, Counts, Error, Kind, RequestPhase, Settings, TimeLimit};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream};
use prony_wire::Limits;

const URL: &str = "http://10.0.0.1/";

/// What a server does with a connection, in this order; at the end it closes.
#[derive(Clone, Debug)]
enum Step {
    /// Reads one request's head.
    Read,
    Send(Vec<u8>),
    Wait(Nanos),
    Reset,
    /// Keeps the connection for ever.
    Stay,
}

use Step::{Read, Reset, Send, Stay, Wait};

fn send(text: &str) -> Step {
    Send(text.as_bytes().to_vec())
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// The same steps so many times.
fn times(count: usize, steps: &[Step]) -> Vec<Step> {
    (0..count).flat_map(|_| steps.to_vec()).collect()
}

/// A script that answers every request well.
fn good() -> Vec<Step> {
    times(100, &[Read, send(OK)])
}

async fn play(handle: Handle, stream: Stream, script: Vec<Step>) {
    let mut received = Vec::new();
    for step in script {
        match step {
            Read => loop {
                let end = received.windows(4).position(|four| four == b"\r\n\r\n");
                if let Some(end) = end {
                    received.drain(..end + 4);
                    break;
                }
                match stream.recv().await {
                    Ok(bytes) if !bytes.is_empty() => received.extend_from_slice(&bytes),
                    _ => return,
                }
            },
            Send(bytes) => {
                if stream.post(bytes).is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
            Wait(length) => handle.sleep(length).await,
            Reset => return stream.reset(),
            Stay => std::future::pending().await,
        }
    }
}

/// Serves one script for each connection in turn (the last for all further ones), runs
/// `work` beside it, and checks that each request was counted once.
fn beside<T: 'static, F: Future<Output = T> + 'static>(
    scripts: Vec<Vec<Step>>,
    settings: Settings,
    work: impl FnOnce(Handle, Client) -> F + 'static,
) -> (T, Counts) {
    let calm = SimOptions {
        slow_loops_one_in: 0,
        ..SimOptions::default()
    };
    let mut world = World::new(7, calm);
    let _server = world.spawn_loop(&Config::default(), async move |handle: Handle| {
        let address = SocketAddr::from(([10, 0, 0, 1], 80));
        let listener = handle.listen(address, &ListenOptions::default());
        let listener = listener.expect("a free port");
        let mut playing = Vec::new();
        // Until the client is done, which ends the world's patience.
        for place in 0..64 {
            let accepted = handle
                .timeout(Nanos::from_secs(600), listener.accept())
                .await;
            let Ok(Ok((stream, _))) = accepted else { break };
            let script = scripts[place.min(scripts.len() - 1)].clone();
            playing.push(handle.spawn(play(handle.clone(), stream, script)));
        }
    });
    let client = world.spawn_loop(&Config::default(), async move |handle: Handle| {
        // Until the server listens.
        handle.sleep(Nanos::from_micros(1)).await;
        let client = Client::new(&handle, settings);
        let result = work(handle, client.clone()).await;
        (result, client.counts())
    });
    world.run(Nanos::from_secs(36_000)).expect("nothing hangs");
    let (result, counts) = client.take().expect("the client is done");
    let ended = counts.answered + counts.failed + counts.cancelled;
    assert_eq!(counts.started, ended + counts.in_flight, "{counts:?}");
    (result, counts)
}

async fn fetch(client: &Client) -> Result<(u16, Vec<u8>), Error> {
    let answer = client.get(URL).send().await?;
    let status = answer.status();
    Ok((status, answer.bytes().await?))
}

/// Answers to a GET with their status and body, and whether the connection can go on.
fn answers() -> Vec<(&'static str, u16, &'static [u8], bool)> {
    vec![
        (OK, 200, b"ok", true),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n5;a=b\r\n two.\r\n0\r\nx: y\r\n\r\n",
            200,
            b"one two.",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nuntil the end",
            200,
            b"until the end",
            false,
        ),
        (
            "HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nold",
            200,
            b"old",
            false,
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            204,
            b"",
            true,
        ),
        (
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n",
            304,
            b"",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
            200,
            b"ok",
            false,
        ),
    ]
}

#[test]
fn an_answer_is_the_same_however_it_is_split_and_delayed() {
    for (text, status, body, goes_on) in answers() {
        let bytes = text.as_bytes();
        let mut scripts = vec![vec![Read]];
        // Every byte on its own, then a cut at each place.
        for byte in bytes {
            scripts[0].extend([Send(vec![*byte]), Wait(Nanos::from_millis(1))]);
        }
        for cut in 1..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            let wait = Wait(Nanos::from_millis(3));
            scripts.push(vec![
                Read,
                Send(first.to_vec()),
                wait,
                Send(second.to_vec()),
            ]);
        }
        for mut script in scripts {
            if goes_on {
                script.push(Stay);
            }
            let (got, counts) = beside(vec![script], Settings::default(), async |_, client| {
                fetch(&client).await
            });
            let (got_status, got_body) = got.expect("an answer");
            assert_eq!((got_status, &got_body[..]), (status, body), "{text:?}");
            assert_eq!(
                (counts.answered, counts.idle),
                (1, u64::from(goes_on)),
                "{text:?}"
            );
        }
    }
}

#[test]
fn an_answer_that_breaks_off_at_any_byte_is_an_error_that_says_where() {
    let text = answers()[1].0.as_bytes();
    let head_end = text
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap()
        + 4;
    for cut in 0..text.len() {
        for by_reset in [false, true] {
            let mut script = vec![Read, Send(text[..cut].to_vec())];
            if by_reset {
                // What was sent before has arrived.
                script.extend([Wait(Nanos::from_secs(1)), Reset]);
            }
            let (got, counts) = beside(vec![script], Settings::default(), async |_, client| {
                fetch(&client).await
            });
            let error = got.expect_err("it broke off");
            let phase = match cut {
                0 => RequestPhase::Wait,
                _ if cut < head_end => RequestPhase::Head,
                _ => RequestPhase::Body,
            };
            assert_eq!(error.phase(), phase, "{cut}: {error}");
            let is_named = match (by_reset, cut) {
                (true, _) => matches!(error.kind(), Kind::Reset(_)),
                (false, 0) => matches!(error.kind(), Kind::Closed),
                (false, _) => matches!(error.kind(), Kind::Truncated),
            };
            assert!(is_named, "{cut} {by_reset}: {error}");
            assert_eq!(error.requested_url(), URL);
            assert_eq!(
                error.remote_addr(),
                Some(SocketAddr::from(([10, 0, 0, 1], 80)))
            );
            assert_eq!((counts.failed, counts.connections), (1, 0));
        }
    }
}

#[test]
fn requests_that_find_no_connection_wait_in_the_order_in_which_they_came() {
    let settings = Settings {
        connections_per_host_max: 2,
        queue_max: 5,
        ..Settings::default()
    };
    let slow = times(9, &[Read, Wait(Nanos::from_millis(10)), send(OK)]);
    let (order, counts) = beside(vec![slow], settings, async |handle, client| {
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = (0..8)
            .map(|number| {
                let (client, order) = (client.clone(), order.clone());
                handle.spawn(async move {
                    let said = match fetch(&client).await {
                        Ok(_) => "answered".to_owned(),
                        Err(error) => error.to_string(),
                    };
                    order.borrow_mut().push((number, said));
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        order.take()
    });
    // The eighth finds five in line already.
    let full = "http://10.0.0.1/: waiting for a connection: as many requests as queue_max \
                allows (5) wait already (send fewer at once, or raise queue_max)";
    assert_eq!(order[0], (7, full.to_owned()));
    let mut pairs = order[1..]
        .chunks(2)
        .map(|pair| pair.iter().map(|one| one.0));
    let mut sorted = Vec::new();
    for pair in &mut pairs {
        let mut pair: Vec<i32> = pair.collect();
        pair.sort_unstable();
        sorted.extend(pair);
    }
    assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(
        (counts.answered, counts.failed, counts.connected),
        (7, 1, 2)
    );
}

#[test]
fn a_host_that_waits_gets_the_room_of_a_connection_at_rest_elsewhere() {
    let settings = Settings {
        connections_max: 1,
        ..Settings::default()
    };
    let ((), counts) = beside(vec![good()], settings, async |_, client| {
        for url in [URL, "http://10.0.0.1:80/", "http://10.0.0.1:80/x", URL] {
            client.get(url).send().await.expect("an answer");
        }
        let other = client.get("http://10.0.0.1:81/").send().await;
        assert!(matches!(
            other.expect_err("nobody").kind(),
            Kind::Refused(_)
        ));
    });
    assert_eq!((counts.connected, counts.connections), (1, 0));
}

#[test]
fn a_connection_that_rests_too_long_is_closed() {
    let settings = Settings {
        idle_timeout: Nanos::from_secs(5),
        ..Settings::default()
    };
    let (idle, _) = beside(vec![good()], settings, async |handle, client| {
        let mut idle = Vec::new();
        for wait in [4_900, 4_900, 5_100] {
            fetch(&client).await.expect("an answer");
            handle.sleep(Nanos::from_millis(wait)).await;
            let counts = client.counts();
            idle.push((counts.idle, counts.connections, counts.connected));
        }
        idle
    });
    assert_eq!(idle, [(1, 1, 1), (1, 1, 1), (0, 0, 1)]);
}

#[test]
fn an_old_connection_is_closed_after_its_answer() {
    let settings = Settings {
        connection_age_max: Nanos::from_secs(10),
        ..Settings::default()
    };
    let ((), counts) = beside(vec![good()], settings, async |handle, client| {
        for _ in 0..4 {
            fetch(&client).await.expect("an answer");
            handle.sleep(Nanos::from_secs(6)).await;
        }
    });
    assert_eq!((counts.answered, counts.connected), (4, 2));
}

#[test]
fn a_connection_that_ended_or_spoke_at_rest_is_not_used_again() {
    let closes = vec![Read, send(OK)];
    let speaks = vec![
        Read,
        send(OK),
        Wait(Nanos::from_millis(5)),
        send("HTTP/1.1 408 x\r\n\r\n"),
        Stay,
    ];
    for script in [closes, speaks] {
        let ((), counts) = beside(
            vec![script, good()],
            Settings::default(),
            async |handle, client| {
                for _ in 0..2 {
                    let answer = client.post(URL).body("x").send().await.expect("an answer");
                    answer.bytes().await.expect("a body");
                    handle.sleep(Nanos::from_secs(1)).await;
                }
            },
        );
        assert_eq!(
            (counts.answered, counts.resent, counts.connected),
            (2, 0, 2)
        );
    }
}

#[test]
fn a_safe_request_on_a_connection_that_dies_under_it_is_sent_once_more() {
    let dies = [
        vec![Read, send(OK), Read],
        vec![Read, send(OK), Read, Reset],
    ];
    for script in dies {
        let ((), counts) = beside(
            vec![script.clone(), good()],
            Settings::default(),
            async |_, client| {
                fetch(&client).await.expect("an answer");
                fetch(&client).await.expect("one more");
            },
        );
        assert_eq!(
            (counts.answered, counts.resent, counts.exchanges),
            (2, 1, 3)
        );
        let (error, counts) = beside(
            vec![script, good()],
            Settings::default(),
            async |_, client| {
                fetch(&client).await.expect("an answer");
                client
                    .post(URL)
                    .body("pay")
                    .send()
                    .await
                    .expect_err("not twice")
            },
        );
        assert!(
            matches!(error.kind(), Kind::Closed | Kind::Reset(_)),
            "{error}"
        );
        assert_eq!((counts.failed, counts.resent), (1, 0));
    }
    // A new connection that dies is no reason to try again.
    let (error, counts) = beside(vec![vec![Read]], Settings::default(), async |_, client| {
        fetch(&client).await.expect_err("closed")
    });
    assert!(matches!(error.kind(), Kind::Closed));
    assert_eq!((counts.resent, counts.exchanges), (0, 1));
}

#[test]
fn a_dropped_request_leaves_nothing_behind() {
    let script = vec![Read, Stay];
    let (counts, _) = beside(vec![script], Settings::default(), async |handle, client| {
        let settings = Settings {
            connections_per_host_max: 1,
            ..Settings::default()
        };
        let narrow = Client::new(&handle, settings);
        for length in [1, 100, 100_000, 10_000_000] {
            let mut tasks: Vec<_> = (0..3)
                .map(|_| handle.spawn(narrow.get(URL).send()))
                .collect();
            handle.sleep(Nanos(length)).await;
            let last = tasks.pop();
            drop(tasks);
            handle.yield_now().await;
            // The one in line goes on, and is dropped in its turn.
            handle.sleep(Nanos::from_secs(1)).await;
            drop(last);
        }
        drop(client);
        handle.sleep(Nanos::from_secs(1)).await;
        narrow.counts()
    });
    assert_eq!(
        (counts.started, counts.cancelled, counts.in_flight),
        (12, 12, 0)
    );
    assert_eq!((counts.connections, counts.queued, counts.idle), (0, 0, 0));
}

#[test]
fn the_rest_of_an_unread_body_is_drained_if_it_is_small() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 70000\r\n\r\n";
    for (max, connections) in [(100_000, 1), (10_000, 2)] {
        let settings = Settings {
            drain_bytes_max: max,
            ..Settings::default()
        };
        let body = vec![
            Read,
            send(head),
            Wait(Nanos::from_millis(5)),
            Send(vec![b'x'; 70_000]),
        ];
        let script = [body, good()].concat();
        let ((), counts) = beside(vec![script], settings, async |handle, client| {
            drop(client.get(URL).send().await.expect("a head"));
            handle.sleep(Nanos::from_millis(500)).await;
            drop(client.get(URL).send().await.expect("a head"));
        });
        assert_eq!(counts.connected, connections, "{counts:?}");
    }
}

#[test]
fn each_time_out_strikes_at_its_time_and_by_its_name() {
    let (first_byte, stall, whole) = (3, 5, 7);
    let settings = || Settings {
        first_byte_timeout: Nanos::from_secs(first_byte),
        stall_timeout: Nanos::from_secs(stall),
        timeout: Nanos::from_secs(whole),
        ..Settings::default()
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
    let trickle = times(60, &[send("x"), Wait(Nanos::from_secs(1))]);
    let cases = [
        (
            vec![Read, Stay],
            TimeLimit::FirstByte,
            first_byte,
            RequestPhase::Wait,
        ),
        (
            vec![Read, send("HTTP"), Stay],
            TimeLimit::Stall,
            stall,
            RequestPhase::Head,
        ),
        (
            vec![Read, send(head), send("some"), Stay],
            TimeLimit::Stall,
            stall,
            RequestPhase::Body,
        ),
        (
            [vec![Read, send(head)], trickle].concat(),
            TimeLimit::Whole,
            whole,
            RequestPhase::Body,
        ),
    ];
    for (script, limit, seconds, phase) in cases {
        let ((error, took), counts) = beside(vec![script], settings(), async |handle, client| {
            let began = handle.now();
            let error = fetch(&client).await.expect_err("too late");
            (error, handle.now().since(began))
        });
        let length = Nanos::from_secs(seconds);
        let is_named = matches!(error.kind(), Kind::TimedOut(struck, _) if *struck == limit);
        assert!(is_named && error.is_timeout(), "{error}");
        assert_eq!(error.phase(), phase, "{error}");
        // What came before took less than this.
        let most = length + Nanos::from_millis(20);
        assert!((length..most).contains(&took), "{took}: {error}");
        assert_eq!((counts.failed, counts.connections), (1, 0));
    }
    // In line for a connection, too.
    let settings = Settings {
        connections_per_host_max: 1,
        ..settings()
    };
    let (error, _) = beside(vec![vec![Read, Stay]], settings, async |handle, client| {
        let first = handle.spawn(client.get(URL).first_byte_timeout(Nanos::MAX).send());
        handle.sleep(Nanos::from_millis(1)).await;
        let error = client.get(URL).timeout(Nanos::from_secs(1)).send().await;
        drop(first);
        error.expect_err("no connection in time")
    });
    assert_eq!(
        error.to_string(),
        "http://10.0.0.1/: waiting for a connection: not done in the 1.00s that timeout allows"
    );
}

#[test]
fn what_had_come_while_nobody_read_was_taken_for_a_server_that_stalls() {
    const PIECES: usize = 150;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {PIECES}\r\n\r\n");
    let mut script = vec![Read, send(&head)];
    for _ in 0..PIECES {
        script.extend([send("x"), Wait(Nanos::from_millis(1))]);
    }
    script.push(Stay);
    let settings = Settings {
        stall_timeout: Nanos::from_secs(5),
        ..Settings::default()
    };
    let (bytes, counts) = beside(vec![script], settings, async |handle, client| {
        let mut answer = client.get(URL).send().await.expect("a head");
        let mut bytes = 0;
        // More pieces wait than the loop takes in for who does not read.
        while let Some(piece) = answer.chunk().await.expect("nobody stalls") {
            bytes += piece.len();
            handle.sleep(Nanos::from_secs(6)).await;
        }
        bytes
    });
    assert_eq!((bytes, counts.answered), (PIECES, 1));
}

#[test]
fn what_is_too_long_is_refused_by_name() {
    let settings = || Settings {
        collected_bytes_max: 10,
        limits: Limits {
            head_bytes_max: 500,
            interim_responses_max: 16,
            ..Limits::for_responses()
        },
        ..Settings::default()
    };
    let cases = [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n12345678901".to_owned(),
            "collected_bytes_max",
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\n12345678901".to_owned(),
            "collected_bytes_max",
        ),
        (
            format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(1_000)),
            "head_bytes_max",
        ),
        (
            format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(1_000)),
            "head_bytes_max",
        ),
        (
            "HTTP/1.1 103 x\r\n\r\n".repeat(100),
            "interim_responses_max",
        ),
        ("SSH-2.0-OpenSSH_9.2p1\r\n".to_owned(), "status line"),
    ];
    for (text, word) in cases {
        let script = vec![Read, send(&text), Stay];
        let (error, counts) = beside(vec![script], settings(), async |_, client| {
            fetch(&client).await.expect_err("too long")
        });
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!((counts.failed, counts.connections), (1, 0));
    }
}

#[test]
fn bytes_behind_an_answer_end_its_connection() {
    let script = vec![
        Read,
        send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more"),
        Stay,
    ];
    let (got, counts) = beside(
        vec![script, good()],
        Settings::default(),
        async |_, client| {
            (
                fetch(&client).await.expect("fine"),
                fetch(&client).await.expect("fine"),
            )
        },
    );
    assert_eq!(got, ((200, b"ok".to_vec()), (200, b"ok".to_vec())));
    assert_eq!((counts.connected, counts.answered), (2, 2));
}

#[test]
fn a_streamed_body_waits_for_the_server_and_fails_by_name() {
    let announced = |bytes: &'static [&'static [u8]], length| {
        let pieces = bytes.iter().map(|piece| Ok(piece.to_vec()));
        (pieces, length)
    };
    let cases = [
        (announced(&[b"abc", b"", b"def"], Some(6)), None),
        (announced(&[b"abc", b"", b"def"], None), None),
        (
            announced(&[b"abc"], Some(6)),
            Some("announced with 6 bytes, its source gave 3"),
        ),
        (
            announced(&[b"abc", b"defg"], Some(6)),
            Some("announced with 6 bytes, its source gave 7"),
        ),
    ];
    for ((pieces, length), said) in cases {
        let (got, _) = beside(vec![good()], Settings::default(), async move |_, client| {
            client.put(URL).body_stream(pieces, length).send().await
        });
        match (got, said) {
            (Ok(answer), None) => assert_eq!(answer.status(), 200),
            (Err(error), Some(said)) => assert!(error.to_string().contains(said), "{error}"),
            (got, _) => panic!("{got:?}"),
        }
    }
}

#[test]
fn a_password_in_a_url_is_not_shown() {
    let url = "http://user:p%40ss@10.0.0.1/";
    let script = vec![Read, send("HTTP/1.1 200 OK\r\n\r\n")];
    let (shown, _) = beside(
        vec![script, vec![]],
        Settings::default(),
        async move |_, client| {
            let answer = client.get(url).send().await.expect("an answer");
            let shown = answer.url().to_owned();
            drop(answer);
            let error = client.get(url).send().await.expect_err("closed");
            [shown, error.to_string(), error.requested_url().to_owned()]
        },
    );
    assert_eq!(shown[0], URL);
    assert!(!shown.concat().contains("ss@"), "{shown:?}");
}

#[test]
fn times_of_phases_follow_each_other() {
    let wait = Nanos::from_millis(50);
    let slow = times(2, &[Read, Wait(wait), send(OK)]);
    let (timings, _) = beside(vec![slow], Settings::default(), async |_, client| {
        let mut timings = Vec::new();
        for _ in 0..2 {
            let mut answer = client.get(URL).send().await.expect("an answer");
            while answer.chunk().await.expect("a body").is_some() {}
            timings.push(answer.timing());
        }
        timings
    });
    let [first, second] = timings[..] else {
        panic!()
    };
    assert!(!first.reused && second.reused);
    assert!(first.resolved <= first.connected && first.connected <= Some(first.sent));
    assert!(first.sent + wait <= first.first_byte && Some(first.first_byte) <= first.done);
    assert_eq!(
        (second.resolved, second.connected, second.secured),
        (None, None, None)
    );
    assert_eq!(second.sent, Nanos::ZERO);
}

#[test]
fn many_at_once_come_as_they_are_done() {
    let at_once = Rc::new(Cell::new((0_u32, Instant::ZERO)));
    let theirs = at_once.clone();
    let script = times(20, &[Read, Wait(Nanos::from_millis(10)), send(OK)]);
    let (places, counts) = beside(
        vec![script],
        Settings::default(),
        async move |handle, client| {
            let requests: Vec<_> = (0..20).map(|_| client.get(URL)).collect();
            let mut all = client.all(requests, 4);
            let mut places = Vec::new();
            while let Some((place, answer)) = all.next().await {
                answer.expect("an answer").bytes().await.expect("a body");
                places.push(place);
                theirs.set((theirs.get().0 + 1, handle.now()));
            }
            places.sort_unstable();
            places
        },
    );
    assert_eq!(places, (0..20).collect::<Vec<_>>());
    assert_eq!((counts.answered, counts.connected), (20, 4));
    assert!(at_once.get().1 >= Instant(50_000_000));
}
