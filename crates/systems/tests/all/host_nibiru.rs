//! nibiru's own applications and tests on `prony host` with Lua 5.4, beside nibiru itself, which its user has built in an
//! unchanged checkout: `PRONY_ORIGINALS=DIR`, with `DIR/nibiru`. Where that is not, only what the documentation says is checked.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::common::{PATIENCE, SYSTEMS};
use crate::host::{Folder, Host, lua54, systems_with_lua54};

/// What every answer of Prony's has and none of nibiru's.
const EVERYWHERE: [&str; 2] = ["+content-length", "+date"];
const SAME: &str = "–";

/// A request, and in what the answers differ but for [`EVERYWHERE`]: as the documentation has it.
struct Case {
    app: &'static str,
    request: &'static str,
    differs: &'static str,
    reason: &'static str,
}

const fn case(
    app: &'static str,
    request: &'static str,
    differs: &'static str,
    reason: &'static str,
) -> Case {
    Case {
        app,
        request,
        differs,
        reason,
    }
}

const DOCS: &str = "docs.app:app";
const INTEGRATION: &str = "test.integration.test_app:app";
/// An application of the test's own that uses more of the framework.
const OWN: &str = "site.app:app";

const HEAD: &str = "to HEAD a server sends no body (RFC 9110, section 9.3.2)";
const METHOD: &str = "which methods there are is the application's to say, which answers 405";
const VERSION: &str = "clients with HTTP/1.0 are served";
const WHY: &str = "the body says what is wrong";
const FILE: &str = "text has its charset; a file can be asked for again and in parts";
const NO_FILE: &str = "other words; text has its charset";
const DROPPED: &str = "nibiru drops the headers that an application gives";

const CASES: &[Case] = &[
    case(DOCS, "GET / HTTP/1.1", SAME, ""),
    case(DOCS, "GET /slow HTTP/1.1", SAME, ""),
    case(DOCS, "GET /missing HTTP/1.1", SAME, ""),
    case(DOCS, "GET /slow/ HTTP/1.1", SAME, ""),
    case(DOCS, "POST / HTTP/1.1", SAME, ""),
    case(DOCS, "PUT /slow HTTP/1.1", SAME, ""),
    case(DOCS, "DELETE / HTTP/1.1", SAME, ""),
    case(DOCS, "PATCH / HTTP/1.1", SAME, ""),
    case(DOCS, "OPTIONS / HTTP/1.1", SAME, ""),
    case(DOCS, "HEAD / HTTP/1.1", "body", HEAD),
    case(
        DOCS,
        "GET /?a=b HTTP/1.1",
        "404 → 200, body",
        "a query is in QUERY_STRING, and no part of the path",
    ),
    case(
        DOCS,
        "GET /%73low HTTP/1.1",
        "404 → 200, body",
        "PATH_INFO has no percent-encoding (PEP 3333)",
    ),
    case(DOCS, "GET / HTTP/1.0", "505 → 200, body, version", VERSION),
    case(DOCS, "GET / HTTP/2.0", "body, +content-type", WHY),
    case(DOCS, "BREW / HTTP/1.1", "501 → 405, body", METHOD),
    case(DOCS, "get / HTTP/1.1", "501 → 405, body", METHOD),
    case(DOCS, " GET / HTTP/1.1", "body, +content-type", WHY),
    case(
        DOCS,
        "GARBAGE",
        "404 → 400, body, +content-type",
        "a line that is no request is none for the application",
    ),
    case(
        DOCS,
        "GET /static/test.txt HTTP/1.1",
        "+accept-ranges, content-type, +etag, +last-modified",
        FILE,
    ),
    case(
        DOCS,
        "GET /static/test.html HTTP/1.1",
        "+accept-ranges, content-type, +etag, +last-modified",
        FILE,
    ),
    case(
        DOCS,
        "HEAD /static/test.txt HTTP/1.1",
        "body, +accept-ranges, content-type, +etag, +last-modified",
        HEAD,
    ),
    case(
        DOCS,
        "POST /static/test.txt HTTP/1.1",
        "200 → 405, body, +allow, content-length, content-type",
        "a file is not posted to",
    ),
    case(
        DOCS,
        "GET /static/missing.txt HTTP/1.1",
        "body, content-type",
        NO_FILE,
    ),
    case(
        DOCS,
        "GET /static/../docs/app.lua HTTP/1.1",
        "body, content-type",
        NO_FILE,
    ),
    case(DOCS, "GET /static/ HTTP/1.1", "body, content-type", NO_FILE),
    case(
        DOCS,
        "GET /static HTTP/1.1",
        "404 → 301, body, +content-type, +location",
        "a directory without its slash is redirected to it",
    ),
    case(INTEGRATION, "GET / HTTP/1.1", "+content-type", DROPPED),
    case(INTEGRATION, "POST /any HTTP/1.1", "+content-type", DROPPED),
    case(OWN, "GET /users/ann/7 HTTP/1.1", SAME, ""),
    case(OWN, "GET /users/ann/x HTTP/1.1", SAME, ""),
    case(OWN, "GET /page HTTP/1.1", SAME, ""),
    case(OWN, "GET /markdown HTTP/1.1", SAME, ""),
    case(OWN, "GET /link HTTP/1.1", SAME, ""),
    case(OWN, "POST /made HTTP/1.1", SAME, ""),
    case(
        OWN,
        "GET /fails HTTP/1.1",
        "body, +content-type",
        "a page says that the application failed",
    ),
];

/// Numbers as only Lua 5.3 and later have them, templates, Markdown, names of routes.
const OWN_APP: &str = r##"
local Application = require("nibiru.application")
local Route = require("nibiru.route")
local Template = require("nibiru.template")
local http = require("nibiru.http")
local markdown = require("nibiru.markdown")

local app
local page = Template("<h1>{{ title }}</h1>{% for n in numbers %}<i>{{ n }}</i>{% endfor %}")

app = Application({
  Route("/users/{name:string}/{number:integer}", function(_, name, number)
    return http.ok(("%s %s %s %s"):format(name, number // 2, number / 2, math.type(number)))
  end, "user"),
  Route("/page", function()
    return http.ok(page({ title = "<Numbers>", numbers = { 1, 2.0, 1e15, 7 // 2.0 } }))
  end),
  Route("/markdown", function()
    return http.ok(markdown.parse("# Title\n\nText with **weight** and `code`.\n\n- one\n- two\n").html)
  end),
  Route("/link", function()
    return http.ok(app:url_for("user", "ann", 7))
  end),
  Route("/made", function()
    return http.Response(201, "made", "text/plain", { ["X-A"] = { "1" } })
  end, nil, { "POST" }),
  Route("/fails", function()
    error("on purpose")
  end),
})

return { app = app }
"##;

/// A line of the table in docs/host-interface.md.
fn row(case: &Case) -> String {
    let Case {
        app,
        request,
        differs,
        reason,
    } = case;
    let app = app.split(':').next().unwrap_or_default();
    format!("| {app} | `{request}` | {differs} | {reason} |")
}

#[test]
fn the_documentation_lists_each_difference_from_nibiru() {
    let file = prony_testkit::root().join("docs/host-interface.md");
    let text = fs::read_to_string(file).expect("the page");
    let missing: Vec<String> = CASES
        .iter()
        .map(row)
        .filter(|row| !text.lines().any(|line| line == row))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/host-interface.md lacks\n{}",
        missing.join("\n")
    );
    let counts = counts();
    assert!(
        text.contains(&counts),
        "docs/host-interface.md does not say: {counts}"
    );
}

/// A copy of a checkout of nibiru in which its user has built it, which stays as it is.
struct Original {
    folder: Folder,
}

impl Original {
    fn copy() -> Option<Original> {
        let skip = |why: &str| {
            prony_testkit::skip_without("host/nibiru", why);
            None
        };
        let Some(originals) = std::env::var_os("PRONY_ORIGINALS") else {
            return skip("PRONY_ORIGINALS names no folder (subjects/CONTRACT.md, Originals)");
        };
        let checkout = Path::new(&originals).join("nibiru");
        let needed = ["lua/nibiru/application.lua", "nibiru", "lua/nibiru_core.so"];
        if let Some(missing) = needed.iter().find(|file| !checkout.join(file).is_file()) {
            return skip(&format!("`nibiru/{missing}` is not in PRONY_ORIGINALS"));
        }
        let folder = Folder::new();
        succeeds(Command::new("cp").arg("-r").arg(&checkout).arg(&folder.0));
        let original = Original { folder };
        for (file, text) in [
            ("app.lua", OWN_APP),
            (
                "config.lua",
                "return { templates = { directory = 'docs/templates' } }",
            ),
        ] {
            let file = original.root().join("site").join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            fs::write(file, text).expect("written");
        }
        Some(original)
    }

    fn root(&self) -> PathBuf {
        self.folder.0.join("nibiru")
    }

    /// A program that finds nibiru's framework and its module in C as nibiru's own server does.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env("LUA_PATH", "./lua/?.lua;./?.lua;;")
            .env("LUA_CPATH", "./lua/?.so;;");
        command
    }

    fn serve(&self, app: &str) -> Running {
        let port = prony_testkit::free_port();
        let mut command = self.command("./nibiru");
        command
            .args([
                "run",
                "--workers",
                "1",
                "--static",
                "tests/data/static",
                app,
            ])
            .arg(port.to_string())
            .stdout(Stdio::null())
            .process_group(0);
        let process = command.spawn().expect("nibiru starts");
        let running = Running { process, port };
        let due = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < due, "nibiru does not listen");
            std::thread::yield_now();
        }
        running
    }

    fn host(&self, app: &str) -> Host {
        let mut command =
            systems_with_lua54(&["host", "--lua", "5.4", "--static", "tests/data/static"]);
        command
            .current_dir(self.root())
            .args(["--path", "lua", "--path", ".", app, "0"]);
        Host::start_command(command)
    }
}

fn succeeds(command: &mut Command) {
    let Output { status, stderr, .. } = command.output().expect("it starts");
    assert!(
        status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&stderr)
    );
}

/// nibiru's processes, of which the one for files does not hear SIGTERM.
struct Running {
    process: Child,
    port: u16,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        let _ = self.process.wait();
        let _ = fs::remove_file(format!("/tmp/nibiru_static_{}.sock", self.process.id()));
    }
}

/// An answer, as it came.
struct Seen {
    version: String,
    status: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// Sends a request, and reads until the server closes.
fn exchange(port: u16, line: &str) -> Seen {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let request = format!("{line}\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{line}: {answer:?}"));
    let (first, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let (version, status) = first.split_once(' ').expect("a status line");
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").expect("a header");
        (name.to_ascii_lowercase(), value.to_owned())
    };
    Seen {
        version: version.to_owned(),
        status: status.to_owned(),
        headers: headers.lines().map(header).collect(),
        body: body.to_owned(),
    }
}

/// In what `here` differs from `there`: as the table has it.
fn differences(there: &Seen, here: &Seen) -> String {
    let mut found = Vec::new();
    if there.status != here.status {
        let code = |seen: &Seen| seen.status.split(' ').next().unwrap_or_default().to_owned();
        found.push(format!("{} → {}", code(there), code(here)));
    }
    if there.body != here.body {
        found.push("body".to_owned());
    }
    if there.version != here.version {
        found.push("version".to_owned());
    }
    let names: BTreeSet<&String> = there
        .headers
        .iter()
        .chain(&here.headers)
        .map(|(name, _)| name)
        .collect();
    for name in names {
        let of = |seen: &Seen| {
            let values = seen.headers.iter().filter(|(its, _)| its == name);
            values.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        let difference = match (of(there), of(here)) {
            (there, here) if there == here => continue,
            (there, _) if there.is_empty() => format!("+{name}"),
            (_, here) if here.is_empty() => format!("-{name}"),
            _ => name.clone(),
        };
        // The server closes because it was asked to.
        if !EVERYWHERE.contains(&&*difference) && difference != "+connection" {
            found.push(difference);
        }
    }
    match found.is_empty() {
        true => SAME.to_owned(),
        false => found.join(", "),
    }
}

#[test]
fn applications_of_nibiru_are_answered_for_as_nibiru_does_but_for_what_is_listed() {
    let Some(original) = Original::copy() else {
        return;
    };
    let mut wrong = Vec::new();
    for app in [DOCS, INTEGRATION, OWN] {
        let (there, here) = (original.serve(app), original.host(app));
        for case in CASES.iter().filter(|case| case.app == app) {
            let theirs = exchange(there.port, case.request);
            let ours = exchange(here.port, case.request);
            assert!(
                !theirs.body.is_empty() || theirs.status != "200 OK",
                "{}: nibiru says nothing",
                case.request
            );
            let has = |name: &str| ours.headers.iter().any(|(its, _)| its == name);
            assert!(has("date") && has("content-length"), "{}", case.request);
            let differs = differences(&theirs, &ours);
            if differs != case.differs {
                wrong.push(format!(
                    "{app} {}: {differs}; listed is {}",
                    case.request, case.differs
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    println!("{}", counts());
}

fn counts() -> String {
    let same = CASES.iter().filter(|case| case.differs == SAME).count();
    format!(
        "{} requests, of which {same} are answered the same",
        CASES.len()
    )
}

/// Runs each function of each table that a file of nibiru's `tests` returns, and prints which failed.
const RUNNER: &str = r#"
local out, count = io.stdout, 0
for file in io.popen("find tests -name 'test_*.lua' | sort"):lines() do
  local tests, names = dofile(file), {}
  for name in pairs(tests) do
    names[#names + 1] = name:match("^test_") and name or nil
  end
  table.sort(names)
  for _, name in ipairs(names) do
    count = count + 1
    if not pcall(tests[name]) then
      out:write(("failed: %s %s\n"):format(file, name))
    end
  end
end
out:write(("run: %d\n"):format(count))
"#;

/// Where Debian, or who installs them with LuaRocks, has the modules that nibiru's tests are written with.
fn assertions() -> Option<String> {
    let places = ["5.1", "5.4"].map(|version| format!("/usr/share/lua/{version}"));
    let more = ["5.4".to_owned()].map(|version| format!("/usr/local/share/lua/{version}"));
    let mut places = places.into_iter().chain(more);
    places.find(|place| Path::new(place).join("luassert/init.lua").is_file())
}

#[test]
fn nibirus_own_tests_end_as_they_do_by_lua_itself() {
    let Some(original) = Original::copy() else {
        return;
    };
    let (Some(lua), Some(assertions)) = (prony_testkit::find("lua5.4"), assertions()) else {
        return prony_testkit::skip_without(
            "host/nibiru",
            "nibiru's tests need lua5.4 and luassert: apt-get install lua5.4 lua-luassert",
        );
    };
    let runner = original.folder.write("run.lua", RUNNER);
    let run = |program: &Path, words: &[&str]| {
        let path = format!("./lua/?.lua;./?.lua;{assertions}/?.lua;{assertions}/?/init.lua;;");
        let mut command = original.command(program);
        command
            .args(words)
            .arg(&runner)
            .env("LUA_PATH", path)
            .env("PRONY_LUA54", lua54());
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("it starts");
        assert!(
            status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&stderr)
        );
        // Some of the tests print, too, and what they print is in no order.
        let text = String::from_utf8(stdout).expect("text");
        let told = text
            .lines()
            .filter(|line| line.starts_with("failed: ") || line.starts_with("run: "));
        told.map(|line| format!("{line}\n")).collect::<String>()
    };
    let theirs = run(&lua, &[]);
    let ours = run(Path::new(SYSTEMS), &["lua", "--lua", "5.4"]);
    assert_eq!(ours, theirs);
    // The one that may fail reads a file that nobody may read, which root may.
    let failed = ours
        .lines()
        .filter(|line| line.starts_with("failed: "))
        .count();
    assert!(
        failed <= usize::from(rustix::process::geteuid().is_root()),
        "{ours}"
    );
    assert!(ours.ends_with("run: 413\n"), "{ours}");
}
