//! Lua scripts of wrk's: they do to a server what they do to it under wrk, and each way in which one can fail is named.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{PRONY, folder, text};
use serde_json::Value;

/// Answers every request, and keeps what was asked: line, headers in order of their names, body.
struct LogServer {
    address: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl LogServer {
    fn start() -> LogServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let all = Arc::clone(&log);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let log = Arc::clone(&all);
                thread::spawn(move || converse(stream, &log));
            }
        });
        LogServer { address, log }
    }

    fn url(&self) -> String {
        format!("http://{}/start", self.address)
    }

    /// What was asked since the last call, without the server's own address, sorted.
    fn asked(&self) -> Vec<String> {
        let mut all = std::mem::take(&mut *self.log.lock().expect("no panic"));
        for one in &mut all {
            *one = one.replace(&self.address, "HOST");
        }
        all.sort();
        all
    }
}

fn converse(mut stream: TcpStream, log: &Mutex<Vec<String>>) {
    let mut pending = Vec::new();
    let mut bytes = [0; 4_096];
    loop {
        let Some(length) = whole(&pending) else {
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(length) => pending.extend_from_slice(&bytes[..length]),
            }
            continue;
        };
        let request: Vec<u8> = pending.drain(..length).collect();
        let request = String::from_utf8_lossy(&request).into_owned();
        let (head, body) = request.split_once("\r\n\r\n").expect("it is whole");
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default();
        let mut headers: Vec<&str> = lines.collect();
        headers.sort_unstable();
        let line = format!("{first} [{}] {body}", headers.join(", "));
        log.lock().expect("no panic").push(line);
        let status = match first.contains("/none") {
            true => "404 Not Found",
            false => "200 OK",
        };
        let answer = format!("HTTP/1.1 {status}\r\nX-Token: t-1\r\nContent-Length: 5\r\n\r\nHello");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The length of the request that `bytes` begin with, if it is whole.
fn whole(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("Content-Length: "));
    let length = end + length.map_or(0, |length| length.parse().expect("a length"));
    (bytes.len() >= length).then_some(length)
}

/// A script that ends by itself, how it is run, what the server then was asked, and the lines that it prints.
struct Example {
    name: &'static str,
    script: &'static str,
    threads: &'static str,
    args: &'static [&'static str],
    asked: fn() -> Vec<String>,
    printed: &'static [&'static str],
}

const PLAIN: &str = "[Host: HOST]";

/// Of thread `number`, which the script numbers by itself.
fn of_thread(number: u32) -> Vec<String> {
    (1..=5)
        .map(|n| format!("GET /thread/{number}/{n} HTTP/1.1 {PLAIN} "))
        .collect()
}

const EXAMPLES: &[Example] = &[
    Example {
        name: "counter",
        script: "
local made, answered = -1, 0
request = function()
   made = made + 1
   wrk.headers['X-Number'] = made
   return wrk.format(nil, '/count?n=' .. made)
end
function response()
   answered = answered + 1
   if answered == 20 then wrk.thread:stop() end
end",
        threads: "1",
        args: &[],
        // The first is made to see how many requests there are, and not sent.
        asked: || {
            (1..=20)
                .map(|n| format!("GET /count?n={n} HTTP/1.1 [Host: HOST, X-Number: {n}] "))
                .collect()
        },
        printed: &[],
    },
    Example {
        name: "post",
        script: "
wrk.method = 'POST'
wrk.body = 'name=value&other=\\195\\164'
wrk.headers['Content-Type'] = 'application/x-www-form-urlencoded'
local left = 6
response = function() left = left - 1 if left == 0 then wrk.thread:stop() end end",
        threads: "1",
        args: &[],
        asked: || {
            let headers = "Content-Length: 19, Content-Type: application/x-www-form-urlencoded, Host: HOST";
            vec![format!("POST /start HTTP/1.1 [{headers}] name=value&other=\u{e4}"); 6]
        },
        printed: &[],
    },
    Example {
        name: "token",
        script: "
local token, path, left = nil, '/login', 4
request = function() return wrk.format('GET', path) end
response = function(status, headers, body)
   if not token and status == 200 and body == 'Hello' then
      token = headers['X-Token']
      path = '/resource'
      wrk.headers['Authorization'] = 'Bearer ' .. token
      return
   end
   left = left - 1
   if left == 0 then wrk.thread:stop() end
end",
        threads: "1",
        args: &[],
        asked: || {
            let mut all = vec![format!("GET /login HTTP/1.1 {PLAIN} ")];
            let with = "GET /resource HTTP/1.1 [Authorization: Bearer t-1, Host: HOST] ";
            all.resize(5, with.to_owned());
            all
        },
        printed: &[],
    },
    Example {
        name: "replaced",
        script: "
local path, left = '/login', 3
request = function() return wrk.format('GET', path) end
response = function(status)
   response = function(status, headers, body)
      path = '/' .. headers['X-Token'] .. '/' .. body
      left = left - 1
      if left == 0 then wrk.thread:stop() end
   end
end",
        threads: "1",
        args: &[],
        asked: || {
            let each = ["/login", "/t-1/Hello"].map(|path| format!("GET {path} HTTP/1.1 {PLAIN} "));
            each.into_iter().flat_map(|line| vec![line; 2]).collect()
        },
        printed: &[],
    },
    Example {
        name: "pipeline",
        script: "
local all, left
init = function(args)
   local each = {}
   for i, path in ipairs({ '/a', '/b', '/c' }) do each[i] = wrk.format(nil, path) end
   all, left = table.concat(each), 9
end
request = function() return all end
response = function() left = left - 1 if left == 0 then wrk.thread:stop() end end",
        threads: "1",
        args: &[],
        asked: || {
            let each = ["/a", "/b", "/c"].map(|path| format!("GET {path} HTTP/1.1 {PLAIN} "));
            each.into_iter().flat_map(|line| vec![line; 3]).collect()
        },
        printed: &[],
    },
    Example {
        name: "threads",
        script: "
local threads = {}
function setup(thread)
   threads[#threads + 1] = thread
   thread:set('id', #threads)
   thread:set('plan', { last = 5 })
end
function init() made, answered = 0, 0 end
function request() made = made + 1 return wrk.format(nil, '/thread/' .. id .. '/' .. (wrk.thread:get('answered') + 1)) end
function response() answered = answered + 1 if answered == plan.last then wrk.thread:stop() end end
function done(summary, latency, requests)
   for i, thread in ipairs(threads) do
      print(('csv:%d,%d,%s'):format(i, thread:get('answered'), tostring(thread.addr):match(':') and 'addressed'))
   end
end",
        threads: "2",
        args: &[],
        asked: || (1..=2).flat_map(of_thread).collect(),
        printed: &["csv:1,5,addressed", "csv:2,5,addressed"],
    },
    Example {
        name: "delay",
        script: "
local left, waits = 5, 0
function delay() waits = waits + 1 return 2 end
function request() return wrk.format(nil, '/after/' .. waits) end
function response() left = left - 1 if left == 0 then wrk.thread:stop() end end",
        threads: "1",
        args: &[],
        asked: || {
            (1..=5)
                .map(|n| format!("GET /after/{n} HTTP/1.1 {PLAIN} "))
                .collect()
        },
        printed: &[],
    },
    Example {
        name: "report",
        script: "
local left = 10
function init(args)
   assert(args[0]:match('^http://') and #args == 2)
   wrk.path = '/' .. args[1] .. args[2]
end
function response(status) left = left - 1 if left == 0 then wrk.thread:stop() end end
function done(summary, latency, requests)
   local errors = summary.errors
   io.write(string.format('csv:%d,%d,%d,%d,%d,%d,%d\\n', summary.requests, summary.bytes, errors.connect, errors.read,
      errors.write, errors.status, errors.timeout))
   assert(summary.duration > 0 and latency.min > 0 and latency.min <= latency.mean and latency.mean <= latency.max)
   assert(latency:percentile(50) >= latency.min and latency:percentile(99) <= latency.max)
   local total = 0
   for i = 1, #latency do
      local value, count = latency(i)
      assert(value >= latency.min)
      total = total + count
   end
   print('csv:' .. total)
end",
        threads: "1",
        args: &["no", "ne"],
        asked: || vec![format!("GET /none HTTP/1.1 {PLAIN} "); 10],
        printed: &["csv:10,640,0,0,0,10,0", "csv:10"],
    },
];

/// Runs the script as `program` does, for up to `-d`.
fn run(program: &str, folder: &Path, server: &LogServer, example: &Example) -> Output {
    let file = format!("{}.lua", example.name);
    fs::write(folder.join(&file), example.script).expect("written");
    let mut command = Command::new(program);
    command.current_dir(folder).env_remove("PRONY_DRIVER");
    if program == PRONY {
        command.arg("load");
    }
    let threads = example.threads;
    command.args(["-s", &file, "-t", threads, "-c", threads, "-d"]);
    // wrk waits for the whole time, however early its threads stop.
    command.arg(if program == PRONY { "60s" } else { "5s" });
    command.arg(server.url()).arg("--").args(example.args);
    command.output().expect("it runs")
}

fn as_expected(program: &str, example: &Example) {
    let folder = folder(&format!("script-{}-{}", example.name, program.len()));
    let server = LogServer::start();
    let output = run(program, &folder, &server, example);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let name = example.name;
    let mut expected = (example.asked)();
    expected.sort();
    assert_eq!(server.asked(), expected, "{program} {name}: {out}{err}");
    let printed: Vec<&str> = out
        .lines()
        .filter(|line| line.starts_with("csv:"))
        .collect();
    assert_eq!(printed, example.printed, "{program} {name}: {out}{err}");
    let wanted = i32::from(program == PRONY && example.name == "report");
    assert_eq!(
        output.status.code(),
        Some(wanted),
        "{program} {name}: {out}{err}"
    );
    let count = expected.len();
    let counted = format!("sent {count} = completed {count} + failed 0 + in flight at the end 0");
    assert!(
        program != PRONY || out.contains(&counted),
        "{name}: {out}{err}"
    );
    let _ = fs::remove_dir_all(folder);
}

/// All at once, as they mostly wait.
fn all_as_expected(program: &'static str) {
    let one = |example: &'static Example| thread::spawn(move || as_expected(program, example));
    let all: Vec<_> = EXAMPLES.iter().map(one).collect();
    let failed: Vec<_> = all.into_iter().filter_map(|one| one.join().err()).collect();
    assert!(failed.is_empty(), "{} of them", failed.len());
}

#[test]
fn a_script_does_to_a_server_what_it_says() {
    all_as_expected(PRONY);
}

#[test]
fn a_script_does_the_same_under_wrk() {
    if prony_testkit::need("wrk").is_some() {
        all_as_expected("wrk");
    }
}

/// Runs a script that fails, with little time and memory; an empty one is not there.
fn failing(server: &LogServer, name: &str, script: &str, words: &[&str]) -> Output {
    let folder = folder(&format!("script-{name}"));
    if !script.is_empty() {
        fs::write(folder.join("x.lua"), script).expect("written");
    }
    let mut command = Command::new(PRONY);
    command.current_dir(&folder).env_remove("PRONY_DRIVER");
    command.args(["load", "-s", "x.lua", "-d", "60s"]);
    // Only what never returns is to run out of time, however busy the machine is.
    let is_endless = name.contains("loop") || name.contains("tail");
    let longest = if is_endless { "300ms" } else { "60s" };
    command.args(["--script-timeout", longest, "--script-memory", "16MiB"]);
    let output = command.args(words).arg(server.url()).output();
    let _ = fs::remove_dir_all(folder);
    output.expect("prony runs")
}

/// Scripts whose calls go wrong from the start, with what is said of them.
const AT_THE_START: &[(&str, &str, &str)] = &[
    ("missing", "", "cannot read the script x.lua: No such file"),
    (
        "syntax",
        "request = function( return",
        "the script failed: x.lua:1: ",
    ),
    ("top", "\nerror('top')", "the script failed: x.lua:2: top"),
    (
        "binary",
        "\u{7f}ELF\u{2}\u{1}",
        "the script failed: x.lua:1: ",
    ),
    (
        "compiled",
        "\u{1b}LJ\u{2}\n",
        "the script x.lua is compiled",
    ),
    (
        "setup",
        "function setup(t)\n t.x = 1\nend",
        "in setup(): x.lua:2: cannot set 'x' on a thread",
    ),
    (
        "function",
        "function setup(t) t:set('f', { f = print }) end",
        "x.lua:1: a function cannot be given to a thread",
    ),
    (
        "init",
        "function init()\n local x\n x.y = 1 end",
        "in init(): x.lua:3: attempt to index local 'x'",
    ),
    (
        "nil",
        "function request() end",
        "in request(): it returned nil, not a string",
    ),
    (
        "loop",
        "while true do end",
        "the script failed: x.lua:1: it did not return in time",
    ),
    (
        "loop-setup",
        "function setup()\n repeat until false end",
        "in setup(): x.lua:2: it did not return in time",
    ),
    (
        "loop-init",
        "function init() while true do pcall(error) end end",
        "in init(): x.lua:1: it did not return in time",
    ),
    (
        "memory",
        "local t = {}\nwhile true do t[#t + 1] = ('x'):rep(999) .. #t end",
        "x.lua:2: it needs more than the 16 MiB",
    ),
    (
        "many",
        "function setup(t)\n local x = {} for i = 1, 40 do x = { x, x } end\n t:set('x', x) end",
        "x.lua:3: a table with too many values cannot be given to a thread",
    ),
    (
        "exit",
        "\nos.exit(0)",
        "the script failed: x.lua:2: it called os.exit(0)",
    ),
];

#[test]
fn a_script_that_fails_at_the_start_is_a_usage_error_with_its_line() {
    let server = LogServer::start();
    thread::scope(|scope| {
        for &(name, script, why) in AT_THE_START {
            let server = &server;
            scope.spawn(move || {
                let output = failing(server, &format!("start-{name}"), script, &["-t2", "-c2"]);
                let said = text(&output.stderr);
                assert_eq!(output.status.code(), Some(2), "{name}: {said}");
                assert!(said.contains(why), "{name}: {said}");
            });
        }
    });
    assert_eq!(server.asked(), [""; 0]);
}

#[test]
fn a_script_that_says_when_requests_start_has_no_rate() {
    let server = LogServer::start();
    let delays = "function delay() return 1 end";
    let output = failing(&server, "rate", delays, &["-t1", "-c1", "-R10"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("delay() says when requests start, and so does --rate"),
        "{said}"
    );
    assert_eq!(server.asked(), [""; 0]);
}

#[test]
fn answers_behind_one_that_the_script_failed_at_are_not_completed() {
    let server = LogServer::start();
    let script = "function request() local one = wrk.format() return one .. one .. one end
function response() error('first') end";
    let output = failing(&server, "batch", script, &["-t1", "-c1", "--json", "-"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let counts = &report["counts"];
    let got = (&counts["sent"], &counts["completed"]);
    assert_eq!(got, (&3.into(), &0.into()), "{counts}");
}

type Case = (
    &'static str,
    &'static str,
    &'static str,
    (u64, u64),
    &'static str,
);

/// Scripts that go wrong after three answers: the name of a function that is called for each request, what it then does, how many
/// requests were sent and how many of them are completed, and what is said.
const IN_THE_RUN: &[Case] = &[
    (
        "error",
        "request",
        "local t t.x = 1",
        (3, 3),
        "request(), which ended the run: x.lua:3: attempt to index local 't'",
    ),
    (
        "exit",
        "request",
        "pcall(os.exit, 3)",
        (3, 3),
        "request(), which ended the run: x.lua:4: it called os.exit(3)",
    ),
    (
        "loop",
        "request",
        "while true do pcall(error) end",
        (3, 3),
        "request(), which ended the run: x.lua:3: it did not return in time",
    ),
    (
        "tail",
        "request",
        "local function f() return f() end f()",
        (3, 3),
        "x.lua:3: it did not return in time",
    ),
    (
        "memory",
        "request",
        "local t = 'x' while true do t = t .. t end",
        (3, 3),
        "it needs more than the 16 MiB that it may have",
    ),
    (
        "nil",
        "request",
        "return nil",
        (3, 3),
        "it returned nil, not a string",
    ),
    (
        "number",
        "request",
        "return 7",
        (3, 3),
        "it returned a number, not a string",
    ),
    (
        "incomplete",
        "request",
        "return 'GET / HTTP/1.1\\r\\nHost: x\\r\\n'",
        (3, 3),
        "no whole request: it has no empty line",
    ),
    (
        "short",
        "request",
        "return 'PUT / HTTP/1.1\\r\\nContent-Length: 2\\r\\n\\r\\nx'",
        (3, 3),
        "body is shorter than its Content-Length",
    ),
    (
        "malformed",
        "request",
        "return 'hello\\r\\n\\r\\n'",
        (3, 3),
        "first line is not `METHOD PATH HTTP/1.1`",
    ),
    (
        "more",
        "request",
        "return wrk.format() .. wrk.format()",
        (3, 3),
        "it returned more than 1 request, as it did first",
    ),
    (
        "error",
        "response",
        "error('no more')",
        (4, 3),
        "response(), which ended the run: x.lua:3: no more",
    ),
    (
        "table",
        "response",
        "error({})",
        (4, 3),
        "response(), which ended the run: x.lua:3: it raised a table",
    ),
    (
        "loop",
        "response",
        "local i = 0 while true do i = i + 1 end",
        (4, 3),
        "response(), which ended the run: x.lua:3: it did not",
    ),
    (
        "exit",
        "response",
        "os.exit(1)",
        (4, 3),
        "response(), which ended the run: x.lua:3: it called os.exit(1)",
    ),
    (
        "error",
        "delay",
        "error('wait')",
        (3, 3),
        "delay(), which ended the run: x.lua:3: wait",
    ),
    (
        "loop",
        "delay",
        "while true do end",
        (3, 3),
        "delay(), which ended the run: x.lua:3: it did not return in time",
    ),
    (
        "nil",
        "delay",
        "return nil",
        (3, 3),
        "it returned nil, not a number of milliseconds",
    ),
    (
        "negative",
        "delay",
        "return -1",
        (3, 3),
        "it returned -1, not a number of milliseconds",
    ),
    (
        "nan",
        "delay",
        "return 0/0",
        (3, 3),
        "it returned NaN, not a number of milliseconds",
    ),
];

#[test]
fn a_script_that_fails_in_the_run_ends_it_and_what_was_measured_is_printed() {
    type Case = (
        &'static str,
        &'static str,
        &'static str,
        (u64, u64),
        &'static str,
    );
    let one = |&(name, call, does, (sent, completed), why): &Case| {
        let usual = match call {
            "request" => "return wrk.format()",
            _ => "return 0",
        };
        // The first request is made before the run.
        let before = if call == "request" { -1 } else { 0 };
        let script = format!(
            "local n = {before}\nfunction {call}()\n n = n + 1 if n == 4 then {does} end\n {usual} end"
        );
        let server = LogServer::start();
        let output = failing(
            &server,
            &format!("{call}-{name}"),
            &script,
            &["-t1", "-c1", "--json", "-"],
        );
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{call} {name}: {said}");
        assert!(said.contains(why), "{call} {name}: {said}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let counts = &report["counts"];
        let got = (&counts["sent"], &counts["completed"]);
        assert_eq!(got, (&sent.into(), &completed.into()), "{call} {name}");
        let failure = report["script_failed"].as_str().unwrap_or_default();
        assert!(failure.contains(why), "{call} {name}: {failure}");
        assert_eq!(server.asked().len() as u64, sent, "{call} {name}");
    };
    thread::scope(|scope| {
        for case in IN_THE_RUN {
            scope.spawn(move || one(case));
        }
    });
}

#[test]
fn a_failing_done_fails_the_run_after_its_figures() {
    let ends = "local left = 3 function response() left = left - 1 if left == 0 then wrk.thread:stop() end end\n";
    for (name, does, why) in [
        (
            "error",
            "error('late')",
            "x.lua failed in done(): x.lua:2: late",
        ),
        (
            "loop",
            "while true do end",
            "x.lua failed in done(): x.lua:2: it did not return in time",
        ),
        (
            "exit",
            "os.exit(0)",
            "x.lua failed in done(): x.lua:2: it called os.exit(0)",
        ),
    ] {
        let server = LogServer::start();
        let script = format!("{ends}function done() print('said') {does} end");
        let output = failing(&server, &format!("done-{name}"), &script, &["-t1", "-c1"]);
        let out = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{name}: {out}");
        assert!(out.contains("sent 3 = completed 3 + failed 0"), "{out}");
        let (said, failure) = (out.find("\nsaid\n"), out.find(why));
        assert!(said.is_some() && said < failure, "{name}: {out}");
    }
}

/// A thread whose connections wait, as for an answer that never comes, does not outlast a failure of another.
#[test]
fn a_failure_ends_threads_that_wait() {
    let script = "
local number = 0
function setup(thread)
   number = number + 1
   thread:set('id', number)
   thread:set('plan', { words = { 'x', true, 1.5 } })
end
function init() assert(plan.words[1] == 'x' and plan.words[2] == true and plan.words[3] == 1.5) end
function delay() if id == 1 then return 3600000 end return 0 end
function response() error('enough') end";
    let server = LogServer::start();
    let output = failing(&server, "idle", script, &["-t2", "-c2"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("x.lua failed in response(), which ended the run: x.lua:10: enough"));
    assert!(out.contains("sent 1 = completed 0 + failed 1"), "{out}");
}
