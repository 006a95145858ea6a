//! What of the environment that Prony is called in reaches builds and trials: what
//! `subjects/environment.toml` lists and what the user names in [`NAMED`], and nothing else.
//!
//! A flag for a compiler or a runtime that someone once exported (`RUSTFLAGS`, `GOGC`,
//! `NODE_OPTIONS`, `LD_PRELOAD`) would change a figure, and nothing would say so. What is passed
//! and can change what is built is part of a build's key; what is passed stands in
//! `environment.json`, by name alone where the value is a path of the user's or a secret.
//!
//! Not for: what subjects and experiments declare, which comes on top ([`crate::trial`]).
//!
//! ```
//! use prony_lab::passed::{Passed, To};
//! let variables = [("LANG", "C"), ("RUSTFLAGS", "-g"), ("GOGC", "off"), ("PRONY_PASS_ENV", "GOGC")];
//! let variables = variables.map(|(name, value)| (name.into(), value.into()));
//! let passed = Passed::from_variables(variables, To::Builds);
//! let names: Vec<_> = passed.variables().map(|(name, _)| name).collect();
//! assert_eq!(names, ["GOGC", "LANG"]);
//! ```

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::LazyLock;

use prony_record::Fact;
use serde::Deserialize;

/// The variable in which a user names others that are to be passed, between commas.
pub const NAMED: &str = "PRONY_PASS_ENV";
/// Name of the fact that says what is passed to trials.
pub const TRIALS: &str = "environment of trials";
/// The list, which the scripts in `subjects/` read, too.
const LIST: &str = include_str!("../../../subjects/environment.toml");
/// Parts of names whose values are secrets.
const SECRET: [&str; 7] = [
    "AUTH",
    "CREDENTIAL",
    "KEY",
    "PASS",
    "PRIVATE",
    "SECRET",
    "TOKEN",
];

static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    let list: Result<List, _> = toml::from_str(LIST);
    // A test holds that it is whole; without it nothing would be passed.
    list.map(|list| list.pass).unwrap_or_default()
});

#[derive(Deserialize)]
struct List {
    pass: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    names: Vec<String>,
    to: Reach,
    #[serde(default)]
    in_key: bool,
    #[serde(default)]
    shown: bool,
}

#[derive(Clone, Copy, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Reach {
    All,
    Builds,
}

impl Group {
    fn names(&self, name: &str) -> bool {
        self.names
            .iter()
            .any(|listed| match listed.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == listed,
            })
    }
}

/// The kind of process that is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum To {
    /// Builds, and tools that say their version.
    Builds,
    /// All that takes part in a trial.
    Trials,
}

/// Variables that are passed, by name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Passed(BTreeMap<String, Variable>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct Variable {
    value: OsString,
    in_key: bool,
    shown: bool,
}

impl Passed {
    /// What of `variables` is passed. A name that is not UTF-8 is in no list.
    pub fn from_variables(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        to: To,
    ) -> Passed {
        let variables: Vec<(String, OsString)> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .collect();
        let named = variables.iter().find(|(name, _)| name == NAMED);
        let named = named.map_or("", |(_, value)| value.to_str().unwrap_or_default());
        let named: Vec<&str> = named.split(',').map(str::trim).collect();
        let passed = |(name, value): &(String, OsString)| {
            let listed = GROUPS
                .iter()
                .filter(|group| to == To::Builds || group.to == Reach::All)
                .find(|group| group.names(name));
            let named = named.contains(&name.as_str());
            let variable = Variable {
                value: value.clone(),
                in_key: named || listed.is_some_and(|group| group.in_key),
                shown: !is_secret(name, value)
                    && (named || listed.is_some_and(|group| group.shown)),
            };
            (named || listed.is_some()).then(|| (name.clone(), variable))
        };
        Passed(variables.iter().filter_map(passed).collect())
    }

    /// What of this process's environment is passed.
    pub fn here(to: To) -> Passed {
        Passed::from_variables(std::env::vars_os(), to)
    }

    /// Names and values, by name.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        let all = self.0.iter();
        all.map(|(name, variable)| (name.as_str(), variable.value.as_os_str()))
    }

    /// The variables that can change what is built, by name.
    pub fn in_key(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        let of_key = self.0.iter().filter(|(_, variable)| variable.in_key);
        of_key.map(|(name, variable)| (name.as_str(), variable.value.as_os_str()))
    }

    /// `LANG=C HOME PATH`: for the record, values only where they may be shown.
    fn in_words(&self) -> String {
        let word = |(name, variable): (&String, &Variable)| match variable.shown {
            true => format!("{name}={}", variable.value.to_string_lossy()),
            false => name.clone(),
        };
        self.0.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Whether a value must not be recorded: its name says so, or it is an address with a password.
fn is_secret(name: &str, value: &OsStr) -> bool {
    let name = name.to_ascii_uppercase();
    let value = value.to_string_lossy();
    let authority = value.split_once("://").map(|(_, rest)| rest);
    let authority = authority.and_then(|rest| rest.split('/').next());
    SECRET.iter().any(|part| name.contains(part)) || authority.is_some_and(|a| a.contains('@'))
}

/// What is passed from this process's environment, for the record.
pub fn facts() -> Vec<Fact> {
    let fact = |name: &str, to| Fact {
        name: name.to_owned(),
        value: Passed::here(to).in_words(),
    };
    vec![
        fact(TRIALS, To::Trials),
        fact("environment of builds", To::Builds),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(variables: &[(&str, &str)], to: To) -> Passed {
        let variables = variables.iter();
        Passed::from_variables(
            variables.map(|&(name, value)| (name.into(), value.into())),
            to,
        )
    }

    fn names(passed: &Passed) -> Vec<&str> {
        passed.variables().map(|(name, _)| name).collect()
    }

    #[test]
    fn the_list_is_whole_and_names_no_variable_twice() {
        let list: List = toml::from_str(LIST).expect("the list");
        let mut all: Vec<String> = list
            .pass
            .into_iter()
            .flat_map(|group| group.names)
            .collect();
        assert!(all.contains(&"PATH".to_owned()));
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn flags_of_compilers_and_runtimes_stay_behind() {
        let flags = [
            "RUSTFLAGS",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_BUILD_RUSTFLAGS",
            "RUSTUP_TOOLCHAIN",
            "CFLAGS",
            "CC",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "GOGC",
            "GOMAXPROCS",
            "GODEBUG",
            "GOFLAGS",
            "NODE_OPTIONS",
            "UV_THREADPOOL_SIZE",
            "PYTHONPATH",
            "PYTHONOPTIMIZE",
            "JAVA_TOOL_OPTIONS",
            "MALLOC_ARENA_MAX",
            "RUST_LOG",
            "PRONY_DRIVER",
        ];
        let variables: Vec<(&str, &str)> = flags.map(|name| (name, "x")).to_vec();
        for to in [To::Builds, To::Trials] {
            assert_eq!(passed(&variables, to), Passed::default());
        }
    }

    #[test]
    fn a_proxy_is_for_builds_and_no_client_asks_its_peer_through_it() {
        let variables = [("http_proxy", "http://u:p@proxy"), ("PATH", "/bin")];
        assert_eq!(
            names(&passed(&variables, To::Builds)),
            ["PATH", "http_proxy"]
        );
        assert_eq!(names(&passed(&variables, To::Trials)), ["PATH"]);
    }

    #[test]
    fn what_the_user_names_is_passed_and_in_the_key_and_secrets_are_not_shown() {
        let variables = [
            ("PRONY_PASS_ENV", "GOGC, MY_TOKEN,INDEX,ABSENT"),
            ("GOGC", "50"),
            ("MY_TOKEN", "hidden"),
            ("INDEX", "https://user:hidden@here/"),
            ("LC_ALL", "C"),
            ("HOME", "/home/someone"),
            ("GOMAXPROCS", "1"),
        ];
        let passed = passed(&variables, To::Trials);
        assert_eq!(
            passed.in_words(),
            "GOGC=50 HOME INDEX LC_ALL=C MY_TOKEN",
            "and no value of another"
        );
        let key: Vec<&str> = passed.in_key().map(|(name, _)| name).collect();
        assert_eq!(key, ["GOGC", "INDEX", "LC_ALL", "MY_TOKEN"]);
    }
}
