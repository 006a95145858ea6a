//! Lines for people that fit on a narrow terminal.
//!
//! Not for: tables of figures (the report has them), or what is to be copied, such as commands: these are never broken.

/// Columns that prose fits into.
pub const COLUMNS: usize = 60;

/// `text` as lines of at most [`COLUMNS`] characters, all but the first begun with `indent` spaces; `first` is what the
/// first one begins with. A word that is longer stands by itself.
pub fn wrapped(first: &str, indent: usize, text: &str) -> String {
    let mut lines = vec![first.to_owned()];
    let mut is_begun = false;
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        let gap = usize::from(is_begun);
        if is_begun && line.chars().count() + gap + word.chars().count() > COLUMNS {
            lines.push(format!("{}{word}", " ".repeat(indent)));
            continue;
        }
        line.push_str(&" ".repeat(gap));
        line.push_str(word);
        is_begun = true;
    }
    lines.join("\n")
}

/// A text in quotation marks, as JSON and TOML have it.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Bytes as people read them: `512 B`, `3.4 MB`.
pub fn bytes(count: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let exact = count as f64;
    match units.iter().find(|(size, _)| exact >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", exact / size),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_only() {
        let text = "a ".repeat(40);
        let lines = wrapped("x: ", 3, &text);
        assert!(
            lines.lines().all(|line| line.chars().count() <= COLUMNS),
            "{lines}"
        );
        assert_eq!(lines.lines().count(), 2);
        assert!(
            lines
                .lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("   a "))
        );
        let long = "b".repeat(70);
        assert_eq!(
            wrapped("", 2, &format!("a {long} c")),
            format!("a\n  {long}\n  c")
        );
        assert_eq!(wrapped("x", 2, ""), "x");
    }

    #[test]
    fn bytes_are_read_in_decimal_units() {
        assert_eq!(
            [0, 999, 1_000, 3_449_000, 2_000_000_000].map(bytes),
            ["0 B", "999 B", "1.0 kB", "3.4 MB", "2.0 GB"]
        );
    }
}
