//! The rules of the house (ARCHITECTURE.md, STYLE.md), as far as a program can
//! check them. Each failure names file and line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that do no I/O and read no clock.
const PURE: [&str; 4] = ["wire", "stats", "findings", "report"];
/// Crates in which `unsafe` is allowed, and in which files of them.
const UNSAFE: [(&str, &str); 4] = [
    ("engine", ""),
    ("lab", "launch.rs"),
    ("host", ""),
    ("wsgi", ""),
];
/// What the pure crates may not name.
const IMPURE: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "SystemTime",
    "std::time::Instant",
    "clock::",
    "println!",
];
/// The subject that is built on these crates, and held to their rules.
const OWN_SUBJECT: &str = "subjects/rust/prony-clicky";
/// Tests that may sleep, each with the reason; no other does.
const SLEEPERS: [(&str, &str); 5] = [
    (
        "crates/cli/tests/endings.rs",
        "ends runs at seeded moments, which is what it tests",
    ),
    (
        "crates/lab/tests/faults/killed.rs",
        "kills at seeded moments, which is what it tests",
    ),
    (
        "crates/lab/tests/faults/stage.rs",
        "polls for the end of processes, up to a deadline",
    ),
    (
        "crates/hosting/tests/rehearsal/host.rs",
        "is an application that takes its time, as it is asked to",
    ),
    (
        "crates/lab/tests/faults/tests.rs",
        "kills at seeded moments, which is what it tests",
    ),
];
/// Lines of a function, of one in a test (where a table of cases may be long), and of a file
/// without its tests.
const FUNCTION_LINES_MAX: usize = 70;
const TEST_LINES_MAX: usize = 110;
const FILE_LINES_MAX: usize = 800;

/// Which sibling crates each crate may depend on: arrows point one way.
fn arrows() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("base", &[] as &[_]),
        ("wire", &["base"]),
        ("engine", &["base"]),
        ("runtime", &["base", "engine"]),
        ("http", &["base", "wire", "engine"]),
        ("hosting", &["base", "wire", "engine", "http"]),
        ("host", &["base", "wire", "engine", "http", "hosting"]),
        ("wsgi", &["base", "wire", "engine", "http", "hosting"]),
        (
            "bench",
            &[
                "base", "engine", "wire", "http", "runtime", "load", "record",
            ],
        ),
        ("record", &["base"]),
        ("load", &["base", "wire", "engine", "http", "record"]),
        ("stats", &["base", "record"]),
        ("findings", &["base", "record", "stats"]),
        ("report", &["base", "record", "stats", "findings"]),
        (
            "lab",
            &[
                "base", "wire", "engine", "runtime", "http", "load", "record", "stats",
            ],
        ),
        (
            "cli",
            &[
                "base", "wire", "engine", "http", "load", "record", "stats", "findings", "report",
                "lab", "runtime", "bench", "hosting", "host",
            ],
        ),
        ("testkit", &["base"]),
    ])
}

struct Source {
    /// Path from the root of the repository.
    path: String,
    krate: String,
    lines: Vec<String>,
}

impl Source {
    /// Whether the file holds tests only.
    fn is_test(&self) -> bool {
        ["/tests/", "/benches/", "/examples/", "/fuzz/"]
            .iter()
            .any(|part| self.path.contains(part))
            || self.path.ends_with("tests.rs")
    }

    /// Number of lines before the module of tests.
    fn length(&self) -> usize {
        if self.is_test() {
            return 0;
        }
        self.lines
            .iter()
            .position(|line| line.trim() == "#[cfg(test)]")
            .unwrap_or(self.lines.len())
    }

    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.lines.iter().take(self.length()).enumerate();
        lines
            .map(|(index, line)| (index + 1, line.as_str()))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn walk(folder: &Path, visit: &mut dyn FnMut(PathBuf)) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir()
            && !["target", "node_modules", ".git", "subjects", "corpus"].contains(&name.as_str())
        {
            walk(&path, visit);
        } else if path.is_file() {
            visit(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let root = prony_testkit::root();
    let mut found = Vec::new();
    let mut visit = |path: PathBuf| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path
                .strip_prefix(&root)
                .expect("below the root")
                .to_string_lossy()
                .into_owned();
            let krate = match relative.starts_with("crates/") {
                true => relative.split('/').nth(1).unwrap_or_default().to_owned(),
                false => OWN_SUBJECT.to_owned(),
            };
            let text = fs::read_to_string(&path).expect("a source file is text");
            found.push(Source {
                path: relative,
                krate,
                lines: text.lines().map(str::to_owned).collect(),
            });
        }
    };
    walk(&root.join("crates"), &mut visit);
    walk(&root.join(OWN_SUBJECT), &mut visit);
    assert!(found.len() > 20, "the sources were found");
    found
}

/// Fails with one line for each breach.
fn assert_none(breaches: &[String]) {
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

#[test]
fn arrows_point_one_way() {
    let mut breaches = Vec::new();
    for (krate, allowed) in arrows() {
        let manifest = prony_testkit::root()
            .join("crates")
            .join(krate)
            .join("Cargo.toml");
        let text = fs::read_to_string(manifest).expect("each room has a manifest");
        let ordinary = text.split("[dev-dependencies]").next().unwrap_or_default();
        for line in ordinary.lines().filter(|line| line.starts_with("prony-")) {
            let sibling = line
                .trim_start_matches("prony-")
                .split(['.', ' ', '='])
                .next()
                .unwrap_or_default();
            if !allowed.contains(&sibling) {
                breaches.push(format!(
                    "crates/{krate}/Cargo.toml: {krate} may not depend on {sibling}"
                ));
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn each_room_is_known_here() {
    let rooms = fs::read_dir(prony_testkit::root().join("crates")).expect("the rooms");
    for room in rooms.flatten() {
        let name = room.file_name().to_string_lossy().into_owned();
        assert!(
            arrows().contains_key(name.as_str()),
            "crates/{name} has no arrows in this test"
        );
    }
}

#[test]
fn pure_crates_touch_nothing() {
    let mut breaches = Vec::new();
    for source in sources()
        .iter()
        .filter(|source| PURE.contains(&source.krate.as_str()))
    {
        for (line, text) in source.code() {
            let named = IMPURE.iter().filter(|name| text.contains(*name));
            breaches.extend(
                named.map(|name| {
                    format!("{}:{line}: {name} in a crate that does no I/O", source.path)
                }),
            );
        }
    }
    assert_none(&breaches);
}

#[test]
fn unsafe_stays_where_it_is_allowed_and_says_why() {
    let mut breaches = Vec::new();
    for source in sources() {
        let name = source.path.rsplit('/').next().unwrap_or_default();
        let allowed = UNSAFE
            .iter()
            .any(|&(krate, file)| source.krate == krate && (file.is_empty() || file == name))
            || source.is_test();
        for (line, text) in source.code() {
            let is_unsafe = ["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern"]
                .iter()
                .any(|form| text.contains(form));
            if is_unsafe && !allowed {
                breaches.push(format!("{}:{line}: unsafe outside {UNSAFE:?}", source.path));
            }
        }
    }
    for (krate, _) in arrows() {
        let library = prony_testkit::root()
            .join("crates")
            .join(krate)
            .join("src/lib.rs");
        let forbids = fs::read_to_string(library)
            .expect("a library")
            .contains("#![forbid(unsafe_code)]");
        if !forbids && !UNSAFE.iter().any(|&(allowed, _)| allowed == krate) {
            breaches.push(format!(
                "crates/{krate}/src/lib.rs: does not forbid unsafe code"
            ));
        }
    }
    assert_none(&breaches);
}

#[test]
fn nothing_is_left_for_later() {
    let mut breaches = Vec::new();
    // Written so that this file does not name them itself.
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("#[ign", "ore"),
        concat!("unimple", "mented!"),
    ];
    for source in sources() {
        for (index, text) in source.lines.iter().enumerate() {
            let found = marks.iter().filter(|mark| text.contains(*mark));
            breaches.extend(found.map(|mark| format!("{}:{}: {mark}", source.path, index + 1)));
        }
    }
    assert_none(&breaches);
}

#[test]
fn no_test_sleeps() {
    let mut breaches = Vec::new();
    let sleeps = |source: &Source| SLEEPERS.iter().any(|&(path, _)| source.path == path);
    for source in sources().into_iter().filter(|source| !sleeps(source)) {
        let tests = if source.is_test() { 0 } else { source.length() };
        for (index, text) in source.lines.iter().enumerate().skip(tests) {
            if text.contains(concat!("thread::sl", "eep")) {
                breaches.push(format!("{}:{}: a test that sleeps", source.path, index + 1));
            }
        }
    }
    assert_none(&breaches);
}

/// Where a function begins, its indentation and its name.
fn function_start(line: &str) -> Option<(usize, &str)> {
    let trimmed = line.trim_start();
    let mut words = trimmed.split_whitespace();
    let qualifiers = [
        "pub",
        "pub(crate)",
        "pub(super)",
        "const",
        "async",
        "unsafe",
    ];
    let first = words.find(|word| !qualifiers.contains(word))?;
    let name = words.next()?;
    (first == "fn" && !line.trim_end().ends_with(';')).then(|| (line.len() - trimmed.len(), name))
}

#[test]
fn functions_fit_on_a_screen_and_files_in_a_head() {
    let mut breaches = Vec::new();
    for source in sources() {
        if source.length() > FILE_LINES_MAX {
            breaches.push(format!(
                "{}: {} lines without tests, more than {FILE_LINES_MAX}",
                source.path,
                source.length()
            ));
        }
        let mut open: Option<(usize, usize, String)> = None;
        for (index, line) in source.lines.iter().enumerate() {
            if let Some((indent, name)) = function_start(line) {
                open = Some((index, indent, name.to_owned()));
            }
            let Some((start, indent, name)) = &open else {
                continue;
            };
            if line.len() == indent + 1 && line.ends_with('}') && line[..*indent].trim().is_empty()
            {
                let lines_max = if source.is_test() {
                    TEST_LINES_MAX
                } else {
                    FUNCTION_LINES_MAX
                };
                if index - start + 1 > lines_max {
                    breaches.push(format!(
                        "{}:{}: {name} has {} lines",
                        source.path,
                        start + 1,
                        index - start + 1
                    ));
                }
                open = None;
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn the_program_is_a_library_call() {
    let main =
        fs::read_to_string(prony_testkit::root().join("crates/cli/src/main.rs")).expect("main.rs");
    assert!(
        main.lines().count() < 15,
        "main.rs has {} lines",
        main.lines().count()
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = prony_testkit::root();
    let mut breaches = Vec::new();
    walk(&root, &mut |path| {
        let is_run = path
            .components()
            .any(|part| ["runs", ".prony"].contains(&part.as_os_str().to_string_lossy().as_ref()));
        if path.extension().is_none_or(|extension| extension != "md") || is_run {
            return;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !path
                .parent()
                .expect("a file is in a folder")
                .join(file)
                .exists()
            {
                breaches.push(format!(
                    "{}: {target} leads nowhere",
                    path.strip_prefix(&root).unwrap_or(&path).display()
                ));
            }
        }
    });
    assert_none(&breaches);
}
