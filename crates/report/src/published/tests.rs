use crate::ratio::OpenSide;
use prony_record::{Dimension, Measurand};
use prony_stats::SpreadKind;
use proptest::prelude::*;

use super::*;

/// An answer between two ends, with an interval where `spread` says so.
fn answer(low: f64, high: f64, spread: SpreadKind) -> Answer {
    Answer {
        subject: "mine".to_owned(),
        cell: "mine ping c=1".to_owned(),
        value: Some((low * high).sqrt()),
        low: Some(low),
        high: Some(high),
        spread: AnswerSpread::Of(spread),
        blocks: 6,
        ..Answer::default()
    }
}

fn word(stated: Stated, low: f64, high: f64) -> ClaimOutcome {
    outcome(stated, &answer(low, high, SpreadKind::Interval)).0
}

const ABOUT_TWO: Stated = Stated::Ratio {
    value: 2.0,
    within: 0.1,
};

#[test]
fn a_claim_holds_where_the_whole_interval_does() {
    assert_eq!(word(Stated::Higher, 1.01, 1.2), ClaimOutcome::Held);
    assert_eq!(word(Stated::Higher, 0.99, 1.2), ClaimOutcome::Undecided);
    assert_eq!(word(Stated::Higher, 0.8, 0.99), ClaimOutcome::Contradicted);
    assert_eq!(word(Stated::Lower, 0.8, 0.99), ClaimOutcome::Held);
    assert_eq!(word(Stated::Lower, 1.0, 1.2), ClaimOutcome::Undecided);
    assert_eq!(word(Stated::Lower, 1.01, 1.2), ClaimOutcome::Contradicted);
    // From 2 / 1.1 to 2.2.
    assert_eq!(word(ABOUT_TWO, 1.82, 2.19), ClaimOutcome::Held);
    assert_eq!(word(ABOUT_TWO, 1.81, 2.19), ClaimOutcome::Undecided);
    assert_eq!(word(ABOUT_TWO, 1.5, 1.81), ClaimOutcome::Contradicted);
    assert_eq!(word(ABOUT_TWO, 2.21, 2.5), ClaimOutcome::Contradicted);
    let none = Stated::Range {
        from: None,
        to: Some(0.0),
        dimension: Dimension::Number,
    };
    assert_eq!(word(none, 0.0, 0.0), ClaimOutcome::Held);
    assert_eq!(word(none, 3.0, 3.0), ClaimOutcome::Contradicted);
}

#[test]
fn a_bound_is_open_at_one_end() {
    let mut at_least = answer(1.5, 1.6, SpreadKind::Interval);
    at_least.bound = Some(OpenSide::AtLeast);
    assert_eq!(outcome(Stated::Higher, &at_least).0, ClaimOutcome::Held);
    assert_eq!(
        outcome(Stated::Lower, &at_least).0,
        ClaimOutcome::Contradicted
    );
    assert_eq!(outcome(ABOUT_TWO, &at_least).0, ClaimOutcome::Undecided);
    let mut at_most = answer(1.5, 1.6, SpreadKind::Interval);
    at_most.bound = Some(OpenSide::AtMost);
    assert_eq!(outcome(Stated::Higher, &at_most).0, ClaimOutcome::Undecided);
    assert_eq!(outcome(ABOUT_TWO, &at_most).0, ClaimOutcome::Contradicted);
}

#[test]
fn what_settles_nothing_gives_no_word_and_its_reason() {
    let mut quick = answer(1.5, 1.6, SpreadKind::Interval);
    quick.unsettled = "a quick run settles nothing".to_owned();
    let wanted = (ClaimOutcome::Undecided, quick.unsettled.clone());
    assert_eq!(outcome(Stated::Higher, &quick), wanted);
    let mut absent = answer(1.5, 1.6, SpreadKind::Interval);
    absent.absent = Some(Absence::NotRun("no Drogon".to_owned()));
    let wanted = (ClaimOutcome::NotRun, "no Drogon".to_owned());
    assert_eq!(outcome(Stated::Higher, &absent), wanted);
    let elsewhere = Stated::Absolute {
        value: 1.55,
        dimension: Dimension::Rate,
    };
    assert_eq!(word(elsewhere, 1.5, 1.6), ClaimOutcome::NotComparable);
}

#[test]
fn the_whole_claim_is_of_the_original_and_names_ours() {
    let mut run = Run::default();
    run.plan.cores.subject = vec![0];
    run.plan.cores.generator = vec![0, 1];
    let mut claim = PublishedClaim {
        stated: Stated::Higher,
        original: Some(Measurand::default()),
        ours: Some(Measurand::default()),
        ..PublishedClaim::default()
    };
    let (high, low) = (
        answer(1.5, 1.6, SpreadKind::Interval),
        answer(0.5, 0.6, SpreadKind::Interval),
    );
    let came = |claim: &PublishedClaim, original: Option<&Answer>| {
        let (word, because) = conclude(&run, claim, original, Some(&low));
        (word, because)
    };
    let said = "the interval lies in it; of ours: contradicted";
    assert_eq!(
        came(&claim, Some(&high)),
        (ClaimOutcome::Held, said.to_owned())
    );
    let said = "of ours: the interval lies outside of it";
    let wanted = (ClaimOutcome::Contradicted, said.to_owned());
    assert_eq!(came(&claim, None), wanted);
    claim.cores_min = 3;
    let said = "it needs 3 cores, and the run had 2";
    let wanted = (ClaimOutcome::NotComparable, said.to_owned());
    assert_eq!(came(&claim, Some(&high)), wanted);
    // The sampler's own core is one of the run's.
    let mut with_lab = run.clone();
    with_lab.plan.cores.lab = vec![2];
    let (word, _) = conclude(&with_lab, &claim, Some(&high), Some(&low));
    assert_eq!(word, ClaimOutcome::Held);
    claim.cores_min = 2;
    claim.why_not = "it has one size".to_owned();
    let said = "it has one size; of ours: contradicted";
    let wanted = (ClaimOutcome::NotAnswerable, said.to_owned());
    assert_eq!(came(&claim, None), wanted);
}

fn any_stated() -> impl Strategy<Value = Stated> {
    prop_oneof![
        Just(Stated::Higher),
        Just(Stated::Lower),
        (0.1f64..10.0, 0.01f64..0.5).prop_map(|(value, within)| Stated::Ratio { value, within }),
        (0.1f64..10.0, 0.0f64..5.0).prop_map(|(from, more)| Stated::Range {
            from: Some(from),
            to: Some(from + more),
            dimension: Dimension::Number,
        }),
    ]
}

proptest! {
    /// What a wide interval settles, each narrower one in it settles in the same way.
    #[test]
    fn a_wider_interval_never_says_more(
        stated in any_stated(),
        low in 0.1f64..10.0,
        length in 0.0f64..5.0,
        (from, to) in (0.0f64..1.0, 0.0f64..1.0),
    ) {
        let wide = word(stated, low, low + length);
        let (from, to) = (from.min(to), from.max(to));
        let narrow = word(stated, low + length * from, low + length * to);
        prop_assert!(wide == ClaimOutcome::Undecided || wide == narrow, "{wide:?} {narrow:?}");
    }
}
