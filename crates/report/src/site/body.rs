//! A page in Markdown as HTML, its links followed.
//!
//! Not for: where they lead ([`super::links`]), what stands around it (`templates/site.html`).

use pulldown_cmark::{CowStr, Event, Parser, Tag, TagEnd, html};

use super::outline::{MARKDOWN, PageOutline};
use crate::escape::html as html_text;

/// What a link becomes that stands in a line, from 1. `true`: it is a picture.
pub type Follow<'f> = dyn FnMut(&str, bool, usize) -> String + 'f;

/// The HTML of a page.
pub fn body(text: &str, outline: &PageOutline, follow: &mut Follow<'_>) -> String {
    let mut headings = outline.headings.iter();
    let mut anchor = "";
    let mut events = Vec::new();
    let line = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    for (mut event, place) in Parser::new_ext(text, MARKDOWN).into_offset_iter() {
        match &mut event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                *dest_url = CowStr::from(follow(dest_url, false, line(place.start)));
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                *dest_url = CowStr::from(follow(dest_url, true, line(place.start)));
            }
            Event::Start(Tag::Heading { id, .. }) => {
                anchor = headings.next().map_or("", |heading| heading.id.as_str());
                *id = Some(CowStr::from(anchor));
            }
            Event::End(TagEnd::Heading(_)) => events.push(link_to(anchor)),
            Event::Start(Tag::Table(_)) => {
                events.push(Event::Html("<div class=\"scroll\" tabindex=\"0\">".into()));
            }
            // Comments are for those who write the page.
            Event::Html(of) | Event::InlineHtml(of) if of.trim_start().starts_with("<!--") => {
                continue;
            }
            _ => {}
        }
        let is_table = event == Event::End(TagEnd::Table);
        events.push(event);
        events.extend(is_table.then(|| Event::Html("</div>\n".into())));
    }
    let mut written = String::with_capacity(text.len() * 2);
    html::push_html(&mut written, events.into_iter());
    written
}

fn link_to(anchor: &str) -> Event<'static> {
    let label = "Link to this section";
    let link = format!(" <a class=\"anchor\" href=\"#{anchor}\" aria-label=\"{label}\">#</a>");
    Event::InlineHtml(link.into())
}

/// The text of a file as it stands, with its lines and tabs.
pub fn code(text: &str) -> String {
    let line = |line: &str| {
        line.split('\t')
            .map(html_text)
            .collect::<Vec<_>>()
            .join("\t")
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    format!("<pre><code>{}</code></pre>\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::outline::outline;
    use super::*;

    #[test]
    fn links_are_followed_with_their_line() {
        let text = "# A\n\na [b](b.md)\nand [c](c.md \"t\")\n\n<!-- x -->\n| d |\n|---|\n| ![e](e.svg) |\n";
        let mut pictures = Vec::new();
        let mut follow = |link: &str, is_picture: bool, line: usize| {
            if is_picture {
                pictures.push(line);
            }
            link.replace(".md", ".html")
        };
        let html = body(text, &outline("d/a.md", text), &mut follow);
        assert_eq!(pictures, [9]);
        insta::assert_snapshot!(html, @r##"
        <h1 id="a">A <a class="anchor" href="#a" aria-label="Link to this section">#</a></h1>
        <p>a <a href="b.html">b</a>
        and <a href="c.html" title="t">c</a></p>
        <div class="scroll" tabindex="0"><table><thead><tr><th>d</th></tr></thead><tbody>
        <tr><td><img src="e.svg" alt="e" /></td></tr>
        </tbody></table>
        </div>
        "##);
    }
}
