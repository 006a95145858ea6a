//! Looking at files, where Lua's own library cannot: what is in a directory, when a file
//! was changed, and whether a name stays below a directory.
//!
//! Not for: reading and writing them (`io.open` does).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};
use std::time::UNIX_EPOCH;

use mlua::{BString, Error, Lua, LuaString, Table};

/// Deepest directory that is looked into.
const DEPTH_MAX: usize = 16;

pub(super) fn register(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set(
        "files",
        lua.create_function(|_, dir: LuaString| files(path(&dir.as_bytes())))?,
    )?;
    module.set(
        "modified",
        lua.create_function(|_, name: LuaString| Ok(modified(path(&name.as_bytes()))))?,
    )?;
    module.set(
        "inside",
        lua.create_function(|_, (dir, name): (LuaString, LuaString)| {
            Ok(inside(path(&dir.as_bytes()), &name.as_bytes()))
        })?,
    )
}

/// A path is any bytes.
fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The regular files below a directory, as paths relative to it, in order of their names;
/// none whose name begins with a dot.
fn files(dir: &Path) -> mlua::Result<Vec<BString>> {
    let mut found = Vec::new();
    walk(dir, b"", 0, &mut found)
        .map_err(|error| Error::runtime(format!("{}: {error}", dir.display())))?;
    found.sort();
    Ok(found)
}

fn walk(dir: &Path, prefix: &[u8], depth: usize, found: &mut Vec<BString>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().into_vec();
        if name.starts_with(b".") {
            continue;
        }
        let path = [prefix, &name].concat();
        let kind = fs::metadata(entry.path());
        if kind.as_ref().is_ok_and(fs::Metadata::is_dir) && depth < DEPTH_MAX {
            walk(
                &entry.path(),
                &[&path, &b"/"[..]].concat(),
                depth + 1,
                found,
            )?;
        } else if kind.is_ok_and(|kind| kind.is_file()) {
            found.push(path.into());
        }
    }
    Ok(())
}

/// Seconds since 1970, or nil when there is no such file.
fn modified(path: &Path) -> Option<f64> {
    let time = fs::metadata(path).and_then(|found| found.modified()).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}

/// The file's path, if `name` leads to a regular file below `dir`, also when all symbolic
/// links are followed; else nil.
fn inside(dir: &Path, name: &[u8]) -> Option<BString> {
    let plain = path(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !plain || name.is_empty() || name.contains(&0) {
        return None;
    }
    let dir = fs::canonicalize(dir).ok()?;
    let found = fs::canonicalize(dir.join(path(name))).ok()?;
    let is_file = found.starts_with(&dir) && found.is_file();
    is_file.then(|| found.into_os_string().into_vec().into())
}
