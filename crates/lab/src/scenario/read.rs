//! The file as a whole: its own keys, and its flows.

use prony_load::prepare::LoadUrl;
use prony_load::scenario::compiled::check_taken_name;
use prony_load::{check_fields, names_in};
use toml::Spanned;

use super::file::{FileFlow, FileStep, ScenarioFile, Variables};
use super::step::{Defaults, read_step};
use crate::diagnosis::Diagnosis;
use crate::experiment::fields::{Fields, ITEMS_MAX, Problems, document};
use crate::experiment::words::short;

/// How often a flow may be drawn beside the others.
const WEIGHT: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Keys that one might expect and that mean nothing here.
const UNSUPPORTED: [(&str, &str); 3] = [
    ("steps", "each step is a table of its own: [[step]]"),
    (
        "users",
        "the command line says how many: -c N, or -R N for arrivals of users a second",
    ),
    ("duration", "the command line says how long: -d T"),
];

/// The file, or what is wrong with it. `has_data`: names may be columns of a data file.
pub fn scenario(
    text: &str,
    variables: Variables<'_>,
    has_data: bool,
) -> Result<ScenarioFile, Vec<Diagnosis>> {
    let mut problems = Problems::default();
    let root = document(text, &mut problems);
    // The values with which the parser recovered would be reported as the writer's.
    if !problems.errors.is_empty() {
        return Err(problems.errors);
    }
    let p = &mut problems;
    let mut top = Fields::new("the scenario", 0..0, root.get_ref());
    let url = top.text("url", p);
    let url = url.and_then(|url| read_url(&url, variables, p));
    let defaults = Defaults::read(&mut top, variables, p);
    let steps = top.tables("step", "[[step]]", p);
    let scenarios = top.tables("scenario", "[[scenario]]", p);
    if !steps.is_empty() && !scenarios.is_empty() {
        let message = "a file has steps of its own, or scenarios with steps, and not both";
        p.note(Diagnosis::new(top.span_of("step"), message));
    }
    let mut flows = Vec::new();
    let mut read = 0;
    if steps.is_empty() && scenarios.is_empty() {
        top.missing("step", "[[step]]\nname = \"home\"\npath = \"/\"", p);
    } else if scenarios.is_empty() {
        let at = top.span_of("step");
        let steps = read_steps(steps, &defaults, variables, p);
        flows.push(flow(
            Spanned::new(at, "scenario".to_owned()),
            1,
            steps,
            has_data,
            p,
        ));
    }
    for table in scenarios {
        flows.extend(read_flow(table, &defaults, (variables, has_data), p));
    }
    for (place, (at, flow)) in flows.iter().enumerate() {
        read += flow.steps.len();
        if flows[..place]
            .iter()
            .any(|(_, other)| other.name == flow.name)
        {
            let message = format!("two scenarios have the name `{}`", short(&flow.name));
            p.note(Diagnosis::new(at.clone(), message));
        }
    }
    if read > ITEMS_MAX {
        let message = format!("there are {read} steps; at most {ITEMS_MAX} are done");
        p.note(Diagnosis::new(0..0, message));
    }
    top.finish(&UNSUPPORTED, p);
    match problems.errors.is_empty() {
        true => Ok(ScenarioFile {
            url,
            flows: flows.into_iter().map(|(_, flow)| flow).collect(),
        }),
        false => Err(problems.errors),
    }
}

/// Where all requests go.
fn read_url(url: &Spanned<String>, variables: Variables<'_>, p: &mut Problems) -> Option<LoadUrl> {
    let text = super::step::environment(url, variables, p)?;
    let wrong = match LoadUrl::filled(&text, url.get_ref()) {
        Err(error) => error.to_string(),
        Ok(read) if read.path != "/" => {
            format!(
                "`url` says where to, and each step its `path`: leave that out of `{}`",
                read.text
            )
        }
        Ok(read) => return Some(read),
    };
    p.note(Diagnosis::new(url.span(), wrong));
    None
}

/// A flow, and where its name stands.
type PlacedFlow = (std::ops::Range<usize>, FileFlow);

fn read_flow(
    mut table: Fields<'_, '_>,
    defaults: &Defaults,
    (variables, has_data): (Variables<'_>, bool),
    p: &mut Problems,
) -> Option<PlacedFlow> {
    let name = table.text_needed("name", "name = \"buyer\"", p);
    let weight = table.whole("weight", WEIGHT, p).unwrap_or(1);
    let own = Defaults::read(&mut table, variables, p).or(defaults);
    let steps = table.tables("step", "[[scenario.step]]", p);
    if steps.is_empty() {
        table.missing(
            "step",
            "[[scenario.step]]\nname = \"home\"\npath = \"/\"",
            p,
        );
    }
    let steps = read_steps(steps, &own, variables, p);
    table.finish(&UNSUPPORTED, p);
    Some(flow(name?, weight as u32, steps, has_data, p))
}

/// A step, and where it stands.
type PlacedStep = (std::ops::Range<usize>, FileStep);

fn read_steps(
    tables: Vec<Fields<'_, '_>>,
    defaults: &Defaults,
    variables: Variables<'_>,
    p: &mut Problems,
) -> Vec<PlacedStep> {
    let mut steps = Vec::new();
    for table in tables {
        let span = table.span.clone();
        let step = read_step(table, defaults, variables, p);
        steps.extend(step.map(|step| (span, step)));
    }
    steps
}

/// The flow of these steps: their names differ, and what one needs was taken before.
fn flow(
    name: Spanned<String>,
    weight: u32,
    steps: Vec<PlacedStep>,
    has_data: bool,
    p: &mut Problems,
) -> PlacedFlow {
    let takes = steps.iter().flat_map(|(_, step)| &step.step.takes);
    let taken: Vec<String> = takes.map(|take| take.name.clone()).collect();
    let at = name.span();
    if !steps.is_empty() && steps.iter().all(|(_, step)| step.step.once) {
        let message = "each step is done `once`: one at least is done each time";
        p.note(Diagnosis::new(at.clone(), message));
    }
    for (place, (span, step)) in steps.iter().enumerate() {
        let name = &step.step.name;
        if steps[..place]
            .iter()
            .any(|(_, other)| other.step.name == *name)
        {
            let message = format!("two steps have the name `{}`", short(name));
            p.note(Diagnosis::new(span.clone(), message));
        }
        for take in &step.step.takes {
            if let Err(why) = check_taken_name(&take.name, &[]) {
                p.note(Diagnosis::new(
                    span.clone(),
                    format!("step `{}`: {why}", short(name)),
                ));
            }
        }
        check_needs(span, step, &steps, place, p);
        let texts = step.texts().filter(|_| !has_data);
        for why in texts.filter_map(|text| check_fields(text, &taken).err()) {
            let message = format!("step `{}`: {why}", short(name));
            p.note(Diagnosis::new(span.clone(), message));
        }
    }
    let steps = steps.into_iter().map(|(_, step)| step).collect();
    let name = name.into_inner();
    (
        at,
        FileFlow {
            name,
            weight,
            steps,
        },
    )
}

/// A value that a later step of the same flow takes is not there yet. What no step takes may be a column of the data file, which is
/// not known here.
fn check_needs(
    span: &std::ops::Range<usize>,
    step: &FileStep,
    all: &[PlacedStep],
    place: usize,
    p: &mut Problems,
) {
    let takes = |steps: &[PlacedStep], name: &[u8]| {
        let mut takes = steps.iter().flat_map(|(_, step)| &step.step.takes);
        takes.any(|take| take.name.as_bytes() == name)
    };
    for name in step.texts().flat_map(|text| names_in(text.as_bytes())) {
        if !takes(&all[..place], name) && takes(&all[place..], name) {
            let shown = String::from_utf8_lossy(name);
            let message = format!(
                "step `{}` needs {{{}}}, which no step before it takes",
                short(&step.step.name),
                short(&shown)
            );
            let help = "a value is there once the answer to the step that takes it has come";
            p.note(Diagnosis::new(span.clone(), message).help(help));
        }
    }
}
