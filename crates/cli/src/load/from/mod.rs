//! `prony load --from 'wrk -t4 -c100 -d30s URL'`: the command of another tool, translated, printed and run.
//!
//! Each tool is a table of its flags (tools.toml, [`table`]): what each is here, or why it is not. [`translated`] reads a command by it, and
//! docs/coming-from.md is made of it by a test, so that neither can say what the other does not. Whoever types another tool's flag to
//! `prony load` itself is told by the same tables what it is here ([`hint`]).
//!
//! A flag has an action ([`actions`]); the defaults of a tool are in [`finish`].

mod actions;
mod finish;
mod table;
mod translation;

use std::ffi::OsString;

use prony_base::typed::requirement::LoadRequirement;
use prony_load::requests::{ShellFault, ShellToken, ShellTokens};

use crate::run::again::in_shell;
use table::{Flag, Tool};
use translation::Translation;

/// Why no command of a tool is translated whose users are in a script.
const IN_A_SCRIPT: &str = "what its users do is in a script, which is not translated: `prony docs scenarios` has the same users as a script of it and as \
     a file for --scenario";

/// The words of `prony load` that do what the command `text` of another tool does.
pub fn translated(text: &str) -> Result<Vec<String>, String> {
    let commands = commands(text)?;
    let tool_of = |command: &[String]| {
        let name = command.first()?.rsplit('/').next()?;
        table::all().iter().find(|tool| tool.name == name)
    };
    let mut tools = commands.iter().map(|command| tool_of(command)).enumerate();
    let is_known = |(at, tool): (usize, Option<&'static Tool>)| {
        let tool = tool.filter(|tool| !tool.is_script)?;
        Some((at, tool))
    };
    let Some((at, tool)) = tools.find_map(is_known) else {
        let first = commands.first();
        if let Some(tool) = first.and_then(|first| tool_of(first)) {
            return Err(of_tool(tool, IN_A_SCRIPT));
        }
        let first = first.map_or("nothing", |first| &first[0]);
        let known: Vec<&str> = table::translated().map(|tool| &*tool.name).collect();
        return Err(format!(
            "--from: `{first}` is none of the tools whose commands are known: {}",
            known.join(", ")
        ));
    };
    let mut translation = Translation::new(&tool.name);
    translation.piped(&commands[..at], &commands[at + 1..])?;
    read(tool, &commands[at][1..], &mut translation)?;
    let finished = finish::finish(&mut translation).and_then(|()| translation.words());
    finished.map_err(|why| of_tool(tool, &why))
}

/// The commands of a pipeline, each as its words, none of which is empty. What only a shell could do is refused by name.
fn commands(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut commands = vec![Vec::new()];
    for token in ShellTokens::new(text, "|;<>`") {
        match token.map(|(_, token)| token) {
            Ok(ShellToken::Word(word)) => commands.last_mut().expect("there is one").push(word),
            Ok(ShellToken::Operator('|')) => commands.push(Vec::new()),
            Ok(ShellToken::Operator(c)) => {
                return Err(format!(
                    "--from: `{c}` is for a shell: give the tool's command alone"
                ));
            }
            Err((_, ShellFault::Open(_))) => {
                return Err("--from: a quotation mark is never closed".to_owned());
            }
            Err((_, fault)) => return Err(format!("--from: {fault}")),
        }
    }
    commands.retain(|command| !command.is_empty());
    Ok(commands)
}

fn of_tool(tool: &Tool, why: &str) -> String {
    format!("--from {}: {why}", tool.name)
}

/// Reads the words of a command after its name.
fn read(tool: &Tool, words: &[String], to: &mut Translation) -> Result<(), String> {
    let mut words = words.iter().map(String::as_str);
    let mut subcommand = tool.subcommand.as_deref();
    let unknown = |subcommand: &str| {
        let why = format!("`{} {subcommand}` is what is known of it", tool.name);
        of_tool(tool, &why)
    };
    let mut only_urls = false;
    while let Some(word) = words.next() {
        // Flags of the whole tool may stand before it.
        if let Some(wanted) = subcommand.filter(|_| !word.starts_with('-')) {
            if word != wanted {
                return Err(unknown(wanted));
            }
            subcommand = None;
        } else if word == "--" && !only_urls {
            only_urls = true;
        } else if only_urls || !word.starts_with('-') || word == "-" {
            to.urls.push(word.to_owned());
        } else if tool.is_go || word.starts_with("--") {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            one(tool, name, value, &mut words, to)?;
        } else {
            cluster(tool, word, &mut words, to)?;
        }
    }
    subcommand.map_or(Ok(()), |wanted| Err(unknown(wanted)))
}

/// Several flags of one letter in one word, the last perhaps with its value: `-kc100`.
fn cluster<'a>(
    tool: &Tool,
    word: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
    to: &mut Translation,
) -> Result<(), String> {
    for (at, letter) in word.char_indices().skip(1) {
        let name = format!("-{letter}");
        let rest = &word[at + letter.len_utf8()..];
        if tool.flag(&name).is_some_and(Flag::takes_value) {
            let value = Some(rest).filter(|rest| !rest.is_empty());
            return one(tool, &name, value, words, to);
        }
        one(tool, &name, None, words, to)?;
    }
    Ok(())
}

/// One flag, with its value where it takes one.
fn one<'a>(
    tool: &Tool,
    name: &str,
    value: Option<&str>,
    words: &mut impl Iterator<Item = &'a str>,
    to: &mut Translation,
) -> Result<(), String> {
    let refuse = |why: String| Err(of_tool(tool, &format!("`{name}` {why}")));
    let Some(flag) = tool.flag(name) else {
        return refuse("is no flag of it that is known; `prony load --help` has ours".to_owned());
    };
    let next = match (value, flag.takes_value()) {
        (None, true) => words.next(),
        (None, false) => Some(""),
        (value, _) => value,
    };
    let Some(value) = next else {
        return refuse("lacks its value".to_owned());
    };
    match flag.action() {
        ("no", _) => refuse(format!("cannot be translated: {}", flag.words())),
        action => actions::act(to, action, value)
            .map_err(|why| of_tool(tool, &format!("`{name} {value}`: {why}"))),
    }
}

/// The arguments of the program with what `--from` stands for in its place, and the command to show; further arguments follow it. Of a
/// flag that takes several requirements (`--require a b`) each gets its own. `None`: there is no `--from`.
pub fn expanded(args: Vec<OsString>) -> Result<(Vec<OsString>, Option<String>), String> {
    if args.get(1).is_none_or(|command| command != "load") {
        return Ok((args, None));
    }
    let mut rest = args.into_iter();
    let mut all: Vec<OsString> = rest.by_ref().take(2).collect();
    let mut shown = None;
    // What a script is given, behind whatever follows.
    let mut last: Vec<OsString> = Vec::new();
    // The flag whose values may follow each other.
    let mut several: Option<&str> = None;
    while let Some(word) = rest.next() {
        let text = word.to_str().unwrap_or_default();
        let from = text.strip_prefix("--from=").map(str::to_owned);
        if from.is_some() || text == "--from" {
            let given = from.or_else(|| rest.next().and_then(|next| next.into_string().ok()));
            let command = given.ok_or(
                "--from: a value is required, such as 'wrk -c100 -d30s http://127.0.0.1:8080/'",
            )?;
            let words = translated(&command)?;
            shown = Some(quoted(&words));
            let mut words = words.into_iter().map(OsString::from);
            all.extend(words.by_ref().take_while(|word| word != "--"));
            last = words.collect();
            several = None;
            continue;
        }
        let flags = ["--require", "--stop-on"];
        if let Some(flag) = flags.into_iter().find(|flag| *flag == text) {
            several = Some(flag);
            all.push(word);
            all.extend(rest.next());
            continue;
        }
        match several.filter(|_| text.parse::<LoadRequirement>().is_ok()) {
            Some(flag) => all.push(flag.into()),
            None => several = None,
        }
        all.push(word);
    }
    if !last.is_empty() {
        all.push("--".into());
        all.extend(last);
    }
    Ok((all, shown))
}

/// A hint for words that `prony load` does not take, where all of them are those of other tools.
pub fn looks_like(args: &[OsString]) -> Option<String> {
    if args.get(1).is_none_or(|command| command != "load") {
        return None;
    }
    let words: Vec<String> = args
        .iter()
        .skip(2)
        .map(|word| word.to_str().map(str::to_owned))
        .collect::<Option<_>>()?;
    if !words.iter().any(|word| word.starts_with('-')) {
        return None;
    }
    let typed = in_shell(&words);
    let of_tool = |tool: &'static Tool| {
        let words = translated(&format!("{} {typed}", tool.name)).ok()?;
        Some((&*tool.name, words))
    };
    let all: Vec<(&str, Vec<String>)> = table::translated().filter_map(of_tool).collect();
    let (first, words) = all.first()?;
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let names = match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => return None,
    };
    Some(format!(
        "this looks like {names}. Run: {}\nor: prony load --from {}",
        quoted(words),
        in_shell(&[format!("{first} {typed}")])
    ))
}

/// A command as a shell takes it.
fn quoted(words: &[String]) -> String {
    format!("prony load {}", in_shell(words))
}

/// A hint beside an error about the words of `prony load`, where one of them is a flag of another tool. Where a value is `wrong`, the
/// hint is about the flag before it.
pub fn hint(args: &[OsString], wrong: Option<&str>) -> Option<String> {
    if args.get(1).is_none_or(|command| command != "load") {
        return None;
    }
    let text = |word: &OsString| word.to_str().unwrap_or_default().to_owned();
    let words: Vec<String> = args.iter().skip(2).map(text).collect();
    let is_meant = |at: usize| match wrong {
        Some(value) => {
            let next = words.get(at + 1).is_some_and(|next| next == value);
            next || words[at].len() > value.len() && words[at].ends_with(value)
        }
        None => true,
    };
    let flags = words.iter().enumerate().filter(|(at, word)| {
        let is_flag = word.starts_with('-') && word.len() > 1;
        is_flag && is_meant(*at)
    });
    let hints: Vec<String> = flags.filter_map(|(_, word)| of_flag(word)).collect();
    (!hints.is_empty()).then(|| hints.join("\n"))
}

/// The meanings of a flag of this name, each once, with the tools that have it.
fn meanings_of(name: &str) -> Vec<(String, Vec<&'static str>)> {
    let mut meanings: Vec<(String, Vec<&str>)> = Vec::new();
    let described = || table::translated().filter(|tool| tool.name != "curl");
    // Users of a script are meant only where no other tool has such a flag.
    let is_scripted = described().all(|tool| tool.flag(name).is_none());
    let scripted = table::all()
        .iter()
        .filter(|tool| tool.is_script && is_scripted);
    for tool in described().chain(scripted) {
        let Some(means) = tool.flag(name).map(Flag::here) else {
            continue;
        };
        match meanings.iter_mut().find(|(known, _)| *known == means) {
            Some((_, tools)) => tools.push(&tool.name),
            None => meanings.push((means, vec![&tool.name])),
        }
    }
    meanings
}

/// Of one flag that is none of ours, or has another meaning here: `-m`, `-disable-keepalive`.
fn of_flag(word: &str) -> Option<String> {
    let name = word.split('=').next().unwrap_or(word);
    let short: String = name.chars().take(2).collect();
    let is_long = name.starts_with("--");
    let mut meanings = meanings_of(name);
    let mut shown = name;
    if meanings.is_empty() && !is_long {
        meanings = meanings_of(&short);
        shown = &short;
    }
    // A flag that is spelt here as there needs no hint, whatever else is wrong.
    meanings.retain(|(means, _)| means.trim_matches('`').split(' ').next() != Some(shown));
    if meanings.is_empty() {
        return None;
    }
    let each = meanings
        .iter()
        .map(|(means, tools)| format!("of {}: {means}", tools.join(", ")));
    let each: Vec<String> = each.collect();
    Some(format!(
        "prony: `{shown}` {}",
        each.join("; ").replace('`', "")
    ))
}

#[cfg(test)]
mod tests;
