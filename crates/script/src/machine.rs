//! One Lua state with a script in it. Calls go in by name; every one is protected, watched ([`Pulse`]), and limited in memory.
//!
//! LuaJIT's compiler is on where a loop that it has compiled looks at the hook that ends a call (`compiler`).
//!
//! Not for: what calls mean, and when they are made.

use std::ffi::{CString, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicPtr, AtomicU64, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst,
};

use mlua::ffi::{self, lua_Alloc, lua_Debug, lua_State};

use crate::value::{LuaValue, bytes, push, read};

unsafe extern "C" {
    /// Of the C library, by whose streams scripts print.
    safe fn fflush(stream: *mut c_void) -> c_int;
}

/// Has all that scripts have printed so far written.
pub fn flush() {
    fflush(ptr::null_mut());
}

/// The functions of this program that scripts call by name.
pub type Native = Box<dyn Fn(&str, &[LuaValue]) -> Result<LuaValue, String> + Send>;

/// Calls into the prelude that have a place on the stack, so that they are found without a look-up.
const OWN: c_int = 1;
const HANDLER: c_int = 2;
const ENTER: c_int = 3;
const REQUEST: c_int = 4;
const DELAY: c_int = 5;
const WANTS: c_int = 6;
/// The name of the global that is called for answers.
const RESPONSE: c_int = 7;
/// Values that stay on the stack.
const KEPT: c_int = RESPONSE;
/// Their names in the prelude's table, from the second on.
const NAMES: [&std::ffi::CStr; 6] = [
    c"handler",
    c"enter",
    c"request",
    c"delay",
    c"wants",
    c"response",
];

/// Lets another thread see that a call does not return, and end it.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Odd while a call runs.
    count: AtomicU64,
    /// The count of the call that is to end.
    ending: AtomicU64,
    state: AtomicPtr<lua_State>,
}

impl Pulse {
    /// The number of the call that runs; `None`: none does.
    pub fn running(&self) -> Option<u64> {
        Some(self.count.load(SeqCst)).filter(|count| count % 2 == 1)
    }

    /// Makes the call with this number end with an error at its next instruction, if it still runs.
    pub fn end(&self, count: u64) {
        self.ending.store(count, SeqCst);
        let state = self.state.load(SeqCst);
        if !state.is_null() {
            // SAFETY: LuaJIT's sources state that a hook may be set from another thread with a count of 1. A state is never closed.
            unsafe { ffi::lua_sethook(state, Some(end_of_call), ffi::LUA_MASKCOUNT, 1) };
        }
    }

    /// A call begins, or has returned. Only the thread that uses the state says so.
    fn turns(&self) {
        let count = self.count.load(Relaxed);
        self.count.store(count + 1, Release);
    }

    fn is_ending(&self) -> bool {
        self.count.load(SeqCst) == self.ending.load(SeqCst)
    }
}

/// Why a state is of no more use.
#[derive(Clone, Copy, Debug)]
enum LuaEnd {
    /// It needs more memory than it may have.
    Memory,
    /// It called `os.exit` with this code.
    Exit(c_int),
}

/// The state that the allocator and the functions of a Lua state work on.
struct LuaAccount {
    forward: lua_Alloc,
    data: *mut c_void,
    used: usize,
    memory_max: usize,
    end: Option<LuaEnd>,
    pulse: Arc<Pulse>,
    native: Native,
    /// The function that [`LuaState::guarded`] runs; null otherwise.
    body: *mut c_void,
    /// The script's `response` when it was called last, which the registry keeps alive, and how many arguments it takes.
    response: (*const c_void, Option<u8>),
}

impl LuaAccount {
    /// Why calls end from now on, in words.
    fn ended(&self) -> Option<String> {
        let mib = self.memory_max >> 20;
        Some(match self.end? {
            LuaEnd::Memory => format!("it needs more than the {mib} MiB that it may have"),
            LuaEnd::Exit(code) => format!("it called os.exit({code})"),
        })
    }

    /// Notes why the call that runs ends, and every later one.
    fn end_by(&mut self, end: LuaEnd) {
        if self.end.is_none() {
            self.end = Some(end);
            self.pulse.end(self.pulse.count.load(SeqCst));
        }
    }
}

/// A state. It is never closed: that would run finalizers of the script, which nothing watches; it ends with the process.
pub struct LuaState {
    /// INVARIANT: its main thread, with the first values of its stack as the constants above say; nothing runs on it between calls.
    state: *mut lua_State,
    /// INVARIANT: as long as the state, and used by the thread that uses it.
    account: *mut LuaAccount,
    pulse: Arc<Pulse>,
}

// SAFETY: a Lua state may be used by one thread after the other; all that it points to is its own or may be sent.
unsafe impl Send for LuaState {}

impl LuaState {
    /// A state with the prelude in it, which is given `given`.
    ///
    /// # Errors
    /// There is too little memory.
    pub fn new(memory_max: usize, native: Native, given: &LuaValue) -> Result<LuaState, String> {
        let pulse = Arc::new(Pulse::default());
        // SAFETY: the allocator keeps to the contract of the one that it passes requests on to.
        let made = unsafe {
            let state = ffi::luaL_newstate();
            if state.is_null() {
                return Err("there is no memory for a Lua state".to_owned());
            }
            let mut data = ptr::null_mut();
            let forward = ffi::lua_getallocf(state, &raw mut data);
            let account = Box::into_raw(Box::new(LuaAccount {
                forward,
                data,
                used: 0,
                memory_max,
                end: None,
                pulse: Arc::clone(&pulse),
                native,
                body: ptr::null_mut(),
                response: (ptr::null(), None),
            }));
            ffi::lua_setallocf(state, allocate, account.cast());
            pulse.state.store(state, SeqCst);
            LuaState {
                state,
                account,
                pulse,
            }
        };
        made.load_prelude(given)?;
        Ok(made)
    }

    fn load_prelude(&self, given: &LuaValue) -> Result<(), String> {
        self.in_body(
            // SAFETY: runs in protected mode.
            &mut |state| unsafe {
                ffi::luaL_openlibs(state);
                let text = include_str!("prelude.lua");
                let name = c"=prony".as_ptr();
                if ffi::luaL_loadbuffer(state, text.as_ptr().cast(), text.len(), name) != 0 {
                    ffi::lua_error(state);
                }
                ffi::lua_pushcclosure(state, ask, 0);
                push(state, given);
                ffi::lua_call(state, 2, 1);
                ffi::lua_pushcclosure(state, enter, 0);
                ffi::lua_setfield(state, -2, c"enter".as_ptr());
                ffi::lua_pushlstring_(state, c"response".as_ptr(), 8);
                ffi::lua_setfield(state, -2, c"response".as_ptr());
                ffi::lua_setfield(state, ffi::LUA_REGISTRYINDEX, c"prony".as_ptr());
            },
            // SAFETY: nothing is on the stack, and an error is returned as a status.
            |state| unsafe { ffi::lua_cpcall(state, enter, ptr::null_mut()) },
        )?;
        // SAFETY: the names are in tables without metatables, so that reading them neither raises an error nor takes memory.
        unsafe {
            ffi::lua_getfield_(self.state, ffi::LUA_REGISTRYINDEX, c"prony".as_ptr());
            for name in NAMES {
                ffi::lua_getfield_(self.state, OWN, name.as_ptr());
            }
        }
        Ok(())
    }

    /// The watchdog of its calls.
    pub fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Runs a chunk.
    ///
    /// # Errors
    /// The error in it, with file and line.
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
    /// The error in it, with file and line.
    pub fn call(&mut self, name: &str, given: &[LuaValue]) -> Result<LuaValue, String> {
        let mut value = LuaValue::Nil;
        // SAFETY: runs in protected mode.
        self.guarded(&mut |state| unsafe {
            ffi::lua_getfield_(state, ffi::LUA_REGISTRYINDEX, c"prony".as_ptr());
            ffi::lua_pushlstring_(state, name.as_ptr().cast(), name.len());
            ffi::lua_rawget(state, -2);
            for one in given {
                push(state, one);
            }
            ffi::lua_call(state, given.len() as c_int, 1);
            value = read(state, ffi::lua_gettop(state), 0);
        })?;
        Ok(value)
    }

    /// Reads a global.
    ///
    /// # Errors
    /// The state is of no more use.
    pub fn get(&mut self, name: &[u8]) -> Result<LuaValue, String> {
        let mut value = LuaValue::Nil;
        // SAFETY: runs in protected mode.
        self.guarded(&mut |state| unsafe {
            ffi::lua_pushlstring_(state, name.as_ptr().cast(), name.len());
            ffi::lua_rawget(state, ffi::LUA_GLOBALSINDEX);
            value = read(state, ffi::lua_gettop(state), 0);
        })?;
        Ok(value)
    }

    /// Sets a global.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn set(&mut self, name: &[u8], value: &LuaValue) -> Result<(), String> {
        // SAFETY: runs in protected mode.
        self.guarded(&mut |state| unsafe {
            ffi::lua_pushlstring_(state, name.as_ptr().cast(), name.len());
            push(state, value);
            ffi::lua_rawset(state, ffi::LUA_GLOBALSINDEX);
        })
    }

    /// Calls `request`, and hands what it returned to `with`.
    ///
    /// # Errors
    /// It failed, or returned no string, or `with` fails.
    pub fn request<R>(
        &mut self,
        with: impl FnOnce(&[u8]) -> Result<R, String>,
    ) -> Result<R, String> {
        // SAFETY: the function is in its place; it needs no memory to push it.
        unsafe { ffi::lua_pushvalue(self.state, REQUEST) };
        self.finish(0, 1)?;
        // SAFETY: the call left one value; bytes are read of a string alone, which is on the stack meanwhile.
        unsafe {
            let made = match ffi::lua_type(self.state, -1) {
                ffi::LUA_TSTRING => with(bytes(self.state, -1)),
                _ => Err(format!(
                    "it returned {}, not a string",
                    read(self.state, ffi::lua_gettop(self.state), usize::MAX).kind()
                )),
            };
            ffi::lua_settop(self.state, KEPT);
            made
        }
    }

    /// Calls `delay`: milliseconds.
    ///
    /// # Errors
    /// It failed, or returned no time.
    pub fn delay(&mut self) -> Result<f64, String> {
        // SAFETY: the function is in its place; it needs no memory to push it.
        unsafe { ffi::lua_pushvalue(self.state, DELAY) };
        self.finish(0, 1)?;
        // SAFETY: the call left one value.
        let value = unsafe {
            let value = read(self.state, ffi::lua_gettop(self.state), usize::MAX);
            ffi::lua_settop(self.state, KEPT);
            value
        };
        match value {
            LuaValue::Number(ms) if ms >= 0.0 && ms.is_finite() => Ok(ms),
            LuaValue::Number(ms) => Err(format!("it returned {ms}, not a number of milliseconds")),
            other => Err(format!(
                "it returned {}, not a number of milliseconds",
                other.kind()
            )),
        }
    }

    /// The parts of an answer that `response` takes: 1 the status, 2 headers, too, 3 the body, too; 3 before it was called.
    pub fn takes(&mut self) -> u8 {
        // SAFETY: no call runs.
        let (known, takes) = unsafe { (*self.account).response };
        match self.current_response() == known {
            true => takes.unwrap_or(0).min(3),
            false => 3,
        }
    }

    /// The global that is called for answers, by its identity.
    fn current_response(&mut self) -> *const c_void {
        // SAFETY: pushing what is on the stack needs no memory; the global is read without metamethods.
        unsafe {
            ffi::lua_pushvalue(self.state, RESPONSE);
            ffi::lua_rawget(self.state, ffi::LUA_GLOBALSINDEX);
            let function = ffi::lua_topointer(self.state, -1);
            ffi::lua_settop(self.state, KEPT);
            function
        }
    }

    /// Calls `response`, where there is one, with as much of an answer as it takes; `None` for what was not kept.
    ///
    /// # Errors
    /// It failed.
    pub fn response(
        &mut self,
        status: u16,
        fields: Option<&HandedFields>,
        body: Option<HandedBody<'_>>,
    ) -> Result<(), String> {
        // SAFETY: pushing what is on the stack, a global of this name, and a number needs no memory; the global is read without metamethods.
        unsafe {
            ffi::lua_pushvalue(self.state, RESPONSE);
            ffi::lua_rawget(self.state, ffi::LUA_GLOBALSINDEX);
            let (known, takes) = (*self.account).response;
            if takes == Some(1) && known == ffi::lua_topointer(self.state, -1) {
                ffi::lua_pushnumber(self.state, status.into());
                return self.finish(1, 0);
            }
            ffi::lua_settop(self.state, KEPT);
        }
        self.response_in_body(status, fields, body)
    }

    /// The same for one that was not seen before, or takes what memory is needed for.
    fn response_in_body(
        &mut self,
        status: u16,
        fields: Option<&HandedFields>,
        body: Option<HandedBody<'_>>,
    ) -> Result<(), String> {
        let account = self.account;
        // SAFETY: runs in protected mode, with the prelude's `wants` as its argument, by the thread that uses the state.
        let mut call = |state: *mut lua_State| unsafe {
            ffi::lua_pushlstring_(state, c"response".as_ptr(), 8);
            ffi::lua_rawget(state, ffi::LUA_GLOBALSINDEX);
            let function = ffi::lua_topointer(state, -1);
            if function != (*account).response.0 {
                let takes = wants(state);
                (*account).response = (function, takes);
            }
            let Some(takes) = (*account).response.1 else {
                return;
            };
            if takes >= 1 {
                ffi::lua_pushnumber(state, status.into());
            }
            match fields {
                _ if takes < 2 => {}
                Some(fields) => fields.push(state),
                None => ffi::lua_pushnil(state),
            }
            match body {
                _ if takes < 3 => {}
                Some(HandedBody::Whole(body)) => {
                    ffi::lua_pushlstring_(state, body.as_ptr().cast(), body.len());
                }
                Some(HandedBody::TooLong) => {
                    let why = c"a body has more than the 64 MiB that it is given";
                    ffi::luaL_error(state, why.as_ptr());
                }
                None => ffi::lua_pushnil(state),
            }
            ffi::lua_call(state, takes.min(3).into(), 0);
        };
        self.in_body(&mut call, |state| {
            // SAFETY: both are in their places.
            unsafe {
                ffi::lua_pushvalue(state, ENTER);
                ffi::lua_pushvalue(state, WANTS);
                ffi::lua_pcall(state, 1, 0, HANDLER)
            }
        })
    }

    /// Runs `body` in protected mode, where it may raise errors.
    fn guarded(&self, body: &mut dyn FnMut(*mut lua_State)) -> Result<(), String> {
        self.in_body(body, |state| {
            // SAFETY: the function is in its place.
            unsafe {
                ffi::lua_pushvalue(state, ENTER);
                ffi::lua_pcall(state, 0, 0, HANDLER)
            }
        })
    }

    /// Makes `body` what [`enter`] runs, while `call` calls that.
    fn in_body(
        &self,
        body: &mut dyn FnMut(*mut lua_State),
        call: impl FnOnce(*mut lua_State) -> c_int,
    ) -> Result<(), String> {
        let mut body = body;
        // SAFETY: the account is this state's; the pointer is taken back before what it points to ends.
        unsafe { (*self.account).body = (&raw mut body).cast() };
        let done = self.watched(|| call(self.state));
        // SAFETY: as above.
        unsafe { (*self.account).body = ptr::null_mut() };
        done
    }

    /// Calls what was pushed.
    fn finish(&self, arguments: c_int, results: c_int) -> Result<(), String> {
        // SAFETY: function and arguments were pushed, above the handler.
        self.watched(|| unsafe { ffi::lua_pcall(self.state, arguments, results, HANDLER) })
    }

    fn watched(&self, call: impl FnOnce() -> c_int) -> Result<(), String> {
        self.pulse.turns();
        let status = call();
        self.pulse.turns();
        // SAFETY: no call runs that would change it.
        let has_ended = unsafe { (*self.account).end.is_some() };
        match status {
            ffi::LUA_OK if !has_ended => Ok(()),
            _ => Err(self.failure(status)),
        }
    }

    #[cold]
    fn failure(&self, status: c_int) -> String {
        // SAFETY: after a failed call the error is on the stack, above what stays; no call runs that would change the account.
        unsafe {
            let top = ffi::lua_gettop(self.state);
            let error = match status {
                ffi::LUA_OK => LuaValue::Nil,
                _ => read(self.state, top, 0),
            };
            ffi::lua_settop(self.state, top.min(KEPT));
            let account = &*self.account;
            let text = match error {
                LuaValue::Text(text) if status != ffi::LUA_ERRMEM => Some(text),
                _ => None,
            };
            let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
            match (account.ended(), text) {
                // What the hook raised, with its line.
                (Some(ended), Some(text)) if text.contains(&ended) => text,
                (Some(ended), _) => ended,
                (None, Some(text)) => text,
                (None, None) => "it needs more memory than there is".to_owned(),
            }
        }
    }
}

/// An answer's body.
#[derive(Clone, Copy, Debug)]
pub enum HandedBody<'b> {
    /// All of it.
    Whole(&'b [u8]),
    /// It was longer than what is kept.
    TooLong,
}

/// Names and values of headers, one after the other, with the ends of both.
#[derive(Clone, Debug, Default)]
pub struct HandedFields {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl HandedFields {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds one.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        let name = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((name, self.bytes.len()));
    }

    /// Pushes a table of them: of those with the same name the last.
    ///
    /// # Safety
    /// Runs in protected mode.
    unsafe fn push(&self, state: *mut lua_State) {
        let mut from = 0;
        // SAFETY: raises an error where memory lacks; all ends lie within the bytes.
        unsafe {
            ffi::lua_createtable(state, 0, self.ends.len() as c_int);
            for &(name, value) in &self.ends {
                let start = self.bytes.as_ptr();
                ffi::lua_pushlstring_(state, start.add(from).cast(), name - from);
                ffi::lua_pushlstring_(state, start.add(name).cast(), value - name);
                ffi::lua_rawset(state, -3);
                from = value;
            }
        }
    }
}

/// How many arguments the function on top of the stack takes, which the registry then keeps; `None`: it is no function.
///
/// # Safety
/// Runs in protected mode, with the prelude's `wants` as the first value.
unsafe fn wants(state: *mut lua_State) -> Option<u8> {
    // SAFETY: as the caller says.
    unsafe {
        ffi::lua_pushvalue(state, -1);
        ffi::lua_setfield(state, ffi::LUA_REGISTRYINDEX, c"response".as_ptr());
        if ffi::lua_type(state, -1) != ffi::LUA_TFUNCTION {
            return None;
        }
        ffi::lua_pushvalue(state, 1);
        ffi::lua_pushvalue(state, -2);
        ffi::lua_call(state, 1, 1);
        let count = ffi::lua_tonumber(state, -1);
        ffi::lua_settop(state, -2);
        Some(count as u8)
    }
}

/// # Safety
/// As Lua calls it, with the account of a state.
unsafe extern "C" fn allocate(
    data: *mut c_void,
    start: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    let account: *mut LuaAccount = data.cast();
    // SAFETY: the account lives as long as the state, and is used by the thread that uses that.
    unsafe {
        let used = (*account).used.saturating_sub(old).saturating_add(new);
        let max = (*account).memory_max;
        if new > old && used > max {
            // The next instruction raises an error that has a line.
            (*account).end_by(LuaEnd::Memory);
            if used > max.saturating_add(max / 4) {
                return ptr::null_mut();
            }
        }
        let made = ((*account).forward)((*account).data, start, old, new);
        if !made.is_null() || new == 0 {
            (*account).used = used;
        }
        made
    }
}

/// Ends the call that runs.
///
/// # Safety
/// As Lua calls it.
unsafe extern "C-unwind" fn end_of_call(state: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: the account is that of the state, and used by its thread; nothing is alive that would have to be dropped when the error
    // is raised.
    unsafe {
        let account = account(state);
        {
            let account = &*account;
            let why = match account.ended() {
                Some(why) => why,
                None if account.pulse.is_ending() => "it did not return in time".to_owned(),
                None => {
                    ffi::lua_sethook(state, None, 0, 0);
                    return;
                }
            };
            ffi::luaL_where(state, 0);
            ffi::lua_pushlstring_(state, why.as_ptr().cast(), why.len());
        }
        ffi::lua_concat(state, 2);
        ffi::lua_error(state);
    }
}

/// # Safety
/// The state is one of a [`LuaState`].
unsafe fn account(state: *mut lua_State) -> *mut LuaAccount {
    let mut data = ptr::null_mut();
    // SAFETY: reads two pointers.
    unsafe { ffi::lua_getallocf(state, &raw mut data) };
    data.cast()
}

/// # Safety
/// As Lua calls it, while the account has a body.
unsafe extern "C-unwind" fn enter(state: *mut lua_State) -> c_int {
    // SAFETY: as the caller says. Lua code can reach this function by `debug`; then there is no body, since it is taken while it runs.
    unsafe {
        let taken = std::mem::replace(&mut (*account(state)).body, std::ptr::null_mut());
        let body: *mut &mut dyn FnMut(*mut lua_State) = taken.cast();
        if let Some(body) = body.as_mut() {
            body(state);
        }
    }
    0
}

/// # Safety
/// As Lua calls it: the name of what is asked for, and its arguments.
unsafe extern "C-unwind" fn ask(state: *mut lua_State) -> c_int {
    // SAFETY: all values are dropped before an error is raised, but where memory lacks for the answer: then unwinding drops them.
    unsafe {
        let account = account(state);
        let is_right = {
            let count = ffi::lua_gettop(state);
            let mut given = (1..=count).map(|place| read(state, place, 0));
            let name = given.next().and_then(LuaValue::into_text);
            let given: Vec<LuaValue> = given.collect();
            let answer = match (name.as_deref(), given.first()) {
                (Some("exit"), code) => {
                    (*account).end_by(LuaEnd::Exit(match code {
                        Some(LuaValue::Number(code)) => *code as c_int,
                        _ => 0,
                    }));
                    Ok(LuaValue::Nil)
                }
                (name, _) => ((*account).native)(name.unwrap_or_default(), &given),
            };
            let (value, is_right) = match answer {
                Ok(value) => (value, true),
                Err(why) => (LuaValue::Text(why.into_bytes()), false),
            };
            ffi::lua_settop(state, 0);
            push(state, &value);
            is_right
        };
        if !is_right {
            ffi::lua_error(state);
        }
        1
    }
}
