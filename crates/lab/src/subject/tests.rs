use std::path::{Path, PathBuf};

use super::file::blank;
use super::load::from_command;
use super::*;
use crate::experiment::{Experiment, Origin};

fn root() -> PathBuf {
    prony_testkit::root().join("subjects")
}

#[test]
fn every_shipped_subject_is_right() {
    let all = folders(&root());
    assert!(all.len() >= 11, "{all:?}");
    for id in all {
        let subject = match Subject::load(&root().join(&id)) {
            Ok(subject) => subject,
            Err(wrong) => panic!("{wrong}"),
        };
        assert_eq!(subject.id, id, "the folder is called as the subject is");
        for input in subject.build.iter().flat_map(|build| &build.inputs) {
            assert!(root().join(&id).join(input).exists(), "{id}: {input}");
        }
        let paths = ["/hello", "/", "/ping"];
        let answers = paths.iter().any(|path| subject.answers(path));
        assert!(answers, "{id}: nothing that an experiment asks for");
    }
}

#[test]
fn the_originals_are_built_by_their_user() {
    let all = folders(&root());
    let of_others: Vec<&String> = all
        .iter()
        .filter(|id| id.starts_with("original/"))
        .collect();
    assert!(of_others.len() >= 7, "{of_others:?}");
    for id in of_others {
        let subject = Subject::load(&root().join(id)).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(subject.repositories.is_empty(), "{id} is fetched");
        assert!(
            subject.needs.original_names().count() > 0,
            "{id} is built here"
        );
        // What is built is ours, and lies here.
        for input in subject.build.iter().flat_map(|build| &build.inputs) {
            let path = root().join(id).join(input).canonicalize();
            let path = path.unwrap_or_else(|error| panic!("{id}: {input}: {error}"));
            let ours = path.starts_with(prony_testkit::root().canonicalize().expect("a folder"));
            assert!(ours, "{id}: {input}");
        }
    }
}

#[test]
fn endpoints_match_whole_paths_and_folders_by_their_star() {
    let mut subject = blank("x", "");
    assert!(subject.answers("/anything"));
    subject.endpoints = vec!["/ping".to_owned(), "/payload/*".to_owned()];
    for yes in ["/ping", "/ping?a=/x", "/payload/10", "/payload/"] {
        assert!(subject.answers(yes), "{yes}");
    }
    for no in ["/pin", "/ping/", "/payload", "/payloads/1", "/"] {
        assert!(!subject.answers(no), "{no}");
    }
}

fn experiment(text: &str, folder: &Path) -> Experiment {
    let text = format!("{text}\nworkload = [{{ request = {{ path = '/ping' }} }}]");
    Experiment::parse(&text, &Origin::new("e.toml", folder)).unwrap()
}

#[test]
fn the_experiment_goes_before_the_file() {
    let experiment = experiment(
        "subject = [{ ref = 'go/fasthttp', name = 'again', args = ['-x'], threads = 3,
           env = { GOMAXPROCS = '1' }, endpoints = ['/a'], ready = { port = true } }]",
        Path::new("/srv"),
    );
    let subject = load_all(&experiment, &root()).unwrap().remove(0);
    assert_eq!(
        (subject.id.as_str(), subject.language.as_str()),
        ("again", "go")
    );
    assert_eq!(subject.start.last().unwrap(), "-x");
    assert_eq!(
        (subject.threads, subject.env["GOMAXPROCS"].as_str()),
        (Some(3), "1")
    );
    assert_eq!(
        (subject.endpoints.as_slice(), subject.ready.sign),
        (&["/a".to_owned()][..], prony_record::ReadyKind::Port)
    );
}

#[test]
fn what_is_no_capability_is_said_and_an_experiments_are_added() {
    let named =
        |name: &str| format!("subject = [{{ cmd = 'a {{port}}', capabilities = ['{name}'] }}]");
    let subject = load_all(&experiment(&named("setuid"), Path::new("/srv")), &root()).unwrap();
    assert_eq!(subject[0].needs.capabilities, ["setuid"]);
    for wrong in ["CAP_SETUID", "SETUID", "root", ""] {
        let text = format!(
            "{}\nworkload = [{{ request = {{ path = '/ping' }} }}]",
            named(wrong)
        );
        let error = Experiment::parse(&text, &Origin::new("e.toml", "/srv")).unwrap_err();
        assert!(error.to_string().contains("is no capability"), "{error}");
    }
    let url = "subject = [{ url = 'http://127.0.0.1:1', capabilities = ['setuid'] }]";
    let text = format!("{url}\nworkload = [{{ request = {{ path = '/ping' }} }}]");
    let error = Experiment::parse(&text, &Origin::new("e.toml", "/srv")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`capabilities` cannot go with `url`"),
        "{error}"
    );
}

#[test]
fn what_a_script_calls_failed_as_a_trial_where_it_was_missing() {
    let text = "subject = [{ cmd = 'sh nginx.sh {port}', commands = ['nginx'] }]";
    let subjects = load_all(&experiment(text, Path::new("/srv")), &root()).unwrap();
    assert_eq!(subjects[0].needs.commands, ["sh", "nginx"]);
}

#[test]
fn a_folder_may_lie_beside_the_experiment() {
    let experiment = experiment(
        "subject = [{ ref = '../subjects/rust/axum' }]",
        &root().join("../experiments"),
    );
    let subjects = load_all(&experiment, Path::new("/nowhere")).unwrap();
    assert_eq!(subjects[0].id, "rust/axum");
    // One in `subjects/` there has its short name, where the own subjects have none of that name.
    let beside = self::experiment("subject = [{ ref = 'rust/axum' }]", &root().join(".."));
    let subjects = load_all(&beside, Path::new("/nowhere")).unwrap();
    assert_eq!(subjects[0].id, "rust/axum");
}

#[test]
fn a_command_needs_its_program() {
    let needs = |command: &str| {
        let origin = Origin::new("e.toml", "/srv");
        from_command(&[command.to_owned()], &origin).needs
    };
    assert_eq!(needs("node").commands, ["node"]);
    assert_eq!(needs("./bin/server").files, ["/srv/bin/server"]);
    assert_eq!(needs("/opt/server").files, ["/opt/server"]);
    assert_eq!(needs("{prony}"), Needs::default());
}

#[test]
fn files_of_subjects_are_reported_each_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine").join(FILE), "nam = 'x'").unwrap();
    let experiment = experiment(
        "subject = [{ ref = './mine' }, { ref = './mine', name = 'b' }, { ref = 'rust/axun' }]",
        folder.path(),
    );
    let wrong = load_all(&experiment, &root()).unwrap_err();
    assert_eq!(wrong.len(), 2);
    assert!(
        wrong[0].to_string().contains("did you mean `rust/axum`?"),
        "{}",
        wrong[0]
    );
    assert!(
        wrong[1].to_string().contains("did you mean `name`?"),
        "{}",
        wrong[1]
    );
}

#[test]
fn names_of_subjects_must_be_there_and_differ() {
    let message = |text: &str| {
        let experiment = experiment(text, Path::new("/srv"));
        load_all(&experiment, &root()).unwrap_err()[0].to_string()
    };
    let twice = message("subject = [{ cmd = 'a {port}' }, { cmd = 'x/a {port}' }]");
    assert!(twice.contains("two subjects are called `a`"), "{twice}");
    let reference = message("run = { reference = 'ab' }\nsubject = [{ cmd = 'abc {port}' }]");
    assert!(reference.contains("did you mean `abc`?"), "{reference}");
}
