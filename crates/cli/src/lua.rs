//! `prony lua`: a Lua file with the host's framework at hand.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::Args;
use prony_host::library::{Script, Surroundings, run as run_script};

use crate::Ending;

/// `prony lua`
#[derive(Debug, Args)]
#[command(after_help = "\
Ends with 1 if a test in the file (`prony.test`) failed, with 2 if the file did.

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
}

/// Runs it to its end.
pub fn run(words: &LuaWords) -> anyhow::Result<Ending> {
    let here = std::env::current_dir().context("cannot tell the current directory")?;
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
    match run_script(&script).map_err(|said| anyhow!(said))? {
        0 => Ok(Ending::Done),
        _ => Ok(Ending::Failed),
    }
}
