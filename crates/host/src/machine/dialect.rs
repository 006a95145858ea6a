//! Where the two Luas that this crate is built with, LuaJIT and Lua 5.4, differ for C: all else of the bridge is the
//! same text for both.

use std::ffi::c_char;

use mlua::ffi::{self, lua_State};

/// Pushes a string.
///
/// # Safety
/// The stack has room, and `start` points to so many bytes. Raises an error where memory lacks.
#[inline(always)]
pub(super) unsafe fn push_text(state: *mut lua_State, start: *const c_char, length: usize) {
    // SAFETY: as the caller says. The function of the other Lua returns nothing, and mlua's of the usual name reads the
    // string back, which every header would pay for.
    #[cfg(not(feature = "lua54"))]
    unsafe {
        ffi::lua_pushlstring_(state, start, length)
    };
    // SAFETY: as the caller says.
    #[cfg(feature = "lua54")]
    unsafe {
        ffi::lua_pushlstring(state, start, length)
    };
}
