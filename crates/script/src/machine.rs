//! One Lua state with a script in it. Calls go in by name; every one is protected, watched ([`Pulse`]), and limited in memory.
//!
//! Not for: what calls mean, and when they are made.

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use mlua::ffi::{self, lua_Alloc, lua_Debug, lua_State};

use crate::value::{Value, bytes, push, read};

/// What scripts ask of this program, by name.
pub type Native = Box<dyn Fn(&str, &[Value]) -> Result<Value, String> + Send>;

/// Lets another thread see that a call does not return, and end it.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Odd while a call runs.
    count: AtomicU64,
    /// The count of the call that is to end.
    doomed: AtomicU64,
    state: AtomicPtr<lua_State>,
    /// Asked for by `os.exit`.
    pub(crate) exits: AtomicBool,
}

impl Pulse {
    /// The number of the call that runs; `None`: none does.
    pub fn running(&self) -> Option<u64> {
        Some(self.count.load(Relaxed)).filter(|count| count % 2 == 1)
    }

    /// Makes the call with this number end with an error at its next instruction, if it still runs.
    pub fn doom(&self, count: u64) {
        self.doomed.store(count, SeqCst);
        let state = self.state.load(SeqCst);
        if !state.is_null() {
            // SAFETY: LuaJIT's sources state that a hook may be set from another thread with a count of 1. The state lives as long
            // as its machine, which clears the pointer before it closes it.
            unsafe { ffi::lua_sethook(state, Some(end_of_call), ffi::LUA_MASKCOUNT, 1) };
        }
    }
}

/// What the allocator and the functions of a state work on.
struct Account {
    forward: lua_Alloc,
    data: *mut c_void,
    used: usize,
    memory_max: usize,
    /// More was asked for.
    is_over: bool,
    pulse: Arc<Pulse>,
    native: Native,
}

/// A state.
pub struct Machine {
    /// INVARIANT: its main thread, with the handler of errors and the functions of the prelude as the two first values of its
    /// stack; nothing runs on it between calls.
    state: *mut lua_State,
    /// INVARIANT: stays where it is until the state is closed.
    account: *mut Account,
    pulse: Arc<Pulse>,
}

// SAFETY: a Lua state may be used by one thread after the other; all that it points to is its own or may be sent.
unsafe impl Send for Machine {}

impl Machine {
    /// A state with the prelude in it, which is given `given`.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(memory_max: usize, native: Native, given: &Value) -> Result<Machine, String> {
        let pulse = Arc::new(Pulse::default());
        // SAFETY: the allocator keeps to the contract of the one that it passes requests on to; the account is freed after the state.
        let machine = unsafe {
            let state = ffi::luaL_newstate();
            if state.is_null() {
                return Err("there is no memory for a Lua state".to_owned());
            }
            let mut data = std::ptr::null_mut();
            let forward = ffi::lua_getallocf(state, &mut data);
            let account = Box::into_raw(Box::new(Account {
                forward,
                data,
                used: 0,
                memory_max,
                is_over: false,
                pulse: Arc::clone(&pulse),
                native,
            }));
            ffi::lua_setallocf(state, allocate, account.cast());
            pulse.state.store(state, SeqCst);
            Machine {
                state,
                account,
                pulse,
            }
        };
        machine.guarded(&mut |state| {
            // SAFETY: runs in protected mode.
            unsafe {
                ffi::luaL_openlibs(state);
                let text = include_str!("prelude.lua");
                let name = c"=prony".as_ptr();
                if ffi::luaL_loadbuffer(state, text.as_ptr().cast(), text.len(), name) != 0 {
                    ffi::lua_error(state);
                }
                ffi::lua_pushcclosure(state, ask, 0);
                push(state, given);
                ffi::lua_call(state, 2, 1);
                ffi::lua_setfield(state, ffi::LUA_REGISTRYINDEX, c"prony".as_ptr());
            }
        })?;
        // SAFETY: the registry has what was put there; neither read raises an error.
        unsafe {
            ffi::lua_getfield_(machine.state, ffi::LUA_REGISTRYINDEX, c"prony".as_ptr());
            ffi::lua_getfield_(machine.state, 1, c"handler".as_ptr());
            ffi::lua_insert(machine.state, 1);
        }
        Ok(machine)
    }

    /// What watches its calls.
    pub fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Runs a chunk.
    ///
    /// # Errors
    /// What is wrong with it, with file and line.
    pub fn run(&mut self, file: &str, text: &[u8]) -> Result<(), String> {
        let name = CString::new(format!("@{file}")).map_err(|_| "its name has a NUL".to_owned())?;
        // SAFETY: loading returns errors as a status; the text is not kept.
        let status = unsafe {
            ffi::luaL_loadbuffer(self.state, text.as_ptr().cast(), text.len(), name.as_ptr())
        };
        match status {
            ffi::LUA_OK => self.finish(0, 0),
            _ => Err(self.failure(status)),
        }
    }

    /// Calls a function of the prelude with copies of `given`, and returns a copy of what it returns.
    ///
    /// # Errors
    /// What went wrong in it, with file and line.
    pub fn call(&mut self, name: &str, given: &[Value]) -> Result<Value, String> {
        self.guarded(&mut |state| {
            // SAFETY: runs in protected mode; nothing in it has to be dropped.
            unsafe {
                ffi::lua_getfield_(state, ffi::LUA_REGISTRYINDEX, c"prony".as_ptr());
                ffi::lua_pushlstring_(state, name.as_ptr().cast(), name.len());
                ffi::lua_rawget(state, -2);
                for value in given {
                    push(state, value);
                }
                ffi::lua_call(state, given.len() as c_int, 1);
                ffi::lua_setfield(state, ffi::LUA_REGISTRYINDEX, c"result".as_ptr());
            }
        })?;
        // SAFETY: reads what was put there.
        unsafe {
            ffi::lua_getfield_(self.state, ffi::LUA_REGISTRYINDEX, c"result".as_ptr());
            let value = read(self.state, ffi::lua_gettop(self.state), 0);
            ffi::lua_settop(self.state, 2);
            Ok(value)
        }
    }

    /// Reads a global.
    pub fn get(&mut self, name: &[u8]) -> Result<Value, String> {
        let mut value = Value::Nil;
        self.guarded(&mut |state| {
            // SAFETY: runs in protected mode; the value that is replaced is nil.
            unsafe {
                ffi::lua_pushlstring_(state, name.as_ptr().cast(), name.len());
                ffi::lua_rawget(state, ffi::LUA_GLOBALSINDEX);
                value = read(state, ffi::lua_gettop(state), 0);
            }
        })?;
        Ok(value)
    }

    /// Sets a global.
    pub fn set(&mut self, name: &[u8], value: &Value) -> Result<(), String> {
        self.guarded(&mut |state| {
            // SAFETY: runs in protected mode.
            unsafe {
                ffi::lua_pushlstring_(state, name.as_ptr().cast(), name.len());
                push(state, value);
                ffi::lua_rawset(state, ffi::LUA_GLOBALSINDEX);
            }
        })
    }

    /// Calls `request`, and hands what it returned to `with`.
    pub fn request<R>(
        &mut self,
        with: impl FnOnce(&[u8]) -> Result<R, String>,
    ) -> Result<R, String> {
        self.named(c"request");
        self.finish(0, 1)?;
        // SAFETY: the call left one value; bytes are read of a string alone, which is on the stack meanwhile.
        let made = unsafe {
            match ffi::lua_type(self.state, -1) {
                ffi::LUA_TSTRING => with(bytes(self.state, -1)),
                _ => Err(format!(
                    "request() returned {}, not a string",
                    read(self.state, ffi::lua_gettop(self.state), usize::MAX).kind()
                )),
            }
        };
        // SAFETY: there were two values before.
        unsafe { ffi::lua_settop(self.state, 2) };
        made
    }

    /// Calls `delay`: milliseconds.
    pub fn delay(&mut self) -> Result<f64, String> {
        self.named(c"delay");
        self.finish(0, 1)?;
        // SAFETY: the call left one value.
        unsafe {
            let value = read(self.state, ffi::lua_gettop(self.state), usize::MAX);
            ffi::lua_settop(self.state, 2);
            match value {
                Value::Nil => Ok(0.0),
                Value::Number(ms) if ms >= 0.0 && ms.is_finite() => Ok(ms),
                Value::Number(ms) => Err(format!(
                    "delay() returned {ms}, not a number of milliseconds"
                )),
                other => Err(format!(
                    "delay() returned {}, not a number of milliseconds",
                    other.kind()
                )),
            }
        }
    }

    /// Calls `response` with a status, and where it takes them, headers and body.
    pub fn response(
        &mut self,
        status: u16,
        headers: Option<&Fields>,
        body: &[u8],
    ) -> Result<(), String> {
        self.guarded(&mut |state| {
            // SAFETY: runs in protected mode; nothing in it has to be dropped.
            unsafe {
                ffi::lua_getfield_(state, ffi::LUA_REGISTRYINDEX, c"prony".as_ptr());
                ffi::lua_getfield_(state, -1, c"response".as_ptr());
                ffi::lua_pushnumber(state, status.into());
                ffi::lua_createtable(state, 0, headers.map_or(0, |of| of.ends.len() as c_int));
                let mut from = 0;
                for &(name, value) in headers.iter().flat_map(|of| &of.ends) {
                    let text = headers.map_or(&[][..], |of| &of.bytes);
                    ffi::lua_pushlstring_(state, text[from..].as_ptr().cast(), name - from);
                    ffi::lua_pushlstring_(state, text[name..].as_ptr().cast(), value - name);
                    ffi::lua_rawset(state, -3);
                    from = value;
                }
                ffi::lua_pushlstring_(state, body.as_ptr().cast(), body.len());
                ffi::lua_call(state, 3, 0);
            }
        })
    }

    /// Pushes a function of the prelude.
    fn named(&self, name: &std::ffi::CStr) {
        // SAFETY: the second value is a table without metatable that has it; its name is in it, so that it needs no memory.
        unsafe { ffi::lua_getfield_(self.state, 2, name.as_ptr()) };
    }

    /// Runs `body` in protected mode, where it may raise errors.
    fn guarded(&self, body: &mut dyn FnMut(*mut lua_State)) -> Result<(), String> {
        let mut body = body;
        // SAFETY: `enter` takes a pointer to `body`, which lives until it returns. Pushing a C function without upvalues and a
        // pointer may need memory for the former, of which the allocator has a reserve.
        unsafe {
            ffi::lua_pushcclosure(self.state, enter, 0);
            ffi::lua_pushlightuserdata(self.state, (&raw mut body).cast());
        }
        self.finish(1, 0)
    }

    /// Calls what was pushed, watched.
    fn finish(&self, arguments: c_int, results: c_int) -> Result<(), String> {
        // SAFETY: function and arguments were pushed. The first value of the stack is the handler once there is a prelude.
        let status = unsafe {
            let handler = c_int::from(ffi::lua_gettop(self.state) > arguments + 2);
            self.pulse.count.fetch_add(1, SeqCst);
            let status = ffi::lua_pcall(self.state, arguments, results, handler);
            self.pulse.count.fetch_add(1, SeqCst);
            status
        };
        match status {
            ffi::LUA_OK if self.pulse.exits.load(Relaxed) => Err("it called os.exit".to_owned()),
            ffi::LUA_OK => Ok(()),
            _ => Err(self.failure(status)),
        }
    }

    #[cold]
    fn failure(&self, status: c_int) -> String {
        // SAFETY: after a failed call the error is on the stack; below it are the two values that stay.
        unsafe {
            let top = ffi::lua_gettop(self.state);
            let text = match read(self.state, top, 0) {
                Value::Text(text) => String::from_utf8_lossy(&text).into_owned(),
                other => format!("it raised {}", other.kind()),
            };
            ffi::lua_settop(self.state, top - 1);
            match status {
                ffi::LUA_ERRMEM => format!(
                    "it needs more than the {} MiB that it may have",
                    (*self.account).memory_max >> 20
                ),
                _ => text,
            }
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.pulse.state.store(std::ptr::null_mut(), SeqCst);
        // SAFETY: nothing uses the state any more. It is closed with the allocator that it was made with, which frees all at once;
        // the account is freed after that.
        unsafe {
            ffi::lua_setallocf(self.state, (*self.account).forward, (*self.account).data);
            ffi::lua_close(self.state);
            drop(Box::from_raw(self.account));
        }
    }
}

/// Names and values of headers, one after the other, with the ends of both.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<(usize, usize)>,
}

/// # Safety
/// As Lua calls it, with the account of a machine.
unsafe extern "C" fn allocate(
    data: *mut c_void,
    start: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    let account: *mut Account = data.cast();
    // SAFETY: the account lives as long as the state, and is used by the thread that uses that.
    unsafe {
        let used = (*account).used.saturating_sub(old).saturating_add(new);
        let max = (*account).memory_max;
        if new > old && used > max {
            if used > max + max / 4 {
                return std::ptr::null_mut();
            }
            // The next instruction raises an error that has a line.
            if !std::mem::replace(&mut (*account).is_over, true) {
                let pulse = &(*account).pulse;
                pulse.doom(pulse.count.load(Relaxed));
            }
        }
        let made = ((*account).forward)((*account).data, start, old, new);
        if !made.is_null() || new == 0 {
            (*account).used = used;
        }
        made
    }
}

/// # Safety
/// As Lua calls it.
unsafe extern "C-unwind" fn end_of_call(state: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: the account is that of the state; nothing is alive that would have to be dropped when the error is raised.
    unsafe {
        let account = account(state);
        if (*account).pulse.count.load(SeqCst) != (*account).pulse.doomed.load(SeqCst) {
            ffi::lua_sethook(state, None, 0, 0);
            return;
        }
        ffi::luaL_where(state, 0);
        if (*account).is_over {
            ffi::lua_pushfstring(
                state,
                c"it needs more than the %d MiB that it may have".as_ptr(),
                ((*account).memory_max >> 20) as c_int,
            );
        } else {
            ffi::lua_pushstring_(state, c"it did not return in time".as_ptr());
        }
        ffi::lua_concat(state, 2);
        ffi::lua_error(state);
    }
}

/// # Safety
/// The state is one of a machine.
unsafe fn account(state: *mut lua_State) -> *mut Account {
    let mut data = std::ptr::null_mut();
    // SAFETY: reads two pointers.
    unsafe { ffi::lua_getallocf(state, &mut data) };
    data.cast()
}

/// # Safety
/// As Lua calls it, with a pointer to a body of [`Machine::guarded`].
unsafe extern "C-unwind" fn enter(state: *mut lua_State) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        let body: *mut &mut dyn FnMut(*mut lua_State) = ffi::lua_touserdata(state, 1).cast();
        ffi::lua_settop(state, 0);
        (*body)(state);
    }
    0
}

/// # Safety
/// As Lua calls it: the name of what is asked for, and its arguments.
unsafe extern "C-unwind" fn ask(state: *mut lua_State) -> c_int {
    // SAFETY: all values are dropped before an error is raised, but where memory lacks for the answer: then they leak.
    unsafe {
        let is_right = {
            let count = ffi::lua_gettop(state);
            let mut given: Vec<Value> = (1..=count).map(|place| read(state, place, 0)).collect();
            let name = given.remove(0).into_text().unwrap_or_default();
            match ((*account(state)).native)(&name, &given) {
                Ok(value) => {
                    push(state, &value);
                    true
                }
                Err(why) => {
                    ffi::lua_settop(state, 0);
                    push(state, &Value::Text(why.into_bytes()));
                    false
                }
            }
        };
        if !is_right {
            ffi::lua_error(state);
        }
        1
    }
}
