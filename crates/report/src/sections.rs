//! The parts of the document around its tables: machine, method, what was not run, how to
//! repeat it, limits.

use prony_base::counted;
use prony_record::{Cell, Cores, Plan, Source, Trial};
use prony_stats::{median, sorted};
use serde::Serialize;

use crate::Run;
use crate::claims;
use crate::clients;
use crate::figures::CellFigures;
use crate::kinds::Kinds;
use crate::lists::push_under;
use crate::numbers;
use crate::open;
use crate::programs;
use crate::rows;
use crate::search;
use crate::settings::THREADS;
use crate::words::{paragraph, paragraphs};

/// A name and what belongs to it.
#[derive(Clone, Debug, Serialize)]
pub struct Fact {
    /// What.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// What cores are for, and which these are.
fn by_role<'a>(plan: &'a Plan, kinds: &Kinds) -> Vec<(&'static str, &'a [u32])> {
    let around = !plan.backings.is_empty() || !plan.fronts.is_empty();
    let own = match around {
        true => "cores of the subject and what is around it",
        false => "cores of the subject",
    };
    let other = match (kinds.servers, kinds.clients) {
        (true, false) => "cores of the generator",
        (false, true) => "cores of the peer",
        _ => "cores of generator and peer",
    };
    let Cores {
        subject,
        generator,
        lab,
    } = &plan.cores;
    let mut roles = vec![(own, &**subject)];
    if !kinds.only_programs() {
        roles.push((other, generator));
    }
    if !lab.is_empty() {
        roles.push(("cores of the sampler", lab));
    }
    roles
}

/// The machine and the software, what is not known left out.
pub fn environment(run: &Run) -> Vec<Fact> {
    let (e, plan) = (&run.environment, &run.plan);
    let number = |n: u32| if n > 0 { n.to_string() } else { String::new() };
    let processors = match e.threads_per_core {
        0 | 1 => number(e.cpus),
        threads => format!("{}, {threads} threads a core", e.cpus),
    };
    let memory = if e.memory_bytes > 0 {
        numbers::bytes(e.memory_bytes as f64)
    } else {
        String::new()
    };
    let started = if e.started_unix_ms > 0 {
        numbers::moment(e.started_unix_ms)
    } else {
        String::new()
    };
    let commit = if e.prony_commit.is_empty() {
        String::new()
    } else {
        format!(" ({})", e.prony_commit)
    };
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            facts.push(Fact {
                name: name.to_owned(),
                value,
            });
        }
    };
    add("processor", e.cpu_model.clone());
    add("processors", processors);
    let kinds = Kinds::of(plan);
    for (role, list) in by_role(plan, &kinds) {
        add(role, cores(list));
    }
    add("memory", memory);
    add("kernel", e.kernel.clone());
    add("distribution", e.distribution.clone());
    add("virtualisation", e.virtualisation.clone());
    add("connections", cap(plan));
    add("prony", format!("{}{commit}", e.prony_version));
    // Programs are sent nothing.
    let network = !kinds.only_programs();
    if kinds.servers {
        add("generator's driver", e.driver.clone());
    }
    add("started", started);
    add("CPU time of the sampler", sampler(&run.trials));
    let told = |fact: &&prony_record::Fact| network || !fact.name.starts_with("net.");
    for fact in settings(&e.facts).iter().filter(told) {
        add(&fact.name, fact.value.clone());
    }
    for tool in &e.software {
        add(&tool.name, tool.version.clone());
    }
    facts
}

/// What the lab's own sampling took of a core while it measured; empty where no trial says it.
fn sampler(trials: &[Trial]) -> String {
    let share = |trial: &Trial| {
        let used = trial.sampler_cpu_ns.filter(|_| trial.sampled_ns > 0)?;
        Some(used as f64 / trial.sampled_ns as f64)
    };
    let shares = sorted(&trials.iter().filter_map(share).collect::<Vec<_>>());
    match (median(&shares), shares.last()) {
        (Some(middle), Some(most)) => format!(
            "{} of a core at the median of {}, {} at the most",
            numbers::percent(middle),
            counted(shares.len(), "trial"),
            numbers::percent(*most)
        ),
        _ => String::new(),
    }
}

/// What the name of a setting ends with where its value is that of the trials' own network.
const IN_TRIALS: &str = " in trials";

/// Each setting once. One that the trials' own network has, too, has the value that was in force there, and the
/// host's beside it where that is another.
fn settings(facts: &[prony_record::Fact]) -> Vec<prony_record::Fact> {
    let mut each: Vec<(&str, Vec<&str>)> = Vec::new();
    for fact in facts {
        let name = fact.name.strip_suffix(IN_TRIALS).unwrap_or(&fact.name);
        push_under(&mut each, name, &*fact.value);
    }
    let told = |(name, values): (&str, Vec<&str>)| {
        let (first, last) = (values[0], values[values.len() - 1]);
        let value = match first == last {
            true => last.to_owned(),
            false => format!("{last} in trials, {first} on the host"),
        };
        let name = name.to_owned();
        prony_record::Fact { name, value }
    };
    each.into_iter().map(told).collect()
}

/// `2, 3`, or that there are none of one's own.
pub fn cores(cores: &[u32]) -> String {
    if cores.is_empty() {
        return "not pinned".to_owned();
    }
    let numbers: Vec<String> = cores.iter().map(u32::to_string).collect();
    numbers.join(", ")
}

fn cap(plan: &Plan) -> String {
    let cap = &plan.connection_cap;
    if cap.connections_max == 0 {
        return String::new();
    }
    let most = numbers::count(u64::from(cap.connections_max));
    if cap.limited_by.is_empty() {
        return format!("at most {most} in every cell");
    }
    format!(
        "at most {most} in every cell, limited by {}",
        cap.limited_by
    )
}

/// How it was measured, in some lines, and how the plan came about.
pub fn method(run: &Run) -> Vec<String> {
    let kinds = Kinds::of(&run.plan);
    let mut lines = Vec::new();
    if kinds.programs {
        lines.extend(programs::words::method(run));
    }
    if kinds.clients {
        lines.extend(clients::words::method(run));
    }
    if kinds.servers {
        lines.extend([apart(run), asked(&run.plan)]);
        lines.extend(search::any(&run.plan).then(|| paragraph("search: method")));
        lines.extend(rows::lines::method(run));
    }
    lines.push(in_turn(&run.plan));
    if kinds.servers {
        lines.push(clocks(&run.plan));
    }
    lines.push(of_figures(run));
    let ended = |note: &String| format!("{}.", note.trim_end_matches('.'));
    lines.extend(run.plan.notes.iter().map(ended));
    lines
}

fn apart(run: &Run) -> String {
    let measured: Vec<_> = run.trials.iter().filter(|t| t.load.is_some()).collect();
    let namespaces = measured
        .iter()
        .filter(|t| t.isolation.network_namespace)
        .count();
    let place = if measured.is_empty() {
        ""
    } else if namespaces == measured.len() {
        ", in a network namespace of its own"
    } else if namespaces == 0 {
        ", in the host's network namespace, whose counters others move too"
    } else {
        ", some of them in a network namespace of their own"
    };
    let cores = &run.plan.cores;
    let pinned = match (cores.subject.is_empty(), cores.lab.is_empty()) {
        (true, _) => "nothing is pinned to cores",
        (false, true) => "subject and generator each keep to their own cores",
        (false, false) => "subject, generator and sampler each keep to their own cores",
    };
    format!(
        "Each trial starts fresh processes{place}; {pinned}. They talk over loopback. Before the load, \
         answers are checked; a subject that answers wrongly is not measured.{}",
        visits(run)
    )
}

/// How servers were visited in turns, and which were not.
fn visits(run: &Run) -> String {
    let Some(planned) = &run.plan.visits else {
        return String::new();
    };
    let visited = run.trials.iter().filter(|trial| !trial.visits.is_empty());
    let counts: Vec<usize> = visits_of(visited);
    let mut text = format!(
        " The servers of one workload, size and block are alive together and are visited in turns of {} on average, after {} of \
         load that is not measured, in an order that is drawn anew for each round; all processes of the others are \
         stopped meanwhile, and no request is out. A trial is {} visits of the same processes; its figures are those of \
         all of them together, and intervals are over the blocks, which have fresh processes. What is rarer than p99 is \
         not told of visits.",
        numbers::duration(planned.length_ns),
        numbers::duration(planned.lead_in_ns),
        match (counts.iter().min(), counts.iter().max()) {
            (Some(least), Some(most)) if least == most => least.to_string(),
            (Some(least), Some(most)) => format!("{least} to {most}"),
            _ => "no".to_owned(),
        },
    );
    let ids = by_themselves(run);
    if !ids.is_empty() {
        text += &format!(" Measured by themselves: {}.", ids.join(", "));
    }
    text
}

/// Cells that were measured while no other server was alive, of a run that visits servers in turns.
pub fn by_themselves(run: &Run) -> Vec<&str> {
    let is_one = |cell: &&Cell| {
        let mut own = run.trials.iter().filter(|trial| trial.cell == cell.id);
        own.any(|trial| {
            trial.load.is_some() && trial.visits.is_empty() && trial.generator == "prony"
        })
    };
    let cells = run.plan.cells.iter().filter(is_one);
    cells.map(|cell| cell.id.as_str()).collect()
}

fn visits_of<'a>(trials: impl Iterator<Item = &'a Trial>) -> Vec<usize> {
    trials.map(|trial| trial.visits.len()).collect()
}

fn asked(plan: &Plan) -> String {
    let exact = plan
        .workloads
        .iter()
        .filter(|w| w.expect_body.is_some())
        .count();
    let compared = match exact {
        0 => "Of every answer the status is compared with the expected one",
        n if n == plan.workloads.len() => {
            "Every answer's status and body are compared with the expected ones"
        }
        _ => {
            "Every answer's status, and its body where the workload states it, is compared with the expected one"
        }
    };
    format!(
        "{}, after {} of warm-up for {}. {compared}.",
        open::loops(plan),
        numbers::duration(plan.warmup_ns),
        numbers::duration(plan.duration_ns),
    )
}

fn in_turn(plan: &Plan) -> String {
    let blocks = plan.blocks;
    format!(
        "{} of every cell, interleaved: {} of all cells, each in an order that {} balances.",
        match blocks {
            1 => "One trial".to_owned(),
            _ => counted(blocks, "trial"),
        },
        match blocks {
            1 => "one block".to_owned(),
            _ => counted(blocks, "block"),
        },
        match plan.joined.is_empty() {
            true => format!("seed {}", plan.seed),
            false => "the seed of its run".to_owned(),
        }
    )
}

fn clocks(plan: &Plan) -> String {
    format!(
        "Latency is the time from handing a request to the kernel{} to its last byte. CPU time is that of the \
         processes' own clocks in the window; memory is the largest process's peak in the window. p99.9 \
         with † rests on fewer than ten separate slow periods, or on how many is not known.",
        open::origin(plan)
    )
}

fn of_figures(run: &Run) -> String {
    let rows = run.plan.workloads.iter().any(|w| !w.rows.is_empty());
    let reference = match &run.plan.reference {
        Some(id) if rows => format!(
            "Ratios are of the same block, of a row to its baseline, else to {id}, which the \
             experiment declares; their mean is geometric"
        ),
        None if rows => "Ratios are of the same block, of a row to its baseline, as the \
             experiment says; their mean is geometric"
            .to_owned(),
        Some(id) => format!(
            "Ratios are of the same block, to {id}, which the experiment declares; their mean is geometric"
        ),
        None => "The experiment declares no reference, so there are no ratios".to_owned(),
    };
    let (exponents, times) = match programs::any(&run.plan) {
        true => (" and exponents", " and times"),
        false => ("", ""),
    };
    format!(
        "Figures are medians over the blocks; max is the largest of all. {reference}. Under 6 blocks a \
         spread is the range of the blocks; from 6 ratios{exponents} and from 10 rates{times} have 95 % intervals, \
         each by itself. Failed trials are in no figure."
    )
}

/// Something that was not run.
#[derive(Clone, Debug, Serialize)]
pub struct NotRunRow {
    /// What.
    pub what: String,
    /// Why.
    pub reason: String,
    /// The command that would change it.
    pub remedy: String,
}

/// What the experiment names and this run does not show, trials still to do included.
pub fn not_run(run: &Run, cells: &[CellFigures]) -> Vec<NotRunRow> {
    let named = run.plan.not_run.iter().map(|not| NotRunRow {
        what: not.what.clone(),
        reason: not.reason.clone(),
        remedy: not.remedy.clone(),
    });
    let mut rows: Vec<NotRunRow> = named.collect();
    let left: usize = cells
        .iter()
        .map(|c| {
            // A cell that failed is not tried again in later blocks: its row says so.
            let done = c.trials.measured.len() + c.trials.failed.len();
            if c.trials.failed.is_empty() {
                (c.trials.planned as usize).saturating_sub(done)
            } else {
                0
            }
        })
        .fold(0, usize::saturating_add);
    if left > 0 {
        rows.push(NotRunRow {
            what: counted(left, "trial"),
            reason: "the run ended before them".to_owned(),
            remedy: "prony run … --resume with this run's directory".to_owned(),
        });
    }
    let kinds = Kinds::of(&run.plan);
    if kinds.programs || kinds.clients {
        return programs::words::merged(rows, &run.plan);
    }
    rows
}

/// What was measured, as a row of the list of subjects.
#[derive(Clone, Debug, Serialize)]
pub struct SubjectRow {
    /// Its id.
    pub id: String,
    /// What it is.
    pub summary: String,
    /// The line that it said of its version.
    pub version: String,
    /// Where it comes from.
    pub source: String,
    /// The first digits of its build's key.
    pub build: String,
    /// Threads that it was told to use.
    pub threads: String,
}

/// Digits of a hash that are shown.
const HASH_DIGITS: usize = 12;

/// The subjects, in the plan's order.
pub fn subjects(plan: &Plan) -> Vec<SubjectRow> {
    let kinds = Kinds::of(plan);
    let by_setting = kinds.only_programs() && plan.settings.iter().any(|s| s.name == THREADS);
    let threads = |s: &prony_record::PlannedSubject| match s.program_threads {
        program if program > 0 && kinds.only_programs() => program,
        _ => s.threads,
    };
    let row = |s: &prony_record::PlannedSubject| SubjectRow {
        id: s.id.clone(),
        summary: s.summary.clone(),
        version: s.version.clone(),
        source: match &s.source {
            Source::Folder { dir } if !s.repositories.is_empty() => {
                let states = s.repositories.iter().map(|state| in_words(state, dir));
                states.collect::<Vec<_>>().join("; ")
            }
            Source::Folder { dir } if !s.originals_dir.is_empty() => {
                let digest: String = s.files_sha256.chars().take(HASH_DIGITS).collect();
                format!(
                    "{}, with what its user has built: {digest}",
                    last_parts(dir)
                )
            }
            Source::Folder { dir } => last_parts(dir),
            Source::Command { .. } if s.start.is_empty() && s.program.is_empty() => {
                beginning(&s.client.join(" "))
            }
            Source::Command { .. } if s.start.is_empty() => beginning(&s.program.join(" ")),
            Source::Command { .. } => beginning(&s.start.join(" ")),
            Source::Url { url } => url.clone(),
            Source::Unknown => String::new(),
        },
        build: s.build_key.chars().take(HASH_DIGITS).collect(),
        threads: if by_setting || kinds.clients && !s.client.is_empty() {
            "as set".to_owned()
        } else if threads(s) > 0 {
            threads(s).to_string()
        } else {
            String::new()
        },
    };
    let around = |word: &'static str, s: &prony_record::PlannedSubject| {
        let row = row(s);
        let summary = match row.summary.as_str() {
            "" => word.to_owned(),
            summary => format!("{word}: {summary}"),
        };
        SubjectRow { summary, ..row }
    };
    let subjects = plan.subjects.iter().map(row);
    let peers = plan.peers.iter().map(|s| SubjectRow {
        threads: "as set".to_owned(),
        ..around("peer", s)
    });
    let backings = plan.backings.iter().map(|s| around("backing service", s));
    let fronts = plan.fronts.iter().map(|s| around("proxy in front", s));
    subjects
        .chain(peers)
        .chain(backings)
        .chain(fronts)
        .collect()
}

/// A state of a repository: its address, the commit, the tag that named it, and what it stands in the place of.
fn in_words(state: &prony_record::Repository, dir: &str) -> String {
    let short = |hash: &str| hash.chars().take(HASH_DIGITS).collect::<String>();
    // The user's own repository is named as its folders are: by where in it the subject lies.
    let name = match state.git.contains("://") {
        true => state.git.clone(),
        false => last_parts(dir),
    };
    let place = match state.path.as_str() {
        "" => name,
        path => format!("{path} from {name}"),
    };
    let named = match state.commit.starts_with(&state.revision) {
        true => String::new(),
        false => format!(" ({})", state.revision),
    };
    let stands_for = match state.in_place_of.as_str() {
        "" => String::new(),
        other => format!(", in place of {}", short(other)),
    };
    format!("{place} at {}{named}{stands_for}", short(&state.commit))
}

/// The beginning of a command; `plan.json` has all of it.
fn beginning(command: &str) -> String {
    const CHARS: usize = 60;
    match command.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command.to_owned(),
    }
}

/// The end of a path, which is the same on every machine.
fn last_parts(path: &str) -> String {
    const PARTS: usize = 3;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts[parts.len().saturating_sub(PARTS)..].join("/")
}

/// How to do it again.
#[derive(Clone, Debug, Serialize)]
pub struct Repeat {
    /// The command.
    pub command: String,
    /// What must be the same for it to be the same run.
    pub facts: Vec<Fact>,
}

/// How to do the run again.
pub fn repeat(run: &Run) -> Repeat {
    let plan = &run.plan;
    let words = plan.command.iter().map(|word| quoted(word));
    let words: Vec<String> = std::iter::once("prony".to_owned()).chain(words).collect();
    let fact = |name: &str, value: String| Fact {
        name: name.to_owned(),
        value,
    };
    let mut facts = vec![
        fact("experiment", plan.experiment.clone()),
        fact("its SHA-256", plan.experiment_sha256.clone()),
        fact("plan", crate::plan_hash(plan)),
        fact("seed", plan.seed.to_string()),
    ];
    if plan.experiment_sha256.is_empty() {
        facts.retain(|fact| fact.name != "plan");
    }
    facts.retain(|fact| !fact.value.is_empty());
    Repeat {
        command: words.join(" "),
        facts,
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// What this document cannot tell.
pub fn limits(run: &Run, cells: &[CellFigures]) -> Vec<String> {
    let mut said = Vec::new();
    let kinds = Kinds::of(&run.plan);
    if kinds.programs {
        said.extend(paragraphs("programs: limits"));
    }
    if kinds.clients {
        said.extend(paragraphs("clients: limits"));
    }
    if kinds.servers {
        said.extend(of_servers());
        said.extend(search::any(&run.plan).then(|| paragraph("search: limits")));
        said.extend(rows::lines::limits_of_document(run));
    }
    if !run.environment.virtualisation.is_empty() {
        said.push(format!(
            "The machine is virtual ({}): neighbours take time from it, which is seen only in part.",
            run.environment.virtualisation
        ));
    }
    let together = match claims::counts(cells) {
        (0, 0) => String::new(),
        (rates, others) => format!(
            " Those of the ratios of a workload's rates (at most {rates}) hold together. So do those of all other metrics of \
             the run ({others}). The one beside a single rate holds by itself."
        ),
    };
    let day = match run.plan.joined.is_empty() {
        true => "this day",
        false => "these days",
    };
    said.push(format!(
        "Intervals hold for this machine and {day}.{together}"
    ));
    said
}

fn of_servers() -> [String; 2] {
    [
        "Loopback has no wire: no loss, no delay, no interrupts. Each side's core does part of the \
         other's network work, so CPU a request belongs to this generator and to loopback; compare it \
         within this document only."
            .to_owned(),
        "A closed loop asks less of a slow server than of a fast one. Latencies are those at the rate \
         reached, not at one that users would impose; they grow with the number of connections."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_the_sampler_are_named_where_it_has_its_own() {
        let mut run = Run::default();
        run.plan.cores.subject = vec![0];
        run.plan.cores.generator = vec![1];
        let value = |run: &Run| {
            let facts = environment(run).into_iter();
            let mut own = facts.filter(|fact| fact.name == "cores of the sampler");
            own.next().map(|fact| fact.value)
        };
        assert_eq!(value(&run), None);
        run.plan.cores.lab = vec![2, 6];
        assert_eq!(value(&run).as_deref(), Some("2, 6"));
    }

    #[test]
    fn what_sampling_took_is_a_share_of_the_time_that_was_sampled() {
        let trial = |used: Option<u64>, sampled_ns: u64| Trial {
            sampler_cpu_ns: used,
            sampled_ns,
            ..Trial::default()
        };
        assert_eq!(sampler(&[trial(None, 1_000), trial(Some(5), 0)]), "");
        let trials = [
            trial(Some(4), 1_000),
            trial(None, 1_000),
            trial(Some(9), 1_000),
            trial(Some(5), 1_000),
        ];
        let told = "0.5 % of a core at the median of 3 trials, 0.9 % at the most";
        assert_eq!(sampler(&trials), told);
    }
}
