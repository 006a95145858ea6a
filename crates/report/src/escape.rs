//! Text that a user or a subject wrote, made harmless for where it goes.

use std::fmt::Write as _;

use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, Output, State};
use prony_base::untrusted::steers;

const MARKDOWN: &str = "markdown";

/// Makes every template of `environment` escape what it prints: Markdown in `*.md`, nothing in `*.txt`, which is escaped where it is shown, else
/// HTML (which SVG shares). Only what this crate marks as safe goes through as it is. `code` and `listing` make Markdown's code of texts,
/// and `paragraphs` its paragraphs.
pub fn install(environment: &mut Environment<'_>) {
    environment.set_auto_escape_callback(|name| match name.rsplit_once('.') {
        Some((_, "md")) => AutoEscape::Custom(MARKDOWN.into()),
        Some((_, "txt")) => AutoEscape::None,
        _ => AutoEscape::Html,
    });
    environment.set_formatter(write_value);
    let safe = Value::from_safe_string;
    environment.add_filter("code", move |text: &str| safe(markdown_code(text)));
    environment.add_filter("paragraphs", move |lines: Vec<String>| {
        let lines = lines.iter().map(|line| markdown(line) + "\n\n");
        safe(lines.collect())
    });
    environment.add_filter("listing", move |lines: Vec<String>, indent: &str| {
        safe(markdown_block(lines.iter().map(String::as_str), indent))
    });
}

fn write_value(out: &mut Output<'_>, state: &mut State, value: &Value) -> Result<(), Error> {
    let written = match value.as_str() {
        Some(text) if value.is_safe() || matches!(state.auto_escape(), AutoEscape::None) => {
            out.write_str(text)
        }
        Some(text) if matches!(state.auto_escape(), AutoEscape::Custom(_)) => {
            out.write_str(&markdown(text))
        }
        Some(text) => out.write_str(&html(text)),
        None if value.is_none() || value.is_undefined() => Ok(()),
        None => write!(out, "{value}"),
    };
    written.map_err(Error::from)
}

/// Without what a terminal or a text direction would act on.
pub fn clean(text: &str) -> String {
    let harmless = |c: char| match c {
        '\n' | '\t' => ' ',
        c if steers(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(harmless).collect()
}

/// As one line of running Markdown.
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in clean(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&' | '$'
        ) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// As Markdown code within a line.
pub fn markdown_code(text: &str) -> String {
    let text = clean(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    // Within a table a bar would end the cell even in code.
    let text = text.replace('|', "\\|");
    if text.is_empty() {
        return String::new();
    }
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// As lines of code in Markdown.
pub fn markdown_block<'a>(lines: impl IntoIterator<Item = &'a str>, indent: &str) -> String {
    let lines: Vec<String> = lines.into_iter().map(clean).collect();
    let longest = lines
        .iter()
        .map(|line| longest_run(line))
        .max()
        .unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let mut text = format!("{indent}{fence}text\n");
    for line in lines {
        let _ = writeln!(text, "{}", format!("{indent}{line}").trim_end());
    }
    text + indent + &fence
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// As HTML text, or as an attribute in quotes.
pub fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in clean(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A name in at most so many characters: what is left out is in the middle, as names that begin alike differ at their ends.
pub fn shortened(name: &str, chars: usize) -> String {
    let count = name.chars().count();
    if count <= chars {
        return name.to_owned();
    }
    let start = chars.saturating_sub(1) / 2;
    let end = chars.saturating_sub(1) - start;
    let kept = name.chars().take(start);
    let rest = name.chars().skip(count - end);
    kept.chain(['…']).chain(rest).collect()
}

/// With numbers tied to their units, so that no line breaks between them.
pub fn tied(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_unit = |c: &char| c.is_alphabetic() || *c == '%';
    let tie = |(at, c): (usize, &char)| {
        let behind_digit = at > 0 && chars[at - 1].is_ascii_digit();
        match *c == ' ' && behind_digit && chars.get(at + 1).is_some_and(is_unit) {
            true => '\u{a0}',
            false => *c,
        }
    };
    chars.iter().enumerate().map(tie).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_alike_stay_apart_when_they_are_shortened() {
        assert_eq!(shortened("axum", 15), "axum");
        assert_eq!(shortened("prony, services=on", 15), "prony, …ices=on");
        assert_eq!(shortened("prony, services=off", 15), "prony, …ces=off");
        assert_eq!(shortened("äöüäöü", 3), "ä…ü");
    }

    #[test]
    fn nothing_that_a_subject_prints_acts_on_its_reader() {
        assert_eq!(
            html("<b a='\"'>&\u{1b}[31m"),
            "&lt;b a=&#39;&quot;&#39;&gt;&amp;\u{fffd}[31m"
        );
        assert_eq!(
            markdown("a|b *c* [d](e)\n# f"),
            "a\\|b \\*c\\* \\[d\\](e) \\# f"
        );
        assert_eq!(markdown("x\u{202e}y"), "x\u{fffd}y");
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(tied("between 3.10 k and 5"), "between 3.10\u{a0}k and 5");
    }

    #[test]
    fn code_may_hold_its_own_fences() {
        assert_eq!(markdown_code("a``b|c"), "```a``b\\|c```");
        assert_eq!(markdown_code("`x"), "`` `x ``");
        assert_eq!(
            markdown_block(["````", "x"], "  "),
            "  `````text\n  ````\n  x\n  `````"
        );
    }
}
