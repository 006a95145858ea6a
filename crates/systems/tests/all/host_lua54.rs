//! Lua 5.4 as the Lua of a host: how it is chosen, what is said of it, and what becomes of its workers.

use std::process::{Command, Output};

use rustix::process::Signal;

use crate::common::systems;
use crate::host::{Folder, Host, lua54, systems_with_lua54};

/// It cannot be read by LuaJIT.
const NEWER: &str = "local function app(environ, start_response)
  start_response('200 OK', {})
  return { _VERSION .. ' ' .. 7 // 2 }
end
return { app = app }
";
const ANY: &str = "return { app = function(environ, start_response)
  start_response(200)
  return _VERSION
end }
";

fn with_app(text: &str) -> Folder {
    let folder = Folder::new();
    folder.write("app.lua", text);
    folder
}

/// What a host says that does not come to listen.
fn refused(mut command: Command, folder: &Folder, words: &[&str]) -> (Option<i32>, String) {
    command.args(["host", "--path"]).arg(&folder.0);
    let Output { status, stderr, .. } = command
        .args(words)
        .args(["app:app", "0"])
        .output()
        .expect("prony starts");
    let said = String::from_utf8_lossy(&stderr).into_owned();
    (status.code(), said)
}

#[test]
fn an_application_that_asks_for_lua_54_is_served_by_it_which_is_said() {
    let folder = with_app(NEWER);
    folder.write("config.toml", "title = \"x\"\n[host]\nlua = \"5.4\"\n");
    let mut host = Host::start_with_lua54(&folder.0, &["--workers", "2"]);
    assert!(host.says("with Lua 5.4").ends_with("config.toml:3)\n"));
    assert_eq!(host.get("/").text(), "Lua 5.4 3");
    // Its workers are renewed and stopped as others are.
    host.signal(Signal::HUP);
    host.says("all workers are new");
    assert_eq!(host.get("/").text(), "Lua 5.4 3");
    host.signal(Signal::TERM);
    assert!(host.ends().success());
}

#[test]
fn what_was_typed_goes_before_the_configuration_and_without_either_it_is_luajit() {
    let folder = with_app(NEWER);
    let jit = |folder: &Folder, words: &[&str]| refused(systems(&[]), folder, words);
    for words in [&[][..], &["--workers", "0"], &["--lua", "jit"]] {
        let (code, said) = jit(&folder, words);
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains("app.lua:3: unexpected symbol near '/'"),
            "{said}"
        );
        assert!(
            said.contains("prony: if it is for Lua 5.4: --lua 5.4\n"),
            "{said}"
        );
    }
    folder.write("config.toml", "[host]\nlua = \"jit\"\n");
    let (code, said) = jit(&folder, &[]);
    assert_eq!(code, Some(2), "{said}");
    let place = folder.0.join("config.toml");
    let place = format!("prony: with LuaJIT ({}:2)\n", place.display());
    assert!(said.starts_with(&place), "{said}");
    let host = Host::start_with_lua54(&folder.0, &["--lua", "5.4"]);
    assert!(host.says("with Lua 5.4").ends_with("(--lua)\n"));
    assert_eq!(host.get("/").text(), "Lua 5.4 3");

    let folder = with_app(ANY);
    assert_eq!(Host::start(&folder.0, &[]).get("/").text(), "Lua 5.1");
    folder.write("config.toml", "[host]\nlua = \"5.3\"\n");
    let (code, said) = jit(&folder, &[]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("config.toml:2: `host.lua` has to be \"jit\" or \"5.4\""),
        "{said}"
    );
}

#[test]
fn a_host_without_workers_is_the_other_program_itself() {
    let folder = with_app(NEWER);
    let mut host = Host::start_with_lua54(&folder.0, &["--lua", "5.4", "--workers", "0"]);
    assert_eq!(host.get("/").text(), "Lua 5.4 3");
    host.signal(Signal::TERM);
    assert!(host.ends().success());
}

#[test]
fn where_the_program_is_missing_or_another_the_command_that_builds_it_is_said() {
    let folder = with_app(NEWER);
    let build = "cargo build --locked --manifest-path lua54/Cargo.toml --target-dir ";
    let mut without = systems(&[]);
    without.env("PRONY_LUA54", folder.0.join("prony-lua54"));
    let (code, said) = refused(without, &folder, &["--lua", "5.4"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("which is missing; in Prony's sources, `"),
        "{said}"
    );
    assert!(said.contains(build), "{said}");
    let mut other = systems(&[]);
    other.env("PRONY_LUA54", "/bin/echo");
    let (code, said) = refused(other, &folder, &["--lua", "5.4"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("/bin/echo is") && said.contains(build),
        "{said}"
    );
    // By hand it says what it is for.
    let output = Command::new(lua54()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("is started by `prony host --lua 5.4`"),
        "{said}"
    );
}

#[test]
fn the_launcher_is_asked_for_the_program_where_it_is_known() {
    let folder = with_app(NEWER);
    let launcher = |text: &str| {
        let file = folder.0.join("launcher");
        prony_testkit::write_program(&file, text);
        let mut command = systems(&[]);
        command.env("PRONY_LAUNCHER", file);
        command
    };
    let program = lua54().display();
    let builds = format!("#!/bin/sh\ncase \"$*\" in __build-lua54) echo {program} ;; esac\n");
    let mut command = launcher(&builds);
    let file = folder.write("some.lua", "print(7 // 2)");
    let output = command
        .args(["lua", "--lua", "5.4"])
        .arg(file)
        .output()
        .expect("it starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "3\n");
    let fails = launcher("#!/bin/sh\necho 'no compiler' >&2\nexit 2\n");
    let (code, said) = refused(fails, &folder, &["--lua", "5.4"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("no compiler\nprony: prony-lua54 could not be built: see above"),
        "{said}"
    );
}

#[test]
fn an_application_that_lua_54_cannot_load_says_where() {
    let folder = with_app("return 7 // 2 +");
    let (code, said) = refused(systems_with_lua54(&[]), &folder, &["--lua", "5.4"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("app.lua:1: unexpected symbol near <eof>"),
        "{said}"
    );
}

/// As a module is written against the headers of Lua 5.4, of which these lines are what it needs.
const MODULE: &str = r#"
#include <stddef.h>
typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *);
typedef struct { const char *name; lua_CFunction func; } luaL_Reg;
extern long long luaL_checkinteger(lua_State *, int);
extern void lua_pushinteger(lua_State *, long long);
extern void luaL_checkversion_(lua_State *, double, size_t);
extern void lua_createtable(lua_State *, int, int);
extern void luaL_setfuncs(lua_State *, const luaL_Reg *, int);
static int twice(lua_State *state) {
  lua_pushinteger(state, 2 * luaL_checkinteger(state, 1));
  return 1;
}
static const luaL_Reg functions[] = {{"twice", twice}, {0, 0}};
int luaopen_arithmetic(lua_State *state) {
  luaL_checkversion_(state, 504, 136);
  lua_createtable(state, 0, 1);
  luaL_setfuncs(state, functions, 0);
  return 1;
}
"#;

#[test]
fn a_module_in_c_for_lua_54_loads() {
    let folder = with_app(
        "local arithmetic = require('arithmetic')
return { app = function(environ, start_response)
  start_response(200)
  return tostring(arithmetic.twice(2 ^ 53 - 1))
end }
",
    );
    let source = folder.write("arithmetic.c", MODULE);
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]);
    let compiled = compiler
        .arg(folder.0.join("arithmetic.so"))
        .arg(source)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return prony_testkit::skip("there is no C compiler");
    }
    let (code, said) = refused(systems(&[]), &folder, &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("prony: if it is for Lua 5.4: --lua 5.4\n"),
        "{said}"
    );
    let host = Host::start_with_lua54(&folder.0, &["--lua", "5.4"]);
    assert_eq!(host.get("/").text(), "18014398509481982");
}

#[test]
fn prony_lua_runs_a_file_by_the_lua_that_is_asked_for() {
    let folder = Folder::new();
    let file = folder.write("some.lua", "print(_VERSION, #arg, 7 // 2, ...)\n");
    let run = |words: &[&str]| {
        let mut command = systems_with_lua54(&["lua"]);
        let command = command.args(words).arg(&file).args(["a", "--b"]);
        let Output { status, stdout, .. } = command.output().expect("prony starts");
        (status.code(), String::from_utf8_lossy(&stdout).into_owned())
    };
    let newer = (Some(0), "Lua 5.4\t2\t3\ta\t--b\n".to_owned());
    assert_eq!(run(&["--lua", "5.4"]), newer);
    assert_eq!(run(&[]).0, Some(2));
    folder.write(
        "some.lua",
        "local test = require('prony.test')\ntest('no', function() error('x') end)",
    );
    assert_eq!(run(&["--lua", "5.4"]).0, Some(1));
    folder.write("some.lua", "print(_VERSION)");
    assert_eq!(run(&[]), (Some(0), "Lua 5.1\n".to_owned()));
    assert_eq!(run(&["--lua", "5.4"]), (Some(0), "Lua 5.4\n".to_owned()));
}
