//! Where a link of a page leads: to another page, a file of the repository, a folder, or out of it. A link that leads nowhere is an
//! error with its reason.
//!
//! Not for: what stands there ([`super::body`]).

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;

use super::outline::PageOutline;

/// What a folder is shown by, in order.
const INDEXES: [&str; 2] = ["README.md", "document.md"];
/// Ends of files that a browser shows, or keeps, as they are; the text of all others becomes a page.
const AS_THEY_ARE: [&str; 7] = ["svg", "png", "jpg", "prony", "json", "csv", "sha256"];

/// Everything that links may lead to.
#[derive(Debug)]
pub struct SitePlaces<'a> {
    /// The pages by their path in the repository.
    pub pages: &'a BTreeMap<String, PageOutline>,
    /// All other files of the repository.
    pub files: &'a BTreeSet<String>,
}

/// Where a link leads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Leads {
    /// To something that is not of this site; as it stands.
    Out,
    /// To a page, at its path in the site with its anchor.
    Page(String),
    /// To a file of the repository, which is copied or shown.
    File(String),
    /// To a folder, which needs a list of what is in it.
    Folder(String),
}

impl Leads {
    /// The path in the site.
    pub fn site_path(&self) -> Option<String> {
        match self {
            Leads::Out => None,
            Leads::Page(path) => Some(path.clone()),
            Leads::File(path) if is_copied(path) => Some(path.clone()),
            Leads::File(path) => Some(format!("{path}.html")),
            Leads::Folder(path) => Some(format!("{path}/index.html")),
        }
    }
}

/// Whether a file is put into the site as it is; otherwise its text is shown as a page.
pub fn is_copied(path: &str) -> bool {
    let end = path.rsplit_once('.').map(|(_, end)| end);
    end.is_some_and(|end| AS_THEY_ARE.contains(&end))
}

/// The path in the site of a page.
pub fn page_path(path: &str) -> String {
    format!("{}.html", path.strip_suffix(".md").unwrap_or(path))
}

/// A link from the page at `from` to `to`, both paths in the site.
pub fn relative(from: &str, to: &str) -> String {
    format!("{}{to}", "../".repeat(from.matches('/').count()))
}

impl SitePlaces<'_> {
    /// Where `link` of the page `from` leads; `is_shown`: it is a picture.
    pub fn resolve(&self, from: &str, link: &str, is_shown: bool) -> Result<Leads, String> {
        let scheme = link.split_once(':').map(|(scheme, _)| scheme);
        match (scheme.is_some_and(is_scheme), is_shown) {
            (true, true) => {
                return Err("a picture of another site: the pages are to need nothing else".into());
            }
            (true, false) => return Ok(Leads::Out),
            (false, _) => {}
        }
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let path = percent_decode_str(path).decode_utf8_lossy();
        let path = match path.as_ref() {
            "" => from.to_owned(),
            path => joined(from, path).ok_or("it leads out of the repository")?,
        };
        match (self.pages.get(&path), anchor) {
            (Some(_), "") => Ok(Leads::Page(page_path(&path))),
            (Some(page), anchor) if page.has(anchor) => {
                Ok(Leads::Page(format!("{}#{anchor}", page_path(&path))))
            }
            (Some(_), anchor) => Err(format!("{path} has no heading for #{anchor}")),
            (None, "") if self.files.contains(&path) => Ok(Leads::File(path)),
            (None, _) if self.files.contains(&path) => {
                Err(format!("{path} is no page, and has no anchors"))
            }
            (None, _) => self
                .folder(&path)
                .ok_or_else(|| format!("there is no {path}")),
        }
    }

    /// A folder with pages or files in it.
    fn folder(&self, path: &str) -> Option<Leads> {
        let path = path.trim_end_matches('/');
        let mut indexes = INDEXES.iter().map(|name| format!("{path}/{name}"));
        if let Some(index) = indexes.find(|index| self.pages.contains_key(index)) {
            return Some(Leads::Page(page_path(&index)));
        }
        let is_there = !below(self.pages.keys(), path).is_empty();
        let is_there = is_there || !below(self.files.iter(), path).is_empty();
        is_there.then(|| Leads::Folder(path.to_owned()))
    }
}

/// What lies directly in a folder.
pub fn below<'p>(paths: impl Iterator<Item = &'p String>, folder: &str) -> Vec<&'p str> {
    let in_it = |path: &&'p String| {
        let rest = path
            .strip_prefix(folder)
            .and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|rest| !rest.contains('/'))
    };
    paths.filter(in_it).map(String::as_str).collect()
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// `link` as seen from the folder of `from`; `None` if it leads above the repository.
fn joined(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::outline::outline;

    #[test]
    fn links_lead_to_pages_files_and_folders_or_nowhere() {
        let page = |path: &str| (path.to_owned(), outline(path, "# Title\n\n## Part two\n"));
        let pages = ["README.md", "docs/a.md", "docs/b/c.md", "docs/d/README.md"];
        let pages = BTreeMap::from(pages.map(page));
        let files = BTreeSet::from(["docs/p.svg", "x/y.toml"].map(str::to_owned));
        let places = SitePlaces {
            pages: &pages,
            files: &files,
        };
        let from = |from: &str, link: &str| {
            let leads = places.resolve(from, link, false);
            leads.map(|leads| leads.site_path().unwrap_or_default())
        };
        for (link, to) in [
            ("https://example.org/a#b", ""),
            ("#part-two", "docs/a.html#part-two"),
            ("b/c.md", "docs/b/c.html"),
            ("./b/../b/c.md#title", "docs/b/c.html#title"),
            ("../README.md", "README.html"),
            ("p.svg", "docs/p.svg"),
            ("../x/y.toml", "x/y.toml.html"),
            ("b", "docs/b/index.html"),
            ("b/", "docs/b/index.html"),
            ("d", "docs/d/README.html"),
        ] {
            assert_eq!(from("docs/a.md", link).as_deref(), Ok(to), "{link}");
        }
        for (link, why) in [
            ("#none", "docs/a.md has no heading for #none"),
            ("b/c.md#none", "docs/b/c.md has no heading for #none"),
            ("none.md", "there is no docs/none.md"),
            ("../../etc", "leads out of the repository"),
            ("p.svg#x", "is no page"),
            ("e", "there is no docs/e"),
        ] {
            let said = from("docs/a.md", link).expect_err(link);
            assert!(said.contains(why), "{link}: {said}");
        }
        let shown = places.resolve("docs/a.md", "https://example.org/a.png", true);
        assert!(shown.expect_err("a picture").contains("another site"));
        assert_eq!(
            relative("docs/b/c.html", "README.html"),
            "../../README.html"
        );
        assert_eq!(relative("index.html", "docs/a.html#x"), "docs/a.html#x");
    }
}
