//! A Lua file run as a program, with the framework at hand: for tests of applications, and
//! for what belongs to one and is done by hand.
//!
//! Not for: serving.

use std::path::{Path, PathBuf};

use mlua::{Lua, ObjectLike, Table};
use serde::{Deserialize, Serialize};

use super::{Surroundings, install};

/// A file, what it is given, and where it looks for modules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The file.
    pub file: PathBuf,
    /// Its arguments: `...` and `arg`.
    pub arguments: Vec<String>,
    /// Directories in which modules are looked for.
    pub path: Vec<PathBuf>,
    /// What it may know of the host.
    pub around: Surroundings,
}

/// Runs it, and says how many of its tests (`prony.test`) failed.
///
/// # Errors
/// The file cannot be read or fails; with traceback.
pub fn run(script: &Script) -> Result<u64, String> {
    // SAFETY: a script may load C modules and use the FFI, as in any Lua: whoever runs it
    // trusts it with the process.
    let lua = unsafe { Lua::unsafe_new() };
    start(&lua, script).map_err(|error| error.to_string())
}

fn start(lua: &Lua, script: &Script) -> mlua::Result<u64> {
    install(lua, &script.around)?;
    let package: Table = lua.globals().get("package")?;
    let default: String = package.get("path")?;
    let mut path = String::new();
    for dir in &script.path {
        let dir = dir.display();
        path.push_str(&format!("{dir}/?.lua;{dir}/?/init.lua;"));
    }
    package.set("path", path + &default)?;
    let names = lua.create_table()?;
    names.set(0, script.file.to_string_lossy())?;
    for argument in &script.arguments {
        names.push(argument.as_str())?;
    }
    lua.globals().set("arg", names)?;
    let text = read(&script.file)?;
    let name = format!("@{}", script.file.display());
    let chunk = lua.load(text).set_name(name);
    chunk.call::<()>(mlua::Variadic::from(script.arguments.clone()))?;
    let loaded: Table = package.get("loaded")?;
    match loaded.get::<Option<Table>>("prony.test")? {
        Some(tests) => tests.call_function("finish", ()),
        None => Ok(0),
    }
}

fn read(file: &Path) -> mlua::Result<Vec<u8>> {
    std::fs::read(file)
        .map_err(|error| mlua::Error::runtime(format!("{}: {error}", file.display())))
}
