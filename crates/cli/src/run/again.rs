//! The command that resumes a run, quoted for a shell.

use std::env;
use std::path::Path;

use super::words::RunWords;

/// The variable with the name by which Prony was called, where a launcher stands between it and the user.
const CALLED_AS: &str = "PRONY_CALLED_AS";

/// `./prony run experiments/ping.toml --quick --resume runs/ping-001`.
pub fn resuming(words: &RunWords, dir: &Path) -> String {
    let mut all = vec![called_as()];
    all.extend(words.command());
    all.extend(words.json.then(|| "--json".to_owned()));
    all.extend(words.open.then(|| "--open".to_owned()));
    all.extend(["--resume".to_owned(), dir.display().to_string()]);
    in_shell(&all)
}

/// Words as any shell takes them.
pub fn in_shell(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn called_as() -> String {
    let launcher = env::var_os(CALLED_AS).filter(|name| !name.is_empty());
    let name = launcher.or_else(|| env::args_os().next());
    name.map_or_else(
        || "prony".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// A word as any shell takes it for one.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("runs/ping-001"), "runs/ping-001");
        assert_eq!(quoted("*c=4*"), "'*c=4*'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
