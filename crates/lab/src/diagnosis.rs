//! What is wrong with a file that a person wrote, and where: message, place, the
//! lines themselves and the nearest right word.
//!
//! Not for: what goes wrong while measuring (that is recorded in the trial).
//!
//! ```
//! use prony_lab::experiment::{Experiment, Origin};
//! let origin = Origin::new("ping.toml", "/home/me");
//! let wrong = Experiment::parse("[run]\nblock = 3\n", &origin).unwrap_err();
//! assert!(wrong.to_string().contains("did you mean `blocks`?"));
//! ```

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use prony_base::{Untrusted, untrusted};

/// Problems shown for one file; further ones are counted.
pub const SHOWN_MAX: usize = 20;

/// One thing that is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Diagnosis {
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where, in bytes of the file's text.
    pub span: Range<usize>,
    /// What to do about it; empty where the message says it.
    pub help: String,
}

impl Diagnosis {
    /// A problem at `span`.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Diagnosis {
        Diagnosis {
            message: message.into(),
            span,
            help: String::new(),
        }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnosis {
        self.help = help.into();
        self
    }
}

/// Everything that is wrong with one file. `Display` shows it without colour.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Diagnoses {
    /// The file, as it was named.
    pub path: String,
    /// Its text.
    pub text: String,
    /// What is wrong, in the order of the file; at least one.
    pub problems: Vec<Diagnosis>,
}

impl Diagnoses {
    /// The problems of a file, put in the order of the file.
    pub fn new(path: &str, text: &str, mut problems: Vec<Diagnosis>) -> Diagnoses {
        problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        problems.dedup();
        Diagnoses {
            path: path.to_owned(),
            text: text.to_owned(),
            problems,
        }
    }

    /// A file that could not be read as text at all.
    pub fn unreadable(path: &str, reason: &str) -> Diagnoses {
        let problem = Diagnosis::new(0..0, format!("this file cannot be read: {reason}"));
        Diagnoses::new(path, "", vec![problem])
    }

    /// The message for people; `colour` for a terminal that has it.
    pub fn render(&self, colour: bool) -> String {
        self.render_as(Level::ERROR, colour)
    }

    /// The same as warnings: the file can be used in spite of them.
    pub fn render_warnings(&self, colour: bool) -> String {
        self.render_as(Level::WARNING, colour)
    }

    fn render_as(&self, level: Level<'static>, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let shown: Vec<String> = self
            .problems
            .iter()
            .take(SHOWN_MAX)
            .map(|problem| renderer.render(&[self.group(level.clone(), problem)]))
            .collect();
        let mut text = shown.join("\n\n");
        if self.problems.len() > SHOWN_MAX {
            let more = self.problems.len() - SHOWN_MAX;
            let path = untrusted::lines(&self.path);
            text.push_str(&format!("\n\n{more} more problems in {path}"));
        }
        text.push('\n');
        text
    }

    fn group<'a>(&'a self, level: Level<'a>, problem: &'a Diagnosis) -> Group<'a> {
        let span = within(&self.text, &problem.span);
        // What is escaped is longer, and so is what stands before the place.
        let place = |at: usize| untrusted::lines(&self.text[..at]).len();
        let snippet = Snippet::source(untrusted::lines(&self.text))
            .path(untrusted::lines(&self.path))
            .annotation(AnnotationKind::Primary.span(place(span.start)..place(span.end)));
        let group = level
            .primary_title(Untrusted(&problem.message).to_string())
            .element(snippet);
        if problem.help.is_empty() {
            return group;
        }
        group.element(Level::HELP.message(untrusted::lines(&problem.help)))
    }
}

impl fmt::Display for Diagnoses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnoses {}

/// The part of `span` that lies in `text`, cut at whole characters and at the end
/// of its first line: a message that underlines half a file points at nothing.
fn within(text: &str, span: &Range<usize>) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start);
    let end = floor(span.end.max(span.start)).max(start);
    let line = text[start..end].find('\n').unwrap_or(end - start);
    start..start + line
}

/// The one of `words` that `typed` most likely stands for, if any is near enough.
pub fn nearest<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Distance is quadratic in the lengths, and no right word is that long.
    if typed.len() > 100 {
        return None;
    }
    let lower = typed.to_lowercase();
    let allowed = (lower.chars().count() / 3).max(1);
    let contains = |word: &str| {
        let word = word.to_lowercase();
        lower.len() >= 3 && word.contains(&lower) || word.len() >= 3 && lower.ends_with(&word)
    };
    words
        .into_iter()
        .map(|word| (strsim::osa_distance(&lower, &word.to_lowercase()), word))
        .filter(|&(distance, word)| distance <= allowed || contains(word))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, word)| word)
}

/// "did you mean …?" where a word is near, otherwise all the words that are right.
pub fn suggest(typed: &str, kind: &str, words: &[&str]) -> String {
    match nearest(typed, words.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None if words.is_empty() => format!("there is no {kind} here"),
        None => format!("{kind}s here: {}", quoted(words)),
    }
}

/// Words in backticks with commas between them.
pub fn quoted<S: AsRef<str>>(words: &[S]) -> String {
    let each: Vec<String> = words.iter().map(|w| format!("`{}`", w.as_ref())).collect();
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_nearest_word_forgives_a_letter_but_not_a_different_word() {
        let words = ["blocks", "duration", "warmup", "rust/axum"];
        assert_eq!(nearest("block", words), Some("blocks"));
        assert_eq!(nearest("Warm-up", words), Some("warmup"));
        assert_eq!(nearest("axum", words), Some("rust/axum"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!(nearest("", words), None);
    }

    #[test]
    fn more_problems_than_are_shown_are_counted() {
        let problems = (0..25).map(|at| Diagnosis::new(at..at + 1, "wrong"));
        let all = Diagnoses::new("x.toml", &"a".repeat(30), problems.collect());
        let text = all.to_string();
        assert_eq!(text.matches("error: wrong").count(), SHOWN_MAX);
        assert!(text.ends_with("5 more problems in x.toml\n"), "{text}");
        let odd = Diagnoses {
            path: "\u{1b}[8m".to_owned(),
            ..all
        };
        assert!(!odd.to_string().contains('\u{1b}'), "its name");
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_can_be_shown(text in ".{0,80}", a in 0_usize..100, b in 0_usize..100) {
            let all = Diagnoses::new("x", &text, vec![Diagnosis::new(a..b, "m").help("h")]);
            prop_assert!(all.render(false).contains("error: m"));
            prop_assert!(all.render(true).contains('m'));
        }
    }
}
