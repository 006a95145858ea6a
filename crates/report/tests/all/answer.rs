//! The answer on a terminal, in Markdown and on the page is one value: each is read back into it.

use prony_report::{Rendered, Run, render};
use serde_json::Value;

use crate::fixture;

/// A row as it is shown: place, name, figure, what it is beside the baseline.
type Row = [String; 4];

/// A ranking as it is shown.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    title: String,
    /// The metric, and the head of the last column.
    heads: [String; 2],
    rows: Vec<Row>,
    left_out: String,
}

const RUNS: [fn() -> Run; 9] = [
    fixture::quick,
    fixture::full,
    fixture::failures,
    fixture::open::rates,
    || fixture::searches::searches(6),
    || fixture::programs::runtime(6),
    || fixture::services::rows(6, None, &[64]),
    || fixture::clients::requests(6),
    || fixture::clients::downloads(6),
];

fn text(of: &Value) -> String {
    of.as_str().map_or_else(|| of.to_string(), str::to_owned)
}

/// The rankings that the summary holds.
fn rankings(rendered: &Rendered) -> Vec<Shown> {
    let summary: Value = serde_json::from_str(&rendered.summary_json).expect("JSON");
    let all = summary["answer"]["rankings"].as_array().expect("rankings");
    let row = |row: &Value| {
        let place = row["place"]
            .as_str()
            .map_or_else(String::new, str::to_owned);
        [
            place,
            text(&row["name"]),
            text(&row["value"]),
            text(&row["beside"]),
        ]
    };
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let ranking = |of: &Value| Shown {
        title: text(&of["title"]),
        heads: [text(&of["metric"]), text(&of["compared"])],
        rows: list(&of["rows"]).iter().map(row).collect(),
        left_out: list(&of["left_out"])
            .iter()
            .map(|out| format!("{} ({})", text(&out["name"]), text(&out["why"])))
            .collect::<Vec<_>>()
            .join("; "),
    };
    all.iter().map(ranking).collect()
}

fn sentences(rendered: &Rendered) -> Vec<String> {
    let summary: Value = serde_json::from_str(&rendered.summary_json).expect("JSON");
    let of = |part: &str| {
        summary["answer"][part]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let parts = ["leads", "sure", "limits", "required"]
        .into_iter()
        .flat_map(of);
    parts.map(|sentence| text(&sentence)).collect()
}

/// The fields of a line of the terminal: two spaces or more part them, and the first seven columns are the places'.
fn fields(line: &str) -> Row {
    let chars: Vec<char> = line.chars().collect();
    let (place, rest) = chars.split_at(chars.len().min(7));
    let whole: String = rest.iter().collect();
    let parts = whole
        .split("  ")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts
        .filter(|part| part.chars().any(|c| c != '█'))
        .collect();
    let at = |n: usize| {
        parts
            .get(n)
            .map_or_else(String::new, |part| (*part).to_owned())
    };
    let place: String = place.iter().collect();
    [place.trim().to_owned(), at(0), at(1), at(2)]
}

/// What a terminal shows: blocks of lines, parted by empty ones.
fn of_terminal(answer: &str) -> Vec<Shown> {
    let blocks = answer.split("\n\n").skip(1);
    let block = |block: &str| {
        let mut shown = Shown::default();
        for line in block.lines() {
            let [place, first, second, third] = fields(line);
            let join = |text: &mut String, more: &str| {
                let between = if text.is_empty() { "" } else { " " };
                text.push_str(&format!("{between}{more}"));
            };
            if let Some(out) = line.strip_prefix("       left out: ") {
                shown.left_out = out.to_owned();
            } else if !shown.left_out.is_empty() {
                join(&mut shown.left_out, line.trim());
            } else if shown.heads[0].is_empty() && line.starts_with("        ") {
                shown.heads = [first, second];
            } else if shown.heads[0].is_empty() {
                join(&mut shown.title, &first);
                shown.heads = [second, third];
            } else if line.starts_with("       and ") && line.ends_with(" more") {
            } else if second.is_empty() {
                // Of a long name the rest.
                let row = shown.rows.last_mut().expect("a row before it");
                join(&mut row[1], &first);
            } else {
                shown.rows.push([place, first, second, third]);
            }
        }
        shown
    };
    blocks.map(block).collect()
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' {
            chars.next().unwrap_or(c)
        } else {
            c
        });
    }
    plain
}

/// A row with the columns that a table in which nothing stands in them does not have: the places, and what each is beside another.
fn filled_up(mut cells: Vec<String>, with_places: bool) -> Row {
    if !with_places {
        cells.insert(0, String::new());
    }
    cells.resize(4, String::new());
    cells.try_into().expect("four columns")
}

/// What Markdown shows below its first heading and before the next.
fn of_markdown(document: &str) -> Vec<Shown> {
    let (_, answer) = document.split_once("## Short answer").expect("an answer");
    let answer = answer.split("\n## ").next().unwrap_or_default();
    let mut all: Vec<Shown> = Vec::new();
    let mut with_places = false;
    for line in answer.lines() {
        if let Some(title) = line
            .strip_prefix("**")
            .and_then(|rest| rest.strip_suffix("**"))
        {
            all.push(Shown {
                title: unescaped(title),
                ..Shown::default()
            });
            continue;
        }
        let Some(shown) = all.last_mut() else {
            continue;
        };
        if let Some(out) = line.strip_prefix("Left out: ") {
            shown.left_out = unescaped(out.trim_end_matches('.'));
        } else if line.starts_with("| ") && !line.starts_with("| ---") {
            let cells: Vec<String> = line
                .trim_matches('|')
                .split(" | ")
                .map(|of| unescaped(of.trim()))
                .collect();
            if shown.heads[0].is_empty() {
                with_places = cells[1].is_empty();
            }
            let row = filled_up(cells, with_places);
            match shown.heads[0].is_empty() {
                true => shown.heads = [row[2].clone(), row[3].clone()],
                false => shown.rows.push(row),
            }
        }
    }
    all
}

fn without_entities(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ];
    pairs
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The text between each `open` and the `close` after it; `open` lacks its `>`.
fn between<'t>(html: &'t str, open: &str, close: &str) -> Vec<&'t str> {
    let parts = html.split(open).skip(1);
    let inner = parts.filter_map(|part| part.split_once('>')?.1.split(close).next());
    inner.collect()
}

/// What the page shows in its answer, the foremost rankings.
fn of_page(page: &str) -> Vec<Shown> {
    let answer = between(page, "<section class=\"answer\"", "</section>")[0];
    let answer = answer
        .split("<summary>The other rankings")
        .next()
        .unwrap_or_default();
    let shown = |part: &str| {
        let (table, after) = part.split_once("</table>").unwrap_or((part, ""));
        let cells = |row: &str| -> Vec<String> {
            let cells = row.split("<t").skip(1);
            let inner = cells.filter_map(|cell| cell.split_once('>')?.1.split("</t").next());
            inner.map(without_entities).collect()
        };
        let mut rows = between(table, "<tr", "</tr>").into_iter().map(cells);
        let head = rows.next().expect("a head");
        let with_places = head[1].is_empty();
        let head = filled_up(head, with_places);
        let out = after.split_once("Left out: ").map_or("", |of| of.1);
        let out = out.split(".</p>").next().unwrap_or_default();
        Shown {
            title: without_entities(between(table, "<caption", "</caption>")[0]),
            heads: [head[2].clone(), head[3].clone()],
            rows: rows.map(|row| filled_up(row, with_places)).collect(),
            left_out: without_entities(out),
        }
    };
    answer
        .split("<table class=\"ranking\">")
        .skip(1)
        .map(shown)
        .collect()
}

#[test]
fn each_rendering_of_an_answer_is_read_back_into_it() {
    for run in RUNS {
        let run = run();
        let rendered = render(&run);
        let all = rankings(&rendered);
        assert!(!all.is_empty(), "{}", run.plan.title);
        assert_eq!(
            of_markdown(&rendered.document_md),
            all,
            "{}",
            rendered.document_md
        );
        assert_eq!(of_page(&rendered.index_html), all);
        let terminal = of_terminal(&rendered.answer_txt);
        assert_eq!(terminal.len(), all.len(), "{}", rendered.answer_txt);
        for (seen, whole) in terminal.iter().zip(&all) {
            // Of many the first ones are shown, and the baseline.
            let is_kept = |row: &&Row| whole.rows.contains(*row);
            assert_eq!(
                seen.rows.len(),
                seen.rows.iter().filter(is_kept).count(),
                "{}",
                rendered.answer_txt
            );
            let is_cut = whole.rows.len() > seen.rows.len();
            assert!(!is_cut || seen.rows.len() >= 4, "{}", rendered.answer_txt);
            assert_eq!(
                (&seen.title, &seen.heads, &seen.left_out),
                (&whole.title, &whole.heads, &whole.left_out)
            );
        }
    }
}

#[test]
fn an_answer_is_read_at_a_glance() {
    for run in RUNS {
        let rendered = render(&run());
        let said = sentences(&rendered);
        let words = |text: &String| text.split_whitespace().count();
        assert!(said.iter().map(words).sum::<usize>() <= 80, "{said:#?}");
        for sentence in &said {
            assert!(words(sentence) <= 30, "{sentence}");
        }
        for block in rendered.answer_txt.split("\n\n").skip(1) {
            assert!(block.lines().count() <= 14, "{block}");
            for line in block.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}

/// Without tables, headings, links to pictures, lists of findings and what an author wrote.
fn sentences_of(document: &str) -> Vec<String> {
    let is_text = |line: &&str| {
        let other = [
            "|",
            "#",
            ">",
            "!",
            "`",
            "- **",
            "[^",
            "Contents:",
            "Left out:",
        ];
        !other.iter().any(|start| line.starts_with(start))
    };
    // A point within a number or a name ends no sentence.
    let sentences = |line: &str| -> Vec<String> {
        let line = [".", "!", "?"].iter().fold(line.to_owned(), |line, end| {
            line.replace(&format!("{end} "), &format!("{end}\n"))
        });
        line.lines().map(str::to_owned).collect()
    };
    document
        .lines()
        .filter(is_text)
        .flat_map(sentences)
        .collect()
}

#[test]
fn no_sentence_of_a_document_has_more_than_thirty_words() {
    for run in RUNS {
        let rendered = render(&run());
        for text in sentences_of(&rendered.document_md) {
            let words = text.split_whitespace();
            let words = words.filter(|word| word.chars().any(char::is_alphanumeric));
            assert!(words.count() <= 30, "{text}");
        }
    }
}
