//! The keeper with stores that are made up: what they say, and when, is for the test to say.

mod counted;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use counted::{at_desk, quiet, until};
use prony_base::Nanos;
use prony_clicky::counting::store::{Batch, CommitError, Committed, Store, Totals};
use prony_clicky::counting::{
    Ack, Backend, CountingSetting, Health, Name, OpenError, Refusal, Tally,
};

type Answer = Result<(), CommitError>;

/// A store of which each answer is made up.
struct MadeUp {
    found: Totals,
    commit: Box<dyn FnMut() -> Answer + Send>,
    probe: Box<dyn FnMut() -> Answer + Send>,
}

impl MadeUp {
    fn new(commit: impl FnMut() -> Answer + Send + 'static) -> MadeUp {
        MadeUp {
            found: Vec::new(),
            commit: Box::new(commit),
            probe: Box::new(|| Ok(())),
        }
    }

    fn open(self, setting: &CountingSetting) -> Tally {
        Tally::open_on(Box::new(self), setting).expect("it opens")
    }
}

impl Store for MadeUp {
    fn load(&mut self) -> Result<Totals, OpenError> {
        Ok(self.found.clone())
    }

    fn commit(&mut self, _: &Batch) -> Result<Committed, CommitError> {
        (self.commit)().map(|()| Committed::default())
    }

    fn probe(&mut self) -> Answer {
        (self.probe)()
    }
}

fn setting(ack: Ack) -> (CountingSetting, Arc<Mutex<Vec<String>>>) {
    // Its path is what says that something is kept; there is no such file.
    let (setting, lines) = quiet(Backend::file("made up"));
    (CountingSetting { ack, ..setting }, lines)
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn full() -> Answer {
    Err(CommitError::NotKept("it is full".to_owned()))
}

#[test]
fn a_counter_that_is_made_while_a_batch_is_gathered_is_kept() {
    // The moment is short: of three rounds one meets it.
    for _ in 0..15 {
        make_many_counters();
    }
}

fn make_many_counters() {
    let (setting, _) = setting(Ack::Synced);
    let tally = MadeUp::new(|| Ok(())).open(&setting);
    let made = std::thread::scope(|scope| {
        let threads = ["a", "b"].map(|thread| {
            let tally = &tally;
            scope.spawn(move || {
                at_desk(tally, async |handle, desk| {
                    let click = |number| {
                        let (desk, name) = (desk.clone(), name(&format!("{thread}{number}")));
                        handle.spawn(async move { desk.add_synced(&name, 1).await })
                    };
                    let clicks: Vec<_> = (0..4_000).map(click).collect();
                    for click in clicks {
                        assert_eq!(click.await, Ok(1));
                    }
                });
                4_000
            })
        });
        threads.map(|thread| thread.join().expect("all are kept"))
    });
    assert_eq!(tally.numbers().clicks, made.iter().sum::<u64>());
}

#[test]
fn a_keeper_that_breaks_down_leaves_nobody_waiting() {
    let (setting, _) = setting(Ack::Synced);
    let tally = MadeUp::new(|| panic!("made up")).open(&setting);
    let why = "the keeper broke down".to_owned();
    at_desk(&tally, async |handle, desk| {
        assert_eq!(desk.click(&Name::ROOT, 5).await, Err(Refusal::Unsure));
        let broken = Health::Refusing { why: why.clone() };
        until(handle, "that is known", || tally.health() == broken).await;
        assert_eq!(desk.click(&Name::ROOT, 5).await, Err(Refusal::Closing));
        assert_eq!(desk.add(&Name::ROOT, 5), Err(Refusal::Closing));
        assert_eq!(desk.total(&Name::ROOT), 0);
    });
    at_desk(&tally, async |_, desk| {
        assert_eq!(desk.click(&Name::ROOT, 5).await, Err(Refusal::Closing));
    });
    let lost = tally.close().expect_err("it is gone");
    assert_eq!((lost.clicks, lost.why), (5, why));
}

/// Refuses every third batch; says at the beginning of each that the last is told.
fn every_third(told: Sender<()>) -> MadeUp {
    let mut batches = 0;
    MadeUp::new(move || {
        batches += 1;
        told.send(()).expect("somebody waits for it");
        if batches % 3 == 0 { full() } else { Ok(()) }
    })
}

#[test]
fn a_loop_that_puts_many_batches_in_one_turn_hears_of_each() {
    const BATCHES: usize = 20;
    let (sender, told) = channel();
    let (setting, _) = setting(Ack::Synced);
    let tally = every_third(sender).open(&setting);
    at_desk(&tally, async |_, desk| {
        let desk = &desk;
        let put = |_| {
            let mut click = Box::pin(async move { desk.add_synced(&Name::ROOT, 1).await });
            let polled = click.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending), "this loop has no turn");
            told.recv().expect("it is a batch of its own");
            click
        };
        let waiting: Vec<_> = (0..BATCHES).map(put).collect();
        // It comes after them, and what is told of it may not be taken for theirs.
        let last = desk.add_synced(&Name::ROOT, 1).await;
        assert_eq!(last, Err(Refusal::NotKept), "the 21st");
        for (number, click) in waiting.into_iter().enumerate() {
            let verdict = click.await.map(drop);
            let expected = match (number + 1) % 3 {
                0 => Err(Refusal::NotKept),
                _ => Ok(()),
            };
            assert_eq!(verdict, expected, "batch {number}");
        }
    });
}

#[test]
fn a_store_that_can_be_read_and_not_written_is_not_well() {
    let (setting, lines) = setting(Ack::Synced);
    let is_full = Arc::new(AtomicBool::new(true));
    let probes = Arc::new(AtomicU64::new(0));
    let answer = {
        let is_full = is_full.clone();
        move || match is_full.load(Ordering::Relaxed) {
            true => full(),
            false => Ok(()),
        }
    };
    let mut store = MadeUp::new(answer.clone());
    let probed = probes.clone();
    store.probe = Box::new(move || {
        probed.fetch_add(1, Ordering::Relaxed);
        answer()
    });
    let tally = store.open(&setting);
    at_desk(&tally, async |handle, desk| {
        assert_eq!(desk.click(&Name::ROOT, 1).await, Err(Refusal::NotKept));
        let is_probed = || probes.load(Ordering::Relaxed) >= 3;
        until(handle, "it is probed", is_probed).await;
        assert!(matches!(tally.health(), Health::Refusing { .. }));
        let said = lines.lock().expect("whole").join("; ");
        assert_eq!(said, "the store fails: it is full");
        is_full.store(false, Ordering::Relaxed);
        // Nobody clicks, as nobody would be sent to a service that is not well.
        until(handle, "it is well", || tally.health() == Health::Ready).await;
    });
}

#[test]
fn counters_that_there_is_no_room_for_do_not_keep_a_service_from_starting() {
    let (mut setting, lines) = setting(Ack::Memory);
    setting.counters_max = 2;
    let mut store = MadeUp::new(|| Ok(()));
    let found = [("a", 1), ("b", 2), ("c", 3)].map(|(text, total)| (name(text), total));
    store.found = [&found[..], &[(Name::ROOT, 7)]].concat();
    let tally = store.open(&setting);
    at_desk(&tally, async |_, desk| {
        let totals = ["a", "b", "c"].map(|text| desk.total(&name(text)));
        assert_eq!((totals, desk.total(&Name::ROOT)), ([1, 0, 0], 7));
    });
    let said = lines.lock().expect("whole").join("; ");
    assert!(said.starts_with("2 counters more are kept"), "{said}");
}

#[test]
fn a_click_that_is_refused_or_of_nothing_makes_no_counter() {
    let (mut setting, _) = setting(Ack::Memory);
    setting.pending_max = 10;
    let tally = MadeUp::new(|| Ok(())).open(&setting);
    at_desk(&tally, async |_, desk| {
        let name = name("a");
        assert_eq!(desk.add(&name, 0), Ok(0));
        assert_eq!(desk.add_synced(&name, 0).await, Ok(0));
        assert_eq!(desk.add(&name, 11), Err(Refusal::PendingFull));
        let refused = desk.add_synced(&name, 11).await;
        assert_eq!(refused, Err(Refusal::PendingFull));
        assert_eq!(desk.add(&name, u64::MAX), Err(Refusal::TotalFull));
        assert_eq!((tally.numbers().counters, tally.numbers().pending), (1, 0));
        assert_eq!(desk.add(&name, 1), Ok(1));
        assert_eq!(tally.numbers().counters, 2);
    });
}

#[test]
fn an_end_that_has_no_time_left_sends_nothing_twice() {
    let (mut setting, _) = setting(Ack::Memory);
    setting.sync = Nanos::from_secs(3_600);
    setting.close_max = Nanos::ZERO;
    let lost = || Err(CommitError::Unknown("its answer was lost".to_owned()));
    let tally = MadeUp::new(lost).open(&setting);
    at_desk(&tally, async |_, desk| desk.add(&Name::ROOT, 5)).expect("counted");
    assert_eq!(tally.close().map_err(|lost| lost.clicks), Err(5));
    assert_eq!(tally.numbers().syncs, 1);
}
