//! `prony lua`: a Lua file with the host's framework at hand.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use prony_host::choice::Version;
use prony_host::library::{Script, Surroundings, run as run_script};

use crate::lua54::{self, PROGRAM, Typed, advise};
use prony_program::{Ending, Streams};

/// `prony lua`
#[derive(Debug, Args)]
#[command(after_help = "\
Exits with 1 if a test in the file (`prony.test`) failed, with 2 if the file did.

Example: prony lua --path examples examples/docs/tests/site.lua")]
pub struct LuaWords {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its arguments
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<String>,
    /// Look for modules in this directory (may be repeated) [default: .]
    #[arg(long, value_name = "DIR")]
    path: Vec<PathBuf>,
    /// Which Lua [default: jit]
    #[arg(long, value_name = "LUA", value_enum)]
    lua: Option<Typed>,
}

/// Runs it to its end.
pub fn run(words: &LuaWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let here = std::env::current_dir().context("cannot find the current directory")?;
    let path = match words.path.is_empty() {
        true => vec![here],
        false => words.path.iter().map(|dir| here.join(dir)).collect(),
    };
    let script = Script {
        file: words.file.clone(),
        arguments: words.arguments.clone(),
        path,
        around: Surroundings::default(),
    };
    if lua54::decide(words.lua, None, streams) == Version::Lua54 {
        let script = serde_json::to_string(&script)?;
        return Err(PROGRAM.become_it(&PROGRAM.path()?, ["script", &script]));
    }
    let ended = run_script(&script).inspect_err(|why| advise(why, streams));
    match ended.map_err(anyhow::Error::msg)? {
        0 => Ok(Ending::Done),
        _ => Ok(Ending::Failed),
    }
}
