//! The parts of the document around its tables: machine, method, what was not run, how to
//! repeat it, limits.

use minijinja::context;
use minijinja::value::{Serde, Value};
use prony_base::{Nanos, counted};
use prony_record::{
    Cell, Environment, Fact, GeneratorKind, NotRun, Plan, PlannedSubject, Repository, Source, Trial,
};
use prony_stats::{median, sorted};

use crate::figure::BLOCK;
use crate::figures::{CellFigures, CrossCheck};
use crate::kinds::Kinds;
use crate::lists::{distinct, push_under};
use crate::part::{Part, column, plain};
use crate::settings::THREADS;
use crate::table::{Column, Table};
use crate::words::{digits, paragraph, paragraphs};
use crate::{Run, claims, clients, numbers, open, programs, rows, search, templates};

/// What cores are for, and which these are.
fn by_role<'a>(plan: &'a Plan, kinds: &Kinds) -> Vec<(&'static str, &'a [u32])> {
    let own = match plan.backings.is_empty() && plan.fronts.is_empty() {
        true => "cores of the subject",
        false => "cores of the subject and what is around it",
    };
    let other = match (kinds.servers, kinds.clients) {
        (true, false) => "cores of the generator",
        (false, true) => "cores of the peer",
        _ => "cores of generator and peer",
    };
    let cores = &plan.cores;
    let mut roles = vec![(own, &*cores.subject)];
    if !kinds.only_programs() {
        roles.push((other, &cores.generator));
    }
    if !cores.lab.is_empty() {
        roles.push(("cores of the sampler", &cores.lab));
    }
    roles
}

/// A fact of a document.
pub fn fact(name: &str, value: impl Into<String>) -> Fact {
    let (name, value) = (name.to_owned(), value.into());
    Fact { name, value }
}

/// The facts in which one list differs from another: the name, and the value in each; empty: it is not there.
pub fn differing(one: &[Fact], other: &[Fact]) -> Vec<[String; 3]> {
    let value = |all: &[Fact], name: &str| {
        let found = all.iter().find(|fact| fact.name == name);
        found.map_or_else(String::new, |fact| fact.value.trim().to_owned())
    };
    let names = distinct(one.iter().chain(other).map(|fact| &fact.name));
    let row = |name: &String| [name.clone(), value(one, name), value(other, name)];
    let rows = names.into_iter().map(row);
    rows.filter(|[_, one, other]| one != other).collect()
}

/// The text, unless the number is 0, which stands for what is not known.
fn known(number: u64, text: impl FnOnce() -> String) -> String {
    match number {
        0 => String::new(),
        _ => text(),
    }
}

/// The machine and what runs on it.
pub fn machine(e: &Environment) -> [Fact; 7] {
    let processors = match e.threads_per_core {
        0 | 1 => known(e.cpus.into(), || e.cpus.to_string()),
        threads => format!("{}, {threads} threads a core", e.cpus),
    };
    let version = match e.prony_commit.as_str() {
        "" => e.prony_version.clone(),
        commit => format!("{} ({commit})", e.prony_version),
    };
    let memory = known(e.memory_bytes, || numbers::bytes(e.memory_bytes as f64));
    [
        fact("processor", e.cpu_model.clone()),
        fact("processors", processors),
        fact("memory", memory),
        fact("kernel", e.kernel.clone()),
        fact("distribution", e.distribution.clone()),
        fact("virtualisation", e.virtualisation.clone()),
        fact("prony", version),
    ]
}

/// The tools and their versions.
pub fn tools(e: &Environment) -> impl Iterator<Item = Fact> {
    let tools = e.software.iter();
    tools.map(|tool| fact(&tool.name, tool.version.clone()))
}

/// The machine and the software, what is not known left out.
pub fn environment(run: &Run) -> Vec<Fact> {
    let (e, plan) = (&run.environment, &run.plan);
    let kinds = Kinds::from_plan(plan);
    let roles = by_role(plan, &kinds).into_iter();
    let roles = roles.map(|(role, list)| fact(role, cores(list)));
    let mut facts: Vec<Fact> = machine(e).into_iter().chain(roles).collect();
    facts.push(fact("connections", cap(plan)));
    if kinds.servers {
        facts.push(fact("generator's driver", e.driver.clone()));
        facts.push(fact("generator before it sleeps", looks(plan)));
    }
    let started = || numbers::moment(e.started_unix_ms);
    facts.push(fact("started", known(e.started_unix_ms, started)));
    facts.push(fact("CPU time of the sampler", sampler(&run.trials)));
    // Programs are sent nothing.
    let is_shown = |fact: &Fact| !kinds.only_programs() || !fact.name.starts_with("net.");
    facts.extend(settings(&e.facts).into_iter().filter(is_shown));
    facts.extend(tools(e));
    facts.retain(|fact| !fact.value.is_empty());
    facts
}

/// How long the generator looks for answers before it sleeps, and in which cells; empty where it does in none.
fn looks(plan: &Plan) -> String {
    let cells = || {
        plan.cells
            .iter()
            .filter(|cell| cell.look_before_sleep_ns > 0)
    };
    let longest = cells().map(|cell| cell.look_before_sleep_ns).max();
    let most = cells().map(|cell| cell.connections).max();
    let (Some(longest), Some(most)) = (longest, most) else {
        return String::new();
    };
    let all = match cells().count() == plan.cells.len() {
        true => String::new(),
        false => format!(
            ", in closed loops with up to {} where no setting says otherwise",
            counted(most as usize, "connection")
        ),
    };
    format!("looks for answers for up to {}{all}", Nanos(longest))
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
fn settings(facts: &[Fact]) -> Vec<Fact> {
    let mut each: Vec<(&str, Vec<&str>)> = Vec::new();
    for fact in facts {
        let name = fact.name.strip_suffix(IN_TRIALS).unwrap_or(&fact.name);
        push_under(&mut each, name, &*fact.value);
    }
    let merged = |(name, values): (&str, Vec<&str>)| {
        let (first, last) = (values[0], values[values.len() - 1]);
        let value = match first == last {
            true => last.to_owned(),
            false => format!("{last} in trials, {first} on the host"),
        };
        fact(name, value)
    };
    each.into_iter().map(merged).collect()
}

/// `2, 3`, or that there are none of one's own.
fn cores(cores: &[u32]) -> String {
    if cores.is_empty() {
        return "not pinned".to_owned();
    }
    let numbers: Vec<String> = cores.iter().map(u32::to_string).collect();
    numbers.join(", ")
}

fn cap(plan: &Plan) -> String {
    let cap = &plan.connection_cap;
    let by = match cap.limited_by.as_str() {
        "" => String::new(),
        by => format!(", limited by {by}"),
    };
    let most = u64::from(cap.connections_max);
    known(most, || {
        format!("at most {} in every cell{by}", numbers::count(most))
    })
}

/// How it was measured, in some paragraphs, and how the plan came about.
pub fn method(run: &Run) -> Vec<String> {
    let kinds = Kinds::from_plan(&run.plan);
    let mut lines = templates::paragraphs("method.txt", method_values(run, &kinds));
    if kinds.programs {
        lines.extend(programs::words::method(run));
    }
    if kinds.clients {
        lines.extend(clients::words::method(run));
    }
    if kinds.servers {
        lines.extend(search::any(&run.plan).then(|| paragraph("search: method")));
        lines.extend(rows::lines::method(run));
    }
    let ended = |note: &String| format!("{}.", note.trim_end_matches('.'));
    lines.extend(run.plan.notes.iter().map(ended));
    lines
}

fn method_values(run: &Run, kinds: &Kinds) -> Value {
    let plan = &run.plan;
    let loaded = run.trials.iter().filter(|trial| trial.load.is_some());
    let own = |trial: &&Trial| trial.isolation.network_namespace;
    let bodies = plan.workloads.iter().filter(|w| w.expect_body.is_some());
    let visits = plan.visits.as_ref().map(|planned| {
        let counts = run.trials.iter().map(|trial| trial.visits.len());
        let counts = counts.filter(|count| *count > 0);
        context! {
            length => numbers::duration(planned.length_ns),
            lead_in => numbers::duration(planned.lead_in_ns),
            least => counts.clone().min(),
            most => counts.max(),
            others => by_themselves(run).join(", "),
        }
    });
    context! {
        plan => Value::from(Serde(plan)),
        servers => kinds.servers,
        programs => kinds.programs,
        trials => loaded.clone().count(),
        trials_apart => loaded.filter(own).count(),
        is_pinned => !plan.cores.subject.is_empty(),
        has_sampler => !plan.cores.lab.is_empty(),
        visits,
        loops => open::loops(plan),
        warm_up => numbers::duration(plan.warmup_ns),
        duration => numbers::duration(plan.duration_ns),
        bodies => bodies.count(),
        is_joined => !plan.joined.is_empty(),
        origin => open::origin(plan),
        has_rows => plan.workloads.iter().any(|w| !w.rows.is_empty()),
    }
}

/// Cells that were measured while no other server was alive, of a run that visits servers in turns.
fn by_themselves(run: &Run) -> Vec<&str> {
    let is_one = |cell: &&Cell| {
        let mut own = run.trials.iter().filter(|trial| trial.cell == cell.id);
        own.any(|trial| {
            trial.load.is_some()
                && trial.visits.is_empty()
                && trial.generator == GeneratorKind::Prony
        })
    };
    let cells = run.plan.cells.iter().filter(is_one);
    cells.map(|cell| cell.id.as_str()).collect()
}

/// What the experiment names and this run does not show, trials still to do included.
pub fn not_run(run: &Run, cells: &[CellFigures]) -> Vec<NotRun> {
    let mut rows = run.plan.not_run.clone();
    // A cell that failed is not tried again later: its row says so.
    let unfailed = cells.iter().filter(|cell| cell.trials.failed.is_empty());
    let left = unfailed.map(|cell| {
        let planned = cell.trials.planned as usize;
        planned.saturating_sub(cell.trials.measured.len())
    });
    let left = left.fold(0, usize::saturating_add);
    if left > 0 {
        rows.push(NotRun {
            what: counted(left, "trial"),
            reason: "the run ended before them".to_owned(),
            remedy: "prony run … --resume with this run's directory".to_owned(),
        });
    }
    let kinds = Kinds::from_plan(&run.plan);
    match kinds.programs || kinds.clients {
        true => programs::words::merged(rows, &run.plan),
        false => rows,
    }
}

/// A column of words.
fn words(title: &str) -> Column {
    column(title, "", false)
}

/// A column of what is typed or hashed.
fn code(title: &str) -> Column {
    let is_code = true;
    Column {
        is_code,
        ..words(title)
    }
}

/// A section with one table; `None` where that has no rows.
fn section(title: &str, table: Table) -> Option<Part> {
    (!table.rows.is_empty()).then(|| Part {
        id: title.to_lowercase().replace(' ', "-"),
        title: title.to_owned(),
        tables: vec![plain(table)],
        ..Part::default()
    })
}

/// What was not run as a section; `None` where all was.
pub fn not_run_part(rows: &[NotRun]) -> Option<Part> {
    let columns = [words("what"), words("why"), code("what would change it")];
    let rows = rows.iter();
    let rows = rows.map(|of| [&of.what, &of.reason, &of.remedy].map(String::clone));
    section("What was not run", Table::of_words(columns, rows))
}

/// Facts as a table.
fn of_facts(facts: &[Fact], value: Column) -> Table {
    let rows = facts.iter();
    let rows = rows.map(|fact| [&fact.name, &fact.value].map(String::clone));
    Table::of_words([words(""), value], rows)
}

/// wrk beside Prony's generator.
fn cross_check(checks: &[CrossCheck]) -> Option<Part> {
    let number = |title: &str| column(title, "", true);
    let columns = [
        words("cell"),
        number(BLOCK),
        number("prony, requests/s"),
        number("wrk, requests/s"),
        number("prony / wrk"),
    ];
    let row = |of: &CrossCheck| {
        let [prony, wrk] = [of.prony_per_s, of.wrk_per_s].map(numbers::rate);
        let (cell, ratio) = (of.cell.clone(), numbers::ratio(of.ratio));
        [cell, of.block_number(), prony, wrk, ratio]
    };
    let table = Table::of_words(columns, checks.iter().map(row));
    let part = section("Cross-check with wrk", table)?;
    let before = paragraphs("cross-check");
    Some(Part { before, ..part })
}

/// Cross-check, machine, method, subjects, and how to do it again.
pub fn about(run: &Run, environment: &[Fact], checks: &[CrossCheck]) -> Vec<Part> {
    let method = Part {
        id: "method".to_owned(),
        title: "Method".to_owned(),
        before: method(run),
        ..Part::default()
    };
    let parts = [
        cross_check(checks),
        section("Machine", of_facts(environment, words(""))),
        Some(method),
        subjects(&run.plan),
        repeat(run),
    ];
    parts.into_iter().flatten().collect()
}

/// The subjects and what stands around them, in the plan's order; `None` where there are none.
fn subjects(plan: &Plan) -> Option<Part> {
    let all = [
        ("", &plan.subjects),
        ("peer", &plan.peers),
        ("backing service", &plan.backings),
        ("proxy in front", &plan.fronts),
    ];
    let columns = [
        words("subject"),
        words("what it is"),
        words("version"),
        words("threads"),
        code("source"),
        code("build"),
    ];
    let row = |role: &str, of: &PlannedSubject| {
        let summary = match (role, of.summary.as_str()) {
            ("", summary) => summary.to_owned(),
            (role, "") => role.to_owned(),
            (role, summary) => format!("{role}: {summary}"),
        };
        let (id, version) = (of.id.clone(), of.version.clone());
        let (threads, build) = (threads(plan, role, of), digits(&of.build_key).to_owned());
        [id, summary, version, threads, source(of), build]
    };
    let all = all.into_iter();
    let rows = all.flat_map(|(role, list)| list.iter().map(move |of| row(role, of)));
    section("Subjects", Table::of_words(columns, rows))
}

/// How many threads it was told to use.
fn threads(plan: &Plan, role: &str, of: &PlannedSubject) -> String {
    let kinds = Kinds::from_plan(plan);
    let by_setting = kinds.only_programs() && plan.settings.iter().any(|s| s.name == THREADS);
    let is_client = kinds.clients && !of.client.is_empty();
    let threads = match of.program_threads {
        program if program > 0 && kinds.only_programs() => program,
        _ => of.threads,
    };
    match role == "peer" || by_setting || is_client {
        true => "as set".to_owned(),
        false => known(threads.into(), || threads.to_string()),
    }
}

/// Where it comes from.
fn source(of: &PlannedSubject) -> String {
    match &of.source {
        Source::Folder { dir } if !of.repositories.is_empty() => {
            let states = of.repositories.iter().map(|state| in_words(state, dir));
            states.collect::<Vec<_>>().join("; ")
        }
        Source::Folder { dir } if !of.originals_dir.is_empty() => format!(
            "{}, with what its user has built: {}",
            last_parts(dir),
            digits(&of.files_sha256)
        ),
        Source::Folder { dir } => last_parts(dir),
        Source::Command { .. } => {
            let all = [&of.start, &of.program, &of.client];
            let typed = all.into_iter().find(|words| !words.is_empty());
            beginning(&typed.map_or_else(String::new, |words| words.join(" ")))
        }
        Source::Url { url } => url.clone(),
        Source::Unknown => String::new(),
    }
}

/// A state of a repository: its address, the commit, the tag that named it, and what it stands in the place of.
fn in_words(state: &Repository, dir: &str) -> String {
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
        other => format!(", in place of {}", digits(other)),
    };
    format!("{place} at {}{named}{stands_for}", digits(&state.commit))
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

/// The command that does it again.
pub fn command(plan: &Plan) -> String {
    let words = plan.command.iter().map(|word| quoted(word));
    let words: Vec<String> = std::iter::once("prony".to_owned()).chain(words).collect();
    words.join(" ")
}

/// How to do it again, and what must be the same for it to be the same run.
fn repeat(run: &Run) -> Option<Part> {
    let plan = &run.plan;
    let hash = match plan.experiment_sha256.as_str() {
        "" => String::new(),
        _ => crate::plan_hash(plan),
    };
    let mut facts = vec![
        fact("experiment", plan.experiment.clone()),
        fact("its SHA-256", plan.experiment_sha256.clone()),
        fact("plan", hash),
        fact("seed", plan.seed.to_string()),
    ];
    facts.retain(|fact| !fact.value.is_empty());
    Some(Part {
        request: command(plan),
        after: paragraphs("again"),
        ..section("To repeat it", of_facts(&facts, code("")))?
    })
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
    let kinds = Kinds::from_plan(&run.plan);
    let (rates, others) = claims::counts(cells);
    let values = context! {
        servers => kinds.servers,
        virtualisation => &run.environment.virtualisation,
        rates, others,
        is_joined => !run.plan.joined.is_empty(),
    };
    let mut lines = templates::paragraphs("limits.txt", values);
    if kinds.programs {
        lines.extend(paragraphs("programs: limits"));
    }
    if kinds.clients {
        lines.extend(paragraphs("clients: limits"));
    }
    if kinds.servers {
        lines.extend(search::any(&run.plan).then(|| paragraph("search: limits")));
        lines.extend(rows::lines::limits_of_document(run));
    }
    lines
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
