//! The program `prony-lua54`: workers with Lua 5.4, which is a build of its own. Where it is, and how it is built.
//!
//! Not for: when it is wanted (`prony_host::choice`).

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use prony_host::choice::{Choice, Version, Why};

use crate::Streams;

const NAME: &str = "prony-lua54";
/// What `./prony` sets: itself, which builds what is missing.
const LAUNCHER: &str = "PRONY_LAUNCHER";
/// Another place of the program.
const PLACE: &str = "PRONY_LUA54";

/// A Lua as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Typed {
    /// LuaJIT
    Jit,
    /// Lua 5.4
    #[value(name = "5.4")]
    Lua54,
}

/// What was typed goes before what was found out. Another Lua than the default is said, with the reason.
pub fn decide(
    typed: Option<Typed>,
    find_out: impl FnOnce() -> Result<Choice, String>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Version> {
    let (version, why) = match typed {
        Some(Typed::Jit) => return Ok(Version::Jit),
        Some(Typed::Lua54) => (Version::Lua54, "--lua".to_owned()),
        None => {
            let Choice { version, why } = find_out().map_err(anyhow::Error::msg)?;
            match why {
                Why::Default => return Ok(version),
                Why::Configured(place) => (version, place),
                Why::Needed(what) => (
                    version,
                    format!("{what}, which LuaJIT has not; --lua jit prevents it"),
                ),
            }
        }
    };
    // A failing standard error leaves nowhere to say so.
    let _ = writeln!(streams.err, "prony: with {version} ({why})");
    Ok(version)
}

/// Path of the program, of this version; `./prony` builds it first where it is missing or old.
///
/// # Errors
/// It is not there, or of another version: the text has the command that builds it.
pub fn program() -> anyhow::Result<PathBuf> {
    let program = match (env::var_os(PLACE), env::var_os(LAUNCHER)) {
        (Some(place), _) => PathBuf::from(place),
        (None, Some(launcher)) => built_by(Path::new(&launcher))?,
        (None, None) => beside()?,
    };
    if !program.is_file() {
        bail!(
            "Lua 5.4 is a program of its own, {}, which is missing; {}",
            program.display(),
            advice(&program)
        );
    }
    check(&program)?;
    Ok(program)
}

fn beside() -> anyhow::Result<PathBuf> {
    let own = env::current_exe().context("cannot find this program")?;
    Ok(own.with_file_name(NAME))
}

/// The command that builds it in Prony's sources, for the place where it is looked for.
fn advice(program: &Path) -> String {
    let is_debug = program.parent().is_some_and(|dir| dir.ends_with("debug"));
    let target = program.parent().and_then(Path::parent);
    let of_cargo = target.filter(|target| target.join("CACHEDIR.TAG").exists());
    let command = "cargo build --locked --manifest-path lua54/Cargo.toml --target-dir";
    match of_cargo {
        Some(target) => format!(
            "in Prony's sources, `{command} {}{}` builds it",
            target.display(),
            if is_debug { "" } else { " --release" }
        ),
        None => format!(
            "in Prony's sources, `{command} target --release` builds target/release/{NAME}, to be put there"
        ),
    }
}

/// Has the launcher build it; it says on standard error what it does.
fn built_by(launcher: &Path) -> anyhow::Result<PathBuf> {
    let asked = Command::new(launcher)
        .arg("__build-lua54")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let output = asked.with_context(|| format!("cannot run {}", launcher.display()))?;
    if !output.status.success() {
        bail!("{NAME}, which Lua 5.4 is, could not be built: see above");
    }
    let path = String::from_utf8(output.stdout).context("the launcher names no path")?;
    Ok(PathBuf::from(path.trim_end()))
}

fn check(program: &Path) -> anyhow::Result<()> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let found = String::from_utf8_lossy(&output.stdout);
    let wanted = format!("{NAME} {}", prony_hosting::VERSION);
    if found.trim_end() != wanted {
        bail!(
            "{} is {:?}, not {wanted:?} as this program; {}",
            program.display(),
            found.trim_end(),
            advice(program)
        );
    }
    Ok(())
}

/// Becomes the program, with these words.
///
/// # Errors
/// It cannot be started.
pub fn become_it(program: &Path, words: &[&str]) -> anyhow::Error {
    use std::os::unix::process::CommandExt as _;
    let error = Command::new(program).args(words).exec();
    anyhow::Error::new(error).context(format!("cannot run {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(typed: Option<Typed>, why: Why) -> (Version, String) {
        let version = match why {
            Why::Default => Version::Jit,
            _ => Version::Lua54,
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let streams = &mut Streams {
            out: &mut out,
            err: &mut err,
        };
        let version = decide(typed, || Ok(Choice { version, why }), streams).expect("a choice");
        (version, String::from_utf8(err).expect("text"))
    }

    #[test]
    fn another_lua_than_the_default_is_said_with_its_reason() {
        let needed = Why::Needed("a.lua:1 has `//`".to_owned());
        let said =
            "prony: with Lua 5.4 (a.lua:1 has `//`, which LuaJIT has not; --lua jit prevents it)\n";
        assert_eq!(
            decided(None, needed.clone()),
            (Version::Lua54, said.to_owned())
        );
        assert_eq!(
            decided(Some(Typed::Jit), needed),
            (Version::Jit, String::new())
        );
        assert_eq!(decided(None, Why::Default), (Version::Jit, String::new()));
        let asked = (Version::Lua54, "prony: with Lua 5.4 (--lua)\n".to_owned());
        assert_eq!(decided(Some(Typed::Lua54), Why::Default), asked);
    }

    #[test]
    fn the_command_that_builds_it_is_for_the_place_where_it_is_looked_for() {
        let text = advice(Path::new("/opt/bin/prony-lua54"));
        assert!(text.contains(
            "--target-dir target --release` builds target/release/prony-lua54, to be put there"
        ));
    }
}
