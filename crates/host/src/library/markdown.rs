//! Markdown to HTML: CommonMark with tables, footnotes, strikethrough, task lists and ids
//! of headings, on `pulldown-cmark`.
//!
//! What comes from strangers may be given to it: raw HTML is shown as text, and a link may
//! lead only where [`is_harmless`] says, unless `html = true` is given.

use std::collections::BTreeMap;
use std::ops::Range;

use mlua::{Function, Lua, LuaString, Table};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::values::Safe;

pub(super) fn register(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set("markdown", lua.create_function(render)?)
}

/// Options beside the text.
struct Wishes {
    /// Raw HTML and links of every scheme pass.
    html: bool,
    /// `link(destination, line)` gives the destination that is written.
    link: Option<Function>,
    /// A line that is counted as the first.
    line: usize,
}

/// A heading, as a table of contents wants it.
#[derive(Debug, PartialEq, Eq)]
struct Heading {
    level: u8,
    id: String,
    text: String,
}

/// `native.markdown(text, {html, link, line})`: HTML that templates take as it is, and the
/// headings as a list of `{level, id, text}`.
fn render(lua: &Lua, (text, options): (LuaString, Option<Table>)) -> mlua::Result<(Safe, Table)> {
    // Strangers send any bytes: those that are no text are shown as such.
    let text = text.to_string_lossy();
    let wishes = match options {
        None => Wishes {
            html: false,
            link: None,
            line: 1,
        },
        Some(table) => Wishes {
            html: table.get::<Option<bool>>("html")?.unwrap_or(false),
            link: table.get("link")?,
            line: table.get::<Option<usize>>("line")?.unwrap_or(1),
        },
    };
    let (html, headings) = convert(&text, &wishes)?;
    let list = lua.create_table()?;
    for heading in headings {
        let entry = lua.create_table()?;
        entry.set("level", heading.level)?;
        entry.set("id", heading.id)?;
        entry.set("text", heading.text)?;
        list.push(entry)?;
    }
    Ok((Safe(html), list))
}

fn convert(text: &str, wishes: &Wishes) -> mlua::Result<(String, Vec<Heading>)> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut events = Vec::new();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        events.push(treat(event, range, text, wishes)?);
    }
    let headings = name_headings(&mut events);
    let mut out = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut out, events.into_iter());
    Ok((out, headings))
}

fn treat<'a>(
    event: Event<'a>,
    range: Range<usize>,
    text: &str,
    wishes: &Wishes,
) -> mlua::Result<Event<'a>> {
    Ok(match event {
        Event::Html(raw) | Event::InlineHtml(raw) if !wishes.html => Event::Text(raw),
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => {
            let dest_url = destination(dest_url, &range, text, wishes)?;
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            })
        }
        Event::Start(Tag::Image {
            link_type,
            dest_url,
            title,
            id,
        }) => {
            let dest_url = destination(dest_url, &range, text, wishes)?;
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            })
        }
        // Attributes other than an id could hold what no stranger may say.
        Event::Start(Tag::Heading {
            level, id, classes, ..
        }) => Event::Start(Tag::Heading {
            level,
            id,
            classes,
            attrs: Vec::new(),
        }),
        other => other,
    })
}

fn destination<'a>(
    url: CowStr<'a>,
    range: &Range<usize>,
    text: &str,
    wishes: &Wishes,
) -> mlua::Result<CowStr<'a>> {
    let url = match &wishes.link {
        None => url,
        Some(link) => {
            let before = &text.as_bytes()[..range.start];
            let line = wishes.line + before.iter().filter(|byte| **byte == b'\n').count();
            link.call::<String>((&*url, line))?.into()
        }
    };
    Ok(match wishes.html || is_harmless(&url) {
        true => url,
        false => CowStr::Borrowed("#"),
    })
}

/// Whether a link leads to another page and runs nothing: relative, or of a scheme that
/// browsers fetch or hand on. They ignore control characters and spaces in a scheme, so
/// that one with such is judged without them.
fn is_harmless(url: &str) -> bool {
    let plain: String = url
        .chars()
        .filter(|letter| !letter.is_control() && !letter.is_whitespace())
        .collect();
    let end = plain.find(['/', '?', '#']).unwrap_or(plain.len());
    match plain[..end].split_once(':') {
        None => true,
        Some((scheme, _)) => ["http", "https", "mailto", "tel", "ftp"]
            .contains(&scheme.to_ascii_lowercase().as_str()),
    }
}

/// Gives each heading an id of its own, made of its text unless the author gave one.
fn name_headings(events: &mut [Event<'_>]) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut taken = BTreeMap::new();
    let mut start = None;
    for at in 0..events.len() {
        match &events[at] {
            Event::Start(Tag::Heading { .. }) => start = Some(at),
            Event::End(TagEnd::Heading(_)) => {
                let Some(first) = start.take() else { continue };
                let text = plain_text(&events[first..at]);
                if let Event::Start(Tag::Heading { level, id, .. }) = &mut events[first] {
                    let wanted = id.as_deref().map_or_else(|| slug(&text), str::to_owned);
                    let name = unique(wanted, &mut taken);
                    *id = Some(name.clone().into());
                    headings.push(Heading {
                        level: *level as u8,
                        id: name,
                        text,
                    });
                }
            }
            _ => (),
        }
    }
    headings
}

fn plain_text(events: &[Event<'_>]) -> String {
    let mut text = String::new();
    for event in events {
        match event {
            Event::Text(part) | Event::Code(part) => text.push_str(part),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => (),
        }
    }
    text
}

/// Small letters, figures and hyphens, as other renderers of Markdown make it, so that
/// links to sections work there as well.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for letter in text.trim().chars() {
        match letter {
            ' ' | '-' => slug.push('-'),
            '_' => slug.push('_'),
            letter if letter.is_alphanumeric() => slug.extend(letter.to_lowercase()),
            _ => (),
        }
    }
    match slug.is_empty() {
        true => "section".to_owned(),
        false => slug,
    }
}

/// `taken` has the number for the next heading of each name, so that strangers' thousand
/// equal headings are not a million tries.
fn unique(wanted: String, taken: &mut BTreeMap<String, u32>) -> String {
    let Some(&first) = taken.get(&wanted) else {
        taken.insert(wanted.clone(), 1);
        return wanted;
    };
    let mut number = first;
    let name = loop {
        let name = format!("{wanted}-{number}");
        number += 1;
        if !taken.contains_key(&name) {
            break name;
        }
    };
    taken.insert(wanted, number);
    taken.insert(name.clone(), 1);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_heading_has_a_name_of_its_own_however_many_are_equal() {
        let mut taken = BTreeMap::new();
        let mut name = |wanted: &str| unique(wanted.to_owned(), &mut taken);
        for (wanted, given) in [
            ("a", "a"),
            ("a-2", "a-2"),
            ("a", "a-1"),
            ("a", "a-3"),
            ("a-1", "a-1-1"),
            ("a", "a-4"),
        ] {
            assert_eq!(name(wanted), given);
        }
        // With a try for each name before it this would be twenty thousand million.
        for _ in 0..200_000 {
            name("b");
        }
        assert_eq!(name("b"), "b-200000");
    }
}
