//! What a page in Markdown holds: its title, its headings with the anchors that GitHub gives them, and the text below each.
//!
//! Not for: its HTML (`body`).

use std::collections::BTreeMap;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// What GitHub's Markdown has beyond the standard, as far as pages use it.
pub const MARKDOWN: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH);

/// Bytes of a page's description at the most.
const LEAD_BYTES_MAX: usize = 240;

/// A heading.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PageHeading {
    /// From 1.
    pub level: u8,
    /// The anchor.
    pub id: String,
    /// What it says.
    pub text: String,
    /// What stands below it, up to the next one.
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
    let (mut is_open, mut is_code) = (false, false);
    let mut lead = FirstSentence::default();
    for event in Parser::new_ext(text, MARKDOWN) {
        lead.take(&event, headings.len());
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                is_open = true;
                headings.push(PageHeading {
                    level: level as u8,
                    ..PageHeading::default()
                });
            }
            Event::End(TagEnd::Heading(_)) => {
                is_open = false;
                if let Some(heading) = headings.last_mut() {
                    heading.id = anchor(&heading.text, &mut taken);
                }
            }
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Text(words) | Event::Code(words) => {
                let Some(heading) = headings.last_mut() else {
                    continue;
                };
                match is_open {
                    true => heading.text.push_str(&words),
                    false => heading.below.push_str(&words),
                }
                if is_code && !is_open {
                    heading.below.push(' ');
                }
            }
            Event::SoftBreak | Event::HardBreak | Event::End(_) => {
                if let Some(heading) = headings.last_mut().filter(|_| !is_open) {
                    heading.below.push(' ');
                }
            }
            _ => {}
        }
    }
    let title = headings
        .first()
        .map_or(path, |heading| &heading.text)
        .to_owned();
    PageOutline {
        title,
        lead: lead.sentence(),
        headings,
    }
}

/// The first paragraph, while it is looked for.
#[derive(Default)]
struct FirstSentence {
    text: String,
    is_open: bool,
    is_done: bool,
}

impl FirstSentence {
    fn take(&mut self, event: &Event<'_>, headings: usize) {
        match event {
            Event::Start(Tag::Paragraph) if headings == 1 && !self.is_done => self.is_open = true,
            Event::End(TagEnd::Paragraph) if self.is_open => {
                (self.is_open, self.is_done) = (false, !self.text.is_empty());
            }
            Event::Text(words) | Event::Code(words) if self.is_open => self.text.push_str(words),
            Event::SoftBreak if self.is_open => self.text.push(' '),
            _ => {}
        }
    }

    /// Its first sentence, or as much of it as a list can show.
    fn sentence(self) -> String {
        let end = self.text.find(". ").map_or(self.text.len(), |at| at + 1);
        let sentence = self.text.get(..end).unwrap_or_default();
        if sentence.len() <= LEAD_BYTES_MAX {
            return sentence.to_owned();
        }
        let cut = sentence.floor_char_boundary(LEAD_BYTES_MAX);
        let words = sentence.get(..cut).unwrap_or_default();
        let words = words.rsplit_once(' ').map_or(words, |(before, _)| before);
        format!("{words} …")
    }
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
            ids("# A b, c\n## `run.blocks`\n## A *b* c\n"),
            ["a-b-c", "runblocks", "a-b-c-1"]
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
