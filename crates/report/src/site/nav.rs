//! The order of the pages: groups by what a reader wants to do.
//!
//! Not for: how they are shown ([`super::frame`]).

use std::collections::{BTreeMap, BTreeSet};

use super::outline::PageOutline;

/// Pages that belong together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NavGroup {
    /// What one does there.
    pub title: &'static str,
    /// Paths in the repository.
    pub pages: Vec<String>,
    /// Whether it is a list that is opened when it is needed.
    pub is_long: bool,
}

/// The groups, each with its pages in order. A page that is not there is left out.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Start",
        &[
            "README.md",
            "docs/guide.md",
            "docs/starting.md",
            "docs/two-releases.md",
            "docs/coming-from.md",
            "docs/coming-from-wrk.md",
            "docs/protocols.md",
            "docs/sources.md",
            "docs/scenarios.md",
            "docs/scripts.md",
            "docs/doctor.md",
        ],
    ),
    (
        "Describe an experiment",
        &[
            "docs/experiments.md",
            "docs/experiment-reference.md",
            "subjects/CONTRACT.md",
            "docs/profile.md",
        ],
    ),
    (
        "Keep and share runs",
        &[
            "docs/log.md",
            "docs/verify.md",
            "docs/bundles.md",
            "docs/housekeeping.md",
            "docs/formats.md",
        ],
    ),
    (
        "Fetch, serve, build on it",
        &[
            "docs/fetch.md",
            "docs/http-client.md",
            "docs/host.md",
            "docs/host-interface.md",
            "docs/wsgi.md",
            "python/README.md",
            "docs/runtime.md",
        ],
    ),
    (
        "Trust it, or not",
        &[
            "docs/method.md",
            "docs/glossary.md",
            "docs/healthy-cells.md",
            "docs/equal-work.md",
            "docs/clients.md",
            "docs/hosts.md",
            "docs/io-strategies.md",
            "truth/README.md",
        ],
    ),
    (
        "Change Prony",
        &[
            "ARCHITECTURE.md",
            "docs/contributing.md",
            "STYLE.md",
            "docs/releasing.md",
            "CHANGELOG.md",
        ],
    ),
];
/// Groups of all pages below a folder.
const BELOW: [(&str, &str); 4] = [
    ("Documents of real runs", "docs/documents/"),
    ("Findings", "docs/findings/"),
    ("Decisions", "docs/decisions/"),
    ("Subjects and examples", ""),
];

/// The groups in order. Every page is in exactly one, but for the appendices, to which their documents lead.
pub fn groups(pages: &BTreeMap<String, PageOutline>) -> Vec<NavGroup> {
    let mut rest: BTreeSet<&String> = pages.keys().collect();
    rest.retain(|path| !path.ends_with("/appendix.md"));
    let mut groups = Vec::new();
    for (title, paths) in GROUPS {
        let there = paths.iter().map(|path| (*path).to_owned());
        let there: Vec<String> = there.filter(|path| rest.remove(path)).collect();
        groups.push(NavGroup {
            title,
            pages: there,
            is_long: false,
        });
    }
    for (title, folder) in BELOW {
        let there = rest.iter().filter(|path| path.starts_with(folder));
        let there: Vec<String> = there.map(|path| (*path).clone()).collect();
        rest.retain(|path| !path.starts_with(folder));
        groups.push(NavGroup {
            title,
            pages: there,
            is_long: true,
        });
    }
    groups.retain(|group| !group.pages.is_empty());
    groups
}
