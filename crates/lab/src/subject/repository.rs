//! `[source]` of a `subject.toml`: the repository that a subject is built from, and at which revision. Pure.
//!
//! Not for: fetching it ([`crate::build`]).

use std::path::{Component, Path};

use crate::experiment::fields::Fields;
use crate::experiment::words::short;

/// How the address of a repository may begin. Others could name a program that git runs.
const SCHEMES: [&str; 5] = ["https://", "http://", "ssh://", "git://", "file://"];
/// Digits of a whole hash: SHA-1, SHA-256.
const HASH_DIGITS: [usize; 2] = [40, 64];
/// The shortest that git prints of a hash; what is shorter is more likely a tag.
const ABBREVIATED_DIGITS_MIN: usize = 7;

/// One state of one repository.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Repository {
    /// Address, as git takes it.
    pub git: String,
    /// A whole hash in small hexadecimal digits, or the name of a tag.
    pub revision: String,
    /// The path in the work tree of the subject; empty: it is the work tree.
    pub path: String,
}

impl Repository {
    /// The name by which a folder of repositories has it: the last part of the address, without `.git`.
    pub fn name(&self) -> &str {
        let name = self.git.trim_end_matches('/').rsplit('/').next();
        let name = name.unwrap_or_default();
        name.strip_suffix(".git").unwrap_or(name)
    }

    /// Whether the revision is a whole hash, and not a tag.
    pub fn is_by_hash(&self) -> bool {
        is_hash(&self.revision)
    }
}

fn is_hash(text: &str) -> bool {
    HASH_DIGITS.contains(&text.len()) && is_hexadecimal(text)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// What is wrong with `text` as a revision, and what to do.
pub(crate) fn revision_problem(text: &str) -> Option<(String, &'static str)> {
    let digits = text.len() >= ABBREVIATED_DIGITS_MIN && is_hexadecimal(text);
    if digits && !is_hash(text) {
        let message = format!("`{}` is a part of a hash", short(text));
        return Some((message, "write all 40 digits, or the name of a tag"));
    }
    // What git refuses in names, and what its command line would take for something else.
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+/".contains(c);
    let is_name = !text.is_empty()
        && text.chars().all(plain)
        && !text.starts_with(['-', '/', '.'])
        && !text.ends_with(['/', '.'])
        && !["..", "//", "/.", ".lock"]
            .iter()
            .any(|part| text.contains(part));
    if is_name {
        return None;
    }
    let message = format!("`{}` is no revision that can be fetched", short(text));
    Some((message, "revision = \"v1.2.0\", or a hash of 40 digits"))
}

/// `[source]`: the repository of the work tree, then those that lie in it.
pub(super) fn read(table: &Fields<'_>) -> Vec<Repository> {
    let mut read: Vec<Repository> = repository(table).into_iter().collect();
    for module in table.tables("modules") {
        let path: Option<String> = module.get("path");
        if path.as_ref().is_some_and(|path| !is_below(path)) {
            let message = "a module's path leads down from the work tree: external/fmt";
            module.note("path", message, "");
        }
        let other = repository(&module);
        if let (Some(path), Some(other)) = (path, other) {
            if read.iter().any(|known| known.path == path) {
                let message = format!("`{}` is taken by another module", short(&path));
                module.note("path", message, "");
            }
            read.push(Repository { path, ..other });
        }
    }
    read
}

/// `git` and `revision`.
pub(super) fn repository(table: &Fields<'_>) -> Option<Repository> {
    let git: Option<String> = table.get("git");
    let revision: Option<String> = table.get("revision");
    if let Some(git) = git.as_ref().filter(|git| !is_address(git)) {
        let message = format!("`{}` is no address of a repository", short(git));
        let help = "git = \"https://example.org/NAME.git\", or \"file:///srv/NAME\"";
        table.note("git", message, help);
    }
    if let Some((message, help)) = revision.as_deref().and_then(revision_problem) {
        table.note("revision", message, help);
    }
    Some(Repository {
        git: git?,
        revision: revision?,
        path: String::new(),
    })
}

fn is_address(text: &str) -> bool {
    let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
    let named = rest.is_some_and(|rest| rest.trim_matches('/').chars().any(|c| c != '.'));
    named && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// Whether `path` names something below the folder that it is looked up in.
fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let plain = |part| matches!(part, Component::Normal(name) if name != ".git");
    !path.is_empty() && parts.all(plain)
}

#[cfg(test)]
mod tests {
    use crate::experiment::Origin;
    use crate::subject::Subject;

    const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

    fn subject(source: &str) -> Result<Subject, String> {
        let text = format!(
            "name = 'x'\nlanguage = 'c'\nrole = 'server'\nsummary = 's'\nendpoints = ['/']\n{source}\n\
             [start]\ncmd = ['{{build}}/source/x', '{{port}}']\n[ready]\nport = true\n[version]\ncmd = 'echo 1'\n"
        );
        Subject::parse(&text, &Origin::new("subject.toml", "/srv/x"))
            .map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn a_source_is_read_with_its_modules() {
        let read = subject(&format!(
            "[source]\ngit = 'https://example.org/a/thing.git'\nrevision = 'v1.2'\n\
             modules = [{{ path = 'external/fmt', git = 'file:///srv/fmt/', revision = '{HASH}' }}]"
        ));
        let read = read.expect("a subject");
        let names: Vec<_> = read
            .repositories
            .iter()
            .map(|r| (r.name(), r.path.as_str(), r.is_by_hash()))
            .collect();
        assert_eq!(names, [("thing", "", false), ("fmt", "external/fmt", true)]);
        // Without a [build] the work tree is all that there is to build.
        assert_eq!(read.build.expect("a build").cmd, "true");
        assert!(read.needs.commands.contains(&"git".to_owned()));
    }

    #[test]
    fn what_cannot_be_fetched_is_refused_in_its_line() {
        let git = "git = 'https://example.org/x'";
        for (source, message) in [
            (
                "git = 'ext::sh -c x'\nrevision = 'v1'".to_owned(),
                "no address of a repository",
            ),
            (
                "git = '../x'\nrevision = 'v1'".to_owned(),
                "no address of a repository",
            ),
            (
                format!("{git}\nrevision = '{}'", &HASH[..12]),
                "is a part of a hash",
            ),
            (
                format!("{git}\nrevision = '--upload-pack=x'"),
                "no revision that can be fetched",
            ),
            (
                format!("{git}\nrevision = 'a..b'"),
                "no revision that can be fetched",
            ),
            (
                format!("{git}\nrevision = ''"),
                "no revision that can be fetched",
            ),
            (git.to_owned(), "lacks `revision`"),
            (
                format!("{git}\nrevision = 'v1'\nbranch = 'main'"),
                "unknown key `branch`",
            ),
            (
                format!(
                    "{git}\nrevision = 'v1'\nmodules = [{{ path = '../x', {}, revision = 'v1' }}]",
                    git
                ),
                "leads down from the work tree",
            ),
        ] {
            let wrong = subject(&format!("[source]\n{source}")).expect_err(&source);
            assert!(wrong.contains(message), "{source}: {wrong}");
        }
    }
}
