//! Tests that end before their end: each way out of one must go through `prony_testkit`, so
//! that it is listed, and fails where nothing may be skipped.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::source::{Source, read_names};

/// A function that the test harness calls.
pub struct Test {
    pub name: String,
    pub returns: Vec<Return>,
}

/// A `return` of the test itself, not of a closure or a task in it.
pub struct Return {
    pub line: usize,
    /// Names in the condition that it hangs on, and in the block that it stands in.
    pub names: Vec<String>,
}

/// Whether code with these names says that a test was skipped.
pub fn says_so(names: &[String]) -> bool {
    let has = |name: &str| names.iter().any(|own| own == name);
    // Iterators skip, too. What belongs into the long tier is played there.
    has("prony_testkit") && (has("skip") || has("long"))
        || [
            "need",
            "unshared",
            "skip_ring",
            "skip_without",
            "skip_test_without",
        ]
        .into_iter()
        .any(has)
}

impl Return {
    /// Whether the way to it says that the test was skipped, itself or by one of the
    /// functions `known` to do so.
    pub fn is_said(&self, known: &BTreeSet<&str>) -> bool {
        says_so(&self.names) || self.names.iter().any(|name| known.contains(name.as_str()))
    }
}

/// All tests in `file`, at any depth.
pub fn tests(file: &syn::File) -> Vec<Test> {
    let mut found = Tests(Vec::new());
    found.visit_file(file);
    found.0
}

/// Functions of a program that say so, directly or through each other.
pub fn saying_so<'a>(program: &[&'a Source]) -> BTreeSet<&'a str> {
    let functions = || program.iter().flat_map(|source| &source.functions);
    let mut known: BTreeSet<&str> = functions()
        .filter(|function| says_so(&function.names))
        .map(|function| function.name.as_str())
        .collect();
    loop {
        let calls = |names: &[String]| names.iter().any(|name| known.contains(name.as_str()));
        let more: Vec<&str> = functions()
            .filter(|function| calls(&function.names))
            .map(|function| function.name.as_str())
            .filter(|name| !known.contains(name))
            .collect();
        if more.is_empty() {
            return known;
        }
        known.extend(more);
    }
}

struct Tests(Vec<Test>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if function.attrs.iter().any(|a| a.path().is_ident("test")) {
            let mut returns = Returns::default();
            returns.visit_block(&function.block);
            self.0.push(Test {
                name: function.sig.ident.to_string(),
                returns: returns.found,
            });
        }
        visit::visit_item_fn(self, function);
    }
}

#[derive(Default)]
struct Returns {
    /// Names that the block which is being read hangs on, outermost first.
    guards: Vec<Vec<String>>,
    found: Vec<Return>,
}

impl Returns {
    fn under(&mut self, guard: &dyn ToTokens, read: impl FnOnce(&mut Returns)) {
        let mut names = Vec::new();
        read_names(guard.to_token_stream(), &mut names);
        self.guards.push(names);
        read(self);
        self.guards.pop();
    }
}

impl<'ast> Visit<'ast> for Returns {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        match &local.init {
            Some(init) if init.diverge.is_some() => {
                self.under(local, |own| visit::visit_local(own, local));
            }
            _ => visit::visit_local(self, local),
        }
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.under(&branch.cond, |own| {
            own.under(&branch.then_branch, |own| {
                own.visit_block(&branch.then_branch);
            });
            if let Some((_, otherwise)) = &branch.else_branch {
                own.under(otherwise, |own| own.visit_expr(otherwise));
            }
        });
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        self.under(&choice.expr, |own| visit::visit_expr_match(own, choice));
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.under(arm, |own| visit::visit_arm(own, arm));
    }

    fn visit_expr_return(&mut self, expression: &'ast syn::ExprReturn) {
        let mut names = self.guards.concat();
        read_names(expression.to_token_stream(), &mut names);
        self.found.push(Return {
            line: expression.span().start().line,
            names,
        });
    }

    // Returns of these are not the test's.
    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
