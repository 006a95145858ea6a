//! What a subject must do (`subjects/CONTRACT.md`), as experiments that are checked and not measured: one for each thing
//! that it is.
//!
//! Not for: doing them ([`crate::run`]), or what only `subjects/*.py` look at (answers to wrong requests, sums of
//! works, what a click counter keeps).

use serde_json::json;

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
    let part = |role: Role, text: Option<String>| {
        let text = text.map(|text| head(role, subject) + &text);
        text.map(|text| ContractCheck {
            role: role.name(),
            text,
        })
    };
    if subject.role.is_service() {
        return Vec::from_iter(part(
            subject.role,
            Some(with_service(subject.role, reference)),
        ));
    }
    let all = [
        part(Role::Server, server(subject, reference)),
        part(Role::Program, program(subject, reference)),
        part(Role::Client, client(subject, reference)),
    ];
    all.into_iter().flatten().collect()
}

fn head(role: Role, subject: &Subject) -> String {
    let asks = |client: &Client| client.works.iter().any(|work| work != DOWNLOADS);
    let run = match role {
        Role::Program => "",
        // Whole seconds: what a client can be told. A download lasts as long as it takes.
        Role::Client if subject.client.as_ref().is_some_and(asks) => "duration = \"1s\"\n",
        Role::Client => "",
        _ => "duration = \"100ms\"\nwarmup = \"0ms\"\n",
    };
    format!("title = \"check\"\n[run]\nblocks = 1\n{run}")
}

fn quoted(text: &str) -> String {
    json!(text).to_string()
}

fn of_subject(reference: &str) -> String {
    format!("[[subject]]\nref = {}\n", quoted(reference))
}

/// A workload for each path that it answers, with the answer that the contract names.
fn server(subject: &Subject, reference: &str) -> Option<String> {
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
    let workloads: String = paths.map(|path| workload(path, hosts)).collect();
    (!workloads.is_empty()).then(|| of_subject(reference) + &workloads + &protocols(subject))
}

/// A setting for the protocols that it speaks beside plain HTTP/1.1, if there are any.
fn protocols(subject: &Subject) -> String {
    if subject.protocols.is_empty() {
        return String::new();
    }
    let spoken = PROTOCOLS.iter().filter(|one| subject.speaks(one));
    let spoken: Vec<&&str> = spoken.collect();
    format!(
        "[[setting]]\nname = {}\nvalues = {}\n",
        quoted(PROTOCOL),
        json!(spoken)
    )
}

fn workload(path: &str, hosts: bool) -> String {
    let exact = |body: &str| {
        format!(
            "expect = {{ status = 200, content_type = \"text/plain\", body = {} }}\n",
            quoted(body)
        )
    };
    let asked = match path {
        "/ping" => "request = { method = \"POST\", path = \"/ping\", headers = { Content-Type = \"application/json\" }, \
                    body = '{\"sequence\":{random}}' }\n\
                    expect = { status = 200, content_type = \"application/json\", body = '{\"sequence\":{random}}' }\n"
            .to_owned(),
        path => {
            let expected = match path {
                "/hello" => exact("Hello, World!"),
                "/" | "/mixed" if hosts => exact("hello world"),
                _ => "expect = { status = 200 }\n".to_owned(),
            };
            format!("request = {{ path = {} }}\n{expected}", quoted(path))
        }
    };
    let name: String = path
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let name = match name.trim_matches('-') {
        "" => "root",
        name => name,
    };
    format!(
        "[[workload]]\nname = {}\n{asked}connections = [1]\n",
        quoted(name)
    )
}

/// A workload for each work, in each build that is offered.
fn program(subject: &Subject, reference: &str) -> Option<String> {
    let program = subject.program.as_ref()?;
    let mut text = of_subject(reference);
    for work in &program.works {
        text.push_str(&format!(
            "[[workload]]\nwork = {}\ncount = {COUNT}\n",
            quoted(work)
        ));
    }
    for (name, values) in &subject.variants {
        text.push_str(&format!(
            "[[setting]]\nname = {}\nvalues = {}\n",
            quoted(name),
            json!(values)
        ));
    }
    Some(text)
}

/// A workload for each work, against Prony's own server.
fn client(subject: &Subject, reference: &str) -> Option<String> {
    let client = subject.client.as_ref()?;
    let mut text = format!(
        "[[peer]]\nref = {}\n{}",
        quoted(OTHER),
        of_subject(reference)
    );
    for work in &client.works {
        let asked = match work.as_str() {
            DOWNLOADS => "client = \"downloads\"\npayload = \"1MiB\"\n",
            _ => "client = \"requests\"\npath = \"/hello\"\n",
        };
        text.push_str(&format!(
            "[[workload]]\nname = {}\n{asked}connections = [2]\n",
            quoted(work)
        ));
    }
    Some(text)
}

/// Experiment of a backing service or a front together with Prony's own server.
fn with_service(role: Role, reference: &str) -> String {
    let (name, reference) = (role.name(), quoted(reference));
    let setting = match role {
        Role::Front => format!("front_of = {{ with = {reference} }}"),
        _ => format!("backing_of = {{ with = [{reference}] }}"),
    };
    format!(
        "[[{name}]]\nref = {reference}\nname = {reference}\n{}[[setting]]\nname = \"around\"\nvalues = [\"with\"]\n{setting}\n{}",
        of_subject(OTHER),
        workload("/hello", false)
    )
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
        assert!(
            ping.contains("body = '{\"sequence\":{random}}' }"),
            "{ping}"
        );
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
