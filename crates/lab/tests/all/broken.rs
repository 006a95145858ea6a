//! Broken experiment and subject files, each with the message that its writer gets.
//! Files whose names begin with `subject.` are subjects, the others experiments.

use std::path::{Path, PathBuf};

use prony_lab::diagnosis::Diagnoses;
use prony_lab::experiment::{Experiment, Origin};
use prony_lab::subject::{self, Subject};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken")
}

/// What is said of the file; `None` where nothing is wrong with it.
fn said(file: &Path) -> Option<Vec<Diagnoses>> {
    let text = std::fs::read_to_string(file).expect("a broken file is text");
    let name = file.file_name()?.to_str()?;
    // The folder is never looked at: no experiment here refers to a place beside it.
    let origin = Origin::new(name, "/nowhere");
    if name.starts_with("subject.") {
        return Subject::parse(&text, &origin)
            .err()
            .map(|wrong| vec![wrong]);
    }
    let experiment = match Experiment::parse(&text, &origin) {
        Ok(experiment) => experiment,
        Err(wrong) => return Some(vec![wrong]),
    };
    subject::load_all(&experiment, &folder().join("subjects")).err()
}

#[test]
fn every_broken_file_has_its_message() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort();
    assert!(files.len() >= 30, "{} files", files.len());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut unnoticed = Vec::new();
    for file in &files {
        let name = file.file_stem().expect("it has a name").to_string_lossy();
        let Some(wrong) = said(file) else {
            unnoticed.push(name);
            continue;
        };
        let text: Vec<String> = wrong.iter().map(Diagnoses::to_string).collect();
        settings.bind(|| insta::assert_snapshot!(name.as_ref(), text.join("\n")));
    }
    assert!(unnoticed.is_empty(), "nothing is said of {unnoticed:?}");
}

#[test]
fn every_message_names_file_line_and_column() {
    let mut messages = 0;
    for entry in std::fs::read_dir(folder()).expect("the folder is there") {
        let file = entry.expect("it can be listed").path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        for wrong in said(&file).unwrap_or_default() {
            let place = format!("--> {}:", wrong.path);
            let text = wrong.to_string();
            messages += text.matches("error: ").count();
            assert_eq!(
                text.matches(&place).count(),
                text.matches("error: ").count(),
                "{text}"
            );
        }
    }
    assert!(messages > 70, "only {messages} messages were read");
}
