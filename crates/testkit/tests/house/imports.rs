//! What a file names of other modules: its `use` trees, and the paths in its code, also those in
//! macros and attributes. Not for: which file a path leads to (`circles`).

use proc_macro2::{Ident, Spacing, TokenStream, TokenTree};
use syn::UseTree;
use syn::visit::{self, Visit};

/// A path of at least two segments, as it is written: `super::wire::Head`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Named {
    pub line: usize,
    /// Inline modules of the file around it, outermost first.
    pub within: Vec<String>,
    pub segments: Vec<String>,
}

/// A name that a `use` brings into a module.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Binding {
    pub name: String,
    /// What it stands for.
    pub path: Named,
}

/// All of a file. A path that a `use` names is in `paths`, too.
#[derive(Default)]
pub struct Imports {
    pub paths: Vec<Named>,
    /// Only those of modules: what a function imports is known in that function alone.
    pub bindings: Vec<Binding>,
    /// Modules in files of their own (`mod name;`), with their lines.
    pub modules: Vec<(usize, String)>,
}

impl Imports {
    pub fn of(file: &syn::File) -> Imports {
        let mut reader = Reader::default();
        reader.visit_file(file);
        reader.found
    }

    /// Leaves out what stands in lines of which `is_left_out` is true.
    pub fn without(mut self, is_left_out: impl Fn(usize) -> bool) -> Imports {
        self.paths.retain(|path| !is_left_out(path.line));
        self.bindings
            .retain(|binding| !is_left_out(binding.path.line));
        self.modules.retain(|&(line, _)| !is_left_out(line));
        self
    }
}

#[derive(Default)]
struct Reader {
    within: Vec<String>,
    /// Functions around what is read.
    functions: usize,
    found: Imports,
}

impl Reader {
    fn named(&self, line: usize, segments: Vec<String>) -> Named {
        Named {
            line,
            within: self.within.clone(),
            segments,
        }
    }

    fn put(&mut self, line: usize, segments: Vec<String>) {
        if segments.len() > 1 {
            let named = self.named(line, segments);
            self.found.paths.push(named);
        }
    }

    /// Adds what `tree` names below `before`.
    fn tree(&mut self, before: &[String], tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                let below = [before, &[path.ident.to_string()]].concat();
                self.tree(&below, &path.tree);
            }
            UseTree::Group(group) => {
                let trees = group.items.iter();
                trees.for_each(|tree| self.tree(before, tree));
            }
            UseTree::Name(name) => self.leaf(before, &name.ident, &name.ident),
            UseTree::Rename(rename) => self.leaf(before, &rename.ident, &rename.rename),
            UseTree::Glob(glob) => {
                // The module itself; one segment is enough to name one.
                let line = glob.star_token.spans[0].start().line;
                let named = self.named(line, before.to_vec());
                self.found.paths.push(named);
            }
        }
    }

    fn leaf(&mut self, before: &[String], name: &Ident, bound: &Ident) {
        let line = name.span().start().line;
        let mut segments = before.to_vec();
        // `a::{self}` is `a`, by the name that it has there.
        if name != "self" {
            segments.push(name.to_string());
        }
        let last = segments.last().cloned().unwrap_or_default();
        let bound = match bound == "self" {
            true => last,
            false => bound.to_string(),
        };
        let path = self.named(line, segments);
        self.found.paths.push(path.clone());
        if self.functions == 0 && bound != "_" {
            self.found.bindings.push(Binding { name: bound, path });
        }
    }

    /// Adds the paths in `tokens`, at any depth.
    fn tokens(&mut self, tokens: TokenStream, is_attribute: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut index = 0;
        while let Some(token) = tokens.get(index) {
            index += 1;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream(), is_attribute),
                TokenTree::Ident(first) => {
                    let mut segments = vec![first.to_string()];
                    while let Some(next) = segment(&tokens[index..]) {
                        segments.push(next);
                        index += 3;
                    }
                    self.put(first.span().start().line, segments);
                }
                // `#[serde(with = "super::nanos")]`
                TokenTree::Literal(text) if is_attribute => {
                    let line = text.span().start().line;
                    if let Some(path) = quoted_path(&text.to_string()) {
                        self.put(line, path);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The name after `::`, if `tokens` begin so.
fn segment(tokens: &[TokenTree]) -> Option<String> {
    match tokens {
        [
            TokenTree::Punct(one),
            TokenTree::Punct(two),
            TokenTree::Ident(name),
            ..,
        ] if one.as_char() == ':' && one.spacing() == Spacing::Joint && two.as_char() == ':' => {
            Some(name.to_string())
        }
        _ => None,
    }
}

/// `"super::nanos"`, taken apart.
fn quoted_path(text: &str) -> Option<Vec<String>> {
    let path = text.strip_prefix('"')?.strip_suffix('"')?;
    let is_name = |part: &str| {
        let mut bytes = part.bytes();
        !part.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let segments: Vec<String> = path.split("::").map(str::to_owned).collect();
    segments
        .iter()
        .all(|part| is_name(part))
        .then_some(segments)
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let name = module.ident.to_string();
        if module.content.is_none() {
            let line = module.ident.span().start().line;
            return self.found.modules.push((line, name));
        }
        self.within.push(name);
        visit::visit_item_mod(self, module);
        self.within.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.functions += 1;
        visit::visit_block(self, block);
        self.functions -= 1;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if let Some(first) = path.segments.first() {
            self.put(first.ident.span().start().line, segments);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        visit::visit_macro(self, invoked);
        self.tokens(invoked.tokens.clone(), false);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        match &attribute.meta {
            syn::Meta::List(list) => self.tokens(list.tokens.clone(), true),
            meta => visit::visit_meta(self, meta),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::source::Source;

    /// Paths of a file, with the inline modules around them in front, and the names that it binds.
    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let source = Source::of("crates/base/src/some.rs", text);
        let imports = &source.imports;
        let paths = imports.paths.iter().map(|path| {
            let within = path.within.iter().map(|module| format!("{module}/"));
            within.collect::<String>() + &path.segments.join("::")
        });
        let bindings = imports.bindings.iter();
        let bound = bindings.map(|b| format!("{}={}", b.name, b.path.segments.join("::")));
        (paths.collect(), bound.collect())
    }

    #[test]
    fn a_tree_is_a_path_for_each_leaf() {
        let (paths, bound) = read("use crate::{a::{self, B, c::{D, E as F}}, super_::G as _};");
        let expected = [
            "crate::a",
            "crate::a::B",
            "crate::a::c::D",
            "crate::a::c::E",
        ];
        assert_eq!(paths[..4], expected);
        assert_eq!(paths[4..], ["crate::super_::G"]);
        let expected = [
            "a=crate::a",
            "B=crate::a::B",
            "D=crate::a::c::D",
            "F=crate::a::c::E",
        ];
        assert_eq!(bound, expected);
    }

    #[test]
    fn parents_globs_and_what_is_said_in_the_name_of_self() {
        let (paths, bound) = read("use super::super::A;\nuse self::b::*;\npub use c::{self as d};");
        assert_eq!(paths, ["super::super::A", "self::b", "c"]);
        assert_eq!(bound, ["A=super::super::A", "d=c"]);
    }

    #[test]
    fn code_macros_and_attributes_name_modules_too() {
        let text = "
#[arg(value_parser = super::typed)]
struct S {
    #[serde(with = \"crate::nanos\", default)]
    field: crate::a::T<super::b::U>,
}
fn f(x: u8) -> bool {
    use crate::inner::G;
    assert!(child::call(x, [self::c::D; 2]) && x::<u8>());
    matches!(x, crate::e::F)
}
";
        let (paths, bound) = read(text);
        let expected = [
            "super::typed",
            "crate::nanos",
            "crate::a::T",
            "super::b::U",
            "crate::inner::G",
            "child::call",
            "self::c::D",
            "crate::e::F",
        ];
        assert_eq!(paths, expected);
        assert!(bound.is_empty(), "{bound:?}");
    }

    #[test]
    fn what_is_there_only_in_tests_is_left_out() {
        let text = "
#[cfg(test)]
mod harness;
mod kept;
use crate::a::B;
#[cfg(test)]
use crate::c::D;
#[cfg(all(test, not(loom)))]
mod tests {
    use crate::e::F;
    fn f() { crate::g::h() }
}
";
        let (paths, bound) = read(text);
        assert_eq!(paths, ["crate::a::B"]);
        assert_eq!(bound, ["B=crate::a::B"]);
        let source = Source::of("crates/base/src/some.rs", text);
        assert_eq!(source.imports.modules, [(4, "kept".to_owned())]);
    }

    #[test]
    fn a_path_in_an_inline_module_knows_where_it_stands() {
        let (paths, _) = read("mod a { mod b { use super::super::C; } fn f() { super::d() } }");
        assert_eq!(paths, ["a/b/super::super::C", "a/super::d"]);
    }
}
