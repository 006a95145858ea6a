//! What the figures of clients allow to say, for the top of the document: one point for each row of a
//! section on requests, what more of one thing brings, who was the limit, CPU time, whether both sides' counts
//! agree; and one for each section on downloads. The rest is in the tables.

use std::collections::BTreeMap;

use prony_base::counted;
use prony_findings::Code;
use prony_record::DOWNLOADS;

use super::downloads::mib;
use super::sections::{RowKey, Section, sections};
use super::steps::Step;
use crate::Run;
use crate::figures::{CellFigures, Figure};
use crate::lead::{Lead, leader};
use crate::lists::distinct;
use crate::numbers;
use crate::programs::answer::claim;
use crate::ratio::RatioFigure;
use crate::words::{self, Point, Ranked, by_conclusion, listed, ranked};

/// What was done, and the points; `None` where no cell was measured.
pub fn points(run: &Run, cells: &[CellFigures], steps: &[Step]) -> Option<(String, Vec<Point>)> {
    let clients: Vec<&CellFigures> = cells.iter().filter(|c| c.client.is_some()).collect();
    let measured = clients.iter().copied().filter(|c| c.is_measured());
    let measured: Vec<&CellFigures> = measured.collect();
    if measured.is_empty() {
        return None;
    }
    let sections = sections(run, cells);
    let several = sections.len() > 1;
    let mut points = Vec::new();
    for section in &sections {
        let place = match several {
            true => format!("{}: ", section.title),
            false => String::new(),
        };
        let own = match section.is_downloads() {
            true => of_downloads(run, section),
            false => of_requests(run, section, steps),
        };
        points.extend(own.into_iter().map(|point| Point {
            head: format!("{place}{}", point.head),
            ..point
        }));
    }
    points.extend(limits(&measured));
    Some((claim(run, &clients, &measured, false), points))
}

fn of_requests(run: &Run, section: &Section<'_>, steps: &[Step]) -> Vec<Point> {
    let name = |c: &CellFigures| section.label_of(run, c);
    let mut points = Vec::new();
    let sizes: Vec<_> = section.rows.iter().zip(section.pictured()).collect();
    let shown = outermost(sizes.len());
    let sizes = sizes.into_iter().enumerate();
    for (_, (row, (title, cells))) in sizes.filter(|(at, _)| shown.contains(at)) {
        let sound = sound(&cells);
        let Some(medians) = medians(
            &sound,
            &name,
            |c| c.rate_per_s,
            (numbers::rate, " requests/s"),
        ) else {
            continue;
        };
        let mut said: Vec<String> = leader(&sound, &name).iter().map(Lead::words).collect();
        said.push(medians);
        points.push(Point {
            head: title,
            text: format!("{}.", said.join("; ")),
        });
        if section.rows.last() == Some(row) {
            points.extend(costs(run, section));
        }
    }
    points.extend(brought(run, section, steps));
    points
}

/// Which of so many sizes are spoken of: of more than three the first, the middle and the last.
fn outermost(count: usize) -> Vec<usize> {
    match count {
        0..=3 => (0..count).collect(),
        _ => vec![0, count / 2, count - 1],
    }
}

/// The cells whose figures stand.
fn sound<'a>(cells: &[&'a CellFigures]) -> Vec<&'a CellFigures> {
    let stands = |c: &&CellFigures| !c.is_invalid() && c.is_measured();
    cells.iter().copied().filter(stands).collect()
}

/// The medians by name, the highest first. One may be higher still where the peer was the limit.
fn medians(
    cells: &[&CellFigures],
    name: &dyn Fn(&CellFigures) -> String,
    of: fn(&CellFigures) -> Option<Figure>,
    (show, unit): (fn(f64) -> String, &str),
) -> Option<String> {
    words::medians(
        cells.iter().copied(),
        of,
        |cell| (name(cell), cell.is_reference),
        (Code::P020, show, unit),
    )
}

/// CPU time a request beside the reference, in the last row that has it.
fn costs(run: &Run, section: &Section<'_>) -> Option<Point> {
    let name = |c: &CellFigures| section.label_of(run, c);
    let last = section.rows.iter().rev().find_map(|row| {
        let cells = sound(&section.of_row(row));
        let ratio = |c: &&CellFigures| c.client.as_ref().is_some_and(|c| c.cpu_ratio.is_some());
        cells.iter().any(ratio).then(|| (row.words(), cells))
    });
    let (row, cells) = last?;
    let reference = cells.iter().find(|c| c.is_reference)?;
    let own = numbers::micros(reference.cpu_subject_ns()?.median);
    let said = beside(&cells, &name, |c| c.client.as_ref()?.cpu_ratio.as_ref());
    (!said.is_empty()).then(|| Point {
        head: "CPU time a request".to_owned(),
        text: format!(
            "with {row}, against the {own} µs of {}: {}.",
            name(reference),
            said.join("; ")
        ),
    })
}

/// Ratios that show no difference and have their ends in a sentence; of more it has the names.
const ALIKE_MAX: usize = 2;

/// Who has less and who has more than the reference; where nothing is claimed, the ratios.
fn beside(
    cells: &[&CellFigures],
    name: &dyn Fn(&CellFigures) -> String,
    of: fn(&CellFigures) -> Option<&RatioFigure>,
) -> Vec<String> {
    let own = cells.iter().filter_map(|c| Some((name(c), of(c)?)));
    let own: Vec<(String, &RatioFigure)> = own.collect();
    let with_ends =
        |(name, ratio): &(String, &RatioFigure)| format!("{name} {}", numbers::change_of(ratio));
    let alike = own
        .iter()
        .filter(|of| of.1.conclusion == "no-difference-shown");
    let few = alike.count() <= ALIKE_MAX;
    let of_alike = |of: &(String, &RatioFigure)| match few {
        true => with_ends(of),
        false => of.0.clone(),
    };
    let mut said = by_conclusion(
        &own,
        |of| of.1,
        &[
            ("lower", "lower: ", &with_ends),
            ("higher", "higher: ", &with_ends),
            ("no-difference-shown", "not shown to differ: ", &of_alike),
        ],
    );
    let unclaimed = own.iter().filter(|(_, of)| of.conclusion == "not-claimed");
    let ratios = unclaimed.map(|(name, of)| Ranked {
        figure: of.ratio,
        shown: format!("{name} {}", numbers::change_words(of.ratio, None, "")),
        is_baseline: false,
    });
    said.extend(ranked(ratios.collect(), "").map(|said| format!("not claimed: {said}")));
    said
}

/// What more connections and threads bring the reference.
fn brought(run: &Run, section: &Section<'_>, steps: &[Step]) -> Option<Point> {
    let reference = section.cells.iter().find(|c| c.is_reference)?;
    let own = |step: &&Step| {
        let cell = section.cells.iter().find(|c| c.cell == step.cell);
        cell.is_some_and(|c| c.subject == reference.subject && c.label == reference.label)
    };
    let said = steps.iter().filter(own).map(|step| {
        let ratio = match step.ratio.conclusion {
            "no-difference-shown" => "no difference is shown".to_owned(),
            _ => numbers::change_words(step.ratio.ratio, None, step.ratio.bound),
        };
        format!("{} {} → {}: {ratio}", step.what, step.from, step.to)
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| Point {
        head: format!("What more brings {}", section.label_of(run, reference)),
        text: format!("{}.", said.join("; ")),
    })
}

/// Who was the limit, in how many cells.
fn limits(measured: &[&CellFigures]) -> Option<Point> {
    let mut by_limit: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in measured {
        let limit = cell.client.as_ref().map_or("", |c| c.limit);
        *by_limit.entry(limit).or_default() += 1;
    }
    let downloads = measured
        .iter()
        .any(|c| c.client.as_ref().is_some_and(|c| c.work == DOWNLOADS));
    let neither = match downloads {
        true => "neither (round trips, or the network)",
        false => "neither (round trips)",
    };
    let words = [
        ("client", "the client"),
        ("peer", "the peer"),
        ("both", "both sides"),
        ("round trips", neither),
        ("", "not known"),
    ];
    let said = words.iter().filter_map(|(name, word)| {
        let count = by_limit.get(name)?;
        Some(format!("{word} in {count}"))
    });
    let said: Vec<String> = said.collect();
    let full = measured.iter().filter(|c| c.findings.contains(&Code::P020));
    let rest = match full.count() {
        0 => String::new(),
        _ => " Where it was the peer, the client is at least this fast.".to_owned(),
    };
    let counts = counts(measured).map_or_else(String::new, |said| format!(" {said}"));
    Some(Point {
        head: "Who was the limit".to_owned(),
        text: format!(
            "of {}, {}.{rest}{counts}",
            counted(measured.len(), "cell"),
            listed(&said)
        ),
    })
}

/// Whether both sides' counts agree.
fn counts(measured: &[&CellFigures]) -> Option<String> {
    let counts = || {
        measured
            .iter()
            .filter_map(|c| Some(&c.client.as_ref()?.counts))
    };
    let compared: u64 = counts().map(|c| u64::from(c.compared)).sum();
    let agree: u64 = counts().map(|c| u64::from(c.agree)).sum();
    let differ = |c: &&CellFigures| c.findings.contains(&Code::P018);
    let differing = measured.iter().copied().filter(differ);
    let names = distinct(differing.map(|c| c.cell.clone()));
    let text = match (compared, names.is_empty()) {
        (0, _) => return None,
        (1, true) => "Client and peer counted the same in the one trial.".to_owned(),
        (_, true) => format!("Client and peer counted the same in all {compared} trials."),
        _ => format!(
            "Client and peer counted the same in {agree} of {}. They differ in {}, which {} \
             compared with nothing.",
            counted(compared, "trial"),
            listed(&names),
            if names.len() == 1 { "is" } else { "are" }
        ),
    };
    Some(text)
}

fn of_downloads(run: &Run, section: &Section<'_>) -> Vec<Point> {
    debug_assert_eq!(section.asked.work, DOWNLOADS);
    let name = |c: &CellFigures| section.label_of(run, c);
    let point = |(row, (_, cells)): (&RowKey<'_>, (String, Vec<&CellFigures>))| {
        let cells = sound(&cells);
        let speed: fn(&CellFigures) -> Option<Figure> = |c| c.client.as_ref()?.bytes_per_s;
        let base = cells.iter().find(|c| c.is_reference && c.ratio.is_none());
        let against = base.map_or_else(|| "the reference".to_owned(), |c| name(c));
        let own = base.and_then(|c| Some(speed(c)?.median));
        let own = own.map_or_else(String::new, |own| format!(" ({} MiB/s)", mib(own)));
        // Where no ratio is claimed the rates themselves say as much, and where one is, the table has them.
        let is_claimed = |c: &&CellFigures| c.ratio.as_ref().is_some_and(|r| r.is_interval());
        let mut said = match cells.iter().any(is_claimed) {
            true => {
                let rates = beside(&cells, &name, |c| c.ratio.as_ref());
                vec![format!("rate against {against}{own}: {}", rates.join("; "))]
            }
            false => vec![medians(&cells, &name, speed, (mib, " MiB/s"))?],
        };
        let cpu = beside(&cells, &name, |c| c.client.as_ref()?.cpu_ratio.as_ref());
        if !cpu.is_empty() {
            said.push(format!("CPU time against {against}: {}", cpu.join("; ")));
        }
        Some(Point {
            head: row.words(),
            text: format!("{}.", said.join(". ")),
        })
    };
    let rows = section.rows.iter().zip(section.pictured());
    rows.filter_map(point).collect()
}
