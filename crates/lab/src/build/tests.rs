mod sources;

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::shelf::{KEPT, MARKER};
use super::*;
use crate::experiment::Origin;
use crate::passed::{Passed, To};

/// Starts processes plainly, and remembers what it was asked to.
#[derive(Default)]
struct Plain {
    commands: Mutex<Vec<String>>,
    passed: Mutex<Passed>,
}

impl Plain {
    /// How often a command with `text` in it was asked for.
    fn count(&self, text: &str) -> usize {
        let commands = self.commands.lock().unwrap();
        commands
            .iter()
            .filter(|command| command.contains(text))
            .count()
    }
}

impl Launcher for Plain {
    fn passed(&self) -> Passed {
        self.passed.lock().unwrap().clone()
    }

    fn run(&self, command: &CommandSpec, cancel: &AtomicBool) -> Result<Finished, LaunchError> {
        self.commands
            .lock()
            .unwrap()
            .push(command.resolved.command.join(" "));
        let failed = |error: io::Error| LaunchError(error.to_string());
        let log = File::create(&command.log).map_err(failed)?;
        let mut child = Command::new(&command.resolved.command[0])
            .args(&command.resolved.command[1..])
            .current_dir(&command.resolved.dir)
            .envs(&command.resolved.env)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(Finished::Code(status.code().unwrap_or(-1)));
            }
            let late = Nanos::from(began.elapsed()) > Nanos(command.timeout_ns);
            let interrupted = cancel.load(Ordering::Relaxed);
            if late || interrupted {
                child.kill().map_err(failed)?;
                child.wait().map_err(failed)?;
                return Ok(if late {
                    Finished::TimedOut
                } else {
                    Finished::Interrupted
                });
            }
            std::thread::yield_now();
        }
    }
}

/// A subject in a folder of its own, and a cache.
struct Fixture {
    folder: tempfile::TempDir,
    cancel: AtomicBool,
    launcher: Plain,
    originals: Option<PathBuf>,
    builds_max: usize,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let subject = folder.path().join("it's mine");
        fs::create_dir_all(subject.join("src/deep")).unwrap();
        fs::write(subject.join("src/deep/main.c"), "one\n").unwrap();
        Fixture {
            folder,
            cancel: AtomicBool::new(false),
            launcher: Plain::default(),
            originals: None,
            builds_max: KEPT,
        }
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("it's mine")
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn subject(&self, cmd: &str) -> Subject {
        let text = format!(
            "name = 'mine'\nlanguage = 'c'\nrole = 'server'\nsummary = 's'\nendpoints = ['/']\n\
             [needs]\ncommands = ['sh']\n\
             [build]\ncmd = '''{cmd}'''\ninputs = ['src']\ntimeout_s = 30\n\
             [start]\ncmd = ['{{build}}/x', '{{port}}']\n[ready]\nport = true\n\
             [version]\ncmd = 'cat {{build}}/out; echo more'\n"
        );
        Subject::parse(&text, &Origin::new("subject.toml", self.dir())).unwrap()
    }

    fn build(&self, subject: &Subject) -> BuildOutcome {
        self.with(false, |context| build(subject, context, &self.launcher))
    }

    fn with<T>(&self, only_kept: bool, act: impl FnOnce(&BuildContext<'_>) -> T) -> T {
        act(&BuildContext {
            cache: &self.cache(),
            originals: self.originals.as_deref(),
            prony: Path::new("/usr/bin/prony"),
            builds_max: self.builds_max,
            cancel: &self.cancel,
            only_kept,
        })
    }

    fn ready(&self, subject: &Subject) -> Ready {
        match self.build(subject) {
            BuildOutcome::Ready(ready) => ready,
            BuildOutcome::Failed(failed) => panic!("{failed:?}"),
        }
    }

    fn failed(&self, subject: &Subject) -> Failed {
        match self.build(subject) {
            BuildOutcome::Failed(failed) => failed,
            BuildOutcome::Ready(ready) => panic!("{ready:?}"),
        }
    }

    /// The finished builds in the cache.
    fn builds(&self) -> usize {
        let entries = fs::read_dir(self.cache().join("build")).unwrap().flatten();
        entries
            .filter(|entry| entry.path().join(MARKER).exists())
            .count()
    }
}

#[test]
fn what_is_not_built_is_known_by_the_files_in_its_folder() {
    let fixture = Fixture::new();
    let text = "name = 'mine'\nlanguage = 'c'\nrole = 'server'\nsummary = 's'\nendpoints = ['/']\n\
                [needs]\ncommands = []\n[start]\ncmd = ['true', '{port}']\n[ready]\nport = true\n\
                [version]\ncmd = 'echo 1'\n";
    let subject = Subject::parse(text, &Origin::new("subject.toml", fixture.dir())).unwrap();
    let files = || fixture.ready(&subject).files;
    let first = files();
    assert_eq!(first.len(), 64);
    fs::create_dir_all(fixture.dir().join("__pycache__")).unwrap();
    fs::write(fixture.dir().join("__pycache__/app.pyc"), "made").unwrap();
    assert_eq!(files(), first);
    fs::write(fixture.dir().join("src/deep/main.c"), "two\n").unwrap();
    assert_ne!(files(), first);
    assert_eq!(fixture.ready(&fixture.subject(COPY)).files, "");
}

#[test]
fn what_its_user_has_built_is_known_by_its_content() {
    let mut fixture = Fixture::new();
    let built = fixture.folder.path().join("user's own");
    fs::create_dir_all(built.join("thing/lib/deep")).unwrap();
    for name in ["server", "lib/deep/module", "README"] {
        fs::write(built.join("thing").join(name), "one").unwrap();
    }
    fixture.originals = Some(built.clone());
    let text = "name = 'mine'\nlanguage = 'c'\nrole = 'server'\nsummary = 's'\nendpoints = ['/']\n\
                [needs]\noriginal = { git = 'https://example.org/thing', revision = 'v1' }\n\
                files = ['{originals}/thing/server', '{originals}/thing/lib']\n\
                [start]\ncmd = ['{originals}/thing/server', '{port}']\n[ready]\nport = true\n\
                [version]\ncmd = 'head -n 1 {originals}/thing/VERSION'\n";
    let subject = Subject::parse(text, &Origin::new("subject.toml", fixture.dir())).unwrap();
    let mut with_build = subject.clone();
    with_build.build = fixture.subject(COPY).build;
    let both = || [&subject, &with_build].map(|subject| fixture.ready(subject));
    let first = both();
    for ready in &first {
        assert_eq!(ready.originals, built.display().to_string());
        assert_eq!((ready.files.len(), ready.version.as_str()), (64, ""));
    }
    assert_ne!(first[0].files, first[1].files, "one is with its own folder");
    let same = |others: &[Ready; 2]| [0, 1].map(|at| first[at].files == others[at].files);
    fs::write(built.join("thing/README"), "two").unwrap();
    assert_eq!(same(&both()), [true, true], "it is not among what it needs");
    for name in ["server", "lib/deep/module"] {
        let file = built.join("thing").join(name);
        fs::write(&file, "two").unwrap();
        assert_eq!(same(&both()), [false, false], "{name}");
        fs::write(&file, "one").unwrap();
        assert_eq!(same(&both()), [true, true], "{name}, and back");
    }
    fs::write(built.join("thing/VERSION"), "thing v1, gcc 14\nmore\n").unwrap();
    assert_eq!(both().map(|ready| ready.version), ["thing v1, gcc 14"; 2]);
    fs::remove_file(built.join("thing/server")).unwrap();
    let reason = fixture.failed(&subject).reason;
    assert!(reason.starts_with("original `thing/server`: "), "{reason}");
}

#[test]
fn what_is_not_built_yet_is_due_where_nothing_is_to_be_made() {
    let fixture = Fixture::new();
    let subject = fixture.subject(COPY);
    let kept = || match fixture.with(true, |context| build(&subject, context, &fixture.launcher)) {
        BuildOutcome::Ready(ready) => ready.cached,
        BuildOutcome::Failed(failed) => {
            assert!(failed.due, "{failed:?}");
            false
        }
    };
    let last_time = || fixture.with(true, |context| last_time(&subject, context));
    assert_eq!((kept(), last_time()), (false, None));
    assert!(
        fs::read_dir(fixture.cache().join("build"))
            .unwrap()
            .next()
            .is_none()
    );
    let dir = PathBuf::from(fixture.ready(&subject).dir);
    let took = last_time();
    assert!(kept() && took.is_some());
    // The time of one state of its files is told of the next; an older Prony kept none.
    fs::write(fixture.dir().join("src/deep/main.c"), "two\n").unwrap();
    assert_eq!((kept(), last_time()), (false, took));
    fs::write(dir.join(MARKER), "").unwrap();
    assert_eq!(last_time(), None);
}

#[test]
fn a_command_is_known_by_the_files_that_it_names() {
    let fixture = Fixture::new();
    let (program, script) = (fixture.dir().join("server"), fixture.dir().join("app.lua"));
    let of = |words: &[&str]| {
        let mut subject = fixture.subject(COPY);
        (subject.build, subject.version) = (None, String::new());
        subject.source = Source::Command {
            dir: fixture.dir().display().to_string(),
        };
        subject.start = words.iter().map(|&word| word.to_owned()).collect();
        fixture.ready(&subject).files
    };
    let words = ["./server", "--app=app.lua", "--port", "{port}"];
    assert_eq!(of(&words), "", "neither is there");
    fs::write(&program, "one").unwrap();
    let alone = of(&words);
    fs::write(&script, "one").unwrap();
    let both = of(&words);
    assert_eq!((alone.len(), both.len()), (64, 64));
    assert_ne!(alone, both);
    for (file, what) in [
        (&program, "another executable"),
        (&script, "another script"),
    ] {
        fs::write(file, "two").unwrap();
        assert_ne!(of(&words), both, "{what}");
        fs::write(file, "one").unwrap();
        assert_eq!(of(&words), both, "{what}, and back");
    }
    assert_eq!(of(&["{dir}/server"]).len(), 64);
    // One that is found by PATH; a word that is only called like a folder; what is not to be found.
    assert_eq!(of(&["sh", "src"]), of(&["sh", "elsewhere"]));
    assert_eq!(of(&["no-such-program-here", "{port}"]), "");
}

const COPY: &str = "cat src/deep/main.c > {build}/out";

#[test]
fn a_build_is_done_once_and_kept() {
    let fixture = Fixture::new();
    let subject = fixture.subject(COPY);
    let first = fixture.ready(&subject);
    assert!(!first.cached);
    assert_eq!(first.version, "one");
    assert!(first.dir.contains("/build/c-it_s_mine-"), "{}", first.dir);
    assert_eq!(first.key.len(), 64);
    let second = fixture.ready(&subject);
    assert!(second.cached);
    assert_eq!((first.dir, first.key), (second.dir, second.key));
    assert_eq!(fixture.launcher.count("src/deep/main.c >"), 1);
    let names: Vec<String> = fs::read_dir(fixture.cache().join("build"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert_eq!(names, Vec::<String>::new(), "nothing temporary is left");
}

#[test]
fn content_names_modes_and_subject_toml_are_in_the_key() {
    let fixture = Fixture::new();
    let key = |cmd: &str| fixture.ready(&fixture.subject(cmd)).key;
    let mut keys = vec![key(COPY)];
    keys.push(key("cat src/deep/main.c > {build}/out; true"));
    let file = fixture.dir().join("src/deep/main.c");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    keys.push(key(COPY));
    fs::write(&file, "two").unwrap();
    keys.push(key(COPY));
    fs::write(fixture.dir().join("src/more"), "").unwrap();
    keys.push(key(COPY));
    let different: std::collections::BTreeSet<&String> = keys.iter().collect();
    assert_eq!(different.len(), keys.len());
}

#[test]
fn a_flag_that_was_let_through_was_not_in_the_key() {
    let fixture = Fixture::new();
    let key = |variables: &[(&str, &str)]| {
        let variables = variables.iter();
        let variables = variables.map(|&(name, value)| (name.into(), value.into()));
        *fixture.launcher.passed.lock().unwrap() = Passed::from_variables(variables, To::Builds);
        fixture.ready(&fixture.subject(COPY)).key
    };
    let none = key(&[]);
    assert_eq!(key(&[("RUSTFLAGS", "-g"), ("HOME", "/home/someone")]), none);
    let named = ("PRONY_PASS_ENV", "RUSTFLAGS");
    let debug = key(&[("RUSTFLAGS", "-g"), named]);
    assert_ne!(debug, none);
    assert_ne!(debug, key(&[("RUSTFLAGS", "-O"), named]));
}

#[test]
fn old_builds_go_but_for_two_and_those_in_use() {
    let fixture = Fixture::new();
    let file = fixture.dir().join("src/deep/main.c");
    let subject = fixture.subject(COPY);
    let used = fixture.ready(&subject);
    for round in 0..4 {
        fs::write(&file, format!("round {round}")).unwrap();
        fixture.ready(&subject);
    }
    assert!(Path::new(&used.dir).join(MARKER).exists(), "it is in use");
    drop(used);
    for round in 4..7 {
        fs::write(&file, format!("round {round}")).unwrap();
        fixture.ready(&subject);
    }
    assert_eq!(fixture.builds(), KEPT);
}

#[test]
fn who_comes_back_to_older_builds_has_them_kept() {
    let fixture = Fixture {
        builds_max: 3,
        ..Fixture::new()
    };
    let file = fixture.dir().join("src/deep/main.c");
    let subject = fixture.subject(COPY);
    let dirs = [0, 1, 2, 3].map(|state| {
        fs::write(&file, format!("state {state}")).unwrap();
        PathBuf::from(&fixture.ready(&subject).dir)
    });
    let is_there = dirs.map(|dir| dir.join(MARKER).exists());
    assert_eq!(is_there, [false, true, true, true]);
    assert_eq!(fixture.builds(), 3);
}

#[test]
fn a_failed_build_gives_the_end_of_its_log_and_is_tried_again() {
    let fixture = Fixture::new();
    let subject = fixture.subject(
        "test -e src/there || { seq 1 20; echo 'no there' >&2; exit 3; }; touch {build}/out",
    );
    let failed = fixture.failed(&subject);
    assert!(
        failed
            .reason
            .starts_with("its build failed with status 3: 14 | "),
        "{}",
        failed.reason
    );
    assert!(
        failed.reason.ends_with("| 20 | no there"),
        "{}",
        failed.reason
    );
    let log = failed.log.clone().unwrap();
    assert_eq!(fs::read_to_string(log).unwrap().lines().count(), 21);
    assert!(failed.not_run("c/mine").remedy.starts_with("less "));
    assert_eq!(fixture.builds(), 0);
    fs::write(fixture.dir().join("src/there"), "").unwrap();
    fixture.ready(&subject);
}

#[test]
fn a_build_that_was_cut_off_is_begun_anew() {
    let fixture = Fixture::new();
    let subject = fixture.subject("test ! -e {build}/half && cat src/deep/main.c > {build}/out");
    let prepared = fixture.ready(&subject);
    let dir = PathBuf::from(&prepared.dir);
    fs::remove_file(dir.join(MARKER)).unwrap();
    fs::write(dir.join("half"), "").unwrap();
    drop(prepared);
    let again = fixture.ready(&subject);
    assert!(!again.cached && !dir.join("half").exists());
}

#[test]
fn a_build_that_takes_too_long_is_ended() {
    let fixture = Fixture::new();
    let mut subject = fixture.subject("exec sleep 600");
    subject.build.as_mut().unwrap().timeout = Nanos::from_millis(20);
    let failed = fixture.failed(&subject);
    assert_eq!(failed.reason, "its build took longer than 20.0ms");
}

#[test]
fn an_interrupted_build_says_so_and_leaves_nothing() {
    let fixture = Fixture::new();
    fixture.cancel.store(true, Ordering::Relaxed);
    let failed = fixture.failed(&fixture.subject("exec sleep 600"));
    assert!(failed.interrupted);
    assert_eq!(fixture.builds(), 0);
}

#[test]
fn two_at_once_build_once() {
    let fixture = Fixture::new();
    let subject = fixture.subject(COPY);
    let cached: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| fixture.ready(&subject).cached))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(cached.iter().filter(|&&cached| !cached).count(), 1);
    assert_eq!(fixture.launcher.count("src/deep/main.c >"), 1);
}

#[test]
fn an_input_that_is_not_there_is_named() {
    let fixture = Fixture::new();
    fs::remove_dir_all(fixture.dir().join("src")).unwrap();
    let failed = fixture.failed(&fixture.subject(COPY));
    assert!(
        failed.reason.starts_with("input `src`: No such file"),
        "{}",
        failed.reason
    );
}

#[test]
fn what_is_not_built_only_says_its_version() {
    let fixture = Fixture::new();
    let mut subject = fixture.subject(COPY);
    subject.build = None;
    subject.version = "echo; echo \"$(basename {prony}) 7\"".to_owned();
    let ready = fixture.ready(&subject);
    assert_eq!(
        (ready.version.as_str(), ready.dir.as_str()),
        ("prony 7", "")
    );
    subject.version = "echo no; exit 1".to_owned();
    assert_eq!(fixture.ready(&subject).version, "");
}

#[test]
fn paths_are_quoted_for_a_shell() {
    assert_eq!(quote("/a/b-1.c"), "/a/b-1.c");
    assert_eq!(quote("it's $HOME"), r"'it'\''s $HOME'");
    assert_eq!(quote(""), "''");
}

#[test]
fn inputs_may_lie_outside_and_what_others_made_of_them_does_not_count() {
    let fixture = Fixture::new();
    let tree = fixture.folder.path().join("crates");
    fs::create_dir_all(tree.join("one/target/debug")).unwrap();
    fs::write(tree.join("one/lib.rs"), "one\n").unwrap();
    let mut subject = fixture.subject(COPY);
    if let Some(build) = &mut subject.build {
        build.inputs.push("../crates".to_owned());
    }
    let key = || fixture.ready(&subject).key;
    let first = key();
    for made in ["one/target/debug/out", "one/.git", "node_modules"] {
        fs::write(tree.join(made), "made\n").unwrap();
    }
    assert_eq!(key(), first);
    fs::write(tree.join("one/lib.rs"), "two\n").unwrap();
    assert_ne!(key(), first);
    if let Some(build) = &mut subject.build {
        build.inputs.push("../nothing".to_owned());
    }
    let reason = fixture.failed(&subject).reason;
    assert!(reason.starts_with("input `../nothing`"), "{reason}");
}
