//! What a subject must do (`subjects/CONTRACT.md`), as experiments that are checked and not measured: one for each thing
//! that it is.
//!
//! Not for: doing them ([`crate::run`]), or what only `subjects/*.py` look at (answers to wrong requests, sums of
//! works, what a click counter keeps).

use serde_json::{Value, json};

use crate::experiment::spoken::{PROTOCOL, PROTOCOLS};
use crate::subject::{Client, Role, Subject};

/// A server that stands for all others where a subject needs one: Prony's own.
const OTHER: &str = "rust/prony";
/// The work of a client that has no window.
const DOWNLOADS: &str = "downloads";
/// How often a program does a work.
const COUNT: u32 = 1_000;

/// One experiment about one subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContractCheck {
    /// What the subject is in it: `server`, `program`, `client`, `backing`, `front`.
    pub role: &'static str,
    /// Its text.
    pub text: String,
}

/// The experiments that hold `subject` to its contract. `reference` is what an experiment's `ref` calls it.
pub fn checks(subject: &Subject, reference: &str) -> Vec<ContractCheck> {
    let check = |role: Role, experiment: Option<Value>| {
        let mut experiment = experiment?;
        experiment["title"] = "check".into();
        experiment["run"] = run(role, subject);
        Some(ContractCheck {
            role: role.name(),
            text: toml::to_string(&experiment).expect("TOML has all of these values"),
        })
    };
    let service = || with_service(subject.role, reference);
    let all = match subject.role.is_service() {
        true => vec![check(subject.role, Some(service()))],
        false => vec![
            check(Role::Server, server(subject, reference)),
            check(Role::Program, program(subject, reference)),
            check(Role::Client, client(subject, reference)),
        ],
    };
    all.into_iter().flatten().collect()
}

fn run(role: Role, subject: &Subject) -> Value {
    let requests = |client: &Client| client.program.works.iter().any(|work| work != DOWNLOADS);
    match role {
        Role::Program => json!({ "blocks": 1 }),
        // Whole seconds: what a client can be told. A download lasts as long as it takes.
        Role::Client if subject.client.as_ref().is_some_and(requests) => {
            json!({ "blocks": 1, "duration": "1s" })
        }
        Role::Client => json!({ "blocks": 1 }),
        _ => json!({ "blocks": 1, "duration": "100ms", "warmup": "0ms" }),
    }
}

/// A workload for each path that it answers, with the answer that the contract names, and a setting for the protocols that it
/// speaks beside plain HTTP/1.1, if there are any.
fn server(subject: &Subject, reference: &str) -> Option<Value> {
    if subject.start.is_empty() {
        return None;
    }
    let root = ["/".to_owned()];
    let paths = match subject.endpoints.as_slice() {
        [] => &root,
        paths => paths,
    };
    let hosts = paths.iter().any(|path| path == "/mixed");
    // What stands for all below a folder names no page.
    let paths = paths.iter().filter(|path| !path.ends_with("/*"));
    let workloads: Vec<Value> = paths.map(|path| workload(path, hosts)).collect();
    let is_any = !workloads.is_empty();
    let mut experiment = json!({ "subject": [{ "ref": reference }], "workload": workloads });
    if !subject.protocols.is_empty() {
        let spoken = PROTOCOLS.into_iter().filter(|one| subject.speaks(one));
        let spoken: Vec<&str> = spoken.collect();
        experiment["setting"] = json!([{ "name": PROTOCOL, "values": spoken }]);
    }
    is_any.then_some(experiment)
}

fn workload(path: &str, hosts: bool) -> Value {
    let mut workload = json!({
        "name": name(path),
        "request": { "path": path },
        "expect": { "status": 200 },
        "connections": [1],
    });
    let (content_type, body) = match path {
        "/ping" => ("application/json", "{\"sequence\":{random}}"),
        "/hello" => ("text/plain", "Hello, World!"),
        "/" | "/mixed" if hosts => ("text/plain", "hello world"),
        _ => return workload,
    };
    workload["expect"]["content_type"] = content_type.into();
    workload["expect"]["body"] = body.into();
    if path == "/ping" {
        workload["request"]["method"] = "POST".into();
        workload["request"]["headers"] = json!({ "Content-Type": content_type });
        workload["request"]["body"] = body.into();
    }
    workload
}

fn name(path: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = path.chars().map(plain).collect();
    match name.trim_matches('-') {
        "" => "root".to_owned(),
        name => name.to_owned(),
    }
}

/// A workload for each work, in each build that is offered.
fn program(subject: &Subject, reference: &str) -> Option<Value> {
    let works = subject.program.as_ref()?.works.iter();
    let workloads = works.map(|work| json!({ "work": work, "count": COUNT }));
    let variants = subject.variants.iter();
    let settings = variants.map(|(name, values)| json!({ "name": name, "values": values }));
    Some(json!({
        "subject": [{ "ref": reference }],
        "workload": workloads.collect::<Value>(),
        "setting": settings.collect::<Value>(),
    }))
}

/// A workload for each work, against Prony's own server.
fn client(subject: &Subject, reference: &str) -> Option<Value> {
    let works = subject.client.as_ref()?.program.works.iter();
    let workloads = works.map(|work| match work.as_str() {
        DOWNLOADS => json!({ "client": work, "name": work, "payload": "1MiB", "connections": [2] }),
        _ => json!({ "client": "requests", "name": work, "path": "/hello", "connections": [2] }),
    });
    Some(json!({
        "peer": [{ "ref": OTHER }],
        "subject": [{ "ref": reference }],
        "workload": workloads.collect::<Value>(),
    }))
}

/// Experiment of a backing service or a front together with Prony's own server.
fn with_service(role: Role, reference: &str) -> Value {
    let (key, services) = match role {
        Role::Front => ("front_of", json!({ "with": reference })),
        _ => ("backing_of", json!({ "with": [reference] })),
    };
    json!({
        (role.name()): [{ "ref": reference, "name": reference }],
        "subject": [{ "ref": OTHER }],
        "setting": [{ "name": "around", "values": ["with"], (key): services }],
        "workload": [workload("/hello", false)],
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment::{Experiment, Origin};
    use crate::plan::{self, Facts};
    use crate::subject::{folders, load_all};

    #[test]
    fn every_subject_has_experiments_that_can_be_planned() {
        let root = prony_testkit::root().join("subjects");
        let mut roles = Vec::new();
        for id in folders(&root) {
            let subject = Subject::load(&root.join(&id)).expect("a subject");
            let parts = checks(&subject, &id);
            assert!(!parts.is_empty(), "{id}");
            for part in parts {
                let experiment = Experiment::parse(&part.text, &Origin::new("check", "/"));
                let experiment = experiment.unwrap_or_else(|wrong| panic!("{id}: {wrong}"));
                let subjects = load_all(&experiment, &root);
                let subjects = subjects.unwrap_or_else(|wrong| panic!("{id}: {}", wrong[0]));
                let mut facts = Facts::gather(&[], "", None, false);
                for needs in subjects.iter().map(|subject| &subject.needs) {
                    facts.commands.extend(needs.commands.iter().cloned());
                    facts.files.extend(needs.files.iter().cloned());
                }
                let plan = plan::plan(&experiment, &subjects, &facts, &plan::Options::default());
                let plan = plan.unwrap_or_else(|wrong| panic!("{id}: {wrong}"));
                assert!(!plan.cells.is_empty(), "{id}");
                roles.push(part.role);
            }
        }
        for role in ["server", "program", "client", "backing", "front"] {
            assert!(roles.contains(&role), "no {role}");
        }
    }

    #[test]
    fn the_answers_of_the_contract_are_expected_where_it_names_them() {
        let root = prony_testkit::root().join("subjects");
        let text = |id: &str| {
            let subject = Subject::load(&root.join(Path::new(id))).expect("a subject");
            checks(&subject, id).remove(0).text
        };
        let ping = text("rust/axum");
        assert!(ping.contains("body = '{\"sequence\":{random}}'"), "{ping}");
        assert!(ping.contains("body = \"Hello, World!\""), "{ping}");
        assert!(
            text("lua/prony-host")
                .matches("body = \"hello world\"")
                .count()
                == 2
        );
        let counter = text("rust/actix-clicky");
        assert!(
            counter.contains("path = \"/\"") && !counter.contains("body = "),
            "{counter}"
        );
    }
}
