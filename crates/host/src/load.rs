//! From `module:app` to the value that is called: the Lua state, the places where
//! modules are looked for, and what is wrong with an application, with file and
//! line.
//!
//! Not for: calling it.

use std::fs;
use std::path::PathBuf;

use mlua::{Function, Lua, Table, Value};
use prony_hosting::LoadError;

/// `module:app`, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    /// As `require` takes it.
    pub module: &'a str,
    /// The value in it; with dots, a value in a value.
    pub app: &'a str,
}

impl<'a> Name<'a> {
    /// Takes a name apart.
    ///
    /// # Errors
    /// The expected form of a name.
    pub fn parse(text: &'a str) -> Result<Name<'a>, LoadError> {
        let parts = text.split_once(':').filter(|(module, app)| {
            let is_dotted = |name: &str| name.split('.').all(|part| !part.is_empty());
            is_dotted(module) && is_dotted(app)
        });
        let Some((module, app)) = parts else {
            return Err(LoadError(format!(
                "`{text}` names no application: give a module and a value in it, such as docs.app:app"
            )));
        };
        Ok(Name { module, app })
    }
}

/// Sets where `require` looks: in the directories of the application first, then where
/// Lua itself looks (LUA_PATH and LUA_CPATH are in that), but not in the current
/// directory, unless it was named.
pub(crate) fn set_path(lua: &Lua, dirs: &[PathBuf]) -> mlua::Result<()> {
    let package: Table = lua.globals().get("package")?;
    let mut path = Vec::new();
    let mut cpath = Vec::new();
    for dir in dirs {
        let dir = dir.to_string_lossy();
        path.push(format!("{dir}/?.lua;{dir}/?/init.lua"));
        cpath.push(format!("{dir}/?.so"));
    }
    for (key, mut places) in [("path", path), ("cpath", cpath)] {
        let package_path: String = package.get(key)?;
        let package_path = package_path
            .split(';')
            .filter(|place| !place.starts_with("./"));
        places.extend(package_path.map(str::to_owned));
        package.set(key, places.join(";"))?;
    }
    Ok(())
}

/// Says to applications of nibiru's framework which module they are, as its server does:
/// they find their configuration beside it.
pub(crate) fn tell_name(lua: &Lua, name: Name<'_>) -> mlua::Result<()> {
    let parameters = lua.create_table()?;
    parameters.set("app_module", name.module)?;
    let package: Table = lua.globals().get("package")?;
    let loaded: Table = package.get("loaded")?;
    loaded.set("nibiru.boot_parameters", parameters)
}

/// Requires the module and finds the value in it.
///
/// # Errors
/// The module is not found or fails, or the value is not there or cannot be called.
pub(crate) fn find(lua: &Lua, name: Name<'_>) -> Result<Value, LoadError> {
    let module = require(lua, name)?;
    let place = Place::find(lua, name.module);
    let mut value = module;
    let mut so_far = String::new();
    for part in name.app.split('.') {
        let parent = value.clone();
        value = index(lua, parent, part).map_err(|error| {
            let what = describe(&value);
            LoadError(format!(
                "{}: {} is {what}, in which there is no `{part}`\n{}\n{error}",
                place.returning(),
                named(name, &so_far),
                advice(name),
            ))
        })?;
        if value.is_nil() {
            return Err(LoadError(format!(
                "{}: {} has no `{part}`\n{}",
                place.returning(),
                named(name, &so_far),
                advice(name),
            )));
        }
        if !so_far.is_empty() {
            so_far.push('.');
        }
        so_far.push_str(part);
    }
    match is_callable(lua, &value) {
        true => Ok(value),
        false => Err(LoadError(format!(
            "{}: `{}` is {}: an application is a function, or a table with `__call`",
            place.assigning(name.app),
            name.app,
            describe(&value),
        ))),
    }
}

fn require(lua: &Lua, name: Name<'_>) -> Result<Value, LoadError> {
    let module = name.module;
    let required = lua
        .globals()
        .get("require")
        .and_then(|require: Function| require.call::<Value>(module));
    required.map_err(|error| {
        let text = message(&error);
        let missing = format!("module '{module}' not found:");
        let Some(at) = text.find(&missing) else {
            return LoadError(text);
        };
        let places = text[at + missing.len()..]
            .lines()
            .filter(|line| line.starts_with("\tno file"))
            .collect::<Vec<_>>()
            .join("\n");
        LoadError(format!(
            "there is no module `{module}`; searched here \
             (--path DIR adds a directory):\n{places}"
        ))
    })
}

/// The message of an error, without the words that mlua puts around it.
pub(crate) fn message(error: &mlua::Error) -> String {
    match error {
        mlua::Error::RuntimeError(text)
        | mlua::Error::SyntaxError { message: text, .. }
        | mlua::Error::MemoryError(text) => text.clone(),
        mlua::Error::CallbackError { cause, traceback } => {
            format!("{}\n{traceback}", message(cause))
        }
        other => other.to_string(),
    }
}

fn index(lua: &Lua, value: Value, key: &str) -> mlua::Result<Value> {
    // In Lua, so that a value whose metatable answers is asked, too.
    let get: Function = lua
        .load("local value, key = ... return value[key]")
        .into_function()?;
    get.call((value, key))
}

fn is_callable(lua: &Lua, value: &Value) -> bool {
    if value.is_function() {
        return true;
    }
    let has = lua
        .load("local m = debug.getmetatable(...) return type(m) == 'table' and m.__call ~= nil")
        .call::<bool>(value);
    has.unwrap_or(false)
}

fn describe(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Boolean(is) => format!("{is}"),
        Value::Integer(number) => format!("the number {number}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {:?}", text.to_string_lossy()),
        other => format!("a {}", other.type_name()),
    }
}

fn named(name: Name<'_>, so_far: &str) -> String {
    match so_far {
        "" => format!("what module `{}` returns", name.module),
        _ => format!("`{so_far}`"),
    }
}

fn advice(name: Name<'_>) -> String {
    let Name { module, app } = name;
    let first = app.split('.').next().unwrap_or(app);
    format!(
        "for {module}:{app} the module ends with `return {{{first} = {first}}}`, or returns a table that has it"
    )
}

/// Where a module was written.
struct Place {
    file: String,
    text: String,
}

impl Place {
    fn find(lua: &Lua, module: &str) -> Place {
        let file = lua
            .load("return package.searchpath((...), package.path)")
            .call::<Option<String>>(module)
            .ok()
            .flatten();
        let text = file
            .as_ref()
            .and_then(|file| fs::read_to_string(file).ok())
            .unwrap_or_default();
        Place {
            file: file.unwrap_or_else(|| format!("module {module}")),
            text,
        }
    }

    /// The line of the module's last `return`, in which what it lacks would stand.
    fn returning(&self) -> String {
        self.line(|line| line.starts_with("return"))
    }

    /// The last line that gives a value to this name.
    fn assigning(&self, app: &str) -> String {
        let name = app.rsplit('.').next().unwrap_or(app);
        self.line(|line| {
            let mut rest = line;
            while let Some(at) = rest.find(name) {
                let before = rest[..at].chars().next_back();
                let after = rest[at + name.len()..].trim_start();
                let starts = before.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
                if starts && after.starts_with('=') && !after.starts_with("==") {
                    return true;
                }
                rest = &rest[at + name.len()..];
            }
            false
        })
    }

    fn line(&self, wanted: impl Fn(&str) -> bool) -> String {
        let number = self
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| wanted(line.trim_start()));
        match number.last() {
            Some((number, _)) => format!("{}:{}", self.file, number + 1),
            None => self.file.clone(),
        }
    }
}
