//! What README.md shows is true: its commands are ones that the program takes,
//! its files are there, and its excerpts stand word for word in the documents
//! that they are from.

use std::fs;

use clap::Parser as _;
use prony_cli::words::Words;

fn readme() -> String {
    fs::read_to_string(prony_testkit::root().join("README.md")).expect("README.md")
}

/// The lines of all blocks of `language`.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let opened = text.split(&opening).skip(1);
    opened
        .filter_map(|rest| rest.split("```").next())
        .flat_map(str::lines)
        .map(str::to_owned)
        .collect()
}

/// Splits as a shell does: words, `'…'`, and `#` for a comment.
fn words(line: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            '#' if !quoted => break,
            ' ' if !quoted => found.push(String::new()),
            other => found.last_mut().expect("a word").push(other),
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

#[test]
fn its_commands_are_ones_that_the_program_takes() {
    let mut seen = 0;
    for line in blocks(&readme(), "sh") {
        let words = words(&line);
        let (program, rest) = words.split_first().expect("a command");
        assert!(
            prony_testkit::root().join(program).is_file(),
            "{program} is there"
        );
        if program == "./prony" {
            let parsed = Words::try_parse_from(
                std::iter::once("prony").chain(rest.iter().map(String::as_str)),
            );
            assert!(
                parsed.is_ok(),
                "{line}: {}",
                parsed
                    .err()
                    .map(|error| error.to_string())
                    .unwrap_or_default()
            );
            seen += 1;
        }
        for file in rest.iter().filter(|word| word.ends_with(".toml")) {
            assert!(prony_testkit::root().join(file).is_file(), "{line}: {file}");
        }
    }
    assert!(seen >= 8, "its commands were found");
}

#[test]
fn its_excerpts_stand_in_their_documents() {
    let text = readme();
    let mut rows = 0;
    for part in text.split("<!-- excerpt: ").skip(1) {
        let (name, rest) = part.split_once(" -->").expect("the name of a document");
        let excerpt = rest.split("<!-- /excerpt -->").next().expect("its end");
        let document = fs::read_to_string(prony_testkit::root().join(name)).expect(name);
        for line in excerpt.lines().filter(|line| !line.is_empty()) {
            assert!(
                document.lines().any(|there| there == line),
                "{line}\nis not in {name}"
            );
            rows += 1;
        }
    }
    assert!(rows > 10, "a table was found");
}

#[test]
fn its_experiment_is_the_example() {
    let example = fs::read_to_string(prony_testkit::root().join("experiments/own-server.toml"))
        .expect("the example");
    for line in blocks(&readme(), "toml") {
        assert!(example.lines().any(|there| there == line), "{line}");
    }
}
