//! Requests that go out behind others on one connection, in simulated networks: who may,
//! how many, and what becomes of them when it breaks anywhere. Each answer names the
//! request that it is for.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::Nanos;
use prony_client::{Client, Counts, Error, Kind, RequestPhase, Settings};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream, Task};

/// What a server does with a connection, in this order; at the end it closes.
#[derive(Clone, Debug)]
enum Step {
    /// Reads so many requests.
    Read(usize),
    /// Answers the oldest of those that were read.
    Answer,
    Send(Vec<u8>),
    Wait,
    /// Nothing more comes for a while.
    Quiet,
    Reset,
    /// Keeps the connection for ever.
    Stay,
}

use Step::{Answer, Quiet, Read, Reset, Send, Stay, Wait};

const PAUSE: Nanos = Nanos::from_millis(20);

fn answer(path: &str) -> Vec<u8> {
    let length = path.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{path}").into_bytes()
}

/// The same steps so many times.
fn times(count: usize, steps: &[Step]) -> Vec<Step> {
    (0..count).flat_map(|_| steps.to_vec()).collect()
}

/// Answers one request after the other, which come one at a time.
fn alone() -> Vec<Step> {
    times(40, &[Read(1), Quiet, Answer])
}

struct Play {
    stream: Stream,
    received: Vec<u8>,
    read: VecDeque<String>,
}

impl Play {
    /// False where the client has gone.
    async fn read(&mut self) -> bool {
        loop {
            let received = &self.received;
            if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.received.drain(..end + 4).collect();
                let head = String::from_utf8(head).expect("text");
                let path = head.split(' ').nth(1).expect("a path");
                self.read.push_back(path.to_owned());
                return true;
            }
            match self.stream.recv().await {
                Ok(bytes) if !bytes.is_empty() => self.received.extend_from_slice(&bytes),
                _ => return false,
            }
        }
    }

    async fn run(mut self, handle: Handle, script: Vec<Step>, noise: Rc<Cell<usize>>) {
        for step in script {
            let bytes = match step {
                Read(count) => {
                    for _ in 0..count {
                        if !self.read().await {
                            return;
                        }
                    }
                    continue;
                }
                Answer => answer(&self.read.pop_front().expect("a request")),
                Send(bytes) => bytes,
                Wait => {
                    handle.sleep(PAUSE).await;
                    continue;
                }
                Quiet => {
                    let more = handle.timeout(PAUSE, self.stream.recv()).await;
                    if more.is_ok() || !self.received.is_empty() {
                        noise.set(noise.get() + 1);
                    }
                    continue;
                }
                Reset => return self.stream.reset(),
                Stay => std::future::pending().await,
            };
            if self.stream.post(bytes).is_err() || self.stream.flush().await.is_err() {
                return;
            }
        }
    }
}

/// Serves one script for each connection in turn (the last for all further ones), runs
/// `work` beside it, and checks that each request was counted once and that no server
/// heard more than it should have.
fn beside<T: 'static, F: Future<Output = T> + 'static>(
    (seed, options): (u64, SimOptions),
    scripts: Vec<Vec<Step>>,
    settings: Settings,
    work: impl FnOnce(Handle, Client) -> F + 'static,
) -> (T, Counts) {
    let mut world = World::new(seed, options);
    let noise = Rc::new(Cell::new(0));
    let heard = noise.clone();
    let _server = world.spawn_loop(&Config::default(), async move |handle: Handle| {
        let address = SocketAddr::from(([10, 0, 0, 1], 80));
        let listener = handle.listen(address, &ListenOptions::default());
        let listener = listener.expect("a free port");
        let mut playing = Vec::new();
        // Until the client is done, which ends the world's patience.
        for place in 0..64 {
            let next = handle.timeout(Nanos::from_secs(600), listener.accept());
            let Ok(Ok((stream, _))) = next.await else {
                break;
            };
            let script = scripts[place.min(scripts.len() - 1)].clone();
            let play = Play {
                stream,
                received: Vec::new(),
                read: VecDeque::new(),
            };
            playing.push(handle.spawn(play.run(handle.clone(), script, heard.clone())));
        }
    });
    let client = world.spawn_loop(&Config::default(), async move |handle: Handle| {
        handle.sleep(Nanos::from_millis(1)).await;
        let client = Client::new(&handle, settings);
        let result = work(handle, client.clone()).await;
        (result, client.counts())
    });
    world.run(Nanos::from_secs(36_000)).expect("nothing hangs");
    let (result, counts) = client.take().expect("the client is done");
    let ended = counts.answered + counts.failed + counts.cancelled;
    assert_eq!(counts.started, ended + counts.in_flight, "{counts:?}");
    assert_eq!(noise.get(), 0, "more came than should");
    (result, counts)
}

fn calm() -> (u64, SimOptions) {
    let options = SimOptions {
        slow_loops_one_in: 0,
        ..SimOptions::default()
    };
    (7, options)
}

/// One connection, and so many requests at once on it.
fn settings(pipelining_max: usize) -> Settings {
    Settings {
        connections_per_host_max: 1,
        pipelining_max,
        ..Settings::default()
    }
}

/// Asks for a path, and has its own answer or an error.
async fn fetch(client: Client, path: usize) -> Result<(), Error> {
    let answer = client
        .get(&format!("http://10.0.0.1/{path}"))
        .send()
        .await?;
    assert_eq!(answer.text().await?, format!("/{path}"));
    Ok(())
}

/// Asks for `/0`, `/1`, …, all at once.
fn all(handle: &Handle, client: &Client, count: usize) -> Vec<Task<Result<(), Error>>> {
    let ask = |path| handle.spawn(fetch(client.clone(), path));
    (0..count).map(ask).collect()
}

async fn results(handle: Handle, client: Client, count: usize) -> Vec<Result<(), Error>> {
    let mut ended = Vec::new();
    for one in all(&handle, &client, count) {
        ended.push(one.await);
    }
    ended
}

fn good(results: &[Result<(), Error>]) -> bool {
    results.iter().all(Result::is_ok)
}

#[test]
fn as_many_as_are_allowed_go_out_behind_each_other_and_no_more() {
    let script = [
        &[Read(1), Quiet, Answer][..],
        // The connection has proven to be kept.
        &[Read(3), Quiet, Answer, Read(1), Quiet, Answer, Read(1)],
        &[Quiet, Answer, Read(1), Quiet, Answer, Answer, Answer, Stay],
    ];
    let (results, counts) = beside(
        calm(),
        vec![script.concat()],
        settings(3),
        |handle, client| results(handle, client, 7),
    );
    assert!(good(&results), "{results:?}");
    assert_eq!(
        (counts.exchanges, counts.connected, counts.resent),
        (7, 1, 0)
    );
    assert_eq!((counts.queued, counts.idle), (0, 1));
}

#[test]
fn it_is_off_unless_it_is_asked_for() {
    let default = Settings {
        connections_per_host_max: 1,
        ..Settings::default()
    };
    let (results, counts) = beside(calm(), vec![alone()], default, |handle, client| {
        results(handle, client, 4)
    });
    assert!(good(&results), "{results:?}");
    assert_eq!((counts.exchanges, counts.connected), (4, 1));
}

#[test]
fn answers_find_their_requests_however_they_are_split() {
    let whole: Vec<u8> = (1..4)
        .flat_map(|path| answer(&format!("/{path}")))
        .collect();
    let mut scripts: Vec<Vec<Step>> = (0..=whole.len())
        .map(|cut| {
            let (first, second) = whole.split_at(cut);
            vec![Send(first.to_vec()), Wait, Send(second.to_vec())]
        })
        .collect();
    scripts.push(
        whole
            .iter()
            .flat_map(|&byte| [Send(vec![byte]), Wait])
            .collect(),
    );
    for answers in scripts {
        let script = [vec![Read(1), Answer, Read(3)], answers, vec![Stay]].concat();
        let (results, counts) = beside(calm(), vec![script], settings(5), |handle, client| {
            results(handle, client, 4)
        });
        assert!(good(&results), "{results:?}");
        assert_eq!(
            (counts.exchanges, counts.connected, counts.resent),
            (4, 1, 0)
        );
    }
}

#[test]
fn those_without_an_answer_are_sent_again_alone_wherever_the_connection_breaks() {
    let each = answer("/1").len();
    let whole: Vec<u8> = (1..4)
        .flat_map(|path| answer(&format!("/{path}")))
        .collect();
    for cut in 0..whole.len() {
        for by_reset in [false, true] {
            let mut script = vec![Read(1), Answer, Read(3), Send(whole[..cut].to_vec())];
            if by_reset {
                // What was sent before has arrived.
                script.extend([Wait, Reset]);
            }
            let scripts = vec![script, alone()];
            let (results, counts) = beside(calm(), scripts, settings(5), |handle, client| {
                results(handle, client, 4)
            });
            // The one whose answer had begun has failed, since it may have been a long one.
            let (answered, is_cut) = (cut / each, cut % each > 0);
            for (path, result) in results.iter().enumerate() {
                let is_the_cut_one = is_cut && path == answered + 1;
                assert_eq!(result.is_err(), is_the_cut_one, "{cut} {path}: {result:?}");
                if let Err(error) = result {
                    let is_named = matches!(error.kind(), Kind::Truncated | Kind::Reset(_));
                    let is_placed =
                        matches!(error.phase(), RequestPhase::Head | RequestPhase::Body);
                    assert!(is_named && is_placed, "{cut}: {error}");
                }
            }
            let again = (3 - answered - usize::from(is_cut)) as u64;
            let connected = if again > 0 { 2 } else { 1 };
            let counted = (counts.exchanges, counts.resent, counts.connected);
            assert_eq!(counted, (4 + again, again, connected), "{cut} {by_reset}");
        }
    }
}

#[test]
fn an_answer_that_closes_sends_those_behind_it_again() {
    let closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n/1";
    let script = vec![Read(1), Answer, Read(3), Send(closing.to_vec()), Stay];
    let (results, counts) = beside(
        calm(),
        vec![script, alone()],
        settings(5),
        |handle, client| results(handle, client, 4),
    );
    assert!(good(&results), "{results:?}");
    assert_eq!(
        (counts.exchanges, counts.resent, counts.connected),
        (6, 2, 2)
    );
}

#[test]
fn a_request_that_may_not_be_sent_twice_goes_alone_and_holds_its_place() {
    let script = vec![
        Read(1),
        Answer,
        Read(1),
        Quiet,
        Answer,
        Read(1),
        Quiet,
        Answer,
    ];
    let script = [script, vec![Read(2), Quiet, Answer, Answer, Stay]].concat();
    let (order, counts) = beside(calm(), vec![script], settings(5), async |handle, client| {
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = (0..5)
            .map(|path| {
                let (client, order) = (client.clone(), order.clone());
                handle.spawn(async move {
                    let url = format!("http://10.0.0.1/{path}");
                    let asked = match path {
                        2 => client.post(&url),
                        _ => client.get(&url),
                    };
                    let text = asked.send().await.expect("an answer").text().await;
                    order.borrow_mut().push(text.expect("a body"));
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        order.take()
    });
    assert_eq!(order, ["/0", "/1", "/2", "/3", "/4"]);
    assert_eq!((counts.exchanges, counts.connected), (5, 1));
}

#[test]
fn servers_of_the_old_version_get_one_at_a_time() {
    let old = |path: usize| {
        let head = "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n";
        [Read(1), Quiet, Send(format!("{head}/{path}").into_bytes())]
    };
    let script = (0..4).flat_map(old).collect();
    let (results, counts) = beside(calm(), vec![script], settings(5), |handle, client| {
        results(handle, client, 4)
    });
    assert!(good(&results), "{results:?}");
    assert_eq!(counts.connected, 1);
}

/// Drops the request at `place` of three that are out, whose answers are `/1` to `/3` but
/// for `/2`, which is `second`; how often requests were sent again, and over how many
/// connections in all.
fn drop_one(place: usize, second: Vec<u8>) -> (u64, u64) {
    let script = vec![Read(1), Answer, Read(3), Wait, Send(answer("/1")), Wait];
    let rest = vec![Send(second), Wait, Send(answer("/3")), Stay];
    let scripts = vec![[script, rest].concat(), alone()];
    let ((), counts) = beside(calm(), scripts, settings(5), async move |handle, client| {
        let mut tasks = all(&handle, &client, 4);
        handle.sleep(Nanos::from_millis(10)).await;
        assert_eq!((client.counts().exchanges, client.counts().queued), (4, 2));
        drop(tasks.remove(place));
        for task in tasks {
            task.await.expect("its answer");
        }
        handle.sleep(PAUSE).await;
    });
    let ended = (counts.answered, counts.cancelled, counts.failed);
    assert_eq!(ended, (3, 1, 0), "{counts:?}");
    assert_eq!(counts.exchanges, 4 + counts.resent, "{counts:?}");
    (counts.resent, counts.connected)
}

#[test]
fn the_answer_of_a_request_that_was_dropped_is_read_away_or_its_connection_closed() {
    // Who waits for the next answer closes.
    assert_eq!(drop_one(1, answer("/2")), (2, 2));
    assert_eq!(drop_one(2, answer("/2")), (0, 1));
    assert_eq!(drop_one(3, answer("/2")), (0, 1));
    // More than is worth it.
    let large = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
    let large = [&large[..], &[b'x'; 100_000]].concat();
    assert_eq!(drop_one(2, large), (1, 2));
}

#[test]
fn a_request_that_is_dropped_as_its_turn_comes_leaves_the_connection_to_the_next() {
    let script = vec![Read(1), Answer, Read(3), Wait, Answer, Answer, Answer, Stay];
    let ((), counts) = beside(calm(), vec![script], settings(5), async |handle, client| {
        let mut tasks = all(&handle, &client, 1);
        let second = Rc::new(RefCell::new(None));
        let (its, dropper) = (client.clone(), second.clone());
        tasks.push(handle.spawn(async move {
            fetch(its, 1).await?;
            // The connection was granted to it with the end of this one.
            drop(dropper.take());
            Ok(())
        }));
        second.replace(Some(handle.spawn(fetch(client.clone(), 2))));
        tasks.push(handle.spawn(fetch(client.clone(), 3)));
        for task in tasks {
            task.await.expect("its answer");
        }
    });
    assert_eq!((counts.answered, counts.cancelled), (3, 1), "{counts:?}");
    assert_eq!((counts.resent, counts.connected), (0, 1), "{counts:?}");
}

#[test]
fn every_request_has_its_own_answer_in_any_weather() {
    for seed in 0..60 {
        let scripts = (0..8)
            .map(|place| {
                let answers = 2 + (seed as usize * 7 + place * 5) % 13;
                let ends = if seed % 2 == 0 { vec![] } else { vec![Reset] };
                [times(answers, &[Read(1), Answer]), ends].concat()
            })
            .chain([times(100, &[Read(1), Answer])])
            .collect();
        let settings = Settings {
            connections_per_host_max: 2,
            pipelining_max: 4,
            ..Settings::default()
        };
        let weather = (seed, SimOptions::default());
        let (results, counts) = beside(weather, scripts, settings, |handle, client| {
            results(handle, client, 40)
        });
        for error in results.iter().filter_map(|one| one.as_ref().err()) {
            let is_broken = matches!(
                error.kind(),
                Kind::Truncated | Kind::Reset(_) | Kind::Closed | Kind::Io(_)
            );
            assert!(is_broken, "seed {seed}: {error}");
        }
        assert_eq!(
            counts.exchanges,
            counts.started + counts.resent,
            "{seed}: {counts:?}"
        );
        assert!(counts.answered > 20, "seed {seed}: {counts:?}");
        assert_eq!(counts.in_flight, 0, "seed {seed}");
    }
}
