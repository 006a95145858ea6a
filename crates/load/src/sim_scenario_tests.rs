//! Users of a thread against a server of a few lines in a simulated network: it gives each user a token and a cookie, refuses those that
//! it does not know, and counts what it gets by path. What the generator counted of each step is held against that.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use prony_base::{Instant, Nanos, Random};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream};
use prony_record::{
    AnswerChecks, HttpProtocol, LatencyOrigin, LoadData, LoadSpec, Pace, PreparedRequest, RowOrder,
    ScenarioFlow, ScenarioReport, ScenarioSpec, ScenarioStep, StepReport, StepTake, TakeFrom,
    ThinkTime, Timestamps,
};

use crate::arrivals::ArrivalCounts;
use crate::connection::connect_all;
use crate::control::Counted;
use crate::expected::ExpectedStatus;
use crate::recorder::Recorder;
use crate::scenario::compiled::Scenario;
use crate::scenario::source::ScenarioSource;
use crate::thread_spec::{RunState, ThreadSpec};
use crate::window::Window;
use crate::worker::Worker;

const LIMIT: Nanos = Nanos::from_secs(600);

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

/// What the server does and has seen.
#[derive(Default)]
struct SessionServer {
    /// Requests by path.
    by_path: RefCell<BTreeMap<String, u64>>,
    /// Tokens and cookies that were given out: cookie n belongs to token n.
    sessions: Cell<u64>,
    /// Requests without a token that was given out, or with another user's cookie.
    refused: Cell<u64>,
    /// A login has no token in its answer.
    forgets: bool,
    /// One request in so many ends its connection, before or after it is answered.
    closes_one_in: u64,
    random: RefCell<Option<Random>>,
}

impl SessionServer {
    /// The answer to a request, and whether it is the connection's last; `None`: it closes without one.
    fn answer(&self, request: &str) -> Option<(String, bool)> {
        let path = request
            .split([' ', '?'])
            .nth(1)
            .unwrap_or_default()
            .to_owned();
        *self.by_path.borrow_mut().entry(path.clone()).or_default() += 1;
        let mut random = self.random.borrow_mut();
        let mut chance = |of| {
            let random = random.get_or_insert_with(|| Random::new(0));
            self.closes_one_in > 0 && random.chance(1, of)
        };
        if chance(self.closes_one_in * 2) {
            return None;
        }
        let is_last = chance(self.closes_one_in * 2);
        let close = if is_last { "Connection: close\r\n" } else { "" };
        let said = |status: &str, headers: &str, body: &str| {
            let length = body.len();
            format!("HTTP/1.1 {status}\r\n{close}{headers}Content-Length: {length}\r\n\r\n{body}")
        };
        if path == "/login" {
            let number = self.sessions.get() + 1;
            self.sessions.set(number);
            let cookie = format!("Set-Cookie: sid={number}; Path=/\r\n");
            let body = match self.forgets {
                true => r#"{"other": 1}"#.to_owned(),
                false => format!(r#"{{"token": "t-{number}+/"}}"#),
            };
            return Some((said("200 OK", &cookie, &body), is_last));
        }
        let of = |begin: &str| {
            let mut lines = request.lines();
            lines
                .find_map(|line| line.strip_prefix(begin))
                .unwrap_or_default()
                .to_owned()
        };
        let number = of("Cookie: sid=");
        let is_known = number
            .parse()
            .is_ok_and(|number: u64| number <= self.sessions.get());
        if is_known && of("Authorization: Bearer ") == format!("t-{number}+/") {
            return Some((said("200 OK", "X-Next: 7\r\n", "<li id=5>"), is_last));
        }
        self.refused.set(self.refused.get() + 1);
        Some((said("401 No", "", ""), is_last))
    }
}

async fn serve(handle: Handle, server: Rc<SessionServer>) {
    let listener = handle
        .listen(address(), &ListenOptions::default())
        .expect("a free port");
    while let Ok((stream, _)) = listener.accept().await {
        handle.spawn(converse(stream, Rc::clone(&server))).detach();
    }
}

async fn converse(stream: Stream, server: Rc<SessionServer>) {
    let mut pending = Vec::new();
    loop {
        let length = loop {
            if let Some(length) = whole(&pending) {
                break length;
            }
            match stream.recv().await {
                Ok(bytes) if !bytes.is_empty() => pending.extend_from_slice(&bytes),
                _ => return,
            }
        };
        let request: Vec<u8> = pending.drain(..length).collect();
        let Some((answer, is_last)) = server.answer(&String::from_utf8_lossy(&request)) else {
            return;
        };
        if stream.post(answer.into_bytes()).is_err() || is_last {
            let _ = stream.flush().await;
            return;
        }
    }
}

/// The length of the request that `bytes` begin with, if it is whole.
fn whole(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let length = end + length.map_or(0, |length| length.parse().expect("a length"));
    (bytes.len() >= length).then_some(length)
}

fn step(name: &str, request: &str) -> (ScenarioStep, PreparedRequest) {
    let step = ScenarioStep {
        name: name.to_owned(),
        ..ScenarioStep::default()
    };
    let method = request.split(' ').next().unwrap_or_default().to_owned();
    let request = PreparedRequest {
        method,
        bytes: request.as_bytes().to_vec(),
        ..PreparedRequest::default()
    };
    (step, request)
}

/// Login with a form, then two steps with the token, of which the second needs what the first one gave.
fn shop() -> Vec<(ScenarioStep, PreparedRequest)> {
    let take = |name: &str, from: TakeFrom| StepTake {
        name: name.to_owned(),
        from,
    };
    let mut login = step(
        "login",
        "POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nuser=u{counter}",
    );
    login.0.takes = vec![take("token", TakeFrom::Json("$.token".into()))];
    let mut list = step(
        "list",
        "GET /list HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n",
    );
    list.0.takes = vec![
        take("item", TakeFrom::Regex("id=([0-9]+)".into())),
        take("next", TakeFrom::Header("X-Next".into())),
        take("sid", TakeFrom::Cookie("sid".into())),
    ];
    let buy = step(
        "buy",
        "POST /buy?i={item}{next} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\n\r\nsid={sid}",
    );
    vec![login, list, buy]
}

/// A load of users.
struct Users {
    steps: Vec<(ScenarioStep, PreparedRequest)>,
    connections: usize,
    iterations_max: u64,
    warmup: Nanos,
    duration: Nanos,
    pace: Pace,
}

impl Default for Users {
    fn default() -> Users {
        Users {
            steps: shop(),
            connections: 3,
            iterations_max: 20,
            warmup: Nanos::ZERO,
            duration: Nanos::MAX,
            pace: Pace::default(),
        }
    }
}

impl Users {
    fn spec(&self) -> LoadSpec {
        let (steps, requests) = self.steps.iter().cloned().unzip();
        LoadSpec {
            threads: 1,
            connections: self.connections as u32,
            warmup_ns: self.warmup.0,
            duration_ns: self.duration.0,
            requests_max: Some(self.iterations_max),
            timeout_ns: Nanos::from_secs(1).0,
            requests,
            driver: "sim".to_owned(),
            pace: self.pace.clone(),
            latency_from: match self.pace.is_open() {
                true => LatencyOrigin::Intended,
                false => LatencyOrigin::Submitted,
            },
            scenario: Some(ScenarioSpec {
                flows: vec![ScenarioFlow {
                    name: "shop".to_owned(),
                    weight: 1,
                    steps,
                }],
            }),
            ..LoadSpec::default()
        }
    }

    fn thread_spec(&self, scenario: &Arc<Scenario>) -> ThreadSpec {
        let timeout = Nanos::from_secs(1);
        ThreadSpec {
            thread: 0,
            threads: 1,
            connections: self.connections,
            depth: 1,
            cookies: false,
            checks: Some(Arc::clone(&scenario.checks)),
            followers: None,
            protocol: HttpProtocol::Http1,
            unix: None,
            tunnel: None,
            expects_continue: false,
            requests_max: self.iterations_max,
            first: 0,
            addresses: vec![address()],
            timeout,
            first_timeout: timeout,
            connecting_max: 64,
            expected_status: ExpectedStatus::new(
                self.steps.iter().map(|(step, _)| &step.expected_status[..]),
            ),
            follow_max: None,
            coded: None,
            scenario: Some(Arc::clone(scenario)),
            queue_max: 1_000,
            timestamps: Some(Timestamps::User),
            trace_max: 0,
            served_max: u64::MAX,
            sources: Vec::new(),
            secure: None,
            readings: None,
        }
    }
}

/// What became of it.
struct Done {
    report: ScenarioReport,
    server: Rc<SessionServer>,
    arrivals: Option<ArrivalCounts>,
    /// From its begin to its end.
    lasted: Nanos,
    sent: u64,
}

impl Done {
    fn step(&self, name: &str) -> &StepReport {
        let mut steps = self.report.steps.iter();
        steps.find(|step| step.name == name).expect(name)
    }

    fn seen(&self, path: &str) -> u64 {
        self.server
            .by_path
            .borrow()
            .get(path)
            .copied()
            .unwrap_or_default()
    }
}

async fn drive(handle: Handle, users: Rc<Users>, scenario: Arc<Scenario>) -> (Counted, Instant) {
    // Time for the server to listen.
    handle.sleep(Nanos::from_millis(1)).await;
    let (spec, thread_spec) = (users.spec(), users.thread_spec(&scenario));
    let recorder = Recorder::new(Instant::ZERO, spec.latency_from);
    let recorder = Rc::new(RefCell::new(recorder));
    let streams = connect_all(&handle, &thread_spec, &recorder).await;
    let window = Window::new(handle.now(), users.warmup, users.duration);
    let begin = window.begin();
    let mut counts = Recorder::new(window.start(), spec.latency_from);
    counts.merge(&recorder.borrow());
    let source = ScenarioSource::new(&scenario, &spec, 0, thread_spec.slots()).expect("a source");
    let source = Box::new(source);
    let worker = Worker::new(handle, &spec, thread_spec, source, Arc::new(window), counts);
    let counted = Rc::new(worker).work(streams, Arc::new(RunState::default()), None);
    (counted.await, begin)
}

/// Plays `users` in the world of `seed`. Whatever happens, the steps sum up to the load, and no request lacks a token or has another
/// user's cookie.
fn play(seed: u64, users: Users, server: SessionServer) -> Done {
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
    let scenario = Scenario::new(&users.spec())
        .expect("it can be done")
        .expect("a scenario");
    let (users, own) = (Rc::new(users), Arc::clone(&scenario));
    let outcome = world.spawn_loop(&Config::default(), |handle| drive(handle, users, own));
    world
        .run(LIMIT)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let (counted, begin) = outcome.take().expect("the load has ended");
    let counts = counted.recorder.counts();
    let figures = counted.scenario.expect("there was one");
    let report = scenario.report(&figures, &scenario.checks.counts(), Nanos::from_secs(1));
    let whole = [
        counts.sent,
        counts.completed,
        counts.failed.total(),
        counts.in_flight,
    ];
    assert_eq!(report.unbalanced(whole), None, "seed {seed}: {counts:?}");
    let checks = scenario.checks.counts();
    let failed: u64 = checks.iter().map(|of| of.failed).sum();
    assert_eq!(failed, counts.failed.check, "seed {seed}: {checks:?}");
    assert_eq!(server.refused.get(), 0, "seed {seed}");
    Done {
        report,
        server,
        arrivals: counted.arrivals,
        lasted: counted.finished.since(begin),
        sent: counts.sent,
    }
}

#[test]
fn what_each_step_sent_is_what_the_server_got() {
    for seed in 0..5 {
        let done = play(seed, Users::default(), SessionServer::default());
        let iterations = done.report.iterations();
        assert_eq!((iterations.started, iterations.completed), (20, 20));
        assert_eq!(iterations.completed_in_window, 20);
        for (name, path) in [("login", "/login"), ("list", "/list"), ("buy", "/buy")] {
            let of = &done.step(name).counts;
            assert_eq!((of.sent, of.completed), (20, 20), "{name}");
            assert_eq!(done.seen(path), 20, "{name}");
            assert_eq!(done.step(name).latency_ns.count, 20);
        }
        assert_eq!(done.sent, 60);
    }
}

/// A user keeps its token and its cookies over connections; what was sent and not answered has failed, once.
#[test]
fn connections_that_close_in_the_middle_lose_no_count_and_mix_no_users() {
    let mut abandoned = 0;
    let seeds = prony_testkit::seeds(16, 400);
    for seed in 0..seeds {
        let users = Users {
            iterations_max: 30,
            steps: with(shop(), |step| step.goes_on = seed % 2 == 1),
            ..Users::default()
        };
        let server = SessionServer {
            closes_one_in: 5,
            ..SessionServer::default()
        };
        let done = play(seed, users, server);
        let iterations = done.report.iterations();
        assert_eq!(iterations.started, 30, "seed {seed}");
        assert_eq!(iterations.unfinished, 0, "seed {seed}");
        abandoned += iterations.abandoned;
        for (name, path) in [("login", "/login"), ("list", "/list"), ("buy", "/buy")] {
            let of = &done.step(name).counts;
            assert_eq!(of.unexpected_status, 0, "seed {seed}");
            let seen = done.seen(path);
            assert!(
                of.completed <= seen && seen <= of.sent,
                "seed {seed}: {of:?}, {seen} seen"
            );
        }
    }
    assert!(abandoned > seeds, "{abandoned}");
}

fn with(
    mut steps: Vec<(ScenarioStep, PreparedRequest)>,
    change: impl Fn(&mut ScenarioStep),
) -> Vec<(ScenarioStep, PreparedRequest)> {
    steps.iter_mut().for_each(|(step, _)| change(step));
    steps
}

#[test]
fn what_is_not_there_fails_its_step_by_name_and_no_later_one_is_sent_without_it() {
    for goes_on in [false, true] {
        let users = Users {
            steps: with(shop(), |step| step.goes_on = goes_on),
            ..Users::default()
        };
        let server = SessionServer {
            forgets: true,
            ..SessionServer::default()
        };
        let done = play(1, users, server);
        let login = done.step("login");
        assert_eq!((login.counts.sent, login.counts.failed.check), (20, 20));
        let missing = &login.checks[0];
        let said = (missing.check.as_str(), missing.failed);
        assert_eq!(said, ("take token from json $.token", 20));
        let list = &done.step("list").counts;
        assert_eq!((list.sent, list.lacking), (0, if goes_on { 20 } else { 0 }));
        assert_eq!(done.report.iterations().abandoned, 20);
        assert_eq!(done.seen("/list") + done.seen("/buy"), 0);
    }
}

#[test]
fn a_check_of_one_step_is_its_own() {
    let mut steps = shop();
    steps[1].0.checks = Some(AnswerChecks {
        contains: vec!["<li".into(), "no such text".into()],
        ..AnswerChecks::default()
    });
    let users = Users {
        steps,
        ..Users::default()
    };
    let done = play(2, users, SessionServer::default());
    let failed = |name: &str| done.step(name).counts.failed.check;
    assert_eq!(
        (
            failed("login"),
            failed("list"),
            done.step("buy").counts.sent
        ),
        (0, 20, 0)
    );
    let names: Vec<_> = done
        .step("list")
        .checks
        .iter()
        .map(|of| (of.check.as_str(), of.failed))
        .collect();
    assert_eq!(
        names[..2],
        [("contains <li", 0), ("contains no such text", 20)]
    );
}

fn thinking(min: Nanos, max: Nanos) -> Vec<(ScenarioStep, PreparedRequest)> {
    with(shop(), |step| {
        step.think = ThinkTime {
            min_ns: min.0,
            max_ns: max.0,
        };
    })
}

#[test]
fn a_user_thinks_as_long_as_it_is_told_after_each_answer() {
    let second = Nanos::from_secs(1);
    let users = |min, max| Users {
        steps: thinking(min, max),
        connections: 1,
        iterations_max: 3,
        ..Users::default()
    };
    let fixed = play(3, users(second * 2, second * 2), SessionServer::default());
    // Two iterations with three thoughts each, and one with the two between its steps.
    let thought = second * 2 * 8;
    assert!(
        fixed.lasted >= thought && fixed.lasted < thought + second,
        "{}",
        fixed.lasted
    );
    let took = fixed.report.flows[0].duration_ns;
    assert_eq!(took.count, 3);
    assert!(
        (3_990_000_000..4_500_000_000).contains(&took.min),
        "{took:?}"
    );
    assert!(fixed.step("buy").latency_ns.max < second.0 / 2);
    let drawn = play(3, users(second, second * 3), SessionServer::default());
    assert!(drawn.lasted >= second * 8 && drawn.lasted < second * 25);
    assert_ne!(drawn.lasted, fixed.lasted);
    let again = play(3, users(second, second * 3), SessionServer::default());
    assert_eq!(drawn.lasted, again.lasted);
}

#[test]
fn users_that_think_when_the_window_ends_do_not_go_on() {
    let second = Nanos::from_secs(1);
    for pace in [Pace::default(), Pace::Constant { rate_per_s: 10.0 }] {
        let users = Users {
            steps: thinking(second * 50, second * 50),
            iterations_max: u64::MAX,
            duration: second * 2,
            pace,
            ..Users::default()
        };
        let done = play(4, users, SessionServer::default());
        let iterations = done.report.iterations();
        assert!(done.lasted < second * 4, "{}", done.lasted);
        assert_eq!(iterations.started, iterations.unfinished);
        assert_eq!(done.step("list").counts.sent, 0);
        match done.arrivals {
            None => assert_eq!(iterations.started, 3),
            // Those that found no connection in the window begin when the others leave theirs.
            Some(all) => {
                assert_eq!(all.scheduled, 20);
                assert_eq!(iterations.started + all.waiting + all.dropped, 20);
                assert!(iterations.started > 3, "{iterations:?}");
            }
        }
    }
}

#[test]
fn an_arrival_is_a_user_and_its_steps_follow_each_other() {
    for seed in 0..5 {
        let users = Users {
            pace: Pace::Poisson { rate_per_s: 50.0 },
            iterations_max: u64::MAX,
            duration: Nanos::from_secs(2),
            connections: 2,
            ..Users::default()
        };
        let server = SessionServer {
            closes_one_in: if seed < 2 { 0 } else { 20 },
            ..SessionServer::default()
        };
        let done = play(seed, users, server);
        let (all, iterations) = (done.arrivals.expect("a schedule"), done.report.iterations());
        assert!(all.scheduled > 60, "{all:?}");
        assert_eq!(
            all.scheduled,
            iterations.started + all.waiting + all.dropped
        );
        assert_eq!(done.step("login").counts.sent, iterations.started);
        if seed < 2 {
            assert!(iterations.completed + iterations.unfinished == iterations.started);
            assert_eq!(done.seen("/buy"), done.step("buy").counts.sent);
        }
    }
}

#[test]
fn a_step_that_is_done_once_is_done_again_only_after_a_failure() {
    let mut steps = shop();
    steps[0].0.once = true;
    let users = Users {
        steps,
        ..Users::default()
    };
    let done = play(5, users, SessionServer::default());
    assert_eq!(done.step("login").counts.sent, 3);
    assert_eq!(
        (done.seen("/list"), done.report.iterations().completed),
        (20, 20)
    );
}

/// The second step takes the token anew, and does not find it: the next iteration has none, and logs in.
#[test]
fn what_was_taken_once_and_is_gone_is_taken_again() {
    let mut steps = shop();
    steps.truncate(2);
    steps[0].0.once = true;
    let again = steps[0].0.takes.clone();
    steps[1].0.goes_on = true;
    steps[1].0.takes = again;
    let users = Users {
        steps,
        connections: 2,
        ..Users::default()
    };
    let done = play(1, users, SessionServer::default());
    assert_eq!(done.report.iterations().completed, 20);
    assert_eq!((done.seen("/login"), done.seen("/list")), (20, 20));
}

#[test]
fn a_warm_up_is_apart_of_each_step() {
    let users = Users {
        steps: thinking(Nanos::from_millis(50), Nanos::from_millis(50)),
        iterations_max: u64::MAX,
        warmup: Nanos::from_secs(1),
        duration: Nanos::from_secs(1),
        ..Users::default()
    };
    let done = play(6, users, SessionServer::default());
    let login = &done.step("login").counts;
    assert!(
        login.warmup_completed > 10 && login.completed > 10,
        "{login:?}"
    );
    let iterations = done.report.iterations();
    assert!(iterations.completed_in_window < iterations.completed);
    assert_eq!(done.seen("/login"), login.sent);
}

#[test]
fn an_answer_with_another_status_is_completed_and_counted_as_unexpected() {
    let mut steps = with(shop(), |step| step.expected_status = vec![201]);
    steps.truncate(1);
    let users = Users {
        steps,
        ..Users::default()
    };
    let done = play(1, users, SessionServer::default());
    let counts = done.step("login").counts;
    assert_eq!((counts.completed, counts.unexpected_status), (20, 20));
}

#[test]
fn a_column_of_the_data_file_is_taken_by_no_step_and_is_in_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("names.csv");
    std::fs::write(&path, "name\nanna\n").expect("written");
    let named = |request: &str| {
        let users = Users {
            steps: vec![step("named", request)],
            ..Users::default()
        };
        let data = Some(LoadData {
            path: path.clone(),
            order: RowOrder::InTurn,
        });
        let spec = LoadSpec {
            data,
            ..users.spec()
        };
        Scenario::new(&spec).map(|_| ())
    };
    assert_eq!(named("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(()));
    assert_eq!(
        named("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        Err("no step has a column of the data file: {name}".to_owned())
    );
}
