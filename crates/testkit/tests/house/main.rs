//! The rules of the house (ARCHITECTURE.md, STYLE.md), as far as a program can
//! check them. Each failure names file and line.

mod circles;
mod crates;
mod early;
mod imports;
mod source;
mod types;
mod version;
mod words;

use std::collections::BTreeMap;
use std::fs;

use source::{Source, sources, walk};

/// Crates that do no I/O and read no clock.
const PURE: [&str; 5] = ["wire", "record", "stats", "findings", "report"];
/// Crates in which `unsafe` is allowed, and in which files of them.
const UNSAFE: [(&str, &str); 6] = [
    ("engine", ""),
    ("lab", "launch.rs"),
    ("program", "children.rs"),
    ("host", ""),
    ("script", ""),
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
/// Tests that may sleep, each with the reason; no other does.
const SLEEPERS: [(&str, &str); 5] = [
    (
        "crates/cli/tests/all/endings.rs",
        "ends runs at seeded moments, which is what it tests",
    ),
    (
        "crates/lab/tests/faults/killed.rs",
        "kills at seeded moments, which is what it tests",
    ),
    (
        "crates/lab/tests/faults/fixture.rs",
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

/// Which sibling crates each crate may depend on: arrows point one way. Those that it may have of another house are in [`HOUSES`].
fn arrows() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("base", &[] as &[_]),
        ("tls", &[]),
        ("codings", &[]),
        ("wire", &["base"]),
        ("engine", &["base"]),
        ("runtime", &["base", "engine"]),
        ("http", &["base", "wire", "engine", "tls"]),
        ("ping", &["base", "wire", "engine", "runtime", "http"]),
        ("program", &["base", "engine"]),
        ("record", &["base"]),
        (
            "load",
            &[
                "base", "wire", "engine", "tls", "codings", "record", "stats",
            ],
        ),
        ("script", &["base", "wire", "load"]),
        ("agents", &["base", "load", "record"]),
        ("stats", &["base", "record"]),
        ("findings", &["base", "record", "stats"]),
        ("report", &["base", "record", "stats", "findings"]),
        (
            "lab",
            &[
                "base", "wire", "engine", "runtime", "program", "load", "record", "stats", "tls",
            ],
        ),
        (
            "cli",
            &[
                "base", "wire", "engine", "http", "load", "record", "stats", "findings", "report",
                "lab", "ping", "program", "tls", "script", "agents",
            ],
        ),
        (
            "systems",
            &[
                "base", "wire", "engine", "client", "bench", "hosting", "host", "program", "load",
                "record",
            ],
        ),
        ("client", &["base", "wire", "engine", "tls", "codings"]),
        ("hosting", &["base", "wire", "engine", "http"]),
        ("host", &["base", "wire", "engine", "http", "hosting"]),
        ("wsgi", &["base", "wire", "engine", "http", "hosting"]),
        (
            "bench",
            &[
                "base", "engine", "wire", "http", "client", "runtime", "ping", "load", "record",
            ],
        ),
        ("testkit", &["base"]),
    ])
}

/// The houses that a crate may stand in, and of which others it may use what: what measures does not link what is measured.
const HOUSES: [(&str, &[&str], &[&str]); 4] = [
    ("net", &[], &[]),
    ("lab", &["net"], &[]),
    ("systems", &["net"], &["record", "load"]),
    ("tests", &["net"], &[]),
];

/// The house that a crate's manifest names.
fn house(krate: &str) -> String {
    let manifest = prony_testkit::root().join("crates").join(krate);
    let text = fs::read_to_string(manifest.join("Cargo.toml")).expect("each room has a manifest");
    let line = text.lines().find_map(|line| line.strip_prefix("house = "));
    let name = line.unwrap_or_else(|| panic!("crates/{krate}/Cargo.toml names no house"));
    name.trim_matches('"').to_owned()
}

#[test]
fn what_measures_links_nothing_that_is_measured() {
    for (krate, siblings) in arrows() {
        let own = house(krate);
        let known = HOUSES.iter().find(|(name, ..)| *name == own);
        let (_, houses, crates) = known.unwrap_or_else(|| panic!("{krate}: no house `{own}`"));
        for sibling in siblings {
            let of = house(sibling);
            assert!(
                of == own || houses.contains(&&*of) || crates.contains(sibling),
                "{krate} of the house {own} may not use {sibling} of {of}"
            );
        }
    }
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
        for line in source.unsafe_code().filter(|_| !allowed) {
            breaches.push(format!("{}:{line}: unsafe outside {UNSAFE:?}", source.path));
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
fn no_test_is_ignored_and_nothing_unimplemented() {
    let mut breaches = Vec::new();
    // Written so that this file does not name them itself.
    let marks = [concat!("#[ign", "ore"), concat!("unimple", "mented!")];
    for source in sources() {
        for (index, text) in source.lines.iter().enumerate() {
            let found = marks.iter().filter(|mark| text.contains(*mark));
            breaches.extend(found.map(|mark| format!("{}:{}: {mark}", source.path, index + 1)));
        }
    }
    assert_none(&breaches);
}

/// Whether a line lets time pass: sleeps, parks for a time, or turns in a circle until a time has passed.
fn lets_time_pass(line: &str) -> bool {
    let ways = [concat!("thread::sl", "eep"), concat!("park_time", "out")];
    ways.iter().any(|way| line.contains(way))
        || line.contains("while ") && line.contains(concat!(".elapsed", "() <"))
}

#[test]
fn no_test_sleeps() {
    let mut breaches = Vec::new();
    let sleeps = |source: &&Source| SLEEPERS.iter().any(|&(path, _)| source.path == path);
    for source in sources().iter().filter(|source| !sleeps(source)) {
        for (line, text) in source.test_code() {
            if lets_time_pass(text) {
                breaches.push(format!("{}:{line}: a test that sleeps", source.path));
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn a_test_that_parked_or_turned_in_a_circle_was_not_one_that_sleeps() {
    let named = [
        concat!("std::thread::sl", "eep(PAUSE);"),
        concat!("thread::park_time", "out(PAUSE);"),
        concat!("while begun.elapsed", "() < PAUSE {"),
    ];
    assert_eq!(named.map(lets_time_pass), [true; 3]);
    assert!(!lets_time_pass("assert!(begun.elapsed() < PATIENCE);"));
}

#[test]
fn functions_fit_on_a_screen_and_files_in_a_head() {
    let mut breaches = Vec::new();
    for source in sources() {
        let length = source.length();
        if length > FILE_LINES_MAX {
            breaches.push(format!(
                "{}: {length} lines without tests, more than {FILE_LINES_MAX}",
                source.path
            ));
        }
        for function in &source.functions {
            let lines_max = match source.is_test() {
                true => TEST_LINES_MAX,
                false => FUNCTION_LINES_MAX,
            };
            let (name, lines) = (&function.name, function.last - function.first + 1);
            if lines > lines_max {
                breaches.push(format!(
                    "{}:{}: {name} has {lines} lines",
                    source.path, function.first
                ));
            }
        }
    }
    assert_none(&breaches);
}

/// Text before and after an item that is only there in tests, which once hid all that follows.
const EARLY_ITEM: &str = "fn before() {
    unsafe { a() }
}
#[cfg(test)]
use a::{b, c};
struct S;
impl S {
    #[cfg(test)]
    fn only_in_tests() {
        unsafe { b() }
    }
}
fn after() {
    unsafe { c() }
}
macro_rules! m {
    () => {
        fn in_a_macro() {
            unsafe { d() }
        }
    };
}
#[cfg(all(test, not(loom)))]
mod tests {
    fn helper() { unsafe { e() } }
}
";

#[test]
fn what_stands_behind_an_early_item_of_tests_was_not_looked_at() {
    let source = Source::of("crates/base/src/some.rs", EARLY_ITEM);
    assert_eq!(source.unsafe_code().collect::<Vec<_>>(), [2, 14, 19]);
    let names: Vec<&str> = source.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        ["before", "only_in_tests", "after", "in_a_macro", "helper"]
    );
    assert_eq!(source.length(), EARLY_ITEM.lines().count() - 2 - 4 - 4);
    assert!(source.code().any(|(_, text)| text == "fn after() {"));
    let odd = "fn f() {\n    #[cfg(test)]\n    g();\n}\n";
    assert_eq!(Source::of("crates/base/src/odd.rs", odd).unplaced, [2]);
}

#[test]
fn each_mark_of_a_test_is_on_an_item_that_this_program_knows() {
    let mut breaches = Vec::new();
    for source in sources() {
        let lines = source.unplaced.iter();
        breaches.extend(lines.map(|line| {
            format!(
                "{}:{line}: cfg(test) on what tests/house/source.rs cannot place",
                source.path
            )
        }));
    }
    assert_none(&breaches);
}

/// Names that stand where a test is left out, in a function that must then say so.
const LEAVING_OUT: [&str; 4] = [
    "RingUnavailable",
    "ignored_with",
    "with_ignored_flag",
    "ignorable_test",
];
/// What is compiled or not may hang on this in tests: Miri is an exception, and loom is a step
/// of its own.
const CONDITIONS: [&str; 5] = ["test", "miri", "loom", "all", "not"];

#[test]
fn what_a_machine_cannot_run_could_vanish_without_a_word() {
    let mut breaches = Vec::new();
    for source in sources() {
        let functions = source.functions.iter().filter(|function| {
            // In code that is measured these have their ordinary meaning.
            source.is_test_line(function.first)
        });
        for function in functions {
            let named = |name: &&&str| function.names.iter().any(|own| own == **name);
            if let Some(name) = LEAVING_OUT.iter().find(named)
                && !early::says_so(&function.names)
            {
                breaches.push(format!(
                    "{}:{}: {} has {name} without prony_testkit::skip",
                    source.path, function.first, function.name
                ));
            }
        }
        for condition in source.conditions.iter().filter(|condition| {
            let known = |word: &String| CONDITIONS.contains(&word.as_str());
            source.is_test_line(condition.line) && !condition.words.iter().all(known)
        }) {
            breaches.push(format!(
                "{}:{}: a test hangs on cfg({})",
                source.path,
                condition.line,
                condition.words.join(" ")
            ));
        }
    }
    assert_none(&breaches);
}

/// Tests that may return early without a word, each with the reason.
const RETURNING: [(&str, &str, &str); 5] = [
    (
        "crates/client/tests/all/faults.rs",
        "no_descriptor_is_left",
        "is the process without descriptors, whose words the rest of the test reads",
    ),
    (
        "crates/http/tests/all/sim.rs",
        "a_thousand_worlds",
        "plays the one world that PRONY_SEED names, for whoever looks into it",
    ),
    (
        "crates/testkit/tests/skips.rs",
        "plays_a_part",
        "is the process that the tests beside it start",
    ),
    (
        "subjects/rust/prony-clicky/tests/disk.rs",
        "on_the_disk_durable_clicks",
        "is the process on a small disk, whose words the test beside it reads",
    ),
    (
        "subjects/rust/prony-clicky/tests/disk.rs",
        "on_the_disk_clicks_in_memory",
        "is the process on a small disk, whose words the test beside it reads",
    ),
];

#[test]
fn no_test_ends_early_without_a_word() {
    let mut breaches = Vec::new();
    let mut programs: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources() {
        programs.entry(source.program()).or_default().push(source);
    }
    for program in programs.values() {
        let known = early::saying_so(program);
        for source in program {
            let tests = source.tests.iter().filter(|test| {
                let mut may = RETURNING.iter();
                !may.any(|&(path, name, _)| source.path == path && test.name == name)
            });
            for test in tests {
                let silent = test.returns.iter().filter(|way| !way.is_said(&known));
                breaches.extend(silent.map(|way| {
                    format!(
                        "{}:{}: {} ends here without prony_testkit::skip",
                        source.path, way.line, test.name
                    )
                }));
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

/// How large the binary is, `.ci/release` holds; this holds what made it five times as large.
#[test]
fn the_release_binary_carried_line_tables() {
    let manifest = prony_testkit::root().join("Cargo.toml");
    let text = fs::read_to_string(manifest).expect("the workspace's manifest");
    let (_, profile) = text
        .split_once("[profile.release]\n")
        .expect("the profile that is released");
    let profile = profile.split("\n[").next().unwrap_or_default();
    let strips = [
        "strip = \"debuginfo\"",
        "strip = \"symbols\"",
        "strip = true",
    ];
    assert!(
        profile.lines().any(|line| strips.contains(&line)),
        "{profile}"
    );
    let debug = profile.lines().find(|line| line.starts_with("debug ="));
    assert_eq!(debug, None);
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
            // What a template puts there stands in the documents that are made of it, which are tested.
            let is_elsewhere = ["://", "mailto:", "{{"]
                .iter()
                .any(|word| target.contains(word));
            if file.is_empty() || is_elsewhere {
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
