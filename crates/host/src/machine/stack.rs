//! Lua's stack during one call: what is pushed, called in protected mode, read, and taken away again.

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};

use super::failure::Failure;

/// How Lua, and functions of the host's, say that memory is exhausted, where the error was
/// caught and raised again. Nothing before it: what a client sent could stand there.
const EXHAUSTED: [&str; 2] = ["not enough memory", "memory error: not enough memory"];

/// What is on Lua's stack during a call; taken away at the end.
pub(super) struct Stack {
    state: *mut lua_State,
    pub(super) base: c_int,
}

impl Stack {
    pub(super) fn new(state: *mut lua_State) -> Stack {
        // SAFETY: reads a number. The state lives as long as the machine.
        let base = unsafe { ffi::lua_gettop(state) };
        Stack { state, base }
    }

    /// Pushes a value of the registry.
    ///
    /// # Safety
    /// There is room: a stack has 20 places at least.
    #[inline]
    pub(super) unsafe fn push(&self, reference: c_int) {
        // SAFETY: reads a table, without metamethods.
        unsafe { ffi::lua_rawgeti(self.state, ffi::LUA_REGISTRYINDEX, reference.into()) };
    }

    /// Calls the function that was pushed first, after the handler, with so many arguments.
    ///
    /// # Safety
    /// Handler, function and arguments were pushed.
    #[inline]
    pub(super) unsafe fn call(&self, arguments: c_int, results: c_int) -> Result<(), Failure> {
        // SAFETY: as the caller says.
        unsafe { self.call_at(self.base + 1, arguments, results) }
    }

    /// As `call`, where the handler is in this place.
    #[inline]
    pub(super) unsafe fn call_at(
        &self,
        handler: c_int,
        arguments: c_int,
        results: c_int,
    ) -> Result<(), Failure> {
        // SAFETY: as the caller says.
        let status = unsafe { ffi::lua_pcall(self.state, arguments, results, handler) };
        match status {
            ffi::LUA_OK => Ok(()),
            _ => Err(self.failure(status)),
        }
    }

    #[cold]
    pub(super) fn failure(&self, status: c_int) -> Failure {
        // SAFETY: after a failed call the error is on the stack.
        let text = unsafe {
            match ffi::lua_type(self.state, -1) {
                ffi::LUA_TSTRING => String::from_utf8_lossy(bytes(self.state, -1)).into_owned(),
                _ => "an error without text".to_owned(),
            }
        };
        let first = text.lines().next().unwrap_or_default();
        let is_memory = status == ffi::LUA_ERRMEM || EXHAUSTED.contains(&first);
        Failure { text, is_memory }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the stack had so many values, and has not fewer.
        unsafe { ffi::lua_settop(self.state, self.base) };
    }
}

/// The bytes of the string in this place.
///
/// # Safety
/// It is a string, and stays where it is as long as the bytes are used.
#[inline]
pub(super) unsafe fn bytes<'s>(state: *mut lua_State, place: c_int) -> &'s [u8] {
    let mut length = 0;
    // SAFETY: as the caller says.
    unsafe {
        let start = ffi::lua_tolstring(state, place, &mut length);
        std::slice::from_raw_parts(start.cast(), length)
    }
}

/// What kind of value is in this place.
///
/// # Safety
/// The state is one.
pub(super) unsafe fn type_name<'s>(
    state: *mut lua_State,
    place: c_int,
) -> std::borrow::Cow<'s, str> {
    // SAFETY: the names are constants of the library.
    unsafe {
        let name = ffi::lua_typename(state, ffi::lua_type(state, place));
        std::ffi::CStr::from_ptr(name).to_string_lossy()
    }
}
