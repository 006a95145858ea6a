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

use super::page;

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

/// A piece of a document.
#[derive(Debug, PartialEq)]
enum DocumentPart<'a> {
    /// The author's.
    Prose(&'a str),
    /// A region: its name, the marker lines as they are, what is between.
    Region(&'a str, &'a str, &'a str, &'a str),
}

enum Marker<'a> {
    Begin(&'a str),
    End(&'a str),
    Known(&'a str),
}

/// Brings `document` up to date with `regions`: those that are there are replaced, entries that have not been
/// written before are appended in the order given (newest last), everything else stays as it is.
pub fn written(document: &str, regions: &[Region]) -> Result<Written, Damaged> {
    let pieces = pieces(document)?;
    let present: BTreeSet<&str> = pieces.iter().filter_map(DocumentPart::id).collect();
    let (known, has_overview) = known(&pieces);
    let entries = in_order(regions);
    let mut seen = sorted_out(regions, &entries, &present, has_overview.then_some(&known));
    let listed: BTreeSet<&str> = known
        .iter()
        .copied()
        .chain(entries.iter().copied())
        .collect();
    let texts: BTreeMap<&str, String> = regions
        .iter()
        .map(|region| {
            let kept = with_rows_kept(region, &pieces, regions);
            (region.id.as_str(), body(&kept, &listed))
        })
        .collect();
    let newline = if document.contains("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let mut text = String::with_capacity(document.len() * 2);
    for piece in &pieces {
        match piece {
            DocumentPart::Prose(prose) => text.push_str(prose),
            DocumentPart::Region(id, begin, old, end) => {
                text.push_str(begin);
                match texts.get(id) {
                    Some(new) => {
                        let new = new.replace('\n', newline);
                        if new != *old {
                            seen.replaced.push((*id).to_owned());
                        }
                        text.push_str(&new);
                    }
                    // Of an entry that the history does not have: it is left as it is.
                    None => text.push_str(old),
                }
                text.push_str(end);
            }
        }
    }
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
        if is_present(entry) {
            continue;
        }
        let list = if before {
            &mut seen.left_out
        } else {
            &mut seen.added
        };
        list.push((*entry).to_owned());
    }
    seen
}

/// The entries of `regions`, each once.
fn in_order(regions: &[Region]) -> Vec<&str> {
    let mut entries: Vec<&str> = Vec::new();
    for entry in regions.iter().filter_map(|region| region.entry.as_deref()) {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

/// The overview with the rows of entries that stand in the document and are known nowhere else; other regions as they are.
fn with_rows_kept(region: &Region, pieces: &[DocumentPart<'_>], regions: &[Region]) -> Region {
    let old = pieces.iter().find_map(|piece| match piece {
        DocumentPart::Region(OVERVIEW, _, old, _) if region.entry.is_none() => Some(*old),
        _ => None,
    });
    let Some(old) = old else {
        return region.clone();
    };
    let is_known = |id: &str| regions.iter().any(|region| region.id == id);
    let headings = pieces.iter().filter_map(|piece| match piece {
        DocumentPart::Region(id, _, text, _) if !is_known(id) => {
            let mut headings = text.lines().filter_map(|line| line.strip_prefix("## "));
            headings.next()
        }
        _ => None,
    });
    let headings: Vec<&str> = headings.map(str::trim_end).collect();
    Region {
        text: page::with_rows_kept(&region.text, old, &headings),
        ..region.clone()
    }
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
    if !text.is_empty() {
        if !text.ends_with('\n') {
            text.push_str(newline);
        }
        if !text.ends_with(&format!("{newline}{newline}")) {
            text.push_str(newline);
        }
    }
    let id = &region.id;
    let block = format!("{OPEN}begin {id}{CLOSE}\n{body}{OPEN}end {id}{CLOSE}\n");
    text.push_str(&block.replace('\n', newline));
}

impl<'a> DocumentPart<'a> {
    fn id(&self) -> Option<&'a str> {
        match self {
            DocumentPart::Prose(_) => None,
            DocumentPart::Region(id, ..) => Some(id),
        }
    }
}

/// The entries that the overview lists as written, and whether it is there.
fn known<'a>(pieces: &[DocumentPart<'a>]) -> (BTreeSet<&'a str>, bool) {
    let overview = pieces.iter().find(|piece| piece.id() == Some(OVERVIEW));
    let Some(DocumentPart::Region(_, _, text, _)) = overview else {
        return (BTreeSet::new(), false);
    };
    let ids = text.lines().filter_map(|line| match marker(line) {
        Some(Ok(Marker::Known(ids))) => Some(ids.split_ascii_whitespace()),
        _ => None,
    });
    (ids.flatten().collect(), true)
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

fn pieces(document: &str) -> Result<Vec<DocumentPart<'_>>, Damaged> {
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
                pieces.push(DocumentPart::Prose(&document[prose..of.from]));
                let (begin, old) = (&document[of.from..of.after], &document[of.after..from]);
                pieces.push(DocumentPart::Region(id, begin, old, &document[from..at]));
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
    if let Some(of) = open {
        return Err(Damaged {
            line: of.line,
            what: format!(
                "`{}` begins here and does not end: put `{OPEN}end {}{CLOSE}` after it",
                of.id, of.id
            ),
        });
    }
    pieces.push(DocumentPart::Prose(&document[prose..]));
    Ok(pieces)
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
