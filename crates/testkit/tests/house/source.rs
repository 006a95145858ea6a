//! The sources, read whole: which lines are tests wherever in a file they stand, which functions
//! there are, also inside of macros, and where `unsafe` is said.
//!
//! Items come from syn, because no reading of lines tells where the item ends that
//! `#[cfg(test)]` is on; functions and `unsafe` come from tokens, because syn leaves macros as
//! these.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::early::Test;
use crate::imports::Imports;
use crate::types::{self, Declared};

/// The subject that is built on these crates, and held to their rules.
pub const OWN_SUBJECT: &str = "subjects/rust/prony-clicky";

/// A file.
pub struct Source {
    /// Path from the root of the repository.
    pub path: String,
    pub krate: String,
    pub lines: Vec<String>,
    /// Every function, also those in macros.
    pub functions: Vec<Function>,
    /// Functions that the test harness calls.
    pub tests: Vec<Test>,
    /// Types that it declares.
    pub types: Vec<Declared>,
    /// Every `cfg(…)`, `cfg!(…)` and `cfg_attr(…)`.
    pub conditions: Vec<Condition>,
    /// What it names of other modules, tests left out.
    pub imports: Imports,
    /// Lines that say `unsafe`.
    unsafe_lines: Vec<usize>,
    /// First and last line of each item that `#[cfg(test)]` is on.
    test_items: Vec<(usize, usize)>,
    /// Lines with a `#[cfg(test)]` of which no item was found.
    pub unplaced: Vec<usize>,
}

/// What compiling something hangs on.
pub struct Condition {
    pub line: usize,
    /// All names in it.
    pub words: Vec<String>,
}

/// A function with a body.
pub struct Function {
    pub name: String,
    /// Lines, counted from 1.
    pub first: usize,
    pub last: usize,
    /// All names in its body.
    pub names: Vec<String>,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Source {
        let relative = path.strip_prefix(root).expect("below the root");
        let relative = relative.to_string_lossy().into_owned();
        let text = fs::read_to_string(path).expect("a source file is text");
        Source::of(&relative, &text)
    }

    /// A file of this text.
    pub fn of(path: &str, text: &str) -> Source {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let tokens: TokenStream = text.parse().expect("what syn parses");
        let mut marked = Marked::default();
        marked.visit_file(&file);
        let mut read = Read::default();
        read.tokens(tokens);
        let is_of_tests = |line: usize| {
            let within = |&(first, last): &(usize, usize)| (first..=last).contains(&line);
            marked.items.iter().any(within)
        };
        Source {
            imports: Imports::of(&file).without(is_of_tests),
            path: path.to_owned(),
            krate: match path.strip_prefix("crates/") {
                Some(rest) => rest.split('/').next().unwrap_or_default().to_owned(),
                None => OWN_SUBJECT.to_owned(),
            },
            lines: text.lines().map(str::to_owned).collect(),
            functions: read.functions,
            conditions: read.conditions,
            tests: crate::early::tests(&file),
            types: types::declared(&file),
            unsafe_lines: read.unsafe_lines,
            unplaced: marked.unplaced(),
            test_items: marked.items,
        }
    }

    /// Whether the file holds tests only.
    pub fn is_test(&self) -> bool {
        ["/tests/", "/benches/", "/examples/", "/fuzz/"]
            .iter()
            .any(|part| self.path.contains(part))
            || self.path.ends_with("tests.rs")
    }

    /// Whether this line, counted from 1, is of a test.
    pub fn is_test_line(&self, line: usize) -> bool {
        let within = |&(first, last): &(usize, usize)| (first..=last).contains(&line);
        self.is_test() || self.test_items.iter().any(within)
    }

    /// Number of lines that are no tests'.
    pub fn length(&self) -> usize {
        let lines = 1..=self.lines.len();
        lines.filter(|&line| !self.is_test_line(line)).count()
    }

    /// Lines that are neither tests nor comments, with their numbers.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.lines.iter().enumerate();
        lines
            .map(|(index, line)| (index + 1, line.as_str()))
            .filter(|(line, _)| !self.is_test_line(*line))
            .filter(|(_, text)| !text.trim_start().starts_with("//"))
    }

    /// Lines of tests, with their numbers.
    pub fn test_code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.lines.iter().enumerate();
        lines
            .map(|(index, line)| (index + 1, line.as_str()))
            .filter(|(line, _)| self.is_test_line(*line))
    }

    /// Lines outside of tests that say `unsafe`.
    pub fn unsafe_code(&self) -> impl Iterator<Item = usize> {
        let lines = self.unsafe_lines.iter().copied();
        lines.filter(|&line| !self.is_test_line(line))
    }

    /// Files whose functions may call each other as of one program: a crate's own, or those of
    /// one of its test programs.
    pub fn program(&self) -> &str {
        let place = match self.path.split_once("/tests/") {
            Some((krate, _)) => krate.len() + "/tests".len(),
            None => self.path.find("/src/").map_or(0, |at| at + "/src".len()),
        };
        &self.path[..place]
    }
}

/// Every file, read once.
pub fn sources() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let root = prony_testkit::root();
        let mut paths = Vec::new();
        let mut visit = |path: PathBuf| {
            if path.extension().is_some_and(|extension| extension == "rs") {
                paths.push(path);
            }
        };
        walk(&root.join("crates"), &mut visit);
        walk(&root.join(OWN_SUBJECT), &mut visit);
        assert!(paths.len() > 20, "the sources were found");
        let read = |path: &PathBuf| Source::read(&root, path);
        paths.iter().map(read).collect()
    })
}

/// Calls `visit` for each file below `folder`, in order.
pub fn walk(folder: &Path, visit: &mut dyn FnMut(PathBuf)) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let left_out = ["target", "node_modules", ".git", "subjects", "corpus"];
        if path.is_dir() && !left_out.contains(&name.as_ref()) {
            walk(&path, visit);
        } else if path.is_file() {
            visit(path);
        }
    }
}

/// What `#[cfg(test)]` is on.
#[derive(Default)]
struct Marked {
    items: Vec<(usize, usize)>,
    /// Lines of all such attributes.
    attributes: Vec<usize>,
}

impl Marked {
    fn note(&mut self, attributes: &[syn::Attribute], item: &impl syn::spanned::Spanned) {
        if attributes.iter().any(only_in_tests) {
            let span = item.span();
            self.items.push((span.start().line, span.end().line));
        }
    }

    fn unplaced(&self) -> Vec<usize> {
        let placed = |line: &usize| {
            let within = |&(first, last): &(usize, usize)| (first..=last).contains(line);
            self.items.iter().any(within)
        };
        let lines = self.attributes.iter().copied();
        lines.filter(|line| !placed(line)).collect()
    }
}

impl<'ast> Visit<'ast> for Marked {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if only_in_tests(attribute) {
            self.attributes.push(attribute.span().start().line);
        }
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.note(attributes(item), item);
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.attrs, item);
        visit::visit_impl_item_fn(self, item);
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item;
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether this is `#[cfg(test)]`, or `#[cfg(all(test, …))]`.
fn only_in_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    if !list.path.is_ident("cfg") {
        return false;
    }
    let mut words = list.tokens.clone().into_iter();
    match (words.next(), words.next()) {
        (Some(TokenTree::Ident(word)), None) => word == "test",
        (Some(TokenTree::Ident(all)), Some(TokenTree::Group(group))) => {
            let first = group.stream().into_iter().next();
            all == "all" && matches!(first, Some(TokenTree::Ident(word)) if word == "test")
        }
        _ => false,
    }
}

/// What is found in tokens, at any depth.
#[derive(Default)]
struct Read {
    functions: Vec<Function>,
    conditions: Vec<Condition>,
    unsafe_lines: Vec<usize>,
}

impl Read {
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            let rest = &tokens[index + 1..];
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(word) if word == "unsafe" => self.unsafe_lines.push(line(word)),
                TokenTree::Ident(word) if word == "fn" => {
                    self.functions.extend(function(word, rest));
                }
                TokenTree::Ident(word) if word == "cfg" || word == "cfg_attr" => {
                    self.conditions.extend(condition(word, rest));
                }
                _ => {}
            }
        }
    }
}

/// What stands in the parentheses after this `cfg`.
fn condition(word: &Ident, rest: &[TokenTree]) -> Option<Condition> {
    let group = rest.iter().take(2).find_map(|token| match token {
        TokenTree::Group(group) => Some(group),
        _ => None,
    })?;
    let mut words = Vec::new();
    read_names(group.stream(), &mut words);
    Some(Condition {
        line: line(word),
        words,
    })
}

fn line(word: &Ident) -> usize {
    word.span().start().line
}

/// The function whose `fn` this is; `None` for a type and for what has no body.
fn function(word: &Ident, rest: &[TokenTree]) -> Option<Function> {
    // In a macro a name may be `$name`.
    let name = rest.iter().take(2).find_map(|token| match token {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    });
    for token in rest {
        match token {
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                let mut names = Vec::new();
                read_names(body.stream(), &mut names);
                return Some(Function {
                    name: name?,
                    first: line(word),
                    last: body.span_close().end().line,
                    names,
                });
            }
            TokenTree::Punct(end) if end.as_char() == ';' => return None,
            _ => {}
        }
    }
    None
}

/// All names in `tokens`, at any depth, each once.
pub fn read_names(tokens: TokenStream, names: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => read_names(group.stream(), names),
            TokenTree::Ident(name) => {
                let name = name.to_string();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            _ => {}
        }
    }
}
