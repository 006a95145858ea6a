//! The Lua state of one worker, and the way into it: a request goes in as a table, what
//! the application returns comes out as bytes.
//!
//! This, [`entry`] and [`stack`] are the crate's only modules with `unsafe`, because mlua's safe calls
//! would cost several times what the rest of a request costs. All that is given to the
//! rest of the crate is safe.
//!
//! Not for: HTTP, or what is answered when something fails.
//!
//! # How a call goes
//! [`Machine::call`] looks through the request (a [`Plan`]: which string is the value of
//! which key), and runs the C function [`entry::enter`] in protected mode: only what runs
//! so may raise Lua errors, and nothing in it needs to be dropped. It makes the environ,
//! calls the application, and looks what came of it. Meanwhile `start_response` and
//! `write`, which are two C functions for the whole life of the state, fill the [`Head`] on
//! the desk: that of the request whose Lua code is running. A body in pieces, each of which
//! is a call of its own, brings its head to the desk and takes it away again.

mod dialect;
mod entry;
mod failure;
mod plan;
mod stack;

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::mem;
use std::net::SocketAddr;
use std::rc::Rc;

use mlua::ffi::{self, lua_Integer, lua_State};
use mlua::{Function, Lua, Value};
use prony_http::Request;

use crate::head::Head;
use entry::{EnterCall, Refs, ReturnedBody, StepCall};
pub(crate) use failure::Failure;
use plan::{Names, Plan};
use stack::{Stack, bytes, type_name};

/// Memory for a body of several strings that is kept for the next.
const SCRATCH_BYTES_MAX: usize = 64 << 10;
/// A heap this small is collected late: it may grow by so much before.
const GARBAGE_KIB: i32 = 1536;

/// A Lua state with an application in it.
pub(crate) struct Machine {
    /// INVARIANT: the main thread of `lua`, on which nothing runs between calls.
    state: *mut lua_State,
    /// Before the desk: dropped first, because finalizers may call what points there.
    _lua: Lua,
    /// The head of the request whose Lua code is running.
    /// INVARIANT: stays where it is as long as `_lua`, whose C functions point to it.
    desk: Rc<RefCell<Head>>,
    refs: Refs,
    names: RefCell<Names>,
    plan: RefCell<Plan>,
    scratch: RefCell<Vec<u8>>,
    /// KiB in use above which the collector is set anew.
    tuned_kib: Cell<i32>,
}

/// The values that the prelude gives to the bridge.
pub(crate) struct Prelude {
    /// Makes an environ.
    pub environ: Function,
    /// Makes text of an error.
    pub handler: Function,
    /// Says where a function was written.
    pub place: Function,
}

/// The outcome of a call.
pub(crate) enum CallOutcome<'m, R> {
    /// The body was whole; what the caller made of it.
    Whole(R),
    /// The body comes in pieces.
    Pieces(Pieces<'m>),
}

impl Machine {
    /// Takes a state and the application in it.
    pub fn new(lua: Lua, app: Value, prelude: Prelude) -> mlua::Result<Machine> {
        let desk = Rc::new(RefCell::new(Head::default()));
        // After the desk, so that it is dropped before it where this fails.
        let lua = lua;
        let mut state = std::ptr::null_mut();
        let mut refs = Refs::default();
        let given = (prelude.environ, prelude.handler, prelude.place, app);
        // SAFETY: the closure runs in protected mode, with `given` on the stack, and takes
        // away what it puts there. No Lua code is running, so that the state it is given
        // is the main thread.
        unsafe {
            lua.exec_raw::<()>(given, |lua_state| {
                state = lua_state;
                refs = Refs::register(lua_state, Rc::as_ptr(&desk));
                ffi::lua_settop(lua_state, 0);
            })?;
        }
        let machine = Machine {
            state,
            _lua: lua,
            desk,
            refs,
            names: RefCell::default(),
            plan: RefCell::default(),
            scratch: RefCell::default(),
            tuned_kib: Cell::new(0),
        };
        machine.collect();
        Ok(machine)
    }

    /// Has a request answered. If the body is whole, `complete` is given head and body.
    pub fn call<R>(
        &self,
        request: &Request<'_>,
        peer: Option<SocketAddr>,
        complete: impl FnOnce(&Head, &[u8]) -> R,
    ) -> Result<CallOutcome<'_, R>, Failure> {
        self.desk.borrow_mut().clear();
        let mut plan = self.plan.borrow_mut();
        self.look_through(request, peer, &mut plan)?;
        let call = EnterCall {
            refs: &self.refs,
            desk: &self.desk,
            plan: &plan,
            kind: Cell::new(ReturnedBody::Nothing),
            is_closable: Cell::new(false),
        };
        let stack = Stack::new(self.state);
        // SAFETY: `enter` takes a pointer to an EnterCall, which lives until it returns, and
        // returns three values.
        unsafe {
            stack.push(self.refs.handler);
            stack.push(self.refs.enter);
            ffi::lua_pushlightuserdata(self.state, (&raw const call).cast_mut().cast());
            stack.call(1, 3)?;
        }
        let (kind, is_closable) = (call.kind.get(), call.is_closable.get());
        drop(plan);
        if kind == ReturnedBody::Iterator {
            return self.pieces(&stack).map(CallOutcome::Pieces);
        }
        let made = self.complete(&stack, kind, complete);
        if is_closable {
            // SAFETY: the object is the first of the three values that `enter` left.
            unsafe { self.close(|| ffi::lua_pushvalue(self.state, stack.base + 2)) };
        }
        made.map(CallOutcome::Whole)
    }

    /// Reads a body that is whole from the stack: a string, or a table of strings, first
    /// of the three values that `enter` left.
    fn complete<R>(
        &self,
        stack: &Stack,
        kind: ReturnedBody,
        complete: impl FnOnce(&Head, &[u8]) -> R,
    ) -> Result<R, Failure> {
        let head = self.desk.borrow();
        let value = stack.base + 2;
        if kind == ReturnedBody::Text && head.written.is_empty() {
            // SAFETY: `enter` found it to be a string, and it is on the stack until
            // `stack` is dropped.
            return Ok(complete(&head, unsafe { bytes(self.state, value) }));
        }
        let count = match kind {
            ReturnedBody::Text => 1,
            // SAFETY: of a table the length can be read.
            _ => unsafe { ffi::lua_rawlen(self.state, value) },
        };
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        scratch.extend_from_slice(&head.written);
        for place in 1..=count {
            // SAFETY: the value is a table, unless it is a string; what is taken from it
            // is on the stack while it is read. Only strings are read as such, because
            // reading a number would make a string of it.
            unsafe {
                match kind {
                    ReturnedBody::Text => ffi::lua_pushvalue(self.state, value),
                    _ => _ = ffi::lua_rawgeti(self.state, value, place as lua_Integer),
                }
                if kind == ReturnedBody::Listed && ffi::lua_isnil(self.state, -1) != 0 {
                    break;
                }
                if ffi::lua_type(self.state, -1) != ffi::LUA_TSTRING {
                    return Err(Failure::new(format!(
                        "the application returned a table in which value {place} is a {}, \
                         not a string",
                        type_name(self.state, -1)
                    )));
                }
                let piece = bytes(self.state, -1);
                if count == 1 && scratch.is_empty() {
                    return Ok(complete(&head, piece));
                }
                scratch.extend_from_slice(piece);
                ffi::lua_settop(self.state, value + 2);
            }
        }
        let made = complete(&head, &scratch);
        if scratch.capacity() > SCRATCH_BYTES_MAX {
            *scratch = Vec::new();
        }
        Ok(made)
    }

    /// Keeps the iterator whose three values `enter` left.
    fn pieces(&self, stack: &Stack) -> Result<Pieces<'_>, Failure> {
        let first = stack.base + 2;
        // SAFETY: `anchor` takes three values and returns a number.
        let anchor = unsafe {
            stack.push(self.refs.handler);
            stack.push(self.refs.anchor);
            for place in first..first + 3 {
                ffi::lua_pushvalue(self.state, place);
            }
            stack.call_at(first + 3, 3, 1)?;
            ffi::lua_tonumber(self.state, -1) as c_int
        };
        Ok(Pieces {
            machine: self,
            anchor,
            current: ([].as_ptr(), 0),
            head: mem::take(&mut *self.desk.borrow_mut()),
        })
    }

    /// Calls the method `close` of what `push` puts on the stack. An error in it is printed,
    /// and concerns nobody else.
    ///
    /// # Safety
    /// `push` puts one value on the stack.
    unsafe fn close(&self, push: impl FnOnce()) {
        let stack = Stack::new(self.state);
        // SAFETY: `close` takes a value and returns none.
        let closed = unsafe {
            stack.push(self.refs.handler);
            stack.push(self.refs.close);
            push();
            stack.call(1, 0)
        };
        if let Err(failure) = closed {
            crate::say("while the answer's body was closed", &failure.text);
        }
    }

    /// Frees what no one uses, and sets when that is done by itself.
    ///
    /// By default a heap may double before it is collected, which for an application of a
    /// few hundred KiB is every few hundred requests: the whole of it would be looked
    /// through again and again. So it may grow by a fixed size at least.
    pub fn collect(&self) {
        let stack = Stack::new(self.state);
        // SAFETY: `collect` takes and returns nothing. Counting and setting raise no
        // errors.
        let kib = unsafe {
            stack.push(self.refs.handler);
            stack.push(self.refs.collect);
            if let Err(failure) = stack.call(0, 0) {
                crate::say("while memory was freed", &failure.text);
            }
            ffi::lua_gc(self.state, ffi::LUA_GCCOUNT, 0)
        };
        self.tune(kib.max(1));
    }

    fn tune(&self, kib: i32) {
        let percent = 100 + (GARBAGE_KIB.saturating_mul(100) / kib).clamp(50, 900);
        // SAFETY: sets a number.
        unsafe { ffi::lua_gc(self.state, ffi::LUA_GCSETPAUSE, percent) };
        self.tuned_kib
            .set(kib.saturating_mul(2).saturating_add(2 * GARBAGE_KIB));
    }

    /// Sets the collector anew if the heap has become much larger.
    fn watch(&self) {
        // SAFETY: reads a number.
        let kib = unsafe { ffi::lua_gc(self.state, ffi::LUA_GCCOUNT, 0) };
        if kib > self.tuned_kib.get() {
            self.tune(kib);
        }
    }

    /// A reference to a string of these bytes.
    fn keep(&self, text: &[u8]) -> Result<c_int, Failure> {
        let stack = Stack::new(self.state);
        // SAFETY: `keep` takes a pointer to a slice, which lives until it returns, and
        // returns a number.
        unsafe {
            stack.push(self.refs.handler);
            stack.push(self.refs.keep);
            ffi::lua_pushlightuserdata(self.state, (&raw const text).cast_mut().cast());
            stack.call(1, 1)?;
            Ok(ffi::lua_tonumber(self.state, -1) as c_int)
        }
    }

    fn look_through(
        &self,
        request: &Request<'_>,
        peer: Option<SocketAddr>,
        plan: &mut Plan,
    ) -> Result<(), Failure> {
        self.watch();
        plan.begin(request, peer);
        let mut names = self.names.borrow_mut();
        for header in &request.headers() {
            plan.add(header, &mut names, |key| self.keep(key))?;
        }
        Ok(())
    }
}

/// A body in pieces. Dropped, it is closed, however far it came.
pub(crate) struct Pieces<'m> {
    machine: &'m Machine,
    /// Where the registry has the iterator.
    anchor: c_int,
    /// INVARIANT: of a string that the anchor keeps until the next step.
    current: (*const u8, usize),
    pub head: Head,
}

impl Pieces<'_> {
    /// Has the next piece made; false at the end.
    pub fn advance(&mut self) -> Result<bool, Failure> {
        let machine = self.machine;
        // SAFETY: the anchor is that of this value, which lets go of it when it is dropped.
        let piece = unsafe { StepCall::new(self.anchor) };
        self.current = ([].as_ptr(), 0);
        let stack = Stack::new(machine.state);
        mem::swap(&mut *machine.desk.borrow_mut(), &mut self.head);
        // SAFETY: `step` takes a pointer to a StepCall, which lives until it returns, and
        // returns nothing.
        let called = unsafe {
            stack.push(machine.refs.handler);
            stack.push(machine.refs.step);
            ffi::lua_pushlightuserdata(machine.state, (&raw const piece).cast_mut().cast());
            stack.call(1, 0)
        };
        mem::swap(&mut *machine.desk.borrow_mut(), &mut self.head);
        called?;
        let bytes = piece.bytes();
        if let Some(bytes) = bytes {
            self.current = bytes;
        }
        Ok(bytes.is_some())
    }

    /// The piece that was made last.
    pub fn current(&self) -> &[u8] {
        let (start, length) = self.current;
        // SAFETY: as the invariant says; the next step, and the end of this value, need
        // it exclusively.
        unsafe { std::slice::from_raw_parts(start, length) }
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        let state = self.machine.state;
        mem::swap(&mut *self.machine.desk.borrow_mut(), &mut self.head);
        // SAFETY: the anchor is a table with the object in its first place; it is let go
        // of once. Setting a value in a place that is there needs no memory.
        unsafe {
            self.machine.close(|| {
                ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, self.anchor.into());
                ffi::lua_rawgeti(state, -1, 1);
                ffi::lua_remove(state, -2);
            });
            ffi::luaL_unref(state, ffi::LUA_REGISTRYINDEX, self.anchor);
        }
        mem::swap(&mut *self.machine.desk.borrow_mut(), &mut self.head);
    }
}

#[cfg(test)]
mod tests {
    use mlua::{UserData, Value};

    use super::*;

    /// Notes, when the state ends, whether the desk is still there.
    struct Probe {
        desk: std::rc::Weak<RefCell<Head>>,
        found: Rc<Cell<Option<bool>>>,
    }

    impl UserData for Probe {}

    impl Drop for Probe {
        fn drop(&mut self) {
            self.found.set(Some(self.desk.strong_count() > 0));
        }
    }

    fn machine() -> Machine {
        // SAFETY: the code below loads nothing.
        let lua = unsafe { Lua::unsafe_new() };
        let nothing = lua.load("return tostring(...)").into_function();
        let nothing = nothing.expect("a function");
        let prelude = Prelude {
            environ: nothing.clone(),
            handler: nothing.clone(),
            place: nothing,
        };
        Machine::new(lua, Value::Nil, prelude).expect("a machine")
    }

    #[test]
    fn finalizers_that_run_at_the_end_of_the_state_find_the_desk() {
        let machine = machine();
        let found = Rc::new(Cell::new(None));
        let probe = Probe {
            desk: Rc::downgrade(&machine.desk),
            found: Rc::clone(&found),
        };
        let globals = machine._lua.globals();
        globals.set("probe", probe).expect("set");
        drop(globals);
        drop(machine);
        assert_eq!(found.get(), Some(true));
    }

    #[test]
    fn only_lua_and_the_host_can_say_that_memory_is_exhausted() {
        let machine = machine();
        for (text, is_memory) in [
            ("not enough memory", true),
            ("not enough memory\nstack traceback:\n\tsite.lua:1", true),
            ("memory error: not enough memory\nstack traceback:", true),
            ("site.lua:1: the client says: not enough memory", false),
            ("too much\nnot enough memory", false),
        ] {
            let stack = Stack::new(machine.state);
            // SAFETY: there is room for a string.
            unsafe { dialect::push_text(machine.state, text.as_ptr().cast(), text.len()) };
            let failure = stack.failure(ffi::LUA_ERRRUN);
            assert_eq!(failure.is_memory, is_memory, "{text}");
        }
    }
}
