//! `prony docs`: the pages of this repository, whose links all lead somewhere, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{self, PRONY, prony};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every file below `folder` that ends in `.html`.
fn html(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            html(&path, found);
        } else if path.extension().is_some_and(|end| end == "html") {
            found.push(path);
        }
    }
}

/// The values of an attribute.
fn values<'t>(text: &'t str, attribute: &str) -> Vec<&'t str> {
    let parts = text.split(attribute).skip(1);
    parts.filter_map(|rest| rest.split('"').next()).collect()
}

/// The links are looked up a second time, in the pages as they were written: each leads to a file with that anchor, and
/// nothing is loaded from elsewhere.
#[test]
fn the_pages_of_this_repository_need_nothing_but_themselves() {
    let folder = common::folder("docs");
    let output = prony(&folder, &["docs", "site", "--no-api"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "site/index.html\n");
    assert!(
        said(&output).contains(" 0 broken links"),
        "{}",
        said(&output)
    );
    let site = folder.join("site");
    let mut pages = Vec::new();
    html(&site, &mut pages);
    assert!(pages.len() > 120, "{}", pages.len());
    let mut wrong = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).expect("a page");
        let at = page.parent().expect("a folder");
        let mut look = |link: &str, is_loaded: bool| {
            let is_out = link.starts_with("http");
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let leads = if path.is_empty() {
                page.clone()
            } else {
                at.join(path)
            };
            let has = |anchor: &str| {
                let text = fs::read_to_string(&leads).unwrap_or_default();
                text.contains(&format!("id=\"{anchor}\""))
            };
            let is_right = match is_out {
                true => !is_loaded,
                false => leads.is_file() && (anchor.is_empty() || has(anchor)),
            };
            if !is_right {
                wrong.push(format!("{}: {link}", page.display()));
            }
        };
        for link in values(&text, " href=\"") {
            look(link, false);
        }
        for link in values(&text, " src=\"") {
            look(link, true);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let style = fs::read_to_string(site.join("site.css")).expect("a style");
    assert!(!style.contains("url(") && style.contains("prefers-color-scheme: dark"));
    let index = fs::read_to_string(site.join("search-index.js")).expect("an index");
    assert!(index.contains("\"run.blocks\""));
    // A new page gets a place in the navigation (crates/report/src/templates/nav.txt).
    let home = fs::read_to_string(site.join("index.html")).expect("a page");
    let rest = home
        .split("<h2>Subjects and examples</h2>")
        .nth(1)
        .expect("the last group");
    assert!(!rest.contains("href=\"docs/"), "{rest}");
    // What this command wrote it writes again, and what it did not write it leaves alone.
    let again = prony(&folder, &["docs", "site", "--no-api"]);
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    let other = prony(&folder, &["docs", ".", "--no-api"]);
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    assert!(said(&other).contains("did not write"), "{}", said(&other));
}

#[test]
fn a_link_that_leads_nowhere_is_named_with_its_line() {
    let folder = common::folder("docs-broken");
    for (path, text) in [
        (
            "docs/method.md",
            "# Method\n\n[a](none.md),\n[b](../README.md#there) [c](#method)\n",
        ),
        ("README.md", "# Readme\n\n![d](docs/p.svg)\n"),
        ("subjects/CONTRACT.md", "# Contract\n"),
    ] {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a page");
    }
    let output = Command::new(PRONY)
        .args(["docs", "--check"])
        .env("PRONY_HOME", &folder)
        .output()
        .expect("prony runs");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    insta::assert_snapshot!(said(&output), @r"
    README.md:3: docs/p.svg: there is no docs/p.svg
    docs/method.md:3: none.md: there is no docs/none.md
    docs/method.md:4: ../README.md#there: README.md has no heading for #there
    3 pages, 3 broken links
    ");
    assert!(output.stdout.is_empty());
    assert!(!folder.join(".prony").exists());
    fs::remove_file(folder.join("docs/method.md")).expect("the mark");
    let none = Command::new(PRONY)
        .args(["docs", "--check"])
        .env("PRONY_HOME", &folder)
        .output()
        .expect("prony runs");
    assert_eq!(none.status.code(), Some(2), "{}", said(&none));
    assert!(
        said(&none).contains("a checkout of Prony"),
        "{}",
        said(&none)
    );
}
