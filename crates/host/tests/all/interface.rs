//! The interface on real sockets: what `docs/host-interface.md` says, from the bytes of a
//! request to the bytes of its answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::common::{body, get, serve, serve_as, talk};

const DUMP: &str = r#"
local function app(environ, start_response)
  local lines = {}
  for key, value in pairs(environ) do
    if type(value) ~= "table" then lines[#lines + 1] = key .. "=" .. tostring(value) .. "\n" end
  end
  table.sort(lines)
  lines[#lines + 1] = "body=" .. environ["wsgi.input"]:read()
  start_response("200 OK", {})
  return lines
end
return {app = app}
"#;

#[test]
fn an_environ_has_every_key_and_no_other() {
    let request = "POST /a%20b/%2e%zz?q=%41&r HTTP/1.1\r\nHost: h:1\r\nX-Twice: 1\r\nCookie: a=1\r\n\
         x-twice: 2\r\nCOOKIE: b=2\r\nX_Under: 3\r\nContent-Type: text/x\r\n\
         Content-Length: 3\r\nConnection: close\r\n\r\nabc";
    let (port, answers) = serve("keys", DUMP, move |address| {
        let answers = [1, 7, usize::MAX]
            .map(|write| talk(address, request.as_bytes(), write).expect("an answer"));
        (address.port(), answers)
    });
    for answer in answers {
        let lines = body(&answer).lines().collect::<Vec<_>>();
        let client = lines.iter().find(|line| line.starts_with("REMOTE_PORT="));
        let client = client.expect("the client's port");
        let server = format!("SERVER_PORT={port}");
        let wanted = [
            "CONTENT_LENGTH=3",
            "CONTENT_TYPE=text/x",
            "HTTP_CONNECTION=close",
            "HTTP_COOKIE=a=1; b=2",
            "HTTP_HOST=h:1",
            "HTTP_X_TWICE=1, 2",
            "PATH_INFO=/a b/.%zz",
            "QUERY_STRING=q=%41&r",
            "REMOTE_ADDR=127.0.0.1",
            client,
            "REQUEST_METHOD=POST",
            "REQUEST_URI=/a%20b/%2e%zz?q=%41&r",
            "SCRIPT_NAME=",
            "SERVER_NAME=127.0.0.1",
            &server,
            "SERVER_PROTOCOL=HTTP/1.1",
            "wsgi.multiprocess=false",
            "wsgi.multithread=false",
            "wsgi.run_once=false",
            "wsgi.url_scheme=http",
            "body=abc",
        ];
        assert_eq!(lines, wanted);
    }
}

#[test]
fn more_header_names_than_are_kept_are_all_given() {
    let answers = serve("names", DUMP, |address| {
        let ask = |round: usize| {
            let mut request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n".to_owned();
            for number in 0..45 {
                for value in ["x", "y"] {
                    request.push_str(&format!("N-{round}-{}: {value}\r\n", number));
                }
            }
            talk(address, (request + "\r\n").as_bytes(), usize::MAX).expect("an answer")
        };
        [0, 1, 2, 3, 4, 5, 6, 7].map(ask)
    });
    for (round, answer) in answers.iter().enumerate() {
        assert!(
            answer.contains(&format!("HTTP_N_{round}_44=x, y\n")),
            "{answer}"
        );
    }
}

#[test]
fn bodies_come_whole_however_they_are_framed() {
    let long = "0123456789abcdef".repeat(65_536);
    let sent = long.clone();
    let (empty, chunked, large) = serve("bodies", DUMP, move |address| {
        let chunks = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
        let head = format!(
            "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            sent.len()
        );
        (
            get(address, "/").expect("an answer"),
            talk(address, chunks.as_bytes(), 1).expect("an answer"),
            talk(address, (head + &sent).as_bytes(), 100_000).expect("an answer"),
        )
    });
    assert!(empty.ends_with("\nbody="));
    assert!(chunked.ends_with("\nbody=abcdefg") && chunked.contains("\nCONTENT_LENGTH=7\n"));
    assert!(!chunked.contains("TRANSFER_ENCODING"));
    assert!(large.ends_with(&format!("\nbody={long}")));
}

const KINDS: &str = r#"
local kinds, closed = {}, 0
kinds["/table"] = function() return {"a", "", "b"} end
kinds["/text"] = function() return "ab" end
kinds["/nothing"] = function() return {} end
kinds["/ipairs"] = function() return ipairs({"a", "b"}) end
kinds["/wrap"] = function()
  return coroutine.wrap(function() coroutine.yield("a") coroutine.yield("") coroutine.yield("b") end)
end
local Object = {__call = function(self) self.n = self.n + 1 return ({"a", "b"})[self.n] end}
Object.__index = {close = function() closed = closed + 1 end}
kinds["/object"] = function() return setmetatable({n = 0}, Object) end
kinds["/broken"] = function()
  return setmetatable({n = 0}, {__index = Object.__index, __call = function(self)
    self.n = self.n + 1
    if self.n == 2 then error("in the middle") end
    return "a"
  end})
end
kinds["/listclose"] = function() return {"ab", close = function() closed = closed + 1 end} end
kinds["/closed"] = function() return {tostring(closed)} end
kinds["/nil"] = function() return nil end
kinds["/number"] = function() return {"a", 2} end
kinds["/error"] = function() error("at once") end
kinds["/object-error"] = function() error({}) end
local function app(environ, start_response)
  local path = environ.PATH_INFO
  if path == "/crlf" then
    start_response("200 OK", {{"X-A", "a\r\nX-B: c"}})
  elseif path == "/hop" then
    start_response("200 OK", {Connection = "close"})
  elseif path == "/unstarted" then
    return {"a"}
  elseif path == "/twice" then
    start_response(200, {})
    start_response(200, {})
  elseif path == "/replaced" then
    start_response(200, {["X-A"] = "1"})
    start_response("404 Not Any More", {}, "because")
    return {"ab"}
  elseif path == "/write" then
    local write = start_response(200, {})
    write("a")
    return {"b"}
  elseif path == "/long" or path == "/short" then
    start_response(200, {["Content-Length"] = path == "/long" and "1" or "3"})
    return coroutine.wrap(function() coroutine.yield("a") coroutine.yield("b") end)
  elseif path == "/lie" then
    start_response(200, {["Content-Length"] = 7})
    return {"ab"}
  end
  start_response("200 OK", {["Set-Cookie"] = {"a=1", "b=2"}})
  return kinds[path]()
end
return {app = app, bad = 3}
"#;

#[test]
fn every_kind_of_body_is_sent_as_the_interface_says() {
    serve("kinds", KINDS, |address| {
        let ask = |path: &str| get(address, path).unwrap_or_else(|| panic!("{path}: reset"));
        for path in ["/table", "/text", "/write", "/replaced", "/listclose"] {
            let answer = ask(path);
            assert!(answer.contains("content-length: 2\r\n"), "{path}: {answer}");
            assert_eq!(body(&answer), "ab", "{path}");
        }
        assert!(
            ask("/replaced").starts_with("HTTP/1.1 404 Not Any More\r\n")
                && !ask("/replaced").contains("X-A")
        );
        assert!(ask("/nothing").contains("content-length: 0\r\n"));
        let cookies = ask("/table");
        assert!(
            cookies.contains("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"),
            "{cookies}"
        );
        for path in ["/wrap", "/object"] {
            let answer = ask(path);
            assert!(
                answer.contains("transfer-encoding: chunked\r\n"),
                "{path}: {answer}"
            );
            assert_eq!(body(&answer), "1\r\na\r\n1\r\nb\r\n0\r\n\r\n", "{path}");
        }
        // Twice of /listclose and once of /object; a body that breaks is closed, too.
        assert_eq!(body(&ask("/closed")), "2");
        assert_eq!(
            get(address, "/broken").filter(|answer| answer.ends_with("0\r\n\r\n")),
            None
        );
        assert_eq!(body(&ask("/closed")), "3");
        let head = "HEAD /table HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        let head = talk(address, head.as_bytes(), usize::MAX).expect("an answer");
        assert!(head.contains("content-length: 2\r\n") && body(&head).is_empty());
        let old = talk(address, b"GET /wrap HTTP/1.0\r\n\r\n", usize::MAX).expect("an answer");
        assert_eq!(body(&old), "ab");
    });
}

#[test]
fn errors_before_the_head_are_answered_with_file_and_line() {
    serve("errors", KINDS, |address| {
        for (path, text) in [
            ("/nil", "site.lua:26: the application returned nil"),
            ("/number", "value 2 is a number, not a string"),
            ("/error", "site.lua:24: at once"),
            ("/object-error", "(the error is a table without __tostring)"),
            (
                "/crlf",
                "site.lua:29: start_response: the value of the header `X-A`",
            ),
            (
                "/hop",
                "site.lua:31: start_response: the header `Connection`",
            ),
            (
                "/unstarted",
                "site.lua:26: the application returned without having called",
            ),
            (
                "/twice",
                "site.lua:36: start_response was called a second time",
            ),
            ("/lie", "announced a body of 7 bytes, and gave 2"),
        ] {
            let answer = get(address, path).unwrap_or_else(|| panic!("{path}: reset"));
            assert!(answer.starts_with("HTTP/1.1 500 "), "{path}: {answer}");
            assert!(answer.contains(text), "{path}: {answer}");
            let is_in_lua = !matches!(path, "/number" | "/lie");
            assert_eq!(
                answer.contains("stack traceback:"),
                is_in_lua,
                "{path}: {answer}"
            );
        }
        // These break off after the head: nobody can take them for whole.
        for path in ["/long", "/short", "/broken"] {
            assert_eq!(get(address, path), None, "{path}");
        }
        assert!(get(address, "/text").is_some_and(|answer| answer.ends_with("ab")));
    });
}

#[test]
fn what_cannot_be_loaded_is_told_with_file_and_line() {
    for (text, application, wanted) in [
        (KINDS, "nix:app", "there is no module `nix`"),
        (KINDS, "site", "names no application"),
        (
            KINDS,
            "site:nope",
            "site.lua:55: what module `site` returns has no `nope`",
        ),
        (KINDS, "site:bad", "site.lua:55: `bad` is the number 3"),
        ("local x =\n", "site:app", "site.lua:"),
        ("\nerror('no start')", "site:app", "site.lua:2: no start"),
    ] {
        let error = serve_as("load", text, application, |_| ()).expect_err("no application");
        assert!(error.0.contains(wanted), "{application}: {error}");
    }
}

const ENDS: &str = r#"
local has_ffi, ffi = pcall(require, "ffi")
local closed = {}
local function count(name) closed[name] = (closed[name] or 0) + 1 end
local pages = {}
if has_ffi then
ffi.cdef("typedef struct { int left; } prony_test_body; typedef struct { int left; } prony_test_bare;")
local function give(self)
  self.left = self.left - 1
  if self.left >= 0 then return "a" end
end
local Body = ffi.metatype("prony_test_body", {__call = give, __index = {close = function() count("cdata") end}})
local Bare = ffi.metatype("prony_test_bare", {__call = give})
pages["/cdata"] = function() return Body(2) end
pages["/bare"] = function() return Bare(2) end
end
pages["/userdata"] = function()
  local body, left = newproxy and newproxy(true) or debug.setmetatable(io.tmpfile(), {}), 3
  getmetatable(body).__call = function()
    left = left - 1
    if left > 0 then return "a" end
  end
  return body
end
local function endless(name, piece)
  return setmetatable({}, {
    __index = {close = function() count(name) end},
    __call = function() return piece() end,
  })
end
pages["/endless"] = function()
  local text = ("x"):rep(65536)
  return endless("endless", function() return text end)
end
pages["/silent"] = function()
  local first = "a"
  return endless("silent", function()
    local piece = first
    first = ""
    return piece
  end)
end
pages["/reraised"] = function(start_response)
  local step = 0
  return function()
    step = step + 1
    if step == 2 then start_response("500 No", {}, "raised again") end
    return "a"
  end
end
local function app(environ, start_response)
  local path = environ.PATH_INFO
  if path == "/unstarted" then
    return {"a", close = function() count("unstarted") end}
  elseif path == "/half" then
    local fine = pcall(start_response, "200 OK", {{"X-A", "1"}, {"X-B", "a\nb"}})
    return {tostring(fine)}
  elseif path == "/kept" then
    start_response("200 OK", {{"X-A", "1"}})
    pcall(start_response, "500 No", {{"X-C", "1"}, {"X-B", "a\nb"}}, "trouble")
    return {"kept"}
  elseif path == "/memory-text" then
    error("the client says: not enough memory", 0)
  elseif path:sub(1, 8) == "/closed/" then
    start_response(200)
    return {tostring(closed[path:sub(9)])}
  end
  start_response(200)
  return pages[path](start_response)
end
return {app = app}
"#;

/// Asks until the answer's body is this.
fn wait_for(address: SocketAddr, path: &str, wanted: &str) {
    let due = Instant::now() + Duration::from_secs(60);
    while body(&get(address, path).expect("an answer")) != wanted {
        assert!(Instant::now() < due, "{path} does not become {wanted}");
    }
}

const LISTED: &str = r#"
local kinds, closed = {}, 0
kinds["/several"] = function() return ipairs({"a", "b"}) end
kinds["/one"] = function() return ipairs({"ab"}) end
kinds["/none"] = function() return ipairs({}) end
kinds["/nil"] = function() return ipairs({"ab", nil, "c", nil, nil, "d"}) end
kinds["/close"] = function() return ipairs({"ab", close = function() closed = closed + 1 end}) end
kinds["/closed"] = function() return {tostring(closed)} end
kinds["/number"] = function() return ipairs({"a", 2}) end
-- Not from the first on, and not as `ipairs` has it.
kinds["/from"] = function()
  local step, state = ipairs({"-", "a", "b"})
  return step, state, 1
end
kinds["/own"] = function()
  return function(list, n) return list[n + 1] and n + 1, list[n + 1] end, {"a", "b"}, 0
end
local function app(environ, start_response)
  start_response("200 OK", {})
  return kinds[environ.PATH_INFO]()
end
return {app = app}
"#;

#[test]
fn a_list_that_ipairs_goes_through_went_in_chunks() {
    serve("listed", LISTED, |address| {
        let ask = |path: &str| get(address, path).unwrap_or_else(|| panic!("{path}: reset"));
        for path in ["/several", "/one", "/nil", "/close"] {
            let answer = ask(path);
            assert!(answer.contains("content-length: 2\r\n"), "{path}: {answer}");
            assert_eq!(body(&answer), "ab", "{path}");
        }
        assert!(ask("/none").contains("content-length: 0\r\n"));
        assert!(ask("/number").contains("value 2 is a number, not a string"));
        // `ipairs` does not return the table: its `close` is nobody's.
        assert_eq!(body(&ask("/closed")), "0");
        for path in ["/from", "/own"] {
            let answer = ask(path);
            assert_eq!(body(&answer), "1\r\na\r\n1\r\nb\r\n0\r\n\r\n", "{path}");
        }
        let head = "HEAD /several HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        let head = talk(address, head.as_bytes(), usize::MAX).expect("an answer");
        assert!(head.contains("content-length: 2\r\n") && body(&head).is_empty());
    });
}

#[test]
fn every_body_that_has_a_close_is_closed_once() {
    serve("ends", ENDS, |address| {
        // Values of the FFI, which Lua 5.4 has not.
        let has_ffi = prony_host::LUA == "LuaJIT";
        let of_ffi = ["/cdata", "/bare"].into_iter().filter(|_| has_ffi);
        for path in of_ffi.chain(["/userdata"]) {
            let answer = get(address, path).unwrap_or_else(|| panic!("{path}: reset"));
            assert_eq!(body(&answer), "1\r\na\r\n1\r\na\r\n0\r\n\r\n", "{path}");
        }
        let answer = get(address, "/unstarted").expect("an answer");
        assert!(answer.contains("without having called start_response"));
        for name in ["cdata", "unstarted"] {
            if name == "cdata" && !has_ffi {
                continue;
            }
            assert_eq!(
                body(&get(address, &format!("/closed/{name}")).expect("an answer")),
                "1"
            );
        }
    });
}

#[test]
fn a_client_that_goes_away_amid_a_body_closes_it_and_a_silent_one_holds_up_nobody() {
    serve("gone", ENDS, |address| {
        for path in ["/endless", "/silent"] {
            let mut stream = TcpStream::connect(address).expect("a connection");
            write!(stream, "GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").expect("sent");
            let mut head = [0; 16];
            stream
                .read_exact(&mut head)
                .expect("the start of an answer");
            let closed = format!("/closed{path}");
            assert_eq!(body(&get(address, &closed).expect("an answer")), "nil");
            drop(stream);
            wait_for(address, &closed, "1");
        }
    });
}

#[test]
fn a_refused_start_leaves_what_was_before_it() {
    serve("half", ENDS, |address| {
        let half = get(address, "/half").expect("an answer");
        assert!(half.starts_with("HTTP/1.1 500 "), "{half}");
        assert!(
            half.contains("without having called start_response"),
            "{half}"
        );
        let kept = get(address, "/kept").expect("an answer");
        assert!(kept.starts_with("HTTP/1.1 200 OK\r\n"), "{kept}");
        assert!(
            kept.contains("X-A: 1\r\n") && !kept.contains("X-C"),
            "{kept}"
        );
        assert_eq!(body(&kept), "kept");
        assert_eq!(get(address, "/reraised"), None);
        assert_eq!(body(&get(address, "/kept").expect("an answer")), "kept");
    });
}

/// Written as nibiru's documentation has it: headers as names with lists of values, a body
/// as what `ipairs` returns, and the module's name for whoever looks for its files.
const NIBIRU: &str = r#"
local boot_parameters = require("nibiru.boot_parameters")
local app = {}
setmetatable(app, {__call = function(self, environ, start_response)
  local response_headers = {["Content-Type"] = {"text/plain"}, ["X-A"] = {"1", "2"}}
  start_response("200 OK", response_headers)
  return ipairs({environ.REQUEST_METHOD, " ", environ.PATH_INFO, " ", boot_parameters.app_module})
end})
return {app = app}
"#;

#[test]
fn applications_of_nibiru_run_as_they_are() {
    let answer = serve("nibiru", NIBIRU, |address| {
        talk(address, b"GET /a?b HTTP/1.0\r\n\r\n", usize::MAX).expect("an answer")
    });
    assert!(answer.contains("X-A: 1\r\nX-A: 2\r\n"), "{answer}");
    assert_eq!(body(&answer), "GET /a site");
}
