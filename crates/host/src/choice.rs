//! Which Lua an application is run by: what was asked for, what its `config.toml` says, what its text needs.
//!
//! LuaJIT is the default. Lua 5.4 is chosen where the application, or a module that it requires, cannot run on LuaJIT and
//! can on Lua 5.4, as far as its text shows: docs/host-interface.md says how that is found.
//!
//! Not for: starting workers (the command does).

mod config;
mod module;
mod source;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use mlua::{Lua, StdLib, Table};

use crate::load::{Name, set_path};
use source::Text;

/// Files that are looked through; what an application has beyond them is not.
const FILES_MAX: usize = 4000;
/// Bytes of a file that is looked through.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The two Luas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// LuaJIT: the language of Lua 5.1, and more.
    Jit,
    /// Lua 5.4.
    Lua54,
}

impl Version {
    /// Parses `jit` or `5.4`.
    pub fn parse(text: &str) -> Option<Version> {
        match text {
            "jit" => Some(Version::Jit),
            "5.4" => Some(Version::Lua54),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::Jit => "LuaJIT",
            Version::Lua54 => "Lua 5.4",
        })
    }
}

/// Why a Lua was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nothing speaks against LuaJIT.
    Default,
    /// A configuration file says so: the file and its line.
    Configured(String),
    /// The application has what LuaJIT has not: the file, its line where there is one, and what it is.
    Needed(String),
}

/// A Lua, and why this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The one that was chosen.
    pub version: Version,
    /// The reason.
    pub why: Why,
}

/// Chooses for an application: what `[host] lua` of the `config.toml` beside its module says; else Lua 5.4 where its text
/// needs it; else LuaJIT. A module that is not found is none that needs anything: loading it will say so.
///
/// # Errors
/// What is wrong with the configuration, with file and line.
pub fn choose(application: &str, path: &[PathBuf]) -> Result<Choice, String> {
    let places = Places::new(path).map_err(|error| error.to_string())?;
    let Ok(name) = Name::parse(application) else {
        return Ok(Choice::default());
    };
    let Some(file) = places.lua(name.module) else {
        return Ok(Choice::default());
    };
    if let Some(choice) = config::read(&file.with_file_name("config.toml"))? {
        return Ok(choice);
    }
    Ok(places.look_from(file))
}

/// Chooses for a file that is run as a program: by its text alone.
///
/// # Errors
/// Lua cannot be asked where it looks for modules.
pub fn choose_for_file(file: &Path, path: &[PathBuf]) -> Result<Choice, String> {
    let places = Places::new(path).map_err(|error| error.to_string())?;
    Ok(places.look_from(file.to_owned()))
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            version: Version::Jit,
            why: Why::Default,
        }
    }
}

/// Where modules are looked for, as `package.path` and `package.cpath` say it.
struct Places {
    lua: Vec<String>,
    c: Vec<String>,
}

impl Places {
    fn new(path: &[PathBuf]) -> mlua::Result<Places> {
        let lua = Lua::new_with(StdLib::PACKAGE, mlua::LuaOptions::default())?;
        set_path(&lua, path)?;
        let package: Table = lua.globals().get("package")?;
        let list = |text: String| text.split(';').map(str::to_owned).collect();
        Ok(Places {
            lua: list(package.get("path")?),
            c: list(package.get("cpath")?),
        })
    }

    fn lua(&self, module: &str) -> Option<PathBuf> {
        find(&self.lua, module)
    }

    /// Looks through this file and all that it requires by name, until something needs Lua 5.4.
    fn look_from(&self, file: PathBuf) -> Choice {
        let mut waiting = vec![file];
        let mut seen: BTreeSet<PathBuf> = waiting.iter().cloned().collect();
        while let Some(file) = waiting.pop() {
            let Some(text) = read(&file) else {
                continue;
            };
            if file.extension().is_some_and(|extension| extension == "so") {
                if let Some(function) = module::newer_function(&text) {
                    return needed(format!("{} calls {function}", file.display()));
                }
                continue;
            }
            let text = Text::read(&text);
            if let Some((line, what)) = text.needs() {
                return needed(format!("{}:{line} has {what}", file.display()));
            }
            for module in text.required() {
                // As `require` does it: the first place that has the module counts.
                let found = find(&self.lua, module).or_else(|| find(&self.c, module));
                let is_new = |file: &PathBuf| seen.len() < FILES_MAX && seen.insert(file.clone());
                waiting.extend(found.filter(is_new));
            }
        }
        Choice::default()
    }
}

fn needed(what: String) -> Choice {
    Choice {
        version: Version::Lua54,
        why: Why::Needed(what),
    }
}

/// The file of a module, as `package.searchpath` finds it.
fn find(places: &[String], module: &str) -> Option<PathBuf> {
    let name = module.replace('.', "/");
    let mut files = places
        .iter()
        .map(|place| PathBuf::from(place.replace('?', &name)));
    files.find(|file| file.is_file())
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let about = fs::metadata(file).ok()?;
    match about.is_file() && about.len() <= FILE_BYTES_MAX {
        true => fs::read(file).ok(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[(&str, &[u8])]) -> Folder {
            let name = format!("prony-choice-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            for (file, text) in files {
                let file = folder.join(file);
                fs::create_dir_all(file.parent().expect("a folder")).expect("made");
                fs::write(file, text).expect("written");
            }
            Folder(folder)
        }

        fn choose(&self, application: &str) -> Result<Choice, String> {
            choose(application, std::slice::from_ref(&self.0))
        }

        fn needed(&self, application: &str) -> Option<String> {
            let folder = format!("{}/", self.0.display());
            match self.choose(application).expect("a choice").why {
                Why::Needed(what) => Some(what.replace(&folder, "")),
                _ => None,
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_an_application_requires_is_looked_through_however_far_down() {
        let folder = Folder::new(
            "far",
            &[
                (
                    "site/app.lua",
                    b"local a = require('site.a')\nreturn {app = a}",
                ),
                (
                    "site/a.lua",
                    b"return require \"site.b\" or require[[site.app]]",
                ),
                ("site/b/init.lua", b"\n\nreturn 7 // 2"),
                (
                    "other.lua",
                    b"-- require('site.b')\nlocal s = \"require('site.b')\"\nreturn {app = print}",
                ),
                ("computed.lua", b"return require('site.' .. 'b')"),
            ],
        );
        let what = folder.needed("site.app:app");
        assert_eq!(what.as_deref(), Some("site/b/init.lua:3 has `//`"));
        assert_eq!(folder.needed("other:app"), None);
        // What is required by a name that the text does not hold is not found.
        assert_eq!(folder.needed("computed:app"), None);
        assert_eq!(folder.needed("nowhere:app"), None);
        assert_eq!(folder.needed("no name"), None);
    }

    #[test]
    fn the_configuration_beside_the_application_goes_before_what_its_text_needs() {
        let app: &[u8] = b"return {app = function() return 7 // 2 end}";
        let said = |config: &str| {
            let folder = Folder::new(
                "said",
                &[("app.lua", app), ("config.toml", config.as_bytes())],
            );
            let place = |text: String| text.replace(&format!("{}/", folder.0.display()), "");
            let choice = folder.choose("app:app").map_err(place);
            choice.map(|choice| match choice.why {
                Why::Configured(at) => format!("{} {}", choice.version, place(at)),
                other => format!("{} {}", choice.version, matches!(other, Why::Needed(_))),
            })
        };
        assert_eq!(
            said("a = 1\n[host]\nlua = \"jit\"\n").as_deref(),
            Ok("LuaJIT config.toml:3")
        );
        assert_eq!(
            said("[host]\nlua = \"5.4\"\n").as_deref(),
            Ok("Lua 5.4 config.toml:2")
        );
        assert_eq!(
            said("host = \"example.org\"\n").as_deref(),
            Ok("Lua 5.4 true")
        );
        assert_eq!(
            said("[host]\nname = \"x\"\n").as_deref(),
            Ok("Lua 5.4 true")
        );
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
            assert_eq!(said(config), Err(wrong.to_owned()));
        }
        assert!(
            said("a = 1\nb = \n")
                .unwrap_err()
                .starts_with("config.toml:2: ")
        );
    }
}
