//! `[root]`: the root file system that a subject is built and started in, where the machine itself lacks what it needs.
//!
//! Not for: making one ([`crate::build`]) or entering it ([`crate::root`]).

use std::path::{Path, PathBuf};

use toml::Spanned;

use crate::experiment::fields::{Fields, Problems};
use crate::experiment::words::short;

/// Packages that one root file system may name.
const PACKAGES_MAX: usize = 200;

/// What a root file system is made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RootFs {
    /// Debian, by mmdebstrap, from the mirror that this machine's own apt uses.
    Debian {
        /// Its release: `trixie`.
        suite: String,
        /// Packages beside the essential ones.
        packages: Vec<String>,
    },
    /// A copy of a folder.
    Folder {
        /// That folder, absolute.
        dir: PathBuf,
    },
}

impl RootFs {
    /// What it is, as a version names it: `Debian trixie`.
    pub fn title(&self) -> String {
        match self {
            RootFs::Debian { suite, .. } => format!("Debian {suite}"),
            RootFs::Folder { dir } => format!("the folder {}", dir.display()),
        }
    }

    /// The commands that make it.
    pub fn commands(&self) -> &'static [&'static str] {
        match self {
            RootFs::Debian { .. } => &["mmdebstrap", "apt-get"],
            RootFs::Folder { .. } => &["cp"],
        }
    }
}

/// Reads the table; `folder`: that of the subject.
pub(super) fn read(table: &Fields<'_>, folder: &Path) -> Option<RootFs> {
    let packages: Vec<Spanned<String>> = table.value("packages");
    match (table.get("debian"), table.get::<String>("dir")) {
        (Some(suite), None) => from_debian(suite, packages, table.problems),
        (None, Some(dir)) => {
            if let Some(package) = packages.first() {
                let message = "packages are installed by `debian`; a folder is taken as it is";
                table.problems.note(package.span(), message);
            }
            let dir = folder.join(dir);
            Some(RootFs::Folder { dir })
        }
        _ => {
            let message = "a root file system is made by either `debian` or `dir`";
            let help = "debian = \"trixie\", or dir = \"rootfs\"";
            table.problems.advise(table.span.clone(), message, help);
            None
        }
    }
}

fn from_debian(
    suite: Spanned<String>,
    packages: Vec<Spanned<String>>,
    p: &Problems,
) -> Option<RootFs> {
    let suites = std::iter::once((&suite, "a release of Debian"));
    let names = suites.chain(packages.iter().map(|package| (package, "a package")));
    let mut good = true;
    for (name, what) in names {
        if !is_plain(name.get_ref()) {
            let message = format!("`{}` is not the name of {what}", short(name.get_ref()));
            p.note(name.span(), message);
            good = false;
        }
    }
    if let Some(beyond) = packages.get(PACKAGES_MAX) {
        let message = format!("more than {PACKAGES_MAX} packages");
        p.note(beyond.span(), message);
        good = false;
    }
    good.then(|| RootFs::Debian {
        suite: suite.into_inner(),
        packages: packages.into_iter().map(Spanned::into_inner).collect(),
    })
}

/// A word that mmdebstrap takes for a name, not for a flag, a path or a pattern of apt.
fn is_plain(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.bytes().all(plain)
}
