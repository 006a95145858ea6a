//! A document of which some regions are generated and all else is its author's.
//!
//! ```text
//! <!-- prony:begin ID -->
//! generated: replaced when it is written again
//! <!-- prony:end ID -->
//! ```
//!
//! Everything outside of regions stays byte for byte. A region stays where the author moved it. An entry whose region the
//! author took out is not brought back: the region [`OVERVIEW`] lists, in a comment, the entries that have been written.
//! Where that region was taken out, too, entries older than one that is still there count as
//! written. What cannot be understood as regions is an error, and nothing is written.
//!
//! Not for: what stands in regions (`page`), files.

use std::collections::{BTreeMap, BTreeSet};

use crate::lists::distinct;
pub use crate::prose::Damaged;

/// The region that stands first, and lists all entries.
pub const OVERVIEW: &str = "overview";
const OPEN: &str = "<!-- prony:";
const CLOSE: &str = " -->";

/// A generated part of a document.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Region {
    /// Its name in the markers.
    pub id: String,
    /// The entry that it belongs to, by its date for the order; `None`: the overview.
    pub entry: Option<String>,
    /// Its text, without markers, with a newline at its end.
    pub text: String,
}

/// A document with its regions brought up to date.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Written {
    /// The whole of it.
    pub text: String,
    /// Entries that were added.
    pub added: Vec<String>,
    /// Regions whose text changed.
    pub replaced: Vec<String>,
    /// Entries that the author took out, and that stay out.
    pub left_out: Vec<String>,
}

/// A piece of a document: the text of a region, without its markers, or what is not within one.
struct DocumentChunk<'a> {
    region: Option<&'a str>,
    text: &'a str,
}

enum Marker<'a> {
    Begin(&'a str),
    End(&'a str),
    Known(&'a str),
    Wrong,
}

/// Brings `document` up to date with `regions`: those that are there are replaced, entries that have not been
/// written before are appended in the order given (newest last), everything else stays as it is.
pub fn written(document: &str, regions: &[Region]) -> Result<Written, Damaged> {
    let pieces = parsed(document)?;
    let present: Vec<&str> = pieces.iter().filter_map(|piece| piece.region).collect();
    let known = known(&pieces);
    let entries = distinct(regions.iter().filter_map(|region| region.entry.as_deref()));
    let is_present = |entry: &&str| {
        let mut own = regions.iter().filter(|r| r.entry.as_deref() == Some(entry));
        own.any(|region| present.contains(&&*region.id))
    };
    let older = &entries[..entries.iter().rposition(is_present).unwrap_or(0)];
    let is_written = |entry: &&str| match &known {
        Some(known) => known.contains(entry),
        None => older.contains(entry),
    };
    let absent = entries.iter().copied().filter(|entry| !is_present(entry));
    let (left_out, added): (Vec<&str>, Vec<&str>) = absent.partition(is_written);
    let listed: BTreeSet<&str> = known.iter().flatten().chain(&entries).copied().collect();
    let newline = ["\n", "\r\n"][usize::from(document.contains("\r\n"))];
    let body = |region: &Region| body(region, &listed).replace('\n', newline);
    let (mut text, mut replaced) = (String::with_capacity(document.len() * 2), Vec::new());
    for DocumentChunk { region, text: old } in &pieces {
        // That of an entry that the history does not have is left as it is.
        let own = regions.iter().find(|own| *region == Some(&own.id));
        let new = own.map(body).filter(|new| new != old);
        replaced.extend(region.filter(|_| new.is_some()).map(str::to_owned));
        text.push_str(new.as_deref().unwrap_or(old));
    }
    for region in regions {
        let is_added = match &region.entry {
            Some(entry) => added.contains(&&**entry),
            // A document without any region has not been written before.
            None => present.is_empty(),
        };
        if is_added {
            append(&mut text, &region.id, &body(region), newline);
        }
    }
    let owned = |ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect();
    Ok(Written {
        text,
        added: owned(added),
        replaced,
        left_out: owned(left_out),
    })
}

/// What stands between the markers: the text, and in the overview the entries that have been written.
fn body(region: &Region, listed: &BTreeSet<&str>) -> String {
    // No line of a generated text may be taken for a marker.
    let text = region.text.replace(OPEN, "<!- - prony:");
    let ids: Vec<&str> = listed.iter().copied().collect();
    match region.entry {
        Some(_) => text,
        None => format!("{text}{OPEN}written {}{CLOSE}\n", ids.join(" ")),
    }
}

fn append(text: &mut String, id: &str, body: &str, newline: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(newline);
    }
    if !text.is_empty() && !text.ends_with(&newline.repeat(2)) {
        text.push_str(newline);
    }
    text.push_str(&format!(
        "{OPEN}begin {id}{CLOSE}{newline}{body}{OPEN}end {id}{CLOSE}{newline}"
    ));
}

/// The entries that the overview lists as written; `None` where it is not there.
fn known<'a>(pieces: &[DocumentChunk<'a>]) -> Option<BTreeSet<&'a str>> {
    let is_overview = |piece: &&DocumentChunk<'a>| piece.region == Some(OVERVIEW);
    let overview = pieces.iter().find(is_overview)?;
    let ids = overview.text.lines().filter_map(|line| match marker(line) {
        Some(Marker::Known(ids)) => Some(ids.split_ascii_whitespace()),
        _ => None,
    });
    Some(ids.flatten().collect())
}

/// Whether an id may hold it, beside the `/` between its parts.
pub fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

/// What a line marks; `None`: nothing.
fn marker(line: &str) -> Option<Marker<'_>> {
    let rest = line.trim().strip_prefix(OPEN)?;
    let inner = rest.strip_suffix("-->").unwrap_or_default().trim();
    let (word, ids) = inner.split_once(' ').unwrap_or((inner, ""));
    let ids = ids.trim();
    let is_one = !ids.is_empty() && ids.chars().all(|c| is_plain(c) || c == '/');
    Some(match word {
        "begin" if is_one => Marker::Begin(ids),
        "end" if is_one => Marker::End(ids),
        "written" => Marker::Known(ids),
        _ => Marker::Wrong,
    })
}

/// The pieces of a document, in order.
fn parsed(document: &str) -> Result<Vec<DocumentChunk<'_>>, Damaged> {
    let mut pieces = Vec::new();
    let mut lines_of: BTreeMap<&str, usize> = BTreeMap::new();
    // The region that has begun, and where.
    let mut open: Option<(&str, usize)> = None;
    let (mut from, mut after) = (0, 0);
    for (line, whole) in (1..).zip(document.split_inclusive('\n')) {
        let before = after;
        after += whole.len();
        let Some(marker) = marker(whole) else {
            continue;
        };
        let what = match (marker, open) {
            (Marker::Known(_), Some((OVERVIEW, _))) => continue,
            (Marker::Begin(id), None) if !lines_of.contains_key(id) => {
                let (region, text) = (None, &document[from..after]);
                pieces.push(DocumentChunk { region, text });
                (from, open) = (after, Some((id, line)));
                lines_of.insert(id, line);
                continue;
            }
            (Marker::End(id), Some((begun, _))) if begun == id => {
                let (region, text) = (Some(id), &document[from..before]);
                pieces.push(DocumentChunk { region, text });
                (from, open) = (before, None);
                continue;
            }
            (Marker::Wrong, _) => format!(
                "`{}` is no marker: markers are `{OPEN}begin ID{CLOSE}` and `{OPEN}end ID{CLOSE}`",
                whole.trim().chars().take(80).collect::<String>()
            ),
            (Marker::Known(_), _) => {
                format!("this comment belongs into the region `{OVERVIEW}`")
            }
            (Marker::Begin(id), None) => format!(
                "the region `{id}` is there already, from line {}: take one out",
                lines_of[id]
            ),
            (Marker::Begin(id), Some((begun, at))) => format!(
                "`{id}` begins within `{begun}`, which began in line {at} and has no end before here"
            ),
            (Marker::End(id), Some((begun, at))) => {
                format!("`{id}` ends here, but `{begun}` is what began, in line {at}")
            }
            (Marker::End(id), None) => format!(
                "`{id}` ends here and did not begin: put `{OPEN}begin {id}{CLOSE}` before it, or take this line out"
            ),
        };
        return Err(Damaged { line, what });
    }
    if let Some((id, line)) = open {
        let mend = format!("put `{OPEN}end {id}{CLOSE}` after it");
        let what = format!("`{id}` begins here and does not end: {mend}");
        return Err(Damaged { line, what });
    }
    let (region, text) = (None, &document[from..]);
    pieces.push(DocumentChunk { region, text });
    Ok(pieces)
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
