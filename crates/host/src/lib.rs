//! Web applications in Lua (LuaJIT, or Lua 5.4) on Prony's server, over the WSGI convention as it
//! reads in Lua: `app(environ, start_response)` returns an iterator or a table of strings.
//! What that means exactly is in `docs/host-interface.md`.
//!
//! Not for: worker processes, static files, the access log (`prony-hosting`).
//!
//! # The parts
//! `load` finds the application; `machine` is the Lua state and the way into it;
//! `head` what `start_response` is given; `answer` makes answers of it all.
//! [`library`] is what applications are given beside the interface: the framework.
//! `choice` reads which of the two Luas an application asks for.
//!
//! # Central types
//! - [`Application`]: one application, loaded: the handler of a worker's server.
//! - `Machine`: the Lua state and the crossing into it, one per request, by Lua's C API.
//! - [`LuaLimits`]: the settings that only this host has.
//!
//! # Invariants
//! - One request is one crossing. Lua functions never leave their thread.
//! - An application's error ends its request, never the worker.
//! - An answer that was cut short cannot be mistaken for a whole one.
//! - Templates escape what they are given unless it was marked as safe.
//!
//! # Two Luas
//! With the feature `luajit`, which is the default, these sources are a part of the program `prony`; with `lua54` and in a
//! workspace of their own (`lua54/`) they are the program `prony-lua54`, which `prony host` starts as its workers.

mod answer;
#[cfg(feature = "luajit")]
pub mod choice;
mod head;
pub mod library;
mod load;
mod machine;
mod page;
mod percent;

use std::io::{self, Write};

use mlua::{Function, Lua};
use prony_hosting::{LoadError, Post};
use serde::{Deserialize, Serialize};

pub use answer::Application;
use machine::{Machine, Prelude};

/// The Lua that these sources were built with.
pub const LUA: &str = match cfg!(feature = "lua54") {
    true => "Lua 5.4",
    false => "LuaJIT",
};

/// Settings that only this host has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LuaLimits {
    /// Bytes that the Lua state of one worker may use.
    pub memory_max: u64,
}

/// Loads `module:app`.
///
/// # Errors
/// The module is not found or fails, or has no such function; with file and line.
pub fn load(post: &Post) -> Result<Application, LoadError> {
    let name = load::Name::parse(&post.settings.application)?;
    let limits = LuaLimits::deserialize(&post.settings.own)
        .map_err(|error| LoadError(format!("the settings of this host: {error}")))?;
    // SAFETY: an application may load C modules and use the FFI, as everywhere in Lua: it
    // is trusted with the process.
    let lua = unsafe { Lua::unsafe_new() };
    let prelude = prepare(&lua, post, name, &limits).map_err(broken)?;
    let app = load::find(&lua, name)?;
    let machine = Machine::new(lua, app, prelude).map_err(broken)?;
    Ok(Application {
        machine,
        handle: post.handle.clone(),
        is_development: post.settings.development,
        is_replaceable: post.settings.workers > 0,
    })
}

/// All that an application finds before it is loaded.
fn prepare(
    lua: &Lua,
    post: &Post,
    name: load::Name<'_>,
    limits: &LuaLimits,
) -> mlua::Result<Prelude> {
    lua.set_memory_limit(usize::try_from(limits.memory_max).unwrap_or(usize::MAX))?;
    load::set_path(lua, &post.settings.path)?;
    library::install(lua, &library::Surroundings::from(post))?;
    load::tell_name(lua, name)?;
    let address = post.settings.address;
    let host = lua.create_table()?;
    host.set("port", address.port().to_string())?;
    host.set("multiprocess", post.settings.workers > 1)?;
    host.set(
        "name",
        match address.ip() {
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        },
    )?;
    let chunk = lua.load(include_str!("prelude.lua")).set_name("=prony");
    let (environ, handler, place): (Function, Function, Function) = chunk.call(host)?;
    Ok(Prelude {
        environ,
        handler,
        place,
    })
}

fn broken(error: mlua::Error) -> LoadError {
    LoadError(load::message(&error))
}

/// Says on standard error what went wrong, and at what: whole lines, in one piece.
fn say(at: &str, text: &str) {
    let lines = format!("prony host: {at}: {}\n", text.trim_end());
    // Where there is no one to tell, there is nothing to be done.
    let _ = io::stderr().lock().write_all(lines.as_bytes());
}
