//! The files that a workload's requests are in: read once before planning, so that a plan names each by its digest, and what is
//! wrong with one is reported where the experiment names it.

use std::collections::BTreeSet;
use std::path::Path;

use prony_base::counted;
use prony_load::{LoadSpec, check_requests, with_environment};
use prony_record::{PlannedSource, SourceFile};

use super::sources::usual_order;
use super::types::{Experiment, WorkloadSource};
use crate::diagnosis::{Diagnoses, Diagnosis};
use crate::passed::{NAMED, Passed, To};
use crate::sending::{self, SentSource};

/// What stands for the server's address while nobody is sent anything.
const NO_ONE: &str = "localhost";

impl Experiment {
    /// Reads the files of requests, of bodies and of data that its workloads name, and completes what is planned of them.
    /// Warnings on what is left out of them are added to its own.
    ///
    /// # Errors
    /// What is wrong with them, or that the environment of trials lacks a variable.
    pub fn read_sources(&mut self) -> Result<(), Diagnoses> {
        let (folder, seed) = (self.origin.folder.clone(), self.run.seed);
        let mut problems = Vec::new();
        let mut warnings = Vec::new();
        for workload in &mut self.workloads {
            let expected = workload.expect_body.clone();
            let Some(source) = &mut workload.source else {
                continue;
            };
            source.planned.dir = folder.display().to_string();
            match read(source, expected.as_deref(), seed) {
                Ok((first, notes)) => {
                    if source.planned.file.is_some() {
                        workload.request.method = first.0;
                        workload.request.path = first.1;
                    }
                    let at = source.file_at.clone();
                    let warn = |note| Diagnosis::new(at.clone(), note);
                    warnings.extend(notes.into_iter().map(warn));
                }
                Err(problem) => problems.push(problem),
            }
        }
        self.warnings.extend(warnings);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(self.diagnoses(problems)),
        }
    }
}

/// Method and path of a request.
type MethodAndPath = (String, String);

/// Completes one source; method and path of its first request, and what is left out.
fn read(
    source: &mut WorkloadSource,
    expected: Option<&str>,
    seed: u64,
) -> Result<(MethodAndPath, Vec<String>), Diagnosis> {
    let (at, file_at, data_at) = (
        source.place.clone(),
        source.file_at.clone(),
        source.data_at.clone(),
    );
    let folder = Path::new(&source.planned.dir).to_owned();
    digest(source.planned.file.as_mut(), &folder)
        .map_err(|why| Diagnosis::new(file_at.clone(), why))?;
    digest(source.planned.data.as_mut(), &folder)
        .map_err(|why| Diagnosis::new(data_at.clone(), why))?;
    check_environment(&source.planned)
        .map_err(|(why, help)| Diagnosis::new(at.clone(), why).help(help))?;
    let place = match source.planned.file {
        Some(_) => file_at,
        None => at,
    };
    let sent = sending::of_source(&source.planned, expected, NO_ONE);
    let sent = sent.map_err(|why| Diagnosis::new(place.clone(), why))?;
    let is_weighted = sent.requests.iter().any(|request| request.weight > 0);
    let planned = &mut source.planned;
    if planned.file.is_some() {
        planned.order = usual_order(
            source.is_order_said.then_some(planned.order),
            is_weighted,
            sent.requests.len(),
        );
    }
    let is_in_turn = source.is_order_said && planned.order == prony_record::RequestOrder::InTurn;
    if planned.file.is_some() && is_weighted && is_in_turn {
        let why = "`order = \"in-turn\"` sends each request as often as the others, and the file gives weights";
        return Err(Diagnosis::new(place, why).help("leave one of them out"));
    }
    planned.count = sent.requests.len() as u64;
    planned.format.clone_from(&sent.format);
    planned.bodies.clone_from(&sent.bodies);
    let line = |request: &prony_record::PreparedRequest| {
        let line = request.bytes.split(|&byte| byte == b'\r').next();
        let line = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
        let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
        (request.method.clone(), path)
    };
    let paths: BTreeSet<String> = sent
        .requests
        .iter()
        .map(|request| line(request).1)
        .collect();
    source.paths = paths.into_iter().collect();
    let first = sent.requests.first().map(line).unwrap_or_default();
    let notes = notes(&sent);
    check_requests(&LoadSpec {
        requests: sent.requests,
        order: sent.order,
        sequence: sent.sequence,
        has_fields: sent.has_fields,
        data: sent.data,
        seed,
        threads: 1,
        ..LoadSpec::default()
    })
    .map_err(|why| {
        let is_of_data = source.planned.data.is_some();
        Diagnosis::new(if is_of_data { data_at } else { place }, why)
    })?;
    Ok((first, notes))
}

/// Notes the digest of a file.
fn digest(file: Option<&mut SourceFile>, folder: &Path) -> Result<(), String> {
    if let Some(file) = file {
        file.sha256 = sending::sha256_of(&folder.join(&file.path))?;
    }
    Ok(())
}

/// What of a log is not sent as it was.
fn notes(sent: &SentSource) -> Vec<String> {
    let left_out = sent.left_out.map(|(count, first)| {
        let lines = counted(count, "line");
        format!("{lines} without a request left out, the first is line {first}")
    });
    let without = (sent.without_body > 0).then(|| {
        let requests = counted(sent.without_body, "request");
        format!("{requests} other than GET and HEAD, sent without a body: a log has none")
    });
    left_out.into_iter().chain(without).collect()
}

/// Trials have those variables of the environment that are passed to them, and no others.
fn check_environment(planned: &PlannedSource) -> Result<(), (String, String)> {
    let passed = Passed::here(To::Trials);
    let mut names: BTreeSet<String> = BTreeSet::new();
    for text in sending::texts(planned) {
        let found = std::cell::RefCell::new(Vec::new());
        let note = |name: &str| {
            found.borrow_mut().push(name.to_owned());
            Some(String::new())
        };
        // What is no field is reported with its line where the requests are made.
        let _ = with_environment(&text, &note);
        names.extend(found.into_inner());
    }
    let is_passed = |name: &str| passed.variables().any(|(of, _)| of == name);
    match names.iter().find(|name| !is_passed(name)) {
        None => Ok(()),
        Some(name) if std::env::var_os(name).is_none() => Err((
            format!("{{env:{name}}}: the environment has no {name}"),
            format!("set it, and name it in {NAMED}"),
        )),
        Some(name) => Err((
            format!("{{env:{name}}}: {name} does not reach a trial"),
            format!("name it in {NAMED}={name}, which says what else of the environment does"),
        )),
    }
}
