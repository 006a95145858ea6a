//! The client against Prony's own server, over real sockets, on each driver.

use std::cell::RefCell;
use std::rc::Rc;

use prony_base::{Nanos, clock};
use prony_client::{Client, Counts, Settings, Version};
use prony_engine::{Config, DriverChoice, Handle, ListenOptions, run};
use prony_http::{Handler, Header, Request, Response, Server, ServerOptions, Source};

/// Answers by path.
struct App;

impl Handler for App {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match request.path() {
            "/echo" => response.send(200, [], request.body()),
            "/none" => response.send(204, [], b""),
            "/chunks" => {
                let mut body = response.stream(200, [], None);
                for piece in [&b"one "[..], b"two ", b"three"] {
                    if body.write(piece).await.is_err() {
                        return;
                    }
                }
                let _ = body.finish().await;
            }
            "/agent" => {
                let agent = request.headers().get("user-agent").unwrap_or_default();
                response.send(200, [Header::new("x-kind", b"agent")], agent);
            }
            "/who" => {
                let who = request.headers().get("authorization").unwrap_or_default();
                response.send(200, [], who);
            }
            "/large" => response.send(200, [], &vec![b'x'; 300_000]),
            _ => response.text(404, "no\n"),
        }
    }
}

/// Runs `work` beside a server, on both drivers; it gets the server's root URL.
fn beside<F: Future<Output = ()>>(work: impl Fn(Handle, String) -> F) {
    for driver in [DriverChoice::Auto, DriverChoice::Epoll] {
        let config = Config {
            driver,
            ..Config::default()
        };
        run(&config, |handle| async {
            let any = "127.0.0.1:0".parse().expect("an address");
            let listener = handle.listen(any, &ListenOptions::default());
            let listener = listener.expect("a free port");
            let root = format!("http://{}", listener.local_addr());
            let server = Server::new(&handle, ServerOptions::default(), App);
            let serving = server.run(Source::Listener(listener), std::future::pending());
            let serving = handle.spawn(serving);
            work(handle, root).await;
            drop(serving);
        })
        .expect("the loop runs");
    }
}

fn adds_up(counts: Counts) {
    let ended = counts.answered + counts.failed + counts.cancelled;
    assert_eq!(counts.started, ended + counts.in_flight, "{counts:?}");
}

#[test]
fn answers_come_whole_and_their_connection_is_used_again() {
    beside(async |handle, root| {
        let client = Client::new(&handle, Settings::default());
        for path in ["/agent", "/chunks", "/none", "/else", "/large", "/agent"] {
            let answer = client.get(&format!("{root}{path}")).send().await;
            let answer = answer.expect("an answer");
            assert_eq!(answer.version(), Version::Http11);
            assert_eq!(answer.url(), format!("{root}{path}"));
            let (status, text) = (answer.status(), answer.text().await.expect("a body"));
            match path {
                "/agent" => assert_eq!((status, &text[..5]), (200, "prony")),
                "/chunks" => assert_eq!((status, &text[..]), (200, "one two three")),
                "/none" => assert_eq!((status, &text[..]), (204, "")),
                "/large" => assert_eq!((status, text.len()), (200, 300_000)),
                _ => assert_eq!((status, &text[..]), (404, "no\n")),
            }
        }
        let counts = client.counts();
        adds_up(counts);
        assert_eq!((counts.answered, counts.exchanges), (6, 6));
        assert_eq!(
            (counts.connected, counts.connections, counts.idle),
            (1, 1, 1)
        );
    });
}

#[test]
fn phases_hold_nothing_of_what_else_the_thread_does() {
    let busy = Nanos::from_millis(5);
    let hog = move || {
        let end = clock::monotonic() + busy;
        while clock::monotonic() < end {}
    };
    beside(async |handle, root| {
        let client = Client::new(&handle, Settings::default());
        let url = format!("{root}/agent");
        for _ in 0..2 {
            let request = client.get(&url).send();
            // In the turn in which the request is posted, and before it is handed to the kernel.
            let beside = handle.spawn(async move { hog() });
            let mut answer = request.await.expect("an answer");
            beside.await;
            while answer.chunk().await.expect("a body").is_some() {}
            let timing = answer.timing();
            if timing.reused {
                assert!(timing.sent >= busy, "{timing:?}");
            }
            assert!(timing.sent <= timing.first_byte, "{timing:?}");
            assert!(Some(timing.first_byte) <= timing.done, "{timing:?}");
        }
    });
}

#[test]
fn bodies_go_out_small_large_in_pieces_and_in_chunks() {
    beside(async |handle, root| {
        let client = Client::new(&handle, Settings::default());
        let url = format!("{root}/echo");
        let large: Vec<u8> = (0..6_000_000_u32).map(|place| (place / 7) as u8).collect();
        let pieces = || {
            let parts: Vec<_> = large
                .chunks(100_000)
                .map(|part| Ok(part.to_vec()))
                .collect();
            parts.into_iter()
        };
        let length = Some(large.len() as u64);
        let requests = [
            client.post(&url).body("small"),
            client.post(&url).body(large.clone()),
            client.post(&url).body_stream(pieces(), length),
            client.put(&url).body_stream(pieces(), None),
            client.post(&url),
            // More in one piece than may wait to be sent.
            client
                .post(&url)
                .body_stream([Ok(b"x".to_vec()), Ok(large.clone())].into_iter(), None),
        ];
        let mut all = client.all(requests, 5);
        let mut seen = Vec::new();
        while let Some((place, answer)) = all.next().await {
            let body = answer.expect("an answer").bytes().await.expect("a body");
            match place {
                0 => assert_eq!(body, b"small"),
                4 => assert_eq!(body, b""),
                5 => assert!(body[0] == b'x' && body[1..] == large),
                _ => assert!(body == large, "{} bytes came back", body.len()),
            }
            seen.push(place);
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
        adds_up(client.counts());
    });
}

#[test]
fn progress_is_told_up_to_the_last_byte() {
    beside(async |handle, root| {
        let client = Client::new(&handle, Settings::default());
        let told = Rc::new(RefCell::new(Vec::new()));
        let theirs = told.clone();
        let request = client.get(&format!("{root}/large"));
        let request = request.on_progress(move |progress| theirs.borrow_mut().push(progress));
        let answer = request.send().await.expect("an answer");
        answer.bytes().await.expect("a body");
        let last = told.borrow().last().copied().expect("told");
        assert_eq!(
            (last.received_bytes, last.total_bytes),
            (300_000, Some(300_000))
        );
    });
}

#[test]
fn credentials_come_from_the_url_or_the_caller() {
    beside(async |handle, root| {
        let client = Client::new(&handle, Settings::default());
        let plain = format!("{root}/who");
        let with_user = plain.replace("//", "//Aladdin:open%20sesame@");
        let requests = [
            client.get(&with_user),
            client.get(&plain).basic_auth("Aladdin", "open sesame"),
            client.get(&with_user).bearer_auth("token"),
            client.get(&plain),
        ];
        let mut seen = Vec::new();
        for request in requests {
            let answer = request.send().await.expect("an answer");
            assert_eq!(answer.url(), plain);
            seen.push(answer.text().await.expect("a body"));
        }
        let basic = "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==";
        assert_eq!(seen, [basic, basic, "Bearer token", ""]);
    });
}

#[test]
fn a_request_under_way_is_small() {
    beside(async |handle, root| {
        let client = Client::new(&handle, Settings::default());
        let sending = client.get(&root).send();
        let bytes = size_of_val(&sending);
        // It is moved as a whole: what few requests need is in boxes.
        assert!(bytes <= 1_536, "{bytes} bytes");
        sending.await.expect("an answer");
    });
}
