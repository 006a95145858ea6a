//! Where the bound figures of a text stand.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

const OPEN: &str = "<!--";
const CLOSE: &str = "-->";
/// Longest text that is taken for a figure: what is longer lacks its end.
const FIGURE_BYTES_MAX: usize = 1000;

/// What a comment binds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MarkKind {
    /// From here on figures are those of the run in a folder.
    Run,
    /// Lines that stand so in another text.
    Excerpt,
    /// A figure.
    Figure,
}

/// A comment that binds something.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mark {
    /// What it binds.
    pub kind: MarkKind,
    /// Line on which the comment of a run or an excerpt begins, or the figure, from 1.
    pub line: usize,
    /// The folder or the other text, as seen from the text's folder; of a figure the words between the braces.
    pub words: String,
    /// Where the figure or the lines stand.
    pub place: Range<usize>,
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
    let mut reader = Reader {
        text,
        ..Reader::default()
    };
    for place in comments(text) {
        let line = line_of(text, place.start);
        let read = reader.comment(inner(text, &place), place);
        read.map_err(|what| Damaged { line, what })?;
    }
    reader.end()
}

/// A text without the comments around its bound figures: a line that begins with one would begin HTML. What stands in its code
/// stays.
pub fn without_marks(text: &str) -> String {
    let comments = comments(text).into_iter();
    let marks = comments.filter(|place| inner(text, place).starts_with("{{"));
    let nothing: Vec<_> = marks.map(|place| (place, String::new())).collect();
    super::replaced(text, &nothing)
}

/// Where the comments of a text stand that are not in code.
fn comments(text: &str) -> Vec<Range<usize>> {
    let visible = without_code(text);
    let mut comments = Vec::new();
    let mut at = 0;
    while let Some(found) = visible[at..].find(OPEN) {
        let start = at + found;
        let Some(length) = visible[start..].find(CLOSE) else {
            break;
        };
        at = start + length + CLOSE.len();
        comments.push(start..at);
    }
    comments
}

/// What a comment holds. `<!-->` and `<!--->` are comments, too: their end is within their beginning.
fn inner<'t>(text: &'t str, place: &Range<usize>) -> &'t str {
    let inner = text.get(place.start + OPEN.len()..place.end - CLOSE.len());
    inner.unwrap_or_default().trim()
}

#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    marks: Vec<Mark>,
    /// What has begun, and is to have an end: until then its place ends where it begins.
    figure: Option<Mark>,
    excerpt: Option<Mark>,
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
            let file = of.split_whitespace().next().unwrap_or_default();
            self.excerpt = Some(self.mark(MarkKind::Excerpt, at.start, file, at.end));
        } else if inner == "/excerpt"
            && let Some(mut mark) = self.excerpt.take()
        {
            mark.place.end = at.start;
            self.marks.push(mark);
        }
        Ok(())
    }

    /// What begins behind a comment.
    fn mark(&self, kind: MarkKind, line_at: usize, words: &str, from: usize) -> Mark {
        Mark {
            kind,
            line: line_of(self.text, line_at),
            words: words.to_owned(),
            place: from..from,
        }
    }

    fn braces(&mut self, words: String, at: Range<usize>) -> Result<(), String> {
        match (words.as_str(), self.figure.take()) {
            ("/", Some(mut mark)) => {
                mark.place.end = at.start;
                let length = mark.place.len();
                if length > FIGURE_BYTES_MAX {
                    return Err(format!(
                        "`{{{{/}}}}` ends a figure of {length} bytes, which began in line {}: one is missing",
                        mark.line
                    ));
                }
                self.marks.push(mark);
            }
            ("/", None) => return Err("`{{/}}` ends a figure here, and none began".to_owned()),
            (_, Some(mark)) => {
                return Err(format!(
                    "`{{{{{}}}}}` began in line {} and has no `<!-- {{{{/}}}} -->` before here",
                    mark.words, mark.line
                ));
            }
            (run, None) => match run.strip_prefix("run ") {
                Some(folder) => {
                    let folder = folder.trim_matches('"');
                    let mark = self.mark(MarkKind::Run, at.start, folder, at.end);
                    self.marks.push(mark);
                }
                None => self.figure = Some(self.mark(MarkKind::Figure, at.end, run, at.end)),
            },
        }
        Ok(())
    }

    fn end(self) -> Result<Vec<Mark>, Damaged> {
        let (line, what) = match (self.figure, self.excerpt) {
            (None, None) => return Ok(self.marks),
            (Some(Mark { words, line, .. }), _) => (
                line,
                format!("`{{{{{words}}}}}` has no `<!-- {{{{/}}}} -->` behind its figure"),
            ),
            (None, Some(Mark { words, line, .. })) => (
                line,
                format!("the excerpt of `{words}` has no `<!-- /excerpt -->`"),
            ),
        };
        Err(Damaged { line, what })
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

/// `text` with blanks for what is code, byte for byte as long.
fn without_code(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    let blank = |code: &str| -> String {
        let blanks = code.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' });
        blanks.collect()
    };
    for (event, place) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let is_code = matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_)));
        if is_code && place.start >= visible.len() {
            visible.push_str(&text[visible.len()..place.start]);
            visible.push_str(&blank(&text[place]));
        }
    }
    visible.push_str(&text[visible.len()..]);
    visible
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn figures(text: &str) -> Vec<(usize, String, String)> {
        let marks = marks(text).expect("marks");
        let figures = marks
            .into_iter()
            .filter(|mark| mark.kind == MarkKind::Figure);
        figures
            .map(|mark| (mark.line, mark.words, text[mark.place].to_owned()))
            .collect()
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
        let run = (marks[0].kind, marks[0].line, marks[0].words.as_str());
        assert_eq!(run, (MarkKind::Run, 1, "a b"));
        assert_eq!(
            figures(text),
            [(3, "rate ping".to_owned(), "31.6\nk".to_owned())]
        );
    }

    #[test]
    fn excerpts_are_found_with_the_text_that_they_are_of() {
        let text = "a\n<!-- excerpt: docs/a.md of b.toml, plan 7 -->\n| 1 |\n<!-- /excerpt -->\n";
        let marks_of = marks(text).expect("marks");
        let [mark] = &marks_of[..] else {
            panic!("{marks_of:?}");
        };
        let seen = (mark.kind, mark.line, mark.words.as_str());
        assert_eq!(seen, (MarkKind::Excerpt, 2, "docs/a.md"));
        assert_eq!(&text[mark.place.clone()], "\n| 1 |\n");
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
    fn figures_stand_in_their_sentences_without_the_comments_around_them() {
        let text =
            "at\n<!-- {{rate}} -->31 k<!-- {{/}} --> requests\n```md\n<!-- {{rate}} -->31 k\n```\n";
        let plain = "at\n31 k requests\n```md\n<!-- {{rate}} -->31 k\n```\n";
        assert_eq!(without_marks(text), plain);
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
                    if mark.kind == MarkKind::Figure {
                        let place = mark.place;
                        prop_assert!(at <= place.start && place.start <= place.end);
                        let _ = &text[place.clone()];
                        at = place.end;
                    }
                }
            }
        }
    }
}
