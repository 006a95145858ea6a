//! From the view to bytes.

use std::collections::BTreeMap;

use minijinja::context;
use minijinja::value::{Serde, Value};
use prony_base::Untrusted;
use prony_findings::Verdict;
use prony_record::layout;
use serde::Serialize;

use crate::answer::{
    self, Answer, chart,
    ranking::{BY_RATE, By, Ranked, Ranking},
};
use crate::escape::{self, markdown};
use crate::lists::most;
use crate::notes::Note;
use crate::part::{Captioned, Part, plain};
use crate::plots::cells::{cpu, latency};
use crate::plots::{Picture, Plot};
use crate::site::outline;
use crate::table::Table;
use crate::templates::{fill, safe, svg, templates};
use crate::view::{self, ComputedRun, View};
use crate::why::Why;
use crate::{Rendered, Run, analysis, csv, search};

/// Renders a run. The same values give the same bytes.
pub fn render(run: &Run) -> Rendered {
    let computed = view::compute(run);
    Rendered {
        answer_txt: answer_text(&computed.view),
        document_md: document(&computed.view, &run.analysis),
        appendix_md: appendix(&computed.view),
        pictures: pictures(&computed.view),
        index_html: page(&computed.view, &run.analysis),
        summary_json: summary(run, &computed),
        summary_csv: csv::csv(&computed.cells),
        required: computed.required,
    }
}

/// The answer as a terminal shows it: the question, what was found, what could not be told.
fn answer_text(view: &View) -> String {
    let mut text = format!("{}\n", Untrusted(&view.title));
    if !view.question.is_empty() {
        text.push_str(&format!("{}\n", Untrusted(&view.question)));
    }
    text.push_str(&answer::text::text(&view.answer));
    text
}

/// One picture of a run as an SVG file of its own, light and dark: of the question with the most subjects that were measured, the first of
/// equals. Empty where nothing of it was measured.
pub fn plot_svg(run: &Run, plot: Plot) -> String {
    let picture = alone(run, plot).filter(Picture::has_marks);
    picture.map_or_else(String::new, |picture| svg(&templates(), &picture, true))
}

fn alone(run: &Run, plot: Plot) -> Option<Picture> {
    let cells = view::compute(run).cells;
    let questions = answer::questions(run, &cells).into_iter().flatten();
    let mut of = most(questions, |of| {
        let all = of.subjects.iter();
        all.filter(|(_, cell)| cell.rate_per_s.is_some()).count()
    })?;
    let mut picture = match plot {
        Plot::Rate => {
            // What is ranked by a time has a rate, too.
            if of.by.falls {
                let heading = "rate a second";
                of.by = By { heading, ..BY_RATE };
            }
            chart::picture(&Ranking::from_question(&of)?)
        }
        Plot::Latency => search::curve(&of.subjects).unwrap_or_else(|| latency(&of.subjects)),
        Plot::Cpu => cpu(&of.subjects),
    };
    picture.id = "alone".to_owned();
    picture.title = format!(
        "{}: {}",
        of.title,
        match plot {
            Plot::Rate => of.by.heading.to_owned(),
            Plot::Latency | Plot::Cpu => picture.title,
        }
    );
    Some(picture)
}

fn page(view: &View, analysis: &str) -> String {
    let (own_answer, analysis) = analysis::parted(analysis);
    let mut view = view.clone();
    for sentence in view.answer.sentences_mut() {
        *sentence = escape::tied(sentence);
    }
    let environment = templates();
    let pictures = |pictures: &[Picture]| -> Vec<Value> {
        pictures
            .iter()
            .map(|picture| safe(svg(&environment, picture, false)))
            .collect()
    };
    let charts = pictures(&view.charts);
    let drawn: Vec<Vec<Value>> = view.parts.iter().map(|p| pictures(&p.pictures)).collect();
    let flames = view.why.as_ref().map_or_else(Vec::new, Why::addresses);
    let flames: Vec<Value> = flames.into_iter().map(safe).collect();
    let style = safe(concat!(
        include_str!("templates/base.css"),
        include_str!("templates/page.css"),
        include_str!("templates/plot.css")
    ));
    fill(
        &environment,
        "page.html",
        context! {
            v => Value::from(Serde(&view)),
            title => &view.title,
            generator => format!("prony {}", view.version),
            own_answer => safe(analysis::page(own_answer)),
            analysis => safe(analysis::page(analysis)),
            charts, drawn, flames, style,
        },
    )
}

/// Pictures of one heading that the document shows; the others are in the appendix.
const SHOWN_MAX: usize = 2;
/// Rows of a table of the document that is not folded.
const ROWS_MAX: usize = 30;
/// Parts from which on a document lists them.
const CONTENTS_MIN: usize = 4;

fn document(view: &View, analysis: &str) -> String {
    let (own_answer, analysis) = analysis::parted(analysis);
    let brief = |part: &Part| {
        let tables = part.tables.iter().filter(|t| !t.table.is_details());
        let tables = tables.flat_map(in_brief).collect();
        let is_listed = |is: fn(&Table) -> bool| part.tables.iter().any(|t| is(&t.table));
        let wider = match (part.is_group, is_listed(Table::is_details)) {
            (true, _) => "",
            (false, true) => "Another table, and all columns",
            (false, false) if is_listed(Table::has_more) => "More columns",
            _ => "",
        };
        let shown = part.pictures.len().min(SHOWN_MAX);
        section(part, &part.pictures[..shown], tables, wider)
    };
    let rankings = view.answer.rankings.iter().zip(&view.charts);
    let threads = view.why.iter().filter_map(|why| why.threads.as_ref());
    // What stands before the parts has its headings, too.
    let mut before = format!(
        "# {}\n\n## Short answer\n\n{own_answer}\n\n",
        markdown(&view.title)
    );
    if !analysis.is_empty() {
        before.push_str(&format!("## Analysis\n\n{analysis}"));
    }
    let mut taken = BTreeMap::new();
    for heading in outline::outline("", &before).headings {
        outline::anchor(&heading.text, &mut taken);
    }
    let anchor = |part: &Part| outline::anchor(&part.title, &mut taken);
    let anchors: Vec<String> = view.parts.iter().map(anchor).collect();
    let values = context! {
        v => Value::from(Serde(view)),
        own_answer => safe(own_answer),
        analysis => safe(analysis),
        is_listed => anchors.len() >= CONTENTS_MIN,
        anchors => anchors.into_iter().map(safe).collect::<Vec<_>>(),
        rankings => rankings.map(ranking).collect::<Vec<_>>(),
        parts => view.parts.iter().map(brief).collect::<Vec<_>>(),
        not_run => view.not_run_part.iter().map(brief).collect::<Vec<_>>(),
        threads => threads.flat_map(in_brief).collect::<Vec<_>>(),
        appendix => safe(layout::APPENDIX),
    };
    let templates = templates();
    let body = safe(fill(&templates, "document.md", values));
    // Of those whose mark stands in a wider table the appendix tells.
    let values = context! { body, notes => Value::from(Serde(&view.notes)), appendix => safe(layout::APPENDIX) };
    fill(&templates, "footnotes.md", values)
}

/// All that the document leaves out.
fn appendix(view: &View) -> String {
    let part = |part: &Part, pictures: &[Picture], is_shown: fn(&Table) -> bool| {
        let tables = part.tables.iter().filter(|t| is_shown(&t.table));
        let tables = tables.map(|t| captioned(t, &t.table, false)).collect();
        section(part, pictures, tables, "")
    };
    // What the document has of a part stands there alone.
    let rest = |of: &Part| {
        let pictures = of.pictures.get(SHOWN_MAX..).unwrap_or_default();
        let tables = of.tables.clone();
        let has_more = !pictures.is_empty() || tables.iter().any(|t| t.table.has_more());
        let title = of.title.clone();
        let rest = Part {
            title,
            tables,
            ..Part::default()
        };
        has_more.then(|| part(&rest, pictures, Table::has_more))
    };
    let charts = view.charts.iter().skip(view.answer.rankings.len());
    let more = view.answer.more.iter().zip(charts).map(ranking);
    let threads = view.why.iter().filter_map(|why| why.threads.as_ref());
    let threads = threads.map(|of| Part {
        title: "Threads of the profiles".to_owned(),
        tables: vec![plain(of.table.clone())],
        ..Part::default()
    });
    let about = threads.chain(view.about.iter().cloned());
    let about = about.map(|of| part(&of, &[], |_| true));
    let parts = view.parts.iter().filter_map(rest).chain(about);
    let values = context! {
        v => Value::from(Serde(view)),
        document => safe(layout::DOCUMENT),
        rankings => more.collect::<Vec<_>>(),
        parts => parts.collect::<Vec<_>>(),
        codes => safe(codes(&view.notes)),
    };
    fill(&templates(), "appendix.md", values)
}

/// A section with what is shown of its pictures and tables; `wider` says what more of it the appendix has.
fn section(part: &Part, pictures: &[Picture], tables: Vec<Value>, wider: &str) -> Value {
    context! {
        pictures => pictures.iter().map(|of| link(of, &part.title)).collect::<Vec<_>>(),
        tables, wider,
        ..Value::from(Serde(part))
    }
}

/// A ranking as a table, with its picture.
fn ranking((of, chart): (&Ranking, &Picture)) -> Value {
    let compared = markdown(&of.compared);
    let row = |row: &Ranked| {
        let place = row.place.map_or_else(String::new, String::from);
        let texts = [&row.name, &row.value, &row.beside].map(|text| markdown(text));
        let [name, value, beside] = texts;
        [place, name, value, beside]
    };
    let out = of.left_out.iter();
    let out = out.map(|of| markdown(&format!("{} ({})", of.name, of.why)));
    context! {
        title => &of.title,
        chart => link(chart, if of.is_named_in_title() { "" } else { &of.metric }),
        table => safe(crate::markdown::filled(["", "", &of.metric, &compared], 0..0, of.rows.iter().map(row))),
        left_out => safe(out.collect::<Vec<_>>().join("; ")),
    }
}

/// As the document shows it, in as many tables as it is wide.
fn in_brief(table: &Captioned) -> Vec<Value> {
    let parts = table.table.brief();
    let is_long = table.table.rows.len() > ROWS_MAX;
    let parts = parts.iter().map(|part| captioned(table, part, is_long));
    parts.collect()
}

fn captioned(table: &Captioned, shown: &Table, is_long: bool) -> Value {
    context! {
        caption => &table.caption,
        text => safe(crate::markdown::table(shown)),
        is_long,
        rows => shown.rows.len(),
    }
}

/// A picture as a Markdown link to it.
fn link(picture: &Picture, heading: &str) -> Value {
    let alt = [&*picture.title, heading].join(": ");
    let alt = markdown(alt.trim_end_matches(": "));
    safe(format!("![{alt}]({})", file_of(picture)))
}

fn file_of(picture: &Picture) -> String {
    format!("{}/{}.svg", layout::PICTURES, picture.id)
}

/// Every picture of the document as a file of its own: its path in the run directory, and its text.
fn pictures(view: &View) -> Vec<(String, String)> {
    let environment = templates();
    let rankings = view.answer.rankings.iter().chain(&view.answer.more);
    let charts = rankings.map(|of| &of.metric).zip(&view.charts);
    let parts = view.parts.iter();
    let of_parts = parts.flat_map(|part| part.pictures.iter().map(|p| (&part.title, p)));
    let drawn = charts.chain(of_parts).map(|(heading, picture)| {
        let mut picture = picture.clone();
        picture.title = format!("{}: {heading}", picture.title);
        (file_of(&picture), svg(&environment, &picture, true))
    });
    let flames = view.why.iter().flat_map(Why::pictures);
    drawn.chain(flames).collect()
}

/// The findings by their notes.
fn codes(notes: &[Note]) -> String {
    let row = |note: &Note| {
        let cells = note.seen.iter().map(|seen| seen.cells.len());
        [
            format!("[^{}]", note.number),
            note.code.to_string(),
            note.title.to_owned(),
            view::severity_word(note.severity).to_owned(),
            cells.sum::<usize>().to_string(),
        ]
    };
    let head = ["note", "code", "finding", "severity", "cells"];
    crate::markdown::filled(head, 0..0, notes.iter().map(row))
}

fn summary(run: &Run, computed: &ComputedRun) -> String {
    #[derive(Serialize)]
    struct Summary<'a> {
        schema: u32,
        title: &'a str,
        question: &'a str,
        experiment_sha256: &'a str,
        seed: u64,
        blocks: u32,
        /// Of runs that are joined: how many.
        #[serde(skip_serializing_if = "Option::is_none")]
        runs: Option<u32>,
        quick: bool,
        reference: Option<&'a str>,
        verdict: Verdict,
        answer: &'a Answer,
        #[serde(flatten)]
        computed: &'a ComputedRun,
    }
    let summary = Summary {
        schema: prony_record::SCHEMA,
        title: &run.plan.title,
        question: &run.plan.question,
        experiment_sha256: &run.plan.experiment_sha256,
        seed: run.plan.seed,
        blocks: run.plan.blocks,
        runs: run.plan.joined.values().max().map(|last| last + 1),
        quick: run.plan.quick,
        reference: run.plan.reference.as_deref(),
        verdict: computed.view.verdict,
        answer: &computed.view.answer,
        computed,
    };
    let json = serde_json::to_string_pretty(&summary).expect("plain values with string keys");
    json + "\n"
}
