//! A page in Markdown as HTML, its links followed and checked.
//!
//! Not for: what stands around it ([`super::frame`]).

use pulldown_cmark::{CowStr, Event, Parser, Tag, TagEnd, html};

use super::outline::{MARKDOWN, PageHeading, PageOutline};

/// A link that leads nowhere.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct BrokenLink {
    /// The page, as a path in the repository.
    pub file: String,
    /// The line of the link, from 1.
    pub line: usize,
    /// The link.
    pub link: String,
    /// Why it leads nowhere.
    pub why: String,
}

/// What a link becomes; or why it leads nowhere. `true`: it is a picture.
pub type Follow<'f> = dyn FnMut(&str, bool) -> Result<String, String> + 'f;

/// The HTML of the page at `path`; links that lead nowhere stay as they are and are added to `broken`.
pub fn body(
    (path, text): (&str, &str),
    outline: &PageOutline,
    follow: &mut Follow<'_>,
    broken: &mut Vec<BrokenLink>,
) -> String {
    let mut page = PageBody {
        path,
        text,
        headings: outline.headings.iter(),
        open: None,
        follow,
        broken,
        events: Vec::new(),
    };
    for (event, range) in Parser::new_ext(text, MARKDOWN).into_offset_iter() {
        page.take(event, range.start);
    }
    let mut written = String::with_capacity(text.len() * 2);
    html::push_html(&mut written, page.events.into_iter());
    written
}

/// A page while its events are read.
struct PageBody<'p, 'f> {
    path: &'p str,
    text: &'p str,
    /// Headings that have not come yet.
    headings: std::slice::Iter<'p, PageHeading>,
    /// The heading that is read.
    open: Option<&'p PageHeading>,
    follow: &'p mut Follow<'f>,
    broken: &'p mut Vec<BrokenLink>,
    events: Vec<Event<'p>>,
}

impl<'p> PageBody<'p, '_> {
    /// Takes the event that stands `at` this byte.
    fn take(&mut self, event: Event<'p>, at: usize) {
        match event {
            Event::Start(tag) => self.start(tag, at),
            Event::End(TagEnd::Heading(level)) => {
                if let Some(PageHeading { id, .. }) = self.open.take() {
                    let label = "Link to this section";
                    let link =
                        format!(" <a class=\"anchor\" href=\"#{id}\" aria-label=\"{label}\">#</a>");
                    self.events.push(Event::InlineHtml(link.into()));
                }
                self.events.push(Event::End(TagEnd::Heading(level)));
            }
            Event::End(TagEnd::Table) => {
                self.events.push(Event::End(TagEnd::Table));
                self.events.push(Event::Html("</div>\n".into()));
            }
            // Comments are for those who write the page.
            Event::Html(text) | Event::InlineHtml(text)
                if text.trim_start().starts_with("<!--") => {}
            event => self.events.push(event),
        }
    }

    fn start(&mut self, tag: Tag<'p>, at: usize) {
        let tag = match tag {
            Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            } => Tag::Link {
                link_type,
                dest_url: self.followed(dest_url, false, at),
                title,
                id,
            },
            Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            } => Tag::Image {
                link_type,
                dest_url: self.followed(dest_url, true, at),
                title,
                id,
            },
            Tag::Heading {
                level,
                classes,
                attrs,
                ..
            } => {
                self.open = self.headings.next();
                let id = self.open.map(|heading| CowStr::from(heading.id.as_str()));
                Tag::Heading {
                    level,
                    id,
                    classes,
                    attrs,
                }
            }
            Tag::Table(columns) => {
                let begin = "<div class=\"scroll\" tabindex=\"0\">";
                self.events.push(Event::Html(begin.into()));
                Tag::Table(columns)
            }
            tag => tag,
        };
        self.events.push(Event::Start(tag));
    }

    /// The link that stands `at` this byte, as the page has it; noted if it leads nowhere.
    fn followed(&mut self, link: CowStr<'p>, is_picture: bool, at: usize) -> CowStr<'p> {
        match (self.follow)(&link, is_picture) {
            Ok(to) => CowStr::from(to),
            Err(why) => {
                let before = self.text.as_bytes().iter().take(at);
                self.broken.push(BrokenLink {
                    file: self.path.to_owned(),
                    line: before.filter(|byte| **byte == b'\n').count() + 1,
                    link: link.to_string(),
                    why,
                });
                link
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::outline::outline;
    use super::*;

    #[test]
    fn links_are_followed_and_broken_ones_are_named_with_their_line() {
        let text = "# A\n\na [b](b.md)\nand [c](c.md \"t\")\n\n<!-- x -->\n| d |\n|---|\n| ![e](e.svg) |\n";
        let mut broken = Vec::new();
        let mut follow = |link: &str, is_picture: bool| match link {
            "c.md" => Err("there is no c.md".to_owned()),
            link => Ok(format!(
                "{}{}",
                if is_picture { "p/" } else { "" },
                link.replace(".md", ".html")
            )),
        };
        let outline = outline("d/a.md", text);
        let html = body(("d/a.md", text), &outline, &mut follow, &mut broken);
        let wrong = BrokenLink {
            file: "d/a.md".to_owned(),
            line: 4,
            link: "c.md".to_owned(),
            why: "there is no c.md".to_owned(),
        };
        assert_eq!(broken, [wrong]);
        insta::assert_snapshot!(html, @r##"
        <h1 id="a">A <a class="anchor" href="#a" aria-label="Link to this section">#</a></h1>
        <p>a <a href="b.html">b</a>
        and <a href="c.md" title="t">c</a></p>
        <div class="scroll" tabindex="0"><table><thead><tr><th>d</th></tr></thead><tbody>
        <tr><td><img src="p/e.svg" alt="e" /></td></tr>
        </tbody></table>
        </div>
        "##);
    }
}
