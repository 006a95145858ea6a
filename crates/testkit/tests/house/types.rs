//! Names of types that are declared more than once in `crates/`: each is listed in `types.txt` with how
//! many may have it. A name belongs to one type; one that says what it is of (`RequestPhase`, not
//! `Phase`) is not needed twice. A list that allows more than there is holds less, but fails nobody.
//!
//! Counted are structs, enums, unions, traits and type aliases outside of tests; associated types
//! and what macros declare are not. The list is printed by
//! `cargo test -q -p prony-testkit --test house type_names -- --nocapture | grep '^type '`.

use std::collections::BTreeMap;
use std::fs;

use syn::visit::{self, Visit};

use super::assert_none;
use super::source::{OWN_SUBJECT, Source, sources};

/// Where the list is.
const LIST: &str = "crates/testkit/tests/house/types.txt";

/// Declaration of a type.
pub struct Declared {
    pub name: String,
    /// Counted from 1.
    pub line: usize,
}

/// The types that a file declares, also inside of functions and inline modules.
pub fn declared(file: &syn::File) -> Vec<Declared> {
    let mut types = Types(Vec::new());
    types.visit_file(file);
    types.0
}

struct Types(Vec<Declared>);

impl Types {
    fn add(&mut self, name: &syn::Ident) {
        self.0.push(Declared {
            name: name.to_string(),
            line: name.span().start().line,
        });
    }
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Enum(item) => self.add(&item.ident),
            syn::Item::Struct(item) => self.add(&item.ident),
            syn::Item::Trait(item) => self.add(&item.ident),
            syn::Item::Type(item) => self.add(&item.ident),
            syn::Item::Union(item) => self.add(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

/// The places of each name that several types have.
fn repeated(sources: &[Source]) -> BTreeMap<&str, Vec<String>> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.krate != OWN_SUBJECT) {
        let types = source.types.iter();
        for declared in types.filter(|declared| !source.is_test_line(declared.line)) {
            let place = format!("{}:{}", source.path, declared.line);
            places.entry(&declared.name).or_default().push(place);
        }
    }
    places.retain(|_, places| places.len() > 1);
    places
}

/// `type NAME COUNT` of each line; lines that begin with `#` are for readers.
fn listed(list: &str) -> BTreeMap<&str, usize> {
    let read = |text| -> Option<(&str, usize)> {
        let (name, count) = str::strip_prefix(text, "type ")?.split_once(' ')?;
        Some((name, count.parse().ok()?))
    };
    let lines = list.lines().enumerate();
    let lines = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
    lines
        .map(|(index, text)| {
            let entry = read(text);
            entry.unwrap_or_else(|| panic!("{LIST}:{}: not a name and a count: {text}", index + 1))
        })
        .collect()
}

/// Names that more types have than the list allows.
fn breaches(list: &str, sources: &[Source]) -> Vec<String> {
    let (allowed, found) = (listed(list), repeated(sources));
    let mut breaches = Vec::new();
    for (name, places) in &found {
        let may = allowed.get(name).copied().unwrap_or(1);
        if places.len() > may {
            let places = places.join(", ");
            breaches.push(format!(
                "`{name}` is a type of several, more than {may}: give the new one a name of its own: {places}"
            ));
        }
    }
    breaches
}

#[test]
fn type_names_that_several_types_have_get_fewer() {
    for (name, places) in repeated(sources()) {
        println!("type {name} {}", places.len());
    }
    let list = fs::read_to_string(prony_testkit::root().join(LIST)).expect("the list");
    assert_none(&breaches(&list, sources()));
}

#[test]
fn a_second_type_of_a_name_is_found_and_a_list_that_allows_too_much_failed_a_commit() {
    let source = |path: &str, text: &str| Source::of(&format!("crates/{path}/src/a.rs"), text);
    let sources = [
        source("a", "pub struct Port;\nfn f() { enum Part {} }\n"),
        source(
            "b",
            "trait Port { type Part; }\n#[cfg(test)]\nmod tests { struct Part; }\n",
        ),
        source("c", "type Port = u16;\n"),
    ];
    let said = breaches("# names\ntype Port 2\n", &sources);
    assert_eq!(
        said,
        [
            "`Port` is a type of several, more than 2: give the new one a name of its own: \
          crates/a/src/a.rs:1, crates/b/src/a.rs:1, crates/c/src/a.rs:1"
        ]
    );
    assert!(breaches("type Part 2\ntype Port 4\ntype Gone 2\n", &sources).is_empty());
}
