//! The launcher on machines without Rust, played by stubs of rustup, curl and
//! cargo in an otherwise bare PATH.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common;

/// What the launcher may use of an ordinary machine.
const ORDINARY: [&str; 11] = [
    "bash", "sh", "sed", "find", "readlink", "dirname", "touch", "mkdir", "cp", "chmod", "mv",
];

/// Puts the stub of cargo in place, as an installer would.
const INSTALLS_CARGO: &str =
    "mkdir -p $CARGO_HOME/bin; cp $HOME/stub-cargo $CARGO_HOME/bin/cargo\n";

/// A cargo whose build leaves a program that prints its words.
const CARGO: &str = r##"[ "$1" = build ] || exit 0
mkdir -p target/release
printf '#!/bin/sh\necho "built: $*"\n' > target/release/prony
chmod +x target/release/prony
"##;
/// One whose build of another program leaves that, and what it was asked for.
const CARGO_OF_ANOTHER: &str = r##"[ "$1" = build ] || exit 0
echo "$*" >> asked
mkdir -p target/release
cp $HOME/bin/sh target/release/NAME
"##;

struct Machine {
    folder: PathBuf,
}

impl Machine {
    /// A checkout with the launcher and nothing else, on a machine with `stubs` beside [`ORDINARY`].
    fn new(name: &str, stubs: &[(&str, &str)]) -> Machine {
        let folder = common::folder(name);
        let root = prony_testkit::root();
        for file in ["prony", "rust-toolchain.toml"] {
            fs::copy(root.join(file), folder.join(file)).expect("a file of the checkout");
        }
        let bin = folder.join("bin");
        fs::create_dir(&bin).expect("a folder");
        for command in ORDINARY {
            let path = prony_testkit::find(command)
                .unwrap_or_else(|| panic!("{command} is on every machine"));
            symlink(path, bin.join(command)).expect("a link");
        }
        let machine = Machine { folder };
        machine.stub(&machine.folder.join("stub-cargo"), CARGO);
        for (command, script) in stubs {
            machine.stub(&bin.join(command), script);
        }
        machine
    }

    fn stub(&self, path: &Path, script: &str) {
        prony_testkit::write_program(path, &format!("#!/bin/sh\n{script}"));
    }

    fn prony(&self, words: &[&str], env: &[(&str, &str)]) -> Output {
        let mut command = Command::new(self.folder.join("bin/bash"));
        command
            .arg(self.folder.join("prony"))
            .args(words)
            .env_clear();
        command
            .env("PATH", self.folder.join("bin"))
            .env("HOME", &self.folder)
            .env("CARGO_HOME", self.folder.join("cargo"));
        command
            .envs(env.iter().copied())
            .output()
            .expect("the launcher runs")
    }
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn pinned() -> String {
    let text =
        fs::read_to_string(prony_testkit::root().join("rust-toolchain.toml")).expect("the pin");
    text.split('"')
        .nth(1)
        .expect("a version in quotes")
        .to_owned()
}

#[test]
fn without_rust_and_not_allowed_to_install_it_says_what_is_missing() {
    let machine = Machine::new("launcher-no-install", &[("rustup", "touch $HOME/called")]);
    let output = machine.prony(&["--version"], &[("PRONY_NO_INSTALL", "1")]);
    let (out, err) = said(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(2), ""));
    let version = pinned();
    assert_eq!(
        err,
        format!(
            "prony: Rust {version} is missing; install it from https://rustup.rs, or run again without PRONY_NO_INSTALL=1\n"
        )
    );
    assert!(
        !machine.folder.join("called").exists(),
        "nothing was installed"
    );
}

#[test]
fn with_rustup_the_pinned_toolchain_is_installed_after_one_line() {
    let rustup = format!("echo \"rustup $*\"\n{INSTALLS_CARGO}");
    let machine = Machine::new(
        "launcher-rustup",
        &[("rustup", &rustup), ("cc", ""), ("make", "")],
    );
    let output = machine.prony(&["load", "a b"], &[]);
    let (out, err) = said(&output);
    assert_eq!(
        (output.status.code(), out.as_str()),
        (Some(0), "built: load a b\n"),
        "{err}"
    );
    let version = pinned();
    assert!(err.starts_with(&format!("prony: installing Rust {version} with rustup (once; PRONY_NO_INSTALL=1 prevents this)\n")), "{err}");
    assert!(
        err.contains(&format!(
            "rustup toolchain install {version} --profile minimal"
        )),
        "{err}"
    );
}

#[test]
fn what_the_machine_has_is_not_installed() {
    let cargo = format!(
        "[ \"$1\" != --version ] || [ \"$RUSTUP_AUTO_INSTALL\" = 0 ] || touch $HOME/called\n{CARGO}"
    );
    let called = "touch $HOME/called";
    let machine = Machine::new(
        "launcher-has-all",
        &[
            ("cargo", &cargo),
            ("rustup", called),
            ("curl", called),
            ("cc", ""),
            ("make", ""),
        ],
    );
    let (out, err) = said(&machine.prony(&["load"], &[]));
    assert_eq!(out, "built: load\n", "{err}");
    assert!(!err.contains("installing"), "{err}");
    assert!(!machine.folder.join("called").exists(), "{err}");
}

#[test]
fn what_is_released_is_made_by_a_script_of_its_own() {
    let machine = Machine::new(
        "launcher-dist",
        &[("cargo", CARGO), ("cc", ""), ("make", "")],
    );
    fs::create_dir(machine.folder.join(".ci")).expect("a folder");
    machine.stub(&machine.folder.join(".ci/dist"), "echo \"dist: $*\"\n");
    let (out, err) = said(&machine.prony(&["dist", "a folder"], &[]));
    assert_eq!((out.as_str(), err.as_str()), ("dist: a folder\n", ""));
}

#[test]
fn without_rustup_it_is_fetched_first() {
    let curl = format!("cat <<'END'\necho \"installer $*\"\n{INSTALLS_CARGO}END\n");
    let machine = Machine::new(
        "launcher-curl",
        &[("curl", &curl), ("cc", ""), ("make", "")],
    );
    symlink(
        prony_testkit::find("cat").expect("cat"),
        machine.folder.join("bin/cat"),
    )
    .expect("a link");
    let (out, err) = said(&machine.prony(&["serve"], &[]));
    assert_eq!(out, "built: serve\n", "{err}");
    assert!(
        err.contains(&format!("--default-toolchain {}", pinned())),
        "{err}"
    );
}

#[test]
fn a_machine_without_what_compiles_c_is_told_which_package_has_it() {
    let rustup = INSTALLS_CARGO.to_owned();
    for (stubs, missing) in [
        (
            vec![("rustup", rustup.as_str())],
            "a C compiler is missing; apt-get install -y gcc libc6-dev",
        ),
        (
            vec![("rustup", rustup.as_str()), ("cc", "")],
            "make is missing; apt-get install -y make",
        ),
    ] {
        let machine = Machine::new("launcher-compiler", &stubs);
        let output = machine.prony(&["load"], &[]);
        let (_, err) = said(&output);
        assert_eq!(output.status.code(), Some(2));
        assert!(err.ends_with(&format!("prony: {missing}\n")), "{err}");
    }
}

#[test]
fn a_binary_that_is_newer_than_its_sources_is_run_as_it_is() {
    let rustup = INSTALLS_CARGO.to_owned();
    let machine = Machine::new(
        "launcher-fresh",
        &[("rustup", &rustup), ("cc", ""), ("make", "")],
    );
    machine.prony(&["load"], &[]);
    let (out, err) = said(&machine.prony(&["load", "again"], &[]));
    assert_eq!((out.as_str(), err.as_str()), ("built: load again\n", ""));
}

#[test]
fn the_other_programs_are_built_once_when_they_are_asked_for() {
    for (word, what, asked_of_cargo) in [
        (
            "systems",
            "what Prony brings to be measured",
            "--package prony-systems",
        ),
        (
            "lua54",
            "the workers with Lua 5.4",
            "--manifest-path lua54/Cargo.toml --target-dir TARGET",
        ),
    ] {
        let stubs = [("rustup", INSTALLS_CARGO), ("cc", ""), ("make", "")];
        let machine = Machine::new(&format!("launcher-{word}"), &stubs);
        let name = format!("prony-{word}");
        machine.stub(
            &machine.folder.join("stub-cargo"),
            &CARGO_OF_ANOTHER.replace("NAME", &name),
        );
        let program = machine.folder.join("target/release").join(&name);
        let words = [format!("__build-{word}")];
        let asked = || said(&machine.prony(&[&words[0]], &[]));
        let (out, err) = asked();
        assert_eq!(out.trim_end(), program.to_str().expect("text"), "{err}");
        let building = format!("prony: building {what} (once");
        assert!(err.contains(&building), "{err}");
        assert_eq!(asked(), (out, String::new()));
        let target = machine.folder.join("target").display().to_string();
        let wanted = asked_of_cargo.replace("TARGET", &target);
        let built = fs::read_to_string(machine.folder.join("asked")).expect("it was built");
        assert_eq!(built, format!("build --release --locked {wanted}\n"));
    }
}
