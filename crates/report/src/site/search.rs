//! What the search of the pages looks into: a script with the words of each section, made when the pages are.
//!
//! Not for: searching, which `templates/site.js` does in the browser.

use std::collections::{BTreeMap, BTreeSet};

use super::links::page_path;
use super::outline::PageOutline;

/// Letters of a word at the most; what is longer is a hash, or a line of a program.
const WORD_CHARS_MAX: usize = 40;

/// One page: its title, its path, and its sections (anchor, heading, words).
type Indexed<'p> = (&'p str, String, Vec<(&'p str, &'p str, String)>);

/// The script.
pub fn index(pages: &BTreeMap<String, PageOutline>) -> String {
    let page = |(path, page): (&'_ String, &'_ PageOutline)| -> String {
        let sections = page.headings.iter().map(|heading| {
            (
                heading.id.as_str(),
                heading.text.as_str(),
                words(&heading.below),
            )
        });
        let indexed: Indexed<'_> = (&page.title, page_path(path), sections.collect());
        serde_json::to_string(&indexed).unwrap_or_else(|_| "[\"\",\"\",[]]".to_owned())
    };
    let pages: Vec<String> = pages.iter().map(page).collect();
    format!("window.PRONY_PAGES = [\n{}\n];\n", pages.join(",\n"))
}

/// The words of a text, each once, in small letters. Numbers are left out: tables are full of them.
fn words(text: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || "_-./@".contains(c);
    let lower = text.to_lowercase();
    let words = lower
        .split(|c: char| !is_part(c))
        .map(|word| word.trim_matches(['.', '-', '/']));
    let is_word = |word: &&str| {
        word.chars().any(char::is_alphabetic)
            && word.chars().take(WORD_CHARS_MAX + 1).count() <= WORD_CHARS_MAX
    };
    let distinct: BTreeSet<&str> = words.filter(is_word).collect();
    distinct.into_iter().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::outline::outline;
    use super::*;

    #[test]
    fn words_are_those_of_their_section() {
        let text = "# A\n\nb 17 `c_d` b.\n\n## E \"f\"\n\n```sh\nprony run x.toml --quick\n```\n";
        let pages = BTreeMap::from([("docs/a.md".to_owned(), outline("docs/a.md", text))]);
        insta::assert_snapshot!(index(&pages), @r#"
        window.PRONY_PAGES = [
        ["A","docs/a.html",[["a","A","b c_d"],["e-f","E \"f\"","prony quick run x.toml"]]]
        ];
        "#);
    }
}
