//! Words that were replaced and may not come back: the table is `words.txt`, whose head says how it
//! is read. What is found is what a program can find: names in code, and help texts.

use std::collections::BTreeMap;
use std::fs;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::assert_none;
use super::source::{Source, sources};

/// Where the table is.
const TABLE: &str = "crates/testkit/tests/house/words.txt";
/// What introduces the name of a type.
const TYPES: [&str; 5] = ["struct", "enum", "union", "trait", "type"];
/// What makes a command line of a type.
const DERIVED: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// What a line of the table is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// A part of any name, and a word of help texts.
    Word,
    /// A type's whole name.
    Type,
    /// A function's.
    Function,
    /// A module's.
    Module,
    /// A type's, of which there may be one.
    One,
    /// Words of help texts.
    Help,
}

/// A line of the table.
#[derive(Debug)]
struct Rule {
    kind: Kind,
    /// What may not be there.
    word: String,
    /// What stands for it.
    instead: String,
    /// Crates that still have it.
    exceptions: Vec<String>,
}

impl Rule {
    /// `word crew | pool | http load`
    fn read(text: &str) -> Option<Rule> {
        let mut columns = text.split('|').map(str::trim);
        let (kind, word) = columns.next()?.split_once(' ')?;
        let kind = match kind {
            "word" => Kind::Word,
            "type" => Kind::Type,
            "fn" => Kind::Function,
            "mod" => Kind::Module,
            "one" => Kind::One,
            "help" => Kind::Help,
            _ => return None,
        };
        let instead = columns.next().filter(|instead| !instead.is_empty())?;
        let exceptions = columns.next().unwrap_or_default().split_whitespace();
        Some(Rule {
            kind,
            word: word.trim().to_owned(),
            instead: instead.to_owned(),
            exceptions: exceptions.map(str::to_owned).collect(),
        })
    }

    /// Whether the rule is about a name of this kind that is written so.
    fn forbids(&self, name: &Name) -> bool {
        match self.kind {
            Kind::Word => parts(&name.text).any(|part| part == self.word),
            Kind::Help => false,
            Kind::Type | Kind::One => name.of == Some(Kind::Type) && name.text == self.word,
            of => name.of == Some(of) && name.text == self.word,
        }
    }

    /// Whether these words, in lower case and with a space at both ends, are in a help text.
    fn forbids_in_help(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Help) && text.contains(&format!(" {} ", self.word))
    }
}

/// A name in code.
#[derive(Debug)]
struct Name {
    line: usize,
    text: String,
    /// What is declared by it, if anything.
    of: Option<Kind>,
}

/// The words that a name is made of, in lower case: of `CrewMember` and `crew_member`, `crew` and `member`.
fn parts(name: &str) -> impl Iterator<Item = String> {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            parts.push(String::new());
        }
        if letter != '_' {
            let last = parts.last_mut().expect("there is one");
            last.extend(letter.to_lowercase());
        }
    }
    parts.into_iter().filter(|part| !part.is_empty())
}

/// All names in `tokens`, at any depth.
fn names(tokens: TokenStream, found: &mut Vec<Name>) {
    let mut before = String::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => names(group.stream(), found),
            TokenTree::Ident(name) => {
                let text = name.to_string();
                let of = match before.as_str() {
                    "fn" => Some(Kind::Function),
                    "mod" => Some(Kind::Module),
                    word if TYPES.contains(&word) => Some(Kind::Type),
                    _ => None,
                };
                before.clone_from(&text);
                let line = name.span().start().line;
                found.push(Name { line, text, of });
            }
            _ => before.clear(),
        }
    }
}

/// The texts that a command line shows, with their lines.
#[derive(Default)]
struct Help(Vec<(usize, String)>);

impl Help {
    fn of(source: &str) -> Vec<(usize, String)> {
        let mut help = Help::default();
        help.visit_file(&syn::parse_file(source).expect("a source file is Rust"));
        help.0
    }

    /// Adds what attributes of a type say, if a command line is made of it.
    fn add(&mut self, attributes: &[syn::Attribute], read: impl FnOnce(&mut Texts)) {
        let is_typed = attributes.iter().any(|attribute| match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("derive") => {
                let derived = list.tokens.to_string();
                DERIVED.iter().any(|name| derived.contains(name))
            }
            _ => false,
        });
        if is_typed {
            let mut texts = Texts(Vec::new());
            read(&mut texts);
            self.0.extend(texts.0);
        }
    }
}

impl<'ast> Visit<'ast> for Help {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.attrs, |texts| texts.visit_item_struct(item));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.attrs, |texts| texts.visit_item_enum(item));
    }
}

/// Texts of attributes.
struct Texts(Vec<(usize, String)>);

impl Texts {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(text) => {
                    self.0.push((text.span().start().line, text.to_string()));
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        visit::visit_attribute(self, attribute);
        if let syn::Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.0.push((text.span().start().line, text.value()));
    }
}

/// A text's words in lower case, a space before and after each.
fn spaced(text: &str) -> String {
    let words = text.replace("\\n", " ");
    let words = words.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    format!(" {} ", words.join(" "))
}

/// The crate of a file, as the table names it.
fn krate(source: &Source) -> &str {
    source.krate.rsplit('/').next().unwrap_or_default()
}

/// Where a rule is broken: its place in the table, the crate, and what is said of it.
fn broken<'s>(rules: &[Rule], sources: &'s [Source]) -> Vec<(usize, &'s str, String)> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let text = source.lines.join("\n");
        let lower = text.to_lowercase();
        let may = |rule: &&Rule| {
            let first = rule.word.split(' ').next().unwrap_or_default();
            lower.contains(&first.to_lowercase())
        };
        // Most files have none of the words, and are not taken apart.
        let near: Vec<(usize, &Rule)> = rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| may(rule))
            .collect();
        if near.is_empty() {
            continue;
        }
        let mut own = Vec::new();
        names(text.parse().expect("what syn parses"), &mut own);
        for name in own.iter().filter(|name| !source.is_test_line(name.line)) {
            let forbidden = near.iter().filter(|(_, rule)| rule.forbids(name));
            found.extend(forbidden.map(|&(place, rule)| {
                let (path, line, text) = (&source.path, name.line, &name.text);
                let (word, instead) = (&rule.word, &rule.instead);
                let said = format!("{path}:{line}: `{text}`: for `{word}` stands: {instead}");
                (place, krate(source), said)
            }));
        }
        if lower.contains("clap") {
            for (line, text) in Help::of(&text) {
                let spaced = spaced(&text);
                let forbidden = near
                    .iter()
                    .filter(|(_, rule)| rule.forbids_in_help(&spaced));
                found.extend(forbidden.map(|&(place, rule)| {
                    let (path, word, instead) = (&source.path, &rule.word, &rule.instead);
                    let said = format!("{path}:{line}: `{word}` in a help text: write: {instead}");
                    (place, krate(source), said)
                }));
            }
        }
    }
    found
}

/// What is wrong with the sources by these rules.
fn breaches(rules: &[Rule], sources: &[Source]) -> Vec<String> {
    let found = broken(rules, sources);
    let mut breaches = Vec::new();
    let mut types: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (place, krate, said) in &found {
        let rule = &rules[*place];
        match rule.kind {
            _ if rule.exceptions.iter().any(|own| own == krate) => {}
            Kind::One => types.entry(*place).or_default().push(said),
            _ => breaches.push(said.clone()),
        }
    }
    for said in types.values().filter(|said| said.len() > 1) {
        breaches.extend(said.iter().map(|said| (*said).to_owned()));
    }
    breaches
}

/// The table's rules; lines that begin with `#` are for readers.
fn rules(table: &str) -> Vec<Rule> {
    let lines = table.lines().enumerate();
    let lines = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
    let read = |(index, text): (usize, &str)| {
        let rule = Rule::read(text);
        rule.unwrap_or_else(|| panic!("{TABLE}:{}: not a rule: {text}", index + 1))
    };
    lines.map(read).collect()
}

#[test]
fn words_that_were_replaced_stay_away() {
    let table = fs::read_to_string(prony_testkit::root().join(TABLE)).expect("the table");
    assert_none(&breaches(&rules(&table), sources()));
}

/// What is said of these files, each of a crate of its own.
fn said(table: &str, texts: &[&str]) -> Vec<String> {
    let source =
        |(place, text): (usize, &&str)| Source::of(&format!("crates/c{place}/src/a.rs"), text);
    let sources: Vec<Source> = texts.iter().enumerate().map(source).collect();
    breaches(&rules(table), &sources)
}

#[test]
fn a_word_is_found_in_whatever_name_it_is_part_of() {
    let text = "// A crew.\nstruct NewCrew;\nfn crew_of(screw: u8) {\n    let text = \"crew\";\n}\n#[cfg(test)]\nfn crew() {}\n";
    assert_eq!(
        said("word crew | pool |", &[text]),
        [
            "crates/c0/src/a.rs:2: `NewCrew`: for `crew` stands: pool",
            "crates/c0/src/a.rs:3: `crew_of`: for `crew` stands: pool",
        ]
    );
    let table = "type Room | Connections\nfn sing | run\nmod cast | participants";
    let text = "mod cast;\nfn f() { room.cast(); sing(Room) }\nfn sing() {}\nenum Room {}\n";
    let lines: Vec<String> = said(table, &[text]);
    let places: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split(": ").next())
        .collect();
    let expected = [
        "crates/c0/src/a.rs:1",
        "crates/c0/src/a.rs:3",
        "crates/c0/src/a.rs:4",
    ];
    assert_eq!(places, expected);
}

#[test]
fn help_texts_are_those_of_command_lines() {
    let text = "use clap::Args;\n/// Told\nstruct S;\n/// Is told so\n#[derive(Debug, Args)]\n\
                #[command(after_help = \"Nobody is\\ntold.\")]\nstruct W {\n    /// The toldest\n    told: u8,\n}\n";
    let expected = [
        "crates/c0/src/a.rs:4: `told` in a help text: write: reported",
        "crates/c0/src/a.rs:6: `told` in a help text: write: reported",
    ];
    assert_eq!(said("help told | reported", &[text]), expected);
}

#[test]
fn an_exception_that_nothing_needs_any_more_failed_a_commit() {
    let texts = ["struct Shared;", "enum Shared {}", "fn f(a: Shared) {}"];
    assert_eq!(said("one Shared | an exact name", &texts).len(), 2);
    assert!(said("one Shared | an exact name | c1", &texts).is_empty());
    assert!(said("type Shared | an exact name | c0 c1", &texts).is_empty());
    assert!(said("type Shared | an exact name | c0 c1 c2", &texts).is_empty());
}
