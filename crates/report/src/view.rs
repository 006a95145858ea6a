//! The whole document as the templates see it.

use prony_findings::{Finding, Records, Severity, Verdict, findings, verdict};
use serde::Serialize;

use crate::Run;
use crate::answer::{self, Answer, chart};
use crate::cells;
use crate::claims;
use crate::clients::{
    self,
    steps::{Step, steps},
};
use crate::figures::{CellFigures, CrossCheck};
use crate::grid::Grid;
use crate::kinds::Kinds;
use crate::notes::{Note, Notes};
use crate::numbers;
use crate::part::{Part, column};
use crate::plots::Picture;
use crate::programs;
use crate::programs::across::{Across, across};
use crate::published::{self, Judged};
use crate::required::{self, CellRequirement};
use crate::rows;
use crate::search;
use crate::sections::{self, Fact, NotRunRow, Repeat, SubjectRow};
use crate::servers;
use crate::table::{Entry, Table};
use crate::why::{self, Why};

/// Everything that a document says.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// Title.
    pub title: String,
    /// The question.
    pub question: String,
    /// The short answer.
    pub answer: Answer,
    /// A picture of each of its rankings, the foremost first.
    pub charts: Vec<Picture>,
    /// What the findings of all cells come to.
    pub verdict: Verdict,
    /// Sections on servers, programs, searches, tables with rows, clients, and published claims.
    pub parts: Vec<Part>,
    /// What profiles say.
    pub why: Option<Why>,
    /// wrk beside Prony's generator.
    pub cross_check: Option<Table>,
    /// The machine.
    pub environment: Vec<Fact>,
    /// How it was measured.
    pub method: Vec<String>,
    /// What was measured.
    pub subjects: Vec<SubjectRow>,
    /// What was not run.
    pub not_run: Vec<NotRunRow>,
    /// Findings as footnotes.
    pub notes: Vec<Note>,
    /// How to do it again.
    pub repeat: Repeat,
    /// What it cannot tell.
    pub limits: Vec<String>,
    /// Version of Prony that measured.
    pub version: String,
}

/// The figures and findings of a run, and the document that they make.
pub struct ComputedRun {
    /// Findings by cell.
    pub findings: Vec<Finding>,
    /// Figures by cell.
    pub cells: Vec<CellFigures>,
    /// Figures of several cells of programs; `None` where there are none.
    pub programs: Option<Across>,
    /// What more connections and threads bring clients; `None` where there are none.
    pub steps: Option<Vec<Step>>,
    /// wrk beside Prony's generator.
    pub cross_checks: Vec<CrossCheck>,
    /// Claims of published documents.
    pub published: Vec<Judged>,
    /// What came of what is required.
    pub required: Vec<CellRequirement>,
    /// The document.
    pub view: View,
}

/// Computes everything from the records.
pub fn compute(run: &Run) -> ComputedRun {
    let why = why::why(run);
    let run = &*why::measured(run);
    let records = Records::new(&run.plan, &run.trials);
    let findings = findings(&records);
    let mut cells = cells::cells(run, &records, &findings);
    let cross_checks = cells::cross_checks(run, &records);
    let mut across = programs::any(&run.plan).then(|| across(run, &records, &cells));
    let mut steps = Kinds::of(&run.plan)
        .clients
        .then(|| steps(run, &records, &cells));
    claims::settle(&mut cells, across.as_mut(), steps.as_deref_mut());
    let told = steps.as_deref().unwrap_or_default();
    let published = published::judged(run, &records, &cells, across.as_ref());
    let notes = Notes::new(&findings, |cell| records.trials(cell).len());
    let mut answer = answer::answer(run, &cells);
    let required = required::planned(run);
    answer.required = required::lines(&required);
    let rankings = answer.rankings.iter().chain(&answer.more);
    let charts = rankings.enumerate().map(|(at, of)| Picture {
        id: format!("answer-{}", at + 1),
        ..chart::picture(of)
    });
    let view = View {
        title: or(&run.plan.title, "Untitled experiment"),
        question: run.plan.question.0.clone(),
        charts: charts.collect(),
        answer,
        verdict: verdict(&findings),
        parts: parts(run, &cells, across.as_ref(), told, &notes)
            .into_iter()
            .chain(published::part(&published))
            .collect(),
        why,
        cross_check: (!cross_checks.is_empty()).then(|| cross_table(&cross_checks)),
        environment: sections::environment(run),
        method: sections::method(run),
        subjects: sections::subjects(&run.plan),
        not_run: sections::not_run(run, &cells),
        notes: notes.notes,
        repeat: sections::repeat(run),
        limits: sections::limits(run, &cells),
        version: run.environment.prony_version.clone(),
    };
    ComputedRun {
        findings,
        cells,
        programs: across,
        steps,
        cross_checks,
        published,
        required,
        view,
    }
}

/// The sections of each kind of work.
fn parts(
    run: &Run,
    cells: &[CellFigures],
    across: Option<&Across>,
    steps: &[Step],
    notes: &Notes,
) -> Vec<Part> {
    let mut parts = servers::parts(run, cells, notes);
    parts.extend(
        across
            .into_iter()
            .flat_map(|of| programs::parts(run, cells, of, notes)),
    );
    parts.extend(search::parts(run, cells, notes));
    parts.extend(rows::parts(run, cells, notes));
    parts.extend(clients::parts(run, cells, steps, notes));
    parts
}

fn or(text: &str, otherwise: &str) -> String {
    if text.trim().is_empty() {
        otherwise
    } else {
        text
    }
    .to_owned()
}

fn cross_table(checks: &[CrossCheck]) -> Table {
    let head = |title: &str| column(title, "", true);
    let mut table = Grid::new()
        .head(column("cell", "", false), |check: &CrossCheck| {
            Entry::text(&*check.cell)
        })
        .head(head("block"), |check| {
            Entry::text(check.block.saturating_add(1).to_string())
        })
        .head(head("prony, requests/s"), |check| {
            Entry::text(numbers::rate(check.prony_per_s))
        })
        .head(head("wrk, requests/s"), |check| {
            Entry::text(numbers::rate(check.wrk_per_s))
        })
        .head(head("prony / wrk"), |check| {
            Entry::text(numbers::ratio(check.ratio))
        })
        .rows(checks);
    for (row, check) in table.rows.iter_mut().zip(checks) {
        row.cell.clone_from(&check.cell);
    }
    table
}

/// The word for a severity.
pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Bound => "bound",
        Severity::Invalid => "invalid",
    }
}
