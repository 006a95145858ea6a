//! The files that a reader follows through one trial, as docs/contributing.md lists them: they are there, and no more.

use std::collections::BTreeSet;
use std::fs;

/// Files of the list at the most: a change that needs one more joins two others, or says here why not.
const FILES_MAX: usize = 34;

#[test]
fn a_trial_is_followed_through_no_more_files() {
    let root = prony_testkit::root();
    let page = fs::read_to_string(root.join("docs/contributing.md")).expect("the page");
    let (_, chapter) = page.split_once("\n## One trial\n").expect("its chapter");
    let items = chapter.lines().filter_map(|line| line.split_once(". `"));
    let items = items.filter(|(number, _)| number.parse::<usize>().is_ok());
    let files: Vec<&str> = items
        .filter_map(|(_, rest)| rest.split('`').next())
        .collect();
    for file in &files {
        assert!(root.join(file).is_file(), "{file} is not there");
    }
    let distinct: BTreeSet<&&str> = files.iter().collect();
    assert_eq!(distinct.len(), files.len(), "a file is listed twice");
    assert!(files.len() > 20, "the list was found");
    assert!(
        files.len() <= FILES_MAX,
        "{} files, over {FILES_MAX}",
        files.len()
    );
}
