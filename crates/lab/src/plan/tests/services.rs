use super::*;
use prony_record::{Ended, Output};

/// A folder of subjects: a click counter, a second one, a database and two proxies.
fn fixture() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |place: &str, text: &str| {
        let path = folder.path().join(place);
        std::fs::create_dir_all(&path).unwrap();
        let name = place.rsplit('/').next().unwrap();
        let head = format!("name = '{name}'\nsummary = 'x'\n");
        let tail = "\n[version]\ncmd = 'echo 1'\n";
        std::fs::write(path.join("subject.toml"), format!("{head}{text}{tail}")).unwrap();
    };
    for name in ["clicky", "other"] {
        let text = "language = 'test'\nrole = 'server'\nendpoints = ['/']
             ready = { port = true, timeout_s = 3 }\nstop = { timeout_s = 2 }
             start = { cmd = ['serve', '{port}', '{instance}'] }";
        write(&format!("test/{name}"), text);
    }
    write(
        "backing/redis",
        "role = 'backing'\nneeds = { commands = ['redis-server'], packages = { debian = 'apt-get install redis' } }
         start = { cmd = ['redis-server', '--port', '{port}', '--dir', '{work}'] }
         ready = { port = true, timeout_s = 7 }",
    );
    for name in ["nginx", "haproxy"] {
        let text = "role = 'front'\nvariants = { upstream = ['closed', 'kept'] }
             needs = { commands = ['proxy'] }\nready = { port = true, timeout_s = 11 }
             start = { cmd = ['proxy', '{port}', '{upstreams}', '{upstream}'] }";
        write(&format!("front/{name}"), text);
    }
    folder
}

fn load(text: &str) -> Result<(Experiment, Vec<Subject>), String> {
    let folder = fixture();
    let origin = Origin::new("e.toml", "/srv");
    let experiment = Experiment::parse(text, &origin).map_err(|wrong| wrong.to_string())?;
    match subject::load_all(&experiment, folder.path()) {
        Ok(all) => Ok((experiment, all)),
        Err(wrong) => Err(wrong[0].to_string()),
    }
}

fn loaded(text: &str) -> (Experiment, Vec<Subject>) {
    load(text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn planned(text: &str, facts: impl Fn(&mut Facts), options: &Options) -> Plan {
    let (experiment, all) = loaded(text);
    let mut machine = machine(&all);
    facts(&mut machine);
    plan(&experiment, &all, &machine, options).unwrap()
}

/// The tables of the document that this is for, in small.
const TABLE: &str = "
    run = { blocks = 3, duration = '4s', warmup = '1s' }
    backing = [{ ref = 'backing/redis' }]
    front = [{ ref = 'front/nginx' }]
    subject = [{ ref = 'test/clicky' }, { ref = 'test/other' }]
    setting = [
      { name = 'backend', values = ['none', 'file', 'redis'], env = { BACKEND = '{value}' },
        env_of = { redis = { REDIS_URL = 'redis://{backing/redis}' } }, backing_of = { redis = ['backing/redis'] } },
      { name = 'proxy', values = ['none', 'nginx'], front_of = { nginx = 'front/nginx' } },
      { name = 'logging', values = ['off', 'info'], env = { RUST_LOG = '{value}' }, output_of = { info = 'pipe' } },
      { name = 'instances', values = [1, 2] },
      { name = 'generators', values = [1, 2] },
      { name = 'threads', values = [1, 'cores'], env = { THREADS = '{value}' } },
    ]
    [[workload]]
    name = 'backends'
    request = { method = 'POST', path = '/', body = '500' }
    connections = [1, 256]
    counter = { path = '/', adds = 500, kept = 'stop' }
    rows = [
      { title = 'No backend', subject = 'test/clicky', backend = 'none' },
      { title = 'File', subject = 'test/clicky', backend = 'file' },
      { title = 'File, all cores', subject = 'test/clicky', threads = 'cores', backend = 'file', beside = 'File' },
      { title = 'Redis', subject = 'test/clicky', backend = 'redis' },
      { title = 'Redis, 2 instances', subject = 'test/clicky', backend = 'redis', instances = 2, generators = 2, beside = 'Redis' },
      { title = 'Other', subject = 'test/other', beside = false },
      { title = 'Other, logged, by nginx', subject = 'test/other', logging = 'info', proxy = 'nginx', instances = 2 },
    ]";

fn around(plan: &Plan) -> String {
    let line = |cell: &Cell| {
        let around = serde_json::to_string(&cell.around).unwrap();
        format!("{}: {around}", cell.id)
    };
    plan.cells.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn rows_are_planned_in_their_order_with_what_stands_around_them() {
    let plan = planned(TABLE, |_| {}, &Options::default());
    insta::assert_snapshot!(around(&plan), @r#"
    test/clicky backends c=1 backend=none: {"instances":1,"generators":0,"output":"file"}
    test/clicky backends c=1 backend=file: {"instances":1,"generators":0,"output":"file"}
    test/clicky backends c=1 backend=file threads=1: {"instances":1,"generators":0,"output":"file"}
    test/clicky backends c=1 backend=redis: {"backings":["backing/redis"],"instances":1,"generators":0,"output":"file"}
    test/other backends c=1: {"instances":1,"generators":0,"output":"file"}
    test/other backends c=1 instances=2 logging=info proxy=nginx: {"front":"front/nginx","instances":2,"generators":0,"output":"pipe"}
    test/clicky backends c=256 backend=none: {"instances":1,"generators":0,"output":"file"}
    test/clicky backends c=256 backend=file: {"instances":1,"generators":0,"output":"file"}
    test/clicky backends c=256 backend=file threads=1: {"instances":1,"generators":0,"output":"file"}
    test/clicky backends c=256 backend=redis: {"backings":["backing/redis"],"instances":1,"generators":0,"output":"file"}
    test/clicky backends c=256 backend=redis generators=2 instances=2: {"backings":["backing/redis"],"instances":2,"generators":2,"output":"file"}
    test/other backends c=256: {"instances":1,"generators":0,"output":"file"}
    test/other backends c=256 instances=2 logging=info proxy=nginx: {"front":"front/nginx","instances":2,"generators":0,"output":"pipe"}
    "#);
    insta::assert_snapshot!(outline(&plan), @r#"
    e (seed 1, 3 blocks)
    4.00s after 1.00s
    reference None
    cores [0] and [1]
    cap 20000 by the experiment, which asks for no more than 20000
    13 combinations in 3 blocks: 39 trials, about 5 min
      test/clicky backends c=1 backend=none
      test/clicky backends c=1 backend=file
      test/clicky backends c=1 backend=file threads=1
      test/clicky backends c=1 backend=redis
      test/other backends c=1
      test/other backends c=1 instances=2 logging=info proxy=nginx
      test/clicky backends c=256 backend=none
      test/clicky backends c=256 backend=file
      test/clicky backends c=256 backend=file threads=1
      test/clicky backends c=256 backend=redis
      test/clicky backends c=256 backend=redis generators=2 instances=2
      test/other backends c=256
      test/other backends c=256 instances=2 logging=info proxy=nginx
    not run: test/clicky backends c=1 backend=redis generators=2 instances=2: 2 threads of the generator cannot share 1 connection: each needs one; 
    note: 2 threads of the generator on 1 processor take turns: they may be the limit, and add to latency
    "#);
    let ids = |all: &[prony_record::PlannedSubject]| -> Vec<String> {
        all.iter().map(|service| service.id.clone()).collect()
    };
    assert_eq!(ids(&plan.backings), ["backing/redis"]);
    assert_eq!(ids(&plan.fronts), ["front/nginx"]);
    let workload = &plan.workloads[0];
    let beside = |row: &prony_record::PlannedRow| (row.title.clone(), row.baseline.clone());
    insta::assert_debug_snapshot!(workload.rows.iter().map(beside).collect::<Vec<_>>(), @r#"
    [
        (
            "No backend",
            None,
        ),
        (
            "File",
            Some(
                "No backend",
            ),
        ),
        (
            "File, all cores",
            Some(
                "File",
            ),
        ),
        (
            "Redis",
            Some(
                "No backend",
            ),
        ),
        (
            "Redis, 2 instances",
            Some(
                "Redis",
            ),
        ),
        (
            "Other",
            None,
        ),
        (
            "Other, logged, by nginx",
            Some(
                "No backend",
            ),
        ),
    ]
    "#);
    let counter = workload.counter.clone().unwrap();
    assert_eq!((counter.path.as_str(), counter.adds), ("/", 500));
    assert_eq!(counter.ended_by, Some(Ended::Stopped));
    let backend = &plan.settings[0];
    assert_eq!(backend.backing_of["redis"], ["backing/redis"]);
    assert_eq!(plan.settings[1].front_of["nginx"], "front/nginx");
    assert_eq!(plan.settings[2].output_of["info"], Output::Pipe);
}

#[test]
fn a_plan_with_services_can_be_read_again() {
    let plan = planned(TABLE, |_| {}, &Options::default());
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

#[test]
fn a_subject_that_no_row_names_is_named() {
    let text = TABLE.replace(
        "subject = [{ ref = 'test/clicky' }",
        "subject = [{ ref = 'test/clicky', name = 'third' }, { ref = 'test/clicky' }",
    );
    let plan = planned(&text, |_| {}, &quick());
    let skipped = plan.not_run.iter().find(|skipped| skipped.what == "third");
    assert_eq!(skipped.unwrap().reason, "no row of a table names it");
}

fn without(command: &str) -> impl Fn(&mut Facts) {
    move |facts| {
        assert!(
            facts.commands.remove(command),
            "{command} is needed by nobody"
        )
    }
}

fn titles(plan: &Plan) -> Vec<&str> {
    let rows = plan.workloads.iter().flat_map(|workload| &workload.rows);
    rows.map(|row| row.title.as_str()).collect()
}

#[test]
fn a_service_that_is_not_there_takes_its_rows_and_no_others() {
    let plan = planned(TABLE, without("redis-server"), &quick());
    assert_eq!(
        titles(&plan),
        [
            "No backend",
            "File",
            "File, all cores",
            "Other",
            "Other, logged, by nginx"
        ]
    );
    assert!(plan.backings.is_empty() && plan.fronts.len() == 1);
    insta::assert_snapshot!(outline(&plan), @r#"
    e (seed 1, 2 blocks)
    1.00s after 300ms
    reference None
    cores [0] and [1]
    cap 20000 by the experiment, which asks for no more than 20000
    10 combinations in 2 blocks: 20 trials, about 68 s
      test/clicky backends c=1 backend=none
      test/clicky backends c=1 backend=file
      test/clicky backends c=1 backend=file threads=1
      test/other backends c=1
      test/other backends c=1 instances=2 logging=info proxy=nginx
      test/clicky backends c=256 backend=none
      test/clicky backends c=256 backend=file
      test/clicky backends c=256 backend=file threads=1
      test/other backends c=256
      test/other backends c=256 instances=2 logging=info proxy=nginx
    not run: backing/redis: `redis-server` is not on PATH; left out with it: `test/clicky backends c=1 backend=redis`, `test/clicky backends c=1 backend=redis generators=2 instances=2`, `test/clicky backends c=256 backend=redis` and 1 more; apt-get install redis
    "#);
    let plan = planned(TABLE, without("proxy"), &quick());
    assert_eq!(plan.not_run[0].what, "front/nginx");
    assert!(!titles(&plan).contains(&"Other, logged, by nginx"));
}

#[test]
fn a_row_without_its_baseline_has_no_ratio_and_the_plan_says_so() {
    let text = format!("{TABLE}\n[[exclude]]\nbackend = 'none'");
    let plan = planned(&text, |_| {}, &quick());
    let rows = &plan.workloads[0].rows;
    assert_eq!((rows[0].title.as_str(), &rows[0].baseline), ("File", &None));
    assert_eq!(rows[1].baseline.as_deref(), Some("File"));
    insta::assert_snapshot!(plan.notes.join("\n"), @r#"
    2 threads of the generator on 1 processor take turns: they may be the limit, and add to latency
    backends: `No backend` is not run and was the baseline of these, which have no ratio: `File`, `Redis`, `Other, logged, by nginx`
    "#);
    // Settled once more, as before the trials, it says no more.
    assert_eq!(settle(plan.clone(), &[]).notes, plan.notes);
}

#[test]
fn rows_are_selected_by_the_ids_of_their_cells() {
    let options = only(&["backend=redis", "proxy=*"]);
    let plan = planned(TABLE, |_| {}, &options);
    assert_eq!(titles(&plan), ["Redis", "Redis, 2 instances"]);
    assert!(plan.fronts.is_empty());
    assert!(plan.settings.iter().all(|setting| setting.name != "proxy"));
}

#[test]
fn a_service_that_cannot_be_built_takes_its_rows_with_it() {
    let plan = planned(TABLE, |_| {}, &Options::default());
    let failed = BuildOutcome::Failed(Failed {
        reason: "its build failed with status 1".to_owned(),
        remedy: String::new(),
        log: None,
        interrupted: false,
        due: false,
    });
    let ready = BuildOutcome::Ready(Ready {
        repositories: Vec::new(),
        dir: String::new(),
        key: String::new(),
        files: String::new(),
        originals: String::new(),
        version: "redis 8".to_owned(),
        cached: false,
        root_dir: String::new(),
        hold: Vec::new(),
    });
    let outcomes = [
        ("front/nginx".to_owned(), failed),
        ("backing/redis".to_owned(), ready),
    ];
    let settled = settle(plan.clone(), &outcomes);
    assert!(settled.fronts.is_empty() && settled.backings[0].version == "redis 8");
    assert!(!titles(&settled).contains(&"Other, logged, by nginx"));
    assert_eq!(settled.cells.len(), plan.cells.len() - 2);
    insta::assert_snapshot!(settled.not_run.last().unwrap().reason, @r#"
    its build failed with status 1; left out with it: `test/other backends c=1 instances=2 logging=info proxy=nginx`, `test/other backends c=256 instances=2 logging=info proxy=nginx`
    "#);
}

/// Settings of services multiply servers' cells, and mean nothing to others.
#[test]
fn services_multiply_cells_of_servers_alone() {
    let plan = planned(
        "backing = [{ ref = 'backing/redis', name = 'cache' }]
         front = [{ ref = 'front/nginx' }, { ref = 'front/haproxy' }]
         subject = [{ ref = 'test/clicky' }, { cmd = 'p {count}', works = ['sum'], name = 'p' },
           { url = 'http://127.0.0.1:1', name = 'there' }]
         workload = [{ request = { path = '/' } }, { work = 'sum', count = 3 }]
         setting = [
           { name = 'url', values = ['cache'], env = { URL = 'redis://{cache}' } },
           { name = 'proxy', values = ['none', 'nginx', 'haproxy'],
             front_of = { nginx = 'front/nginx', haproxy = 'front/haproxy' } },
           { name = 'upstream', values = ['closed', 'kept'] },
         ]",
        |_| {},
        &Options::default(),
    );
    insta::assert_snapshot!(around(&plan), @r#"
    test/clicky root c=100 proxy=none url=cache: {"backings":["cache"],"instances":1,"generators":0,"output":"file"}
    there root c=100: {"instances":1,"generators":0,"output":"file"}
    test/clicky root c=100 proxy=nginx upstream=closed url=cache: {"backings":["cache"],"front":"front/nginx","instances":1,"generators":0,"output":"file"}
    test/clicky root c=100 proxy=nginx upstream=kept url=cache: {"backings":["cache"],"front":"front/nginx","instances":1,"generators":0,"output":"file"}
    test/clicky root c=100 proxy=haproxy upstream=closed url=cache: {"backings":["cache"],"front":"front/haproxy","instances":1,"generators":0,"output":"file"}
    test/clicky root c=100 proxy=haproxy upstream=kept url=cache: {"backings":["cache"],"front":"front/haproxy","instances":1,"generators":0,"output":"file"}
    p sum n=3: {"instances":1,"generators":0,"output":"file"}
    "#);
    assert!(
        plan.connection_cap
            .limits
            .keys()
            .any(|limit| limit.contains("front"))
    );
}

#[test]
fn who_has_the_address_of_a_service_starts_it() {
    let text = "backing = [{ ref = 'backing/redis' }]
         subject = [{ ref = 'test/clicky', env = { URL = '{backing/redis}' } }, { ref = 'test/other' }]
         workload = [{ request = { path = '/' } }]";
    let plan = planned(text, |_| {}, &Options::default());
    let needed = plan.cells.iter().map(|cell| cell.around.backings.len());
    assert_eq!(needed.collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_counter_that_is_kept_takes_a_start_longer() {
    let text = |ending: &str| TABLE.replace("kept = 'stop'", &format!("kept = '{ending}'"));
    let length = |ending: &str| {
        let plan = planned(&text(ending), |_| {}, &Options::default());
        estimate(&plan, Nanos::from_secs(1), Beside::default())
    };
    // 13 combinations in 3 blocks.
    assert_eq!(length("kill"), length("no") + Nanos::from_secs(39));
}

#[test]
fn a_counter_needs_a_path_that_the_subject_answers() {
    let message = |path: &str| {
        let text = TABLE.replace("path = '/', adds", &format!("path = '{path}', adds"));
        load(&text).map(|_| ()).unwrap_err()
    };
    let message = message("/count");
    assert!(
        message.contains("`test/clicky` does not answer `/count`: it answers `/`"),
        "{message}"
    );
}

#[test]
fn a_build_that_no_front_offers_is_refused() {
    let text = TABLE.replace(
        "{ name = 'instances', values",
        "{ name = 'upstream', values = ['kept', 'lost'], env = { A = '{value}' } }, { name = 'instances', values",
    );
    let text = text.replace("proxy = 'nginx',", "proxy = 'nginx', upstream = 'lost',");
    let message = load(&text).map(|_| ()).unwrap_err();
    assert!(
        message.contains("no subject offers the build `lost`"),
        "{message}"
    );
}

proptest! {
    /// Whatever is missing or left out, a plan holds what its cells need and nothing else.
    #[test]
    fn a_plan_with_services_is_whole(
        skipped in proptest::collection::vec(0_usize..2, 0..2),
        words in proptest::collection::vec(proptest::sample::select(vec!["redis", "c=1 ", "proxy", "file", "other", "instances"]), 0..3),
        excluded in proptest::option::of(proptest::sample::select(vec!["none", "file", "redis"])),
        quick: bool,
    ) {
        let exclude = excluded.map_or(String::new(), |value| format!("\n[[exclude]]\nbackend = '{value}'"));
        let (experiment, all) = loaded(&format!("{TABLE}{exclude}"));
        let mut facts = machine(&all);
        for index in skipped {
            facts.commands.remove(["redis-server", "proxy"][index]);
        }
        let only: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let options = Options { only, quick, ..Options::default() };
        let Ok(plan) = super::super::plan(&experiment, &all, &facts, &options) else {
            return Ok(());
        };
        let needed: BTreeSet<&String> = plan.cells.iter().flat_map(|c| c.around.backings.iter().chain(&c.around.front)).collect();
        let planned: BTreeSet<&String> = plan.backings.iter().chain(&plan.fronts).map(|s| &s.id).collect();
        prop_assert_eq!(needed, planned);
        for workload in &plan.workloads {
            for row in &workload.rows {
                prop_assert!(plan.cells.iter().any(|c| c.subject == row.subject && c.settings == row.settings));
                let beside = row.baseline.as_ref();
                prop_assert!(beside.is_none_or(|title| workload.rows.iter().any(|other| other.title == *title)));
            }
            let mut cells_of = plan.cells.iter().filter(|c| c.workload == workload.name);
            prop_assert!(cells_of.all(|c| workload.rows.iter().any(|row| c.settings == row.settings && c.subject == row.subject)));
        }
        prop_assert!(plan.order.iter().all(|row| row.len() == plan.cells.len()));
    }
}
