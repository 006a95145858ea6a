//! The parts of a document around its tables, as far as they tell of programs.

use prony_record::{NotRun, Plan};

use crate::Run;
use crate::lists::push_under;
use crate::words::{paragraph, paragraphs};

/// How programs were measured, in some lines.
pub fn method(run: &Run) -> Vec<String> {
    let plan = &run.plan;
    let pinned = match plan.cores.subject.is_empty() {
        true => "on whichever cores the kernel gives it",
        false => "pinned to as many cores as it has threads, or to all if there are fewer",
    };
    let mut programs = plan.workloads.iter().filter_map(|w| w.program.as_ref());
    let mut lines = paragraphs("programs: method");
    lines[0] = lines[0].replace("{pinned}", pinned);
    if programs.any(|p| p.counts.len() >= prony_stats::SIZES_MIN) {
        lines.push(paragraph("programs: complexity"));
    }
    let is_repeated = |trial: &prony_record::Trial| {
        let program = trial.program.as_ref();
        program.is_some_and(|p| p.lines.iter().any(|line| line.durations.is_some()))
    };
    if run.trials.iter().any(is_repeated) {
        lines.push(paragraph("programs: lengths"));
    }
    lines
}

/// Rows of one subject with the same reason put together, as `subject: the rest; the rest`.
pub fn merged(rows: Vec<NotRun>, plan: &Plan) -> Vec<NotRun> {
    /// Cells that a row names.
    const NAMED_MAX: usize = 6;
    let mut merged: Vec<([String; 3], Vec<String>)> = Vec::new();
    for row in rows {
        let rest = |id: &str| row.what.strip_prefix(id)?.strip_prefix(' ');
        let mut subjects = plan.subjects.iter();
        let found = subjects.find_map(|s| Some((s.id.clone(), rest(&s.id)?.to_owned())));
        let (what, rest) = found.unwrap_or((row.what, String::new()));
        push_under(&mut merged, [what, row.reason, row.remedy], rest);
    }
    let merge = |([what, reason, remedy], mut rests): ([String; 3], Vec<String>)| {
        rests.retain(|rest| !rest.is_empty());
        let shown = rests[..rests.len().min(NAMED_MAX)].join("; ");
        let what = match rests.len() {
            0 => what,
            1 => format!("{what} {shown}"),
            n if n > NAMED_MAX => format!("{what}: {shown}; {} more", n - NAMED_MAX),
            _ => format!("{what}: {shown}"),
        };
        NotRun {
            what,
            reason,
            remedy,
        }
    };
    merged.into_iter().map(merge).collect()
}
