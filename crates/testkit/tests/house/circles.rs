//! Circles of files: within a crate, files that need each other, each through the next. Two may; of
//! more, none can be read, tested or moved without all others.
//!
//! A file is a module. It needs those that its paths lead to, by `use` and in code; `pub use` is
//! followed to where a thing is defined. A crate's root is in no circle: it declares all modules, so
//! that what one takes from it (`crate::Error`) would tie it to all others.
//!
//! Circles that stand are in `circles.txt`, exactly: the list can only shrink. It is printed by
//! `cargo test -q -p prony-testkit --test house circles_of_files -- --nocapture | grep '/src/ '`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::assert_none;
use super::imports::Named;
use super::source::{Source, sources};

/// Files of a circle that is no breach.
const CIRCLE_FILES_MAX: usize = 2;
/// How often a name may lead on to another one, so that names which lead to each other end.
const STEPS_MAX: usize = 8;
/// Where the list is.
const LIST: &str = "crates/testkit/tests/house/circles.txt";

/// Where a module is in its crate: `[]` is the root.
type Module = Vec<String>;

/// A crate's modules, and which names lead from one to another.
struct Crate<'a> {
    /// Its sources' folder.
    folder: String,
    files: BTreeMap<Module, &'a Source>,
    /// By module and name.
    bindings: BTreeMap<(Module, String), Module>,
}

/// One file needs another.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Edge {
    from: Module,
    to: Module,
    line: usize,
    /// The path that says so.
    path: String,
}

impl<'a> Crate<'a> {
    fn of(folder: &str, sources: impl Iterator<Item = &'a Source>) -> Crate<'a> {
        let mut files = BTreeMap::new();
        for source in sources.filter(|source| !source.is_test()) {
            let name = source.path.strip_prefix(folder).unwrap_or_default();
            files.extend(module(name).map(|module| (module, source)));
        }
        files = declared(&files);
        let mut known = Crate {
            folder: folder.to_owned(),
            files,
            bindings: BTreeMap::new(),
        };
        // Names that lead to names of the same module are found in the second turn.
        for _ in 0..2 {
            let mut bindings = BTreeMap::new();
            for (module, source) in &known.files {
                for binding in &source.imports.bindings {
                    let place = [module.as_slice(), &binding.path.within].concat();
                    if let Some(path) = known.absolute(module, &binding.path) {
                        bindings.insert((place, binding.name.clone()), path);
                    }
                }
            }
            known.bindings = bindings;
        }
        known
    }

    /// A path from the crate's root on; `None`: it leads out of the crate.
    fn absolute(&self, module: &[String], named: &Named) -> Option<Module> {
        let mut place = [module, &named.within].concat();
        let mut rest = named.segments.as_slice();
        match rest.first()?.as_str() {
            "crate" => return Some(rest[1..].to_vec()),
            "self" => rest = &rest[1..],
            "super" => {}
            first => {
                let child = [place.as_slice(), &rest[..1]].concat();
                if self.files.contains_key(&child) {
                    return Some([place.as_slice(), rest].concat());
                }
                let bound = self.bindings.get(&(place, first.to_owned()))?;
                return Some([bound.as_slice(), &rest[1..]].concat());
            }
        }
        while rest.first().is_some_and(|first| first == "super") {
            place.pop()?;
            rest = &rest[1..];
        }
        Some([place.as_slice(), rest].concat())
    }

    /// The file that has what `path` names.
    fn resolve(&self, path: &[String], steps: usize) -> Module {
        let known = (0..=path.len()).rev().map(|count| &path[..count]);
        let file = known
            .into_iter()
            .find(|start| self.files.contains_key(*start));
        let file = file.unwrap_or_default();
        if let Some(name) = path.get(file.len())
            && steps < STEPS_MAX
            && let Some(on) = self.bindings.get(&(file.to_vec(), name.clone()))
        {
            let path = [on.as_slice(), &path[file.len() + 1..]].concat();
            return self.resolve(&path, steps + 1);
        }
        file.to_vec()
    }

    /// The first of each pair of files, by line.
    fn edges(&self) -> Vec<Edge> {
        let mut edges: BTreeMap<(Module, Module), Edge> = BTreeMap::new();
        for (from, source) in &self.files {
            for named in &source.imports.paths {
                let Some(path) = self.absolute(from, named) else {
                    continue;
                };
                let to = self.resolve(&path, 0);
                if to.is_empty() || to == *from {
                    continue;
                }
                let edge = Edge {
                    from: from.clone(),
                    to: to.clone(),
                    line: named.line,
                    path: named.segments.join("::"),
                };
                edges.entry((from.clone(), to)).or_insert(edge);
            }
        }
        edges.into_values().collect()
    }

    fn file(&self, module: &[String]) -> &str {
        let path = self.files.get(module).map_or("", |source| &source.path);
        path.strip_prefix(&self.folder).unwrap_or(path)
    }

    /// `crates/load/src/ connection.rs scheduler.rs worker.rs`
    fn line(&self, circle: &BTreeSet<Module>) -> String {
        let mut files: Vec<&str> = circle.iter().map(|module| self.file(module)).collect();
        files.sort_unstable();
        format!("{} {}", self.folder, files.join(" "))
    }
}

/// `a/b.rs` and `a/b/mod.rs` as a module; `None`: it is a program of its own.
fn module(name: &str) -> Option<Module> {
    let parts = name.strip_suffix(".rs")?;
    let mut parts: Module = parts.split('/').map(str::to_owned).collect();
    match parts.last()?.as_str() {
        "main" if parts.len() == 1 => return None,
        "lib" if parts.len() == 1 => parts.clear(),
        "mod" => drop(parts.pop()),
        _ if parts[0] == "bin" => return None,
        _ => {}
    }
    Some(parts)
}

/// Those that a file declares which is there itself, and not for tests alone.
fn declared<'a>(files: &BTreeMap<Module, &'a Source>) -> BTreeMap<Module, &'a Source> {
    let mut kept: BTreeMap<Module, &Source> = BTreeMap::new();
    // Parents come before their children.
    for (module, &source) in files {
        let is_there = match module.split_last() {
            None => true,
            Some((name, parent)) => kept.get(parent).is_some_and(|parent| {
                let mut modules = parent.imports.modules.iter();
                modules.any(|(_, declared)| declared == name)
            }),
        };
        if is_there {
            kept.insert(module.clone(), source);
        }
    }
    kept
}

/// Sets of modules that reach each other.
fn circles(edges: &[Edge]) -> Vec<BTreeSet<Module>> {
    let mut next: BTreeMap<&Module, Vec<&Module>> = BTreeMap::new();
    for edge in edges {
        next.entry(&edge.from).or_default().push(&edge.to);
    }
    let reached = |from: &Module| {
        let mut found: BTreeSet<&Module> = BTreeSet::new();
        let mut left = next.get(from).cloned().unwrap_or_default();
        while let Some(module) = left.pop() {
            if found.insert(module) {
                left.extend(next.get(module).into_iter().flatten());
            }
        }
        found
    };
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        next.keys().map(|&from| (from, reached(from))).collect();
    let mut circles: Vec<BTreeSet<Module>> = Vec::new();
    for (&module, reached) in &reach {
        if !reached.contains(module) || circles.iter().any(|known| known.contains(module)) {
            continue;
        }
        let is_back = |other: &&&Module| reach.get(**other).is_some_and(|r| r.contains(module));
        let circle = reached.iter().filter(is_back);
        circles.push(circle.map(|&other| other.clone()).collect());
    }
    circles
}

/// The edge without which the largest circle that is left is the smallest.
fn closing<'e>(edges: &'e [Edge], circle: &BTreeSet<Module>) -> Option<&'e Edge> {
    let within = |edge: &&Edge| circle.contains(&edge.from) && circle.contains(&edge.to);
    let own: Vec<&Edge> = edges.iter().filter(within).collect();
    let left = |without: &Edge| {
        let others = own.iter().filter(|edge| **edge != without);
        let others: Vec<Edge> = others.map(|edge| (*edge).clone()).collect();
        circles(&others).iter().map(BTreeSet::len).max()
    };
    own.iter().copied().min_by_key(|edge| left(edge))
}

/// Every circle that is too large: how it is listed, and what is said of it.
fn found(sources: &[Source]) -> BTreeMap<String, String> {
    let mut folders: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        if let Some(end) = source.path.find("/src/") {
            let folder = &source.path[..end + "/src/".len()];
            folders.entry(folder).or_default().push(source);
        }
    }
    let mut found = BTreeMap::new();
    for (folder, sources) in folders {
        let known = Crate::of(folder, sources.into_iter());
        let edges = known.edges();
        for circle in circles(&edges) {
            if circle.len() <= CIRCLE_FILES_MAX {
                continue;
            }
            let line = known.line(&circle);
            let edge = closing(&edges, &circle).expect("a circle has edges");
            let said = format!(
                "{folder}{}:{}: `{}` closes a circle of {} files: it leads to {}, and from there back here. \
                 Move what both need into a file that imports neither. The circle: {line}",
                known.file(&edge.from),
                edge.line,
                edge.path,
                circle.len(),
                known.file(&edge.to),
            );
            found.insert(line, said);
        }
    }
    found
}

#[test]
fn circles_of_files_are_of_two_at_most() {
    let list = fs::read_to_string(prony_testkit::root().join(LIST)).expect("the list");
    let is_listed = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let standing: BTreeSet<&str> = list.lines().filter(is_listed).collect();
    let found = found(sources());
    found.keys().for_each(|line| println!("{line}"));
    let mut breaches: Vec<String> = found
        .iter()
        .filter(|(line, _)| !standing.contains(line.as_str()))
        .map(|(_, said)| said.clone())
        .collect();
    let gone = standing.iter().filter(|line| !found.contains_key(**line));
    breaches.extend(gone.map(|line| {
        format!("{LIST}: no circle is exactly this one any more, take it off: {line}")
    }));
    assert_none(&breaches);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles of a crate of these files, by how they are listed, and what is said of each.
    fn of(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let source =
            |&(name, text): &(&str, &str)| Source::of(&format!("crates/x/src/{name}"), text);
        let sources: Vec<Source> = files.iter().map(source).collect();
        found(&sources).into_iter().collect()
    }

    #[test]
    fn two_files_may_need_each_other_and_three_may_not() {
        let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub struct Root;");
        let two = of(&[
            lib,
            ("a.rs", "use crate::b::B;\nuse crate::Root;"),
            ("b.rs", "fn f() { crate::a::g() }"),
            ("c.rs", "use crate::a::A;"),
        ]);
        assert!(two.is_empty(), "{two:?}");
        let three = of(&[
            lib,
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "\nuse super::c::C;"),
            ("c.rs", "\n\nuse crate::{a::A, b::B};"),
        ]);
        let [(line, said)] = three.as_slice() else {
            panic!("{three:?}");
        };
        assert_eq!(line, "crates/x/src/ a.rs b.rs c.rs");
        let expected = "crates/x/src/b.rs:2: `super::c::C` closes a circle of 3 files";
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn a_parent_that_calls_its_children_by_their_names_needs_them() {
        let star = of(&[
            ("lib.rs", "mod a;"),
            (
                "a/mod.rs",
                "mod b;\nmod c;\npub struct T;\nfn f() { b::g(); format!(\"{}\", c::h()) }",
            ),
            ("a/b.rs", "use super::T;"),
            ("a/c.rs", "fn h() -> super::T { T }"),
        ]);
        assert_eq!(star[0].0, "crates/x/src/ a/b.rs a/c.rs a/mod.rs");
    }

    #[test]
    fn what_is_exported_again_is_where_it_is_defined() {
        let files = |face: &'static str| {
            [
                ("lib.rs", "mod a;\npub use a::{T, f as g};"),
                ("a.rs", face),
                ("a/t.rs", "pub struct T;"),
                (
                    "a/b.rs",
                    "use super::T;\nuse super::t as u;\nfn f(t: u::T) { crate::g() }",
                ),
            ]
        };
        let face = "mod b;\nmod t;\npub use b::f;\npub use self::t::T;\nfn h() { b::f() }";
        assert!(of(&files(face)).is_empty());
        let own = "mod b;\nmod t;\npub fn f() {}\npub use self::t::T;\nfn h() { b::f() }";
        assert!(of(&files(own)).is_empty(), "a and b are two");
        let three = [
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "pub use crate::b::T as A;\npub use crate::c::C;"),
            ("b.rs", "use crate::a::C;"),
            ("c.rs", "use crate::a::A;"),
        ];
        assert!(
            of(&three).is_empty(),
            "a is passed through, b and c are two"
        );
    }

    #[test]
    fn files_of_tests_and_programs_are_in_no_circle() {
        let files = of(&[
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod harness;"),
            ("main.rs", "mod a;"),
            ("a.rs", "use crate::b::B;\nuse crate::harness::H;"),
            ("b.rs", "#[cfg(test)]\nuse crate::a::A;"),
            ("harness.rs", "use crate::a::A;\nuse crate::b::B;"),
            ("b/tests.rs", "use crate::a::A;"),
        ]);
        assert!(files.is_empty(), "{files:?}");
    }
}
