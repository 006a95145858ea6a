//! Subjects that are built from repositories, made here in temporary folders.

use super::*;

/// Runs git in `folder`, as someone whose settings are known.
fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@localhost",
            "-c",
            "init.defaultBranch=main",
        ])
        .arg("-C")
        .arg(folder)
        .args(words)
        .output()
        .expect("git runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {words:?}: {message}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A fixture with a repository `thing`, which has two commits: `main.c` says `one`, then `two`.
struct Upstream {
    fixture: Fixture,
    commits: [String; 2],
}

impl Upstream {
    fn new() -> Upstream {
        let fixture = Fixture::new();
        let commits = repository(&fixture.folder.path().join("thing"), "main.c");
        Upstream { fixture, commits }
    }

    fn folder(&self) -> PathBuf {
        self.fixture.folder.path().join("thing")
    }

    fn address(&self) -> String {
        format!("file://{}", self.folder().display())
    }

    /// A subject that is built by a copy of `main.c` in its work tree.
    fn subject(&self, revision: &str) -> Subject {
        self.subject_with(&format!(
            "git = '{}'\nrevision = '{revision}'",
            self.address()
        ))
    }

    fn subject_with(&self, source: &str) -> Subject {
        let text = format!(
            "name = 'mine'\nlanguage = 'c'\nrole = 'server'\nsummary = 's'\nendpoints = ['/']\n\
             [needs]\ncommands = ['sh']\n[source]\n{source}\n\
             [build]\ncmd = 'cat main.c > {{build}}/out; touch made'\ninputs = []\n\
             [start]\ncmd = ['{{build}}/x', '{{port}}']\n[ready]\nport = true\n\
             [version]\ncmd = 'cat {{build}}/out'\n"
        );
        match Subject::parse(&text, &Origin::new("subject.toml", self.fixture.dir())) {
            Ok(subject) => subject,
            Err(wrong) => panic!("{wrong}"),
        }
    }

    /// The bare repositories in the cache, by name: whether they are whole.
    fn kept(&self) -> Vec<(PathBuf, bool)> {
        let entries = fs::read_dir(self.fixture.cache().join("source")).unwrap();
        let folders = entries.flatten().map(|entry| entry.path());
        let folders = folders.filter(|path| path.is_dir());
        folders
            .map(|path| (path.clone(), path.join(MARKER).is_file()))
            .collect()
    }
}

fn repository(folder: &Path, file: &str) -> [String; 2] {
    fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "--quiet"]);
    ["one", "two"].map(|text| {
        fs::write(folder.join(file), text).unwrap();
        git(folder, &["add", "."]);
        git(folder, &["commit", "--quiet", "-m", text]);
        git(folder, &["rev-parse", "HEAD"])
    })
}

#[test]
fn the_named_revision_is_built_and_no_other() {
    let upstream = Upstream::new();
    let [one, two] = &upstream.commits;
    let (first, second) = (
        upstream.fixture.ready(&upstream.subject(one)),
        upstream.fixture.ready(&upstream.subject(two)),
    );
    assert_eq!(
        (first.version.as_str(), second.version.as_str()),
        ("one", "two")
    );
    assert_ne!(first.key, second.key);
    assert_eq!(first.repositories.len(), 1);
    let recorded = &first.repositories[0];
    assert_eq!(
        (&recorded.git, &recorded.commit),
        (&upstream.address(), one)
    );
    // The build wrote into its own work tree, and not into the repository.
    assert!(Path::new(&first.dir).join("source/made").exists());
    assert!(!upstream.folder().join("made").exists());
    // What is there is not asked for again, nor is the repository needed for it any more.
    let fetches = upstream.fixture.launcher.count(" fetch ");
    fs::remove_dir_all(upstream.folder()).unwrap();
    assert!(upstream.fixture.ready(&upstream.subject(one)).cached);
    assert_eq!(upstream.fixture.launcher.count(" fetch "), fetches);
}

#[test]
fn a_revision_that_is_not_there_is_named_and_nothing_is_kept() {
    let upstream = Upstream::new();
    let none = "0123456789abcdef0123456789abcdef01234567";
    for (revision, what) in [(none, "commit"), ("v9", "tag"), ("main", "tag")] {
        let failed = upstream.fixture.failed(&upstream.subject(revision));
        let message = format!("has no {what} `{revision}`");
        assert!(failed.reason.contains(&message), "{}", failed.reason);
        assert!(
            failed.remedy.contains("git clone --bare file://"),
            "{}",
            failed.remedy
        );
    }
    let tree = git(&upstream.folder(), &["rev-parse", "HEAD^{tree}"]);
    let failed = upstream.fixture.failed(&upstream.subject(&tree));
    assert!(failed.reason.contains("has no commit"), "{}", failed.reason);
    assert_eq!(upstream.kept(), []);
    assert_eq!(upstream.fixture.launcher.count("cat main.c"), 0);
}

#[test]
fn a_tag_that_moved_was_taken_for_what_it_was() {
    let upstream = Upstream::new();
    let [one, two] = &upstream.commits;
    git(&upstream.folder(), &["tag", "-a", "-m", "first", "v1", one]);
    let subject = upstream.subject("v1");
    let first = upstream.fixture.ready(&subject);
    assert_eq!(&first.repositories[0].commit, one);
    assert!(upstream.fixture.ready(&subject).cached);
    git(&upstream.folder(), &["tag", "-f", "v1", two]);
    let failed = upstream.fixture.failed(&subject);
    let message = format!("moved: it named {one}, and names {two} now");
    assert!(failed.reason.contains(&message), "{}", failed.reason);
    // What it says to do helps, and out of reach of the repository what is known counts.
    assert!(failed.remedy.starts_with("rm -r "), "{}", failed.remedy);
    for (bare, _) in upstream.kept() {
        fs::remove_dir_all(bare).unwrap();
    }
    assert_eq!(upstream.fixture.ready(&subject).version, "two");
    fs::remove_dir_all(upstream.folder()).unwrap();
    assert_eq!(
        &upstream.fixture.ready(&subject).repositories[0].commit,
        two
    );
}

#[test]
fn what_cannot_be_reached_is_not_run_and_says_what_would_bring_it() {
    let mut upstream = Upstream::new();
    let subject = upstream.subject(&upstream.commits[0]);
    fs::rename(
        upstream.folder(),
        upstream.fixture.folder.path().join("away"),
    )
    .unwrap();
    let not_run = upstream.fixture.failed(&subject).not_run("c/mine");
    assert!(
        not_run
            .reason
            .starts_with("its source cannot be had: git ls-remote:"),
        "{}",
        not_run.reason
    );
    let wanted = format!(
        "git clone --bare {} originals/thing && export PRONY_ORIGINALS=\"$PWD/originals\"",
        upstream.address()
    );
    assert_eq!(not_run.remedy, wanted);
    // The folder that is named has it under its own name.
    let originals = upstream.fixture.folder.path().join("originals");
    upstream.fixture.originals = Some(originals.clone());
    assert!(
        upstream
            .fixture
            .failed(&subject)
            .remedy
            .ends_with("/originals/thing")
    );
    fs::create_dir_all(&originals).unwrap();
    git(
        upstream.fixture.folder.path(),
        &["clone", "--quiet", "--bare", "away", "originals/thing"],
    );
    assert_eq!(upstream.fixture.ready(&subject).version, "one");
}

#[test]
fn without_git_the_reason_is_git() {
    let upstream = Upstream::new();
    struct WithoutGit<'a>(&'a Plain);
    impl Launcher for WithoutGit<'_> {
        fn run(&self, command: &CommandSpec, cancel: &AtomicBool) -> Result<Finished, LaunchError> {
            match command.resolved.command[0].as_str() {
                "git" => Err(LaunchError("No such file or directory".to_owned())),
                _ => self.0.run(command, cancel),
            }
        }
    }
    let context = BuildContext {
        cache: &upstream.fixture.cache(),
        originals: None,
        prony: Path::new("/usr/bin/prony"),
        builds_max: KEPT,
        cancel: &upstream.fixture.cancel,
        only_kept: false,
    };
    let launcher = WithoutGit(&upstream.fixture.launcher);
    match build(&upstream.subject(&upstream.commits[0]), &context, &launcher) {
        BuildOutcome::Failed(failed) => {
            assert!(
                failed
                    .reason
                    .contains("git cannot be started: No such file"),
                "{}",
                failed.reason
            );
        }
        BuildOutcome::Ready(ready) => panic!("{ready:?}"),
    }
}

#[test]
fn a_checkout_that_was_changed_is_refused_until_the_change_has_a_name() {
    let mut upstream = Upstream::new();
    let [one, two] = upstream.commits.clone();
    // The folder itself is what the user works in: at `two`, and asked for `one`.
    upstream.fixture.originals = Some(upstream.fixture.folder.path().to_path_buf());
    assert_eq!(
        upstream.fixture.ready(&upstream.subject(&one)).version,
        "one"
    );
    fs::write(upstream.folder().join("main.c"), "three").unwrap();
    fs::write(upstream.folder().join("object.o"), "made by a build").unwrap();
    let failed = upstream.fixture.failed(&upstream.subject(&two));
    assert!(
        failed.reason.contains("thing was changed (M main.c)"),
        "{}",
        failed.reason
    );
    assert!(failed.remedy.ends_with(" stash"), "{}", failed.remedy);
    git(
        &upstream.folder(),
        &["commit", "--quiet", "-a", "-m", "three"],
    );
    let three = git(&upstream.folder(), &["rev-parse", "HEAD"]);
    assert_eq!(
        upstream.fixture.ready(&upstream.subject(&three)).version,
        "three"
    );
    assert_eq!(
        upstream.fixture.ready(&upstream.subject(&two)).version,
        "two"
    );
}

#[test]
fn a_fetch_that_was_killed_in_the_middle_is_begun_anew() {
    let upstream = Upstream::new();
    let subject = upstream.subject(&upstream.commits[0]);
    let prepared = upstream.fixture.ready(&subject);
    let (bare, is_whole) = upstream.kept().remove(0);
    assert!(is_whole);
    // As a kill leaves it: no marker, a lock of git's own, half of what was there; and a work tree that is cut off.
    fs::remove_file(bare.join(MARKER)).unwrap();
    fs::write(bare.join("shallow.lock"), "").unwrap();
    fs::remove_dir_all(bare.join("objects")).unwrap();
    let dir = PathBuf::from(&prepared.dir);
    fs::remove_file(dir.join(MARKER)).unwrap();
    fs::write(dir.join("source/main.c"), "ha").unwrap();
    drop(prepared);
    let again = upstream.fixture.ready(&subject);
    assert!(!again.cached);
    assert_eq!(again.version, "one");
    // One that is interrupted while it runs leaves nothing that could be taken for whole.
    upstream.fixture.cancel.store(true, Ordering::Relaxed);
    assert!(
        upstream
            .fixture
            .failed(&upstream.subject(&upstream.commits[1]))
            .interrupted
    );
    assert_eq!(upstream.kept().len(), 1);
}

#[test]
fn two_runs_at_once_fetch_once() {
    let upstream = Upstream::new();
    let subject = upstream.subject(&upstream.commits[1]);
    let versions: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| upstream.fixture.ready(&subject).version))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.collect()
    });
    assert_eq!(versions, ["two"; 4]);
    assert_eq!(upstream.fixture.launcher.count("init --quiet --bare"), 1);
    assert_eq!(upstream.fixture.launcher.count("cat main.c"), 1);
}

#[test]
fn modules_lie_in_the_work_tree_and_what_they_stand_for_is_recorded() {
    let upstream = Upstream::new();
    let module = upstream.fixture.folder.path().join("part");
    let [old, new] = repository(&module, "part.h");
    let entry = format!("160000,{old},external/part");
    git(
        &upstream.folder(),
        &["update-index", "--add", "--cacheinfo", &entry],
    );
    git(
        &upstream.folder(),
        &["commit", "--quiet", "-m", "with a module"],
    );
    let commit = git(&upstream.folder(), &["rev-parse", "HEAD"]);
    let with = |path: &str, revision: &str| {
        upstream.subject_with(&format!(
            "git = '{}'\nrevision = '{commit}'\nmodules = [{{ path = '{path}', git = 'file://{}', revision = '{revision}' }}]",
            upstream.address(),
            module.display()
        ))
    };
    let same = upstream.fixture.ready(&with("external/part", &old));
    assert_eq!(same.repositories[1].in_place_of, "");
    let part = Path::new(&same.dir).join("source/external/part/part.h");
    assert_eq!(fs::read_to_string(part).unwrap(), "one");
    let other = upstream.fixture.ready(&with("external/part", &new));
    assert_eq!(other.repositories[1].in_place_of, old);
    assert_ne!(same.key, other.key);
    let failed = upstream.fixture.failed(&with("main.c", &old));
    assert!(failed.reason.contains("main.c"), "{}", failed.reason);
}
