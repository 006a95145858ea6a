//! The parts of a document around its tables, as far as they tell of programs.

use prony_record::{NotRun, Plan};

use crate::Run;
use crate::lists::push_under;

/// How programs were measured, in some lines.
pub fn method(run: &Run) -> Vec<String> {
    let mut lines = vec![apart(&run.plan), clocks().to_owned(), work(&run.plan)];
    let repeated = |trial: &prony_record::Trial| {
        let program = trial.program.as_ref();
        program.is_some_and(|p| p.lines.iter().any(|line| line.durations.is_some()))
    };
    if run.trials.iter().any(repeated) {
        lines.push(lengths().to_owned());
    }
    lines
}

fn apart(plan: &Plan) -> String {
    let pinned = if plan.cores.subject.is_empty() {
        "on whichever cores the kernel gives it"
    } else {
        "pinned to as many cores as it has threads, or to all if there are fewer"
    };
    format!(
        "Each trial runs the program once, from a fresh process to its end, {pinned}. Nothing is warmed up: \
         what a runtime does at its start, such as compiling, is part of the run."
    )
}

fn clocks() -> &'static str {
    "Elapsed is the time that the work took by the program's own clock, from the making of its first queue to \
     the end of the last one; CPU is time in user mode and in the kernel together. It and peak memory are the kernel's account of \
     that process and of the children that it waited for: the peak is that of the largest of them, and as the \
     process is fresh, no earlier run's. summary.json has the two kinds of CPU time and the time of the whole \
     run, too."
}

fn lengths() -> &'static str {
    "Where lengths of runs are measured, min, max and the percentiles are those of all runs of all blocks, and \
     average is the median of the blocks' means. p99.9 with † rests on fewer than ten runs beyond it."
}

fn work(plan: &Plan) -> String {
    let sweep = plan
        .workloads
        .iter()
        .filter_map(|w| w.program.as_ref())
        .any(|p| p.counts.len() >= prony_stats::SIZES_MIN);
    let growth = if sweep {
        " How time grows with size is said only where at least 3 sizes over a factor of 10 were measured, by the \
         interval of the exponent."
    } else {
        " No complexity is claimed: that needs a sweep over sizes."
    };
    format!(
        "Each thread does the whole of the work, so that k threads do k times the work of one; rates are what was counted, \
         over all threads, ÷ elapsed. Every program prints a checksum of its results \
         where it can, and these are compared: whoever did other work is invalid and has a footnote. Ratios are of rates, with the \
         same settings; a setting that one of the two does not have is taken at its first value.{growth}"
    )
}

/// What a document on programs cannot tell.
pub fn limits() -> Vec<String> {
    vec![
        "The work is defined, the way to do it is each subject's own: a difference is one of language, runtime, \
         library and program together."
            .to_owned(),
        "A run that does one thing only shares no cache with anything else: in an application the same work \
         costs more."
            .to_owned(),
        "Two builds also differ in where their code and data lie in memory, which can move a time by some percent. A \
         small difference between builds is one between these two, whatever it is called."
            .to_owned(),
    ]
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
