//! `prony docs`: a page of the documentation as Markdown, which needs no checkout, or that of a checkout as one folder of pages
//! that need nothing else.
//!
//! Not for: making the pages, or checking their links ([`prony_report::site`]).

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;
use prony_lab::diagnosis::nearest;
use prony_report::site::Pages;

use crate::cause::CannotWrite;
use crate::embedded::{self, EmbeddedFile};
use crate::files::make_folder_of;
use crate::home::Home;
use crate::{Ending, Streams};

/// `prony docs`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prony docs experiments | less    one page, as Markdown; without a checkout `prony docs` names all
  prony docs --no-api              all pages of a checkout as HTML, in seconds
  prony docs site                  with the interfaces of the crates, which take minutes
  prony docs --check               only look for links that lead nowhere

A link that leads nowhere is printed with its file and line, and the exit code is 1.")]
pub struct DocsWords {
    /// A page to print, such as starting; or a folder for all pages of a checkout, which is emptied first
    /// [default: .prony/docs in the checkout]
    #[arg(value_name = "PAGE|DIR")]
    pub dir: Option<PathBuf>,
    /// Leave out the interfaces of the crates (cargo doc), which take minutes
    #[arg(long)]
    pub no_api: bool,
    /// Check the links and write nothing
    #[arg(long, conflicts_with = "dir")]
    pub check: bool,
}

/// The file by which a checkout is known: its documentation.
const MARK: &str = "docs/method.md";
/// The file by which a folder is known to be one that this command wrote.
const WRITTEN: &str = ".prony-docs";
/// Folders of a checkout that hold what was built or measured, and none of its files.
const PASSED_OVER: [&str; 4] = ["target", "runs", "node_modules", "__pycache__"];
/// Beginnings of Markdown that is no page: templates, files of tests, and the pages of an example that is an application.
const NO_PAGES: [&str; 3] = ["crates/", "examples/docs/", "fuzz/"];
/// A part of a document, which holds it.
const ANALYSIS: &str = "/analysis.md";
/// Crates whose interface is nobody's but the tests'.
const NO_API: &str = "testkit";

/// Runs `prony docs`.
pub fn run(words: &DocsWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let typed = words.dir.as_ref().and_then(|dir| dir.to_str());
    let embedded_pages = embedded::pages()?;
    if let Some(page) =
        typed.and_then(|typed| embedded_pages.iter().find(|page| is_named(page, typed)))
    {
        streams.out.write_all(&page.bytes)?;
        return Ok(Ending::Done);
    }
    let names: Vec<String> = embedded_pages.iter().map(name).collect();
    if let Some(typed) = typed.filter(|typed| !typed.contains('/'))
        && let Some(near) = nearest(typed, names.iter().map(String::as_str))
    {
        bail!(
            "there is no page `{typed}`: did you mean `{near}`? A folder of that name is `./{typed}`"
        );
    }
    let home = Home::find(streams.err)?;
    let Some(root) = checkout(&home) else {
        return without_checkout(words, &embedded_pages, streams);
    };
    let mut files = BTreeSet::new();
    walk(&root, "", &mut files)?;
    let texts = pages(&root, &mut files)?;
    let dir = words.dir.clone().unwrap_or_else(|| home.cache.join("docs"));
    let mut api = Vec::new();
    if !words.check {
        begin(&dir)?;
        if !words.no_api {
            api = interfaces(&root, &home.cache.join("api"), &dir.join("api"))?;
        }
    }
    let pages = Pages::new(&texts, &files, &api, env!("CARGO_PKG_VERSION"));
    let mut site = pages.build();
    if !words.check {
        for path in &site.shown {
            let text = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
            let (at, page) = pages.shown(path, &String::from_utf8_lossy(&text));
            site.files.insert(at, page);
        }
        for (path, text) in &site.files {
            write(&dir.join(path), text.as_bytes())?;
        }
        for path in &site.copied {
            let bytes = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
            write(&dir.join(path), &bytes)?;
        }
    }
    for broken in &site.broken {
        let (file, line, link) = (&broken.file, broken.line, &broken.link);
        writeln!(streams.err, "{file}:{line}: {link}: {}", broken.why)?;
    }
    if !words.check {
        writeln!(streams.out, "{}", dir.join("index.html").display())?;
    }
    let count = site.broken.len();
    writeln!(streams.err, "{} pages, {count} broken links", texts.len())?;
    Ok(Ending::failed_if(count > 0))
}

/// The folder of the sources, which hold the documentation.
fn checkout(home: &Home) -> Option<PathBuf> {
    let root = home.subjects.parent().unwrap_or(Path::new("."));
    root.join(MARK).exists().then(|| root.to_owned())
}

/// The pages that can be printed, where no others can be made.
fn without_checkout(
    words: &DocsWords,
    embedded_pages: &[EmbeddedFile],
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    if words.check || words.no_api {
        bail!(
            "pages are made from a checkout of Prony: run `./prony docs` in one, or name it by PRONY_HOME"
        );
    }
    if let Some(dir) = &words.dir {
        bail!(
            "there is no page `{}`, which `prony docs` lists; to make all pages as HTML takes a checkout of Prony",
            dir.display()
        );
    }
    for page in embedded_pages {
        let text = String::from_utf8_lossy(&page.bytes);
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        writeln!(
            streams.out,
            "{:<22}{}",
            name(page),
            title.unwrap_or_default()
        )?;
    }
    writeln!(
        streams.err,
        "`prony docs PAGE` prints one, `prony explain P003` a finding"
    )?;
    Ok(Ending::Done)
}

/// `experiments`, of `docs/experiments.md`.
fn name(page: &EmbeddedFile) -> String {
    let stem = page.path.file_stem().unwrap_or_default();
    stem.to_string_lossy().to_lowercase()
}

/// Whether a page is meant: by its name, or as texts refer to it (`docs/experiments.md`).
fn is_named(page: &EmbeddedFile, typed: &str) -> bool {
    let file = page.path.file_name().unwrap_or_default();
    name(page) == typed || file == typed || page.path == Path::new(typed)
}

/// Adds the files below `folder` of `root`, by their paths in it.
fn walk(root: &Path, folder: &str, files: &mut BTreeSet<String>) -> anyhow::Result<()> {
    let entries = fs::read_dir(root.join(folder));
    for entry in entries.with_context(|| format!("cannot list {}", root.join(folder).display()))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // `.ci` holds what pages refer to; other hidden folders are those of tools.
        let is_hidden = name.starts_with('.') && name != ".ci";
        let path = match folder {
            "" => name.clone(),
            folder => format!("{folder}/{name}"),
        };
        let kind = entry.file_type()?;
        if kind.is_dir() && !is_hidden && !PASSED_OVER.contains(&name.as_str()) {
            walk(root, &path, files)?;
        } else if kind.is_file() && !is_hidden {
            files.insert(path);
        }
    }
    Ok(())
}

/// The Markdown of the pages, which `files` then has no more.
fn pages(root: &Path, files: &mut BTreeSet<String>) -> anyhow::Result<BTreeMap<String, String>> {
    let is_page = |path: &&String| {
        let is_other = NO_PAGES.iter().any(|beginning| path.starts_with(beginning));
        path.ends_with(".md") && !path.ends_with(ANALYSIS) && !is_other
    };
    let mut texts = BTreeMap::new();
    for path in files.iter().filter(is_page) {
        let text = fs::read_to_string(root.join(path));
        texts.insert(
            path.clone(),
            text.with_context(|| format!("cannot read {path}"))?,
        );
    }
    files.retain(|path| !texts.contains_key(path));
    Ok(texts)
}

/// Makes `dir` an empty folder that is marked as this command's. One that holds anything else is left alone.
fn begin(dir: &Path) -> anyhow::Result<()> {
    let mark = dir.join(WRITTEN);
    let is_empty = fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none());
    if !is_empty && !mark.exists() {
        bail!(
            "{} holds files that `prony docs` did not write; name an empty folder, or a new one",
            dir.display()
        );
    }
    if !is_empty {
        fs::remove_dir_all(dir).with_context(CannotWrite::at(dir))?;
    }
    write(
        &mark,
        b"Written by `prony docs`, which empties this folder when it is run again.\n",
    )
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    make_folder_of(path)?;
    fs::write(path, bytes).with_context(CannotWrite::at(path))
}

/// Has cargo document the crates, and copies that to `into`. Gives their names.
fn interfaces(root: &Path, target: &Path, into: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("crates")).context("the checkout has no crates")? {
        let folder = entry?.path();
        let is_api = folder.file_name().is_some_and(|name| name != NO_API);
        if let Some(name) = folder.file_name().filter(|_| is_api && folder.is_dir()) {
            names.push(format!("prony-{}", name.display()));
        }
    }
    names.sort();
    let mut command = Command::new(cargo());
    command
        .current_dir(root)
        .args(["doc", "--no-deps", "--locked"]);
    command.arg("--target-dir").arg(target);
    for name in &names {
        command.args(["--package", name]);
    }
    // What cargo prints is progress: standard output has the result alone.
    let status = command.stdout(Stdio::null()).status();
    let status =
        status.context("cargo is missing; `prony docs --no-api` leaves the interfaces out")?;
    if !status.success() {
        bail!("cargo doc failed ({status}); `prony docs --no-api` leaves the interfaces out");
    }
    let made = target.join("doc");
    copy(&made, into)?;
    documented(into)
}

/// The crates whose interface is in `folder`, as Rust names them: that of a Python module begins with `_`.
fn documented(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_crate = name.trim_start_matches('_').starts_with("prony_");
        if is_crate && entry.path().join("index.html").exists() {
            names.push(name);
        }
    }
    names.sort_by_key(|name| name.trim_start_matches('_').to_owned());
    Ok(names)
}

/// cargo, on PATH or where rustup puts it: the launcher looks there too.
fn cargo() -> PathBuf {
    let paths = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&paths).any(|folder| folder.join("cargo").is_file());
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home =
        cargo_home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let cargo_home = cargo_home
        .map(|folder| folder.join("bin/cargo"))
        .filter(|path| path.is_file());
    match cargo_home {
        Some(cargo_home) if !on_path => cargo_home,
        _ => PathBuf::from("cargo"),
    }
}

/// Copies a folder and all that is in it.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(CannotWrite::at(to))?;
    let entries = fs::read_dir(from);
    for entry in entries.with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&path, &copied)?;
        } else {
            fs::copy(&path, &copied).with_context(CannotWrite::at(&copied))?;
        }
    }
    Ok(())
}
