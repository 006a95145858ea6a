//! Values that go between Lua states and this program: plain data, copied.

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};

/// Tables in tables, at the most.
const DEPTH_MAX: usize = 64;
/// Values that are copied at once, at the most; a string counts as one for every so many bytes, too. A table that is twice in another
/// is copied twice.
const VALUES_MAX: usize = 1 << 20;
const TEXT_BYTES: usize = 64;

/// A value of Lua that can be copied.
#[derive(Clone, Debug, PartialEq)]
pub enum LuaValue {
    /// Nothing.
    Nil,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string, of any bytes.
    Text(Vec<u8>),
    /// Keys and values.
    Table(Vec<(LuaValue, LuaValue)>),
    /// A value that cannot be copied, by its type.
    Other(&'static str),
}

impl LuaValue {
    /// A string.
    pub fn text(text: &str) -> LuaValue {
        LuaValue::Text(text.as_bytes().to_vec())
    }

    /// A table of these in order.
    pub fn list(all: impl IntoIterator<Item = LuaValue>) -> LuaValue {
        let numbered = (1..).zip(all);
        LuaValue::Table(
            numbered
                .map(|(at, of): (u32, _)| (LuaValue::Number(at.into()), of))
                .collect(),
        )
    }

    /// A table with these names; what is nil is left out.
    pub fn named<const N: usize>(all: [(&str, LuaValue); N]) -> LuaValue {
        let defined = all.into_iter().filter(|(_, value)| *value != LuaValue::Nil);
        LuaValue::Table(
            defined
                .map(|(name, value)| (LuaValue::text(name), value))
                .collect(),
        )
    }

    /// Its type, as an error says it.
    pub fn kind(&self) -> &'static str {
        match self {
            LuaValue::Nil => "nil",
            LuaValue::Bool(_) => "a boolean",
            LuaValue::Number(_) => "a number",
            LuaValue::Text(_) => "a string",
            LuaValue::Table(_) => "a table",
            LuaValue::Other(kind) => kind,
        }
    }

    /// The type of a part of it, at whatever depth, that cannot be copied.
    pub fn not_copied(&self) -> Option<&'static str> {
        match self {
            LuaValue::Other(kind) => Some(kind),
            LuaValue::Table(all) => all
                .iter()
                .find_map(|(key, value)| key.not_copied().or_else(|| value.not_copied())),
            _ => None,
        }
    }

    /// Its text, if it is one.
    pub fn into_text(self) -> Option<String> {
        match self {
            LuaValue::Text(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        }
    }
}

/// The bytes of the string in this place.
///
/// # Safety
/// It is a string, which stays on the stack while they are used.
pub(crate) unsafe fn bytes<'s>(state: *mut lua_State, place: c_int) -> &'s [u8] {
    let mut length = 0;
    // SAFETY: as the caller says.
    unsafe {
        let start = ffi::lua_tolstring(state, place, &mut length);
        std::slice::from_raw_parts(start.cast(), length)
    }
}

/// Copies the value in this place, counted from the bottom. Raises no error.
///
/// # Safety
/// The place has a value.
pub(crate) unsafe fn read(state: *mut lua_State, place: c_int, depth: usize) -> LuaValue {
    // SAFETY: as the caller says.
    unsafe { copied(state, place, depth, &mut { VALUES_MAX }) }
}

/// # Safety
/// The place has a value.
unsafe fn copied(state: *mut lua_State, place: c_int, depth: usize, left: &mut usize) -> LuaValue {
    if *left == 0 {
        return LuaValue::Other("a table with too many values");
    }
    *left -= 1;
    // SAFETY: types are asked before values are read, and `lua_next` is given keys that it gave.
    unsafe {
        match ffi::lua_type(state, place) {
            ffi::LUA_TNIL => LuaValue::Nil,
            ffi::LUA_TBOOLEAN => LuaValue::Bool(ffi::lua_toboolean(state, place) != 0),
            ffi::LUA_TNUMBER => LuaValue::Number(ffi::lua_tonumber(state, place)),
            ffi::LUA_TSTRING => {
                let text = bytes(state, place);
                *left = left.saturating_sub(text.len() / TEXT_BYTES);
                LuaValue::Text(text.to_vec())
            }
            ffi::LUA_TTABLE if depth < DEPTH_MAX && ffi::lua_checkstack(state, 4) != 0 => {
                let mut all = Vec::new();
                ffi::lua_pushnil(state);
                while ffi::lua_next(state, place) != 0 {
                    let top = ffi::lua_gettop(state);
                    let key = copied(state, top - 1, depth + 1, left);
                    all.push((key, copied(state, top, depth + 1, left)));
                    ffi::lua_settop(state, top - 1);
                }
                LuaValue::Table(all)
            }
            ffi::LUA_TTABLE => LuaValue::Other("a table that is nested too deep or in itself"),
            ffi::LUA_TFUNCTION => LuaValue::Other("a function"),
            ffi::LUA_TUSERDATA => LuaValue::Other("a userdata"),
            _ => LuaValue::Other("a value that cannot be copied"),
        }
    }
}

/// Pushes a copy; nil for what cannot be.
///
/// # Safety
/// Runs in protected mode: raises an error where memory lacks.
pub(crate) unsafe fn push(state: *mut lua_State, value: &LuaValue) {
    // SAFETY: there is room for what is pushed, or an error is raised; a key is neither nil nor no number.
    unsafe {
        ffi::luaL_checkstack(state, 4, c"nested too deep".as_ptr());
        match value {
            LuaValue::Nil | LuaValue::Other(_) => ffi::lua_pushnil(state),
            LuaValue::Bool(is) => ffi::lua_pushboolean(state, (*is).into()),
            LuaValue::Number(number) => ffi::lua_pushnumber(state, *number),
            LuaValue::Text(text) => ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len()),
            LuaValue::Table(all) => {
                ffi::lua_createtable(state, 0, 0);
                for (key, value) in all {
                    if matches!(key, LuaValue::Nil | LuaValue::Other(_)) {
                        continue;
                    }
                    push(state, key);
                    push(state, value);
                    ffi::lua_rawset(state, -3);
                }
            }
        }
    }
}
