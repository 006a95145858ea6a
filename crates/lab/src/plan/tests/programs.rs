//! Plans of programs.

use proptest::prelude::*;

use super::*;

const SUBJECT: &str = r#"
name = "NAME"
language = "test"
role = "program"
summary = "A program of two builds"

[program]
cmd = ["./bench-{hardening}", "{work}", "{count}", "{threads}"]
works = ["start", "event"]

[program.not_applicable]
realtime = "the garbage collector may stop any thread"

[variants]
hardening = ["on", "off"]

[version]
cmd = "echo 1"
"#;

/// A folder of an experiment with `a` (two builds) and `b` (none, and one work).
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let b = SUBJECT
        .replace("hardening = [\"on\", \"off\"]", "")
        .replace("{hardening}", "x")
        .replace("\"start\", \"event\"", "\"start\"")
        .replace("realtime =", "event =");
    for (name, text) in [("a", SUBJECT), ("b", b.as_str())] {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("subject.toml"), text.replace("NAME", name)).unwrap();
    }
    folder
}

fn read(text: &str) -> (Experiment, Vec<Subject>) {
    let folder = folder();
    let origin = Origin::new("e.toml", folder.path());
    let experiment = Experiment::parse(text, &origin).unwrap_or_else(|wrong| panic!("{wrong}"));
    let subjects = subject::load_all(&experiment, Path::new("/nowhere"));
    (
        experiment,
        subjects.unwrap_or_else(|wrong| panic!("{wrong:?}")),
    )
}

const TWO: &str = "subject = [{ ref = './a' }, { ref = './b' }]\n";

fn planned(text: &str, options: &Options) -> Plan {
    let (experiment, subjects) = read(text);
    plan(&experiment, &subjects, &machine(&subjects), options).unwrap()
}

#[test]
fn a_workload_has_a_title_where_the_file_gives_one() {
    let text = format!(
        "{TWO}workload = [
          {{ work = 'start', title = 'Start, all', count = 5 }},
          {{ name = 'event', work = 'event', count = 5 }},
        ]"
    );
    let plan = planned(&text, &Options::default());
    let headings: Vec<&str> = plan.workloads.iter().map(|w| w.heading()).collect();
    assert_eq!(headings, ["Start, all", "event"]);
    let json = serde_json::to_value(&plan.workloads).unwrap();
    assert_eq!(json[0]["title"], "Start, all");
    assert!(json[1].get("title").is_none());
}

#[test]
fn works_sizes_builds_and_threads_multiply_and_what_is_not_done_is_named() {
    let text = format!(
        "{TWO}
        run = {{ reference = 'test/a' }}
        workload = [
          {{ work = 'start', count = [1000, 10000] }},
          {{ work = 'event', count = 5 }},
          {{ name = 'rt', work = 'realtime', count = 7 }},
        ]
        setting = [
          {{ name = 'hardening', values = ['on', 'off'] }},
          {{ name = 'threads', values = [1, 'cores'], workloads = ['start'] }},
        ]
        exclude = [{{ count = 1000, threads = 'cores' }}, {{ subject = 'test/a', workload = 'event', hardening = 'off' }}]"
    );
    insta::assert_snapshot!(outline(&planned(&text, &Options::default())), @r#"
    e (seed 1, 6 blocks)
    0ns after 0ns
    reference Some("test/a")
    cores [0, 1] and []
    cap 0 by 
    12 combinations in 6 blocks: 72 trials, about 3 min if a program runs for a second
      test/a start n=1000 hardening=on threads=1
      test/b start n=1000 threads=1
      test/a start n=1000 hardening=off threads=1
      test/a start n=10000 hardening=on threads=1
      test/b start n=10000 threads=1
      test/a start n=10000 hardening=on threads=2
      test/b start n=10000 threads=2
      test/a start n=10000 hardening=off threads=1
      test/a start n=10000 hardening=off threads=2
      test/a event n=5 hardening=on
      test/a+copy start n=1000 hardening=on threads=1
      test/a+copy start n=10000 hardening=on threads=1
    not run: test/b event: does not do this work: the garbage collector may stop any thread; 
    not run: test/a rt: does not do this work: the garbage collector may stop any thread; 
    not run: test/b rt: does not do this work: `realtime` is none of its works; 
    note: test/a is measured twice, as two subjects: how far these lie apart by chance is said in the document (copy = false in [run] leaves the second one out)
    "#);
}

#[test]
fn an_experiment_of_programs_asks_nothing_of_the_network() {
    let text = format!("{TWO}workload = [{{ work = 'start', count = 5 }}]");
    let (experiment, subjects) = read(&text);
    let mut facts = machine(&subjects);
    facts.limits = Limits::default();
    let plan = plan(&experiment, &subjects, &facts, &Options::default()).unwrap();
    assert_eq!(plan.connection_cap, ConnectionCap::default());
    assert_eq!((plan.duration_ns, plan.warmup_ns), (0, 0));
    assert_eq!(
        (plan.cores.subject, plan.cores.generator),
        (vec![0, 1], vec![])
    );
    assert_eq!(plan.subjects[0].program_threads, 1);
    assert!(plan.subjects[0].start.is_empty());
}

#[test]
fn quick_keeps_listed_sizes_and_cuts_large_ones() {
    let quick_of = |lines: &str| {
        let text = format!(
            "{TWO}run = {{ quick = {{ {lines} }} }}
            workload = [{{ work = 'start', count = [10, 100, 1000, 5000], subjects = ['test/a'] }}]"
        );
        let plan = planned(&text, &quick());
        plan.workloads[0].program.clone().unwrap().counts
    };
    assert_eq!(quick_of("blocks = 1"), [10, 100, 1000, 5000]);
    assert_eq!(quick_of("count = [100, 1000]"), [100, 1000]);
    assert_eq!(quick_of("count_max = 700"), [10, 100, 700]);
    assert_eq!(quick_of("count = [10, 5000], count_max = 50"), [10, 50]);
}

#[test]
fn servers_and_programs_stand_in_one_experiment() {
    let text = "subject = [{ ref = './a' }, { cmd = 's {port}' }, { cmd = './other', works = ['start'], threads = 4, args = ['-v'] }]
        workload = [{ work = 'start', count = 5 }, { request = { path = '/' } }]
        setting = [{ name = 'threads', values = ['cores'] }, { name = 'log', values = ['off'], env = { L = '{value}' }, subjects = ['s'] }]";
    let plan = planned(text, &Options::default());
    assert_eq!(
        ids(&plan),
        [
            "test/a start n=5 threads=2",
            "other start n=5",
            "s root c=100 log=off"
        ]
    );
    assert_eq!(plan.cells[2].count, None);
    assert_eq!(plan.workloads[0].connections, Vec::<u32>::new());
    assert_eq!(plan.workloads[1].program, None);
    assert_eq!(plan.settings[0].values, ["2"]);
    assert_eq!(plan.subjects[2].program, ["./other", "-v"]);
    assert_eq!(
        (plan.subjects[2].program_threads, plan.not_run.len()),
        (4, 0)
    );
    assert!(plan.connection_cap.connections_max > 0 && plan.duration_ns > 0);
}

#[test]
fn a_server_among_programs_and_a_work_that_nobody_does_are_named() {
    let text = format!(
        "{TWO}workload = [{{ work = 'realtime', count = 5 }}, {{ work = 'event', count = 5 }}]"
    );
    let text = text.replace("{ ref = './b' }", "{ ref = './b' }, { cmd = 's {port}' }");
    let plan = planned(&text, &Options::default());
    let lines: Vec<String> = plan
        .not_run
        .iter()
        .map(|n| format!("{}: {}", n.what, n.reason))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    test/a realtime: does not do this work: the garbage collector may stop any thread
    test/b realtime: does not do this work: `realtime` is none of its works
    test/b event: does not do this work: the garbage collector may stop any thread
    s: it is a server, and no workload has a request
    ");
}

#[test]
fn a_build_that_a_subject_does_not_offer_is_named_for_it_alone() {
    let folder = folder();
    let place = folder.path().join("b/subject.toml");
    let fewer = SUBJECT
        .replace("\"on\", \"off\"", "\"on\"")
        .replace("NAME", "b");
    std::fs::write(place, fewer).unwrap();
    let text = format!(
        "{TWO}workload = [{{ work = 'start', count = 5 }}]
        setting = [{{ name = 'hardening', values = ['on', 'off'] }}]"
    );
    let experiment = Experiment::parse(&text, &Origin::new("e.toml", folder.path())).unwrap();
    let subjects = subject::load_all(&experiment, Path::new("/nowhere")).unwrap();
    let plan = plan(
        &experiment,
        &subjects,
        &machine(&subjects),
        &Options::default(),
    )
    .unwrap();
    assert_eq!(ids(&plan).len(), 3);
    assert_eq!(plan.not_run[0].what, "test/b hardening=off");
    assert_eq!(plan.not_run[0].reason, "it offers the builds `on`");
}

#[test]
fn a_build_that_fails_takes_its_sizes_along() {
    let text = format!(
        "{TWO}workload = [{{ work = 'start', count = 5, subjects = ['test/b'] }}, {{ name = 'more', work = 'start', count = [5, 6] }}]"
    );
    let plan = planned(&text, &Options::default());
    let failed = BuildOutcome::Failed(Failed {
        reason: "no".to_owned(),
        remedy: String::new(),
        log: None,
        interrupted: false,
        due: false,
    });
    let plan = settle(plan, &[("test/b".to_owned(), failed)]);
    assert_eq!(plan.workloads.len(), 1);
    assert_eq!(plan.workloads[0].program.as_ref().unwrap().counts, [5, 6]);
    assert_eq!(ids(&plan), ["test/a more n=5", "test/a more n=6"]);
}

#[test]
fn a_kernel_setting_that_may_not_be_written_leaves_out_its_other_values() {
    let text = "subject = [{ ref = './a' }]
        workload = [{ work = 'start', count = 5 }]
        setting = [{ name = 'throttle', values = [950000, -1], sysctl = 'kernel.sched_rt_runtime_us' }]";
    let (experiment, subjects) = read(text);
    let planned = |value: &str, writable| {
        let mut facts = machine(&subjects);
        let setting = KernelSetting {
            value: value.to_owned(),
            writable,
        };
        let name = "kernel.sched_rt_runtime_us".to_owned();
        facts.kernel.insert(name, setting);
        plan(&experiment, &subjects, &facts, &Options::default()).unwrap()
    };
    assert_eq!(ids(&planned("950000", true)).len(), 2);
    let fixed = planned("950000", false);
    assert_eq!(ids(&fixed), ["test/a start n=5 throttle=950000"]);
    let skipped = &fixed.not_run[0];
    assert_eq!(skipped.what, "throttle=-1");
    assert_eq!(
        skipped.reason,
        "kernel.sched_rt_runtime_us is 950000 and may not be written"
    );
    assert_eq!(skipped.remedy, "sysctl -w kernel.sched_rt_runtime_us=-1");
    let without = plan(
        &experiment,
        &subjects,
        &machine(&subjects),
        &Options::default(),
    );
    assert!(
        without
            .unwrap_err()
            .to_string()
            .contains("the kernel has no setting")
    );
}

#[test]
fn a_library_that_is_nowhere_is_named_with_the_command_that_brings_it() {
    let text = "subject = [{ ref = './a' }]
        workload = [{ work = 'start', count = 5 }]
        [[setting]]
        name = 'allocator'
        values = ['std', 'mimalloc']
        env_of = { mimalloc = { LD_PRELOAD = 'libmimalloc.so.2' } }";
    let (experiment, mut subjects) = read(text);
    let planned_of = |subjects: &[Subject], absent: &[&str], distribution: &str| {
        let mut facts = machine(subjects);
        facts.absent_libraries = absent.iter().map(|name| (*name).to_owned()).collect();
        facts.distribution = distribution.to_owned();
        plan(&experiment, subjects, &facts, &Options::default()).unwrap()
    };
    let planned = |absent: &[&str], distribution| planned_of(&subjects, absent, distribution);
    assert_eq!(ids(&planned(&["other.so"], "debian")).len(), 2);
    let without = planned(&["libmimalloc.so.2"], "debian");
    assert_eq!(ids(&without), ["test/a start n=5 allocator=std"]);
    let [skipped] = without.not_run.as_slice() else {
        panic!("{:?}", without.not_run);
    };
    assert_eq!(skipped.what, "allocator=mimalloc");
    assert!(skipped.reason.contains("`libmimalloc.so.2`"), "{skipped:?}");
    assert_eq!(skipped.remedy, "apt-get install -y libmimalloc2.0");
    let elsewhere = planned(&["libmimalloc.so.2"], "fedora");
    assert_eq!(elsewhere.not_run[0].remedy, "");
    // In a folder that the subject names, only the loader finds it.
    let folders = ("LD_LIBRARY_PATH".to_owned(), "/opt/lib".to_owned());
    subjects[0].env.extend([folders]);
    let found = planned_of(&subjects, &["libmimalloc.so.2"], "debian");
    assert_eq!(ids(&found).len(), 2);
}

proptest! {
    /// Whatever the sizes and settings: every cell once, each of a subject that does the
    /// work, with exactly the settings that concern it, and each block runs all.
    #[test]
    fn every_cell_is_one_that_its_subject_can_do(
        counts in proptest::collection::btree_set(1_u64..10_000, 1..5),
        threads in proptest::collection::btree_set(1_u32..64, 1..4),
        max in proptest::option::of(1_u64..10_000),
        quick: bool,
        works in proptest::sample::subsequence(vec!["start", "event", "realtime"], 1..4),
    ) {
        let listed: Vec<String> = works
            .iter()
            .map(|work| format!("{{ work = '{work}', count = {counts:?} }}"))
            .collect();
        let listed = listed.join(", ").replace(": {", ": [").replace("= {", "= [");
        let listed = listed.replace("} }", "] }");
        let max = max.map_or(String::new(), |max| format!("count_max = {max}"));
        let threads: Vec<u32> = threads.into_iter().collect();
        let text = format!(
            "{TWO}run = {{ blocks = 2, quick = {{ {max} }} }}
            workload = [{listed}]
            setting = [{{ name = 'threads', values = {threads:?} }}, {{ name = 'hardening', values = ['on', 'off'] }}]"
        );
        let (experiment, subjects) = read(&text);
        let options = Options { quick, ..Options::default() };
        let Ok(plan) = plan(&experiment, &subjects, &machine(&subjects), &options) else {
            // No subject has the requested work.
            prop_assert!(works == ["realtime"]);
            return Ok(());
        };
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for cell in &plan.cells {
            prop_assert!(seen.insert(&cell.id));
            let subject = subjects.iter().find(|s| s.id == cell.subject).unwrap();
            let program = subject.program.as_ref().unwrap();
            prop_assert!(program.why_not(&cell.workload).is_none());
            prop_assert_eq!(cell.settings.contains_key("hardening"), subject.id == "test/a");
            prop_assert!(threads.contains(&cell.settings["threads"].parse().unwrap()));
            prop_assert!(cell.count.is_some() && cell.connections == 0);
        }
        for row in &plan.order {
            prop_assert_eq!(row.len(), plan.cells.len());
        }
        let undone = works.len() * subjects.len();
        let done: BTreeSet<(&str, &str)> = plan
            .cells
            .iter()
            .map(|cell| (cell.subject.as_str(), cell.workload.as_str()))
            .collect();
        let named = plan.not_run.iter().filter(|n| n.what.contains(' ')).count();
        prop_assert_eq!(done.len() + named, undone);
    }
}

#[test]
fn a_work_of_one_size_was_asked_for_in_another() {
    let folder = folder();
    let a = folder.path().join("a/subject.toml");
    let sized = SUBJECT.replace("NAME", "a") + "[program.sizes]\nevent = 500\n";
    std::fs::write(a, sized).unwrap();
    let text = "subject = [{ ref = './a' }]\nrun = { blocks = 1 }
        workload = [{ name = 'event', work = 'event', count = [500, 70] }, { name = 'start', work = 'start', count = 70 }]";
    let experiment = Experiment::parse(text, &Origin::new("e.toml", folder.path())).unwrap();
    let subjects = subject::load_all(&experiment, Path::new("/nowhere")).unwrap();
    let plan = plan(
        &experiment,
        &subjects,
        &machine(&subjects),
        &Options::default(),
    )
    .unwrap();
    let cells: Vec<(&str, Option<u64>)> = plan
        .cells
        .iter()
        .map(|c| (c.workload.as_str(), c.count))
        .collect();
    assert_eq!(cells, [("event", Some(500)), ("start", Some(70))]);
    let skipped: Vec<&str> = plan
        .not_run
        .iter()
        .map(|skipped| skipped.reason.as_str())
        .collect();
    assert_eq!(
        skipped,
        ["its size of this work is 500, and no other can be asked for"]
    );
    let wrong = Subject::parse(
        &(SUBJECT.replace("NAME", "a") + "[program.sizes]\nserializer = 0\n"),
        &Origin::new("subject.toml", "/srv"),
    );
    let wrong = wrong.unwrap_err().to_string();
    assert!(
        wrong.contains("`serializer` is none of its `works`") && wrong.contains("4294967295"),
        "{wrong}"
    );
}
