//! `[needs] original` and `{originals}`: a system of others that its user has built, and which of its files a subject runs. Pure.
//!
//! Not for: whether they are there ([`crate::plan::Facts`]), or repositories that Prony fetches and builds ([`super::repository`]).

use std::ops::Range;
use std::path::{Component, Path};

use super::repository::Repository;
use crate::experiment::fields::Problems;
use crate::experiment::words::{self, ORIGINALS, short};

const EXAMPLE: &str =
    "original = { git = \"https://example.org/NAME.git\", revision = \"v1.2.0\" }";

/// The path of `file` below `{originals}`; `None`: it is elsewhere.
pub(crate) fn below(file: &str) -> Option<&str> {
    let rest = file.strip_prefix('{')?.strip_prefix(ORIGINALS)?;
    rest.strip_prefix("}/")
}

/// Whether a path below `{originals}` leads down from there.
pub(super) fn leads_down(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// That what is used of `{originals}` is named, so that it is looked for, and its content told in the record. `files` and
/// `original` are those of [needs], `texts` all commands and their environments.
pub(super) fn check<'a>(
    files: &[String],
    original: Option<&Repository>,
    mut texts: impl Iterator<Item = &'a String>,
    span: &Range<usize>,
    p: &Problems,
) {
    let is_used = texts.any(|text| words::placeholders(text).any(|name| name == ORIGINALS));
    let mut named = files.iter().filter_map(|file| below(file)).peekable();
    let note = |message: String, help: &str| {
        p.advise(span.clone(), message, help);
    };
    match (original, named.peek().is_some()) {
        (None, false) if !is_used => {}
        (_, false) => note(
            "the subject runs what its user has built, and `files` of [needs] names none of it"
                .to_owned(),
            "files = [\"{originals}/NAME/program\"]: all that it runs of it, whose content is recorded",
        ),
        (None, true) => note(
            "`files` of [needs] names what its user has built, and `original` does not say of what"
                .to_owned(),
            EXAMPLE,
        ),
        (Some(original), true) => {
            let folder = original.name();
            let is_its = |path: &str| path.split('/').next() == Some(folder);
            for path in named.filter(|path| !is_its(path)) {
                let message = format!("`{}` is not below `{{originals}}/{folder}`", short(path));
                note(message, "the folder is called as the repository is");
            }
        }
    }
}

/// What would bring what is needed of `original`.
pub(crate) fn remedy(original: &Repository, is_folder_named: bool) -> String {
    let digits = if original.is_by_hash() {
        12
    } else {
        usize::MAX
    };
    let revision: String = original.revision.chars().take(digits).collect();
    let set = if is_folder_named {
        ""
    } else {
        ", with PRONY_ORIGINALS exported"
    };
    format!(
        "build {} at {revision} as its own documentation says, and lay its programs in $PRONY_ORIGINALS/{}{set} \
         (`prony docs contract`, Originals)",
        original.git,
        original.name()
    )
}

#[cfg(test)]
mod tests {
    use crate::experiment::Origin;
    use crate::subject::Subject;

    const ORIGINAL: &str =
        "original = { git = 'https://example.org/a/thing.git', revision = 'v1' }";

    fn subject(needs: &str, word: &str) -> Result<Subject, String> {
        let text = format!(
            "name = 'x'\nlanguage = 'c'\nrole = 'server'\nsummary = 's'\nendpoints = ['/']\n[needs]\n{needs}\n\
             [start]\ncmd = ['{word}', '{{port}}']\n[ready]\nport = true\n[version]\ncmd = 'cat {{originals}}/thing/VERSION'\n"
        );
        Subject::parse(&text, &Origin::new("subject.toml", "/srv/x"))
            .map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn what_its_user_has_built_is_named_with_where_it_is_from() {
        let needs = format!("{ORIGINAL}\nfiles = ['/bin/sh', '{{originals}}/thing/bin/server']");
        let read = subject(&needs, "{originals}/thing/bin/server").expect("a subject");
        let own: Vec<&str> = read.needs.original_names().collect();
        assert_eq!(own, ["thing/bin/server"]);
        let original = read.needs.original.expect("an original");
        assert_eq!(
            super::remedy(&original, false),
            "build https://example.org/a/thing.git at v1 as its own documentation says, and lay its programs in \
             $PRONY_ORIGINALS/thing, with PRONY_ORIGINALS exported (`prony docs contract`, Originals)"
        );
        assert!(read.repositories.is_empty() && read.build.is_none());
    }

    #[test]
    fn what_is_not_named_would_not_be_told_in_the_record() {
        let word = "{originals}/thing/server";
        let file = "files = ['{originals}/thing/server']";
        let other = format!("{ORIGINAL}\nfiles = ['{{originals}}/other/server']");
        let up = format!("{ORIGINAL}\nfiles = ['{{originals}}/thing/../server']");
        for (needs, message) in [
            ("", "names none of it"),
            (ORIGINAL, "names none of it"),
            (file, "does not say of what"),
            (other.as_str(), "is not below `{originals}/thing`"),
            (up.as_str(), "leads down"),
            (
                "original = { git = 'thing', revision = 'v1' }",
                "no address of a repository",
            ),
        ] {
            let wrong = subject(needs, word).expect_err(needs);
            assert!(wrong.contains(message), "{needs}: {wrong}");
        }
    }

    #[test]
    fn a_build_does_not_use_what_its_user_has_built() {
        let needs = format!(
            "{ORIGINAL}\nfiles = ['{{originals}}/thing/server']\n[build]\ncmd = 'cp {{originals}}/thing/server {{build}}'\ninputs = []"
        );
        let wrong = subject(&needs, "{build}/server").expect_err("a build by {originals}");
        assert!(
            wrong.contains("`{originals}` cannot stand in this command"),
            "{wrong}"
        );
    }
}
