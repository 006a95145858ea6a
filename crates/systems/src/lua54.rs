//! The program `prony-lua54`: workers with Lua 5.4, which is a build of its own, and which Lua is taken.

use clap::ValueEnum;
use prony_host::choice::{Version, advice};
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

/// What was typed goes before what is configured, and without either it is LuaJIT. The choice is printed, with where it comes from.
pub fn decide(
    typed: Option<Typed>,
    configured: Option<(Version, String)>,
    streams: &mut Streams<'_>,
) -> Version {
    let (version, place) = match (typed, configured) {
        (Some(Typed::Jit), _) | (None, None) => return Version::Jit,
        (Some(Typed::Lua54), _) => (Version::Lua54, "--lua".to_owned()),
        (None, Some(configured)) => configured,
    };
    // A failing standard error leaves nowhere to say so.
    let _ = writeln!(streams.err, "prony: with {version} ({place})");
    version
}

/// Says what helps where LuaJIT says this of what is for Lua 5.4.
pub fn advise(why: &impl std::fmt::Display, streams: &mut Streams<'_>) {
    if let Some(advice) = advice(&why.to_string()) {
        let _ = writeln!(streams.err, "prony: {advice}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_lua_than_the_default_is_said_with_what_asked_for_it() {
        let decided = |typed, configured: Option<(Version, &str)>| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let streams = &mut Streams {
                out: &mut out,
                err: &mut err,
            };
            let configured = configured.map(|(version, place)| (version, place.to_owned()));
            let version = decide(typed, configured, streams);
            (version, String::from_utf8(err).expect("text"))
        };
        let newer = Some((Version::Lua54, "config.toml:2"));
        let said = "prony: with Lua 5.4 (config.toml:2)\n";
        assert_eq!(decided(None, newer), (Version::Lua54, said.to_owned()));
        assert_eq!(
            decided(Some(Typed::Jit), newer),
            (Version::Jit, String::new())
        );
        assert_eq!(decided(None, None), (Version::Jit, String::new()));
        let asked = (Version::Lua54, "prony: with Lua 5.4 (--lua)\n".to_owned());
        assert_eq!(decided(Some(Typed::Lua54), None), asked);
    }
}
