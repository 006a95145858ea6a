//! From the view to bytes.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior, context};
use prony_base::Untrusted;
use prony_record::layout;
use serde::Serialize;

use crate::answer::{
    self, Answer,
    ranking::{Ranked, Ranking},
};
use crate::figures::{CellFigures, measured};
use crate::groups::groups;
use crate::lists::most;
use crate::notes::{Note, Seen};
use crate::part::{Captioned, Part};
use crate::plots::{Picture, Plot, picture};
use crate::programs::{self, across::Across};
use crate::site::outline;
use crate::style;
use crate::table::Table;
use crate::view::{self, ComputedRun, View};
use crate::why::{Profile, Why};
use crate::{Rendered, Run, analysis, clients, csv, escape, markdown, rows, search};

/// Places that a note in Markdown lists; the page has them all.
const SEEN_MAX: usize = 6;
/// Cells that one place of a note lists.
const CELLS_MAX: usize = 12;

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
    text.push_str(&answer::text::of(&view.answer));
    text
}

/// One picture of a run as an SVG file of its own, light and dark: of the group of cells
/// (workload and connections, or size of a program's work) with the most figures, the first of
/// equals. Empty where the plan has no cell; of programs alone, and of tables with rows, there is only
/// [`Plot::Rate`], and of clients none of latencies.
pub fn plot_svg(run: &Run, plot: Plot) -> String {
    alone(run, plot).map_or_else(String::new, |(_, svg)| svg)
}

/// The same with its title; `None` where there is none.
pub fn alone(run: &Run, plot: Plot) -> Option<(String, String)> {
    let cells = view::compute(run).cells;
    let groups = groups(&cells).into_iter();
    let groups = groups.map(|group| (group.cells(&cells), group));
    let of = match most(groups, |(own, _)| measured(own)) {
        Some((own, group)) => {
            let mut picture = picture(plot, "alone", &own);
            picture.title = format!("{}: {}, {}", picture.title, group.workload, group.size());
            Some(picture)
        }
        None => {
            let rates = programs::rates(run, &cells).filter(|_| plot == Plot::Rate);
            let of_rows = || rows::alone(run, &cells).filter(|_| plot == Plot::Rate);
            let rates = rates.or_else(of_rows);
            let rates = rates.or_else(|| search::alone(run, &cells, plot));
            rates.or_else(|| clients::alone(run, &cells, plot))
        }
    };
    of.map(|picture| (picture.title.clone(), svg(&templates(), &picture, true)))
}

/// The templates. They are part of the program: that they are sound is for its tests to show.
pub fn templates() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build();
    environment.set_syntax(syntax.expect("a sound syntax"));
    escape::install(&mut environment);
    for (name, source) in [
        ("document.md", include_str!("templates/document.md")),
        ("appendix.md", include_str!("templates/appendix.md")),
        ("page.html", include_str!("templates/page.html")),
        ("load.html", include_str!("templates/load.html")),
        ("plot.svg", include_str!("templates/plot.svg")),
        ("junit.xml", include_str!("templates/junit.xml")),
    ] {
        environment
            .add_template(name, source)
            .expect("a sound template");
    }
    environment
}

/// Fills one of [`templates`] in.
pub fn fill(environment: &Environment<'_>, name: &str, values: Value) -> String {
    let template = environment
        .get_template(name)
        .expect("a template of this program");
    template
        .render(values)
        .expect("a template that fits the view")
}

/// Text that goes through as it is.
pub fn safe(text: String) -> Value {
    Value::from_safe_string(text)
}

/// A picture within a page, or `alone`.
pub fn svg(environment: &Environment<'_>, picture: &Picture, alone: bool) -> String {
    let css = concat!(
        include_str!("templates/plot.css"),
        include_str!("templates/series.css")
    );
    let style = safe(match alone {
        true => style::without_variables(css),
        false => String::new(),
    });
    fill(
        environment,
        "plot.svg",
        context! { p => Value::from(Serde(picture)), alone, style },
    )
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
    let series = match view.parts.iter().all(|part| part.is_group) {
        true => "",
        false => include_str!("templates/series.css"),
    };
    let style = safe(format!(
        "{}{}{series}",
        include_str!("templates/page.css"),
        include_str!("templates/plot.css")
    ));
    fill(
        &environment,
        "page.html",
        context! {
            v => Value::from(Serde(&view)),
            own_answer => safe(analysis::page(own_answer)),
            analysis => safe(analysis::page(analysis)),
            charts, drawn, flames, style,
        },
    )
}

/// Pictures of one heading that the document shows; the others are in the appendix.
const SHOWN_MAX: usize = 2;

fn document(view: &View, analysis: &str) -> String {
    let (own_answer, analysis) = analysis::parted(analysis);
    let part = |part: &Part| {
        let tables = part.tables.iter();
        let tables = tables.filter(|t| !t.table.is_details());
        let tables = tables.flat_map(in_brief);
        let has_more = !part.is_group && part.tables.iter().any(|t| t.table.has_more());
        let has_tables = part.tables.iter().any(|t| t.table.is_details());
        let wider = match (has_more, has_tables) {
            (true, true) => format!(
                "Another table, and all columns: [{0}]({0}).",
                layout::APPENDIX
            ),
            (true, false) => format!("More columns: [{0}]({0}).", layout::APPENDIX),
            (false, _) => String::new(),
        };
        context! {
            request => safe(escape::markdown_code(&part.request)),
            pictures => links(part.pictures.iter().take(SHOWN_MAX), &part.title),
            tables => tables.collect::<Vec<_>>(),
            wider => safe(wider),
        }
    };
    let rankings = view.answer.rankings.iter().zip(&view.charts);
    let title = escape::markdown(&view.title);
    let mut before = format!("# {title}\n\n## Short answer\n\n{own_answer}\n\n");
    if !analysis.is_empty() {
        before.push_str(&format!("## Analysis\n\n{analysis}"));
    }
    let values = context! {
        v => Value::from(Serde(view)),
        own_answer => safe(own_answer.to_owned()),
        analysis => safe(analysis.to_owned()),
        contents => safe(contents(view, &before)),
        rankings => rankings.map(|(of, chart)| ranking(of, Some(chart))).collect::<Vec<_>>(),
        parts => view.parts.iter().map(part).collect::<Vec<_>>(),
        flames => view.why.as_ref().map_or_else(Vec::new, flame_links),
        threads => threads_of(view).map_or_else(Vec::new, in_brief),
        not_run => safe(not_run(view)),
        of_run => view.notes.iter().filter(|note| is_of_run(note)).map(|note| safe(in_a_line(note))).collect::<Vec<_>>(),
        appendix => safe(layout::APPENDIX.to_owned()),
    };
    let mut text = fill(&templates(), "document.md", values);
    // Of those whose mark stands in a wider table the appendix tells.
    let marked = |note: &&Note| text.contains(&format!("[^{}]", note.number));
    let notes: Vec<String> = view.notes.iter().filter(marked).map(in_short).collect();
    for note in notes {
        text.push_str(&format!("\n{note}\n"));
    }
    text
}

/// Rows of a table of the document that is not folded.
const ROWS_MAX: usize = 30;
/// Parts from which on a document lists them.
const CONTENTS_MIN: usize = 4;

/// Links to the parts; empty where there are few. What stands `before` them has its headings, too.
fn contents(view: &View, before: &str) -> String {
    if view.parts.len() < CONTENTS_MIN {
        return String::new();
    }
    let mut taken = BTreeMap::new();
    for heading in outline::outline("", before).headings {
        outline::anchor(&heading.text, &mut taken);
    }
    let link = |part: &Part| {
        let anchor = outline::anchor(&part.title, &mut taken);
        format!("[{}](#{anchor})", escape::markdown(&part.title))
    };
    view.parts.iter().map(link).collect::<Vec<_>>().join(" · ")
}

/// All that the document leaves out.
fn appendix(view: &View) -> String {
    let facts = |facts: &[crate::sections::Fact]| {
        let row = |fact: &crate::sections::Fact| {
            vec![escape::markdown(&fact.name), escape::markdown(&fact.value)]
        };
        facts.iter().map(row).collect::<Vec<_>>()
    };
    let part = |part: &Part| {
        let tables = part.tables.iter().filter(|t| t.table.has_more());
        let tables = tables.map(|t| captioned(t, &t.table));
        context! {
            pictures => links(part.pictures.iter().skip(SHOWN_MAX), &part.title),
            tables => tables.collect::<Vec<_>>(),
        }
    };
    let cross_check = view.cross_check.as_ref();
    let more = view.answer.more.iter().map(|of| ranking(of, None));
    let values = context! {
        v => Value::from(Serde(view)),
        document => safe(layout::DOCUMENT.to_owned()),
        rankings => more.collect::<Vec<_>>(),
        parts => view.parts.iter().map(part).collect::<Vec<_>>(),
        threads => threads_of(view).map(|t| captioned(t, &t.table)),
        cross_check => cross_check.map(|table| safe(markdown::table(table))),
        environment => safe(markdown::words(&["", ""], &facts(&view.environment))),
        subjects => safe(subjects(view)),
        codes => safe(codes(view)),
        notes => view.notes.iter().map(|note| safe(footnote(note))).collect::<Vec<_>>(),
        command => safe(escape::markdown_block([view.repeat.command.as_str()], "")),
        repeat => view.repeat.facts.iter().map(|fact| {
            safe(format!("{}: {}", escape::markdown(&fact.name), escape::markdown_code(&fact.value)))
        }).collect::<Vec<_>>(),
    };
    fill(&templates(), "appendix.md", values)
}

/// A ranking as a table, with its picture.
fn ranking(of: &Ranking, chart: Option<&Picture>) -> Value {
    let compared = escape::markdown(&of.compared);
    let row = |row: &Ranked| {
        let place = row
            .place
            .map_or_else(String::new, |place| place.to_string());
        let texts = [&row.name, &row.value, &row.beside].map(|text| escape::markdown(text));
        [vec![place], texts.into()].concat()
    };
    let rows: Vec<Vec<String>> = of.rows.iter().map(row).collect();
    let out = of.left_out.iter();
    let out = out.map(|of| escape::markdown(&format!("{} ({})", of.name, of.why)));
    context! {
        title => &of.title,
        chart => chart.map(|chart| links(std::iter::once(chart), &of.metric)),
        table => safe(markdown::words(&["", "", &of.metric, &compared], &rows)),
        left_out => safe(out.collect::<Vec<_>>().join("; ")),
    }
}

/// As the document shows it, in as many tables as it is wide.
fn in_brief(table: &Captioned) -> Vec<Value> {
    let parts = table.table.brief();
    parts.iter().map(|part| captioned(table, part)).collect()
}

fn captioned(table: &Captioned, shown: &Table) -> Value {
    let rows = shown.rows.len();
    context! {
        caption => &table.caption,
        text => safe(markdown::table(shown)),
        is_long => rows > ROWS_MAX,
        rows,
    }
}

/// Pictures as Markdown links to them.
fn links<'a>(pictures: impl Iterator<Item = &'a Picture>, heading: &str) -> Vec<Value> {
    let link = |picture: &Picture| {
        let alt = escape::markdown(&format!("{}: {heading}", picture.title));
        safe(format!("![{alt}]({})", file_of(picture)))
    };
    pictures.map(link).collect()
}

/// The flame graph of each profile: shown, as a link, or nothing where there is none.
fn flame_links(why: &Why) -> Vec<Value> {
    let link = |profile: &Profile| {
        let alt = escape::markdown(&format!("Flame graph: {}", profile.cell));
        safe(match (profile.file.as_str(), profile.shown) {
            ("", _) => String::new(),
            (file, true) => format!("![{alt}]({file})"),
            (file, false) => format!("[Flame graph]({file})."),
        })
    };
    why.profiles.iter().map(link).collect()
}

fn threads_of(view: &View) -> Option<&Captioned> {
    view.why.as_ref()?.threads.as_ref()
}

fn file_of(picture: &Picture) -> String {
    format!("{}/{}.svg", layout::PICTURES, picture.id)
}

/// Every picture of the document as a file of its own: its path in the run directory, and its text.
fn pictures(view: &View) -> Vec<(String, String)> {
    let of_parts = drawn(view).map(|(path, _, svg)| (path, svg));
    let flames = view.why.iter().flat_map(Why::pictures);
    of_parts.chain(flames).collect()
}

/// The pictures of figures: path, title and text.
pub fn drawn(view: &View) -> impl Iterator<Item = (String, String, String)> {
    let environment = templates();
    let charts = view.charts.iter().zip(&view.answer.rankings);
    let charts = charts.map(|(picture, of)| (&of.metric, picture));
    let of_parts = view
        .parts
        .iter()
        .flat_map(|g| g.pictures.iter().map(|p| (&g.title, p)));
    charts.chain(of_parts).map(move |(heading, picture)| {
        let mut picture = picture.clone();
        picture.title = format!("{}: {heading}", picture.title);
        let text = svg(&environment, &picture, true);
        (file_of(&picture), picture.title, text)
    })
}

fn subjects(view: &View) -> String {
    let row = |s: &crate::sections::SubjectRow| {
        let words = [&s.id, &s.summary, &s.version, &s.threads].map(|text| escape::markdown(text));
        let mut row = Vec::from(words);
        row.push(escape::markdown_code(&s.source));
        row.push(escape::markdown_code(&s.build));
        row
    };
    let rows: Vec<Vec<String>> = view.subjects.iter().map(row).collect();
    markdown::words(
        &[
            "subject",
            "what it is",
            "version",
            "threads",
            "source",
            "build",
        ],
        &rows,
    )
}

fn not_run(view: &View) -> String {
    let row = |not: &crate::sections::NotRunRow| {
        vec![
            escape::markdown(&not.what),
            escape::markdown(&not.reason),
            escape::markdown_code(&not.remedy),
        ]
    };
    let rows: Vec<Vec<String>> = view.not_run.iter().map(row).collect();
    markdown::words(&["what", "why", "what would change it"], &rows)
}

fn codes(view: &View) -> String {
    let row = |note: &Note| {
        let cells = note.seen.iter().map(|seen| seen.cells.len()).sum::<usize>();
        vec![
            format!("[^{}]", note.number),
            note.code.to_string(),
            note.title.to_owned(),
            view::severity_word(note.severity).to_owned(),
            cells.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = view.notes.iter().map(row).collect();
    markdown::words(&["note", "code", "finding", "severity", "cells"], &rows)
}

/// A footnote that leaves its evidence to the appendix.
fn in_short(note: &Note) -> String {
    format!(
        "[^{}]: **{}, {}** ({}). {} What to do: {} Where: [{}]({}). More: `prony explain {}`",
        note.number,
        note.code,
        note.title,
        view::severity_word(note.severity),
        note.meaning,
        note.remedy,
        layout::APPENDIX,
        layout::APPENDIX,
        note.code
    )
}

/// Whether it is about the run, and stands at no figure.
fn is_of_run(note: &Note) -> bool {
    let mut cells = note.seen.iter().flat_map(|seen| &seen.cells);
    cells.all(|cell| cell.cell.is_empty())
}

fn in_a_line(note: &Note) -> String {
    let evidence = note
        .seen
        .iter()
        .flat_map(|seen| seen.evidence.iter().cloned());
    let evidence = evidence.collect::<Vec<_>>().join(" · ");
    format!(
        "**{}, {}** ({}). {} More: `prony explain {}`",
        note.code,
        note.title,
        escape::markdown(&evidence),
        note.meaning,
        note.code
    )
}

/// A footnote with its evidence.
fn footnote(note: &Note) -> String {
    let mut lines = vec![
        format!(
            "[^{}]: **{}, {}** ({}). {}",
            note.number,
            note.code,
            note.title,
            view::severity_word(note.severity),
            note.meaning
        ),
        String::new(),
        format!("    What to do: {}", note.remedy),
        String::new(),
    ];
    for seen in note.seen.iter().take(SEEN_MAX) {
        lines.push(format!(
            "    - {}: {}",
            cells_of(seen),
            escape::markdown(&seen.evidence.join(" · "))
        ));
        if !seen.lines.is_empty() {
            let printed = seen.lines.iter().map(String::as_str);
            lines.extend([String::new(), escape::markdown_block(printed, "      ")]);
        }
    }
    if note.seen.len() > SEEN_MAX {
        let rest = note.seen[SEEN_MAX..]
            .iter()
            .map(|seen| seen.cells.len())
            .sum::<usize>();
        lines.push(format!("    - and {rest} more, which `summary.json` lists"));
    }
    lines.push(String::new());
    lines.push(format!("    More: `prony explain {}`", note.code));
    lines.join("\n")
}

fn cells_of(seen: &Seen) -> String {
    let word = |cell: &crate::notes::SeenCell| {
        let name = match cell.cell.is_empty() {
            true => "the whole run".to_owned(),
            false => escape::markdown(&cell.cell),
        };
        if cell.blocks.is_empty() {
            name
        } else {
            format!("{name} ({})", cell.blocks)
        }
    };
    let mut words: Vec<String> = seen.cells.iter().take(CELLS_MAX).map(word).collect();
    if seen.cells.len() > CELLS_MAX {
        words.push(format!("{} more", seen.cells.len() - CELLS_MAX));
    }
    words.join("; ")
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
        verdict: prony_findings::Verdict,
        answer: &'a Answer,
        resolutions: Vec<crate::claims::Resolution>,
        cells: &'a [CellFigures],
        #[serde(skip_serializing_if = "Option::is_none")]
        programs: Option<&'a Across>,
        #[serde(skip_serializing_if = "Option::is_none")]
        clients: Option<Clients<'a>>,
        cross_checks: &'a [crate::figures::CrossCheck],
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        published: &'a [crate::published::Judged],
        findings: &'a [prony_findings::Finding],
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        required: &'a [crate::required::CellRequirement],
        not_run: &'a [crate::sections::NotRunRow],
    }
    #[derive(Serialize)]
    struct Clients<'a> {
        steps: &'a [crate::clients::steps::Step],
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
        resolutions: crate::claims::resolutions(&run.plan, &computed.cells),
        cells: &computed.cells,
        programs: computed.programs.as_ref(),
        clients: computed.steps.as_deref().map(|steps| Clients { steps }),
        cross_checks: &computed.cross_checks,
        published: &computed.published,
        findings: &computed.findings,
        required: &computed.required,
        not_run: &computed.view.not_run,
    };
    let json = serde_json::to_string_pretty(&summary).expect("plain values with string keys");
    json + "\n"
}
