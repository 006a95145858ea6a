//! Every subject is built, started, held against `subjects/CONTRACT.md` and
//! stopped. Takes minutes on the first time, so `./test` runs it as a step of its own:
//!
//!     cargo test --package prony-cli --test subjects

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Instant;

const PRONY: &str = env!("CARGO_BIN_EXE_prony");
/// Exit status of the scripts for a subject that this machine lacks something for.
const NOT_RUN: i32 = 3;

/// What is built here is asked what it does, not how fast: Rust's subjects are built in a
/// fraction of the time. (Each program, where it is measured, is built as its file says.)
const FAST_TO_BUILD: [(&str, &str); 4] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    ("PIP_NO_COMPILE", "1"),
];

/// What builds of subjects get here beside what their files say. What lies between Rust's sources and
/// its programs has one folder, so that a crate of one version is compiled once for all subjects.
fn build_environment() -> Vec<(&'static str, String)> {
    let between = prony_testkit::root().join(".prony/test-subjects/cargo");
    let mut all: Vec<(&str, String)> = FAST_TO_BUILD
        .map(|(name, value)| (name, value.to_owned()))
        .into();
    all.push(("CARGO_BUILD_BUILD_DIR", between.display().to_string()));
    let names: Vec<&str> = all.iter().map(|&(name, _)| name).collect();
    all.push(("PRONY_PASS_ENV", names.join(",")));
    all
}

/// What a script in `subjects` says of one of them. Its build is kept, and used by all scripts.
/// What it took is seen with `-- --show-output`.
fn holds(script: &str, subject: &str) {
    let Some(python) = prony_testkit::need("python3") else {
        return;
    };
    let root = prony_testkit::root();
    let build = root
        .join(".prony/test-subjects")
        .join(subject.replace('/', "-"));
    let began = Instant::now();
    let output = Command::new(python)
        .arg(root.join("subjects").join(script))
        .args([subject, "--prony", PRONY, "--build"])
        .arg(build)
        .envs(build_environment())
        .output()
        .expect("the script runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    eprintln!("{subject}: {:.1?} in all\n{text}", began.elapsed());
    match output.status.code() {
        Some(0) => {}
        // Builds print, too, before the line that says why.
        Some(NOT_RUN) => {
            let is_why = |line: &&str| line.contains(" not run: ");
            let why = text.lines().find(is_why).unwrap_or(&text);
            prony_testkit::skip_without(subject, why);
        }
        _ => panic!("{subject}:\n{text}"),
    }
}

fn holds_to_the_contract(subject: &str) {
    holds("try.py", subject);
}

/// Each work at several counts, on one thread and on two, in every build: the counts, the
/// bytes and the checksums; and what it must refuse.
fn does_its_works_as_agreed(subject: &str) {
    holds("programs.py", subject);
}

macro_rules! subjects {
    ($($name:ident: $subject:literal,)*) => {
        /// All that are tested here.
        const SUBJECTS: &[&str] = &[$($subject),*];
        $(#[test] fn $name() { holds_to_the_contract($subject); })*
    };
}

subjects! {
    c_lighttpd: "c/lighttpd",
    c_nginx: "c/nginx",
    cpp_beast: "cpp/beast",
    cpp_coroutines: "cpp/coroutines",
    cpp_drogon: "cpp/drogon",
    go_fasthttp: "go/fasthttp",
    go_goroutines: "go/goroutines",
    go_net_http: "go/net-http",
    lua_nginx_lua: "lua/nginx-lua",
    lua_openresty: "lua/openresty",
    lua_prony_host: "lua/prony-host",
    node_eventloop: "node/eventloop",
    node_express: "node/express",
    node_fastify: "node/fastify",
    python_asyncio: "python/asyncio",
    python_bjoern: "python/bjoern",
    python_fastapi: "python/fastapi",
    python_granian: "python/granian",
    python_gunicorn: "python/gunicorn",
    python_prony_wsgi: "python/prony-wsgi",
    python_uwsgi: "python/uwsgi",
    python_waitress: "python/waitress",
    rust_actix_web: "rust/actix-web",
    rust_axum: "rust/axum",
    rust_prony: "rust/prony",
    rust_tokio: "rust/tokio",
}

macro_rules! programs {
    ($($name:ident: $subject:literal,)*) => {
        /// Those of them that are programs. The works of rust/prony are tested with
        /// `prony bench`, whose words are its own.
        const PROGRAMS: &[&str] = &[$($subject),*];
        mod programs { $(#[test] fn $name() { super::does_its_works_as_agreed($subject); })* }
    };
}

programs! {
    cpp_coroutines: "cpp/coroutines",
    go_goroutines: "go/goroutines",
    node_eventloop: "node/eventloop",
    python_asyncio: "python/asyncio",
    rust_tokio: "rust/tokio",
}

/// What a client says, held against what its peer counted.
fn counts_as_its_peer_does(subject: &str) {
    // Without nginx they are held against a smaller server: still, but that is said.
    let _nginx = prony_testkit::need("nginx");
    holds("clients.py", subject);
}

macro_rules! clients {
    ($($name:ident: $subject:literal,)*) => {
        /// Those that are clients.
        const CLIENTS: &[&str] = &[$($subject),*];
        mod clients { $(#[test] fn $name() { super::counts_as_its_peer_does($subject); })* }
    };
}

clients! {
    c_ab: "c/ab",
    c_h2load: "c/h2load",
    c_wrk: "c/wrk",
    cpp_libcurl: "cpp/libcurl",
    go_hey: "go/hey",
    go_net_http_client: "go/net-http-client",
    node_undici: "node/undici",
    python_httpx: "python/httpx",
    rust_prony_client: "rust/prony-client",
    rust_prony_io: "rust/prony-io",
    rust_prony_load: "rust/prony-load",
    rust_reqwest: "rust/reqwest",
}

/// Tools of others, whose builds take minutes: only in the long tier. They are clients.
const FOREIGN: [&str; 1] = ["rust/oha"];

#[test]
fn foreign_tools_count_as_their_peer_does() {
    if !prony_testkit::long() {
        eprintln!("this belongs to the long tier: ./test long");
        return;
    }
    for subject in FOREIGN {
        counts_as_its_peer_does(subject);
    }
}

/// What a click counter answers and keeps, with every backend; and what stands around one.
fn keeps_what_it_counts(subject: &str) {
    holds("clicky.py", subject);
}

macro_rules! clicky {
    ($($name:ident: $subject:literal,)*) => {
        /// Click counters, backing services and fronts.
        const CLICKY: &[&str] = &[$($subject),*];
        mod clicky { $(#[test] fn $name() { super::keeps_what_it_counts($subject); })* }
    };
}

clicky! {
    backing_redis: "backing/redis",
    backing_valkey: "backing/valkey",
    front_haproxy: "front/haproxy",
    front_nginx: "front/nginx",
    front_nginx_close: "front/nginx-close",
    go_atreugo_clicky: "go/atreugo-clicky",
    python_fastapi_clicky: "python/fastapi-clicky",
    rust_actix_clicky: "rust/actix-clicky",
    rust_ntex_clicky: "rust/ntex-clicky",
    rust_prony_clicky: "rust/prony-clicky",
}

#[test]
fn a_counter_was_built_and_tried_before_redis_was_missed() {
    let Some(python) = prony_testkit::need("python3") else {
        return;
    };
    let root = prony_testkit::folder("no-redis");
    let commands = root.join("commands");
    fs::create_dir_all(&commands).expect("a folder");
    // All that the counter names as its needs, but no Redis.
    for command in ["cargo", "g++"] {
        prony_testkit::write_program(&commands.join(command), "#!/bin/sh\nexit 1\n");
    }
    let build = root.join("build");
    // What is on the path may be a script that looks for it.
    let asked = Command::new(python)
        .args(["-c", "import sys; print(sys.executable, end='')"])
        .output()
        .expect("it starts");
    let python = String::from_utf8(asked.stdout).expect("a path");
    let output = Command::new(python)
        .arg(prony_testkit::root().join("subjects/clicky.py"))
        .args(["rust/ntex-clicky", "--build"])
        .arg(&build)
        .env("PATH", &commands)
        .output()
        .expect("the script runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(NOT_RUN), "{output:?}");
    assert!(said.contains("not run: missing: redis-server"), "{said}");
    assert!(!build.exists(), "it was built");
}

#[test]
fn no_subject_is_left_out_here() {
    let [mut found, mut programs, mut clients, mut clicky] = [const { BTreeSet::new() }; 4];
    let root = prony_testkit::root().join("subjects");
    for language in fs::read_dir(&root)
        .expect("the subjects")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        // What others wrote is measured as it is, and held to nothing of ours.
        .filter(|entry| entry.file_name() != prony_lab::subject::ORIGINALS)
    {
        for subject in fs::read_dir(language.path()).expect("a language").flatten() {
            if let Ok(declared) = fs::read_to_string(subject.path().join("subject.toml")) {
                let name = subject
                    .path()
                    .strip_prefix(&root)
                    .expect("below")
                    .to_string_lossy()
                    .into_owned();
                let role = |role: &str| {
                    let wanted = format!("role = \"{role}\"");
                    declared.lines().any(|line| line == wanted)
                };
                if role("backing") || role("front") || name.ends_with("clicky") {
                    clicky.insert(name);
                    continue;
                }
                if role("client") {
                    clients.insert(name);
                    continue;
                }
                if role("program") {
                    programs.insert(name.clone());
                }
                found.insert(name);
            }
        }
    }
    let tested = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    };
    assert_eq!(found, tested(SUBJECTS));
    assert_eq!(programs, tested(PROGRAMS));
    assert_eq!(clients, tested(&[CLIENTS, &FOREIGN].concat()));
    assert_eq!(clicky, tested(CLICKY));
}

/// A subject whose build writes a line each time, of what it was built of.
const COUNTS_BUILDS: &str = r#"
name = "subject"
language = "any"
role = "program"
summary = "Knows how often it was built"
[needs]
commands = []
[build]
cmd = "echo \"$FLAVOUR\" | cat source - >> {build}/builds"
inputs = ["source"]
timeout_s = 20
[program]
cmd = ["echo", '{"measure": "m", "threads": {threads}, "count": {count}, "elapsed_ns": 1}']
works = ["m"]
[version]
cmd = "echo 1"
"#;

#[test]
fn what_is_built_is_not_built_again_of_the_same() {
    let Some(python) = prony_testkit::need("python3") else {
        return;
    };
    let root = prony_testkit::folder("counts-builds");
    let (subject, build) = (root.join("subject"), root.join("build"));
    fs::create_dir_all(&subject).expect("a folder");
    fs::write(subject.join("subject.toml"), COUNTS_BUILDS).expect("a file");
    let builds = |source: &str, flavour: &str| {
        fs::write(subject.join("source"), source).expect("a file");
        let output = Command::new(&python)
            .arg(prony_testkit::root().join("subjects/try.py"))
            .arg(&subject)
            .arg("--build")
            .arg(&build)
            .envs([("FLAVOUR", flavour), ("PRONY_PASS_ENV", "FLAVOUR")])
            .output()
            .expect("the script runs");
        assert!(output.status.success(), "{output:?}");
        let lines = fs::read_to_string(build.join("builds")).expect("it was built");
        lines.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(builds("one ", "a"), ["one a"]);
    assert_eq!(builds("one ", "a"), ["one a"]);
    assert_eq!(builds("two ", "a"), ["one a", "two a"]);
    assert_eq!(builds("two ", "b"), ["one a", "two a", "two b"]);
}

/// A subject whose file leaves out all that has a default, and that is built only where what its build
/// and its start look for holds.
const LEAVES_OUT: &str = r#"
name = "subject"
language = "any"
role = "server"
summary = "Leaves out what has a default"
endpoints = ["/ping", "/hello"]
[build]
cmd = "test \"$NAMED\" = here && test -z \"$RUSTFLAGS\""
inputs = []
[start]
cmd = ["sh", "-c", "test -z \"$NODE_OPTIONS\" && exec {prony} serve --port {port} --threads {threads}"]
[ready]
http = "/hello"
[version]
cmd = "{prony} --version"
"#;

/// What `try.py` says of it, with these variables.
fn tried(environment: &[(&str, &str)]) -> Option<String> {
    let python = prony_testkit::need("python3")?;
    let subject = prony_testkit::folder("leaves-out").join("subject");
    fs::create_dir_all(&subject).expect("a folder");
    fs::write(subject.join("subject.toml"), LEAVES_OUT).expect("a file");
    let output = Command::new(python)
        .arg(prony_testkit::root().join("subjects/try.py"))
        .arg(&subject)
        .args(["--prony", PRONY])
        .envs(environment.iter().copied())
        .output()
        .expect("the script runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn what_run_takes_a_default_for_try_does_not_crash_on_and_the_users_flags_stay_behind() {
    let flags = [
        ("RUSTFLAGS", "-x"),
        ("NODE_OPTIONS", "-x"),
        ("NAMED", "here"),
    ];
    let Some(said) = tried(&flags) else { return };
    assert!(said.contains("build ended with status 1"), "{said}");
    let named = [flags.as_slice(), &[("PRONY_PASS_ENV", "OTHER,NAMED")]].concat();
    let said = tried(&named).expect("it ran before");
    assert!(said.ends_with("subject ok\n"), "{said}");
}
