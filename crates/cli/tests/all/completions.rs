//! `prony completions` in a shell, and the manual pages.

use std::fs;
use std::process::Command;

use crate::common::{self, PRONY, prony, text};

/// Two subjects that are there wherever Prony is.
const EXPERIMENT: &str = "title = \"t\"\n[[subject]]\nname = \"a\"\ncmd = \"{prony} serve --port {port}\"\n\
                          [[subject]]\nname = \"b\"\ncmd = \"{prony} serve --port {port}\"\n\
                          [[workload]]\nrequest = { path = \"/hello\" }\nconnections = [1, 20]\n";

/// What bash offers after `typed`, a line each.
fn offered(typed: &str) -> Option<Vec<String>> {
    let bash = prony_testkit::need("bash")?;
    let plain: String = typed.chars().filter(char::is_ascii_alphanumeric).collect();
    let folder = common::folder(&format!("completions-{plain}"));
    let script = prony(&folder, &["completions", "bash"]);
    assert_eq!(script.status.code(), Some(0));
    fs::write(folder.join("prony.bash"), script.stdout).expect("a script");
    std::os::unix::fs::symlink(PRONY, folder.join("prony")).expect("a link");
    fs::write(folder.join("pinned.toml"), EXPERIMENT).expect("an experiment");
    fs::create_dir(folder.join("pinging")).expect("a folder");
    // As bash splits it: at blanks that are not escaped, and around `=`.
    let split = typed.replace("\\ ", "\u{1}").replace('=', " = ");
    let parts: Vec<String> = split
        .split(' ')
        .map(|part| part.replace('\u{1}', "\\ "))
        .collect();
    let last = parts.len() - 1 - usize::from(typed.ends_with('='));
    let quoted: Vec<String> = parts.iter().map(|part| format!("'{part}'")).collect();
    let array = quoted[..=last].join(" ");
    let words = format!(
        "source ./prony.bash; COMP_WORDS=({array}); [ {last} -lt ${{#COMP_WORDS[@]}} ] || COMP_WORDS+=(\"\"); COMP_CWORD={last}; \
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
        ("prony doct", "doctor"),
        ("prony doctor --un", "--undo"),
        ("prony list subj", "subjects"),
        ("prony new ci gitl", "gitlab"),
        ("prony check rust/ax", "rust/axum"),
        ("prony check rust/axum c/ngi", "c/nginx"),
        ("prony check --js", "--json"),
        ("prony run nib", "nibiru"),
        ("prony log nib", "nibiru"),
        ("prony run --quick ping-o", "ping-original"),
        ("prony run pinn", "pinned.toml"),
        ("prony run pinged.toml --qu", "--quick"),
        ("prony run pinned.toml --only b\\ hello\\ c=2", "20"),
        ("prony run --quick pinned.toml --only a\\ hello\\ c=1", "1"),
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
    // Names of experiments, files and folders.
    let Some(pin) = offered("prony run pin") else {
        return;
    };
    assert_eq!(pin, ["ping", "ping-original", "pinned.toml", "pinging"]);
    let Some(cells) = offered("prony run pinned.toml --only b") else {
        return;
    };
    assert_eq!(cells, ["b", "b\\ hello\\ c=1", "b\\ hello\\ c=20"]);
    let Some(all) = offered("prony run pinned.toml --only ") else {
        return;
    };
    assert_eq!(all.len(), 6, "{all:?}");
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
