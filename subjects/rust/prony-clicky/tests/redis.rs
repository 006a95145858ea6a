//! Redis that is killed, paused, emptied, full, slow, shared, or does not answer: clicks
//! are counted on both sides. Each test has a server of its own.

mod counted;

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use counted::{at_desk, click, kept, quiet, until};
use prony_base::Nanos;
use prony_clicky::counting::{Ack, Backend, CountingSetting, Health, Name, Refusal, Tally};
use rustix::process::{Pid, Signal, kill_process};

struct Server {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Server {
    /// A server; `None` where there is none on this machine.
    fn start() -> Option<Server> {
        prony_testkit::need("redis-server")?;
        let folder = tempfile::tempdir().expect("a folder");
        let port = prony_testkit::free_port();
        let process = Server::run(port, folder.path());
        Some(Server {
            process,
            port,
            folder,
        })
    }

    fn run(port: u16, folder: &Path) -> Child {
        let mut process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-server starts");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("eady to accept connections") {
            line.clear();
            let bytes = output.read_line(&mut line).expect("its output");
            assert!(bytes > 0, "redis-server ended");
        }
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        process
    }

    fn kill(&mut self) {
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it ended");
    }

    fn restart(&mut self) {
        self.process = Server::run(self.port, self.folder.path());
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.process.id() as i32).expect("a pid");
        kill_process(pid, signal).expect("it is there");
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn ask(&self, words: &[&str]) -> Option<String> {
        let client = redis::Client::open(self.url()).expect("a URL");
        let mut connection = client.get_connection().expect("it is there");
        let (command, rest) = words.split_first().expect("a command");
        let answer = redis::cmd(command).arg(rest).query(&mut connection);
        answer.expect("an answer")
    }

    fn count(&self) -> u64 {
        let count = self.ask(&["GET", "CLICKY_COUNTER"]);
        count.map_or(0, |count| count.parse().expect("a number"))
    }

    fn setting(&self, ack: Ack) -> CountingSetting {
        let (setting, _) = quiet(patient(&self.url(), Nanos::from_millis(300)));
        CountingSetting { ack, ..setting }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already, which is what some tests are about.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn patient(url: &str, answer_max: Nanos) -> Backend {
    Backend::Redis {
        url: url.to_owned(),
        key: "CLICKY_COUNTER".to_owned(),
        answer_max,
    }
}

/// Clicks from memory until `enough`; how many were acknowledged.
fn add_until(tally: &Tally, what: &str, mut enough: impl FnMut(u64) -> bool) -> u64 {
    at_desk(tally, async |handle, desk| {
        let added = Cell::new(0);
        let add = || {
            let more = desk.add(&Name::ROOT, 3).is_ok();
            added.set(added.get() + if more { 3 } else { 0 });
            enough(added.get())
        };
        until(handle, what, add).await;
        added.get()
    })
}

#[test]
fn several_instances_share_their_counters_exactly() {
    let Some(server) = Server::start() else {
        return;
    };
    let name = Name::new("shared").expect("a name");
    let instance = |ack| {
        let tally = Tally::open(&server.setting(ack)).expect("it opens");
        let counts = at_desk(&tally, async |handle, desk| {
            desk.click(&name, 5).await.expect("counted");
            let counts = click(handle, &desk, |counts| counts.acknowledged >= 3_000).await;
            let all_seen = || desk.total(&Name::ROOT) >= 4 * 3_000 && desk.total(&name) == 20;
            until(handle, "all see the clicks of all", all_seen).await;
            counts
        });
        tally.close().expect("all is kept");
        counts.acknowledged
    };
    let all: u64 = std::thread::scope(|scope| {
        let acks = [Ack::Memory, Ack::Synced, Ack::Memory, Ack::Synced];
        let running = acks.map(|ack| scope.spawn(move || instance(ack)));
        running
            .map(|running| running.join().expect("it counted"))
            .iter()
            .sum()
    });
    assert_eq!(server.count(), all);
    assert_eq!(kept(&patient(&server.url(), Nanos::from_secs(1))), all);
    let longest = "local longest = 0
        for _, key in ipairs(redis.call('KEYS', '*batch*')) do
            local left = redis.call('TTL', key)
            longest = math.max(longest, left < 0 and 1e9 or left)
        end
        return longest";
    let left = server.ask(&["EVAL", longest, "0"]).expect("a number");
    let left: u64 = left.parse().expect("a number");
    assert!(
        (1..=600).contains(&left),
        "what was sent last is known for a while after the end, and not longer: {left} s"
    );
}

#[test]
fn a_server_that_comes_back_empty_has_all_counts_again() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let one = Tally::open(&server.setting(Ack::Memory)).expect("it opens");
    let other = Tally::open(&server.setting(Ack::Memory)).expect("it opens");
    let mut all = 0;
    for _ in 0..3 {
        for tally in [&one, &other] {
            let sent = tally.numbers().batches + 3;
            all += add_until(tally, "it is kept", |_| tally.numbers().batches > sent);
        }
        // Both have seen some of what the other counted, and neither all of it.
        server.kill();
        for tally in [&one, &other] {
            let fails = |_| matches!(tally.health(), Health::Bridging { .. });
            all += add_until(tally, "the outage is bridged", fails);
        }
        server.restart();
        for tally in [&one, &other] {
            let kept = |_| tally.health() == Health::Ready && tally.numbers().pending < 1_000;
            all += add_until(tally, "it is kept again", kept);
        }
    }
    one.close().expect("all is kept");
    other.close().expect("all is kept");
    assert_eq!(server.count(), all);
}

#[test]
fn a_server_that_comes_back_with_what_it_had_a_while_ago_is_told_the_rest() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let tally = Tally::open(&server.setting(Ack::Memory)).expect("it opens");
    let mut all = add_until(&tally, "it is kept", |_| server.count() > 0);
    server.ask(&["SAVE"]);
    let old = server.count();
    all += add_until(&tally, "more is kept", |_| server.count() > old + 100);
    server.kill();
    server.restart();
    // Nobody clicks: it is told all the same.
    at_desk(&tally, async |handle, _| {
        let told = || tally.health() == Health::Ready && server.count() == all;
        until(handle, "it is told", told).await;
    });
    all += add_until(&tally, "it goes on", |added| added > 100);
    tally.close().expect("all is kept");
    assert_eq!(server.count(), all);
}

#[test]
fn an_outage_is_bridged_up_to_a_limit_and_then_refused() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let mut setting = server.setting(Ack::Memory);
    setting.pending_max = 1_000;
    let tally = Tally::open(&setting).expect("it opens");
    let mut all = add_until(&tally, "it is kept", |_| server.count() > 0);
    server.kill();
    all += add_until(&tally, "it is full", |_| {
        matches!(tally.health(), Health::Refusing { .. })
            || tally.numbers().pending + 3 > setting.pending_max
    });
    at_desk(&tally, async |handle, desk| {
        assert_eq!(desk.add(&Name::ROOT, 3), Err(Refusal::PendingFull));
        assert_eq!(
            desk.total(&Name::ROOT),
            all,
            "what was refused is not counted"
        );
        server.restart();
        until(handle, "it takes clicks again", || {
            desk.add(&Name::ROOT, 3).is_ok()
        })
        .await;
        all += 3;
    });
    tally.close().expect("all is kept");
    assert_eq!(server.count(), all);
}

#[test]
fn clicks_that_wait_for_a_server_that_is_gone_are_refused() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let mut setting = server.setting(Ack::Synced);
    setting.close_max = Nanos::from_millis(100);
    let tally = Tally::open(&setting).expect("it opens");
    at_desk(&tally, async |_, desk| {
        assert_eq!(desk.click(&Name::ROOT, 5).await, Ok(5));
        server.kill();
        // The first one may have been sent; nobody is there to say that it was not.
        assert!(desk.click(&Name::ROOT, 5).await.is_err());
        assert_eq!(desk.click(&Name::ROOT, 5).await, Err(Refusal::NotKept));
        assert_eq!(desk.total(&Name::ROOT), 5);
        assert_eq!(desk.add(&Name::ROOT, 7), Ok(12), "answered from memory");
    });
    let lost = tally.close().expect_err("nobody took them");
    assert_eq!(lost.clicks, 7, "{lost}");
    assert_eq!(tally.close(), Err(lost), "it says the same again");
}

#[test]
fn a_server_that_is_paused_leaves_clicks_in_doubt_and_counts_none_twice() {
    let Some(server) = Server::start() else {
        return;
    };
    for round in 0..5 {
        let before = server.count();
        let tally = Tally::open(&server.setting(Ack::Synced)).expect("it opens");
        let counts = at_desk(&tally, async |handle, desk| {
            let running =
                handle.spawn({
                    let (handle, desk) = (handle.clone(), desk.clone());
                    async move {
                        click(&handle, &desk, |counts| counts.refused + counts.unsure > 64).await
                    }
                });
            until(handle, "clicks are kept", || {
                desk.total(&Name::ROOT) > before + 500
            })
            .await;
            server.signal(Signal::STOP);
            let counts = running.await;
            server.signal(Signal::CONT);
            until(handle, "it is well again", || {
                tally.health() == Health::Ready
            })
            .await;
            counts
        });
        tally.close().expect("all is kept");
        let counted = server.count() - before;
        println!("round {round}: {counts:?}, {counted} in Redis");
        assert!(counts.unsure > 0, "some were on their way");
        let (least, most) = (counts.acknowledged, counts.acknowledged + counts.unsure);
        assert!((least..=most).contains(&counted), "{counted}, {counts:?}");
    }
}

#[test]
fn a_full_server_refuses_durable_clicks_and_keeps_the_others_waiting() {
    let Some(server) = Server::start() else {
        return;
    };
    let tally = Tally::open(&server.setting(Ack::Synced)).expect("it opens");
    at_desk(&tally, async |handle, desk| {
        assert_eq!(desk.click(&Name::ROOT, 5).await, Ok(5));
        server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
        assert_eq!(desk.click(&Name::ROOT, 5).await, Err(Refusal::NotKept));
        assert_eq!(desk.add(&Name::ROOT, 7), Ok(12));
        assert_eq!(desk.click(&Name::ROOT, 5).await, Err(Refusal::NotKept));
        assert_eq!(
            server.count(),
            5,
            "a script that is refused has changed nothing"
        );
        server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
        until(handle, "it takes clicks again", || server.count() == 12).await;
        assert_eq!(desk.click(&Name::ROOT, 5).await, Ok(17));
    });
    tally.close().expect("all is kept");
    assert_eq!(server.count(), 17);
}

#[test]
fn a_slow_server_is_waited_for_and_counted_right() {
    let Some(server) = Server::start() else {
        return;
    };
    // It answers after half a second: within the patience of one, and beyond the other's.
    for (patience, is_well) in [(20_000, true), (20, false)] {
        let before = server.count();
        let (mut setting, _) = quiet(patient(&server.url(), Nanos::from_millis(patience)));
        setting.ack = Ack::Synced;
        let tally = Tally::open(&setting).expect("it opens");
        let counts = at_desk(&tally, async |handle, desk| {
            let asked = Rc::new(Cell::new(0));
            let enough = move |counts: counted::Counts| {
                asked.set(asked.get() + 1);
                counts.acknowledged + counts.refused + counts.unsure > 200
            };
            server.ask(&["CLIENT", "PAUSE", "500", "ALL"]);
            let counts = click(handle, &desk, enough).await;
            until(handle, "it is well again", || {
                tally.health() == Health::Ready
            })
            .await;
            counts
        });
        tally.close().expect("all is kept");
        let counted = server.count() - before;
        assert_eq!(counts.refused + counts.unsure == 0, is_well, "{counts:?}");
        let most = counts.acknowledged + counts.unsure;
        assert!(
            (counts.acknowledged..=most).contains(&counted),
            "{counted}, {counts:?}"
        );
    }
}

/// Passes bytes between its clients and a server, and now and then loses an answer: the
/// connection ends when the server has already done what it was asked.
struct Forgetful {
    address: String,
    is_forgetful: Arc<AtomicBool>,
    lost: Arc<AtomicU64>,
}

impl Forgetful {
    fn before(port: u16) -> Forgetful {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("redis://{}", listener.local_addr().expect("an address"));
        let is_forgetful = Arc::new(AtomicBool::new(false));
        let lost = Arc::new(AtomicU64::new(0));
        let (forgetful, losing) = (is_forgetful.clone(), lost.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", port)).expect("it is there");
                let (forgetful, losing) = (forgetful.clone(), losing.clone());
                std::thread::spawn(move || pass_on(client, server, &forgetful, &losing));
            }
        });
        Forgetful {
            address,
            is_forgetful,
            lost,
        }
    }
}

fn pass_on(mut client: TcpStream, mut server: TcpStream, forgetful: &AtomicBool, lost: &AtomicU64) {
    let mut buffer = [0; 64 << 10];
    let mut answers = 0_u64;
    while let Ok(bytes @ 1..) = client.read(&mut buffer) {
        let asked = &buffer[..bytes];
        let is_batch = asked.windows(7).any(|word| word == b"EVALSHA");
        if server.write_all(asked).is_err() {
            return;
        }
        let Ok(bytes @ 1..) = server.read(&mut buffer) else {
            return;
        };
        answers += u64::from(is_batch);
        if is_batch && answers.is_multiple_of(3) && forgetful.load(Ordering::Relaxed) {
            lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if client.write_all(&buffer[..bytes]).is_err() {
            return;
        }
    }
}

#[test]
fn a_batch_whose_answer_is_lost_counts_once() {
    let Some(server) = Server::start() else {
        return;
    };
    for ack in [Ack::Memory, Ack::Synced] {
        let before = server.count();
        let between = Forgetful::before(server.port);
        let (setting, _) = quiet(patient(&between.address, Nanos::from_secs(5)));
        let tally = Tally::open(&CountingSetting { ack, ..setting }).expect("it opens");
        between.is_forgetful.store(true, Ordering::Relaxed);
        let counts = at_desk(&tally, async |handle, desk| {
            let lost = between.lost.clone();
            let counts = click(handle, &desk, move |_| lost.load(Ordering::Relaxed) > 20).await;
            between.is_forgetful.store(false, Ordering::Relaxed);
            until(handle, "it is well again", || {
                tally.health() == Health::Ready
            })
            .await;
            counts
        });
        tally.close().expect("all is kept");
        assert_eq!(
            counts.refused + counts.unsure,
            0,
            "the second sending said that it was kept"
        );
        assert_eq!(server.count() - before, counts.acknowledged, "{ack:?}");
    }
}

#[test]
fn what_is_no_count_is_refused_and_left_alone() {
    let Some(server) = Server::start() else {
        return;
    };
    server.ask(&["SET", "CLICKY_COUNTER", "many"]);
    let refused = Tally::open(&server.setting(Ack::Memory)).map(drop);
    assert!(refused.is_err(), "it is not a number");
    server.ask(&["SET", "CLICKY_COUNTER", "7"]);
    let tally = Tally::open(&server.setting(Ack::Synced)).expect("it opens");
    at_desk(&tally, async |_, desk| {
        assert_eq!(
            desk.click(&Name::ROOT, 5).await,
            Ok(12),
            "the original's count goes on"
        );
        server.ask(&["SET", "CLICKY_COUNTER", "many"]);
        assert_eq!(desk.click(&Name::ROOT, 5).await, Err(Refusal::NotKept));
        assert_eq!(
            server.ask(&["GET", "CLICKY_COUNTER"]).as_deref(),
            Some("many")
        );
    });
}

#[test]
fn a_count_beyond_what_redis_adds_to_is_refused_with_all_of_its_batch() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut setting = server.setting(Ack::Memory);
    setting.sync = Nanos::from_secs(3_600);
    setting.pending_max = 12;
    let tally = Tally::open(&setting).expect("it opens");
    let [one, other] = ["one", "other"].map(|name| Name::new(name).expect("a name"));
    let named = "{CLICKY_COUNTER}:named";
    at_desk(&tally, async |handle, desk| {
        assert_eq!(desk.add(&one, 5), Ok(5));
        server.ask(&["HSET", named, "other", "9223372036854775808"]);
        // More than half of what may wait: both are sent now, in one batch.
        assert_eq!(desk.add(&other, 5), Ok(5));
        let is_tried = || tally.numbers().failures >= 3;
        until(handle, "it is tried again and again", is_tried).await;
        assert_eq!(server.ask(&["HGET", named, "one"]), None, "nothing of it");
        server.ask(&["HSET", named, "other", "2"]);
        until(handle, "it is kept", || tally.numbers().pending == 0).await;
        assert_eq!(server.ask(&["HGET", named, "one"]).as_deref(), Some("5"));
        assert_eq!(desk.total(&other), 7);
    });
}
