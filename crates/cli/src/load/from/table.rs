//! The tables of other tools, as tools.toml has them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// A tool, and its flags.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tool {
    /// The name of its program.
    pub name: String,
    /// Word before the flags that is no flag: `attack`.
    pub subcommand: Option<String>,
    /// Flags are whole words with one dash or two, as Go's programs have them.
    #[serde(default)]
    pub is_go: bool,
    /// Its users are described in a script, so that no command is translated.
    #[serde(default)]
    pub is_script: bool,
    /// Its flags.
    pub flags: Vec<Flag>,
}

/// One flag of a tool: its spellings; a value by which it is tried in tests, empty where it takes none; its action; its description, where
/// that is not the one of the action.
#[derive(Deserialize)]
pub struct Flag(
    String,
    pub String,
    pub String,
    #[serde(default)] Option<String>,
);

/// The file.
#[derive(Deserialize)]
struct Tables {
    words: BTreeMap<String, String>,
    tool: Vec<Tool>,
}

static TABLES: LazyLock<Tables> =
    LazyLock::new(|| toml::from_str(include_str!("tools.toml")).expect("a test reads it, too"));

impl Flag {
    /// Its spellings.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ')
    }

    /// Whether it takes a value.
    pub fn takes_value(&self) -> bool {
        !self.1.is_empty()
    }

    /// Its action, and what that is given.
    pub fn action(&self) -> (&str, &str) {
        self.2.split_once(' ').unwrap_or((&self.2, ""))
    }

    /// Its counterpart here, or why there is none.
    pub fn words(&self) -> &str {
        let description = self.3.as_ref().or_else(|| TABLES.words.get(&self.2));
        description.map_or("", String::as_str)
    }

    /// Its counterpart here, in Markdown.
    pub fn here(&self) -> String {
        match self.action().0 {
            "nothing" => format!("nothing to do: {}", self.words()),
            "no" => format!("not wanted: {}", self.words()),
            _ => self.words().to_owned(),
        }
    }
}

impl Tool {
    /// Its flag of this name.
    pub fn flag(&self, name: &str) -> Option<&Flag> {
        // Go's programs take one dash or two.
        let single = match name.strip_prefix('-') {
            Some(rest) if self.is_go && rest.starts_with('-') => rest,
            _ => name,
        };
        let mut flags = self.flags.iter();
        flags.find(|flag| flag.names().any(|spelling| spelling == single))
    }
}

/// All tools, in the order of the documentation.
pub fn all() -> &'static [Tool] {
    &TABLES.tool
}

/// Those whose commands are translated.
pub fn translated() -> impl Iterator<Item = &'static Tool> {
    all().iter().filter(|tool| !tool.is_script)
}
