//! Users that do steps, against a server that gives out tokens and cookies, refuses those that it does not know, and counts by path.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{PRONY, folder, text};
use crate::sessions::{SHOP, SessionServer};
use serde_json::Value;

fn load(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env_remove("PRONY_DRIVER")
        .arg("load")
        .args(words);
    command.output().expect("prony runs")
}

fn ended(folder: &Path, code: i32, words: &[&str]) -> String {
    let output = load(folder, words);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    said
}

fn report(folder: &Path, code: i32, words: &[&str]) -> Value {
    let output = load(folder, &[words, &["--json", "-"]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"))
}

#[test]
fn each_step_is_counted_as_the_server_counts_it_and_tokens_are_used() {
    let (folder, server) = (folder("scenario"), SessionServer::start());
    fs::write(folder.join("shop.toml"), SHOP).expect("written");
    let words = [
        &server.url,
        "--scenario",
        "shop.toml",
        "-c",
        "4",
        "-n",
        "40",
    ];
    for threads in ["1", "2"] {
        let report = report(&folder, 0, &[&words[..], &["-t", threads]].concat());
        let seen = server.seen();
        assert_eq!(seen.refused, 0);
        let steps = report["scenario"]["steps"].as_array().expect("steps");
        let counts: Vec<_> = steps
            .iter()
            .map(|step| {
                (
                    step["name"].as_str().unwrap_or_default(),
                    step["counts"]["completed"].as_u64(),
                )
            })
            .collect();
        assert_eq!(
            counts,
            [("login", Some(40)), ("list", Some(40)), ("order", Some(40))]
        );
        let by_path = ["/login", "/list", "/order"].map(|path| seen.by_path[path]);
        assert_eq!(by_path, [40; 3]);
        assert_eq!(report["counts"]["sent"], 120);
        assert_eq!(
            report["scenario"]["flows"][0]["iterations"]["completed"],
            40
        );
        // Each iteration has a number of its own.
        assert_eq!(seen.users.len(), 40);
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_summary_and_the_outputs_have_a_line_for_each_step() {
    let (folder, server) = (folder("scenario-out"), SessionServer::start());
    fs::write(folder.join("shop.toml"), SHOP).expect("written");
    let words = [
        &server.url,
        "--scenario",
        "shop.toml",
        "-c",
        "2",
        "-t",
        "1",
        "-n",
        "10",
    ];
    let outputs = ["--json-lines", "lines", "--html", "page.html"];
    let said = ended(&folder, 0, &[&words[..], &outputs].concat());
    for line in [
        "Running 10 iterations @ ",
        ", a scenario of 3 steps\n",
        "Iterations:   started 10 = completed 10 + abandoned 0 + unfinished 0; ",
        "\n  login           10        10         0 ",
        "\n  order           10        10         0 ",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let lines = fs::read_to_string(folder.join("lines")).expect("lines");
    let last: Value = serde_json::from_str(lines.lines().last().unwrap_or_default()).expect("JSON");
    assert_eq!(last["report"]["scenario"]["steps"][1]["counts"]["sent"], 10);
    let seconds = lines.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let step = line.get("steps")?.get(1)?.clone();
        assert_eq!(
            (&step["name"], &step["failed"]),
            (&"list".into(), &0.into())
        );
        step["completed"].as_u64()
    });
    assert_eq!(seconds.sum::<u64>(), 10);
    let page = fs::read_to_string(folder.join("page.html")).expect("a page");
    assert!(page.contains("abandoned 0") && page.contains("login"));
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn arrivals_are_users_and_their_steps_follow() {
    let (folder, server) = (folder("scenario-open"), SessionServer::start());
    fs::write(folder.join("shop.toml"), SHOP).expect("written");
    let words = [
        &server.url,
        "--scenario",
        "shop.toml",
        "-c",
        "4",
        "-t",
        "1",
        "-R",
        "200",
        "-n",
        "60",
    ];
    let report = report(&folder, 0, &words);
    let seen = server.seen();
    assert_eq!(
        (seen.refused, seen.by_path["/login"], seen.by_path["/order"]),
        (0, 60, 60)
    );
    assert_eq!(report["arrivals"]["scheduled"], 60);
    assert_eq!(report["arrivals"]["sent"], 60);
    assert_eq!(report["counts"]["sent"], 180);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn what_is_not_there_is_a_failure_by_name_and_ends_the_iteration() {
    let (folder, server) = (folder("scenario-missing"), SessionServer::start());
    fs::write(folder.join("shop.toml"), SHOP.replace("$.token", "$.tokn")).expect("written");
    let words = [
        &server.url,
        "--scenario",
        "shop.toml",
        "-c",
        "1",
        "-t",
        "1",
        "-n",
        "5",
        "--keep-failed",
        "kept",
    ];
    let said = ended(&folder, 1, &words);
    for line in [
        "Check failed: login: take token from json $.tokn (5 answers)",
        "started 5 = completed 0 + abandoned 5 + unfinished 0",
        "check 5\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let seen = server.seen();
    assert_eq!(seen.by_path.keys().collect::<Vec<_>>(), ["/login"]);
    let kept = fs::read_to_string(folder.join("kept/1.txt")).expect("a kept answer");
    assert!(
        kept.starts_with("failed: login: take token from json $.tokn\n"),
        "{kept}"
    );
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn rows_of_a_csv_are_users() {
    let (folder, server) = (folder("scenario-data"), SessionServer::start());
    fs::write(
        folder.join("shop.toml"),
        SHOP.replace("u{counter}", "{who}&"),
    )
    .expect("written");
    fs::write(folder.join("users.csv"), "who\nAnn\nBob\nCid\n").expect("written");
    let words = [
        &server.url,
        "--scenario",
        "shop.toml",
        "-c",
        "2",
        "-t",
        "1",
        "--data",
        "users.csv",
        "--data-order",
        "once",
    ];
    let said = ended(&folder, 0, &words);
    assert!(said.contains("The data ended"), "{said}");
    let users: Vec<_> = server.seen().users.into_iter().collect();
    let once = ["Ann", "Bob", "Cid"].map(|name| (format!("user={name}%26"), 1));
    assert_eq!(users, once);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_requirement_of_a_step_is_judged_by_its_figures() {
    let (folder, server) = (folder("scenario-require"), SessionServer::start());
    fs::write(folder.join("shop.toml"), SHOP).expect("written");
    let words = [
        &server.url,
        "--scenario",
        "shop.toml",
        "-c",
        "1",
        "-t",
        "1",
        "-n",
        "3",
    ];
    let with = |code, requirement| {
        ended(
            &folder,
            code,
            &[&words[..], &["--require", requirement]].concat(),
        )
    };
    let held = with(0, "order max < 1h");
    assert!(
        held.contains("Required:     order max < ") && held.contains(": held: "),
        "{held}"
    );
    let missed = with(1, "login p99 < 1ns");
    assert!(missed.contains("login p99 < 1ns: missed"), "{missed}");
    let unknown = with(2, "logout p99 < 1ns");
    assert!(
        unknown.contains("no step of that name, but login, list, order"),
        "{unknown}"
    );
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn several_scenarios_come_by_their_weight() {
    let (folder, server) = (folder("scenario-weights"), SessionServer::start());
    let file = "[[scenario]]\nname = \"often\"\nweight = 9\n[[scenario.step]]\nname = \"a\"\npath = \"/login\"\n\
                [[scenario]]\nname = \"rarely\"\n[[scenario.step]]\nname = \"a\"\npath = \"/login?\"\n";
    fs::write(folder.join("two.toml"), file).expect("written");
    let words = [
        &server.url,
        "--scenario",
        "two.toml",
        "-c",
        "2",
        "-t",
        "1",
        "-n",
        "500",
        "--seed",
        "4",
    ];
    let first = report(&folder, 0, &words);
    let started = |report: &Value, flow: usize| {
        report["scenario"]["flows"][flow]["iterations"]["started"]
            .as_u64()
            .unwrap_or_default()
    };
    assert_eq!(started(&first, 0) + started(&first, 1), 500);
    // 50 are expected, with a deviation of 6.7.
    assert!(
        (20..80).contains(&started(&first, 1)),
        "{}",
        started(&first, 1)
    );
    assert_eq!(started(&report(&folder, 0, &words), 1), started(&first, 1));
    // Both have a step of that name.
    let required = |of: &'static str| [&words[..], &["--require", of]].concat();
    let said = ended(&folder, 2, &required("a errors < 1%"));
    assert!(said.contains("'often: a …'"), "{said}");
    let said = ended(&folder, 0, &required("rarely: a errors < 1%"));
    assert!(said.contains("rarely: a errors < 1%"), "{said}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_file_that_is_wrong_says_where_and_why() {
    let folder = folder("scenario-wrong");
    let step = "[[step]]\nname = \"a\"\npath = \"/\"\n";
    let url = "http://127.0.0.1:1";
    for (file, lines, why) in [
        (
            format!("{step}naem = 1\n"),
            "s.toml:4:1",
            "unknown key `naem`",
        ),
        (
            "[[step]]\nname = \"a\"\n".to_owned(),
            "s.toml:1:1",
            "lacks `path`",
        ),
        (
            format!("{step}headers = {{ A = \"{{tokn}}\" }}\n"),
            "s.toml:1:1",
            "{tokn} is no field",
        ),
        (String::new(), "s.toml:1:1", "lacks `step`"),
    ] {
        fs::write(folder.join("s.toml"), &file).expect("written");
        let said = ended(&folder, 2, &[url, "--scenario", "s.toml"]);
        assert!(said.contains(lines) && said.contains(why), "{file}: {said}");
    }
    fs::write(folder.join("s.toml"), step).expect("written");
    for (words, why) in [
        (&["--scenario", "s.toml"][..], "does not say where to"),
        (&[url, "--scenario", "no.toml"], "No such file"),
        (
            &[url, "--scenario", "s.toml", "--http2"],
            "cannot be used with",
        ),
        (
            &[url, "--scenario", "s.toml", "--expect-status", "200"],
            "cannot be used with",
        ),
        (
            &["http://127.0.0.1:1/path", "--scenario", "s.toml"],
            "leave out `/path`",
        ),
    ] {
        let said = ended(&folder, 2, words);
        assert!(said.contains(why), "{words:?}: {said}");
    }
    let data = [url, "--scenario", "s.toml", "--data", "d.csv"];
    fs::write(folder.join("d.csv"), "x\n1\n").expect("written");
    let said = ended(&folder, 2, &data);
    assert!(
        said.contains("no step has a column of the data file: {x}"),
        "{said}"
    );
    fs::remove_dir_all(folder).expect("removed");
}
