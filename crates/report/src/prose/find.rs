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
    /// Lines that stand so in another text.
    Excerpt {
        /// Line on which the comment above them begins, from 1.
        line: usize,
        /// The other text, as seen from this one's folder.
        file: String,
        /// Where they stand.
        place: Range<usize>,
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
    let mut reader = Reader {
        text,
        ..Reader::default()
    };
    let mut at = 0;
    while let Some(found) = visible[at..].find(OPEN) {
        let start = at + found;
        let Some(length) = visible[start..].find(CLOSE) else {
            break;
        };
        at = start + length + CLOSE.len();
        // `<!-->` and `<!--->` are comments, too: their end is within their beginning.
        let inner = text.get(start + OPEN.len()..start + length);
        let inner = inner.unwrap_or_default().trim();
        reader.comment(inner, start..at).map_err(|what| Damaged {
            line: line_of(text, start),
            what,
        })?;
    }
    reader.end()
}

/// What has begun, and is to have an end.
#[derive(Clone, Debug)]
struct Begun {
    /// Where the comment ends that begins it.
    from: usize,
    /// Its words, or the file that it is of.
    words: String,
    line: usize,
}

#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    marks: Vec<Mark>,
    figure: Option<Begun>,
    excerpt: Option<Begun>,
}

impl Reader<'_> {
    /// Takes the next comment, which stands at a place. An error is in words.
    fn comment(&mut self, inner: &str, at: Range<usize>) -> Result<(), String> {
        if let Some(words) = inner.strip_prefix("{{") {
            let Some(words) = words.strip_suffix("}}") else {
                let shown: String = words.chars().take(60).collect();
                return Err(format!(
                    "`{{{{{shown}` has no `}}}}` before its comment ends"
                ));
            };
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            return self.braces(words, at);
        }
        if let Some(of) = inner.strip_prefix("excerpt:") {
            self.excerpt = Some(Begun {
                from: at.end,
                words: of.split_whitespace().next().unwrap_or_default().to_owned(),
                line: line_of(self.text, at.start),
            });
        } else if let ("/excerpt", Some(begun)) = (inner, &self.excerpt) {
            self.marks.push(Mark::Excerpt {
                line: begun.line,
                file: begun.words.clone(),
                place: begun.from..at.start,
            });
            self.excerpt = None;
        }
        Ok(())
    }

    fn braces(&mut self, words: String, at: Range<usize>) -> Result<(), String> {
        match (words.as_str(), self.figure.take()) {
            ("/", Some(begun)) => {
                let length = at.start - begun.from;
                if length > FIGURE_BYTES_MAX {
                    return Err(format!(
                        "`{{{{/}}}}` ends a figure of {length} bytes, which began in line {}: one is missing",
                        begun.line
                    ));
                }
                self.marks.push(Mark::Figure {
                    line: begun.line,
                    words: begun.words,
                    place: begun.from..at.start,
                });
            }
            ("/", None) => return Err("`{{/}}` ends a figure here, and none began".to_owned()),
            (_, Some(begun)) => {
                return Err(format!(
                    "`{{{{{}}}}}` began in line {} and has no `<!-- {{{{/}}}} -->` before here",
                    begun.words, begun.line
                ));
            }
            (run, None) => match run.strip_prefix("run ") {
                Some(folder) => self.marks.push(Mark::Run {
                    line: line_of(self.text, at.start),
                    folder: folder.trim_matches('"').to_owned(),
                }),
                None => {
                    let line = line_of(self.text, at.end);
                    let from = at.end;
                    self.figure = Some(Begun { from, words, line });
                }
            },
        }
        Ok(())
    }

    fn end(self) -> Result<Vec<Mark>, Damaged> {
        let (line, what) = match (self.figure, self.excerpt) {
            (None, None) => return Ok(self.marks),
            (Some(Begun { words, line, .. }), _) => (
                line,
                format!("`{{{{{words}}}}}` has no `<!-- {{{{/}}}} -->` behind its figure"),
            ),
            (None, Some(Begun { words, line, .. })) => (
                line,
                format!("the excerpt of `{words}` has no `<!-- /excerpt -->`"),
            ),
        };
        Err(Damaged { line, what })
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
            Mark::Run { .. } | Mark::Excerpt { .. } => None,
        };
        marks.iter().filter_map(figure).collect()
    }

    #[test]
    fn a_comment_that_ends_within_its_beginning_ended_in_a_panic() {
        for empty in ["<!-->", "<!--->", "<!---->"] {
            let text = format!("{empty}<!-- {{{{rate}}}} -->7<!-- {{{{/}}}} -->{empty}");
            let seven = (1, "rate".to_owned(), "7".to_owned());
            assert_eq!(figures(&text), [seven], "{text}");
        }
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
    fn excerpts_are_found_with_the_text_that_they_are_of() {
        let text = "a\n<!-- excerpt: docs/a.md of b.toml, plan 7 -->\n| 1 |\n<!-- /excerpt -->\n";
        let marks_of = marks(text).expect("marks");
        let [Mark::Excerpt { line, file, place }] = &marks_of[..] else {
            panic!("{marks_of:?}");
        };
        assert_eq!((*line, file.as_str()), (2, "docs/a.md"));
        assert_eq!(&text[place.clone()], "\n| 1 |\n");
        let cut = marks("\n<!-- excerpt: docs/a.md -->").expect_err("cut off");
        assert_eq!(cut.line, 2);
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
