//! The program `prony-lua54`: workers with Lua 5.4, which is a build of its own, and which Lua is taken.

use clap::ValueEnum;
use prony_host::choice::{Choice, Version, Why};
use prony_program::Streams;
use prony_program::sibling::Sibling;

/// The program.
pub const PROGRAM: Sibling = Sibling {
    name: "prony-lua54",
    what: "Lua 5.4 needs",
    place: Some("PRONY_LUA54"),
    cargo: "--manifest-path lua54/Cargo.toml",
    version: prony_hosting::VERSION,
};

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
}
