use std::collections::BTreeMap;
use std::fs;

use clap::Parser as _;

use super::*;
use crate::words::{Command, Words};

const PAGE: &str = "docs/coming-from.md";
const URL: &str = "http://127.0.0.1:8080/hello";

fn ours(command: &str) -> String {
    match translated(command) {
        Ok(words) => quoted(&words),
        Err(why) => why,
    }
}

/// Reads words of ours as the program does.
fn parsed(words: &[String]) -> Result<Command, clap::Error> {
    let all = ["prony", "load"]
        .into_iter()
        .map(str::to_owned)
        .chain(words.iter().cloned());
    Words::try_parse_from(all).map(|words| words.command)
}

fn are_translated(commands: &[(&str, &str)]) {
    for (theirs, here) in commands {
        assert_eq!(ours(theirs), format!("prony load {here}"), "{theirs}");
        let words = translated(theirs).expect(theirs);
        parsed(&words).unwrap_or_else(|error| panic!("{theirs}: {error}"));
    }
}

#[test]
fn what_a_tool_makes_of_its_flags_is_made_of_them_here() {
    are_translated(&[
        (
            "echo 'GET http://x/' | vegeta -cpus=1 attack -duration=5s -body=f -name=n -max-workers=50 -max-connections=20",
            "-t 1 -c 20 -d 5s -R 50 --timeout 30s --method GET -H 'X-Vegeta-Attack: n' -H 'User-Agent: Go-http-client/1.1' -H 'Accept-Encoding: gzip' --follow=10 --body-file f http://x/",
        ),
        (
            "hey -n 205 -c 50 -D f -H 'User-Agent: me' -disable-compression=false http://x/",
            "-t 2 -c 50 -n 200 --timeout 20s --method GET -H 'Content-Type: text/html' -H 'User-Agent: me hey/0.0.1' -H 'Accept-Encoding: gzip' --follow=9 --body-file f http://x/",
        ),
        (
            "hey -h2 -z 5s -q 3 -disable-redirects https://x/",
            "-t 1 -c 1 -d 5s -R 150 --timeout 20s -H 'Content-Type: text/html' -H 'User-Agent: hey/0.0.1' -H 'Accept-Encoding: gzip' --streams 50 --http2 --insecure https://x/",
        ),
        (
            "wrk -T 1s -L -t 3 -H 'X-One: 1' -H 'x-one: 2' http://x/",
            "-t 3 -c 9 -d 10s --timeout 1s -H 'x-one: 2' --latency http://x/",
        ),
        (
            "ab -n 10 -t 5 -C a=b -C c=d -A me http://x/",
            "-t 1 -c 1 -n 50000 -d 5s --timeout 30s -H 'Cookie: c=d' -H 'Authorization: Basic bWU=' -H 'User-Agent: ApacheBench/2.3' -H 'Accept: */*' --no-keepalive --http1.0 http://x/",
        ),
        (
            "oha -n 1.5k -p 4 --debug -d x --worker-threads 1 --disable-compression http://x/",
            "-t 1 -c 50 --timeout 1h --method GET -H 'Accept: */*' -H 'User-Agent: oha/1.16.0' --debug 1 --body x http://x/",
        ),
        (
            "h2load -d f -H ':method: PUT' -H ':authority: y' http://x/",
            "-t 1 -c 1 -n 1 --timeout 1h --method PUT -H 'Host: y' -H 'User-Agent: h2load nghttp2/1.52.0' --http2 --body-file f http://x/",
        ),
        (
            "fortio load http://x/",
            "-t 2 -c 4 -d 5s -R 8 --timeout 3s -H 'User-Agent: fortio.org/fortio-1.75.3' http://x/",
        ),
        (
            "fortio load -qps -1 -c 3 -t 1m -payload 'a{uuid}{b}' -H 'content-type: a/b' -content-type c/d x/{uuid}",
            "-t 2 -c 3 -d 60s --timeout 3s -H 'Content-Type: c/d' -H 'User-Agent: fortio.org/fortio-1.75.3' --body 'a{uuid}{{b}}' 'http://x/{uuid}'",
        ),
        (
            "fortio load -n 5 -qps 50 -L -compression -H X:1 -H X:2 -H User-Agent: -resolve 127.0.0.2 https://x/",
            "-t 2 -c 2 -n 5 -R 50 --timeout 3s -H 'X: 1' -H 'X: 2' -H 'Accept-Encoding: gzip' --follow=10 --resolve x:443:127.0.0.2 https://x/",
        ),
        (
            "fortio load -n 10 -t 4s -calc-qps -compression -content-type a/b -X PUT -http1.0 -resolve ::1 http://[::2]:81/",
            "-t 2 -c 4 -n 10 -R 2.5 --timeout 3s --method PUT -H 'Content-Type: a/b' -H 'User-Agent: fortio.org/fortio-1.75.3' --no-keepalive --http1.0 --resolve '[::2]:81:::1' 'http://[::2]:81/'",
        ),
        (
            "fortio load -qps 0 -http1.0 -stdclient -connection-reuse 7:7 -content-type a/b http://x/",
            "-t 2 -c 4 -d 5s --timeout 3s --method POST -H 'Content-Type: a/b' -H 'User-Agent: fortio.org/fortio-1.75.3' --requests-per-connection 7 http://x/",
        ),
        (
            "curl -H Accept: -H 'Content-Type:' -d x http://x/",
            "-t 2 -c 10 --timeout 10s -H 'User-Agent: curl/7.88.1' --body x http://x/",
        ),
    ]);
}

#[test]
fn commands_of_others_are_commands_of_ours() {
    are_translated(&[
        (
            "wrk -t4 -c100 -d30s http://x/",
            "-t 4 -c 100 -d 30s --timeout 2s http://x/",
        ),
        (
            "wrk --latency -c 1k https://x/",
            "-t 2 -c 1000 -d 10s --timeout 2s --insecure --latency https://x/",
        ),
        (
            "wrk2 -R2k -c10 -d1m -L http://x/",
            "-t 2 -c 10 -d 60s -R 2000 --timeout 2s --latency http://x/",
        ),
        (
            "hey http://x/",
            "-t 2 -c 50 -n 200 --timeout 20s -H 'Content-Type: text/html' -H 'User-Agent: hey/0.0.1' -H 'Accept-Encoding: gzip' --follow=9 http://x/",
        ),
        (
            "hey -z 1m30s -n 5 -c 10 -q 5 -m POST -d '{}' -T application/json http://x/",
            "-t 2 -c 10 -d 90s -R 50 --timeout 20s -H 'Content-Type: application/json' -H 'User-Agent: hey/0.0.1' -H 'Accept-Encoding: gzip' --follow=9 --body '{}' http://x/",
        ),
        (
            "hey -disable-keepalive -disable-redirects --cpus=1 http://x/",
            "-t 1 -c 50 -n 200 --timeout 20s -H 'Content-Type: text/html' -H 'User-Agent: hey/0.0.1' -H 'Accept-Encoding: gzip' --no-keepalive http://x/",
        ),
        (
            "ab -n 1000 -c 10 -k http://x/",
            "-t 2 -c 10 -n 1000 --timeout 30s -H 'User-Agent: ApacheBench/2.3' -H 'Accept: */*' --http1.0 http://x/",
        ),
        (
            "ab -kc10 -n20 x:80/",
            "-t 2 -c 10 -n 20 --timeout 30s -H 'User-Agent: ApacheBench/2.3' -H 'Accept: */*' --http1.0 http://x:80/",
        ),
        (
            "wrk -t4 -c100 -d30s -s x.lua http://x/ -- --users 5",
            "-t 4 -c 100 -d 30s --timeout 2s --script x.lua http://x/ -- --users 5",
        ),
        (
            "wrk2 -R 2k --script=y.lua x:80 a",
            "-t 2 -c 10 -d 10s -R 2000 --timeout 2s --script y.lua http://x:80 -- a",
        ),
        (
            "ab http://x/",
            "-t 1 -c 1 -n 1 --timeout 30s -H 'User-Agent: ApacheBench/2.3' -H 'Accept: */*' --no-keepalive --http1.0 http://x/",
        ),
        (
            "ab -t 5 -u f.txt http://x/",
            "-t 1 -c 1 -n 50000 -d 5s --timeout 30s --method PUT -H 'Content-Type: text/plain' -H 'User-Agent: ApacheBench/2.3' -H 'Accept: */*' --no-keepalive --http1.0 --body-file f.txt http://x/",
        ),
        (
            "oha -z 10s -q 100 -c 20 --http2 -p 4 http://x/",
            "-t 2 -c 20 -d 10s -R 100 --timeout 1h -H 'Accept: */*' -H 'User-Agent: oha/1.16.0' -H 'Accept-Encoding: gzip, compress, deflate, br' --streams 4 --http2 http://x/",
        ),
        (
            "h2load -n100 -c10 -m 8 http://x/",
            "-t 1 -c 10 -n 100 --timeout 1h -H 'User-Agent: h2load nghttp2/1.52.0' --streams 8 --http2 http://x/",
        ),
        (
            "h2load --h1 -D 5 -c10 -m 8 --rps=5 http://x/",
            "-t 1 -c 10 -d 5s -R 50 --timeout 1h -H 'User-Agent: h2load nghttp2/1.52.0' --pipeline 8 http://x/",
        ),
        (
            "echo 'GET http://x/' | vegeta attack -duration=5s -rate 3000/1m | tee r.bin | vegeta report",
            "-t 2 -c 100 -d 5s -R 50 --timeout 30s -H 'User-Agent: Go-http-client/1.1' -H 'Accept-Encoding: gzip' --follow=10 http://x/",
        ),
        (
            "echo 'PUT https://x/' | vegeta attack -duration=5s -rate=0 -max-workers=7 -session-tickets",
            "-t 1 -c 1 -d 5s --timeout 30s --method PUT -H 'User-Agent: Go-http-client/2.0' -H 'Accept-Encoding: gzip' --streams 7 --http2 --follow=10 https://x/",
        ),
        (
            "curl 'http://x/' -H 'Accept: */*' --data-raw '{\"a\":1}' -H 'Content-Type: application/json' --compressed",
            "-t 2 -c 10 --timeout 10s -H 'Content-Type: application/json' -H 'Accept: */*' -H 'User-Agent: curl/7.88.1' --body '{\"a\":1}' --compressed http://x/",
        ),
        (
            "vegeta attack -duration=5s -redirects -1 -targets x",
            "-t 2 -c 100 -d 5s -R 50 --timeout 30s --requests-file x",
        ),
        (
            "curl --max-redirs 3 -L http://x/",
            "-t 2 -c 10 --timeout 10s -H 'User-Agent: curl/7.88.1' -H 'Accept: */*' --follow=3 http://x/",
        ),
        (
            "curl -L http://x/",
            "-t 2 -c 10 --timeout 10s -H 'User-Agent: curl/7.88.1' -H 'Accept: */*' --follow=50 http://x/",
        ),
        (
            "curl -XDELETE -u user:password http://x/",
            "-t 2 -c 10 --timeout 10s --method DELETE -H 'Authorization: Basic dXNlcjpwYXNzd29yZA==' -H 'User-Agent: curl/7.88.1' -H 'Accept: */*' http://x/",
        ),
    ]);
}

#[test]
fn what_cannot_be_translated_is_named() {
    for (theirs, why) in [
        (
            "",
            "--from: `nothing` is none of the tools whose commands are known: wrk, wrk2, hey, ab, oha, h2load, vegeta, fortio, curl",
        ),
        ("siege -c 5", "--from: `siege` is none of the tools"),
        ("wrk -c10", "--from wrk: the command has no URL"),
        (
            "wrk --frobnicate http://x/",
            "--from wrk: `--frobnicate` is no flag of it that is known",
        ),
        ("wrk -c", "--from wrk: `-c` lacks its value"),
        (
            "wrk -c ten http://x/",
            "--from wrk: `-c ten`: `ten` is not a whole number",
        ),
        (
            "wrk http://x/ http://y/",
            "--from wrk: it has a second URL, `http://y/`",
        ),
        ("wrk2 http://x/", "--from wrk2: wrk2 needs -R"),
        (
            "oha --proxy-header 'X: 1' http://x/",
            "--from oha: `--proxy-header` cannot be translated: a proxy gets no headers",
        ),
        (
            "echo 'GET http://x/' | vegeta attack",
            "--from vegeta: without -duration vegeta never ends",
        ),
        (
            "echo 'GET http://x/\nGET http://y/' | vegeta attack -duration 1s",
            "--from vegeta: one target",
        ),
        (
            "vegeta report",
            "--from vegeta: `vegeta attack` is what is known of it",
        ),
        (
            "hey -n 3 http://x/",
            "--from hey: hey wants -n to be no less than -c",
        ),
        (
            "hey -h 'X-One: 1' http://x/",
            "--from hey: `-h` cannot be translated: hey has given it up",
        ),
        (
            "h2load -H ':path: /y' http://x/",
            "--from h2load: `-H :path: /y`: path and scheme are those of the URL",
        ),
        (
            "echo 'GET http://x/' | vegeta attack -duration 1s -rate infinity",
            "--from vegeta: `-rate infinity`: vegeta takes it and sends 50 a second",
        ),
        (
            "echo 'GET http://x/' | vegeta attack -duration 1s -rate 0",
            "--from vegeta: vegeta wants -max-workers with -rate 0",
        ),
        (
            "vegeta -cpus 2 report",
            "--from vegeta: `vegeta attack` is what is known of it",
        ),
        (
            "fortio load -connection-reuse 2:4 http://x/",
            "--from fortio: `-connection-reuse 2:4`: here it is one number for all connections",
        ),
        (
            "fortio load -calc-qps http://x/",
            "--from fortio: it wants -n and -t with -calc-qps",
        ),
        (
            "fortio load -t 0 http://x/",
            "--from fortio: with -t 0 Fortio never ends: give a length",
        ),
        (
            "fortio load tcp://x:80",
            "--from fortio: HTTP is what is sent, and not `tcp://x:80`",
        ),
        (
            "fortio curl http://x/",
            "--from fortio: `fortio load` is what is known of it",
        ),
        ("cat x | wrk http://x/", "--from: `cat x |` is for a shell"),
        (
            "wrk http://x/ | grep Req",
            "--from: `| grep Req` is for a shell",
        ),
        ("wrk 'http://x/", "--from: a quotation mark is never closed"),
        (
            "wrk http://x/ > x",
            "--from: `>` is for a shell: give the tool's command alone",
        ),
        ("wrk http://x/; x", "--from: `;` is for a shell"),
        ("wrk `x`", "--from: ``` is for a shell"),
        (
            "curl $'\\uZZZZ'",
            "--from: an escape in $'…' that is no character",
        ),
        (
            "hey -H nonsense http://x/",
            "--from hey: `-H nonsense`: it is no header",
        ),
    ] {
        let said = translated(theirs).expect_err(theirs);
        assert!(said.starts_with(why), "{theirs}: {said}");
    }
}

/// A command of `tool` with `flag` and what else it needs.
fn with(tool: &Tool, flag: &Flag) -> String {
    let name = flag.names().next().expect("a spelling");
    let value = match &*flag.1 {
        "" => String::new(),
        value => format!(" '{value}'"),
    };
    let url = if tool.name == "curl" && name == "--url" {
        ""
    } else {
        URL
    };
    match &*tool.name {
        "wrk2" => format!("wrk2 -R 100 {name}{value} {url}"),
        "oha" | "curl" if name == "--key" => {
            format!("{} --cert x {name}{value} {url}", tool.name)
        }
        "vegeta" if name == "-key" => {
            format!("echo 'GET {URL}' | vegeta attack -duration 5s -cert x {name}{value}")
        }
        "fortio" if name == "-key" => format!("fortio load -cert x {name}{value} {url}"),
        "fortio" if name == "-calc-qps" => format!("fortio load -n 5 {name} {url}"),
        "fortio" => format!("fortio load {name}{value} {url}"),
        "oha" => format!("oha --http2 {name}{value} {url}"),
        "ab" if name == "-T" => format!("ab -p x {name}{value} {url}"),
        "vegeta" => format!("echo 'GET {URL}' | vegeta attack -duration 5s {name}{value}"),
        name_of_tool => format!("{name_of_tool} {name}{value} {url}"),
    }
}

/// Each row of the tables, read and translated as the program would.
#[test]
fn each_row_that_is_ours_is_taken_and_each_other_is_refused_by_name() {
    let mut rows = 0;
    for tool in table::translated() {
        for flag in &tool.flags {
            let command = with(tool, flag);
            rows += 1;
            assert!(!flag.words().is_empty(), "{command}: it says nothing");
            match (flag.action().0, translated(&command)) {
                ("no", Err(why)) => {
                    assert!(why.contains("cannot be translated"), "{command}: {why}")
                }
                ("no", Ok(words)) => panic!("{command}: {words:?}"),
                (_, Err(why)) => panic!("{command}: {why}"),
                (_, Ok(words)) => {
                    // https is in no row, so that words for it alone are refused where the run is resolved, not here.
                    parsed(&words).unwrap_or_else(|error| panic!("{command}: {words:?}: {error}"));
                }
            }
        }
        let mut names: Vec<_> = tool.flags.iter().flat_map(Flag::names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}: a spelling stands twice", tool.name);
    }
    assert!(rows > 200, "{rows}");
}

#[test]
fn a_command_that_runs_a_script_says_where_its_counterpart_is() {
    for command in ["k6 run -u 5 x.js", "/usr/bin/locust -f x.py --headless"] {
        let why = translated(command).expect_err(command);
        assert!(why.contains("`prony docs scenarios`"), "{why}");
    }
}

/// Whatever a tool that is installed here lists as its flags is in its table.
#[test]
fn every_flag_of_an_installed_tools_help_is_in_its_table() {
    for (tool, word) in [
        ("wrk", "--help"),
        ("ab", "-h"),
        ("h2load", "--help"),
        ("hey", "-h"),
        ("oha", "--help"),
        ("fortio", "help"),
    ] {
        let Ok(output) = std::process::Command::new(tool).arg(word).output() else {
            continue;
        };
        let help = [output.stdout, output.stderr].concat();
        let help = String::from_utf8_lossy(&help).into_owned();
        let table = table::all()
            .iter()
            .find(|of| of.name == tool)
            .expect("a table");
        let mut seen = 0;
        for line in help.lines() {
            let line = line.trim_start();
            if !line.starts_with('-') {
                continue;
            }
            let line = line.replace('\t', "  ");
            let flags = line.split("  ").next().unwrap_or_default();
            let ends = |c: char| c.is_whitespace() || "=<[,".contains(c);
            for name in flags
                .split(ends)
                .filter(|word| word.len() > 1 && word.starts_with('-'))
            {
                // A rule between parts.
                if name.chars().all(|c| c == '-') {
                    continue;
                }
                seen += 1;
                assert!(table.flag(name).is_some(), "{tool}: {name} of `{line}`");
            }
        }
        assert!(seen > 5, "{tool}: {help}");
    }
}

#[test]
fn the_page_is_what_the_tables_say() {
    let file = prony_testkit::root().join(PAGE);
    let page = page();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(&file, &page).expect("the page is written");
    }
    let is = fs::read_to_string(&file).expect("the page");
    let differs = is
        .lines()
        .zip(page.lines())
        .position(|(is, should)| is != should);
    assert!(
        is == page,
        "{PAGE}:{:?} is not what the tables say; INSTA_UPDATE=always writes it anew",
        differs.map(|at| at + 1)
    );
}

fn arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn from_is_replaced_and_requirements_may_follow_each_other() {
    let expand = |words: &[&str]| {
        let (all, shown) = expanded(arguments(words)).expect("words");
        let all: Vec<String> = all
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        (all[1..].join(" "), shown)
    };
    let (all, shown) = expand(&[
        "prony",
        "load",
        "--from",
        "wrk -c6 http://x/",
        "--json",
        "-",
    ]);
    assert_eq!(all, "load -t 2 -c 6 -d 10s --timeout 2s http://x/ --json -");
    assert_eq!(
        shown.as_deref(),
        Some("prony load -t 2 -c 6 -d 10s --timeout 2s http://x/")
    );
    let (all, shown) = expand(&[
        "prony",
        "load",
        "--require",
        "p99 < 2ms",
        "rate>5",
        "http://x/",
        "max<1s",
    ]);
    assert_eq!(
        all,
        "load --require p99 < 2ms --require rate>5 http://x/ max<1s"
    );
    assert_eq!(shown, None);
    let (all, _) = expand(&["prony", "run", "--from", "x"]);
    assert_eq!(all, "run --from x");
    assert!(expanded(arguments(&["prony", "load", "--from"])).is_err());
}

#[test]
fn flags_of_another_tool_were_answered_with_every_tools_meaning_of_each_letter() {
    let looks =
        |words: &[&str]| super::looks_like(&arguments(&[&["prony", "load"], words].concat()));
    let said = looks(&["-z", "10s", "-q", "200", "-m", "POST", URL]).expect("hey's");
    assert!(said.starts_with("this looks like hey"), "{said}");
    assert!(
        said.contains("Run: prony load ") && said.contains(URL),
        "{said}"
    );
    assert!(
        said.contains(&format!("--from 'hey -z 10s -q 200 -m POST {URL}'")),
        "{said}"
    );
    // A shell takes it as it was typed.
    let said = looks(&["-z", "10s", "-H", "Accept: a b", "-m", "GET", URL]).expect("hey's");
    let (_, typed) = said.split_once("--from ").expect("as it was typed");
    let shell = std::process::Command::new("sh")
        .args(["-c", &format!("printf %s {typed}")])
        .output()
        .expect("a shell");
    let seen = String::from_utf8_lossy(&shell.stdout);
    assert_eq!(seen, format!("hey -z 10s -H 'Accept: a b' -m GET {URL}"));
    assert_eq!(looks(&["--frobnicate", URL]), None);
    assert_eq!(super::looks_like(&arguments(&["prony", "run", "-m"])), None);
}

#[test]
fn a_flag_of_another_tool_is_answered_with_ours() {
    let hint_at = |words: &[&str], wrong| {
        super::hint(&arguments(&[&["prony", "load"], words].concat()), wrong)
    };
    let hint = |words: &[&str]| hint_at(words, None);
    assert_eq!(
        hint(&["-m", "POST", URL]).as_deref(),
        Some(
            "prony: `-m` of hey, ab, oha: --method M; of h2load: --streams N with HTTP/2, else --pipeline N"
        )
    );
    assert_eq!(
        hint(&["-q", "5", URL]).as_deref(),
        Some(
            "prony: `-q` of hey: -R N, over all connections: -q times -c; of ab: nothing to do: progress is shown on a terminal only; of oha: -R N"
        )
    );
    assert_eq!(
        hint(&["-disable-redirects", URL]).as_deref(),
        Some("prony: `-disable-redirects` of hey: no --follow, which is there without it")
    );
    assert_eq!(
        hint(&["--max-workers=5", URL]).as_deref(),
        Some("prony: `--max-workers` of vegeta: -c N, the least of both")
    );
    assert_eq!(
        hint(&["--vus", "5", URL]).as_deref(),
        Some("prony: `--vus` of k6: -c N")
    );
    assert_eq!(hint(&["-c", "x", URL]), None);
    assert_eq!(hint(&["--frobnicate", URL]), None);
    assert_eq!(super::hint(&arguments(&["prony", "run", "-m"]), None), None);
    // Of the flags of a command that has a wrong value, only that which has it.
    let words = ["-d", "10s", "-q", "many", "--queue=0", URL];
    assert_eq!(hint_at(&words, Some("0")), None);
    let said = hint_at(&words, Some("many")).expect("a hint");
    assert!(
        said.starts_with("prony: `-q` of hey") && !said.contains("`-d`"),
        "{said}"
    );
}

/// What only the page says of a tool.
#[derive(serde::Deserialize)]
struct ToolRemarks {
    /// Version or source that the table is of.
    of: String,
    /// What a reader should know beside the table.
    remark: String,
}

/// The page that the tables are.
fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut said: BTreeMap<String, toml::Value> =
        toml::from_str(include_str!("tools.toml")).unwrap();
    let said: Vec<ToolRemarks> = said.remove("tool").unwrap().try_into().unwrap();
    for (tool, ToolRemarks { of, remark }) in table::all().iter().zip(said) {
        let name = &tool.name;
        text.push_str(&format!(
            "\n## {name}\n\n{of}. {remark}.\n\n| {name} | prony load |\n|---|---|\n"
        ));
        for flag in &tool.flags {
            let names: Vec<String> = flag.names().map(|name| format!("`{name}`")).collect();
            let here = flag.here().replace('|', "\\|");
            text.push_str(&format!("| {} | {here} |\n", names.join(", ")));
        }
    }
    text
}

const HEAD: &str = "# Coming from another load generator

<!-- Generated from crates/cli/src/load/from/tools.toml: INSTA_UPDATE=always cargo test -p prony-cli --lib load::from -->

`prony load --from` takes a command of another tool, prints ours, and runs it:

```sh
prony load --from 'wrk -t4 -c100 -d30s http://127.0.0.1:8080/hello'
prony load --from 'hey -z 10s -c 50 -q 20 http://127.0.0.1:8080/hello' --json report.json
prony load --from \"echo 'GET http://127.0.0.1:8080/hello' | vegeta attack -rate=200 -duration=10s | vegeta report\"
```

Flags of ours may follow. A status other than 2xx and 3xx makes the exit code 1 here, but for `--expect-status`; most of the others end with 0 whatever came. A flag that has no counterpart is an error that names it. What a tool does where no flag says otherwise is translated, too: its number of connections and
requests, its time-out, whether it keeps connections, and the headers that it sends by itself (what stands in `-H` of the translation, and was in no flag). [coming-from-wrk.md](coming-from-wrk.md) says in which figures wrk, wrk2 and this generator differ, and why.

The same flag often means different things. `prony load` takes the spellings of others where they do not contradict its own; where one is not taken, the error says what it is here:

```text
$ prony load -m POST http://127.0.0.1:8080/hello
error: unexpected argument '-m' found
…
prony: `-m` of hey, ab, oha: --method M; of h2load: --streams N with HTTP/2, else --pipeline N
```

The tables have every flag of each tool's `--help`; of curl's, those that describe a request. Each was held against the version that it names: against its `--help`, and by what it sent to a
listener beside what the translation of the same command sent (method, path, headers, body, number of requests and connections, redirects, failures). A test does that again with ab, h2load,
curl and wrk, and keeps what hey, oha, vegeta, Fortio and wrk2 sent. Not sent are `X-Vegeta-Seq` of vegeta and the `Referer` of Go's redirects. k6 and Locust run scripts, which are not translated: their tables are for `--scenario`, and
[scenarios.md](scenarios.md#coming-from-k6) has the same users in all three.
";
