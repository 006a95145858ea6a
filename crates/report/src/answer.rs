//! The short answer: a few sentences that the data allow, and those that they forbid.
//!
//! Who leads and by how much comes first, where the run can tell it; how sure that is comes after. A run that can rank
//! nobody says so first. How long all of it may be is for `short`.

use std::collections::BTreeMap;

use prony_base::counted;
use prony_findings::Code;
use prony_stats::BLOCKS_INTERVAL_MIN;
use serde::Serialize;

use crate::Run;
use crate::against::{CELLS_MAX, against_reference, left_out, titles};
use crate::claims::{self};
use crate::clients::{self, steps::Step};
use crate::figures::CellFigures;
use crate::groups::{Group, groups};
use crate::numbers;
use crate::open;
use crate::programs::{self, across::Across};
use crate::ratio::RatioFigure;
use crate::rows;
use crate::search;
use crate::sections::by_themselves;
use crate::table;
use crate::words::{Point, claim, listed, medians, what_follows};

/// The short answer in the order in which it is read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// What was done, and what is said of servers, a paragraph each.
    pub before: Vec<String>,
    /// What is said of programs, of tables with rows and of clients.
    pub points: Vec<Point>,
    /// How sure it is, and what speaks against some of it.
    pub after: Vec<String>,
    /// What is told in full elsewhere, and left out of these or cut.
    pub more: Vec<Point>,
}

/// The answer that the data allow.
pub fn answer(run: &Run, cells: &[CellFigures], across: Option<&Across>, steps: &[Step]) -> Answer {
    let mut said = of_servers(run, cells);
    said.before.extend(search::words::answer(run, cells));
    let programs: Vec<&CellFigures> = cells.iter().filter(|c| c.program.is_some()).collect();
    let of_programs = across.and_then(|across| programs::answer::points(run, &programs, across));
    if let Some(of_programs) = of_programs {
        said.claims.push(of_programs.claim);
        said.points.extend(of_programs.points);
        said.more.extend(of_programs.more);
    }
    said.points.extend(rows::words::points(run, cells));
    if let Some((claim, of_clients)) = clients::answer::points(run, cells, steps) {
        said.claims.push(claim);
        said.points.extend(of_clients);
    }
    let ServerLines {
        claims,
        mut before,
        points,
        more,
    } = said;
    let mut after = Vec::new();
    if claims.is_empty() && before.is_empty() {
        before.push(nothing(run, cells));
    } else {
        let blocks = cells.iter().map(|cell| cell.trials.measured.len()).max();
        let can_tell = blocks >= Some(BLOCKS_INTERVAL_MIN);
        let (first, mut sure) = match can_tell {
            true => (None, claims),
            false => (Some(together(run, &claims)), Vec::new()),
        };
        before.splice(0..0, first.filter(|line| !line.is_empty()));
        sure.extend(resolution(run, cells));
        let mut against = reservations(cells);
        against.extend(crate::machine::sentence(&run.environment));
        let lines = [sure, against].map(|of| of.join(" "));
        after.extend(lines.into_iter().filter(|line| !line.is_empty()));
    }
    Answer {
        before,
        points,
        after,
        more,
    }
}

/// Claims of several kinds of work as one, with what follows from them once where it is the same.
fn together(run: &Run, claims: &[String]) -> String {
    let follows = format!(": {}", what_follows(run, 0));
    let done = claims.iter().map(|claim| claim.strip_suffix(&follows));
    match done.collect::<Option<Vec<&str>>>() {
        Some(done) if !done.is_empty() => format!("{}{follows}", done.join("; ")),
        _ => claims.join(" "),
    }
}

/// What is gathered before it is put into its order.
#[derive(Default)]
struct ServerLines {
    /// What was done, and what follows from it, of each kind of work.
    claims: Vec<String>,
    before: Vec<String>,
    points: Vec<Point>,
    more: Vec<Point>,
}

/// The sentences on servers; none where no cell of one was measured.
fn of_servers(run: &Run, cells: &[CellFigures]) -> ServerLines {
    let servers: Vec<&CellFigures> = cells
        .iter()
        .filter(|c| c.is_server() && c.search.is_none())
        .collect();
    let measured = servers.iter().copied().filter(|c| c.rate_per_s.is_some());
    let measured: Vec<&CellFigures> = measured.collect();
    if measured.is_empty() {
        return ServerLines::default();
    }
    let how = |blocks: usize| {
        let each = numbers::duration(run.plan.duration_ns);
        let turns = run.plan.visits.as_ref().map_or_else(String::new, |of| {
            let others = match by_themselves(run).len() {
                0 => String::new(),
                count => format!(" but for {}", counted(count, "cell")),
            };
            format!(
                ", visited in turns of {}{others}",
                numbers::duration(of.length_ns)
            )
        });
        format!("in {} of {each} each{turns}", counted(blocks, "block"))
    };
    let groups = groups(cells);
    let first = match cells.iter().all(CellFigures::is_server) {
        true => foremost(&groups, GROUPS_MAX),
        // The other kinds of work want room, too.
        false => foremost(&groups, GROUPS_MAX / 2),
    };
    let mut said = ServerLines {
        claims: vec![claim(run, servers.len(), &measured, how)],
        ..ServerLines::default()
    };
    for (at, group) in groups.iter().enumerate() {
        let own = measured.iter().copied().filter(|c| group.has(c));
        let own: Vec<&CellFigures> = own.collect();
        let Some(sentence) = of_group(group, &own) else {
            continue;
        };
        match first.contains(&at) {
            true => said.before.push(sentence),
            false => said.more.push(Point {
                head: group.place(),
                text: sentence,
            }),
        }
    }
    said
}

/// Groups that have a sentence before the first picture.
const GROUPS_MAX: usize = 4;

/// The places of the groups that have one: of too many, those of each workload with its most connections, then those with
/// its fewest, then the others.
fn foremost(groups: &[Group], most: usize) -> Vec<usize> {
    let rank = |at: usize| {
        let of = &groups[at].workload;
        let own = || groups.iter().enumerate().filter(|(_, g)| g.workload == *of);
        match (own().next_back(), own().next()) {
            (Some((last, _)), _) if last == at => 0,
            (_, Some((first, _))) if first == at => 1,
            _ => 2,
        }
    };
    let mut places: Vec<usize> = (0..groups.len()).collect();
    places.sort_by_key(|at| (rank(*at), *at));
    places.truncate(most);
    places
}

fn nothing(run: &Run, cells: &[CellFigures]) -> String {
    let failed = cells.iter().filter(|c| !c.trials.failed.is_empty()).count();
    let why = if failed > 0 {
        format!(
            "all {} that were tried failed, and say why below",
            cells_word(failed)
        )
    } else if run.plan.not_run.is_empty() && cells.is_empty() {
        "the plan holds no cell".to_owned()
    } else if cells.is_empty() {
        "this machine can run none of what the experiment names".to_owned()
    } else {
        "no trial has ended yet".to_owned()
    };
    format!("Nothing was measured: {why}.")
}

fn cells_word(count: usize) -> String {
    match count {
        0 => "no cell".to_owned(),
        _ => counted(count, "cell"),
    }
}

fn of_group(group: &Group, cells: &[&CellFigures]) -> Option<String> {
    let place = format!("On {}", group.place());
    if cells.iter().any(|cell| cell.open.is_some()) {
        return open::sentence(&place, cells);
    }
    let cells = cells.iter().copied();
    let (invalid, usable): (Vec<_>, Vec<_>) = cells.partition(|c: &&CellFigures| c.is_invalid());
    let left_out = left_out(&invalid);
    if usable.is_empty() {
        return Some(format!("{place}, no figure can be used.{left_out}"));
    }
    let said = against_reference(&place, &usable).or_else(|| extent(&place, &usable))?;
    Some(said + &left_out)
}

/// The rates, the highest first.
fn extent(place: &str, cells: &[&CellFigures]) -> Option<String> {
    let said = medians(
        cells.iter().copied(),
        |cell| cell.rate_per_s,
        |cell| (cell.label.clone(), cell.is_reference),
        (Code::P001, numbers::rate, " requests/s"),
    )?;
    Some(format!("{place}: {said}."))
}

/// What this run could have told, and how a copy of the reference came out.
fn resolution(run: &Run, cells: &[CellFigures]) -> Vec<String> {
    let mut said = Vec::new();
    let told: Vec<(String, f64, usize)> = claims::resolutions(&run.plan, cells)
        .into_iter()
        .filter(|of| of.comparisons > 0)
        .filter_map(|of| Some((of.workload, of.detectable?, of.comparisons)))
        .collect();
    let most = told.iter().map(|(_, _, comparisons)| *comparisons).max();
    said.extend(most.map(|comparisons| {
        let up_to = match told.iter().all(|(_, _, own)| *own == comparisons) {
            true => "",
            false => "up to ",
        };
        format!(
            "This run tells rates apart that differ by at least {} (power 80 %, {up_to}{} of a workload taken together).",
            least(&told),
            counted(comparisons, "comparison"),
        )
    }));
    let copies = cells.iter().filter(|c| c.is_copy);
    let ratios: Vec<(&CellFigures, &RatioFigure)> = copies
        .filter_map(|c| Some((c, c.ratio.as_ref()?)))
        .collect();
    let off = |ratio: &RatioFigure| (ratio.ratio - 1.0).abs();
    let farthest = ratios.iter().max_by(|a, b| off(a.1).total_cmp(&off(b.1)));
    said.extend(farthest.map(|(cell, ratio)| of_copies(&ratios, cell, ratio)));
    said
}

/// The smallest differences: by workload where these are few.
fn least(told: &[(String, f64, usize)]) -> String {
    const WORKLOADS_MAX: usize = 3;
    let each = |(workload, least, _): &(String, f64, usize)| {
        format!("{} ({workload})", numbers::percent(*least))
    };
    match told {
        [(_, least, _)] => numbers::percent(*least),
        _ if told.len() <= WORKLOADS_MAX => listed(&told.iter().map(each).collect::<Vec<_>>()),
        _ => {
            let by = |a: &&(String, f64, usize), b: &&(String, f64, usize)| a.1.total_cmp(&b.1);
            let ends = [told.iter().min_by(by), told.iter().max_by(by)];
            let ends: Vec<String> = ends.into_iter().flatten().map(each).collect();
            format!("{}, by workload", ends.join(" to "))
        }
    }
}

/// How copies of the reference came out, of which the farthest is told.
fn of_copies(
    all: &[(&CellFigures, &RatioFigure)],
    cell: &CellFigures,
    ratio: &RatioFigure,
) -> String {
    let differ = all
        .iter()
        .any(|(_, r)| matches!(r.conclusion, "higher" | "lower"));
    let came = format!(
        "A copy of the reference came out at {} of its rate{} ({})",
        numbers::change_of(ratio),
        if all.len() > 1 {
            " at the farthest"
        } else {
            ""
        },
        cell.cell
    );
    match (ratio.is_interval(), differ) {
        (_, true) => format!(
            "{came}. That is more than chance explains (99 % interval), so that nothing is claimed of rates: something \
             distinguishes trials of the same program."
        ),
        (true, false) => format!("{came}: no more than chance explains."),
        (false, false) => format!("{came}: smaller differences are this run's own noise."),
    }
}

/// What speaks against some of the figures.
fn reservations(cells: &[CellFigures]) -> Vec<String> {
    let with = |code: Code| -> Vec<String> {
        let has = cells.iter().filter(|c| c.findings.contains(&code));
        has.map(|c| c.cell.clone()).collect()
    };
    let mut said = Vec::new();
    let is_open = |id: &String| cells.iter().any(|c| &c.cell == id && c.open.is_some());
    let (open, closed): (Vec<_>, Vec<_>) = with(Code::P001).into_iter().partition(is_open);
    let named = |of: &[String]| match of.len() {
        ..=CELLS_MAX => listed(of),
        many => counted(many, "cell"),
    };
    if !closed.is_empty() {
        said.push(format!(
            "The generator, not the subject, was the limit in {}: at least this fast.",
            named(&closed)
        ));
    }
    if !open.is_empty() {
        said.push(format!(
            "The generator's own delay is in the latencies of {}: at most this long.",
            named(&open)
        ));
    }
    let failed = cells.iter().filter(|c| c.findings.contains(&Code::P010));
    let with_blocks = |c: &CellFigures| match table::blocks_of(c) {
        Some(blocks) => format!("{} (figures of {blocks})", c.cell),
        None => c.cell.clone(),
    };
    let failed: Vec<String> = failed.map(with_blocks).collect();
    if !failed.is_empty() {
        said.push(format!("Trials failed in {}.", listed(&failed)));
    }
    // Of servers their own sentences say it.
    let others = cells.iter().filter(|c| !c.is_server());
    let mut invalid: BTreeMap<&[Code], Vec<String>> = BTreeMap::new();
    for cell in others.filter(|c| c.is_invalid()) {
        let alike = invalid.entry(&cell.invalid_by).or_default();
        alike.push(cell.cell.clone());
    }
    if !invalid.is_empty() {
        let of = |(codes, cells): (&&[Code], &Vec<String>)| {
            format!("{} ({})", listed(cells), titles(codes))
        };
        said.push(format!(
            "Invalid, and compared with nothing: {}.",
            invalid.iter().map(of).collect::<Vec<_>>().join("; ")
        ));
    }
    let missing = cells.iter().filter(|c| c.verdict.is_none()).count();
    if missing > 0 {
        said.push(format!(
            "No trial of {} has ended yet.",
            cells_word(missing)
        ));
    }
    said
}
