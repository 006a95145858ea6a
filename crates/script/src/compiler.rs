//! Whether LuaJIT's compiler may be on: only where a loop that it has compiled can be ended from outside.
//!
//! It can where LuaJIT was built with `LUAJIT_ENABLE_CHECKHOOK`, which `.cargo/config.toml` asks for; a build elsewhere may lack that, so
//! that it is tried, once.

use std::ffi::c_void;
use std::sync::OnceLock;

use mlua::ffi::{self, lua_Debug, lua_State};

/// Calls after which the hook is set; a loop is compiled long before.
const CALLS: u32 = 2_000;
/// Goes round more often than that, with a call each time.
const LOOP: &str = "
local arm, tried = ...
jit.on()
jit.opt.start('hotloop=2')
local ffi = require('ffi')
local call, tried = ffi.cast('void (*)(void *)', arm), ffi.cast('void *', tried)
local function go(rounds) for _ = 1, rounds do call(tried) end end
go(100)
if require('jit.util').traceinfo(1) then go(10000) end
";

struct TriedLoop {
    state: *mut lua_State,
    calls: u32,
}

/// A compiled loop ends where another thread, or what the loop calls, sets a hook.
pub fn ends_loops() -> bool {
    static ENDS: OnceLock<bool> = OnceLock::new();
    *ENDS.get_or_init(|| tried().is_some_and(|calls| calls == CALLS))
}

/// How often the loop went round. `None`: there is no memory for a state.
fn tried() -> Option<u32> {
    // SAFETY: the state is closed before what it was given ends; all that may raise errors runs in protected mode.
    unsafe {
        let state = ffi::luaL_newstate();
        if state.is_null() {
            return None;
        }
        let mut tried = TriedLoop { state, calls: 0 };
        ffi::lua_cpcall(state, run, (&raw mut tried).cast());
        ffi::lua_close(state);
        Some(tried.calls)
    }
}

/// # Safety
/// As Lua calls it, with what is tried.
unsafe extern "C-unwind" fn run(state: *mut lua_State) -> i32 {
    // SAFETY: as the caller says; nothing is alive that would have to be dropped when an error is raised.
    unsafe {
        let tried = ffi::lua_touserdata(state, 1);
        ffi::luaL_openlibs(state);
        if ffi::luaL_loadbuffer(state, LOOP.as_ptr().cast(), LOOP.len(), c"=prony".as_ptr()) == 0 {
            ffi::lua_pushlightuserdata(state, arm as *mut c_void);
            ffi::lua_pushlightuserdata(state, tried);
            ffi::lua_call(state, 2, 0);
        }
    }
    0
}

/// # Safety
/// Called with what is tried, by the thread that runs its state.
unsafe extern "C" fn arm(tried: *mut c_void) {
    // SAFETY: as the caller says. LuaJIT's sources state that a hook may be set from anywhere with a count of 1.
    unsafe {
        let tried: *mut TriedLoop = tried.cast();
        (*tried).calls += 1;
        if (*tried).calls == CALLS {
            ffi::lua_sethook((*tried).state, Some(end), ffi::LUA_MASKCOUNT, 1);
        }
    }
}

/// # Safety
/// As Lua calls it.
unsafe extern "C-unwind" fn end(state: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: as the caller says; the hook goes first, so that closing the state is not ended.
    unsafe {
        ffi::lua_sethook(state, None, 0, 0);
        ffi::lua_pushnil(state);
        ffi::lua_error(state);
    }
}

#[cfg(test)]
mod tests {
    /// A build without it runs scripts, too, but slower, and nobody would see why.
    #[test]
    fn luajit_is_built_so_that_compiled_loops_can_be_ended() {
        assert_eq!(
            super::tried(),
            Some(super::CALLS),
            "if it was built before .cargo/config.toml asked for that: cargo clean -p mlua-sys"
        );
    }
}
