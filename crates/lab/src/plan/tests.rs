use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use prony_base::Nanos;
use prony_record::{Cell, ConnectionCap, Plan};
use proptest::prelude::*;

use super::*;
use crate::build::{BuildOutcome, Failed, Ready};
use crate::cap::Limits;
use crate::experiment::{Experiment, Origin};
use crate::profile;
use crate::subject::{self, Subject};

mod clients;
mod programs;
mod services;
mod visited;

fn root() -> std::path::PathBuf {
    prony_testkit::root()
}

/// A machine with two cores on which all that `subjects` need is there.
fn machine(subjects: &[Subject]) -> Facts {
    let needs = || subjects.iter().map(|subject| &subject.needs);
    Facts {
        absent_inputs: BTreeSet::new(),
        cores: vec![vec![0], vec![1]],
        online: vec![0, 1],
        distribution: "debian".to_owned(),
        may_root: true,
        commands: needs().flat_map(|n| n.commands.clone()).collect(),
        files: needs().flat_map(|n| n.files.clone()).collect(),
        originals: None,
        elsewhere: BTreeMap::new(),
        limits: Limits::example(),
        absent_libraries: BTreeSet::new(),
        kernel: BTreeMap::new(),
        networks: BTreeMap::new(),
    }
}

fn shipped(name: &str) -> (Experiment, Vec<Subject>) {
    let experiment = Experiment::load(&root().join("experiments").join(name)).unwrap();
    let subjects = subject::load_all(&experiment, &root().join("subjects")).unwrap();
    (experiment, subjects)
}

fn loaded(text: &str) -> (Experiment, Vec<Subject>) {
    let experiment = Experiment::parse(text, &Origin::new("e.toml", "/srv")).unwrap();
    let subjects = subject::load_all(&experiment, Path::new("/nowhere")).unwrap();
    (experiment, subjects)
}

fn quick() -> Options {
    Options {
        quick: true,
        ..Options::default()
    }
}

fn only(words: &[&str]) -> Options {
    Options {
        only: words.iter().map(|&word| word.to_owned()).collect(),
        ..quick()
    }
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.cells.iter().map(|cell| cell.id.as_str()).collect()
}

/// The plan as a person would want to see it whole.
fn outline(plan: &Plan) -> String {
    let mut lines = vec![
        format!(
            "{} (seed {}, {} blocks)",
            plan.title, plan.seed, plan.blocks
        ),
        format!(
            "{} after {}",
            Nanos(plan.duration_ns),
            Nanos(plan.warmup_ns)
        ),
        format!("reference {:?}", plan.reference),
        format!(
            "cores {:?} and {:?}",
            plan.cores.subject, plan.cores.generator
        ),
        format!(
            "cap {} by {}",
            plan.connection_cap.connections_max, plan.connection_cap.limited_by
        ),
        estimate_line(plan, Nanos::from_secs(1), Beside::default()),
    ];
    lines.extend(plan.cells.iter().map(|cell| format!("  {}", cell.id)));
    lines.extend(
        plan.not_run
            .iter()
            .map(|n| format!("not run: {}: {}; {}", n.what, n.reason, n.remedy)),
    );
    lines.extend(plan.notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n")
}

#[test]
fn the_full_ping_plan() {
    let (experiment, subjects) = shipped("ping.toml");
    let plan = plan(
        &experiment,
        &subjects,
        &machine(&subjects),
        &Options::default(),
    )
    .unwrap();
    insta::assert_snapshot!(outline(&plan));
}

#[test]
fn the_quick_ping_plan_ends_within_two_minutes() {
    let (experiment, subjects) = shipped("ping.toml");
    let plan = plan(&experiment, &subjects, &machine(&subjects), &quick()).unwrap();
    assert!(estimate(&plan, Nanos::from_secs(1), Beside::default()) < Nanos::from_secs(120));
    insta::assert_snapshot!(outline(&plan));
}

#[test]
fn the_ping_plan_without_go_node_nginx_and_python() {
    let (experiment, subjects) = shipped("ping.toml");
    let mut facts = machine(&subjects);
    for absent in ["go", "node", "npm", "nginx", "python3"] {
        assert!(
            facts.commands.remove(absent),
            "{absent} is needed by nobody"
        );
    }
    facts
        .elsewhere
        .insert("nginx".to_owned(), "/usr/sbin/nginx".to_owned());
    let plan = plan(&experiment, &subjects, &facts, &quick()).unwrap();
    insta::assert_snapshot!(outline(&plan));
}

#[test]
fn the_generator_looks_before_it_sleeps_with_few_connections_on_a_core_of_its_own() {
    let text = r#"
        title = "t"
        question = "q"
        [[subject]]
        name = "plain"
        cmd = ["server", "{port}"]
        endpoints = ["/"]
        [[workload]]
        name = "closed"
        request = { path = "/" }
        connections = [1, 7, 8]
        [[workload]]
        name = "open"
        request = { path = "/" }
        connections = [1]
        arrival = { rate = 100 }
        [[workload]]
        name = "search"
        request = { path = "/" }
        connections = [1]
        find_max = "p99 < 5ms"
        [[setting]]
        name = "spin"
        values = ["auto", "off"]
        [[setting]]
        name = "generators"
        values = [1, 2]
    "#;
    let (experiment, subjects) = loaded(text);
    let looking = |cores: &[&[u32]]| {
        let facts = Facts {
            cores: cores.iter().map(|core| core.to_vec()).collect(),
            ..machine(&subjects)
        };
        let plan = plan(&experiment, &subjects, &facts, &Options::default()).unwrap();
        let looks = plan
            .cells
            .into_iter()
            .filter(|c| c.look_before_sleep_ns == 1_000_000);
        looks.map(|cell| cell.id).collect::<Vec<_>>()
    };
    let few = [
        "plain closed c=1 generators=1 spin=auto",
        "plain closed c=7 generators=1 spin=auto",
    ];
    assert_eq!(looking(&[&[0], &[1]]), few);
    assert!(
        looking(&[&[0]]).is_empty(),
        "the subject needs its only core"
    );
    assert!(looking(&[&[0, 1]]).is_empty(), "they are one core");
}

#[test]
fn wrk_checks_only_cells_in_which_the_generator_sleeps_as_it_does() {
    let (experiment, subjects) = shipped("ping.toml");
    let facts = machine(&subjects);
    let plan = plan(&experiment, &subjects, &facts, &Options::default()).unwrap();
    let checked = |id: &str| {
        let cell = plan.cells.iter().find(|cell| cell.id == id).unwrap();
        is_cross_checked(&plan, cell)
    };
    assert!(!checked("rust/actix-web ping c=2"));
    assert!(checked("rust/actix-web ping c=400"));
}

#[test]
fn a_cell_has_the_settings_that_its_protocol_gives_a_meaning() {
    let text = r#"
        title = "t"
        question = "q"
        [[subject]]
        name = "plain"
        cmd = ["server", "{port}"]
        endpoints = ["/"]
        [[workload]]
        name = "w"
        request = { path = "/" }
        connections = [1]
        [[setting]]
        name = "protocol"
        values = ["http", "h2"]
        [[setting]]
        name = "streams"
        values = [1, 10]
        [[setting]]
        name = "pipeline"
        values = [1, 4]
        [[setting]]
        name = "resumption"
        values = ["on", "off"]
    "#;
    let (experiment, mut subjects) = loaded(text);
    let planned = |subjects: &[Subject]| {
        let facts = machine(subjects);
        let plan = plan(&experiment, subjects, &facts, &Options::default()).unwrap();
        let cells = plan.cells.iter().map(|cell| cell.id.clone());
        let undone = plan
            .not_run
            .iter()
            .map(|skipped| format!("{}: {}", skipped.what, skipped.reason));
        (cells.collect::<Vec<_>>(), undone.collect::<Vec<_>>())
    };
    let (cells, undone) = planned(&subjects);
    let plain = [
        "plain w c=1 pipeline=1 protocol=http",
        "plain w c=1 pipeline=4 protocol=http",
    ];
    assert_eq!(cells, plain);
    let why = "it speaks `http`, by [protocols] of its subject.toml";
    assert_eq!(undone, [format!("plain protocol=h2: {why}")]);
    subjects[0].protocols.insert("h2".to_owned(), Vec::new());
    let (cells, undone) = planned(&subjects);
    assert!(undone.is_empty(), "{undone:?}");
    assert_eq!(cells[..2], plain);
    let secure: Vec<&str> = cells[2..]
        .iter()
        .map(|id| &id["plain w c=1 ".len()..])
        .collect();
    assert_eq!(
        secure,
        [
            "protocol=h2 resumption=on streams=1",
            "protocol=h2 resumption=off streams=1",
            "protocol=h2 resumption=on streams=10",
            "protocol=h2 resumption=off streams=10"
        ]
    );
}

#[test]
fn a_server_of_ones_own_is_six_lines() {
    let text = std::fs::read_to_string(root().join("experiments/own-server.toml")).unwrap();
    assert_eq!(
        text.lines().filter(|line| !line.starts_with('#')).count(),
        6
    );
    let (experiment, subjects) = shipped("own-server.toml");
    let facts = machine(&subjects);
    let mut plan = plan(&experiment, &subjects, &facts, &Options::default()).unwrap();
    let folder = root().join("experiments").display().to_string();
    assert_eq!(
        plan.subjects[0].source,
        prony_record::Source::Command { dir: folder }
    );
    plan.subjects[0].source = prony_record::Source::Unknown;
    plan.experiment.clear();
    plan.experiment_sha256.clear();
    insta::assert_snapshot!(serde_json::to_string_pretty(&plan).unwrap());
}

#[test]
fn a_missing_reference_is_said_and_not_replaced() {
    let (experiment, subjects) = shipped("ping.toml");
    let mut facts = machine(&subjects);
    facts.commands.remove("cargo");
    let plan = plan(&experiment, &subjects, &facts, &quick()).unwrap();
    assert_eq!(plan.reference, None);
    insta::assert_snapshot!(plan.notes[0], @r#"the reference rust/actix-web is not run: no ratios are made; to have go/fasthttp as the reference, set `reference = "go/fasthttp"` in [run] of the experiment"#);
    assert!(
        plan.cells
            .iter()
            .all(|cell| cell.subject != "rust/actix-web")
    );
}

#[test]
fn numbers_above_the_cap_become_the_cap_once() {
    let (experiment, subjects) = loaded(
        "subject = [{ cmd = 's {port}' }]\nworkload = [{ request = { path = '/' }, connections = [2, 900, 950, 'max'] }]",
    );
    let mut facts = machine(&subjects);
    facts.limits.open_files = 1_024;
    let plan = plan(&experiment, &subjects, &facts, &Options::default()).unwrap();
    assert_eq!(plan.workloads[0].connections, [2, 824]);
    assert_eq!(ids(&plan), ["s root c=2", "s root c=824"]);
    assert!(
        plan.notes[0].contains("900 connections cut to 824 (open files"),
        "{:?}",
        plan.notes
    );
}

#[test]
fn settings_multiply_cells_and_spare_what_they_do_not_concern() {
    let (experiment, subjects) = loaded(
        "subject = [{ cmd = 's {port}' }, { cmd = 't {port}' }, { url = 'http://127.0.0.1:1' }]
         workload = [{ request = { path = '/' } }]
         setting = [
           { name = 'log', values = ['off', 'very loud'], env = { LOG = '{value}' }, subjects = ['s'] },
           { name = 'n', values = [1, 2], args = ['-n', '{value}'] },
         ]
         exclude = [{ subject = 's', log = 'off', n = 2 }]",
    );
    let plan = plan(
        &experiment,
        &subjects,
        &machine(&subjects),
        &Options::default(),
    )
    .unwrap();
    assert_eq!(
        ids(&plan),
        [
            "s root c=100 log=off n=1",
            "t root c=100 n=1",
            "127.0.0.1:1 root c=100",
            "t root c=100 n=2",
            "s root c=100 log=\"very loud\" n=1",
            "s root c=100 log=\"very loud\" n=2",
        ]
    );
}

#[test]
fn only_selects_by_part_and_pattern_and_drops_the_rest() {
    let (experiment, subjects) = shipped("ping.toml");
    let facts = machine(&subjects);
    let run = |words: &[&str]| plan(&experiment, &subjects, &facts, &only(words));
    let axum = run(&["axum"]).unwrap();
    assert_eq!(ids(&axum), ["rust/axum ping c=2", "rust/axum ping c=400"]);
    assert_eq!(axum.workloads.len(), 1);
    assert_eq!(axum.reference, None);
    assert!(
        axum.notes[0].contains("not among the selected"),
        "{:?}",
        axum.notes
    );
    let two = run(&["go/*", "*hello c=400"]).unwrap();
    assert_eq!(two.cells.len(), 4 + 3);
    let error = run(&["haskell"]).unwrap_err().to_string();
    assert!(
        error.contains(
            "`haskell` selects none of the 25 cells:\n  rust/prony ping c=2 services=off\n"
        ),
        "{error}"
    );
}

#[test]
fn what_is_not_selected_is_not_missing() {
    let (experiment, subjects) = shipped("ping.toml");
    let mut facts = machine(&subjects);
    facts.commands.remove("go");
    let plan = plan(&experiment, &subjects, &facts, &only(&["rust"])).unwrap();
    assert_eq!(plan.not_run, []);
}

#[test]
fn nothing_that_can_run_is_an_error_that_says_why() {
    let (experiment, subjects) = shipped("own-server.toml");
    let mut facts = machine(&subjects);
    facts.commands.clear();
    let error = plan(&experiment, &subjects, &facts, &quick())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("python3: `python3` is not on PATH"),
        "{error}"
    );
}

#[test]
fn a_subject_that_no_workload_reaches_is_named() {
    let (experiment, subjects) = loaded(
        "subject = [{ cmd = 's {port}' }, { cmd = 't {port}', endpoints = ['/other'] }]
         workload = [{ request = { path = '/?a=1' } }]",
    );
    let plan = plan(
        &experiment,
        &subjects,
        &machine(&subjects),
        &Options::default(),
    )
    .unwrap();
    assert_eq!(ids(&plan), ["s root c=100"]);
    assert_eq!(plan.not_run[0].what, "t");
    assert_eq!(
        plan.not_run[0].reason,
        "it answers `/other`, and no workload asks for that"
    );
}

#[test]
fn an_experiment_that_multiplies_beyond_the_limit_is_refused() {
    let setting = |name: &str| {
        let values: Vec<String> = (0..100).map(|value| value.to_string()).collect();
        format!(
            "{{ name = '{name}', values = [{}], args = ['{{value}}'] }}",
            values.join(",")
        )
    };
    let (experiment, subjects) = loaded(&format!(
        "subject = [{{ cmd = 's {{port}}' }}]\nworkload = [{{ request = {{ path = '/' }} }}]\nsetting = [{}, {}, {}]",
        setting("a"),
        setting("b"),
        setting("c")
    ));
    let error = plan(
        &experiment,
        &subjects,
        &machine(&subjects),
        &Options::default(),
    );
    assert_eq!(error, Err(PlanError::TooManyCells));
}

#[test]
fn many_requests_at_once_on_a_connection_of_few_are_refused_with_what_leaves_them_out() {
    let refusal = |exclude: &str| {
        let (experiment, subjects) = loaded(&format!(
            "subject = [{{ cmd = 's {{port}}', endpoints = ['/'] }}]\nworkload = [{{ request = {{ path = '/' }}, connections = [1] }}]\n\
             setting = [{{ name = 'pipeline', values = [1, 4] }}, {{ name = 'requests_per_connection', values = ['any', 1] }}]\n{exclude}"
        ));
        let facts = machine(&subjects);
        plan(&experiment, &subjects, &facts, &Options::default())
            .map(|plan| plan.cells.len())
            .map_err(|error| error.to_string())
    };
    let message = refusal("").unwrap_err();
    assert!(message.contains("pipeline = 4"), "{message}");
    let (_, exclude) = message.split_once(":\n").expect("what to write");
    assert_eq!(refusal(exclude), Ok(3));
}

#[test]
fn the_command_line_goes_before_the_file() {
    let (experiment, subjects) = shipped("ping.toml");
    let options = Options {
        blocks: Some(3),
        seed: Some(9),
        ..quick()
    };
    let plan = plan(&experiment, &subjects, &machine(&subjects), &options).unwrap();
    assert_eq!((plan.blocks, plan.seed, plan.order.len()), (3, 9, 3));
}

const PAIR: &str = "
    subject = [{ cmd = 'a {port}' }, { cmd = 'b {port}' }]
    workload = [{ name = 'w', request = { path = '/' }, connections = [1, 2] }]
    setting = [{ name = 'log', values = ['no', 'yes'], args = ['{value}'], subjects = ['a'] }]";

#[test]
fn the_reference_is_measured_twice_where_that_tells_something() {
    let planned = |run: &str, options: &Options| {
        let (experiment, subjects) = loaded(&format!("{PAIR}\n[run]\n{run}"));
        plan(&experiment, &subjects, &machine(&subjects), options).unwrap()
    };
    let of_copy = |plan: &Plan| -> Vec<String> {
        let cells = plan.cells.iter().filter(|c| c.subject == "a+copy");
        cells.map(|cell| cell.id.clone()).collect()
    };
    let usual = Options::default();
    let twice = planned("reference = 'a'", &usual);
    // Once a size, with the first of its settings.
    assert_eq!(
        of_copy(&twice),
        ["a+copy w c=1 log=no", "a+copy w c=2 log=no"]
    );
    let copy = twice.subjects.last().unwrap();
    assert_eq!(
        (&*copy.name, copy.copy_of.as_deref()),
        ("a, again", Some("a"))
    );
    assert_eq!(copy.start, twice.subjects[0].start);
    assert_eq!(twice.order[0].len(), twice.cells.len());
    for (run, options) in [
        ("reference = 'a'\ncopy = false", &usual),
        ("reference = 'a'\nblocks = 5", &usual),
        ("reference = 'a'", &quick()),
        ("", &usual),
    ] {
        assert_eq!(of_copy(&planned(run, options)), [""; 0], "{run}");
    }
    // Where nothing is compared with it, it is not measured twice.
    let only = only(&["a"]);
    let alone = planned(
        "reference = 'a'",
        &Options {
            quick: false,
            ..only
        },
    );
    assert_eq!(of_copy(&alone), [""; 0]);
}

#[test]
fn a_copy_is_built_and_fails_with_what_it_is_a_copy_of() {
    let (experiment, subjects) = loaded(&format!("{PAIR}\n[run]\nreference = 'a'"));
    let made = machine(&subjects);
    let plan = plan(&experiment, &subjects, &made, &Options::default()).unwrap();
    let ready = BuildOutcome::Ready(Ready {
        repositories: Vec::new(),
        dir: String::new(),
        key: "k".to_owned(),
        files: String::new(),
        originals: String::new(),
        version: String::new(),
        cached: false,
        root_dir: String::new(),
        hold: Vec::new(),
    });
    let settled = settle(plan.clone(), &[("a".to_owned(), ready)]);
    assert_eq!(settled.subjects.last().unwrap().build_key, "k");
    let failed = BuildOutcome::Failed(Failed {
        reason: "no".to_owned(),
        remedy: String::new(),
        log: None,
        interrupted: false,
        due: false,
    });
    let settled = settle(plan, &[("a".to_owned(), failed)]);
    assert_eq!(ids(&settled), ["b w c=1", "b w c=2"]);
    assert_eq!((settled.subjects.len(), settled.reference), (1, None));
}

#[test]
fn a_failed_build_leaves_the_plan_with_its_cells() {
    let (experiment, subjects) = shipped("ping.toml");
    let plan = plan(&experiment, &subjects, &machine(&subjects), &quick()).unwrap();
    let failed = BuildOutcome::Failed(Failed {
        remedy: String::new(),
        reason: "its build failed with status 1: no".to_owned(),
        log: Some("/cache/x.log".into()),
        interrupted: false,
        due: false,
    });
    let ready = BuildOutcome::Ready(Ready {
        repositories: Vec::new(),
        dir: "/cache/axum".to_owned(),
        key: "abc".to_owned(),
        files: String::new(),
        originals: String::new(),
        version: "axum 1".to_owned(),
        cached: true,
        root_dir: String::new(),
        hold: Vec::new(),
    });
    let outcomes = [
        ("rust/actix-web".to_owned(), failed),
        ("rust/axum".to_owned(), ready),
    ];
    let settled = settle(plan.clone(), &outcomes);
    assert_eq!(settled.cells.len(), plan.cells.len() - 3);
    assert_eq!(settled.not_run[0].remedy, "less /cache/x.log");
    assert_eq!(settled.reference, None);
    assert!(
        settled
            .order
            .iter()
            .all(|row| row.len() == settled.cells.len())
    );
    let axum = settled
        .subjects
        .iter()
        .find(|s| s.id == "rust/axum")
        .unwrap();
    assert_eq!(
        (axum.build_dir.as_str(), axum.version.as_str()),
        ("/cache/axum", "axum 1")
    );
}

#[test]
fn a_search_has_steps_that_a_quick_run_shortens_and_the_estimate_knows() {
    let (experiment, subjects) = loaded(
        "run = { blocks = 1, duration = '4s', warmup = '1s' }
         subject = [{ cmd = 's {port}' }]
         workload = [{ request = { path = '/' }, find_max = 'p99<10ms', duration = '3s' }]",
    );
    let facts = machine(&subjects);
    let planned = |options: &Options| plan(&experiment, &subjects, &facts, options).unwrap();
    let step = |plan: &Plan| plan.workloads[0].find_max.clone().unwrap().step_ns;
    let full = planned(&Options::default());
    let search = full.workloads[0].find_max.clone().unwrap();
    assert_eq!(
        (&*search.objective, search.below_ns),
        ("p99 < 10ms", 10_000_000)
    );
    assert_eq!(step(&full), Nanos::from_secs(3).0);
    assert_eq!(step(&planned(&quick())), Nanos::from_secs(1).0);
    let options = Options {
        duration: Some(Nanos::from_millis(200)),
        ..quick()
    };
    assert_eq!(step(&planned(&options)), Nanos::from_millis(200).0);
    let window_only = Options {
        duration: options.duration,
        ..Options::default()
    };
    assert_eq!(step(&planned(&window_only)), step(&full));
    let without = {
        let mut without = full.clone();
        without.workloads[0].find_max = None;
        estimate(&without, Nanos::from_secs(1), Beside::default())
    };
    let longer = estimate(&full, Nanos::from_secs(1), Beside::default()) - without;
    assert_eq!(longer, prony_load::usual_length(Nanos::from_secs(3)));
    assert!(longer > Nanos::from_secs(60), "{longer}");
    // wrk looks for no rate.
    assert!(!is_cross_checked(&full, &full.cells[0]));
}

#[test]
fn an_estimate_is_trials_times_their_length() {
    let mut plan = Plan {
        blocks: 6,
        duration_ns: Nanos::from_secs(5).0,
        warmup_ns: Nanos::from_secs(1).0,
        cells: vec![Cell::default(); 36],
        ..Plan::default()
    };
    let line = |plan: &Plan| estimate_line(plan, Nanos::from_secs(1), Beside::default());
    assert_eq!(
        line(&plan),
        "36 combinations in 6 blocks: 216 trials, about 26 min"
    );
    plan.cells.truncate(1);
    assert_eq!(
        line(&plan),
        "1 combination in 6 blocks: 6 trials, about 42 s"
    );
    plan.blocks = 1;
    assert_eq!(line(&plan), "1 combination in 1 block: 1 trial, about 7 s");
    // Two looks of 3 s each, after the same warm-up of 1 s.
    plan.profile = Some(profile::planned());
    let profiled = Beside {
        wrk: false,
        passes: 2,
    };
    assert_eq!(
        estimate_line(&plan, Nanos::from_secs(1), profiled),
        "1 combination in 1 block: 1 trial and 2 to profile, about 17 s"
    );
    plan.profile = None;
    plan.reference = Some(String::new());
    let with_wrk = estimate_line(
        &plan,
        Nanos::from_secs(1),
        Beside {
            wrk: true,
            passes: 1,
        },
    );
    assert_eq!(
        with_wrk,
        "1 combination in 1 block: 1 trial and 1 by wrk, about 14 s"
    );
    plan.blocks = 1_000;
    assert_eq!(
        line(&plan),
        "1 combination in 1000 blocks: 1000 trials, about 117 min"
    );
    plan.cells.push(Cell::default());
    assert_eq!(
        line(&plan),
        "2 combinations in 1000 blocks: 2000 trials, about 3 h 53 min"
    );
}

#[test]
fn sixty_four_threads_on_two_cores_were_accepted_without_a_word() {
    let planned = |run: &str, subject: &str, more: &str| {
        let text = format!(
            "[run]\n{run}\n[[subject]]\nname = 's'\ncmd = 's {{port}} {{threads}}'\n{subject}\n\
             [[workload]]\nrequest = {{ path = '/' }}\nconnections = [100]\n{more}"
        );
        let (experiment, subjects) = loaded(&text);
        plan(
            &experiment,
            &subjects,
            &machine(&subjects),
            &Options::default(),
        )
        .unwrap()
    };
    assert_eq!(planned("", "", "").notes, Vec::<String>::new());
    assert_eq!(
        planned("threads = 1", "threads = 1", "").notes,
        Vec::<String>::new()
    );
    assert_eq!(
        planned("threads = 64", "", "").notes,
        [
            "[run] asks for 64 processors of the subject, and it has 1: the machine has 2, of which one core at \
          the least is the generator's"
        ]
    );
    let plan = planned("", "threads = 64", "");
    assert_eq!(plan.notes, ["64 threads on 1 processor take turns: s"]);
    assert_eq!(plan.subjects[0].threads, 64, "and it is told so");
    let set = "[[setting]]\nname = 'threads'\nvalues = [1, 64]";
    assert_eq!(
        planned("", "", set).notes,
        ["64 threads on 1 processor take turns: s"]
    );
    let set = "[[setting]]\nname = 'generators'\nvalues = [1, 64]";
    assert_eq!(
        planned("", "", set).notes,
        [
            "64 threads of the generator on 1 processor take turns: they may be the limit, and add to latency"
        ]
    );
}

#[test]
fn a_duration_on_the_command_line_goes_before_the_file_and_quick() {
    let (experiment, subjects) = shipped("ping.toml");
    let options = Options {
        duration: Some(Nanos::from_millis(700)),
        ..quick()
    };
    let short = plan(&experiment, &subjects, &machine(&subjects), &options).unwrap();
    assert_eq!(short.duration_ns, Nanos::from_millis(700).0);
    let (experiment, subjects) = shipped("realtime.toml");
    let none = plan(&experiment, &subjects, &machine(&subjects), &options);
    assert_eq!(none, Err(PlanError::NoWindow));
}

#[test]
fn a_quick_run_of_programs_or_clients_has_the_blocks_of_a_claim() {
    let times = |name: &str, options: &Options| {
        let (experiment, subjects) = shipped(name);
        let plan = plan(&experiment, &subjects, &machine(&subjects), options).unwrap();
        (plan.blocks, plan.duration_ns)
    };
    let second = Nanos::from_secs(1).0;
    assert_eq!(times("runtime.toml", &quick()), (6, 0));
    assert_eq!(times("clients.toml", &quick()), (6, second));
    assert_eq!(times("ping.toml", &quick()).0, 2);
    // A client is told whole seconds, and the plan says what it was told.
    let short = Options {
        duration: Some(Nanos::from_millis(700)),
        ..quick()
    };
    assert_eq!(times("clients.toml", &short), (6, second));
}

proptest! {
    #[test]
    fn a_plan_is_a_pure_function_and_whole(seed: u64, blocks in 1_u32..20, quick: bool, absent in 0_usize..12) {
        let (experiment, subjects) = shipped("ping.toml");
        let mut facts = machine(&subjects);
        let name = facts.commands.iter().nth(absent).cloned();
        facts.commands.retain(|command| Some(command) != name.as_ref());
        let options = Options { seed: Some(seed), blocks: Some(blocks), quick, ..Options::default() };
        let first = plan(&experiment, &subjects, &facts, &options).unwrap();
        prop_assert_eq!(&first, &plan(&experiment, &subjects, &facts, &options).unwrap());
        prop_assert_eq!(first.order.len(), blocks as usize);
        let planned: BTreeSet<&str> = first.subjects.iter().map(|s| s.id.as_str()).collect();
        let of_cells: BTreeSet<&str> = first.cells.iter().map(|c| c.subject.as_str()).collect();
        prop_assert_eq!(&planned, &of_cells);
        let copies = first.subjects.iter().filter(|s| s.copy_of.is_some()).count();
        prop_assert_eq!(planned.len() - copies + first.not_run.len(), subjects.len());
    }
}

const RATES: &str = r#"
exclude = [{ subject = "b", rate = 5000 }]
[run.quick]
rate = [2000]
[[subject]]
cmd = "a --port {port}"
[[subject]]
cmd = "b --port {port}"
[[workload]]
name = "hello"
request = { path = "/hello" }
connections = [10]
arrival = { rate = [1000, 2000, 5000], process = "poisson" }
"#;

#[test]
fn rates_are_an_axis_like_connections() {
    let (experiment, subjects) = loaded(RATES);
    let machine = machine(&subjects);
    let full = plan(&experiment, &subjects, &machine, &Options::default()).unwrap();
    let expected = [
        "a hello c=10 rate=1000",
        "b hello c=10 rate=1000",
        "a hello c=10 rate=2000",
        "b hello c=10 rate=2000",
        "a hello c=10 rate=5000",
    ];
    assert_eq!(ids(&full), expected);
    assert_eq!(full.cells[2].rate_per_s, Some(2_000.0));
    let quick = plan(&experiment, &subjects, &machine, &quick()).unwrap();
    assert_eq!(ids(&quick), &expected[2..4]);
    let rates_per_s = vec![2_000.0];
    let arrival = prony_record::Arrival::Poisson { rates_per_s };
    assert_eq!(quick.workloads[0].arrival, arrival);
    let chosen = plan(&experiment, &subjects, &machine, &only(&["*rate=2000"])).unwrap();
    assert_eq!(ids(&chosen), &expected[2..4]);
}

/// So that logs of before go on, and runs of before can be resumed.
#[test]
fn the_plan_of_a_closed_loop_has_nothing_of_rates() {
    let (experiment, subjects) = shipped("ping.toml");
    let plan = plan(&experiment, &subjects, &machine(&subjects), &quick()).unwrap();
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains(r#""arrival":{"kind":"closed"}"#));
    assert!(!json.contains("rate_per_s"), "{json}");
}

#[test]
fn a_profile_is_planned_where_the_file_or_the_command_line_asks_for_it() {
    let profiled = |run: &str, profile: bool| {
        let text = format!(
            "{run}\n[[subject]]\ncmd = 'x --port {{port}}'\n[[workload]]\nrequest = {{ path = '/' }}\nconnections = [1]"
        );
        let (experiment, subjects) = loaded(&text);
        let options = Options {
            profile,
            ..Options::default()
        };
        let plan = plan(&experiment, &subjects, &machine(&subjects), &options).unwrap();
        let is_any = plan.cells.iter().any(|cell| is_profiled(&plan, cell));
        assert_eq!(is_any, plan.profile.is_some());
        plan.profile
    };
    assert_eq!(profiled("", false), None);
    assert_eq!(profiled("[run]\nprofile = false", false), None);
    for planned in [profiled("", true), profiled("[run]\nprofile = true", false)] {
        let planned = planned.expect("a profile");
        assert_eq!(
            (planned.window_ns, planned.rate_per_s),
            (3_000_000_000, 997)
        );
    }
}
