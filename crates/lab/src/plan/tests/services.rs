use super::*;
use prony_record::{Ended, Output};

/// A folder of subjects: a click counter, a second one, a database and two proxies.
fn stage() -> tempfile::TempDir {
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
    let folder = stage();
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
    tally = { path = '/', adds = 500, kept = 'stop' }
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
    13 cells in 3 blocks: 39 trials, about 5 min
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
    "#);
    let ids = |all: &[prony_record::PlannedSubject]| -> Vec<String> {
        all.iter().map(|service| service.id.clone()).collect()
    };
    assert_eq!(ids(&plan.backings), ["backing/redis"]);
    assert_eq!(ids(&plan.fronts), ["front/nginx"]);
    let workload = &plan.workloads[0];
    let beside = |row: &prony_record::PlannedRow| (row.title.clone(), row.beside.clone());
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
    let tally = workload.tally.clone().unwrap();
    assert_eq!((tally.path.as_str(), tally.adds), ("/", 500));
    assert_eq!(tally.ended_by, Some(Ended::Stopped));
    let backend = &plan.settings[0];
    assert_eq!(backend.backing_of["redis"], ["backing/redis"]);
    assert_eq!(plan.settings[1].front_of["nginx"], "front/nginx");
    assert_eq!(plan.settings[2].output_of["info"], Output::Pipe);
}
