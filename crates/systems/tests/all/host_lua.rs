//! What only whole processes of the Lua host show: memory exhausted behind the framework,
//! programs that end themselves, and modules in C.

use std::io::Write as _;
use std::process::Command;
use std::time::Instant;

use prony_testkit::{read_answer, rest};

use crate::common::PATIENCE;
use crate::host::{Folder, Host};

const APP: &str = r#"local prony = require("prony")

local app = prony.application()

app:get("/pid", function()
  local own = io.open("/proc/self/stat")
  local pid = own:read("*n")
  own:close()
  return ("%d"):format(pid)
end)
app:get("/version", function() return _VERSION end)
app:get("/lua", function()
  local kept = {}
  while true do kept[#kept + 1] = string.rep(tostring(#kept), 10000) end
end)
app:get("/native", function()
  local text = string.rep("x", 6000000)
  return tostring(prony.safe(text .. "<")) .. prony.markdown(text .. text) .. text
end)
app:get("/template", function()
  return app:render("page.html", { fill = function()
    local kept = {}
    while true do kept[#kept + 1] = string.rep(tostring(#kept), 10000) end
  end })
end)
app:get("/text/{text}", function(request, text) error(text, 0) end)
app:get("/exit", function() os.exit(0) end)
app:error(500, function() return "answered" end)

return { app = app }
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("app.lua", APP);
    folder.write("templates/page.html", "{{ fill() }}");
    folder
}

/// Cases of both Luas, as they depend on how each of them fails and ends. Those of Lua 5.4 are of ./test's step of that name.
macro_rules! on_each_lua {
    ($($case:ident,)*) => {
        mod jit { $(#[test] fn $case() { super::$case("jit"); })* }
        mod lua54 { $(#[test] fn $case() { super::$case("5.4"); })* }
    };
}

on_each_lua! {
    it_is_the_one_that_was_asked_for,
    memory_exhausted_behind_the_framework_is_told_and_replaces_the_worker,
    what_a_client_sends_is_not_taken_for_exhausted_memory,
    a_worker_that_ends_itself_is_replaced,
}

/// A host with one worker.
fn start(folder: &Folder, lua: &str, options: &[&str]) -> Host {
    let words = [&["--workers", "1", "--lua", lua], options].concat();
    match lua {
        "jit" => Host::start(&folder.0, &words),
        _ => Host::start_with_lua54(&folder.0, &words),
    }
}

fn with_little_memory(folder: &Folder, lua: &str) -> Host {
    start(folder, lua, &["--memory-max", "16MiB"])
}

fn it_is_the_one_that_was_asked_for(lua: &str) {
    let version = match lua {
        "jit" => "Lua 5.1",
        _ => "Lua 5.4",
    };
    let host = start(&folder(), lua, &[]);
    assert_eq!(host.get("/version").text(), version);
}

fn memory_exhausted_behind_the_framework_is_told_and_replaces_the_worker(lua: &str) {
    let folder = folder();
    for path in ["/lua", "/native", "/template"] {
        // A host for each: one that is leaving takes requests for a while beside the next.
        let host = with_little_memory(&folder, lua);
        let before = host.get("/pid").text();
        let answer = host.get(path);
        assert_eq!(
            (answer.status, &*answer.text()),
            (500, "not enough memory\n"),
            "{path}"
        );
        host.says("not enough memory");
        // It goes on until the next one is ready.
        let due = Instant::now() + PATIENCE;
        while host.get("/pid").text() == before {
            assert!(Instant::now() < due, "{path}: the worker stays");
        }
    }
}

fn what_a_client_sends_is_not_taken_for_exhausted_memory(lua: &str) {
    let folder = folder();
    let host = with_little_memory(&folder, lua);
    let before = host.get("/pid").text();
    let answer = host.get("/text/x:%20not%20enough%20memory");
    assert_eq!((answer.status, &*answer.text()), (500, "answered"));
    assert_eq!(host.get("/pid").text(), before);
}

fn a_worker_that_ends_itself_is_replaced(lua: &str) {
    let folder = folder();
    let host = start(&folder, lua, &[]);
    let worker = host.get("/pid").text();
    let mut stream = host.connect();
    let exit = b"GET /exit HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(exit).expect("sent");
    // The request gets no answer that could be taken for one.
    assert_eq!(rest(&mut stream), "");
    let mut stream = host.connect();
    let again = b"GET /pid HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(again).expect("sent");
    assert_ne!(read_answer(&mut stream, false).text(), worker);
}

/// As a module is written against LuaJIT's headers, of which these lines are what it needs.
const MODULE: &str = r#"
typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *);
typedef struct { const char *name; lua_CFunction func; } luaL_Reg;
extern double luaL_checknumber(lua_State *, int);
extern void lua_pushnumber(lua_State *, double);
extern void luaL_register(lua_State *, const char *, const luaL_Reg *);
static int twice(lua_State *state) {
  lua_pushnumber(state, 2 * luaL_checknumber(state, 1));
  return 1;
}
static const luaL_Reg functions[] = {{"twice", twice}, {0, 0}};
int luaopen_arithmetic(lua_State *state) {
  luaL_register(state, "arithmetic", functions);
  return 1;
}
"#;

#[test]
fn modules_in_c_find_the_functions_of_lua_in_the_program() {
    let folder = Folder::new();
    let source = folder.write("arithmetic.c", MODULE);
    folder.write(
        "app.lua",
        r#"local arithmetic = require("arithmetic")
local function app(environ, start_response)
  start_response("200 OK", {})
  local refused = not pcall(arithmetic.twice, "x")
  return { tostring(arithmetic.twice(21)), tostring(refused) }
end
return { app = app }
"#,
    );
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]);
    let compiled = compiler
        .arg(folder.0.join("arithmetic.so"))
        .arg(source)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return prony_testkit::skip("there is no C compiler");
    }
    let host = Host::start(&folder.0, &["--workers", "1"]);
    assert_eq!(host.get("/").text(), "42true");
}

#[test]
fn a_body_that_has_no_close_is_not_told_of() {
    let folder = Folder::new();
    folder.write(
        "app.lua",
        r#"local function app(environ, start_response)
  start_response("200 OK", {})
  if environ.PATH_INFO == "/end" then
    io.stderr:write("the end\n")
    return { "end" }
  end
  local body, left = newproxy(true), 2
  getmetatable(body).__call = function()
    left = left - 1
    return left > 0 and "piece" or nil
  end
  return body
end
return { app = app }
"#,
    );
    let host = Host::start(&folder.0, &["--workers", "1"]);
    let mut stream = host.connect();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
    assert!(rest(&mut stream).ends_with("\r\n\r\npiece"));
    assert_eq!(host.get("/end").text(), "end");
    assert_eq!(host.says("the end"), "the end\n");
}
