//! What a click costs the loop, and what durable clicks gain from sharing a sync.
//!
//! `cargo bench -p prony-clicky --bench counting` prints, best of several rounds that take
//! turns: CPU time of a click that is answered from memory, by store and counter; and
//! durable clicks per second, 256 at a time, beside one sync for each click. Without
//! `--bench`, as in a test run, it does little of each, to show that it still works. A folder
//! as its last word is where the logs are, to measure another disk.

use std::cell::Cell;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use prony_base::{Nanos, clock};
use prony_clicky::counting::store::{Batch, FileStore, Store as _};
use prony_clicky::counting::{Ack, Backend, CountingSetting, Desk, Name, Tally, Tell};
use prony_engine::{Config, Handle, run};

/// How much of everything.
#[derive(Clone, Copy)]
struct Size {
    rounds: usize,
    adds: u64,
    synced: Nanos,
}

const WHOLE: Size = Size {
    rounds: 5,
    adds: 5_000_000,
    synced: Nanos::from_millis(500),
};
const LITTLE: Size = Size {
    rounds: 1,
    adds: 1_000,
    synced: Nanos::from_millis(5),
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let size = match words.iter().any(|word| word == "--bench") {
        true => WHOLE,
        false => LITTLE,
    };
    let given = words.last().filter(|word| Path::new(word).is_dir());
    let own = tempfile::tempdir().expect("a folder");
    let folder = given.map_or(own.path().to_owned(), PathBuf::from);
    from_memory(size, &folder);
    durable(size, &folder);
}

fn open(backend: Backend, ack: Ack) -> Tally {
    let setting = CountingSetting {
        backend,
        ack,
        pending_max: u64::MAX,
        tell: Tell::new(|line| panic!("{line}")),
        ..CountingSetting::default()
    };
    Tally::open(&setting).expect("it opens")
}

fn at_desk<T>(tally: &Tally, work: impl AsyncFnOnce(&Handle, Rc<Desk>) -> T) -> T {
    let done = run(&Config::default(), |handle| {
        let desk = Rc::new(tally.desk(&handle));
        async move { work(&handle, desk).await }
    });
    done.expect("a loop")
}

/// Nanoseconds of the loop's CPU time for one click.
fn adds(tally: &Tally, name: &Name, count: u64) -> f64 {
    at_desk(tally, async |_, desk| {
        let begun = clock::thread_cpu();
        for _ in 0..count {
            let total = desk.add(black_box(name), black_box(1));
            black_box(total).expect("counted");
        }
        (clock::thread_cpu() - begun).0 as f64 / count as f64
    })
}

fn from_memory(size: Size, folder: &Path) {
    let named = Name::new("named").expect("a name");
    let none = open(Backend::None, Ack::Memory);
    let file = open(Backend::file(folder.join("memory")), Ack::Memory);
    let cases = [
        ("none, root counter", &none, Name::ROOT),
        ("file, root counter", &file, Name::ROOT),
        ("none, named counter", &none, named),
        ("file, named counter", &file, named),
    ];
    let mut best = [f64::MAX; 4];
    for _ in 0..size.rounds {
        for (best, (_, tally, name)) in best.iter_mut().zip(&cases) {
            *best = best.min(adds(tally, name, size.adds));
        }
    }
    for (best, (title, ..)) in best.iter().zip(&cases) {
        println!("{title:24} {best:8.1} ns a click");
    }
}

/// Durable clicks per second, so many at a time.
fn shared(tally: &Tally, at_once: usize, length: Nanos) -> f64 {
    at_desk(tally, async |handle, desk| {
        let (begun, clicks) = (handle.now(), Rc::new(Cell::new(0_u64)));
        let tasks: Vec<_> = (0..at_once)
            .map(|_| {
                let (desk, handle, clicks) = (desk.clone(), handle.clone(), clicks.clone());
                handle.clone().spawn(async move {
                    while handle.now().since(begun) < length {
                        desk.click(&Name::ROOT, 1).await.expect("kept");
                        clicks.set(clicks.get() + 1);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        clicks.get() as f64 / handle.now().since(begun).as_secs_f64()
    })
}

/// Durable clicks per second, each with a sync of its own.
fn alone(path: &Path, length: Nanos) -> f64 {
    let tell = Tell::new(|_| {});
    let mut store = FileStore::open(path, 4 << 20, &tell).expect("it opens");
    let begun = clock::monotonic();
    let mut batch = Batch {
        sequence: 0,
        clicks: vec![(Name::ROOT, 1)],
    };
    while clock::monotonic().since(begun) < length {
        batch.sequence += 1;
        store.commit(&batch).expect("kept");
    }
    batch.sequence as f64 / clock::monotonic().since(begun).as_secs_f64()
}

fn durable(size: Size, folder: &Path) {
    let tally = open(Backend::file(folder.join("synced")), Ack::Synced);
    let (mut together, mut each) = (0_f64, 0_f64);
    for _ in 0..size.rounds {
        together = together.max(shared(&tally, 256, size.synced));
        each = each.max(alone(&folder.join("alone"), size.synced));
    }
    let syncs = tally.numbers();
    let mean = syncs.sync_total.as_micros_f64() / syncs.syncs.max(1) as f64;
    println!("a sync for each click    {each:8.0} clicks/s");
    println!("256 at a time            {together:8.0} clicks/s, a sync takes {mean:.0} us");
    println!("ratio                    {:8.1}", together / each);
}
