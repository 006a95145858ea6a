//! `prony completions` and `prony __man`: what shells and `man` read of the command line, made from its words.
//!
//! Names of subjects are asked for when they are completed (`prony __names`), since they are folders that come and go.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _, ValueEnum};
use clap_complete::{Shell, generate};
use prony_lab::subject;

use crate::cause::CannotWrite;
use crate::home::Home;
use crate::words::Words;
use crate::{Ending, Streams};

/// The program's name, as shells know it.
const NAME: &str = "prony";

/// `prony completions`
#[derive(Debug, Args)]
#[command(after_help = "Prints a script for the shell:\n  \
bash: prony completions bash > ~/.local/share/bash-completion/completions/prony\n  \
zsh:  prony completions zsh > DIR/_prony, for a DIR in $fpath\n  \
fish: prony completions fish > ~/.config/fish/completions/prony.fish")]
pub struct CompletionsWords {
    /// Which shell
    pub shell: ShellWord,
}

/// Shells that are completed for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ShellWord {
    /// GNU Bash
    Bash,
    /// Z shell
    Zsh,
    /// Fish
    Fish,
}

/// `prony __man`
#[derive(Debug, Args)]
pub struct ManWords {
    /// Folder that the pages are written to; it is made where it is not there
    pub dir: PathBuf,
}

/// Bash completes with a function; this one asks for names where they are wanted, and leaves the rest to the generated one.
const BASH: &str = r#"
_prony_or_names() {
    if [ "${COMP_WORDS[1]}" = check ] && [ "${COMP_WORDS[COMP_CWORD]#-}" = "${COMP_WORDS[COMP_CWORD]}" ]; then
        COMPREPLY=($(compgen -W "$(prony __names 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
    else
        _prony "$@"
    fi
}
complete -F _prony_or_names -o nosort -o bashdefault -o default prony 2>/dev/null ||
    complete -F _prony_or_names -o bashdefault -o default prony
"#;
const FISH: &str = "complete -c prony -n \"__fish_seen_subcommand_from check\" -f -a \"(prony __names 2>/dev/null)\"\n";
const ZSH: &str = "\n_prony_names() {\n    compadd -- $(prony __names 2>/dev/null)\n}\n";
/// How the words of `prony check` end in what is generated for zsh, and how they are to end.
const ZSH_SUBJECTS: (&str, &str) = ("'*::subjects -- ", ":_prony_names' \\");

/// Runs `prony completions`.
pub fn run(words: &CompletionsWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    streams.out.write_all(script(words.shell).as_bytes())?;
    Ok(Ending::Done)
}

fn script(shell: ShellWord) -> String {
    let generated = |shell: Shell| {
        let mut bytes = Vec::new();
        generate(shell, &mut visible(), NAME, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    match shell {
        ShellWord::Bash => generated(Shell::Bash) + BASH,
        ShellWord::Fish => generated(Shell::Fish) + FISH,
        ShellWord::Zsh => with_names(&generated(Shell::Zsh)),
    }
}

/// The command line without the commands that are no one's to type: shells would offer them.
fn visible() -> Command {
    let all = Words::command();
    let shown = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let shown: Vec<Command> = shown.cloned().collect();
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown)
}

/// The script for zsh, in which subjects are completed by names. Its first line, which says what it is for, stays the first.
fn with_names(generated: &str) -> String {
    let (begins, ends) = ZSH_SUBJECTS;
    let mut lines: Vec<String> = Vec::new();
    for line in generated.lines() {
        lines.push(match line.strip_suffix(":_default' \\") {
            Some(start) if line.starts_with(begins) => format!("{start}{ends}"),
            _ => line.to_owned(),
        });
        if lines.len() == 1 {
            lines.push(ZSH.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

/// Runs `prony __man`.
pub fn man(words: &ManWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    fs::create_dir_all(&words.dir).with_context(CannotWrite::at(&words.dir))?;
    clap_mangen::generate_to(Words::command(), &words.dir)
        .with_context(CannotWrite::at(&words.dir))?;
    writeln!(streams.out, "{}", words.dir.join("prony.1").display())?;
    Ok(Ending::Done)
}

/// Runs `prony __names`: the subjects that are here, a line each.
pub fn names(streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    for name in subject::folders(&Home::find()?.subjects) {
        writeln!(streams.out, "{name}")?;
    }
    Ok(Ending::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_gets_all_commands_and_asks_for_subjects() {
        for shell in [ShellWord::Bash, ShellWord::Zsh, ShellWord::Fish] {
            let script = script(shell);
            for command in ["doctor", "check", "compare", "completions", "--interleave"] {
                // Fish has no dashes before the names of flags.
                let word = command.trim_start_matches("--");
                assert!(script.contains(word), "{shell:?}: {command}");
            }
            assert!(script.contains("prony __names"), "{shell:?}");
            assert!(!script.contains("__generate"), "{shell:?}");
        }
        let zsh = script(ShellWord::Zsh);
        assert!(zsh.starts_with("#compdef prony\n"));
        assert_eq!(zsh.matches(":_prony_names'").count(), 1);
    }
}
