//! `prony completions` in a shell, and the manual pages.

mod common;

use std::fs;
use std::process::Command;

use common::{PRONY, prony, text};

/// What bash offers after `typed`, a line each.
fn offered(typed: &str) -> Option<Vec<String>> {
    let bash = prony_testkit::need("bash")?;
    let folder = common::folder(&format!("completions-{}", typed.len()));
    let script = prony(&folder, &["completions", "bash"]);
    assert_eq!(script.status.code(), Some(0));
    fs::write(folder.join("prony.bash"), script.stdout).expect("a script");
    std::os::unix::fs::symlink(PRONY, folder.join("prony")).expect("a link");
    let last = typed.split(' ').count() - 1;
    let words = format!(
        "source ./prony.bash; COMP_WORDS=({typed}); [ {last} -lt ${{#COMP_WORDS[@]}} ] || COMP_WORDS+=(\"\"); COMP_CWORD={last}; \
         COMP_LINE='{typed}'; COMP_POINT=${{#COMP_LINE}}; \
         _prony_or_names prony \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{last}-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let mut command = Command::new(bash);
    command
        .args(["--norc", "-c", &words])
        .current_dir(&folder)
        .env("PRONY_HOME", prony_testkit::root());
    let path = std::env::var("PATH").unwrap_or_default();
    let output = command
        .env("PATH", format!("{}:{path}", folder.display()))
        .output()
        .expect("bash runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn bash_completes_commands_flags_values_and_subjects() {
    for (typed, expected) in [
        ("prony doc", "doctor"),
        ("prony doctor --un", "--undo"),
        ("prony list subj", "subjects"),
        ("prony new ci gitl", "gitlab"),
        ("prony check rust/ax", "rust/axum"),
        ("prony check rust/axum c/ngi", "c/nginx"),
        ("prony check --js", "--json"),
    ] {
        let Some(offered) = offered(typed) else {
            return;
        };
        assert_eq!(offered, [expected], "{typed}");
    }
    let Some(all) = offered("prony check ") else {
        return;
    };
    assert!(
        all.len() > 20 && all.contains(&"rust/prony".to_owned()),
        "{all:?}"
    );
    let Some(all) = offered("prony ") else { return };
    assert!(all.contains(&"doctor".to_owned()), "{all:?}");
    assert!(all.iter().all(|word| !word.starts_with("__")), "{all:?}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = common::folder("man");
    let output = prony(&folder, &["__man", "pages"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = |name: &str| fs::read_to_string(folder.join("pages").join(name)).expect("a page");
    assert!(
        page("prony.1").contains("prony\\-doctor(1)"),
        "{}",
        page("prony.1")
    );
    assert!(page("prony-doctor.1").contains("\\-\\-undo"));
    assert!(page("prony-new-ci.1").contains("GitLab"));
    let pages = fs::read_dir(folder.join("pages")).expect("pages").flatten();
    let hidden = pages.filter(|page| page.file_name().to_string_lossy().contains("__"));
    assert_eq!(hidden.count(), 0);
}

#[test]
fn bad_words_are_named() {
    let folder = common::folder("completions-bad");
    let output = prony(&folder, &["completions", "tcsh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("bash, zsh, fish"));
    fs::write(folder.join("file"), "").expect("a file");
    let output = prony(&folder, &["__man", "file/pages"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("cannot write file/pages"),
        "{}",
        text(&output.stderr)
    );
}
