//! The analysis that a person wrote beside a run, as part of its document.
//!
//! In Markdown it stands as it was written, with its bound figures. In the page it is HTML made of the same text, of which
//! only what Markdown itself means is left: a page renders runs of strangers, too.
//! Not for: checking its figures (`prony verify`, by [`crate::prose`]).

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::prose::without_marks;

/// Beginnings of links that the page follows; all others are shown as text.
const SCHEMES: [&str; 3] = ["https://", "http://", "#"];

/// Words of an author's answer at the most.
const ANSWER_MAX: usize = 80;

/// The answer that an author begins with, and the rest: what stands before the first heading, if it is short enough to be one.
pub fn parted(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = match text.starts_with('#') {
        true => 0,
        false => text.find("\n#").unwrap_or(text.len()),
    };
    let (answer, rest) = text.split_at(end);
    match without_marks(answer).split_whitespace().count() {
        1..=ANSWER_MAX => (answer.trim(), rest.trim()),
        _ => ("", text),
    }
}

/// The text as HTML that holds no markup but that of Markdown: no tags or comments of its own, no pictures, no links
/// but those of [`SCHEMES`].
pub fn page(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let text = without_marks(text.trim());
    let mut written = String::with_capacity(text.len() * 2);
    // Links do not nest, so that the next end of one is that of the last beginning.
    let mut in_followed = false;
    let kept = Parser::new_ext(&text, options).filter_map(|mut event| {
        let is_kept = match &mut event {
            Event::Html(_) | Event::InlineHtml(_) => false,
            Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => false,
            // What the alternative text says remains.
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => false,
            Event::Start(Tag::Link { dest_url, .. }) => {
                in_followed = SCHEMES.iter().any(|scheme| dest_url.starts_with(scheme));
                in_followed
            }
            Event::End(TagEnd::Link) => in_followed,
            // Its section has a heading of the second level.
            Event::Start(Tag::Heading { level, .. }) | Event::End(TagEnd::Heading(level)) => {
                *level = HeadingLevel::H3.max(*level);
                true
            }
            _ => true,
        };
        is_kept.then_some(event)
    });
    html::push_html(&mut written, kept);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_what_markdown_means_and_nothing_else() {
        let text = "# Why\n\n<script>alert(1)</script>\n\n<!-- {{rate}} -->31 k<!-- {{/}} --> a *second*, <b>bold</b>, \
                    [code](src/lib.rs), [evil](javascript:alert(1)), [site](https://example.org/a?b=1&c=2), ![a picture](x.svg)\n\n\
                    | a | b |\n| - | -: |\n| 1 < 2 | `x` |\n";
        insta::assert_snapshot!(page(text), @r##"
        <h3>Why</h3>
        <p>31 k a <em>second</em>, bold, code, evil, <a href="https://example.org/a?b=1&amp;c=2">site</a>, a picture</p>
        <table><thead><tr><th>a</th><th style="text-align: right">b</th></tr></thead><tbody>
        <tr><td>1 &lt; 2</td><td style="text-align: right"><code>x</code></td></tr>
        </tbody></table>
        "##);
    }

    #[test]
    fn what_is_written_stays_but_for_space_around_it() {
        assert_eq!(parted("\n  \n"), ("", ""));
        assert_eq!(parted("\n### Why\n\na  \nb\n\n"), ("", "### Why\n\na  \nb"));
        assert_eq!(page(""), "");
    }

    #[test]
    fn an_answer_is_what_stands_before_the_first_heading_and_short() {
        assert_eq!(
            parted("It is A.\n\n### Why\n\nB"),
            ("It is A.", "### Why\n\nB")
        );
        assert_eq!(parted("It is A.\n"), ("It is A.", ""));
        let long = "word ".repeat(81);
        assert_eq!(parted(&long), ("", long.trim()));
        // What binds a figure is no word of it.
        let bound = format!(
            "{}<!-- {{{{rate \"a\"}}}} -->1 k<!-- {{{{/}}}} -->",
            "word ".repeat(78)
        );
        assert_eq!(parted(&bound).0, bound);
    }

    proptest::proptest! {
        #[test]
        fn no_text_brings_markup_of_its_own(text in "(<|>|script|!--|javascript:|\\[|\\]|\\(|\\)|`|\n|\\*|a|\"|&| ){0,40}") {
            let page = page(&text);
            proptest::prop_assert!(!page.contains("<script"));
            proptest::prop_assert!(!page.contains("<!--"));
            proptest::prop_assert!(!page.contains("href=\"javascript"));
        }
    }
}
