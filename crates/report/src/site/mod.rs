//! The documentation as one folder of pages that need nothing else: made of the Markdown of the repository, with navigation,
//! a search, and every link checked.
//!
//! Pure: [`Pages`] takes what was read, and gives texts to be written. The command `prony docs` reads and writes.
//! Not for: documents of runs as they are written ([`crate::render`]); their Markdown is a page here like any other.
//!
//! ```
//! use std::collections::{BTreeMap, BTreeSet};
//! use prony_report::site::Pages;
//! let texts = BTreeMap::from([("README.md".to_owned(), "# A\n\n[b](b.md)\n".to_owned())]);
//! let files = BTreeSet::new();
//! let site = Pages::new(&texts, &files, &[], "1.0.0").build();
//! assert_eq!(site.broken[0].line, 3);
//! assert!(site.files["README.html"].contains("<h1 id=\"a\">"));
//! ```

mod body;
mod frame;
mod links;
mod nav;
pub mod outline;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis;
pub use body::BrokenLink;
use frame::escaped;
use links::{Leads, SitePlaces, below, is_copied, page_path, relative};
use nav::NavGroup;
use outline::PageOutline;

/// A page without the comments around its bound figures, which would make a block of HTML of a line that begins with one. What a
/// page shows of them in its code stays.
fn without_marks(text: &str) -> String {
    let mut is_code = false;
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        match is_code {
            true => plain.push_str(line),
            false => plain.push_str(&analysis::without_marks(line)),
        }
    }
    plain
}

/// Bytes of a file that is shown as a page, at the most; more is cut.
const SHOWN_BYTES_MAX: usize = 400_000;

/// The pages, read.
#[derive(Debug)]
pub struct Pages<'a> {
    texts: BTreeMap<&'a str, String>,
    files: &'a BTreeSet<String>,
    outlines: BTreeMap<String, PageOutline>,
    groups: Vec<NavGroup>,
    api: &'a [String],
    version: &'a str,
}

/// What is to be written.
#[derive(Debug, Default)]
pub struct DocSite {
    /// Texts by their path in the site.
    pub files: BTreeMap<String, String>,
    /// Files of the repository that are copied to the same path.
    pub copied: BTreeSet<String>,
    /// Text files of the repository that are shown: [`Pages::shown`] makes the page of each.
    pub shown: BTreeSet<String>,
    /// Links that lead nowhere, in the order of files and lines.
    pub broken: Vec<BrokenLink>,
}

impl<'a> Pages<'a> {
    /// `texts`: Markdown by its path in the repository; `files`: all other files there, which links may lead to; `api`: crates
    /// whose documentation is in the folder `api`.
    pub fn new(
        texts: &'a BTreeMap<String, String>,
        files: &'a BTreeSet<String>,
        api: &'a [String],
        version: &'a str,
    ) -> Pages<'a> {
        let plain = |(path, text): (&'a String, &String)| (path.as_str(), without_marks(text));
        let texts: BTreeMap<&str, String> = texts.iter().map(plain).collect();
        let read =
            |(path, text): (&&str, &String)| ((*path).to_owned(), outline::outline(path, text));
        let outlines = texts.iter().map(read).collect();
        let groups = nav::groups(&outlines);
        Pages {
            texts,
            files,
            outlines,
            groups,
            api,
            version,
        }
    }

    /// Every page, checked.
    pub fn build(&self) -> DocSite {
        let mut site = DocSite::default();
        let mut folders = BTreeSet::new();
        for (path, text) in &self.texts {
            let html = self.page(path, text, &mut site, &mut folders);
            site.files.insert(page_path(path), html);
        }
        for folder in folders {
            let at = format!("{folder}/index.html");
            let html = self.folder(&folder, &at, &mut site);
            site.files.insert(at, html);
        }
        site.files
            .insert("index.html".to_owned(), frame::home(self));
        site.files
            .insert("site.css".to_owned(), frame::style().to_owned());
        site.files.insert(
            "site.js".to_owned(),
            include_str!("../templates/site.js").to_owned(),
        );
        site.files
            .insert("search-index.js".to_owned(), search::index(&self.outlines));
        site.broken.sort();
        site
    }

    fn page(
        &self,
        path: &str,
        text: &str,
        site: &mut DocSite,
        folders: &mut BTreeSet<String>,
    ) -> String {
        let at = page_path(path);
        let places = SitePlaces {
            pages: &self.outlines,
            files: self.files,
        };
        let DocSite {
            copied,
            shown,
            broken,
            ..
        } = site;
        let mut follow = |link: &str, is_picture: bool| {
            let leads = places.resolve(path, link, is_picture)?;
            let to = leads.site_path();
            match leads {
                Leads::File(file) if is_copied(&file) => _ = copied.insert(file),
                Leads::File(file) => _ = shown.insert(file),
                Leads::Folder(folder) => _ = folders.insert(folder),
                Leads::Out | Leads::Page(_) => {}
            }
            Ok(to.map_or_else(|| link.to_owned(), |to| relative(&at, &to)))
        };
        let Some(outline) = self.outlines.get(path) else {
            return String::new();
        };
        let body = body::body((path, text), outline, &mut follow, broken);
        frame::page(self, &at, Some(path), &outline.title, &body)
    }

    /// A folder that a page links to: its pages, and its files.
    fn folder(&self, folder: &str, at: &str, site: &mut DocSite) -> String {
        let pages = below(self.outlines.keys(), folder);
        let mut body = format!("<h1>{}</h1>\n", escaped(folder));
        body.push_str(&frame::list(self, at, pages.into_iter()));
        let files = below(self.files.iter(), folder);
        body.push_str("<ul>\n");
        for file in files {
            let leads = Leads::File(file.to_owned());
            match is_copied(file) {
                true => site.copied.insert(file.to_owned()),
                false => site.shown.insert(file.to_owned()),
            };
            let to = relative(at, &leads.site_path().unwrap_or_default());
            let name = file.rsplit('/').next().unwrap_or(file);
            body.push_str(&format!(
                "<li><a href=\"{}\">{}</a></li>\n",
                escaped(&to),
                escaped(name)
            ));
        }
        body.push_str("</ul>\n");
        frame::page(self, at, None, folder, &body)
    }

    /// The page of a text file of the repository, and its path in the site.
    pub fn shown(&self, path: &str, text: &str) -> (String, String) {
        let at = format!("{path}.html");
        let cut = text.floor_char_boundary(SHOWN_BYTES_MAX);
        let body = format!(
            "<h1>{}</h1>\n<pre><code>{}</code></pre>\n{}",
            escaped(path),
            escaped(text.get(..cut).unwrap_or_default()),
            if cut < text.len() {
                "<p>The rest is left out.</p>\n"
            } else {
                ""
            }
        );
        let page = frame::page(self, &at, None, path, &body);
        (at, page)
    }

    /// Pages that the navigation has no place of its own for, by their paths.
    pub fn unplaced(&self) -> Vec<&str> {
        let last = self
            .groups
            .last()
            .filter(|group| group.title.starts_with("Subjects"));
        last.map_or_else(Vec::new, |group| {
            group.pages.iter().map(String::as_str).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_in_their_sentences_without_the_comments_around_them() {
        let text =
            "at\n<!-- {{rate}} -->31 k<!-- {{/}} --> requests\n```md\n<!-- {{rate}} -->31 k\n```\n";
        let plain = "at\n31 k requests\n```md\n<!-- {{rate}} -->31 k\n```\n";
        assert_eq!(without_marks(text), plain);
    }
}
