//! What the tables of other tools are made of.

use super::translation::Translation;

/// A tool, and its flags.
pub struct Tool {
    /// What it is called as.
    pub name: &'static str,
    /// Version or source that the table is of.
    #[cfg_attr(not(test), expect(dead_code, reason = "it is for the documentation"))]
    pub of: &'static str,
    /// Words before the flags that are no flags: `attack`.
    pub subcommand: Option<&'static str>,
    /// Flags are whole words with one dash or two, as Go's programs have them.
    pub is_go: bool,
    /// Its flags.
    pub flags: &'static [Flag],
    /// What it does where no flag says otherwise, and what only all flags together say.
    pub finish: fn(&mut Translation) -> Result<(), String>,
    /// What a reader should know beside the table.
    #[cfg_attr(not(test), expect(dead_code, reason = "it is for the documentation"))]
    pub remark: &'static str,
}

/// One flag of a tool.
pub struct Flag {
    /// Its spellings.
    pub names: &'static [&'static str],
    /// A value by which the flag is tried in tests and documented; empty: it takes none.
    pub example: &'static str,
    /// What it is here.
    pub means: Counterpart,
}

/// What a flag of another tool is here.
pub enum Counterpart {
    /// A flag of ours with the value as the function converts it.
    As(&'static str, fn(&str) -> Result<String, String>),
    /// A flag of ours that takes no value.
    Is(&'static str),
    /// What the words say, by the function.
    By(
        &'static str,
        fn(&mut Translation, &str) -> Result<(), String>,
    ),
    /// Nothing needs to be done for it, because.
    Nothing(&'static str),
    /// It is refused, because.
    No(&'static str),
}
