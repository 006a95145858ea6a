//! P013 to P017: programs that are run to their end. Was there enough to measure, did it run all
//! the time, is the work the same, is the memory its own, were deadlines met?

use std::collections::BTreeMap;

use prony_record::{Cell, Durations, ProgramReport, Trial};

use super::seen::{Seen, finding, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity, Unit};
use crate::limits;
use crate::measure;
use crate::records::Case;

/// [`worst`] over the runs of a program that is no client.
fn worst_run(
    case: &Case<'_>,
    code: Code,
    look: impl Fn(&Trial, &ProgramReport) -> Option<Seen>,
) -> Vec<Finding> {
    let is_client = case.is_client();
    let runs = case.runs().filter(|_| !is_client);
    worst(case, code, runs.map(|(trial, _)| trial), |trial| {
        look(trial, trial.program.as_ref()?)
    })
}

const SHORT: (&str, &str) = (
    "The work took so little time that the start of threads, first use of memory and the clock itself are a good part \
     of it: the work alone takes at most this long.",
    "Raise the count, so that it takes 50 ms or more.",
);

/// P013: the work took under 5 ms by the program's own clock.
pub(super) fn too_short(case: &Case<'_>) -> Vec<Finding> {
    worst_run(case, Code::P013, |_, program| {
        let line = measure::line(program)?;
        if line.elapsed_ns >= limits::ELAPSED_NS_MIN {
            return None;
        }
        let elapsed = line.elapsed_ns as f64;
        let evidence = vec![
            Evidence::number("elapsed", elapsed, Unit::Nanoseconds),
            Evidence::number("whole run", program.wall_ns as f64, Unit::Nanoseconds),
            Evidence::count("count", line.count),
        ];
        let shortness = 1.0 / elapsed.max(1.0);
        Some(Seen::note(shortness, SHORT, evidence).severity(Severity::Bound))
    })
}

const WAITED: (&str, &str) = (
    "The program did not run all the time: it slept, waited for input or for memory, or something \
     else ran on its core. Its elapsed time is not the cost of its work.",
    "Stop other programs; look in the program for sleeps, files and locks.",
);
const UNEVEN: (&str, &str) = (
    "Its threads did not all run all the time: they waited for each other or for a lock, ended at \
     different times, or something else ran on their cores. That is part of its elapsed time.",
    "Stop other programs. If the finding stays, this is how the program scales.",
);

/// P014: CPU time under 80 % of the run's wall time on as many cores as its threads could use; with several threads they may
/// have waited for each other. Runs under 20 ms are not looked at.
pub(super) fn not_running(case: &Case<'_>) -> Vec<Finding> {
    worst_run(case, Code::P014, |_, program| {
        let threads = measure::line(program)?.threads.max(1);
        let cores = match measure::program_cores(&case.records.plan.cores) {
            0 => f64::from(threads),
            pinned => f64::from(threads).min(pinned as f64),
        };
        let used = measure::program_cpu(program).0 as f64 / program.wall_ns as f64 / cores;
        let long = program.wall_ns >= limits::RUNNING_WALL_NS_MIN;
        if !long || used >= limits::RUNNING_SHARE {
            return None;
        }
        let evidence = vec![
            Evidence::number("CPU time over wall time and cores", used, Unit::Share),
            Evidence::count("threads", u64::from(threads)),
            Evidence::number("cores", cores, Unit::Cores),
        ];
        let text = match threads {
            1 => WAITED,
            _ => UNEVEN,
        };
        Some(Seen::note(1.0 - used, text, evidence))
    })
}

const OTHER_RESULT: (&str, &str) = (
    "The checksum of its results differs from the others': it did not do the same work, or did it wrongly.",
    "Compare what it computes with the definition of the work; until then its figures mean nothing.",
);

/// P015: its checksum differs from that of the reference in the same workload, count and number
/// of threads, or, without one there, from the one that most subjects printed.
pub(super) fn checksum_differs(case: &Case<'_>) -> Vec<Finding> {
    let expected = expected_checksums(case);
    worst_run(case, Code::P015, |_, program| {
        let line = measure::line(program)?;
        let (whose, right) = expected.get(&line.threads)?;
        if line.checksum.is_empty() || &line.checksum == right {
            return None;
        }
        let evidence = vec![
            Evidence::text("checksum", line.checksum.clone()),
            Evidence::text(whose.clone(), right.clone()),
        ];
        Some(Seen::note(0.0, OTHER_RESULT, evidence).severity(Severity::Invalid))
    })
}

/// Whose checksum counts, and which it is, by number of threads: the reference's first, else that
/// of the most subjects, the plan's order deciding between equals.
fn expected_checksums(case: &Case<'_>) -> BTreeMap<u32, (String, String)> {
    let plan = case.records.plan;
    let mut votes: BTreeMap<u32, Vec<(String, Vec<&str>)>> = BTreeMap::new();
    let mut expected = BTreeMap::new();
    for cell in plan.cells.iter().filter(|cell| alike(cell, case.cell)) {
        let is_reference = plan.reference.as_ref() == Some(&cell.subject);
        for (_, program) in case.records.case(cell).runs() {
            let Some(line) = measure::line(program).filter(|l| !l.checksum.is_empty()) else {
                continue;
            };
            if is_reference {
                let of_reference = || (format!("of {}", cell.subject), line.checksum.clone());
                expected.entry(line.threads).or_insert_with(of_reference);
            }
            let candidates = votes.entry(line.threads).or_default();
            let same = |(sum, _): &&mut (String, Vec<&str>)| *sum == line.checksum;
            match candidates.iter_mut().find(same) {
                Some((_, voters)) if voters.contains(&cell.subject.as_str()) => {}
                Some((_, voters)) => voters.push(&cell.subject),
                None => candidates.push((line.checksum.clone(), vec![&cell.subject])),
            }
        }
    }
    for (threads, candidates) in votes {
        let most = candidates.iter().map(|(_, voters)| voters.len()).max();
        let chosen = candidates.iter().find(|(_, v)| Some(v.len()) == most);
        if let Some((sum, voters)) = chosen {
            let of_most = || (format!("of {}", voters.join(", ")), sum.clone());
            expected.entry(threads).or_insert_with(of_most);
        }
    }
    expected
}

fn alike(cell: &Cell, other: &Cell) -> bool {
    cell.workload == other.workload && cell.count == other.count
}

const SAME_PEAK: (&str, &str) = (
    "Different work of this subject has the same peak memory to the byte, in every block: the high-water mark was \
     carried over from one run to another, or is that of its parent process.",
    "Make each run a fresh process that reads its own high-water mark; do not use this figure until then.",
);

/// P016: a peak of at least 16 MiB that another workload of the same subject and settings has to
/// the byte, in each of at least 2 blocks.
pub(super) fn same_peak(case: &Case<'_>) -> Vec<Finding> {
    // What a client does for other peers is the same work.
    if case.is_client() {
        return Vec::new();
    }
    let own = peaks(case);
    let cells = &case.records.plan.cells;
    let others = cells.iter().filter(|cell| other_work(cell, case.cell));
    for other in others {
        let theirs = peaks(&case.records.case(other));
        let both: Vec<(u32, u64, u64)> = own
            .iter()
            .filter_map(|(block, peak)| Some((*block, *peak, *theirs.get(block)?)))
            .collect();
        let same = |&(_, a, b): &(u32, u64, u64)| a == b && a >= limits::PEAK_BYTES_MIN;
        if both.len() < limits::PEAK_BLOCKS_MIN || !both.iter().all(same) {
            continue;
        }
        let peak = both[0].1;
        let evidence = vec![
            Evidence::number("peak", peak as f64, Unit::Bytes),
            Evidence::count("in bytes", peak),
            Evidence::text("the same as", other.id.clone()),
        ];
        let blocks = both.iter().map(|(block, _, _)| *block).collect();
        let seen = Seen::note(0.0, SAME_PEAK, evidence);
        return vec![finding(case, Code::P016, blocks, seen)];
    }
    Vec::new()
}

/// Another workload of the same subject, with no setting that both have and that differs: of
/// all pairs, some would have the same peak by chance.
fn other_work(cell: &Cell, own: &Cell) -> bool {
    let same = |(name, value): (&String, &String)| {
        let theirs = own.settings.get(name);
        theirs.is_none_or(|theirs| theirs == value)
    };
    cell.subject == own.subject && cell.workload != own.workload && cell.settings.iter().all(same)
}

fn peaks(case: &Case<'_>) -> BTreeMap<u32, u64> {
    let runs = case.runs();
    runs.map(|(trial, run)| (trial.block, run.peak_bytes))
        .collect()
}

const MISSED: (&str, &str) = (
    "Some runs took longer than their deadline: the work was delayed that long, by the machine or by the program \
     itself.",
    "Nothing, if that is what is measured. Else look at the kernel's realtime throttle, the \
     scheduling policy, the frequency governor and what else runs on the core.",
);

/// P017: a run of a job was longer than its deadline.
pub(super) fn deadlines_missed(case: &Case<'_>) -> Vec<Finding> {
    worst_run(case, Code::P017, |_, program| {
        let durations = measure::line(program)?.durations.as_ref()?;
        if durations.missed_count == 0 || durations.deadline_ns == 0 {
            return None;
        }
        let badness = durations.missed_count as f64;
        let seen = Seen::note(badness, MISSED, missed_evidence(durations));
        Some(seen)
    })
}

fn missed_evidence(durations: &Durations) -> Vec<Evidence> {
    let mut evidence = vec![
        Evidence::count("missed", durations.missed_count),
        Evidence::count("runs", durations.count),
        Evidence::number("deadline", durations.deadline_ns as f64, Unit::Nanoseconds),
        Evidence::number("longest", durations.max_ns as f64, Unit::Nanoseconds),
    ];
    let named = durations.missed.iter().take(limits::MISSED_NAMED_MAX);
    evidence.extend(named.map(|missed| {
        Evidence::number(
            format!("run {}", missed.run),
            missed.ns as f64,
            Unit::Nanoseconds,
        )
    }));
    evidence
}
