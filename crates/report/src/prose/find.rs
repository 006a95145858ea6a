//! Where the bound figures of a text stand.

use std::ops::Range;

const OPEN: &str = "<!--";
const CLOSE: &str = "-->";
/// Longest text that is taken for a figure: what is longer lacks its end.
const FIGURE_BYTES_MAX: usize = 1000;

/// A comment that binds something.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Mark {
    /// From here on figures are those of the run in this folder, as seen from the text's.
    Run {
        /// Line, from 1.
        line: usize,
        /// The folder.
        folder: String,
    },
    /// A figure.
    Figure {
        /// Line on which the figure begins, from 1.
        line: usize,
        /// What it is: the words between the braces.
        words: String,
        /// Where it stands.
        place: Range<usize>,
    },
}

/// A comment that cannot be understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Damaged {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong with it, and what would mend it.
    pub what: String,
}

/// The marks of a text, in their order.
pub fn marks(text: &str) -> Result<Vec<Mark>, Damaged> {
    let visible = without_code(text);
    let mut marks = Vec::new();
    let mut open: Option<(usize, String, usize)> = None;
    let mut at = 0;
    while let Some(found) = visible[at..].find(OPEN) {
        let start = at + found;
        let line = line_of(text, start);
        let damaged = |what: String| Damaged { line, what };
        let Some(length) = visible[start..].find(CLOSE) else {
            break;
        };
        let end = start + length + CLOSE.len();
        let inner = text[start + OPEN.len()..start + length].trim();
        at = end;
        let Some(words) = inner.strip_prefix("{{") else {
            continue;
        };
        let Some(words) = words.strip_suffix("}}") else {
            return Err(damaged(format!(
                "`{{{{{}` has no `}}}}` before its comment ends",
                words.chars().take(60).collect::<String>()
            )));
        };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        match (words.as_str(), open.take()) {
            ("/", Some((from, words, line))) => {
                if start - from > FIGURE_BYTES_MAX {
                    return Err(damaged(format!(
                        "`{{{{/}}}}` ends a figure of {} bytes, which began in line {line}: one is missing",
                        start - from
                    )));
                }
                let place = from..start;
                marks.push(Mark::Figure { line, words, place });
            }
            ("/", None) => {
                return Err(damaged(
                    "`{{/}}` ends a figure here, and none began".to_owned(),
                ));
            }
            (_, Some((_, before, line))) => {
                return Err(damaged(format!(
                    "`{{{{{before}}}}}` began in line {line} and has no `<!-- {{{{/}}}} -->` before here"
                )));
            }
            (words, None) => match words.strip_prefix("run ") {
                Some(folder) => marks.push(Mark::Run {
                    line,
                    folder: folder.trim_matches('"').to_owned(),
                }),
                None => open = Some((end, words.to_owned(), line_of(text, end))),
            },
        }
    }
    match open {
        None => Ok(marks),
        Some((_, words, line)) => Err(Damaged {
            line,
            what: format!("`{{{{{words}}}}}` has no `<!-- {{{{/}}}} -->` behind its figure"),
        }),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|b| **b == b'\n')
        .count()
        + 1
}

/// `text` with blanks for what is code (fenced, or between backticks on a line), byte for byte as long.
fn without_code(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        let own = ["```", "~~~"].into_iter().find(|f| start.starts_with(f));
        match (fence, own) {
            (None, None) => without_spans(line, &mut visible),
            (open, own) => {
                blank(line, &mut visible);
                fence = match (open, own) {
                    (Some(open), Some(own)) if open == own => None,
                    (Some(open), _) => Some(open),
                    (None, own) => own,
                };
            }
        }
    }
    visible
}

fn blank(text: &str, into: &mut String) {
    let blanks = text.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' });
    into.extend(blanks);
}

/// A line without what stands between as many backticks as before it.
fn without_spans(line: &str, into: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let (before, ticked) = rest.split_at(at);
        into.push_str(before);
        let ticks = ticked.len() - ticked.trim_start_matches('`').len();
        let (opening, behind) = ticked.split_at(ticks);
        let Some(end) = run_of(behind, ticks) else {
            into.push_str(opening);
            rest = behind;
            continue;
        };
        blank(&ticked[..ticks + end + ticks], into);
        rest = &behind[end + ticks..];
    }
    into.push_str(rest);
}

/// Where a run of exactly so many backticks begins.
fn run_of(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == ticks {
            return Some(start);
        }
        at = start + run;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn figures(text: &str) -> Vec<(usize, String, String)> {
        let marks = marks(text).expect("marks");
        let figure = |mark: &Mark| match mark {
            Mark::Figure { line, words, place } => {
                Some((*line, words.clone(), text[place.clone()].to_owned()))
            }
            Mark::Run { .. } => None,
        };
        marks.iter().filter_map(figure).collect()
    }

    #[test]
    fn figures_are_found_with_their_lines() {
        let text = "<!-- {{run a b}} -->\nIt is <!--{{rate\n ping}}-->31.6\nk<!-- {{/}} -->.\n<!-- a comment -->";
        let marks = marks(text).expect("marks");
        let run = Mark::Run {
            line: 1,
            folder: "a b".to_owned(),
        };
        assert_eq!(marks[0], run);
        assert_eq!(
            figures(text),
            [(3, "rate ping".to_owned(), "31.6\nk".to_owned())]
        );
    }

    #[test]
    fn what_stands_in_code_is_shown_and_binds_nothing() {
        for text in [
            "```text\n<!-- {{rate}} -->\n```\n",
            "~~~\n```\n<!-- {{rate}} -->\n~~~\n",
            "as `<!-- {{rate}} -->` or ``a ` <!-- {{/}} -->``\n",
        ] {
            assert_eq!(marks(text), Ok(Vec::new()), "{text}");
        }
        // A backtick by itself is none.
        let text = "a ` and <!--{{p50}}-->1 ms<!--{{/}}-->";
        assert_eq!(figures(text), [(1, "p50".to_owned(), "1 ms".to_owned())]);
    }

    #[test]
    fn what_is_cut_off_is_told_with_its_line() {
        for (text, line, told) in [
            ("\n<!-- {{rate -->", 2, "has no `}}`"),
            ("<!-- {{rate}} -->5", 1, "has no `<!-- {{/}} -->`"),
            ("\n\n5<!-- {{/}} -->", 3, "none began"),
            (
                "<!-- {{a}} -->5\n<!-- {{b}} -->6<!-- {{/}} -->",
                2,
                "`{{a}}` began in line 1",
            ),
        ] {
            let wrong = marks(text).expect_err(text);
            assert_eq!(wrong.line, line, "{text}");
            assert!(wrong.what.contains(told), "{}", wrong.what);
        }
        let long = format!("<!--{{{{a}}}}-->{}<!--{{{{/}}}}-->", "x".repeat(1001));
        assert!(marks(&long).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_its_places_rise(text in "([a-z` \\n]|```|<!--|-->|\\{\\{|\\}\\}|/|é){0,60}") {
            prop_assert_eq!(without_code(&text).len(), text.len());
            if let Ok(marks) = marks(&text) {
                let mut at = 0;
                for mark in marks {
                    if let Mark::Figure { place, .. } = mark {
                        prop_assert!(at <= place.start && place.start <= place.end);
                        let _ = &text[place.clone()];
                        at = place.end;
                    }
                }
            }
        }
    }
}
