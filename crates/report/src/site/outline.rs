//! What a page in Markdown holds: its title, its headings with the anchors that GitHub gives them, and the text below each.
//!
//! Not for: its HTML (`body`).

use std::collections::BTreeMap;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde::Serialize;

/// What GitHub's Markdown has beyond the standard, as far as pages use it.
pub const MARKDOWN: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH);

/// Bytes of a page's description at the most.
const LEAD_BYTES_MAX: usize = 240;

/// A heading.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct PageHeading {
    /// From 1.
    pub level: u8,
    /// The anchor.
    pub id: String,
    /// What it says.
    pub text: String,
    /// What stands below it, up to the next one.
    #[serde(skip)]
    pub below: String,
}

/// What a page holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PageOutline {
    /// The first heading; the page's path where it has none.
    pub title: String,
    /// The first sentence below it.
    pub lead: String,
    /// All headings, in order.
    pub headings: Vec<PageHeading>,
}

impl PageOutline {
    /// Whether a link may end in `#anchor`.
    pub fn has(&self, anchor: &str) -> bool {
        self.headings.iter().any(|heading| heading.id == anchor)
    }
}

/// Reads a page.
pub fn outline(path: &str, text: &str) -> PageOutline {
    let mut headings: Vec<PageHeading> = Vec::new();
    let mut taken = BTreeMap::new();
    let mut is_open = false;
    for event in Parser::new_ext(text, MARKDOWN) {
        if let Event::Start(Tag::Heading { level, .. }) = event {
            is_open = true;
            headings.push(PageHeading {
                level: level as u8,
                ..PageHeading::default()
            });
        }
        let Some(heading) = headings.last_mut() else {
            continue;
        };
        let words = match is_open {
            true => &mut heading.text,
            false => &mut heading.below,
        };
        match event {
            Event::End(TagEnd::Heading(_)) => {
                is_open = false;
                heading.id = anchor(&heading.text, &mut taken);
            }
            Event::Text(own) | Event::Code(own) => words.push_str(&own),
            Event::SoftBreak | Event::HardBreak => words.push(' '),
            Event::End(
                TagEnd::Link
                | TagEnd::Image
                | TagEnd::Emphasis
                | TagEnd::Strong
                | TagEnd::Strikethrough,
            ) => {}
            Event::End(TagEnd::Paragraph) => words.push(PARAGRAPH),
            Event::End(_) => words.push('\n'),
            _ => {}
        }
    }
    let first = headings.first();
    PageOutline {
        title: first.map_or(path, |heading| &heading.text).to_owned(),
        lead: first.map_or_else(String::new, |heading| first_sentence(&heading.below)),
        headings,
    }
}

/// What ends a paragraph in [`PageHeading::below`].
const PARAGRAPH: char = '\u{2029}';

/// The first sentence of the first paragraph, or as much of it as a list can show.
fn first_sentence(text: &str) -> String {
    let until = text.split_once(PARAGRAPH).map_or("", |(before, _)| before);
    let line = until.rsplit('\n').next().unwrap_or_default();
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    let sentence = line.get(..end).unwrap_or_default();
    if sentence.len() <= LEAD_BYTES_MAX {
        return sentence.to_owned();
    }
    let cut = sentence.floor_char_boundary(LEAD_BYTES_MAX);
    let words = sentence.get(..cut).unwrap_or_default();
    let words = words.rsplit_once(' ').map_or(words, |(before, _)| before);
    format!("{words} …")
}

/// The anchor of a heading, as GitHub makes it: small letters, `-` for spaces, nothing else but digits and `_`; a number
/// where another heading has it already.
pub fn anchor(text: &str, taken: &mut BTreeMap<String, u32>) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.trim().chars().flat_map(char::to_lowercase) {
        match c {
            ' ' => plain.push('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => plain.push(c),
            _ => {}
        }
    }
    let count = taken.entry(plain.clone()).or_default();
    *count += 1;
    match *count {
        1 => plain,
        more => format!("{plain}-{}", more - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github() {
        let ids = |text: &str| -> Vec<String> {
            outline("a.md", text)
                .headings
                .into_iter()
                .map(|heading| heading.id)
                .collect()
        };
        assert_eq!(
            ids("# A b, c\n## `run.budget`\n## A *b* c\n"),
            ["a-b-c", "runbudget", "a-b-c-1"]
        );
        assert_eq!(ids("## Größe – und_so\n"), ["größe--und_so"]);
        assert_eq!(ids("```\n# no heading\n```\n"), [""; 0]);
    }

    #[test]
    fn a_page_has_a_title_and_a_first_sentence() {
        let read = outline(
            "docs/a.md",
            "# A `b`\n\n![picture](x.svg)\n\nFirst [one](b.md)\nhere. Second.\n\n## C\n\nd `e`\n",
        );
        assert_eq!(
            (read.title.as_str(), read.lead.as_str()),
            ("A b", "picture")
        );
        assert_eq!(read.headings[1].below.trim(), "d e");
        assert!(read.has("c") && !read.has("d"));
        let bare = outline("docs/a.md", "text");
        assert_eq!((bare.title.as_str(), bare.lead.as_str()), ("docs/a.md", ""));
    }
}
