//! The C functions: what runs in protected mode, and may raise Lua errors.
//!
//! A Lua error leaves these functions by unwinding or by a jump: where one can be raised,
//! nothing is alive that would have to be dropped.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int};

use mlua::ffi::{self, lua_Integer, lua_State};
use prony_http::{Method, Version};

use super::dialect::push_text;
use super::plan::{Bytes, Line, LineKey, Plan};
use super::stack::bytes;
use crate::head::{self, Head};

/// Bytes that `write` keeps until they can be sent.
const WRITTEN_BYTES_MAX: usize = 64 << 20;
/// Of LuaJIT: a value of its FFI.
const LUA_TCDATA: c_int = 10;

/// The arguments of [`enter`], and its results.
pub(super) struct EnterCall<'r> {
    pub refs: &'r Refs,
    pub desk: &'r RefCell<Head>,
    pub plan: &'r Plan,
    pub kind: Cell<ReturnedBody>,
    pub is_closable: Cell<bool>,
}

/// The body that an application returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReturnedBody {
    /// A function that is called for each piece.
    Iterator,
    /// One string.
    Text,
    /// A table of strings.
    List,
    /// The same, up to its first nil: what `ipairs` goes through, which is all there.
    Listed,
    /// None of these.
    Nothing,
}

/// The arguments of [`step`], and its results.
///
/// INVARIANT: `anchor` is a table that [`anchor`] made, and the bytes are of a string that it keeps
/// until the next step.
pub(super) struct StepCall {
    anchor: c_int,
    /// None at the end.
    bytes: Cell<Option<(*const u8, usize)>>,
}

impl StepCall {
    /// # Safety
    /// The registry has a table of the function `anchor` at this reference, until the call returns.
    pub unsafe fn new(anchor: c_int) -> StepCall {
        let bytes = Cell::new(None);
        StepCall { anchor, bytes }
    }

    /// Start and length of the piece that was made; None at the end. It may be read until the next
    /// step of the same iterator.
    pub fn bytes(&self) -> Option<(*const u8, usize)> {
        self.bytes.get()
    }
}

/// Values that the registry keeps, by what they are for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refs {
    pub handler: c_int,
    pub enter: c_int,
    pub anchor: c_int,
    pub step: c_int,
    pub close: c_int,
    pub collect: c_int,
    pub keep: c_int,
    app: c_int,
    environ: c_int,
    place: c_int,
    start_response: c_int,
    close_name: c_int,
    /// What `ipairs` returns first.
    ipairs_step: c_int,
    get: c_int,
    post: c_int,
    http_10: c_int,
    http_11: c_int,
    content_length: c_int,
}

impl Refs {
    /// Registers them. On the stack are the functions environ, handler and place of the
    /// prelude, and the application.
    ///
    /// # Safety
    /// Runs in protected mode; `desk` lives as long as the state.
    pub unsafe fn register(state: *mut lua_State, desk: *const RefCell<Head>) -> Refs {
        // SAFETY: of a value that is pushed just before, a reference is made at once.
        unsafe {
            let app = keep_top(state);
            let place = keep_top(state);
            let handler = keep_top(state);
            let environ = keep_top(state);
            // The first to be let go of makes room for the list of those that are free. Later
            // ones, which nothing protects from errors, need no memory.
            ffi::lua_pushboolean(state, 1);
            ffi::luaL_unref(state, ffi::LUA_REGISTRYINDEX, keep_top(state));
            let function = |function: ffi::lua_CFunction| {
                ffi::lua_pushcclosure(state, function, 0);
                keep_top(state)
            };
            let string = |text: &CStr| {
                ffi::lua_pushstring(state, text.as_ptr());
                keep_top(state)
            };
            ffi::lua_getglobal(state, c"ipairs".as_ptr());
            ffi::lua_createtable(state, 0, 0);
            ffi::lua_call(state, 1, 1);
            let ipairs_step = keep_top(state);
            ffi::lua_pushlightuserdata(state, desk.cast_mut().cast());
            ffi::lua_pushlightuserdata(state, desk.cast_mut().cast());
            ffi::lua_pushcclosure(state, write, 1);
            ffi::lua_pushcclosure(state, start_response, 2);
            Refs {
                app,
                place,
                handler,
                environ,
                start_response: keep_top(state),
                enter: function(enter),
                anchor: function(anchor),
                step: function(step),
                close: function(close),
                collect: function(collect),
                keep: function(keep),
                close_name: string(c"close"),
                ipairs_step,
                get: string(c"GET"),
                post: string(c"POST"),
                http_10: string(c"HTTP/1.0"),
                http_11: string(c"HTTP/1.1"),
                content_length: string(c"CONTENT_LENGTH"),
            }
        }
    }
}

unsafe fn keep_top(state: *mut lua_State) -> c_int {
    // SAFETY: the caller has pushed a value.
    unsafe { ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX) }
}

#[inline]
unsafe fn push_kept(state: *mut lua_State, reference: c_int) {
    // SAFETY: the caller's stack has room.
    unsafe { ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, reference.into()) };
}

#[inline]
unsafe fn push_bytes(state: *mut lua_State, bytes: Bytes) {
    // SAFETY: the caller's stack has room, and the bytes are there (see Plan).
    unsafe { push_text(state, bytes.start().cast(), bytes.len()) };
}

/// Takes a pointer to an [`EnterCall`]; calls the application and returns three values: what
/// it returned, or a triple of an iterator.
pub(super) unsafe extern "C-unwind" fn enter(state: *mut lua_State) -> c_int {
    // SAFETY: the machine calls this with a pointer to an EnterCall that outlives the call.
    // The stack of a C function has 20 places: 14 are used.
    unsafe {
        let call = &*ffi::lua_touserdata(state, 1).cast::<EnterCall<'_>>();
        push_kept(state, call.refs.app);
        push_environ(state, call);
        push_kept(state, call.refs.start_response);
        ffi::lua_call(state, 2, 3);
        let mut kind = kind_of(state, 2);
        if kind == ReturnedBody::Iterator && is_of_ipairs(state, call.refs) {
            kind = ReturnedBody::Listed;
            ffi::lua_pushvalue(state, 3);
            ffi::lua_replace(state, 2);
        }
        call.kind.set(kind);
        if kind == ReturnedBody::List {
            push_kept(state, call.refs.close_name);
            ffi::lua_gettable(state, 2);
            call.is_closable.set(ffi::lua_isnil(state, -1) == 0);
            ffi::lua_settop(state, 4);
        }
        if kind == ReturnedBody::Nothing {
            let name = ffi::lua_typename(state, ffi::lua_type(state, 2));
            push_place(state, call.refs);
            ffi::lua_pushfstring(
                state,
                c"%s: the application returned %s; a table of strings or an iterator is wanted"
                    .as_ptr(),
                ffi::lua_tolstring(state, -1, std::ptr::null_mut()),
                name,
            );
            ffi::lua_error(state);
        }
        // An iterator may call it with its first piece.
        if kind != ReturnedBody::Iterator && !call.desk.borrow().is_started() {
            if call.is_closable.get() {
                // The error that is told is the one below.
                ffi::lua_pushcclosure(state, close, 0);
                ffi::lua_pushvalue(state, 2);
                ffi::lua_pcall(state, 1, 0, 0);
                ffi::lua_settop(state, 4);
            }
            push_place(state, call.refs);
            ffi::lua_pushfstring(
                state,
                c"%s: the application returned without having called start_response".as_ptr(),
                ffi::lua_tolstring(state, -1, std::ptr::null_mut()),
            );
            ffi::lua_error(state);
        }
    }
    3
}

/// Pushes where the application was written.
unsafe fn push_place(state: *mut lua_State, refs: &Refs) {
    // SAFETY: `place` takes a value and returns a string.
    unsafe {
        push_kept(state, refs.place);
        push_kept(state, refs.app);
        ffi::lua_call(state, 1, 1);
    }
}

unsafe fn kind_of(state: *mut lua_State, place: c_int) -> ReturnedBody {
    // SAFETY: looks at a value in its place.
    unsafe {
        match ffi::lua_type(state, place) {
            ffi::LUA_TSTRING => ReturnedBody::Text,
            ffi::LUA_TFUNCTION => ReturnedBody::Iterator,
            ffi::LUA_TTABLE => match has_call(state, place) {
                true => ReturnedBody::Iterator,
                false => ReturnedBody::List,
            },
            ffi::LUA_TUSERDATA | LUA_TCDATA if has_call(state, place) => ReturnedBody::Iterator,
            _ => ReturnedBody::Nothing,
        }
    }
}

/// Whether the three values from the second place on are those that `ipairs` returns for a
/// table without a metatable: nothing of the application runs when that is gone through.
unsafe fn is_of_ipairs(state: *mut lua_State, refs: &Refs) -> bool {
    // SAFETY: looks at values in their places, and leaves the stack as it was.
    unsafe {
        if ffi::lua_type(state, 2) != ffi::LUA_TFUNCTION
            || ffi::lua_type(state, 3) != ffi::LUA_TTABLE
            || ffi::lua_type(state, 4) != ffi::LUA_TNUMBER
            || ffi::lua_tonumber(state, 4) != 0.0
        {
            return false;
        }
        push_kept(state, refs.ipairs_step);
        let is_its = ffi::lua_rawequal(state, 2, -1) != 0;
        ffi::lua_settop(state, -2);
        let is_plain = ffi::lua_getmetatable(state, 3) == 0;
        if !is_plain {
            ffi::lua_settop(state, -2);
        }
        is_its && is_plain
    }
}

unsafe fn has_call(state: *mut lua_State, place: c_int) -> bool {
    // SAFETY: leaves the stack as it was.
    unsafe {
        let has = ffi::luaL_getmetafield(state, place, c"__call".as_ptr()) != ffi::LUA_TNIL;
        if has {
            ffi::lua_settop(state, -2);
        }
        has
    }
}

unsafe fn push_environ(state: *mut lua_State, call: &EnterCall<'_>) {
    let (refs, plan) = (call.refs, call.plan);
    // SAFETY: `environ` takes eight values and returns a table; see `enter` for the stack.
    unsafe {
        push_kept(state, refs.environ);
        match plan.method {
            Method::Get => push_kept(state, refs.get),
            Method::Post => push_kept(state, refs.post),
            _ => push_bytes(state, plan.method.name().as_bytes().into()),
        }
        push_bytes(state, plan.path);
        push_bytes(state, plan.query);
        match plan.path == plan.target {
            true => ffi::lua_pushvalue(state, -2),
            false => push_bytes(state, plan.target),
        }
        push_kept(
            state,
            match plan.version {
                Version::Http10 => refs.http_10,
                Version::Http11 => refs.http_11,
            },
        );
        push_bytes(state, plan.peer.ip_text.as_bytes().into());
        push_bytes(state, plan.peer.port_text.as_bytes().into());
        match plan.body.len() {
            0 => ffi::lua_pushnil(state),
            _ => push_bytes(state, plan.body),
        }
        ffi::lua_call(state, 8, 1);
        for line in &plan.lines {
            set_line(state, plan, line);
        }
        if plan.is_chunked {
            push_kept(state, refs.content_length);
            ffi::lua_pushinteger(state, plan.body.len() as lua_Integer);
            ffi::lua_tolstring(state, -1, std::ptr::null_mut());
            ffi::lua_rawset(state, -3);
        }
    }
}

/// Adds what a header gives to the table on the top.
#[inline]
unsafe fn set_line(state: *mut lua_State, plan: &Plan, line: &Line) {
    // SAFETY: uses five places at most, and leaves the table on the top.
    unsafe {
        match line.key {
            LineKey::Kept(reference) => push_kept(state, reference),
            LineKey::Own(start, end) => push_bytes(state, plan.keys[start..end].into()),
        }
        if let Some(joint) = line.joint {
            ffi::lua_pushvalue(state, -1);
            ffi::lua_rawget(state, -3);
            push_bytes(state, joint.as_bytes().into());
            push_bytes(state, line.value);
            ffi::lua_concat(state, 3);
        } else {
            push_bytes(state, line.value);
        }
        ffi::lua_rawset(state, -3);
    }
}

/// Takes the three values of an iterator, keeps them in the registry, and returns where.
unsafe extern "C-unwind" fn anchor(state: *mut lua_State) -> c_int {
    // SAFETY: the machine calls this with three values.
    unsafe {
        // The fourth place is for the piece that is being sent.
        ffi::lua_createtable(state, 4, 0);
        for place in 1..=3 {
            ffi::lua_pushvalue(state, place);
            ffi::lua_rawseti(state, -2, place.into());
        }
        let reference = keep_top(state);
        ffi::lua_pushinteger(state, reference.into());
    }
    1
}

/// Takes a pointer to a [`StepCall`]; calls the iterator once.
///
/// A piece is the first value that an iterator gives, or the second, as `ipairs` has it:
/// the second where it is a string, and the first is none, or the iterator has a state,
/// as those of `ipairs` and `pairs` have.
unsafe extern "C-unwind" fn step(state: *mut lua_State) -> c_int {
    // SAFETY: the machine calls this with a pointer to a StepCall that outlives the call, of
    // which the anchor is a table.
    unsafe {
        let piece = &*ffi::lua_touserdata(state, 1).cast::<StepCall>();
        push_kept(state, piece.anchor);
        let has_state = ffi::lua_rawgeti(state, 2, 2) != ffi::LUA_TNIL;
        ffi::lua_settop(state, 2);
        for place in 1..=3 {
            ffi::lua_rawgeti(state, 2, place);
        }
        ffi::lua_call(state, 2, 2);
        let (first, second) = (ffi::lua_type(state, 3), ffi::lua_type(state, 4));
        if first == ffi::LUA_TNIL {
            return 0;
        }
        let is_second = second == ffi::LUA_TSTRING && (first != ffi::LUA_TSTRING || has_state);
        let chosen = if is_second { 4 } else { 3 };
        if ffi::lua_type(state, chosen) != ffi::LUA_TSTRING {
            return ffi::luaL_error(
                state,
                c"the application's iterator gave a %s, not a string".as_ptr(),
                ffi::lua_typename(state, ffi::lua_type(state, chosen)),
            );
        }
        ffi::lua_pushvalue(state, 3);
        ffi::lua_rawseti(state, 2, 3);
        ffi::lua_pushvalue(state, chosen);
        ffi::lua_rawseti(state, 2, 4);
        let mut length = 0;
        let start = ffi::lua_tolstring(state, chosen, &mut length);
        piece.bytes.set(Some((start.cast(), length)));
    }
    0
}

/// Takes what an application returned, and calls its method `close`, if it has one.
unsafe extern "C-unwind" fn close(state: *mut lua_State) -> c_int {
    // SAFETY: the machine calls this with one value.
    unsafe {
        match ffi::lua_type(state, 1) {
            ffi::LUA_TTABLE => _ = ffi::lua_getfield(state, 1, c"close".as_ptr()),
            ffi::LUA_TUSERDATA | LUA_TCDATA => {
                // Such values raise an error where they have no such field.
                ffi::lua_pushcclosure(state, close_of, 0);
                ffi::lua_pushvalue(state, 1);
                if ffi::lua_pcall(state, 1, 1, 0) != ffi::LUA_OK {
                    return 0;
                }
            }
            _ => return 0,
        }
        if ffi::lua_isnil(state, -1) == 0 {
            ffi::lua_pushvalue(state, 1);
            ffi::lua_call(state, 1, 0);
        }
    }
    0
}

/// Takes a value and returns its field `close`.
unsafe extern "C-unwind" fn close_of(state: *mut lua_State) -> c_int {
    // SAFETY: `close` calls this with one value.
    unsafe { ffi::lua_getfield(state, 1, c"close".as_ptr()) };
    1
}

/// Frees what no one uses; what has a finalizer takes a second round.
unsafe extern "C-unwind" fn collect(state: *mut lua_State) -> c_int {
    // SAFETY: finalizers may raise errors, as all here.
    unsafe {
        ffi::lua_gc(state, ffi::LUA_GCCOLLECT, 0);
        ffi::lua_gc(state, ffi::LUA_GCCOLLECT, 0);
    }
    0
}

/// Takes a pointer to a slice, makes a string of it, and returns where that is kept.
unsafe extern "C-unwind" fn keep(state: *mut lua_State) -> c_int {
    // SAFETY: the machine calls this with a pointer to a slice that outlives the call.
    unsafe {
        let text = *ffi::lua_touserdata(state, 1).cast::<&[u8]>();
        push_bytes(state, text.into());
        let reference = keep_top(state);
        ffi::lua_pushinteger(state, reference.into());
    }
    1
}

/// `start_response(status, response_headers [, exc_info])`; returns `write`.
unsafe extern "C-unwind" fn start_response(state: *mut lua_State) -> c_int {
    // SAFETY: the first upvalue points to the desk, which lives as long as the state.
    unsafe {
        let desk = &*ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<RefCell<Head>>();
        let has_trouble = ffi::lua_isnoneornil(state, 3) == 0;
        // The borrow ends here: an error may be raised below.
        let (is_started, is_sent) = {
            let head = desk.borrow();
            (head.is_started(), head.is_sent)
        };
        let refusal = match (is_started, is_sent) {
            (true, true) if has_trouble => {
                ffi::lua_settop(state, 3);
                ffi::lua_error(state);
            }
            (true, true) => Some(c"start_response: the answer is on its way already"),
            (true, false) if !has_trouble => Some(
                c"start_response was called a second time; only with an error as third \
                  argument may it be",
            ),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return ffi::luaL_error(state, c"%s".as_ptr(), refusal.as_ptr());
        }
        ffi::lua_settop(state, 2);
        if !begin(state, desk) {
            // The text is on the top.
            ffi::luaL_where(state, 1);
            ffi::lua_insert(state, -2);
            ffi::lua_concat(state, 2);
            ffi::lua_error(state);
        }
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(2));
    }
    1
}

/// Takes status and headers; false: what is wrong with them is on the top.
unsafe fn begin(state: *mut lua_State, desk: &RefCell<Head>) -> bool {
    // SAFETY: looks at the two arguments in their places.
    unsafe {
        let status = match ffi::lua_type(state, 1) {
            ffi::LUA_TSTRING => head::parse_status(bytes(state, 1)),
            ffi::LUA_TNUMBER => head::number_status(ffi::lua_tonumber(state, 1)),
            kind => Err(head::Fault::Status(kind_name(state, kind))),
        };
        match status {
            Ok(status) => desk.borrow_mut().begin(status),
            Err(fault) => return refuse(state, fault),
        }
        match ffi::lua_type(state, 2) {
            ffi::LUA_TNIL | ffi::LUA_TNONE => {
                desk.borrow_mut().commit();
                return true;
            }
            ffi::LUA_TTABLE => {}
            kind => return refuse(state, head::Fault::Headers(kind_name(state, kind))),
        }
        // A list of pairs, and then the names that are keys.
        let count = ffi::lua_rawlen(state, 2);
        for place in 1..=count {
            ffi::lua_rawgeti(state, 2, place as lua_Integer);
            if ffi::lua_type(state, 3) != ffi::LUA_TTABLE {
                return refuse(state, head::Fault::Pair(place));
            }
            ffi::lua_rawgeti(state, 3, 1);
            ffi::lua_rawgeti(state, 3, 2);
            if !push_header(state, desk) {
                return false;
            }
            ffi::lua_settop(state, 2);
        }
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, 2) != 0 {
            match ffi::lua_type(state, 3) {
                ffi::LUA_TNUMBER => {}
                _ if !push_named(state, desk) => return false,
                _ => {}
            }
            ffi::lua_settop(state, 3);
        }
    }
    desk.borrow_mut().commit();
    true
}

/// Adds the headers of a name, in place 3, whose value, in place 4, is one or a table of
/// several.
unsafe fn push_named(state: *mut lua_State, desk: &RefCell<Head>) -> bool {
    // SAFETY: as of `begin`.
    unsafe {
        if ffi::lua_type(state, 4) != ffi::LUA_TTABLE {
            ffi::lua_pushvalue(state, 3);
            ffi::lua_insert(state, 4);
            return push_header(state, desk);
        }
        for place in 1..=ffi::lua_rawlen(state, 4) {
            ffi::lua_pushvalue(state, 3);
            ffi::lua_rawgeti(state, 4, place as lua_Integer);
            if !push_header(state, desk) {
                return false;
            }
            ffi::lua_settop(state, 4);
        }
    }
    true
}

/// Adds a header: its name and its value are the two on the top.
unsafe fn push_header(state: *mut lua_State, desk: &RefCell<Head>) -> bool {
    // SAFETY: as of `begin`. A number's text replaces it on the stack only.
    unsafe {
        if ffi::lua_type(state, -2) != ffi::LUA_TSTRING {
            let kind = kind_name(state, ffi::lua_type(state, -2));
            return refuse(state, head::Fault::NameKind(kind));
        }
        if ffi::lua_isstring(state, -1) == 0 {
            let kind = kind_name(state, ffi::lua_type(state, -1));
            let name = String::from_utf8_lossy(bytes(state, -2)).into_owned();
            return refuse(state, head::Fault::ValueKind(name, kind));
        }
        ffi::lua_tolstring(state, -1, std::ptr::null_mut());
        let (name, value) = (bytes(state, -2), bytes(state, -1));
        let pushed = desk.borrow_mut().push(name, value);
        match pushed {
            Ok(()) => true,
            Err(fault) => refuse(state, fault),
        }
    }
}

unsafe fn kind_name(state: *mut lua_State, kind: c_int) -> String {
    // SAFETY: the names are constants of the library.
    let name = unsafe { CStr::from_ptr(ffi::lua_typename(state, kind)) };
    name.to_string_lossy().into_owned()
}

/// Pushes what is wrong. It is gone when a Lua error can be raised next.
unsafe fn refuse(state: *mut lua_State, fault: head::Fault) -> bool {
    let text = fault.to_string();
    // SAFETY: there is room. Should memory for it lack, the text leaks, once in the life
    // of a state that is given up then.
    unsafe { push_bytes(state, text.as_bytes().into()) };
    false
}

/// `write(text)`: adds to the body, before what the application returns.
unsafe extern "C-unwind" fn write(state: *mut lua_State) -> c_int {
    // SAFETY: the upvalue points to the desk, which lives as long as the state.
    unsafe {
        let desk = &*ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<RefCell<Head>>();
        if ffi::lua_type(state, 1) != ffi::LUA_TSTRING {
            return ffi::luaL_error(
                state,
                c"write takes a string, not a %s".as_ptr(),
                ffi::lua_typename(state, ffi::lua_type(state, 1)),
            );
        }
        let text = bytes(state, 1);
        if desk.borrow().written.len() + text.len() > WRITTEN_BYTES_MAX {
            return ffi::luaL_error(
                state,
                c"write: 64 MiB wait to be sent, which is all that may; return an iterator \
                  instead"
                    .as_ptr(),
            );
        }
        desk.borrow_mut().written.extend_from_slice(text);
    }
    0
}
