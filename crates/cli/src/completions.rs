//! `prony completions` and `prony __man`: what shells and `man` read of the command line, made from its words.
//!
//! Names of subjects, experiments and cells are asked for when they are completed (`prony __names`), since they come and go.
//!
//! The engine of clap_complete that asks the program for every word is not used: it is unstable, and in bash it leaves the
//! blanks in names of cells as they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _, ValueEnum};
use clap_complete::{Shell, generate};
use prony_lab::experiment::Experiment;
use prony_lab::plan::{self, Options};
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

/// `prony __names`
#[derive(Debug, Args)]
pub struct NamesWords {
    /// Names of what
    #[arg(default_value = "subjects")]
    pub what: NamesOf,
    /// The words of the command line so far, for the cells of the experiment among them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub typed: Vec<String>,
}

/// The kinds of names that `prony __names` prints.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum NamesOf {
    /// Subjects
    Subjects,
    /// Experiments that `prony run` takes by name
    Experiments,
    /// Subjects and cells of an experiment
    Cells,
}

/// Bash completes with a function; this one asks for names where they are wanted, and leaves the rest to the generated one.
/// Bash splits words at `=`, which names of cells have, so that the word is taken from the line, and what bash takes for
/// another word before it is cut from the names. A word in quotes is one to bash, too.
const BASH: &str = r#"
_prony_names() {
    local typed=${line//[\\\"\']/} cut= name names=()
    mapfile -t names < <(prony __names "$@" 2>/dev/null)
    [[ $line == *[=:]* && $line != [\"\']* ]] && cut=${typed%"${typed##*[=:]}"}
    for name in "${names[@]}"; do
        [[ $name == "$typed"* ]] || continue
        name=${name:${#cut}}
        [[ $line == [\"\']* ]] || printf -v name %q "$name"
        COMPREPLY+=("$name")
    done
}
_prony_or_names() {
    local line=${COMP_LINE:0:COMP_POINT} before=
    local a_word='^(([^ \"'\'']|\\.|\"[^\"]*\"|'\''[^'\'']*'\'')*) +'
    while [[ $line =~ $a_word ]]; do
        before=${BASH_REMATCH[1]} line=${line:${#BASH_REMATCH[0]}}
    done
    COMPREPLY=()
    if [[ ${COMP_WORDS[1]} == run && $before == --only ]]; then
        _prony_names cells -- "${COMP_WORDS[@]:2}"
    elif [[ $line == -* ]] || [[ " VALUED " == *" $before "* ]]; then
        _prony "$@"
    elif [[ ${COMP_WORDS[1]} == check ]]; then
        _prony_names subjects
    elif [[ ${COMP_WORDS[1]} == run || ${COMP_WORDS[1]} == log ]] && ((COMP_CWORD > 1)); then
        _prony_names experiments
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X '!*.toml' -- "$line"; compgen -d -- "$line")
    else
        _prony "$@"
    fi
}
complete -F _prony_or_names -o nosort -o bashdefault -o default prony 2>/dev/null ||
    complete -F _prony_or_names -o bashdefault -o default prony
"#;
const FISH: &str = r#"complete -c prony -n "__fish_seen_subcommand_from check" -f -a "(prony __names 2>/dev/null)"
complete -c prony -n "__fish_seen_subcommand_from run log" -a "(prony __names experiments 2>/dev/null)"
complete -c prony -n "__fish_seen_subcommand_from run" -l only -x -a "(prony __names cells -- (commandline -opc) 2>/dev/null)"
"#;
const ZSH: &str = r#"
_prony_names() {
    local -a names=("${(@f)$(prony __names "$@" 2>/dev/null)}")
    compadd -a names
}
_prony_subjects() { _prony_names subjects }
_prony_cells() { _prony_names cells -- $words }
_prony_experiments() {
    _prony_names experiments
    _files -g '*.toml'
}
"#;
/// Lines of what is generated for zsh by their beginnings, with their ends, and the functions that complete in their place.
const ZSH_NAMES: [(&str, &str, &str); 3] = [
    ("'*::subjects -- ", ":_default'", ":_prony_subjects'"),
    ("'*--only=", ":_default'", ":_prony_cells'"),
    ("':experiment -- ", ":_files'", ":_prony_experiments'"),
];

/// Runs `prony completions`.
pub fn run(words: &CompletionsWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    streams
        .out
        .write_all(script(words.shell, &this_program()?).as_bytes())?;
    Ok(Ending::Done)
}

/// This program.
fn this_program() -> anyhow::Result<PathBuf> {
    env::current_exe().context("cannot find this program")
}

fn script(shell: ShellWord, prony: &Path) -> String {
    let generated = |shell: Shell| {
        let mut bytes = Vec::new();
        generate(shell, &mut visible(prony), NAME, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    match shell {
        ShellWord::Bash => generated(Shell::Bash) + &BASH.replace("VALUED", &valued()),
        ShellWord::Fish => generated(Shell::Fish) + FISH,
        ShellWord::Zsh => with_names(&generated(Shell::Zsh)),
    }
}

/// The command line without the commands that are no one's to type: shells would offer them.
fn visible(prony: &Path) -> Command {
    let all = crate::command(prony);
    let shown = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let shown: Vec<Command> = shown.cloned().collect();
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown)
}

/// The flags of `prony run`, `log` and `check` that a value follows.
fn valued() -> String {
    let all = Words::command();
    let commands = ["run", "log", "check"].map(|name| all.find_subcommand(name));
    let flags = commands
        .iter()
        .flatten()
        .flat_map(|command| command.get_opts());
    let valued = flags.filter(|flag| flag.get_action().takes_values());
    let names: BTreeSet<String> = valued
        .filter_map(|flag| Some(format!("--{}", flag.get_long()?)))
        .collect();
    names.into_iter().collect::<Vec<String>>().join(" ")
}

/// The script for zsh, in which names are asked for. Its first line, which says what it is for, stays the first.
fn with_names(generated: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in generated.lines() {
        let completed = ZSH_NAMES.iter().find_map(|(begins, ends, completed)| {
            let start = line.strip_suffix(" \\")?.strip_suffix(ends)?;
            line.starts_with(begins)
                .then(|| format!("{start}{completed} \\"))
        });
        lines.push(completed.unwrap_or_else(|| line.to_owned()));
        if lines.len() == 1 {
            lines.push(ZSH.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

/// Runs `prony __man`.
pub fn man(words: &ManWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    fs::create_dir_all(&words.dir).with_context(CannotWrite::at(&words.dir))?;
    clap_mangen::generate_to(crate::command(&this_program()?), &words.dir)
        .with_context(CannotWrite::at(&words.dir))?;
    writeln!(streams.out, "{}", words.dir.join("prony.1").display())?;
    Ok(Ending::Done)
}

/// Runs `prony __names`: a line each. A shell has no use for what is wrong: then there are none.
pub fn names(words: &NamesWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let home = Home::find(&mut io::sink())?;
    let names: Vec<String> = match words.what {
        NamesOf::Subjects => home.all_subjects().into_keys().collect(),
        NamesOf::Experiments => home.experiment_names(),
        NamesOf::Cells => cells(&home, &words.typed).unwrap_or_default(),
    };
    for name in names {
        writeln!(streams.out, "{name}")?;
    }
    Ok(Ending::Done)
}

/// The subjects and the cells that this machine can run of the experiment that is among the words.
fn cells(home: &Home, typed: &[String]) -> Option<Vec<String>> {
    let is_value = |at: usize| at > 0 && typed[at - 1].starts_with("--only");
    let words = typed.iter().enumerate();
    let mut words = words.filter(|(at, word)| !word.starts_with('-') && !is_value(*at));
    // Other words may be files, too, such as the program's own name.
    let experiment = words.find_map(|(_, word)| {
        let found = home.experiment(Path::new(word)).ok()?;
        Experiment::load_as(&found.path, &found.shown).ok()
    })?;
    let subjects = subject::load_all(&experiment, &home.subjects).ok()?;
    let facts = home.facts(&subjects, false).with_settings(&experiment);
    let plan = plan::plan(&experiment, &subjects, &facts, &Options::default()).ok()?;
    let mut names: Vec<String> = Vec::new();
    for subject in plan.cells.iter().map(|cell| &cell.subject) {
        if !names.contains(subject) {
            names.push(subject.clone());
        }
    }
    names.extend(plan.cells.iter().map(|cell| cell.id.clone()));
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_gets_all_commands_and_asks_for_subjects() {
        for shell in [ShellWord::Bash, ShellWord::Zsh, ShellWord::Fish] {
            let script = script(shell, Path::new("prony"));
            for command in ["doctor", "check", "compare", "completions", "--interleave"] {
                // Fish has no dashes before the names of flags.
                let word = command.trim_start_matches("--");
                assert!(script.contains(word), "{shell:?}: {command}");
            }
            assert!(script.contains("prony __names"), "{shell:?}");
            assert!(!script.contains("__generate"), "{shell:?}");
        }
        let zsh = script(ShellWord::Zsh, Path::new("prony"));
        assert!(zsh.starts_with("#compdef prony\n"));
        for (name, count) in [("subjects", 1), ("cells", 2), ("experiments", 2)] {
            assert_eq!(
                zsh.matches(&format!(":_prony_{name}'")).count(),
                count,
                "{name}"
            );
        }
        assert!(valued().contains("--only") && !valued().contains("--quick"));
    }
}
