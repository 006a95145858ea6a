//! The order of the pages: groups by what a reader wants to do.
//!
//! Not for: how they are shown (`templates/site.html`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::links::page_path;
use super::outline::PageOutline;

/// Pages that belong together.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct NavGroup<'a> {
    /// What one does there.
    pub title: &'static str,
    /// Its pages.
    pub pages: Vec<NavPage<'a>>,
    /// Whether it is a list that is opened when it is needed.
    pub is_long: bool,
}

/// A page in lists of pages.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct NavPage<'a> {
    /// Its path in the repository.
    pub source: &'a str,
    /// Its path in the site.
    pub path: String,
    /// Its title.
    pub title: &'a str,
    /// Its first sentence.
    pub lead: &'a str,
}

impl<'a> NavPage<'a> {
    /// That of a page with its path in the repository.
    pub fn from_outline((source, page): (&'a String, &'a PageOutline)) -> NavPage<'a> {
        NavPage {
            source,
            path: page_path(source),
            title: &page.title,
            lead: &page.lead,
        }
    }
}

/// The groups, each with its pages in order: `folder/*` has all that are left below it.
const GROUPS: &str = include_str!("../templates/nav.txt");

/// The groups in order. Every page is in exactly one, but for the appendices, to which their documents lead.
pub fn groups(pages: &BTreeMap<String, PageOutline>) -> Vec<NavGroup<'_>> {
    let mut rest: BTreeSet<&String> = pages.keys().collect();
    rest.retain(|path| !path.ends_with("/appendix.md"));
    let mut take = |of: &str| -> Vec<&String> {
        let is_meant = |path: &String| match of.strip_suffix('*') {
            Some(folder) => path.starts_with(folder),
            None => path == of,
        };
        let taken = rest.iter().copied().filter(|path| is_meant(path)).collect();
        rest.retain(|path| !is_meant(path));
        taken
    };
    let group = |(title, paths): (&'static str, &str)| NavGroup {
        title,
        is_long: paths.ends_with('*'),
        pages: paths
            .split(' ')
            .flat_map(&mut take)
            .filter_map(|path| pages.get_key_value(path).map(NavPage::from_outline))
            .collect(),
    };
    let lines = GROUPS.lines().filter_map(|line| line.split_once(": "));
    let mut groups: Vec<NavGroup<'_>> = lines.map(group).collect();
    groups.retain(|group| !group.pages.is_empty());
    groups
}
