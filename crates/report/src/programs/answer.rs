//! What the figures of programs allow to say, for the top of the document: one point for each work, one
//! for more threads, one for each setting, one for growth, one for deadlines. The rest is in the
//! tables.

use std::collections::BTreeMap;

use prony_base::counted;
use prony_findings::Code;
use prony_stats::BLOCKS_INTERVAL_MIN;

use super::across::{Across, Effect, ScalingFigure, decimals};
use super::context::{heading, threads_word};
use super::figures::DurationFigures;
use super::works::{self, Family, Kind, is_timed};
use crate::Run;
use crate::figures::CellFigures;
use crate::lead::{Lead, leader};
use crate::lists::{distinct, push_under};
use crate::numbers;
use crate::ratio::RatioFigure;
use crate::settings::{THREADS, first_value, is_usual, with_settings};
use crate::words::{self, Point, by_conclusion, listed};

/// What is said of programs.
pub struct ProgramLines {
    /// What was done, and what follows from it.
    pub claim: String,
    /// What the answer holds.
    pub points: Vec<Point>,
    /// What is told in full elsewhere, and in one of the points in short.
    pub more: Vec<Point>,
}

/// Works that have a point each; more of them share one.
const WORKS_MAX: usize = 3;

/// What was done, and the points; `None` where no cell was measured.
pub fn points(run: &Run, cells: &[&CellFigures], across: &Across) -> Option<ProgramLines> {
    let measured = cells.iter().copied().filter(|c| c.is_measured());
    let measured: Vec<&CellFigures> = measured.collect();
    if measured.is_empty() {
        return None;
    }
    let families = works::families(&run.plan, cells);
    // What did other work is compared with nothing.
    let sound = |c: &&CellFigures| is_timed(c) && !c.is_copy && !c.is_invalid();
    let timed: Vec<&CellFigures> = measured.iter().copied().filter(sound).collect();
    let singles = families.iter().filter(|f| f.kind == Kind::Timed);
    let mut works: Vec<(usize, OfWork<'_>)> = singles
        .filter_map(|f| Some((rivals(f, &timed), of_work(run, f, &timed)?)))
        .collect();
    // What one subject alone does answers no question of a document that compares; it stands in the tables.
    if works.iter().any(|(rivals, _)| *rivals > 1) {
        works.retain(|(rivals, _)| *rivals > 1);
    }
    let works: Vec<OfWork<'_>> = works.into_iter().map(|(_, work)| work).collect();
    let short = (works.len() > WORKS_MAX).then(|| of_all(&works)).flatten();
    let works: Vec<Point> = works.into_iter().map(|work| work.point).collect();
    let times = !works.is_empty();
    let (mut points, more) = match short {
        Some(short) => (vec![short], works),
        None => (works, Vec::new()),
    };
    points.extend(other_work(run, &measured));
    points.extend(threads(run, across));
    points.extend(growth(run, &families, cells, across));
    points.extend(deadlines(run, &measured));
    points.extend(together("Settings", settings(run, across)));
    let mut claim = claim(run, cells, &measured, !across.scaling.is_empty());
    if times {
        claim.push_str(&conditions(run, &timed));
    }
    Some(ProgramLines {
        claim,
        points,
        more,
    })
}

/// Who is the fastest in each of many works, in one point; `None` where of none of them anything is claimed.
fn of_all(works: &[OfWork<'_>]) -> Option<Point> {
    let led = works
        .iter()
        .filter_map(|work| Some((work, work.lead.as_ref()?)));
    let led: Vec<(&OfWork<'_>, &Lead<'_>)> = led.collect();
    let mut by_name: Vec<(&str, Vec<(&str, &RatioFigure)>)> = Vec::new();
    let mut others = Vec::new();
    let mut overlapping = Vec::new();
    for (work, lead) in &led {
        match lead {
            Lead::Faster {
                name,
                ratio,
                beside,
                untold,
                ..
            } if untold.is_empty() => {
                push_under(&mut by_name, name.as_str(), (work.title.as_str(), *ratio));
                if !beside.is_empty() {
                    overlapping.push(format!("“{}”", work.title));
                }
            }
            other => others.push(format!("on “{}” {}", work.title, other.words())),
        }
    }
    let reference = led.first().map(|(_, lead)| lead.reference())?;
    by_name.sort_by_key(|(_, own)| std::cmp::Reverse(own.len()));
    let mut said: Vec<String> = by_name
        .iter()
        .map(|(name, own)| factors(name, own, led.len(), reference))
        .collect();
    if !overlapping.is_empty() {
        said.push(format!(
            "the interval of another overlaps on {}",
            listed(&overlapping)
        ));
    }
    said.extend(others);
    Some(Point {
        head: format!("Fastest on {} works", led.len()),
        text: format!("{}.", said.join("; ")),
    })
}

/// `rust/prony on 9 of 10, with 1.97 × (“Serialiser”) to 9.27 × (“Coroutines”) the rate of rust/tokio`.
fn factors(name: &str, own: &[(&str, &RatioFigure)], works: usize, reference: &str) -> String {
    let mut own = own.to_vec();
    own.sort_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    let shown = |(title, of): &(&str, &RatioFigure)| {
        let bound = if of.bound == "at-least" {
            "at least "
        } else {
            ""
        };
        format!("{bound}{} × (“{title}”)", numbers::ratio(of.ratio))
    };
    let ends = match &own[..] {
        [one] => shown(one),
        [first, .., last] => format!("{} to {}", shown(first), shown(last)),
        [] => String::new(),
    };
    format!(
        "{name} on {} of {works}, with {ends} the rate of {reference}",
        own.len()
    )
}

/// How much was done, and what may follow from it.
pub fn claim(run: &Run, cells: &[&CellFigures], measured: &[&CellFigures], sweeps: bool) -> String {
    let how = |blocks| format!("each by {} of fresh processes", counted(blocks, "run"));
    let said = words::claim(run, cells.len(), measured, how);
    let is_few = |c: &&CellFigures| c.trials.measured.len() < BLOCKS_INTERVAL_MIN;
    match sweeps && measured.iter().all(is_few) {
        true => said + " Nor is a complexity named.",
        false => said,
    }
}

/// What holds of all times in the points.
fn conditions(run: &Run, timed: &[&CellFigures]) -> String {
    let threads = works::all_threads(&run.plan, timed);
    let threads = threads.first().map_or_else(String::new, |first| {
        format!(" with {}", threads_word(first))
    });
    let settings = run.plan.settings.iter().any(|s| s.name != THREADS);
    let settings = if settings {
        " and the usual settings"
    } else {
        ""
    };
    format!(" Times are medians{threads}{settings}; the tables have the others.")
}

/// Who printed another checksum.
fn other_work(run: &Run, measured: &[&CellFigures]) -> Option<Point> {
    let differs = |c: &&CellFigures| c.findings.contains(&Code::P015);
    let cells: Vec<&CellFigures> = measured.iter().copied().filter(differs).collect();
    let name =
        |c: &&CellFigures| format!("{} on {}", c.subject, works::title(&run.plan, &c.workload));
    let names = distinct(cells.iter().map(name));
    (!names.is_empty()).then(|| Point {
        head: "Not the same work".to_owned(),
        text: format!(
            "another checksum than that of the others was printed by {}: no point here compares it.",
            listed(&names)
        ),
    })
}

/// How many subjects did a work.
fn rivals(family: &Family<'_>, timed: &[&CellFigures]) -> usize {
    let workloads = family.workloads();
    let own = timed.iter().filter(|c| workloads.contains(&&*c.workload));
    distinct(own.map(|c| &c.subject)).len()
}

/// What is said of a work.
struct OfWork<'a> {
    title: String,
    lead: Option<Lead<'a>>,
    point: Point,
}

/// The times of a work, with the fewest threads and the usual values of the other settings.
fn of_work<'a>(run: &Run, family: &Family<'_>, timed: &[&'a CellFigures]) -> Option<OfWork<'a>> {
    let plan = &run.plan;
    let workloads = family.workloads();
    let own = timed.iter().copied();
    let own = own.filter(|c| workloads.contains(&&*c.workload) && is_usual(plan, &c.settings));
    let own: Vec<&CellFigures> = own.collect();
    let first = works::all_threads(plan, &own).into_iter().next()?;
    let mut parts = Vec::new();
    let (mut head, mut lead) = (None, None);
    let mut told: Vec<(&str, u64)> = Vec::new();
    for (workload, count) in &family.members {
        // Who was measured at this size already is not named again.
        let with = own.iter().copied().filter(|c| {
            c.workload == *workload
                && works::threads(plan, c) == first
                && !told.contains(&(c.subject.as_str(), *count))
        });
        let with: Vec<&CellFigures> = with.collect();
        let (Some(medians), Some((shown, size))) =
            (medians(&with), head.or(Some((*workload, *count))))
        else {
            continue;
        };
        let other = if size == *count {
            String::new()
        } else {
            format!("of {}: ", numbers::count(*count))
        };
        if head.is_none() {
            lead = leader(&with, &|c| c.subject.clone());
            parts.extend(lead.as_ref().map(Lead::words));
        }
        parts.push(format!("{other}{medians}"));
        told.extend(with.iter().map(|c| (c.subject.as_str(), *count)));
        head = Some((shown, size));
    }
    let (workload, count) = head?;
    let title = works::title(plan, workload);
    Some(OfWork {
        title: title.to_owned(),
        lead,
        point: Point {
            head: heading(title, Some(count)),
            text: format!("{}.", parts.join("; ")),
        },
    })
}

/// `rust/prony 16.4 ms, rust/tokio 56.9 ms`, the shortest first.
fn medians(cells: &[&CellFigures]) -> Option<String> {
    let median = |c: &&CellFigures| {
        let median = c.program.as_ref()?.elapsed_ns?.median;
        Some((median, format!("{} {}", c.subject, numbers::time(median))))
    };
    let mut all: Vec<(f64, String)> = cells.iter().filter_map(median).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shown: Vec<String> = all.into_iter().map(|(_, shown)| shown).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// How large a difference the interval still leaves room for: `3 %`.
fn resolution(ratio: &RatioFigure) -> String {
    let room = (ratio.high - 1.0).max(1.0 - ratio.low);
    let percents = libm::ceil(room * 1000.0) / 10.0;
    if percents < 10.0 {
        format!("{percents:.1} %")
    } else {
        format!("{} %", numbers::three(percents))
    }
}

/// Points that are more than this are told in one.
const SETTINGS_MAX: usize = 2;

/// The points as they are, or many of them as one.
fn together(head: &str, points: Vec<Point>) -> Vec<Point> {
    if points.len() <= SETTINGS_MAX {
        return points;
    }
    let each = points.iter().map(|of| format!("{}: {}", of.head, of.text));
    vec![Point {
        head: head.to_owned(),
        text: each.collect::<Vec<_>>().join(" "),
    }]
}

/// What each value of a setting did, one point a setting.
fn settings(run: &Run, across: &Across) -> Vec<Point> {
    let point = |setting: &prony_record::PlannedSetting| {
        let own = across.effects.iter().filter(|e| e.setting == setting.name);
        let own: Vec<&Effect> = own.collect();
        let sentences = setting.values.iter().filter_map(|value| {
            let of_value = own.iter().copied().filter(|e| e.value == *value);
            of_setting(value, &whole(&of_value.collect::<Vec<_>>()))
        });
        let sentences: Vec<String> = sentences.collect();
        (!sentences.is_empty()).then(|| Point {
            head: setting.name.clone(),
            text: format!("{}.", sentences.join("; ")),
        })
    };
    run.plan.settings.iter().filter_map(point).collect()
}

/// Of each subject the effect over all its works, or over the only one.
fn whole<'a>(effects: &[&'a Effect]) -> Vec<&'a Effect> {
    let mut by_subject: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
    for effect in effects {
        by_subject.entry(&effect.subject).or_default().push(effect);
    }
    let mut whole: Vec<&Effect> = Vec::new();
    for effect in effects {
        let own = &by_subject[&*effect.subject];
        if effect.workload.is_none() || own.len() == 1 {
            whole.push(effect);
        }
    }
    whole
}

/// What one value did.
fn of_setting(value: &str, effects: &[&Effect]) -> Option<String> {
    let base = &effects.first()?.base;
    let over = match effects.iter().any(|e| e.workload.is_none()) {
        true => ", over all works",
        false => "",
    };
    let with_ends = |e: &&Effect| format!("{} {}", e.subject, numbers::change_of(&e.ratio));
    let parts = by_conclusion(
        effects,
        |e| &e.ratio,
        &[
            ("higher", "faster: ", &with_ends),
            ("lower", "slower: ", &with_ends),
            ("no-difference-shown", "no difference is seen: ", &|e| {
                format!(
                    "{} (at a resolution of {})",
                    e.subject,
                    resolution(&e.ratio)
                )
            }),
            ("not-claimed", "not claimed: ", &|e| {
                let change = numbers::change_words(e.ratio.ratio, None, "");
                format!("{} {change}", e.subject)
            }),
        ],
    );
    Some(format!(
        "{value} instead of {base}{over}: {}",
        parts.join("; ")
    ))
}

/// Which exponent each has, of all works with a sweep: with the usual values of the settings, and the
/// first number of threads.
fn growth(
    run: &Run,
    families: &[Family<'_>],
    cells: &[&CellFigures],
    across: &Across,
) -> Option<Point> {
    let usual = |f: &&ScalingFigure| {
        let threads = f.settings.get(THREADS);
        let first = first_value(&run.plan, THREADS);
        is_usual(&run.plan, &f.settings) && (threads.is_none() || threads == first)
    };
    let copies = distinct(cells.iter().filter(|c| c.is_copy).map(|c| &c.subject));
    let is_copy = |f: &&ScalingFigure| copies.contains(&&f.subject);
    let of_family = |family: &Family<'_>| {
        let workloads = family.workloads();
        let own = across.scaling.iter().filter(usual);
        let own = own.filter(|f| !is_copy(f));
        let own = own.filter(|f| workloads.contains(&f.workload.as_str()));
        let words: Vec<String> = own.map(exponent).collect();
        let title = family.title(&run.plan);
        (!words.is_empty()).then(|| format!("of {title}: {}", words.join("; ")))
    };
    let said: Vec<String> = families.iter().filter_map(of_family).collect();
    (!said.is_empty()).then(|| Point {
        head: "Growth".to_owned(),
        text: format!(
            "the exponent p of time = constant × N^p, {}.",
            said.join(". And ")
        ),
    })
}

/// `rust/prony 1.03 (1.02–1.05), consistent with O(N)`.
fn exponent(f: &ScalingFigure) -> String {
    let (low, high) = (decimals(f.low), decimals(f.high));
    let spread = match (f.spread, f.blocks) {
        ("interval", _) => format!(" ({low}–{high})"),
        (_, 1) => String::new(),
        _ => format!(" (blocks from {low} to {high})"),
    };
    // Why nothing is claimed, the top of the document says.
    let says = match f.growth {
        "not-claimed" => String::new(),
        _ => format!(", {}", f.says),
    };
    format!("{} {}{spread}{says}", f.subject, decimals(f.exponent))
}

/// What more threads do, one point for each number of them.
fn threads(run: &Run, across: &Across) -> Vec<Point> {
    let mut by_threads: BTreeMap<u32, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    let usual = across.efficiencies.iter();
    for e in usual.filter(|e| is_usual(&run.plan, &e.settings)) {
        let subjects = by_threads.entry(e.threads).or_default();
        subjects.entry(&e.subject).or_default().push(e.ratio.ratio);
    }
    let cores = super::across::cores(run);
    let point = |(threads, subjects): (u32, BTreeMap<&str, Vec<f64>>)| {
        let ordered = run.plan.subjects.iter().filter_map(|s| {
            let values = subjects.get(&*s.id)?;
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(0.0, f64::max);
            let (low, high) = (numbers::ratio(low), numbers::ratio(high));
            let span = if low == high {
                low
            } else {
                format!("{low}–{high}")
            };
            Some(format!("{} {span}", s.id))
        });
        let ordered: Vec<String> = ordered.collect();
        let bound = match cores {
            cores if cores > 0 && cores < threads => format!(
                " ({cores} cores allow {} at the most)",
                numbers::ratio(f64::from(cores) / f64::from(threads))
            ),
            _ => String::new(),
        };
        Point {
            head: threads_word(&threads.to_string()),
            text: format!(
                "the rate over {threads} times that of one{bound}, from the work that gains least to the one that \
                 gains most: {}.",
                listed(&ordered)
            ),
        }
    };
    by_threads.into_iter().map(point).collect()
}

/// Which deadlines were missed, a point for each combination of settings.
fn deadlines(run: &Run, measured: &[&CellFigures]) -> Vec<Point> {
    let with = |c: &&CellFigures| !c.is_copy && durations(c).is_some_and(|d| d.deadline_ns > 0);
    let cells: Vec<&CellFigures> = measured.iter().copied().filter(with).collect();
    let several = distinct(cells.iter().map(|c| &c.workload)).len() > 1;
    let group = |c: &CellFigures| {
        let title = works::title(&run.plan, &c.workload).to_owned();
        match c.settings.is_empty() || several {
            true => with_settings(&title, &c.settings),
            false => with_settings("", &c.settings)
                .trim_start_matches(", ")
                .to_owned(),
        }
    };
    let point = |head: String| {
        let own = cells.iter().filter(|c| group(c) == head);
        let said: Vec<String> = own.filter_map(|c| missed(c)).collect();
        Point {
            head,
            text: format!("{}.", said.join("; ")),
        }
    };
    distinct(cells.iter().map(|c| group(c)))
        .into_iter()
        .map(point)
        .collect()
}

fn durations(cell: &CellFigures) -> Option<&DurationFigures> {
    cell.program.as_ref()?.durations.as_ref()
}

/// `rust/prony missed the deadline of 2 ms in 8 of 10,000 runs (142 µs to 51.1 ms, average 147 µs)`.
fn missed(cell: &CellFigures) -> Option<String> {
    let durations = durations(cell)?;
    let missed = match durations.missed_count {
        0 => "in none".to_owned(),
        n => format!("in {}", numbers::count(n)),
    };
    let mean = durations.mean_ns.map_or_else(String::new, |mean| {
        format!(", average {}", numbers::time(mean.median))
    });
    Some(format!(
        "{} missed the deadline of {} {missed} of {} runs ({} to {}{mean})",
        cell.subject,
        numbers::duration(durations.deadline_ns),
        numbers::count(durations.runs),
        numbers::time(durations.min_ns as f64),
        numbers::time(durations.max_ns as f64),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leads_on_many_works_is_told_with_the_least_and_the_most() {
        let of = |ratio, bound| RatioFigure {
            ratio,
            bound,
            ..RatioFigure::default()
        };
        let (two, nine) = (of(1.97, ""), of(9.27, "at-least"));
        assert_eq!(
            factors("mine", &[("B", &nine), ("A", &two)], 3, "theirs"),
            "mine on 2 of 3, with 1.97 × (“A”) to at least 9.27 × (“B”) the rate of theirs"
        );
        assert_eq!(
            factors("mine", &[("A", &two)], 3, "theirs"),
            "mine on 1 of 3, with 1.97 × (“A”) the rate of theirs"
        );
    }
}
