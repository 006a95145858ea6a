//! The blocking face of the client: from threads, against Prony's own server.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use prony_client::blocking::{self, Client};
use prony_client::cookies::CookieJar;
use prony_client::{Kind, Settings};
use prony_engine::{Config, Handle, ListenOptions, mailbox, run};
use prony_http::{Handler, Request, Response, Server, ServerOptions, Source};

struct App;

impl Handler for App {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match request.path() {
            "/large" => response.send(200, [], &vec![b'x'; 3_000_000]),
            _ => response.send(200, [], request.body()),
        }
    }
}

/// Runs `work` beside a server on a thread of its own; it gets the server's root URL.
fn beside(work: impl FnOnce(&str)) {
    let (say, hear) = mpsc::channel();
    let (stop, mut stopped) = mailbox::<()>(1);
    let server = thread::spawn(move || {
        run(&Config::default(), async move |handle: Handle| {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = handle.listen(any, &ListenOptions::default());
            let listener = listener.expect("a free port");
            say.send(listener.local_addr()).expect("somebody hears");
            let server = Server::new(&handle, ServerOptions::default(), App);
            let stop = async {
                stopped.recv().await;
            };
            server.run(Source::Listener(listener), stop).await;
        })
    });
    work(&format!("http://{}", hear.recv().expect("an address")));
    stop.send(()).expect("the server runs");
    server
        .join()
        .expect("the server's thread")
        .expect("the server's loop");
}

#[test]
fn three_lines_are_enough() {
    beside(|root| {
        let answer = blocking::get(&format!("{root}/large")).expect("an answer");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.bytes().expect("a body").len(), 3_000_000);
    });
}

#[test]
fn threads_share_one_client() {
    beside(|root| {
        let client = Client::new(Settings::default()).expect("a client");
        thread::scope(|scope| {
            for number in 0..8 {
                let client = client.clone();
                scope.spawn(move || {
                    for round in 0..20 {
                        let body = format!("{number} {round}");
                        let request = client.post(root).body(body.clone());
                        let answer = request.send().expect("an answer");
                        assert_eq!(answer.text().expect("a body"), body);
                    }
                });
            }
        });
        let counts = client.counts().expect("it runs");
        assert_eq!((counts.started, counts.answered), (160, 160));
        assert!(counts.connected <= 8, "{counts:?}");
    });
}

#[test]
fn a_body_is_a_reader_and_several_requests_run_at_once() {
    beside(|root| {
        let client = Client::new(Settings::default()).expect("a client");
        let url = format!("{root}/large");
        let started: Vec<_> = (0..3).map(|_| client.get(&url).start()).collect();
        for one in started {
            let mut answer = one.expect("it runs").wait().expect("an answer");
            let mut text = String::new();
            answer.read_to_string(&mut text).expect("a body");
            assert_eq!(text.len(), 3_000_000);
            assert!(answer.timing().done.is_some());
        }
    });
}

#[test]
fn a_dropped_answer_is_cancelled_and_a_dropped_client_ends_its_thread() {
    beside(|root| {
        let began = Arc::new(AtomicBool::new(false));
        let theirs = began.clone();
        let start = move || theirs.store(true, Ordering::Relaxed);
        let client = Client::on_thread(Settings::default(), Config::default(), start);
        let client = client.expect("a client");
        assert!(began.load(Ordering::Relaxed));
        drop(client.get(&format!("{root}/large")).send().expect("a head"));
        drop(
            client
                .get(&format!("{root}/large"))
                .start()
                .expect("it runs"),
        );
        let answer = client.get(root).send().expect("an answer");
        assert_eq!(answer.text().expect("a body"), "");
        // Joins the thread: a client that does not end would hang here.
        drop(client);
    });
}

#[test]
fn errors_are_those_of_the_other_face() {
    let error = blocking::get("nonsense").expect_err("no URL");
    assert!(matches!(error.kind(), Kind::BadUrl(_)), "{error}");
    let address = SocketAddr::from(([127, 0, 0, 1], prony_testkit::free_port()));
    let error = blocking::get(&format!("http://{address}/")).expect_err("nobody");
    let said = error.to_string();
    assert!(matches!(error.kind(), Kind::Refused(_)), "{said}");
    let expected =
        format!("http://{address}/: connecting to {address}: the connection was refused");
    assert!(said.starts_with(&expected), "{said}");
}

#[test]
fn cookies_can_be_had_to_save_them() {
    let plain = Client::new(Settings::default()).expect("a thread");
    assert!(plain.cookies().expect("its thread").is_none());
    let mut jar = CookieJar::default();
    let line = "a.test\tFALSE\t/\tFALSE\t0\tname\tvalue";
    jar.read_text(line, 0).expect("a cookie");
    let settings = Settings {
        cookies: Some(jar),
        ..Settings::default()
    };
    let client = Client::new(settings).expect("a thread");
    let jar = client.cookies().expect("its thread").expect("they are on");
    assert!(jar.to_text(0).ends_with(&format!("{line}\n")));
}
