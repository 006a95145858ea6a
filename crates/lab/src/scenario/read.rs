//! The file as a whole: its own keys, and its flows.

use prony_load::prepare::LoadUrl;
use prony_load::scenario::compiled::check_taken_name;
use prony_load::{check_fields, names_in};
use toml::Spanned;

use super::file::{FileFlow, FileStep, ScenarioContext, ScenarioFile};
use super::step::{Defaults, read_step};
use crate::experiment::fields::{Fields, Problems, document};
use crate::experiment::words::{ITEMS_MAX, short};
use crate::reference::KeyFile;

/// The file; with problems it is not to be used.
pub fn scenario(text: &str, context: &ScenarioContext<'_>, p: &Problems) -> Option<ScenarioFile> {
    let root = document(text, p)?;
    let top = Fields::top(KeyFile::Scenario, root.get_ref(), p);
    let url: Option<Spanned<String>> = top.get("url");
    let url = url.and_then(|url| read_url(&url, context, p));
    let defaults = Defaults::read(&top, context);
    let (steps, scenarios) = (top.tables("step"), top.tables("scenario"));
    if !steps.is_empty() && !scenarios.is_empty() {
        let message = "a file has steps of its own, or scenarios with steps, and not both";
        top.note("step", message, "");
    }
    let mut flows = Vec::new();
    if steps.is_empty() && scenarios.is_empty() {
        top.missing("step", "[[step]]\nname = \"home\"\npath = \"/\"");
    } else if scenarios.is_empty() {
        let name = Spanned::new(top.span_of("step"), "scenario".to_owned());
        let steps = read_steps(&steps, &defaults, context);
        flows.push(flow(name, 1, steps, context, p));
    }
    for table in scenarios {
        flows.extend(read_flow(&table, &defaults, context));
    }
    for (place, (at, flow)) in flows.iter().enumerate() {
        let mut before = flows[..place].iter();
        if before.any(|(_, other)| other.name == flow.name) {
            let message = format!("two scenarios have the name `{}`", short(&flow.name));
            p.note(at.clone(), message);
        }
    }
    let flows: Vec<FileFlow> = flows.into_iter().map(|(_, flow)| flow).collect();
    let read: usize = flows.iter().map(|flow| flow.steps.len()).sum();
    if read > ITEMS_MAX {
        let message = format!("there are {read} steps; at most {ITEMS_MAX} are done");
        p.note(0..0, message);
    }
    Some(ScenarioFile { url, flows })
}

/// Where all requests go.
fn read_url(url: &Spanned<String>, context: &ScenarioContext<'_>, p: &Problems) -> Option<LoadUrl> {
    let text = context.filled(url, p)?;
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
    p.note(url.span(), wrong);
    None
}

/// A flow, and where its name stands.
type PlacedFlow = (std::ops::Range<usize>, FileFlow);

fn read_flow(
    table: &Fields<'_>,
    defaults: &Defaults,
    context: &ScenarioContext<'_>,
) -> Option<PlacedFlow> {
    let name = table.get("name");
    let usual = Defaults::read(table, context).or(defaults);
    let steps = table.tables("step");
    if steps.is_empty() {
        table.missing("step", "[[scenario.step]]\nname = \"home\"\npath = \"/\"");
    }
    let (weight, steps) = (table.value("weight"), read_steps(&steps, &usual, context));
    Some(flow(name?, weight, steps, context, table.problems))
}

/// A step, and where it stands.
type PlacedStep = (std::ops::Range<usize>, FileStep);

fn read_steps(
    tables: &[Fields<'_>],
    defaults: &Defaults,
    context: &ScenarioContext<'_>,
) -> Vec<PlacedStep> {
    let step = |table: &Fields<'_>| {
        let step = read_step(table, defaults, context)?;
        Some((table.span.clone(), step))
    };
    tables.iter().filter_map(step).collect()
}

/// The flow of these steps: their names differ, and what one needs was taken before.
fn flow(
    name: Spanned<String>,
    weight: u32,
    steps: Vec<PlacedStep>,
    context: &ScenarioContext<'_>,
    p: &Problems,
) -> PlacedFlow {
    let takes = steps.iter().flat_map(|(_, step)| &step.step.takes);
    let taken: Vec<String> = takes.map(|take| take.name.clone()).collect();
    let at = name.span();
    if !steps.is_empty() && steps.iter().all(|(_, step)| step.step.once) {
        let message = "each step is done `once`: one at least is done each time";
        p.note(at.clone(), message);
    }
    for (place, (span, step)) in steps.iter().enumerate() {
        let name = &step.step.name;
        if steps[..place]
            .iter()
            .any(|(_, other)| other.step.name == *name)
        {
            let message = format!("two steps have the name `{}`", short(name));
            p.note(span.clone(), message);
        }
        for take in &step.step.takes {
            if let Err(why) = check_taken_name(&take.name, &[]) {
                p.note(span.clone(), format!("step `{}`: {why}", short(name)));
            }
        }
        check_needs(&steps, place, p);
        let texts = step.texts().filter(|_| !context.has_data);
        for why in texts.filter_map(|text| check_fields(text, &taken).err()) {
            let message = format!("step `{}`: {why}", short(name));
            p.note(span.clone(), message);
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
fn check_needs(all: &[PlacedStep], place: usize, p: &Problems) {
    let (span, step) = &all[place];
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
            p.advise(span.clone(), message, help);
        }
    }
}
