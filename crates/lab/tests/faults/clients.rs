//! Clients that are run against a peer, and what goes wrong with either.

use std::collections::BTreeMap;
use std::path::Path;

use prony_record::{
    Agreement, Cell, CountsSign, Exit, Outcome, Phase, Plan, PlannedClient, PlannedNetwork,
    PlannedSubject, PlannedWorkload, Role, SCHEMA, Source, StopRule, Trial, agreement,
};

use crate::fixture::{Fixture, Isolation, cores, subject, wait_line};
use crate::programs::{Named, failure, words};

/// The tests of this module.
pub const TESTS: [Named; 8] = [
    (
        "a_client_is_measured_beside_its_peer",
        a_client_is_measured_beside_its_peer,
    ),
    (
        "what_a_tool_prints_is_translated",
        what_a_tool_prints_is_translated,
    ),
    (
        "downloads_are_counted_in_bytes",
        downloads_are_counted_in_bytes,
    ),
    (
        "faults_of_clients_and_peers_are_recorded",
        faults_of_clients_and_peers_are_recorded,
    ),
    (
        "counts_that_do_not_agree_are_recorded",
        counts_that_do_not_agree_are_recorded,
    ),
    (
        "an_interrupted_client_is_run_again",
        an_interrupted_client_is_run_again,
    ),
    (
        "nothing_of_client_and_peer_outlives_a_killed_run",
        nothing_of_client_and_peer_outlives_a_killed_run,
    ),
    (
        "the_loss_of_a_clients_parent_is_recorded",
        the_loss_of_a_clients_parent_is_recorded,
    ),
];

const REASONS: [&str; 11] = [
    "hangs: Measure: it had not ended after 3.00s; its last line: talk",
    "crashes: Measure: it was ended by signal 11; its last line: talk",
    "exits: Measure: it exited with status 3; its last line: no such host",
    "absent: Measure: `/nowhere/to/be/found` cannot be started: No such file or directory (os error 2)",
    "floods: Measure: it printed more than 16 MiB",
    "garbage: Drain: line 1 of its output, `{\"measure\":7`: EOF while parsing an object, at column 12",
    "silent: Drain: it printed no measurement: a line of JSON with `measure`",
    "miscounts: Drain: line 1 of its output, `{\"measure\": \"requests\", \"threads\": 2, \"c…`: \
     it speaks of 5 connections in all, and 4 were asked for",
    "untranslated: Drain: the translation of its output exited with status 1; its last line: cannot read this",
    "no translator: Drain: `/nowhere/at/all` cannot be started: No such file or directory (os error 2)",
    "too long: Drain: it printed no measurement: a line of JSON with `measure`",
];

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()));
    owned.collect()
}

/// A client of this name, spoiled by `mode`.
pub fn client(name: &str, mode: &str) -> PlannedSubject {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/subjects/client");
    PlannedSubject {
        id: name.to_owned(),
        source: Source::Folder {
            dir: folder.display().to_string(),
        },
        client: words(&[
            "/usr/bin/env",
            "python3",
            "-B",
            "{dir}/client.py",
            "{work}",
            "{url}",
            "{connections}",
            "{threads}",
        ]),
        client_env: env(&[("MODE", mode)]),
        stop: StopRule {
            signal: "TERM".to_owned(),
            timeout_ns: 200_000_000,
        },
        ..PlannedSubject::default()
    }
}

fn translated(name: &str, mode: &str, translation: &str) -> PlannedSubject {
    let mut client = client(name, mode);
    let command = [
        "python3",
        "-B",
        "{dir}/translate.py",
        "{work}",
        "{connections}",
        "{threads}",
    ];
    client.client_translate = words(&command);
    client
        .client_env
        .extend(env(&[("TRANSLATION", translation)]));
    client
}

/// The peer, with environment of its own.
pub fn peer(more: &[(&str, &str)]) -> PlannedSubject {
    let mut peer = subject("counts", &[("PAYLOAD_BYTES", "{payload_bytes}")]);
    peer.env.extend(env(more));
    peer.counts = Some(CountsSign {
        path: "/counts".to_owned(),
        requests: "requests (?<requests>[0-9]+)".to_owned(),
        bytes: "bytes (?<bytes>[0-9]+)".to_owned(),
        own_requests: 1,
        refresh_ns: 0,
    });
    peer
}

/// One cell a client, with 4 connections; each run may take 2 s beyond its one of work.
pub fn plan(subjects: Vec<PlannedSubject>, peer: PlannedSubject, blocks: u32) -> Plan {
    let cell = |subject: &PlannedSubject| Cell {
        id: format!("{} hello c=4", subject.id),
        subject: subject.id.clone(),
        workload: "hello".to_owned(),
        connections: 4,
        ..Cell::default()
    };
    let cells: Vec<Cell> = subjects.iter().map(cell).collect();
    let order = (0..u32::try_from(cells.len()).expect("few cells")).collect();
    Plan {
        schema: SCHEMA,
        blocks,
        duration_ns: 900_000_000,
        cores: cores(),
        subjects,
        workloads: vec![PlannedWorkload {
            name: "hello".to_owned(),
            connections: vec![4],
            timeout_ns: 2_000_000_000,
            client: Some(PlannedClient {
                work: "requests".to_owned(),
                path: "/hello".to_owned(),
                threads: 2,
                peer: peer.id.clone(),
                peer_threads: 1,
                ..PlannedClient::default()
            }),
            ..PlannedWorkload::default()
        }],
        peers: vec![peer],
        cells,
        order: vec![order; blocks as usize],
        ..Plan::default()
    }
}

pub fn asked(plan: &mut Plan) -> &mut PlannedClient {
    plan.workloads[0].client.as_mut().expect("clients")
}

/// The two sides' counts of a trial.
fn compared(trial: &Trial) -> Agreement {
    let report = trial.client.as_ref().expect("a report");
    let line = &trial.program.as_ref().expect("a report").lines[0];
    agreement(line, 4, &report.peer)
}

fn a_client_is_measured_beside_its_peer(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let run = fixture.run(&plan(vec![client("right", "")], peer(&[]), 2), &[]);
    assert_eq!(run.trials.len(), 2);
    for trial in &run.trials {
        assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
        let (report, program) = (trial.client.as_ref(), trial.program.as_ref());
        let (report, program) = (report.expect("a report"), program.expect("a report"));
        assert_eq!(report.network, "loopback");
        assert_eq!((report.page_status, report.page_body_bytes), (200, 13));
        assert_eq!(report.page_head_bytes, 84);
        assert_eq!(report.peer.requests, Some(20), "{:?}", report.peer);
        assert_eq!(report.peer.bytes, Some(20 * 13));
        assert_eq!(report.peer.source, "GET /counts of counts");
        assert!(report.said.is_empty());
        let line = &program.lines[0];
        assert_eq!((line.count, line.threads, program.lines.len()), (20, 2, 1));
        let found = compared(trial);
        assert!(found.holds() && found.exact, "{found:?}");
        assert_eq!(
            (trial.window_ns, trial.log_tail.as_slice()),
            (program.wall_ns, &["talk".to_owned()][..])
        );
        assert!(trial.sampled_ns >= trial.window_ns && trial.canary.is_some());
        assert!(trial.sampler_cpu_ns.is_some_and(|ns| ns > 0));
        assert!(program.user_ns > 1_000_000 && program.wall_ns > program.user_ns / 2);
        let roles: Vec<Role> = trial.processes.iter().map(|process| process.role).collect();
        assert_eq!(roles, [Role::Subject, Role::Peer], "{:#?}", trial.processes);
        assert!(trial.processes.iter().all(|process| process.cpu_ns > 0));
        let url = &trial.processes[0].command[5];
        assert!(
            url.starts_with("http://127.0.0.1:") && url.ends_with("/hello"),
            "{url}"
        );
        let names: Vec<&str> = trial
            .verification
            .iter()
            .map(|check| check.name.as_str())
            .collect();
        assert_eq!(names, ["page", "output"]);
        assert!(
            trial.left_behind.is_empty() && trial.notes.is_empty(),
            "{:?}",
            trial.notes
        );
        let ours = trial.cores.iter().filter_map(|core| core.role);
        assert!(ours.into_iter().all(|role| role != Role::Generator));
    }
}

fn what_a_tool_prints_is_translated(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let run = fixture.run(&plan(vec![translated("raw", "raw", "")], peer(&[]), 1), &[]);
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let said = &trial.client.as_ref().expect("a report").said;
    assert!(said.starts_with("done 20 260 "), "{said}");
    let found = compared(trial);
    assert!(
        found.holds() && !found.exact && found.unanswered == 0,
        "{found:?}"
    );
    // The tool's own words stay; what was made of them is in the record.
    let logs = std::fs::read_dir(fixture.dir().join("logs"))
        .expect("logs")
        .flatten();
    let names: Vec<String> = logs
        .map(|log| log.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.iter().any(|name| name.ends_with(".output.log")),
        "{names:?}"
    );
    assert!(
        names.iter().all(|name| !name.ends_with(".line.log")),
        "{names:?}"
    );
}

fn downloads_are_counted_in_bytes(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let of_downloads = |peer: PlannedSubject| {
        let mut plan = plan(vec![client("downloads", "")], peer, 1);
        let asked = asked(&mut plan);
        (asked.work, asked.path) = ("downloads".to_owned(), "/testpayload".to_owned());
        asked.payload_bytes = 300_000;
        plan
    };
    let run = fixture.run(&of_downloads(peer(&[])), &[]);
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    let report = trial.client.as_ref().expect("a report");
    assert_eq!(
        (report.peer.requests, report.peer.bytes),
        (Some(4), Some(1_200_000))
    );
    assert_eq!((report.page_body_bytes, report.page_status), (300_000, 200));
    assert!(compared(trial).holds() && compared(trial).bytes_off == Some(0));
    let fixture = Fixture::new(isolation);
    let run = fixture.run(&of_downloads(peer(&[("SERVES_SHORT", "1")])), &[]);
    let (phase, reason) = failure(&run.trials, "downloads");
    assert_eq!(
        (phase, reason.as_str()),
        (
            Phase::Verify,
            "the peer serves 299999 bytes at `/testpayload`, not 300000"
        )
    );
}

fn faults_of_clients_and_peers_are_recorded(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut absent = client("absent", "");
    absent.client[0] = "/nowhere/to/be/found".to_owned();
    let mut no_translator = translated("no translator", "raw", "");
    no_translator.client_translate = words(&["/nowhere/at/all"]);
    let mut subjects: Vec<PlannedSubject> = [
        "hangs",
        "crashes",
        "exits",
        "floods",
        "garbage",
        "silent",
        "miscounts",
    ]
    .map(|mode| client(mode, mode))
    .into();
    subjects.extend([
        absent,
        no_translator,
        translated("untranslated", "raw", "fails"),
    ]);
    subjects.push(translated("too long", "", ""));
    let run = fixture.run(&plan(subjects, peer(&[]), 1), &[]);
    for expected in REASONS {
        let (name, _) = expected.split_once(':').expect("a name");
        let (phase, reason) = failure(&run.trials, name);
        assert_eq!(format!("{name}: {phase:?}: {reason}"), expected);
    }
    // The peer's own faults: it dies under the client, never comes up, or is asked in vain.
    let of_peer = |peer: PlannedSubject| {
        let fixture = Fixture::new(isolation);
        let run = fixture.run(&plan(vec![client("right", "hangs")], peer, 1), &[]);
        let (phase, reason) = failure(&run.trials, "right");
        format!("{phase:?}: {reason}")
    };
    let died = of_peer(peer(&[("DIES_AFTER", "7")]));
    assert_eq!(
        died,
        "Measure: the peer was ended by signal 9 before the client ended; it printed nothing"
    );
    let mut without_page = peer(&[]);
    without_page.counts.as_mut().expect("counts").path = "/none".to_owned();
    assert_eq!(
        of_peer(without_page),
        "Verify: the peer's counts at /none: no `requests` in its counts: not found"
    );
    let mut never = peer(&[]);
    never.start = words(&["/bin/sh", "-c", "echo no port for me; exit 4"]);
    let reason = of_peer(never);
    assert!(
        reason.starts_with(
            "Ready: the peer exited with status 4 before it was ready; its last line: no port"
        ),
        "{reason}"
    );
    let mut far = plan(vec![client("right", "")], peer(&[]), 1);
    asked(&mut far).path = "/absent".to_owned();
    let fixture = Fixture::new(isolation);
    let (phase, reason) = failure(&fixture.run(&far, &[]).trials, "right");
    assert_eq!(
        (phase, reason.as_str()),
        (Phase::Verify, "the peer answers `/absent` with status 404")
    );
}

fn counts_that_do_not_agree_are_recorded(isolation: Isolation) {
    for (miscounts, extra) in [("1", 1), ("-1", 0)] {
        let fixture = Fixture::new(isolation);
        let run = fixture.run(
            &plan(
                vec![client("right", "")],
                peer(&[("MISCOUNTS", miscounts)]),
                1,
            ),
            &[],
        );
        let trial = &run.trials[0];
        assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
        let found = compared(trial);
        assert_eq!(
            (found.extra, found.missing),
            (extra, 1 - extra),
            "{found:?}"
        );
    }
}

fn an_interrupted_client_is_run_again(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let ready = fixture.folder.join("ready");
    let mut waits = client("waits", "waits");
    let path = ready.display().to_string();
    waits.client_env.insert("READY".to_owned(), path);
    let mut plan = plan(vec![waits], peer(&[]), 2);
    plan.workloads[0].timeout_ns = 60_000_000_000;
    let mut child = fixture.start(&plan, &[]);
    wait_line(&mut child, "phase Measure");
    prony_lab::launch::signal(child.id(), rustix::process::Signal::INT);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    fixture.none_left();
    let before = fixture.read();
    assert_eq!(before.trials[0].outcome, Outcome::Interrupted);
    let own = before.trials[0]
        .processes
        .iter()
        .find(|p| p.role == Role::Subject);
    let asked = own.is_none_or(|p| matches!(p.exit, Some(Exit::Signal { asked: true, .. })));
    assert!(asked, "{own:?}");
    std::fs::write(&ready, "").expect("a file");
    let run = fixture.run(&plan, &["resume"]);
    assert_eq!(run.trials.len(), 2);
    assert!(run.trials.iter().all(|t| t.outcome == Outcome::Measured));
}

fn nothing_of_client_and_peer_outlives_a_killed_run(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut plan = plan(vec![client("forks", "forks")], peer(&[]), 1);
    plan.workloads[0].timeout_ns = 60_000_000_000;
    let mut child = fixture.start(&plan, &[]);
    wait_line(&mut child, "phase Measure");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    fixture.none_left();
}

fn the_loss_of_a_clients_parent_is_recorded(isolation: Isolation) {
    let fixture = Fixture::new(isolation);
    let mut plan = plan(vec![client("forks", "forks")], peer(&[]), 1);
    plan.workloads[0].timeout_ns = 60_000_000_000;
    let child = fixture.start(&plan, &[]);
    fixture.wait_for(|command| command.contains("client.py"));
    // The client's parent is the last of Prony's own processes to be started.
    let is_own = |command: &str| command.contains("__supervise");
    let own = fixture
        .left()
        .into_iter()
        .filter(|(_, command)| is_own(command));
    let parent = own.map(|(pid, _)| pid).max().expect("a parent");
    prony_lab::launch::signal(parent, rustix::process::Signal::KILL);
    assert!(child.wait_with_output().expect("it ends").status.success());
    fixture.none_left();
    let (phase, reason) = failure(&fixture.read().trials, "forks");
    assert_eq!(phase, Phase::Measure, "{reason}");
    assert!(
        reason.starts_with("the parent of the client was lost"),
        "{reason}"
    );
    // A network that cannot be made fails the trial, and starts nothing.
    plan.networks = vec![PlannedNetwork {
        name: "nowhere".to_owned(),
        rate_bits_per_s: Some(0),
        mtu: 1,
        ..PlannedNetwork::default()
    }];
    asked(&mut plan).network = "nowhere".to_owned();
    let fixture = Fixture::new(isolation);
    let (phase, reason) = failure(&fixture.run(&plan, &[]).trials, "forks");
    assert_eq!(phase, Phase::Prepare, "{reason}");
}
