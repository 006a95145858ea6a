//! The client and Prony's server in simulated worlds with short reads, late bytes, resets
//! and refusals: whatever happens, every request ends, is counted once, and gets its own
//! answer or an error; and no limit on connections is passed.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::{Nanos, Random};
use prony_client::{Client, Counts, Settings};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, mailbox};
use prony_http::{Handler, Request, Response, Server, ServerOptions, Source, Totals};

const REQUESTS: u64 = 40;

struct App {
    handle: Handle,
    random: RefCell<Random>,
}

impl Handler for App {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        let below = |most| self.random.borrow_mut().below(most);
        if below(3) == 0 {
            self.handle.sleep(Nanos::from_micros(below(3_000))).await;
        }
        let echo = [request.path().as_bytes(), request.body()].concat();
        if below(2) == 0 {
            return response.send(200, [], &echo);
        }
        let mut body = response.stream(200, [], None);
        for piece in echo.chunks(1 + below(2_000) as usize) {
            if body.write(piece).await.is_err() {
                return;
            }
        }
        let _ = body.finish().await;
    }
}

/// What the requests of one world came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    right: u64,
    failed: u64,
    dropped: u64,
    wrong: Vec<String>,
}

async fn one(client: Client, handle: Handle, mut random: Random, tally: Rc<RefCell<Tally>>) {
    handle.sleep(Nanos::from_micros(random.below(30_000))).await;
    let path = format!("/{}", random.next_u64());
    let url = format!("http://10.0.0.1{path}");
    let sent: Vec<u8> = match random.below(3) {
        0 => Vec::new(),
        1 => vec![b'y'; random.below(500) as usize],
        _ => vec![b'z'; random.below(20_000) as usize],
    };
    let request = match (sent.len(), random.chance(1, 2)) {
        (0, _) => client.get(&url),
        (_, true) => client.post(&url).body(sent.clone()),
        (_, false) => {
            let pieces: Vec<_> = sent.chunks(7_000).map(|piece| Ok(piece.to_vec())).collect();
            client.put(&url).body_stream(pieces.into_iter(), None)
        }
    };
    let whole = async { request.send().await?.bytes().await };
    let patience = match random.chance(1, 5) {
        true => Nanos::from_micros(random.below(4_000)),
        false => Nanos::from_secs(3_000),
    };
    let ended = handle.timeout(patience, whole).await;
    let mut tally = tally.borrow_mut();
    match ended {
        Err(_elapsed) => tally.dropped += 1,
        Ok(Err(_)) => tally.failed += 1,
        Ok(Ok(body)) if body == [path.as_bytes(), &sent].concat() => tally.right += 1,
        Ok(Ok(body)) => tally.wrong.push(format!("{url}: {} bytes", body.len())),
    }
}

fn settings(random: &mut Random) -> Settings {
    Settings {
        connections_per_host_max: 1 + random.below(5) as usize,
        connections_max: 1 + random.below(5) as usize,
        idle_timeout: Nanos::from_millis(1 + random.below(20)),
        drain_bytes_max: random.below(10_000),
        ..Settings::default()
    }
}

/// Plays the world of a seed; the tally, both sides' counts, and the hash of its events.
fn play(seed: u64) -> (Tally, Counts, Totals, u64) {
    let mut random = Random::of(seed, "client's world");
    let faults = u32::from(random.chance(1, 2));
    let mut world = World::new(
        seed,
        SimOptions {
            resets_per_million: faults * 10_000,
            refusals_per_million: faults * 50_000,
            link_bytes_max: 1 << (8 + random.below(8)),
            ..SimOptions::default()
        },
    );
    let (stop_sender, mut stopped) = mailbox::<()>(1);
    let options = ServerOptions {
        // Connections at rest die under the client's hands.
        idle_timeout: Nanos::from_millis(1 + random.below(20)),
        ..ServerOptions::default()
    };
    let theirs = Random::new(random.next_u64());
    let server = world.spawn_loop(&Config::default(), async move |handle| {
        let address = SocketAddr::from(([10, 0, 0, 1], 80));
        let listener = handle.listen(address, &ListenOptions::default());
        let app = App {
            handle: handle.clone(),
            random: RefCell::new(theirs),
        };
        let server = Server::new(&handle, options, app);
        let counters = server.counters().clone();
        let stop = async {
            stopped.recv().await;
        };
        let source = Source::Listener(listener.expect("a free port"));
        server.run(source, stop).await;
        counters.totals()
    });
    let client = world.spawn_loop(&Config::default(), async move |handle: Handle| {
        handle.sleep(Nanos::from_micros(1)).await;
        let settings = settings(&mut random);
        let most = settings
            .connections_max
            .min(settings.connections_per_host_max) as u64;
        let client = Client::new(&handle, settings);
        let tally = Rc::new(RefCell::new(Tally::default()));
        let highest = Rc::new(Cell::new(0));
        let tasks: Vec<_> = (0..REQUESTS)
            .map(|_| {
                let random = Random::new(random.next_u64());
                let (theirs, highest) = (client.clone(), highest.clone());
                let work = one(client.clone(), handle.clone(), random, tally.clone());
                handle.spawn(async move {
                    work.await;
                    highest.set(theirs.counts().connections.max(highest.get()));
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        assert!(
            highest.get() <= most,
            "{} connections, {most} allowed",
            highest.get()
        );
        // All that rests is closed in its time.
        handle.sleep(Nanos::from_secs(3)).await;
        stop_sender.send(()).expect("one stop");
        (tally.take(), client.counts())
    });
    let ran = world.run(Nanos::from_secs(36_000));
    ran.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let (tally, counts) = client.take().expect("the client is done");
    let totals = server.take().expect("the server is done");
    (tally, counts, totals, world.trace_hash())
}

#[test]
fn every_request_ends_and_is_counted_once() {
    let mut all = Tally::default();
    for seed in 0..40 {
        let (tally, counts, totals, _) = play(seed);
        assert_eq!(tally.wrong, [""; 0], "seed {seed}");
        assert_eq!(
            counts.started,
            REQUESTS - (REQUESTS - counts.started),
            "seed {seed}"
        );
        assert_eq!(counts.started, REQUESTS, "seed {seed}");
        let told = (tally.right, tally.failed);
        assert_eq!(
            (counts.answered, counts.failed),
            told,
            "seed {seed}: {counts:?}"
        );
        assert!(counts.cancelled <= tally.dropped, "seed {seed}: {counts:?}");
        assert_eq!((counts.in_flight, counts.queued), (0, 0), "seed {seed}");
        assert_eq!(
            (counts.connections, counts.idle),
            (0, 0),
            "seed {seed}: {counts:?}"
        );
        assert!(
            totals.requests <= counts.exchanges,
            "seed {seed}: {totals:?} {counts:?}"
        );
        all.right += tally.right;
        all.failed += tally.failed;
        all.dropped += tally.dropped;
    }
    // The worlds are such that all of it happens, and that most goes well.
    assert!(
        all.right > 1_000 && all.failed > 5 && all.dropped > 60,
        "{all:?}"
    );
}

#[test]
fn a_world_tells_itself_the_same_again() {
    for seed in [3, 14] {
        assert_eq!(play(seed), play(seed));
    }
}
