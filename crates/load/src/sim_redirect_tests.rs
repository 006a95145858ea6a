//! Redirects that are followed, against a server of a few lines in a simulated network: `/n` leads to `/n-1` and so on to `/0`, and other
//! paths nowhere. What the generator counted is held against what the server got.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use prony_base::{Instant, Nanos, Random};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream};
use prony_record::{
    AnswerChecks, Counts, ExpectedAnswer, LatencyOrigin, LoadSpec, LoadTarget, Pace,
    PreparedRequest, ScenarioFlow, ScenarioReport, ScenarioSpec, ScenarioStep,
};

use crate::arrivals::ArrivalCounts;
use crate::connection::connect_all;
use crate::control::Counted;
use crate::recorder::Recorder;
use crate::redirect::figures::HopFigures;
use crate::redirect::source::following;
use crate::run::OnlySources;
use crate::scenario::compiled::Scenario;
use crate::scenario::source::ScenarioSource;
use crate::source::{Cycle, RequestSource};
use crate::thread_spec::{RunState, thread_specs};
use crate::window::Window;
use crate::worker::Worker;

const LIMIT: Nanos = Nanos::from_secs(600);

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

#[derive(Default)]
struct LeadingServer {
    /// Requests by method and path.
    got: RefCell<BTreeMap<String, u64>>,
    /// One request in so many ends its connection, before or after it is answered; 0: none.
    closes_one_in: u64,
    random: RefCell<Option<Random>>,
    /// Requests without the cookie that a redirect had set.
    strangers: Cell<u64>,
}

impl LeadingServer {
    /// The answer to a request, and whether it is the connection's last; `None`: it closes without one.
    fn answer(&self, request: &str) -> Option<(String, bool)> {
        let line = request.split(" HTTP").next().unwrap_or_default();
        *self.got.borrow_mut().entry(line.to_owned()).or_default() += 1;
        let mut random = self.random.borrow_mut();
        let mut chance = || {
            let random = random.get_or_insert_with(|| Random::new(0));
            self.closes_one_in > 0 && random.chance(1, self.closes_one_in * 2)
        };
        if chance() {
            return None;
        }
        let is_last = chance();
        let close = if is_last { "Connection: close\r\n" } else { "" };
        let path = line.split(' ').nth(1).unwrap_or_default();
        let number = path.trim_start_matches('/').parse::<u64>();
        let to = match (path, number) {
            ("/loop", _) => "/loop".to_owned(),
            ("/away", _) => "http://elsewhere/".to_owned(),
            ("/login", _) => "home".to_owned(),
            (_, Ok(number @ 1..)) => (number - 1).to_string(),
            _ => {
                let is_known = path != "/home" || request.contains("\r\nCookie: sid=1\r\n");
                self.strangers
                    .set(self.strangers.get() + u64::from(!is_known));
                let answer = format!("HTTP/1.1 200 OK\r\n{close}Content-Length: 4\r\n\r\ndone");
                return Some((answer, is_last));
            }
        };
        let cookie = if path == "/login" {
            "Set-Cookie: sid=1\r\n"
        } else {
            ""
        };
        let head = format!("HTTP/1.1 302 Found\r\n{close}{cookie}Location: {to}\r\n");
        Some((format!("{head}Content-Length: 5\r\n\r\nmoved"), is_last))
    }

    fn got(&self, line: &str) -> u64 {
        self.got.borrow().get(line).copied().unwrap_or_default()
    }
}

async fn serve(handle: Handle, server: Rc<LeadingServer>) {
    let listener = handle
        .listen(address(), &ListenOptions::default())
        .expect("a free port");
    while let Ok((stream, _)) = listener.accept().await {
        handle.spawn(converse(stream, Rc::clone(&server))).detach();
    }
}

/// Requests have no body here.
async fn converse(stream: Stream, server: Rc<LeadingServer>) {
    let mut pending = Vec::new();
    loop {
        let end = loop {
            let end = pending
                .windows(4)
                .position(|four: &[u8]| four == b"\r\n\r\n");
            if let Some(end) = end {
                break end + 4;
            }
            match stream.recv().await {
                Ok(bytes) if !bytes.is_empty() => pending.extend_from_slice(&bytes),
                _ => return,
            }
        };
        let request: Vec<u8> = pending.drain(..end).collect();
        let Some((answer, is_last)) = server.answer(&String::from_utf8_lossy(&request)) else {
            return;
        };
        if stream.post(answer.into_bytes()).is_err() || is_last {
            let _ = stream.flush().await;
            return;
        }
    }
}

/// A load of 20 requests of this path.
fn load(method: &str, path: &str) -> LoadSpec {
    let request = PreparedRequest {
        method: method.to_owned(),
        bytes: format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes(),
        expect: Some(ExpectedAnswer {
            body: Some(b"done".to_vec()),
        }),
        weight: 0,
    };
    LoadSpec {
        target: LoadTarget {
            url: String::new(),
            address: address().to_string(),
        },
        threads: 1,
        connections: 3,
        duration_ns: Nanos::MAX.0,
        requests_max: Some(20),
        timeout_ns: Nanos::from_secs(1).0,
        requests: vec![request],
        expected_status: vec![200],
        driver: "sim".to_owned(),
        follow_max: Some(5),
        ..LoadSpec::default()
    }
}

async fn drive(handle: Handle, spec: Rc<LoadSpec>, scenario: Option<Arc<Scenario>>) -> Counted {
    // Time for the server to listen.
    handle.sleep(Nanos::from_millis(1)).await;
    let requests = spec.requests.clone();
    let cycle = |_, slots| -> Box<dyn RequestSource> { Box::new(Cycle::new(&requests, slots)) };
    let thread_spec = thread_specs(&spec, &OnlySources(&cycle), scenario.as_ref())
        .expect("a load")
        .remove(0);
    let recorder = Recorder::new(Instant::ZERO, spec.latency_from);
    let recorder = Rc::new(RefCell::new(recorder));
    let streams = connect_all(&handle, &thread_spec, &recorder).await;
    let window = Window::new(handle.now(), Nanos::ZERO, Nanos(spec.duration_ns));
    let window = Arc::new(window);
    if let Some(checks) = &thread_spec.checks {
        checks.measured_in(&window);
    }
    let mut counts = Recorder::new(window.start(), spec.latency_from);
    counts.merge(&recorder.borrow());
    let slots = thread_spec.slots();
    let source: Box<dyn RequestSource> = match &scenario {
        None => Box::new(Cycle::new(&spec.requests, slots)),
        Some(scenario) => {
            Box::new(ScenarioSource::new(scenario, &spec, 0, slots).expect("a source"))
        }
    };
    let source = following(source, &spec, slots);
    let checks = thread_spec.checks.clone();
    let worker = Worker::new(handle, &spec, thread_spec, source, window, counts);
    let counted = Rc::new(worker).work(streams, Arc::new(RunState::default()), None);
    let counted = counted.await;
    // All that failed by a check are named.
    let failed = checks.map_or(0, |checks| checks.counts().iter().map(|of| of.failed).sum());
    assert_eq!(failed, counted.recorder.counts().failed.check);
    counted
}

struct Led {
    counts: Counts,
    hops: HopFigures,
    arrivals: Option<ArrivalCounts>,
    scenario: Option<ScenarioReport>,
    server: Rc<LeadingServer>,
    latencies: u64,
}

/// Plays a load in the world of `seed`. Whatever happens, each request is counted once.
fn play(seed: u64, spec: LoadSpec, server: LeadingServer) -> Led {
    let mut world = World::new(
        seed,
        SimOptions {
            short_reads: true,
            short_writes: true,
            ..SimOptions::default()
        },
    );
    *server.random.borrow_mut() = Some(Random::new(seed));
    let server = Rc::new(server);
    let serving = Rc::clone(&server);
    world.spawn_loop(&Config::default(), move |handle| async move {
        let forever = serve(handle.clone(), serving);
        let _ = handle.timeout(Nanos::from_secs(300), forever).await;
    });
    let scenario = Scenario::new(&spec).expect("it can be done");
    let (spec, own) = (Rc::new(spec), scenario.clone());
    let outcome = world.spawn_loop(&Config::default(), |handle| drive(handle, spec, own));
    world
        .run(LIMIT)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let counted = outcome.take().expect("the load has ended");
    let c = counted.recorder.counts();
    let ended = c.warmup_completed + c.warmup_failed + c.completed + c.failed.total() + c.in_flight;
    assert_eq!(c.sent, ended, "seed {seed}: {c:?}");
    let whole = [c.sent, c.completed, c.failed.total(), c.in_flight];
    let users = scenario.as_ref().zip(counted.scenario);
    let report = users.map(|(of, figures)| {
        let checks = of.checks.counts();
        of.report(&figures, &checks, Nanos::from_secs(1))
    });
    let unbalanced = report.as_ref().and_then(|of| of.unbalanced(whole));
    assert_eq!(unbalanced, None, "seed {seed}: {c:?}");
    Led {
        counts: c,
        hops: counted.hops.expect("redirects are followed"),
        arrivals: counted.arrivals,
        scenario: report,
        server,
        latencies: counted.recorder.latency().summary().count,
    }
}

#[test]
fn each_hop_is_a_request_that_the_server_got_and_the_last_answer_is_the_one_that_is_expected() {
    for seed in 0..5 {
        let led = play(seed, load("GET", "/3"), LeadingServer::default());
        let c = &led.counts;
        assert_eq!((c.sent, c.completed, c.unexpected_status), (80, 80, 0));
        assert_eq!((led.hops.followed, led.hops.unfinished), (60, 0));
        // Latency is that of each; the whole way is apart.
        assert_eq!((led.latencies, led.hops.whole.summary().count), (80, 20));
        for path in ["/3", "/2", "/1", "/0"] {
            assert_eq!(led.server.got(&format!("GET {path}")), 20, "{path}");
        }
    }
}

#[test]
fn a_post_is_led_on_as_a_get() {
    let led = play(1, load("POST", "/1"), LeadingServer::default());
    assert_eq!(
        (led.server.got("POST /1"), led.server.got("GET /0")),
        (20, 20)
    );
}

#[test]
fn what_is_not_followed_has_failed_by_name_and_the_rest_goes_on() {
    for (path, sent_each) in [("/loop", 1), ("/away", 1), ("/9", 6)] {
        let led = play(2, load("GET", path), LeadingServer::default());
        let c = &led.counts;
        assert_eq!((c.sent, c.failed.check), (20 * sent_each, 20), "{path}");
        assert_eq!(c.completed, 20 * (sent_each - 1), "{path}");
        assert_eq!(led.hops.whole.summary().count, 0, "{path}");
    }
}

#[test]
fn connections_that_close_between_hops_lose_no_count() {
    let seeds = prony_testkit::seeds(16, 400);
    let mut followed = 0;
    for seed in 0..seeds {
        let server = LeadingServer {
            closes_one_in: 4,
            ..LeadingServer::default()
        };
        let led = play(seed, load("GET", "/3"), server);
        let c = &led.counts;
        // 20 were asked for, and all others are hops.
        assert_eq!(c.sent - led.hops.followed, 20, "seed {seed}");
        assert_eq!(led.hops.unfinished, 0, "seed {seed}");
        let got: u64 = led.server.got.borrow().values().sum();
        assert!(
            c.completed <= got && got <= c.sent,
            "seed {seed}: {c:?}, {got}"
        );
        followed += led.hops.followed;
    }
    assert!(followed > seeds * 20, "{followed}");
}

/// Arrivals are what is asked for; a window that ends cuts chains, and says how many.
#[test]
fn hops_are_no_arrivals() {
    for seed in 0..8 {
        let spec = LoadSpec {
            pace: Pace::Constant { rate_per_s: 200.0 },
            latency_from: LatencyOrigin::Intended,
            requests_max: None,
            duration_ns: Nanos::from_millis(500).0,
            ..load("GET", "/3")
        };
        let led = play(seed, spec, LeadingServer::default());
        let arrivals = led.arrivals.expect("an open loop");
        assert_eq!(arrivals.scheduled, 100, "seed {seed}");
        let asked = led.counts.sent - led.hops.followed;
        assert_eq!(
            arrivals.scheduled,
            asked + arrivals.waiting + arrivals.dropped
        );
        let whole = led.server.got("GET /0") + led.hops.unfinished;
        assert!(
            whole <= 100 && whole + led.counts.in_flight >= 100,
            "seed {seed}: {whole}"
        );
    }
}

#[test]
fn a_users_redirects_belong_to_its_step_and_have_its_cookies() {
    for seed in 0..8 {
        let mut spec = load("GET", "/login");
        let checks = AnswerChecks {
            contains: vec!["done".to_owned()],
            ..AnswerChecks::default()
        };
        let step = |name: &str| ScenarioStep {
            name: name.to_owned(),
            checks: Some(checks.clone()),
            ..ScenarioStep::default()
        };
        spec.requests.push(load("GET", "/home").requests.remove(0));
        spec.scenario = Some(ScenarioSpec {
            flows: vec![ScenarioFlow {
                name: String::new(),
                weight: 1,
                steps: vec![step("login"), step("home")],
            }],
        });
        let server = LeadingServer {
            closes_one_in: if seed % 2 == 0 { 0 } else { 6 },
            ..LeadingServer::default()
        };
        let led = play(seed, spec, server);
        assert_eq!(led.server.strangers.get(), 0, "seed {seed}");
        let report = led.scenario.expect("users");
        let iterations = report.iterations();
        assert_eq!((iterations.started, iterations.unfinished), (20, 0));
        if seed % 2 == 0 {
            let sent: Vec<u64> = report.steps.iter().map(|of| of.counts.sent).collect();
            assert_eq!((sent, iterations.completed), (vec![40, 20], 20));
            assert_eq!(led.hops.followed, 20);
        }
    }
}
