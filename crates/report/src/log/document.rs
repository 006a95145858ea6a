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
use std::fmt;

use crate::lists::distinct;

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

/// Markers that cannot be understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Damaged {
    /// Line of the document, from 1.
    pub line: usize,
    /// What is wrong with it, and what would mend it.
    pub what: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Damaged {}

/// A region as it is in a document, with the author's prose before it.
#[derive(Debug, PartialEq)]
struct DocumentRegion<'a> {
    prose: &'a str,
    id: &'a str,
    /// The marker lines as they are, and what is between.
    begin: &'a str,
    old: &'a str,
    end: &'a str,
}

enum Marker<'a> {
    Begin(&'a str),
    End(&'a str),
    Known(&'a str),
}

/// Brings `document` up to date with `regions`: those that are there are replaced, entries that have not been
/// written before are appended in the order given (newest last), everything else stays as it is.
pub fn written(document: &str, regions: &[Region]) -> Result<Written, Damaged> {
    let (pieces, rest) = parsed(document)?;
    let present: BTreeSet<&str> = pieces.iter().map(|piece| piece.id).collect();
    let known = known(&pieces);
    let entries = distinct(regions.iter().filter_map(|region| region.entry.as_deref()));
    let mut seen = sorted_out(regions, &entries, &present, known.as_ref());
    let mut listed = known.unwrap_or_default();
    listed.extend(entries);
    let texts = regions.iter();
    let texts: BTreeMap<&str, String> = texts
        .map(|region| (&*region.id, body(region, &listed)))
        .collect();
    let newline = match document.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    };
    let mut text = String::with_capacity(document.len() * 2);
    for piece in &pieces {
        let new = texts.get(piece.id).map(|new| new.replace('\n', newline));
        if new.as_ref().is_some_and(|new| new != piece.old) {
            seen.replaced.push(piece.id.to_owned());
        }
        // That of an entry that the history does not have is left as it is.
        let new = new.as_deref().unwrap_or(piece.old);
        text.extend([piece.prose, piece.begin, new, piece.end]);
    }
    text.push_str(rest);
    let appended = regions.iter().filter(|region| match &region.entry {
        Some(entry) => seen.added.contains(entry),
        // A document without any region has not been written before.
        None => present.is_empty(),
    });
    for region in appended {
        append(&mut text, region, &texts[region.id.as_str()], newline);
    }
    seen.text = text;
    Ok(seen)
}

/// Which of `entries` are to be added, and which the author has taken out: those that are not there, and that
/// `known` lists; where that list was taken out (`None`), those that are older than one that is there.
fn sorted_out(
    regions: &[Region],
    entries: &[&str],
    present: &BTreeSet<&str>,
    known: Option<&BTreeSet<&str>>,
) -> Written {
    let mut seen = Written::default();
    let is_present = |entry: &str| {
        let mut own = regions.iter().filter(|r| r.entry.as_deref() == Some(entry));
        own.any(|region| present.contains(region.id.as_str()))
    };
    let newest = entries.iter().rposition(|entry| is_present(entry));
    for (index, entry) in entries.iter().enumerate() {
        let before = match known {
            Some(known) => known.contains(*entry),
            None => newest.is_some_and(|newest| index < newest),
        };
        match (is_present(entry), before) {
            (true, _) => {}
            (false, true) => seen.left_out.push((*entry).to_owned()),
            (false, false) => seen.added.push((*entry).to_owned()),
        }
    }
    seen
}

/// What stands between the markers: the text, and in the overview the entries that have been written.
fn body(region: &Region, listed: &BTreeSet<&str>) -> String {
    let mut text = harmless(&region.text);
    if region.entry.is_none() {
        let ids: Vec<&str> = listed.iter().copied().collect();
        text.push_str(&format!("{OPEN}written {}{CLOSE}\n", ids.join(" ")));
    }
    text
}

/// No line of a generated text may be taken for a marker.
fn harmless(text: &str) -> String {
    text.replace(OPEN, "<!- - prony:")
}

fn append(text: &mut String, region: &Region, body: &str, newline: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(newline);
    }
    if !text.is_empty() && !text.ends_with(&newline.repeat(2)) {
        text.push_str(newline);
    }
    let id = &region.id;
    let block = format!("{OPEN}begin {id}{CLOSE}\n{body}{OPEN}end {id}{CLOSE}\n");
    text.push_str(&block.replace('\n', newline));
}

/// The entries that the overview lists as written; `None` where it is not there.
fn known<'a>(pieces: &[DocumentRegion<'a>]) -> Option<BTreeSet<&'a str>> {
    let overview = pieces.iter().find(|piece| piece.id == OVERVIEW)?;
    let ids = overview.old.lines().filter_map(|line| match marker(line) {
        Some(Ok(Marker::Known(ids))) => Some(ids.split_ascii_whitespace()),
        _ => None,
    });
    Some(ids.flatten().collect())
}

/// `None`: no marker. An error: meant as one, and none.
fn marker(line: &str) -> Option<Result<Marker<'_>, String>> {
    let line = line.trim();
    let rest = line.strip_prefix(OPEN)?;
    let wrong = || {
        format!(
            "`{}` is no marker: markers are `{OPEN}begin ID{CLOSE}` and `{OPEN}end ID{CLOSE}`",
            line.chars().take(80).collect::<String>()
        )
    };
    let Some(inner) = rest.strip_suffix("-->") else {
        return Some(Err(wrong()));
    };
    let (word, ids) = inner.trim().split_once(' ').unwrap_or((inner.trim(), ""));
    let ids = ids.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let one = !ids.is_empty() && ids.chars().all(plain);
    Some(match word {
        "begin" if one => Ok(Marker::Begin(ids)),
        "end" if one => Ok(Marker::End(ids)),
        "written" => Ok(Marker::Known(ids)),
        _ => Err(wrong()),
    })
}

/// A region that has begun.
struct Open<'a> {
    id: &'a str,
    line: usize,
    /// Where its first marker begins and ends.
    from: usize,
    after: usize,
}

/// The regions of a document, and the prose behind the last.
fn parsed(document: &str) -> Result<(Vec<DocumentRegion<'_>>, &str), Damaged> {
    let mut pieces = Vec::new();
    let mut lines_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut open: Option<Open<'_>> = None;
    let (mut at, mut prose) = (0, 0);
    for (index, whole) in document.split_inclusive('\n').enumerate() {
        let (line, from) = (index + 1, at);
        at += whole.len();
        let damaged = |what: String| Damaged { line, what };
        match (marker(whole), open.take()) {
            (None, still) => open = still,
            (Some(Err(what)), _) => return Err(damaged(what)),
            (Some(Ok(Marker::Known(_))), Some(of)) if of.id == OVERVIEW => open = Some(of),
            (Some(Ok(Marker::Known(_))), _) => {
                let what = format!("this comment belongs into the region `{OVERVIEW}`");
                return Err(damaged(what));
            }
            (Some(Ok(Marker::Begin(id))), None) => {
                if let Some(first) = lines_of.insert(id, line) {
                    let what = format!(
                        "the region `{id}` is there already, from line {first}: take one out"
                    );
                    return Err(damaged(what));
                }
                open = Some(Open {
                    id,
                    line,
                    from,
                    after: at,
                });
            }
            (Some(Ok(Marker::Begin(id))), Some(of)) => {
                return Err(damaged(format!(
                    "`{id}` begins within `{}`, which began in line {} and has no end before here",
                    of.id, of.line
                )));
            }
            (Some(Ok(Marker::End(id))), Some(of)) if of.id == id => {
                pieces.push(DocumentRegion {
                    prose: &document[prose..of.from],
                    id,
                    begin: &document[of.from..of.after],
                    old: &document[of.after..from],
                    end: &document[from..at],
                });
                prose = at;
            }
            (Some(Ok(Marker::End(id))), Some(of)) => {
                return Err(damaged(format!(
                    "`{id}` ends here, but `{}` is what began, in line {}",
                    of.id, of.line
                )));
            }
            (Some(Ok(Marker::End(id))), None) => {
                return Err(damaged(format!(
                    "`{id}` ends here and did not begin: put `{OPEN}begin {id}{CLOSE}` before it, or take this line out"
                )));
            }
        }
    }
    if let Some(Open { id, line, .. }) = open {
        let mend = format!("put `{OPEN}end {id}{CLOSE}` after it");
        let what = format!("`{id}` begins here and does not end: {mend}");
        return Err(Damaged { line, what });
    }
    Ok((pieces, &document[prose..]))
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
