//! The commands that are of the program `prony-systems`, and where that is.
//!
//! The systems that are measured are not part of the program that measures. These commands are this program's by name only: it becomes the other one.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;
use prony_program::commands::CommandText;
use prony_program::sibling::SYSTEMS;

/// Its commands.
pub const NAMES: [&str; 4] = ["bench", "fetch", "host", "lua"];

/// Words that `prony-systems` reads.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct SystemsWords {
    /// Its words: `prony help` and the name of the command explain them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// The command and the words that `prony help NAME …` stands for.
pub fn helped(args: &[OsString]) -> Option<(&'static str, SystemsWords)> {
    let [_, help, name, rest @ ..] = args else {
        return None;
    };
    let name = NAMES
        .into_iter()
        .find(|command| help == "help" && name == command)?;
    let words = rest.iter().cloned().chain(["--help".into()]).collect();
    Some((name, SystemsWords { words }))
}

/// Becomes `prony-systems` with one of its commands.
pub fn run(name: &str, words: SystemsWords) -> anyhow::Error {
    let all = std::iter::once(OsString::from(name)).chain(words.words);
    match SYSTEMS.path() {
        Ok(program) => SYSTEMS.become_it(&program, all),
        Err(error) => error,
    }
}

/// The command line `all` with the words of its commands in the place of their names, where it lies beside `prony`. It is not built for that.
pub fn with_words(all: clap::Command, prony: &Path) -> clap::Command {
    let Some(text) = words_of(&SYSTEMS.beside(prony)) else {
        return all;
    };
    let theirs = text.command();
    theirs.get_subcommands().fold(all, |all, command| {
        all.mut_subcommand(command.get_name(), |_| command.clone())
    })
}

fn words_of(program: &Path) -> Option<CommandText> {
    let output = Command::new(program)
        .arg("__words")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    serde_json::from_slice(&output.stdout).ok()
}
