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
mod links;
mod nav;
pub mod outline;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};

use crate::prose::without_marks;
use crate::templates::{fill, safe, templates};
use links::{Leads, SitePlaces, below, is_copied, page_path, relative};
use nav::{NavPage, groups};
use outline::{PageHeading, PageOutline};

/// The style of all pages, with the colours that they share with documents.
const STYLE: &str = concat!(
    include_str!("../templates/plot.css"),
    include_str!("../templates/base.css"),
    include_str!("../templates/site.css")
);

/// Bytes of a file that is shown as a page, at the most; more is cut.
const SHOWN_BYTES_MAX: usize = 400_000;

/// Chapters of a page that are so few that their parts are listed, too.
const CHAPTERS_FEW: usize = 2;

/// A link that leads nowhere.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct BrokenLink {
    /// The page, as a path in the repository.
    pub file: String,
    /// The line of the link, from 1.
    pub line: usize,
    /// The link.
    pub link: String,
    /// Why it leads nowhere.
    pub why: String,
}

/// The pages, read.
#[derive(Debug)]
pub struct Pages<'a> {
    texts: BTreeMap<&'a str, String>,
    files: &'a BTreeSet<String>,
    outlines: BTreeMap<String, PageOutline>,
    /// Groups of pages as lists show them.
    groups: Value,
    templates: Environment<'static>,
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
    /// Folders that pages lead to.
    folders: BTreeSet<String>,
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
        let outlines: BTreeMap<String, PageOutline> = texts.iter().map(read).collect();
        let groups = Value::from(Serde(&groups(&outlines)));
        Pages {
            texts,
            files,
            outlines,
            groups,
            templates: templates(),
            api,
            version,
        }
    }

    /// Every page, checked.
    pub fn build(&self) -> DocSite {
        let mut site = DocSite::default();
        for (path, text) in &self.texts {
            let html = self.page(path, text, &mut site);
            site.files.insert(page_path(path), html);
        }
        for folder in std::mem::take(&mut site.folders) {
            let at = format!("{folder}/index.html");
            let html = self.folder(&folder, &at, &mut site);
            site.files.insert(at, html);
        }
        let readme = self.outlines.get("README.md");
        let lead = readme.map_or("", |readme| readme.lead.as_str());
        let home = context! { lead, lists => &self.groups };
        let files = [
            ("index.html", self.filled("index.html", None, "Prony", home)),
            ("site.css", STYLE.to_owned()),
            ("site.js", include_str!("../templates/site.js").to_owned()),
            ("search-index.js", search::index(&self.outlines)),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text));
        site.files.extend(files);
        site.broken.sort();
        site
    }

    /// A whole page: `at`, its path in the site; `source`, the page of the repository that it is made of, if any; `values`, what stands
    /// in it.
    fn filled(&self, at: &str, source: Option<&str>, title: &str, values: Value) -> String {
        let outline = source.and_then(|path| self.outlines.get(path));
        let headings = outline.map_or(&[][..], |page| &page.headings);
        // The parts of few long chapters are what a reader looks for.
        let chapters = headings.iter().filter(|heading| heading.level == 2);
        let deepest = 2 + u8::from(chapters.count() <= CHAPTERS_FEW);
        let chapters = headings.iter();
        let chapters = chapters.filter(|heading| (2..=deepest).contains(&heading.level));
        let chapters: Vec<&PageHeading> = chapters.collect();
        let nothing: &[Value] = &[];
        let frame = context! {
            base => relative(at, ""),
            source, title,
            groups => &self.groups,
            chapters => Value::from(Serde(&chapters)),
            api => self.api.to_vec(),
            version => self.version,
            lead => "", body => "", lists => nothing.to_vec(), files => nothing.to_vec(),
        };
        fill(&self.templates, "site.html", context! { ..values, ..frame })
    }

    fn page(&self, path: &str, text: &str, site: &mut DocSite) -> String {
        let at = page_path(path);
        let places = SitePlaces {
            pages: &self.outlines,
            files: self.files,
        };
        let mut follow = |link: &str, is_picture: bool, line: usize| {
            let leads = match places.resolve(path, link, is_picture) {
                Ok(leads) => leads,
                Err(why) => {
                    let (file, link) = (path.to_owned(), link.to_owned());
                    site.broken.push(BrokenLink {
                        file,
                        line,
                        link: link.clone(),
                        why,
                    });
                    return link;
                }
            };
            let to = leads.site_path();
            match leads {
                Leads::File(file) => site.add(file),
                Leads::Folder(folder) => _ = site.folders.insert(folder),
                Leads::Out | Leads::Page(_) => {}
            }
            to.map_or_else(|| link.to_owned(), |to| relative(&at, &to))
        };
        let outline = &self.outlines[path];
        let body = safe(body::body(text, outline, &mut follow));
        self.filled(&at, Some(path), &outline.title, context! { body })
    }

    /// A folder that a page links to: its pages, and its files.
    fn folder(&self, folder: &str, at: &str, site: &mut DocSite) -> String {
        let pages = below(self.outlines.keys(), folder).into_iter();
        let pages =
            pages.filter_map(|path| self.outlines.get_key_value(path).map(NavPage::from_outline));
        let pages: Vec<NavPage<'_>> = pages.collect();
        let file = |path: &str| {
            site.add(path.to_owned());
            let name = path.rsplit('/').next();
            context! { name, path => Leads::File(path.to_owned()).site_path() }
        };
        let files = below(self.files.iter(), folder).into_iter().map(file);
        let files: Vec<Value> = files.collect();
        let lists = [context! { title => "", pages => Value::from(Serde(&pages)) }];
        self.filled(at, None, folder, context! { lists, files })
    }

    /// The page of a text file of the repository, and its path in the site.
    pub fn shown(&self, path: &str, text: &str) -> (String, String) {
        let at = format!("{path}.html");
        let cut = text.floor_char_boundary(SHOWN_BYTES_MAX);
        let rest = match cut < text.len() {
            true => "<p>The rest is left out.</p>\n",
            false => "",
        };
        let body = body::code(text.get(..cut).unwrap_or_default()) + rest;
        let page = self.filled(&at, None, path, context! { body => safe(body) });
        (at, page)
    }
}

impl DocSite {
    /// Notes a file that a page leads to.
    fn add(&mut self, file: String) {
        match is_copied(&file) {
            true => self.copied.insert(file),
            false => self.shown.insert(file),
        };
    }
}
