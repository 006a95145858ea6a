//! The client against the server in 1,000 simulated worlds (20,000 in the long tier). A failing seed is
//! named; `PRONY_SEED=n` plays it alone.

use std::thread;

use crate::world::{Story, StoryOutcome, play};

/// What must hold in every story.
fn check(story: &Story, outcome: &StoryOutcome) -> Result<(), String> {
    let StoryOutcome { tally, totals, .. } = outcome;
    let claims = [
        ("answers are right", tally.wrong.is_empty()),
        (
            "clients account for every request",
            tally.sent == tally.answered + tally.unanswered + tally.cut_off,
        ),
        (
            "the server accounts for every request",
            totals.requests == totals.answered + totals.aborted,
        ),
        (
            "the server answered what clients saw answered",
            tally.answered <= totals.answered && totals.requests <= tally.sent,
        ),
        (
            "statuses add up",
            totals.statuses.values().sum::<u64>() == totals.answered + totals.refused,
        ),
        ("every connection was closed", totals.open() == 0),
        (
            "bad requests are refused",
            tally.bad_answered <= totals.refused && totals.refused <= tally.bad_sent,
        ),
    ];
    let without_faults = [
        ("no answer is cut off", tally.cut_off == 0),
        (
            "every request that the server took in was answered and seen",
            totals.answered == tally.answered && totals.aborted == 0,
        ),
    ];
    let undisturbed = [
        (
            "everything was answered",
            tally.unanswered == 0 && totals.requests == tally.sent,
        ),
        (
            "bad requests were answered",
            tally.bad_answered == tally.bad_sent && totals.refused == tally.bad_sent,
        ),
        ("nothing was truncated", totals.truncated == 0),
        ("connections agree", totals.accepted == tally.connected),
    ];
    let mut broken = claims.to_vec();
    if !story.has_faults {
        broken.extend(without_faults);
        if !story.stops_early {
            broken.extend(undisturbed);
        }
    }
    broken.retain(|(_, holds)| !holds);
    match broken.first() {
        None => Ok(()),
        Some((claim, _)) => Err(format!("not so: {claim}\n{story:?}\n{outcome:#?}")),
    }
}

/// Names the seed, also where something panics inside.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("failing seed: {0} (PRONY_SEED={0} plays it alone)", self.0);
        }
    }
}

fn play_and_check(seed: u64) -> StoryOutcome {
    let _named = Named(seed);
    let story = Story::of(seed);
    let outcome = play(&story).unwrap_or_else(|error| panic!("{story:?}: {error}"));
    check(&story, &outcome).unwrap_or_else(|error| panic!("{error}"));
    outcome
}

#[test]
fn a_thousand_worlds() {
    if let Ok(seed) = std::env::var("PRONY_SEED") {
        let seed = seed.parse().expect("PRONY_SEED is a number");
        println!("{:#?}", play_and_check(seed));
        return;
    }
    let seeds = prony_testkit::seeds(1_000, 20_000);
    let halves = [0, 1].map(|half| {
        thread::spawn(move || {
            let seeds = (half..seeds).step_by(2);
            seeds.map(play_and_check).collect::<Vec<_>>()
        })
    });
    let outcomes: Vec<StoryOutcome> = halves
        .into_iter()
        .flat_map(|half| half.join().expect("every seed holds"))
        .collect();
    // The stories must be worth telling.
    let sum = |number: fn(&StoryOutcome) -> u64| outcomes.iter().map(number).sum::<u64>();
    assert!(sum(|one| one.tally.answered) > 5 * seeds);
    assert!(sum(|one| one.tally.bad_answered) > seeds / 10);
    assert!(sum(|one| one.tally.unanswered) > seeds / 10);
    assert!(sum(|one| one.totals.aborted) > 0);
    assert!(sum(|one| one.totals.truncated) > 0);
}

#[test]
fn a_seed_tells_the_same_story_again() {
    for seed in 0..20 {
        let story = Story::of(seed);
        assert_eq!(play(&story), play(&story), "seed {seed}");
    }
}
