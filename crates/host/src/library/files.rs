//! Looking at files, where Lua's own library cannot: what is in a directory, when a file
//! was changed, and whether a name stays below a directory.
//!
//! Not for: reading and writing them (`io.open` does).

use std::fs;
use std::path::{Component, Path};
use std::time::UNIX_EPOCH;

use mlua::{Error, Lua, Table};

/// Deepest directory that is looked into.
const DEPTH_MAX: usize = 16;

pub(super) fn register(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set("files", lua.create_function(|_, dir: String| files(&dir))?)?;
    module.set(
        "modified",
        lua.create_function(|_, path: String| Ok(modified(&path)))?,
    )?;
    module.set(
        "inside",
        lua.create_function(|_, (dir, name): (String, String)| Ok(inside(&dir, &name)))?,
    )
}

/// The regular files below a directory, as paths relative to it, in order of their names;
/// none whose name begins with a dot.
fn files(dir: &str) -> mlua::Result<Vec<String>> {
    let mut found = Vec::new();
    walk(Path::new(dir), "", 0, &mut found)
        .map_err(|error| Error::runtime(format!("{dir}: {error}")))?;
    found.sort();
    Ok(found)
}

fn walk(dir: &Path, prefix: &str, depth: usize, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let path = format!("{prefix}{name}");
        let kind = fs::metadata(entry.path());
        if kind.as_ref().is_ok_and(fs::Metadata::is_dir) && depth < DEPTH_MAX {
            walk(&entry.path(), &format!("{path}/"), depth + 1, found)?;
        } else if kind.is_ok_and(|kind| kind.is_file()) {
            found.push(path);
        }
    }
    Ok(())
}

/// Seconds since 1970, or nil when there is no such file.
fn modified(path: &str) -> Option<f64> {
    let time = fs::metadata(path).and_then(|found| found.modified()).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}

/// The file's path, if `name` leads to a regular file below `dir`, also when all symbolic
/// links are followed; else nil.
fn inside(dir: &str, name: &str) -> Option<String> {
    let plain = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !plain || name.is_empty() || name.contains('\0') {
        return None;
    }
    let dir = fs::canonicalize(dir).ok()?;
    let path = fs::canonicalize(dir.join(name)).ok()?;
    let is_file = path.starts_with(&dir) && path.is_file();
    is_file.then(|| path.to_string_lossy().into_owned())
}
