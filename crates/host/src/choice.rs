//! Which of the two Luas an application is run by: what the `config.toml` beside it asks for. Without that it is LuaJIT.
//!
//! Not for: starting workers (the command does).

use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use mlua::{Function, Lua, StdLib, Table};
use toml::de::{DeTable, DeValue};

use crate::load::{Name, set_path};

/// The two Luas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// LuaJIT: the language of Lua 5.1, and more.
    Jit,
    /// Lua 5.4.
    Lua54,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::Jit => "LuaJIT",
            Version::Lua54 => "Lua 5.4",
        })
    }
}

/// The Lua that `[host] lua` of the `config.toml` beside an application's module asks for, and the file and line that say so; `None`:
/// there is no such key, or no such module, which loading it will say.
///
/// # Errors
/// The error in the configuration, with file and line.
pub fn configured(
    application: &str,
    path: &[PathBuf],
) -> Result<Option<(Version, String)>, String> {
    let Ok(name) = Name::parse(application) else {
        return Ok(None);
    };
    match file_of(name.module, path) {
        Ok(file) => read(&file.with_file_name("config.toml")),
        Err(_) => Ok(None),
    }
}

/// The file of a module, as `require` finds it.
fn file_of(module: &str, path: &[PathBuf]) -> mlua::Result<PathBuf> {
    let lua = Lua::new_with(StdLib::PACKAGE, mlua::LuaOptions::default())?;
    set_path(&lua, path)?;
    let package: Table = lua.globals().get("package")?;
    let search: Function = package.get("searchpath")?;
    let found: String = search.call((module, package.get::<String>("path")?))?;
    Ok(found.into())
}

/// The Lua that a file asks for, and its place; `None` where there is no file, or it does not say.
fn read(file: &Path) -> Result<Option<(Version, String)>, String> {
    let Ok(text) = fs::read_to_string(file) else {
        return Ok(None);
    };
    let at = |span: Range<usize>| {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}:{line}", file.display())
    };
    let table = DeTable::parse(&text).map_err(|error| {
        let place = at(error.span().unwrap_or_default());
        format!("{place}: {}", error.message())
    })?;
    let host = table.get_ref().get("host").map(|host| host.get_ref());
    let Some(DeValue::Table(host)) = host else {
        return Ok(None);
    };
    let Some(lua) = host.get("lua") else {
        return Ok(None);
    };
    let place = at(lua.span());
    let expected = "`host.lua` has to be \"jit\" or \"5.4\"";
    match lua.get_ref() {
        DeValue::String(name) if name == "jit" => Ok(Some((Version::Jit, place))),
        DeValue::String(name) if name == "5.4" => Ok(Some((Version::Lua54, place))),
        DeValue::String(name) => Err(format!("{place}: {expected}, not {name:?}")),
        _ => Err(format!("{place}: {expected}, in quotes")),
    }
}

/// Advice where LuaJIT cannot load an application, if its error is typical of an application for Lua 5.4.
pub fn advice(why: &str) -> Option<&'static str> {
    let is_newer = why.contains(" near '") || why.contains("undefined symbol: lua");
    is_newer.then_some("if it is for Lua 5.4: --lua 5.4")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// What is configured by a file beside `site/app.lua`.
    fn said(config: &str, application: &str) -> Result<Option<String>, String> {
        let name = format!("prony-choice-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        let site = folder.0.join("site");
        fs::create_dir_all(&site).expect("made");
        fs::write(site.join("app.lua"), "return 7 // 2").expect("written");
        fs::write(site.join("config.toml"), config).expect("written");
        let place = |text: String| text.replace(&format!("{}/", site.display()), "");
        let found = configured(application, std::slice::from_ref(&folder.0)).map_err(place)?;
        Ok(found.map(|(version, at)| format!("{version} {}", place(at))))
    }

    #[test]
    fn the_file_beside_the_application_says_which_lua_it_is_for() {
        for (config, expected) in [
            (
                "a = 1\n[host]\nlua = \"jit\"\n",
                Some("LuaJIT config.toml:3"),
            ),
            ("[host]\nlua = \"5.4\"\n", Some("Lua 5.4 config.toml:2")),
            ("host = \"example.org\"\n", None),
            ("[host]\nname = \"x\"\n", None),
        ] {
            let found = said(config, "site.app:app");
            assert_eq!(found.as_ref().map(Option::as_deref), Ok(expected));
        }
        assert_eq!(said("[host]\nlua = \"5.4\"\n", "nowhere:app"), Ok(None));
        assert_eq!(said("[host]\nlua = \"5.4\"\n", "no name"), Ok(None));
        for (config, wrong) in [
            (
                "[host]\n\nlua = \"5.1\"\n",
                "config.toml:3: `host.lua` has to be \"jit\" or \"5.4\", not \"5.1\"",
            ),
            (
                "[host]\nlua = 5.4\n",
                "config.toml:2: `host.lua` has to be \"jit\" or \"5.4\", in quotes",
            ),
        ] {
            assert_eq!(said(config, "site.app:app"), Err(wrong.to_owned()));
        }
        let wrong = said("a = 1\nb = \n", "site.app:app").unwrap_err();
        assert!(wrong.starts_with("config.toml:2: "), "{wrong}");
    }
}
