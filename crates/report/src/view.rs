//! The whole document as the templates see it.

use prony_findings::{Finding, Records, Severity, Verdict, findings, verdict};
use prony_record::{Fact, NotRun};
use serde::Serialize;

use crate::answer::{self, Answer, chart};
use crate::claims::{self, Resolution};
use crate::clients::{
    self,
    steps::{Step, steps},
};
use crate::figures::{CellFigures, CrossCheck};
use crate::kinds::Kinds;
use crate::notes::{Note, Notes};
use crate::part::Part;
use crate::plots::Picture;
use crate::programs::across::{Across, across};
use crate::published::{self, Judged};
use crate::required::{self, CellRequirement};
use crate::why::{self, Why};
use crate::{Run, cells, programs, rows, search, sections, servers};

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
    /// The machine.
    pub environment: Vec<Fact>,
    /// What was not run; `None` where all was.
    pub not_run_part: Option<Part>,
    /// Sections on how it was measured, which stand in the appendix.
    pub about: Vec<Part>,
    /// Findings as footnotes.
    pub notes: Vec<Note>,
    /// What it cannot tell.
    pub limits: Vec<String>,
    /// Version of Prony that measured.
    pub version: String,
}

/// The figures and findings of a run, as `summary.json` has them, and the document that they make.
#[derive(Serialize)]
pub struct ComputedRun {
    /// What it could have client_steps, by workload.
    pub resolutions: Vec<Resolution>,
    /// Figures by cell.
    pub cells: Vec<CellFigures>,
    /// Figures of several cells of programs; `None` where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs: Option<Across>,
    /// Figures of several cells of clients; `None` where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientSteps>,
    /// wrk beside Prony's generator.
    pub cross_checks: Vec<CrossCheck>,
    /// Claims of published documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Judged>,
    /// Findings by cell.
    pub findings: Vec<Finding>,
    /// What came of what is required.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<CellRequirement>,
    /// What was not run.
    pub not_run: Vec<NotRun>,
    /// The document.
    #[serde(skip)]
    pub view: View,
}

/// What more connections and threads bring clients.
#[derive(Serialize)]
pub struct ClientSteps {
    /// From each to the next.
    pub steps: Vec<Step>,
}

/// Computes everything from the records.
pub fn compute(run: &Run) -> ComputedRun {
    let why = why::why(run);
    let run = &*why::measured(run);
    let records = Records::new(&run.plan, &run.trials);
    let findings = findings(&records);
    let mut cells = cells::cells(run, &records, &findings);
    let cross_checks = cells::cross_checks(run, &records);
    let mut programs = programs::any(&run.plan).then(|| across(run, &records, &cells));
    let is_of_clients = Kinds::from_plan(&run.plan).clients;
    let mut steps = is_of_clients.then(|| steps(run, &records, &cells));
    claims::settle(&mut cells, programs.as_mut(), steps.as_deref_mut());
    let clients = steps.map(|steps| ClientSteps { steps });
    let published = published::judged(run, &records, &cells, programs.as_ref());
    let notes = Notes::new(&findings, |cell| records.trials(cell).len());
    let mut answer = answer::answer(run, &cells);
    let required = required::planned(run);
    answer.required = required::lines(&required);
    let rankings = answer.rankings.iter().chain(&answer.more);
    let charts = rankings.enumerate().map(|(at, of)| Picture {
        id: format!("answer-{}", at + 1),
        ..chart::picture(of)
    });
    let environment = sections::environment(run);
    let not_run = sections::not_run(run, &cells);
    let client_steps = clients.as_ref().map_or(&[][..], |of| &of.steps);
    let of_programs = programs.iter();
    let of_programs = of_programs.flat_map(|of| programs::parts(run, &cells, of, &notes));
    let parts = [
        servers::parts(run, &cells, &notes),
        of_programs.collect(),
        search::parts(run, &cells, &notes),
        rows::parts(run, &cells, &notes),
        clients::parts(run, &cells, client_steps, &notes),
        published::part(&published).into_iter().collect(),
    ];
    let view = View {
        title: match run.plan.title.trim() {
            "" => "Untitled experiment".to_owned(),
            _ => run.plan.title.0.clone(),
        },
        question: run.plan.question.0.clone(),
        charts: charts.collect(),
        answer,
        verdict: verdict(&findings),
        parts: parts.into_iter().flatten().collect(),
        why,
        about: sections::about(run, &environment, &cross_checks),
        environment,
        not_run_part: sections::not_run_part(&not_run),
        notes: notes.notes,
        limits: sections::limits(run, &cells),
        version: run.environment.prony_version.clone(),
    };
    ComputedRun {
        resolutions: claims::resolutions(&run.plan, &cells),
        cells,
        programs,
        clients,
        cross_checks,
        published,
        findings,
        required,
        not_run,
        view,
    }
}

/// The word for a severity.
pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Bound => "bound",
        Severity::Invalid => "invalid",
    }
}
