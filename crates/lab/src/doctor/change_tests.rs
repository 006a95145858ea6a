use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
const GOVERNOR_0: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";

/// A machine with three ailments, and where its note lies.
fn machine() -> (TempDir, Tree, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::at(folder.path().join("machine"));
    for (path, text) in [
        (SOMAXCONN, "128\n"),
        (BOOST, "1\n"),
        (GOVERNOR_0, "powersave\n"),
    ] {
        let place = tree.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    let note = folder.path().join("state/changes.json");
    (folder, tree, note)
}

fn says(tree: &Tree) -> [String; 3] {
    [GOVERNOR_0, BOOST, SOMAXCONN].map(|path| tree.text(path).unwrap())
}

#[test]
fn what_was_changed_is_put_back() {
    let (_folder, tree, note) = machine();
    let changes = wanted(&tree);
    assert_eq!(changes.len(), 3);
    let done = make(&tree, &changes, &note).unwrap();
    assert!(done.iter().all(|done| done.refused.is_none()), "{done:?}");
    assert_eq!(says(&tree), ["performance", "0", "4096"]);
    assert!(wanted(&tree).is_empty());
    assert_eq!(noted(&note).unwrap(), changes);
    let done = undo(&tree, &note).unwrap();
    assert_eq!(done.len(), 3);
    assert_eq!(says(&tree), ["powersave", "1", "128"]);
    assert!(!note.exists() && undo(&tree, &note).unwrap().is_empty());
}

#[test]
fn a_second_fix_forgot_what_was_there_first() {
    let (_folder, tree, note) = machine();
    make(&tree, &wanted(&tree), &note).unwrap();
    fs::write(tree.place(SOMAXCONN), "256").unwrap();
    make(&tree, &wanted(&tree), &note).unwrap();
    undo(&tree, &note).unwrap();
    assert_eq!(says(&tree), ["powersave", "1", "128"]);
}

#[test]
fn what_somebody_else_changed_since_is_left_alone() {
    let (_folder, tree, note) = machine();
    make(&tree, &wanted(&tree), &note).unwrap();
    fs::write(tree.place(SOMAXCONN), "512").unwrap();
    let done = undo(&tree, &note).unwrap();
    let refused: Vec<&str> = done
        .iter()
        .filter_map(|done| done.refused.as_deref())
        .collect();
    assert_eq!(refused, ["it says `512` by now, which Prony did not write"]);
    assert_eq!(says(&tree), ["powersave", "1", "512"]);
    assert_eq!(noted(&note).unwrap().len(), 1);
}

#[test]
fn what_was_refused_is_not_noted() {
    let (_folder, tree, note) = machine();
    let change = |path: &str| Change {
        path: path.to_owned(),
        old: "0".to_owned(),
        new: "1".to_owned(),
    };
    let done = make(
        &tree,
        &[change("/proc/sys/kernel/io_uring_disabled")],
        &note,
    )
    .unwrap();
    assert!(done[0].refused.is_some());
    assert!(!note.exists());
    let mode = fs::Permissions::from_mode(0o444);
    fs::set_permissions(tree.place(BOOST), mode).unwrap();
    let done = make(&tree, &[change(BOOST)], &note).unwrap();
    // Root may write it nevertheless.
    if let Some(refused) = &done[0].refused {
        assert_eq!(refused, "it may not be written: run this with sudo");
        assert!(!note.exists());
    }
}

#[test]
fn a_note_of_a_stranger_is_refused() {
    let (_folder, tree, note) = machine();
    fs::create_dir_all(note.parent().unwrap()).unwrap();
    for (path, why) in [
        ("/etc/passwd", "never changes"),
        ("/proc/sys/net/core/../../../etc/passwd", "never changes"),
        (
            "/sys/devices/system/cpu/cpu0/../../x/cpufreq/scaling_governor",
            "never changes",
        ),
    ] {
        let text = format!(r#"{{"schema":1,"changes":[{{"path":"{path}","old":"a","new":"b"}}]}}"#);
        fs::write(&note, text).unwrap();
        let error = undo(&tree, &note).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    for (text, why) in [
        ("", "EOF"),
        (r#"{"schema":9,"changes":[]}"#, "schema 9"),
        (r#"{"schema":1,"changes":[],"more":1}"#, "unknown field"),
    ] {
        fs::write(&note, text).unwrap();
        let error = undo(&tree, &note).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
