//! A command line as data: what one program tells another of its words, for completions and manual pages that have both.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, Command};
use serde::{Deserialize, Serialize};

/// A command: what it does, its words, and the commands below it.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct CommandText {
    name: String,
    about: String,
    after: String,
    words: Vec<WordText>,
    below: Vec<CommandText>,
}

/// A flag, or a word by its place.
#[derive(Debug, Default, Deserialize, Serialize)]
struct WordText {
    id: String,
    long: Option<String>,
    short: Option<char>,
    help: String,
    /// The name of its value; none: it takes none.
    value: Option<String>,
    /// Values that it may have, with what each means; none: any.
    values: Vec<(String, String)>,
    defaults: Vec<String>,
    is_many: bool,
    is_required: bool,
}

impl CommandText {
    /// The text of a command.
    pub fn new(command: &Command) -> CommandText {
        let shown = |text: Option<&clap::builder::StyledStr>| {
            text.map(ToString::to_string).unwrap_or_default()
        };
        let words = command.get_arguments().filter(|word| !word.is_hide_set());
        let below = command.get_subcommands().filter(|own| !own.is_hide_set());
        CommandText {
            name: command.get_name().to_owned(),
            about: shown(command.get_about()),
            after: shown(command.get_after_help()),
            words: words
                .map(|word| WordText {
                    help: shown(word.get_help()),
                    ..WordText::new(word)
                })
                .collect(),
            below: below.map(CommandText::new).collect(),
        }
    }

    /// A command that is shown as this one was, and does nothing.
    pub fn command(self) -> Command {
        let words = self.words.into_iter().map(WordText::arg);
        let below = self.below.into_iter().map(CommandText::command);
        Command::new(self.name)
            .about(self.about)
            .after_help(self.after)
            // A command below stands in the place of a word that is required.
            .subcommand_negates_reqs(true)
            .args(words)
            .subcommands(below)
    }
}

fn texts(values: &[clap::builder::OsStr]) -> Vec<String> {
    let values = values.iter();
    values
        .map(|value| value.to_string_lossy().into_owned())
        .collect()
}

impl WordText {
    fn new(word: &Arg) -> WordText {
        let value = || word.get_value_names().and_then(|names| names.first());
        let values = word.get_possible_values().into_iter().map(|one| {
            let help = one.get_help().map(ToString::to_string);
            (one.get_name().to_owned(), help.unwrap_or_default())
        });
        WordText {
            id: word.get_id().to_string(),
            long: word.get_long().map(str::to_owned),
            short: word.get_short(),
            value: word
                .get_action()
                .takes_values()
                .then(|| value().map_or_else(|| word.get_id().to_string(), ToString::to_string)),
            values: match word.get_action().takes_values() {
                true => values.collect(),
                false => Vec::new(),
            },
            defaults: match word.get_action().takes_values() {
                true => texts(word.get_default_values()),
                false => Vec::new(),
            },
            is_many: matches!(word.get_action(), ArgAction::Append),
            is_required: word.is_required_set(),
            ..WordText::default()
        }
    }

    fn arg(self) -> Arg {
        let mut arg = Arg::new(self.id).help(self.help).required(self.is_required);
        if let Some(long) = self.long {
            arg = arg.long(long);
        }
        if let Some(short) = self.short {
            arg = arg.short(short);
        }
        let Some(value) = self.value else {
            return arg.action(ArgAction::SetTrue);
        };
        arg = arg
            .value_name(value)
            .default_values(self.defaults)
            .action(match self.is_many {
                true => ArgAction::Append,
                false => ArgAction::Set,
            });
        match self.values.is_empty() {
            true => arg,
            false => {
                let values = self.values.into_iter();
                let values = values.map(|(name, help)| PossibleValue::new(name).help(help));
                arg.value_parser(PossibleValuesParser::new(values))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Command {
        let below = Command::new("below").arg(Arg::new("file").required(true));
        let how = Arg::new("how")
            .long("how")
            .short('w')
            .value_parser(["fast", "slow"]);
        let quiet = Arg::new("quiet").long("quiet").action(ArgAction::SetTrue);
        let all = Command::new("all").about("does it").args([how, quiet]);
        let text = serde_json::to_string(&CommandText::new(&all.subcommand(below)));
        let read: CommandText = serde_json::from_str(&text.expect("JSON")).expect("the same");
        read.command()
    }

    #[test]
    fn a_command_that_was_told_takes_the_same_words() {
        let takes = |words: &str| told().try_get_matches_from(words.split(' ')).is_ok();
        assert!(takes("all --how fast --quiet") && takes("all -w slow") && takes("all below x"));
        assert!(!takes("all --how other") && !takes("all --quick") && !takes("all below"));
        assert_eq!(
            told().get_about().map(ToString::to_string).as_deref(),
            Some("does it")
        );
    }
}
