use super::*;
use crate::network::Refusal;

/// A folder of subjects: two clients, a server that counts, and one that is all.
fn fixture() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join("test").join(name);
        std::fs::create_dir_all(&path).unwrap();
        let head = format!("name = '{name}'\nlanguage = 'test'\nsummary = 'x'\n");
        let tail = "\n[version]\ncmd = 'echo 1'\n";
        std::fs::write(path.join("subject.toml"), format!("{head}{text}{tail}")).unwrap();
    };
    write(
        "both",
        "role = 'client'\nvariants = { style = ['plain', 'tuned'] }
         [client]\ncmd = ['both', '{work}', '-t', '{threads}', '{url}']\nworks = ['requests', 'downloads']
         translate = ['python3', '{dir}/t.py']",
    );
    write(
        "single",
        "role = 'client'\n[client]\ncmd = ['single', '{url}']\nworks = ['requests']\nthreads_max = 1
         threads_max_reason = 'it has one loop'\nnot_applicable = { downloads = 'it keeps what it reads' }",
    );
    for name in ["counter", "other"] {
        write(
            name,
            "role = 'server'\nendpoints = ['/hello']\nstart = { cmd = ['serve', '{port}', '{payload_bytes}'] }
             ready = { port = true }\ncounts = { path = '/n', requests = '(?<requests>.+)' }
             needs = { commands = ['counter-server'], packages = { debian = 'apt-get install counter' } }",
        );
    }
    folder
}

const EXPERIMENT: &str = "
    run = { blocks = 3, duration = '4s', reference = 'test/single', quick = { blocks = 1, connections = [10], connections_max = 8, payload_max = '2MiB' } }
    subject = [{ ref = 'test/both' }, { ref = 'test/single' }]
    peer = [{ ref = 'test/counter', args = ['--fast'] }, { ref = 'test/other' }]
    network = [{ name = 'gigabit', title = '1 Gbit/s', rate = '1gbit', delay = '2ms' }]
    workload = [
      { name = 'one', client = 'requests', path = '/hello', peer = 'test/counter', connections = [1, 10] },
      { name = 'two', client = 'requests', path = '/hello', peer = 'test/counter', threads = 2, peer_threads = 4, connections = [1, 10] },
      { name = 'far', client = 'downloads', payload = '20MiB', peer = 'test/other', network = 'gigabit', args = ['-x'], timeout_s = 9 },
    ]
    setting = [{ name = 'style', values = ['plain', 'tuned'] }]";

fn loaded(text: &str) -> (Experiment, Vec<Subject>) {
    let folder = fixture();
    let experiment = Experiment::parse(text, &Origin::new("e.toml", "/srv")).unwrap();
    let all = match subject::load_all(&experiment, folder.path()) {
        Ok(all) => all,
        Err(wrong) => panic!("{}", wrong[0]),
    };
    (experiment, all)
}

#[test]
fn clients_peers_and_networks_are_planned() {
    let (experiment, all) = loaded(EXPERIMENT);
    let plan = plan(&experiment, &all, &machine(&all), &Options::default()).unwrap();
    insta::assert_snapshot!(outline(&plan), @r#"
    e (seed 1, 3 blocks)
    4.00s after 0ns
    reference Some("test/single")
    cores [0] and [1]
    cap 20000 by the experiment, which asks for no more than 20000
    10 combinations in 3 blocks: 30 trials, about 3 min
      test/both one c=1 style=plain
      test/single one c=1
      test/both one c=1 style=tuned
      test/both one c=10 style=plain
      test/single one c=10
      test/both one c=10 style=tuned
      test/both two c=10 style=plain
      test/both two c=10 style=tuned
      test/both far c=10 style=plain
      test/both far c=10 style=tuned
    not run: test/both two c=1 style=plain: 2 threads cannot share 1 connection: each needs one; 
    not run: test/single two c=1: has at most 1 thread: it has one loop; 
    not run: test/both two c=1 style=tuned: 2 threads cannot share 1 connection: each needs one; 
    not run: test/single two c=10: has at most 1 thread: it has one loop; 
    not run: test/single far: does not do this work: it keeps what it reads;
    "#);
    let far = plan.workloads[2].client.clone().unwrap();
    assert_eq!(
        (far.path.as_str(), far.payload_bytes),
        ("/testpayload", 20 << 20)
    );
    assert_eq!(
        (far.peer.as_str(), far.network.as_str()),
        ("test/other", "gigabit")
    );
    assert_eq!(
        (far.args.as_slice(), plan.workloads[2].timeout_ns),
        (&["-x".to_owned()][..], 9_000_000_000)
    );
    let two = plan.workloads[1].client.clone().unwrap();
    assert_eq!(
        (two.threads, two.peer_threads, two.peer.as_str()),
        (2, 4, "test/counter")
    );
    assert_eq!(plan.networks[0].rate_bits_per_s, Some(1_000_000_000));
    assert_eq!(
        (plan.networks[0].delay_ns, plan.networks[0].mtu),
        (Some(2_000_000), 1_500)
    );
    assert_eq!(plan.networks[0].heading(), "1 Gbit/s");
    assert_eq!(plan.peers.len(), 2);
    assert_eq!(
        plan.peers[0].start,
        ["serve", "{port}", "{payload_bytes}", "--fast"]
    );
    assert_eq!(
        plan.peers[0]
            .counts
            .as_ref()
            .map(|counts| counts.own_requests),
        Some(1)
    );
    assert_eq!(plan.subjects[0].client_translate, ["python3", "{dir}/t.py"]);
    // Three of two cells of 4 s and one of 5 s, each in two builds where there are two.
    assert_eq!(
        estimate(&plan, Nanos::ZERO, Beside::default()),
        Nanos::from_secs(3 * (4 * 8 + 5 * 2))
    );
}

#[test]
fn a_quick_run_of_clients_keeps_some_connections_and_a_whole_second() {
    let (experiment, all) = loaded(EXPERIMENT);
    let plan = plan(&experiment, &all, &machine(&all), &quick()).unwrap();
    assert!(plan.cells.iter().all(|cell| cell.connections == 8));
    let far = plan.workloads[2].client.clone().unwrap();
    assert_eq!((far.payload_bytes, plan.notes.len()), (2 << 20, 0));
    assert_eq!(
        (plan.duration_ns, plan.warmup_ns, plan.blocks),
        (1_000_000_000, 0, 1)
    );
    assert_eq!(client::seconds(Nanos::from_millis(300)), 1);
    assert_eq!(client::seconds(Nanos::from_millis(1_001)), 2);
}

#[test]
fn what_clients_networks_and_peers_cannot_do_is_named() {
    let (experiment, all) = loaded(EXPERIMENT);
    let mut facts = machine(&all);
    let refusal = Refusal {
        reason: "the kernel has no tbf".to_owned(),
        remedy: "modprobe sch_tbf".to_owned(),
    };
    facts.networks.insert("gigabit".to_owned(), refusal);
    let run = |facts: &Facts| plan(&experiment, &all, facts, &quick());
    let without_network = run(&facts).unwrap();
    assert!(without_network.networks.is_empty() && without_network.peers.len() == 1);
    insta::assert_snapshot!(outline(&without_network), @r#"
    e (seed 1, 1 blocks)
    1.00s after 0ns
    reference Some("test/single")
    cores [0] and [1]
    cap 20000 by the experiment, which asks for no more than 20000
    5 combinations in 1 block: 5 trials, about 10 s
      test/both one c=8 style=plain
      test/single one c=8
      test/both one c=8 style=tuned
      test/both two c=8 style=plain
      test/both two c=8 style=tuned
    not run: test/single two c=8: has at most 1 thread: it has one loop; 
    not run: test/both far c=8 style=plain: the kernel has no tbf; modprobe sch_tbf
    not run: test/both far c=8 style=tuned: the kernel has no tbf; modprobe sch_tbf
    not run: test/single far: does not do this work: it keeps what it reads;
    "#);
    facts.commands.remove("counter-server");
    insta::assert_snapshot!(run(&facts).unwrap_err().to_string(), @"
    none of the subjects can run on this machine:
      test/counter: the clients' peer: `counter-server` is not on PATH; to change it: apt-get install counter
      test/other: the clients' peer: `counter-server` is not on PATH; to change it: apt-get install counter
      test/single two c=8: has at most 1 thread: it has one loop
      test/both far c=8 style=plain: the kernel has no tbf; to change it: modprobe sch_tbf
      test/both far c=8 style=tuned: the kernel has no tbf; to change it: modprobe sch_tbf
    ");
}

#[test]
fn a_peer_that_cannot_be_built_takes_its_cells_with_it() {
    let (experiment, all) = loaded(EXPERIMENT);
    let planned = plan(&experiment, &all, &machine(&all), &quick()).unwrap();
    let failed = || {
        BuildOutcome::Failed(Failed {
            reason: "its build failed".to_owned(),
            remedy: String::new(),
            log: None,
            interrupted: false,
            due: false,
        })
    };
    let settled = settle(planned.clone(), &[("test/other".to_owned(), failed())]);
    assert!(settled.cells.iter().all(|cell| cell.workload != "far"));
    assert_eq!((settled.peers.len(), settled.networks.len()), (1, 0));
    assert_eq!((settled.subjects.len(), settled.workloads.len()), (2, 2));
    let skipped = |skipped: &&prony_record::NotRun| skipped.what == "test/other";
    assert_eq!(settled.not_run.iter().filter(skipped).count(), 1);
    let none = settle(settled, &[("test/counter".to_owned(), failed())]);
    assert!(none.cells.is_empty() && none.subjects.is_empty() && none.peers.is_empty());
}

#[test]
fn clients_stand_beside_servers_and_programs() {
    let (experiment, all) = loaded(
        "subject = [{ ref = 'test/both' }, { cmd = 's {port}' }, { cmd = 'p {count}', works = ['w'] }]
         peer = [{ ref = 'test/counter' }]
         workload = [
           { client = 'requests', path = '/hello' },
           { name = 'asked', request = { path = '/hello' } },
           { work = 'w', count = 5 },
         ]
         setting = [{ name = 'threads', values = [1, 'cores'] }]",
    );
    let plan = plan(&experiment, &all, &machine(&all), &Options::default()).unwrap();
    assert_eq!(plan.warmup_ns, 2_000_000_000);
    insta::assert_snapshot!(ids(&plan).join("\n"), @"
    test/both hello c=10 threads=1
    s asked c=100
    p w n=5
    ");
}

#[test]
fn the_shipped_experiments_of_clients_are_planned() {
    let (lift, all) = shipped("lift.toml");
    let planned = plan(&lift, &all, &machine(&all), &Options::default()).unwrap();
    assert_eq!(planned.workloads.len(), 9);
    let rows: Vec<(u32, u32, u32)> = planned
        .workloads
        .iter()
        .map(|w| {
            let client = w.client.as_ref().unwrap();
            (w.connections[0], client.threads, client.peer_threads)
        })
        .collect();
    assert_eq!(
        rows,
        [
            (1, 1, 1),
            (10, 1, 1),
            (10, 1, 2),
            (10, 2, 2),
            (100, 1, 1),
            (100, 2, 2),
            (100, 2, 4),
            (100, 4, 4),
            (10, 1, 1)
        ]
    );
    assert_eq!((planned.subjects.len(), planned.peers.len()), (13, 1));
    // Every client has every row, but those that have too few threads, which are named.
    let named = planned
        .not_run
        .iter()
        .filter(|skipped| skipped.reason.contains("thread"))
        .count();
    assert_eq!(
        (planned.cells.len() + named, planned.not_run.len()),
        // Three clients keep a steady rate, each two of them.
        (14 * 8 + 6, named)
    );
    let (haiku, all) = shipped("haiku-net-bench.toml");
    let full = plan(&haiku, &all, &machine(&all), &Options::default()).unwrap();
    assert_eq!(
        (full.cells.len(), full.peers.len(), full.networks.len()),
        (13 * 4 + 2 * 3, 3, 1)
    );
    assert_eq!((full.duration_ns, full.not_run.len()), (0, 0));
    let few = plan(&haiku, &all, &machine(&all), &quick()).unwrap();
    for workload in &few.workloads {
        let client = workload.client.as_ref().unwrap();
        assert_eq!(workload.connections, [10]);
        assert!(client.payload_bytes <= 20 << 20);
    }
}
