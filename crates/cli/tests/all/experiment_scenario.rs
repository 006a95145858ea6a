//! Users that do steps as a workload of an experiment: what is refused, what is checked before the load, what the records and the document
//! say of each step, and what the server itself has counted.

use std::fs;
use std::path::Path;

use crate::sessions::{SHOP, SessionServer};
use serde_json::Value;

use crate::common;

const RUN: [&str; 4] = ["run", "e.toml", "--out", "out"];

/// An experiment of so many blocks on `url` with this workload.
fn experiment(folder: &Path, url: &str, blocks: u32, workload: &str) {
    let text = format!(
        "title = \"T\"\n[run]\nblocks = {blocks}\nduration = \"100ms\"\nwarmup = \"20ms\"\n[[subject]]\nname = \"s\"\n\
         url = \"{url}\"\n[[workload]]\nname = \"w\"\nconnections = [2]\n{workload}\n"
    );
    fs::write(folder.join("e.toml"), text).expect("it is written");
}

/// What `prony` says of words that it refuses.
fn refused(folder: &Path, words: &[&str]) -> String {
    let output = common::prony(folder, words);
    let said = common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")
}

/// All trials of the run.
fn trials(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("out/trials.jsonl")).expect("trials");
    let lines = text.lines().map(serde_json::from_str);
    lines.map(|line| line.expect("JSON")).collect()
}

/// A number at a path of names, with dots between.
fn number(of: &Value, path: &str) -> u64 {
    let found = path
        .split('.')
        .fold(of, |of, name| match name.parse::<usize>() {
            Ok(place) => &of[place],
            Err(_) => &of[name],
        });
    found.as_u64().unwrap_or_else(|| panic!("{path}: {of}"))
}

/// Whether each request of a load's steps is counted once, and all of them come to the load.
fn balances(load: &Value) {
    let failed = |of: &Value| -> u64 {
        let kinds = of["failed"].as_object().expect("kinds").values();
        kinds.map(|count| count.as_u64().expect("a count")).sum()
    };
    let mut sums = [0; 3];
    for step in load["scenario"]["steps"].as_array().expect("steps") {
        let counts = &step["counts"];
        let of = |name: &str| number(counts, name);
        let ended = of("warmup_completed")
            + of("warmup_failed")
            + of("completed")
            + failed(counts)
            + of("in_flight");
        assert_eq!(of("sent"), ended, "{step}");
        let own = [of("sent"), of("completed"), of("in_flight")];
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    let whole = ["sent", "completed", "in_flight"].map(|name| number(&load["counts"], name));
    assert_eq!(sums, whole, "{load}");
    let iterations = &load["scenario"]["flows"][0]["iterations"];
    let of = |name: &str| number(iterations, name);
    let ended = of("completed") + of("abandoned") + of("unfinished");
    assert_eq!(of("started"), ended, "{iterations}");
}

#[test]
fn each_step_is_counted_as_the_server_counts_it_and_stands_in_the_document() {
    let (folder, server) = (
        common::folder("experiment-scenario"),
        SessionServer::start(),
    );
    fs::write(folder.join("shop.toml"), SHOP).expect("it is written");
    let workload = "scenario = \"shop.toml\"\nrequire = ['login p99 < 1h', 'list errors <= 0', 'order rate > 1M']";
    experiment(&folder, &server.url, 2, workload);
    let output = common::prony(&folder, &RUN);
    let said = common::text(&output.stderr);
    let trials = trials(&folder);
    assert_eq!(trials.len(), 2, "{said}");
    let seen = server.seen();
    assert_eq!(seen.refused, 0, "each token is its user's");
    for (place, path) in ["/login", "/list", "/order"].into_iter().enumerate() {
        let counts = format!("load.scenario.steps.{place}.counts.sent");
        let sent: u64 = trials.iter().map(|trial| number(trial, &counts)).sum();
        // And one user before each load.
        assert_eq!(seen.by_path[path], sent + 2, "{path}");
    }
    for trial in &trials {
        assert_eq!(trial["outcome"]["kind"], "measured", "{trial}");
        balances(&trial["load"]);
        let check = &trial["verification"][0];
        assert_eq!(check["name"], "steps");
        assert_eq!(check["detail"], "all of 3 steps");
    }
    // No user of a trial has the number of another, the one that was there before the load among them. Each trial begins anew.
    assert!(
        seen.users.values().all(|times| *times <= 2),
        "{:?}",
        seen.users
    );
    assert_eq!(seen.users["user=u1"], 2);

    let document = fs::read_to_string(folder.join("out/document.md")).expect("a document");
    for part in [
        "users that do the 3 steps of shop.toml (SHA-256 ",
        "login POST /login, list GET /list, order POST /order",
        "| iterations/s",
        "| subject | step  |",
        "| s       | login |",
        "| s       | order |",
    ] {
        assert!(document.contains(part), "{part}: {document}");
    }
    let summary = json(&folder.join("out/summary.json"));
    let sum = |name: &str| -> u64 {
        let path = format!("load.scenario.steps.1.counts.{name}");
        trials.iter().map(|trial| number(trial, &path)).sum()
    };
    let users = &summary["cells"][0]["users"];
    assert_eq!(number(users, "steps.1.counts.completed"), sum("completed"));
    let required = summary["required"].as_array().expect("requirements");
    let held: Vec<bool> = required
        .iter()
        .map(|of| of["held"].as_bool().expect("a truth"))
        .collect();
    assert_eq!(held, [true, true, false], "{required:?}");
    assert!(said.contains("order rate > 1M/s: missed"), "{said}");

    // A bundle has the file, and a run with another one is not resumed.
    let bundled = common::prony(&folder, &["bundle", "out", "--out", "b.prony"]);
    assert!(
        bundled.status.success(),
        "{}",
        common::text(&bundled.stderr)
    );
    let plan = json(&folder.join("out/plan.json"));
    let source = &plan["workloads"][0]["source"];
    assert_eq!(source["scenario"]["flows"][0]["steps"][1]["path"], "/list");
    fs::write(folder.join("shop.toml"), format!("{SHOP}# more\n")).expect("it is written");
    let resumed = common::prony(&folder, &["run", "e.toml", "--resume", "out"]);
    let said = common::text(&resumed.stderr);
    assert!(said.contains("other requests of `w`"), "{said}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn users_arrive_at_a_rate() {
    let (folder, server) = (
        common::folder("experiment-arrivals"),
        SessionServer::start(),
    );
    fs::write(folder.join("shop.toml"), SHOP).expect("it is written");
    let workload = "scenario = \"shop.toml\"\narrival = { rate = 200 }";
    experiment(&folder, &server.url, 1, workload);
    let output = common::prony(&folder, &RUN);
    let said = common::text(&output.stderr);
    let trial = &trials(&folder)[0];
    assert_eq!(trial["outcome"]["kind"], "measured", "{said}{trial}");
    balances(&trial["load"]);
    let started = number(trial, "load.scenario.flows.0.iterations.started");
    assert_eq!(started, number(trial, "load.arrivals.sent"));
    let seen = server.seen();
    assert_eq!((seen.refused, seen.by_path["/login"]), (0, started + 1));
    let document = fs::read_to_string(folder.join("out/document.md")).expect("a document");
    for part in [
        "2 connections at 200 users/s",
        "users drawn/s",
        "| s       | login |",
    ] {
        assert!(document.contains(part), "{part}: {document}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_step_that_is_not_answered_as_it_expects_is_named_and_not_measured() {
    let (folder, server) = (common::folder("experiment-steps"), SessionServer::start());
    let reason = |scenario: &str, workload: &str| {
        fs::write(folder.join("shop.toml"), scenario).expect("it is written");
        experiment(&folder, &server.url, 1, workload);
        let _ = fs::remove_dir_all(folder.join("out"));
        let output = common::prony(&folder, &RUN);
        let trial = &trials(&folder)[0];
        assert_eq!(trial["outcome"]["kind"], "failed", "{trial}");
        assert_eq!(trial["outcome"]["phase"], "verify", "{trial}");
        assert_eq!(output.status.code(), Some(3));
        trial["outcome"]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let one = "scenario = \"shop.toml\"";
    let taken = reason(&SHOP.replace("$.token", "$.tokn"), one);
    assert_eq!(
        taken,
        "check `steps`: step `login` (POST /login): its answer fails `take token from json $.tokn`; status 200 came with the body \
         `{\\\"token\\\":\\\"t+1/=\\\"}`"
    );
    // Nothing was sent behind the step that failed.
    assert_eq!(server.seen().by_path.keys().collect::<Vec<_>>(), ["/login"]);
    let status = reason(&SHOP.replace("Bearer {token}", "Bearer x"), one);
    assert_eq!(
        status,
        "check `steps`: step `list` (GET /list): status 200 expected; status 401 came with the body ``"
    );
    // A step that a user goes on from in the load is right before it nevertheless.
    let text = SHOP.replace("contains = [\"[]\"]", "contains = [\"{\"]");
    let text = text.replace(
        "name = \"list\"",
        "name = \"list\"\non_failure = \"continue\"",
    );
    let check = reason(&text, one);
    assert!(
        check.starts_with(
            "check `steps`: step `list` (GET /list): its answer fails `contains {`; status 200 came"
        ),
        "{check}"
    );
    let two = "[[scenario]]\nname = \"a\"\n[[scenario.step]]\nname = \"limited\"\npath = \"/limited\"\n\
               [[scenario]]\nname = \"b\"\n[[scenario.step]]\nname = \"other\"\npath = \"/other?n={env:USER_NUMBER}\"\n";
    let said = {
        fs::write(folder.join("shop.toml"), two).expect("it is written");
        experiment(&folder, &server.url, 1, one);
        refused(&folder, &RUN)
    };
    assert!(
        said.contains("shop.toml: {env:USER_NUMBER}: the environment has no USER_NUMBER"),
        "{said}"
    );
    let other = reason(&two.replace("{env:USER_NUMBER}", "5"), one);
    assert_eq!(
        other,
        "check `steps`: scenario `b`: step `other` (GET /other?n=5): status 200 to 399 expected; status 401 came with the body ``"
    );
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_step_that_fails_under_load_is_counted_by_its_name() {
    let (folder, server) = (common::folder("experiment-limited"), SessionServer::start());
    let scenario = "on_failure = \"continue\"\n[[step]]\nname = \"busy\"\npath = \"/limited\"\n\
                    [[step]]\nname = \"log in\"\npath = \"/login\"\nbody = \"u{counter}\"\n";
    fs::write(folder.join("shop.toml"), scenario).expect("it is written");
    experiment(&folder, &server.url, 1, "scenario = \"shop.toml\"");
    let output = common::prony(&folder, &RUN);
    let said = common::text(&output.stderr);
    let trial = &trials(&folder)[0];
    assert_eq!(trial["outcome"]["kind"], "measured", "{said}{trial}");
    balances(&trial["load"]);
    let of = |path: &str| number(&trial["load"], &format!("scenario.steps.{path}"));
    assert!(of("0.counts.unexpected_status") > 0, "{trial}");
    assert_eq!(of("1.counts.unexpected_status"), 0);
    assert_eq!(
        of("0.counts.unexpected_status"),
        number(trial, "load.counts.unexpected_status")
    );
    let document = fs::read_to_string(folder.join("out/document.md")).expect("a document");
    assert!(document.contains("(unexpected status "), "{document}");
    // A figure that most of its requests fail for is none that can be used.
    assert_eq!(output.status.code(), Some(3), "{said}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn what_is_wrong_is_said_before_anything_is_sent() {
    let (folder, server) = (common::folder("experiment-wrong"), SessionServer::start());
    let with = |scenario: &str, workload: &str| {
        fs::write(folder.join("shop.toml"), scenario).expect("it is written");
        experiment(&folder, &server.url, 1, workload);
        refused(&folder, &RUN)
    };
    let one = "scenario = \"shop.toml\"";
    let said = with(&SHOP.replace("form = { user", "frm = { user"), one);
    assert!(
        said.contains("shop.toml:5:1") && said.contains("unknown key `frm`"),
        "{said}"
    );
    let said = with(SHOP, "scenario = \"shp.toml\"");
    assert!(
        said.contains("e.toml:12:12") && said.contains("shp.toml: No such file"),
        "{said}"
    );
    let required = format!("{one}\nrequire = ['logn p99 < 1s']");
    let said = with(SHOP, &required);
    assert!(
        said.contains("e.toml:13:11")
            && said.contains("there is no step of that name, but login, list, order"),
        "{said}"
    );
    fs::write(folder.join("d.csv"), "who\nAnn\n").expect("it is written");
    let said = with(SHOP, &format!("{one}\ndata = \"d.csv\""));
    assert!(
        said.contains("no step has a column of the data file: {who}"),
        "{said}"
    );
    let said = with(
        &SHOP.replace(
            "form = { user = \"u{counter}\" }",
            "headers = { Authorization = \"x\" }",
        ),
        &format!("{one}\nbearer = \"x\""),
    );
    assert!(said.contains("Authorization is given twice"), "{said}");
    assert_eq!(server.seen().by_path.len(), 0);

    // What is planned, and why it is not visited in turns.
    fs::write(folder.join("shop.toml"), SHOP).expect("it is written");
    experiment(&folder, &server.url, 1, one);
    let planned = common::prony(
        &folder,
        &["run", "e.toml", "--dry-run", "--visits", "100ms"],
    );
    let said = common::text(&planned.stdout);
    for part in [
        "w: users that do the 3 steps of shop.toml",
        "its users would be in the middle of their steps",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

/// The embedded server alone, started by Prony, with the steps of the experiment that is shipped.
#[test]
fn the_shipped_scenario_runs_with_prony_alone() {
    let folder = common::folder("experiment-shipped");
    let shipped = prony_testkit::root().join("experiments/scenario");
    fs::copy(shipped.join("shop.toml"), folder.join("shop.toml")).expect("it is there");
    let text = "title = \"T\"\n[run]\nblocks = 1\nduration = \"1s\"\nwarmup = \"0ms\"\n[[subject]]\nref = \"rust/prony\"\n\
                [[workload]]\nscenario = \"shop.toml\"\nconnections = [2]\nrequire = ['order errors < 1%']\n";
    fs::write(folder.join("e.toml"), text).expect("it is written");
    let output = common::prony(&folder, &RUN);
    common::rendered(&output);
    let trial = &trials(&folder)[0];
    assert_eq!(trial["outcome"]["kind"], "measured", "{trial}");
    balances(&trial["load"]);
    for place in 0..3 {
        let path = format!("load.scenario.steps.{place}.counts");
        let completed = number(trial, &format!("{path}.completed"));
        assert!(completed > 0, "step {place}: {trial}");
        assert_eq!(number(trial, &format!("{path}.unexpected_status")), 0);
    }
    fs::remove_dir_all(folder).expect("removed");
}
