//! In the long tier: of each kind a run whose figures can be used. The tests of all runs accept that a busy machine makes
//! those of short windows unusable; without this one nothing could be valid, and all of them would pass.

use std::fs;
use std::path::Path;

use crate::common;

/// Tries of each kind: something else may take the machine for a moment.
const TRIES: usize = 3;

const STORE: &str = r#"
name = "store"
language = "backing"
role = "backing"
summary = "Stands for a database"
[start]
cmd = ["{prony}", "serve", "--threads", "1", "--port", "{port}"]
[ready]
port = true
[version]
cmd = "{prony} --version"
"#;

/// Of each kind what its experiment has beside the length of its windows.
const KINDS: [(&str, &str); 5] = [
    (
        "server",
        "[[subject]]\nref = 'rust/prony'\n[[workload]]\nrequest = { path = '/hello' }\nconnections = [4]",
    ),
    (
        "program",
        "[[subject]]\nref = 'rust/prony'\n[[workload]]\nwork = 'coroutine'\ncount = 1000000",
    ),
    (
        "client",
        "[[peer]]\nref = 'rust/prony'\n[[subject]]\nref = 'rust/prony-load'\n\
         [[workload]]\nclient = 'requests'\npath = '/hello'\nconnections = [4]",
    ),
    (
        "service",
        "[[backing]]\nref = './store'\n[[subject]]\nref = 'rust/prony'\n\
         [[workload]]\nrequest = { path = '/hello' }\nconnections = [4]\n\
         [[setting]]\nname = 'beside'\nvalues = ['store']\nbacking_of = { store = ['backing/store'] }",
    ),
    (
        "search",
        "[[subject]]\nref = 'rust/prony'\n\
         [[workload]]\nrequest = { path = '/hello' }\nconnections = [4]\nfind_max = 'p50<5ms'\nduration = '200ms'",
    ),
];

#[test]
fn of_each_kind_a_run_is_valid() {
    if !prony_testkit::long() {
        return;
    }
    let folder = common::folder("valid");
    fs::create_dir(folder.join("store")).expect("a folder");
    fs::write(folder.join("store/subject.toml"), STORE).expect("a subject");
    let wrong: Vec<String> = KINDS
        .into_iter()
        .filter_map(|(kind, parts)| wrong_with(&folder, kind, parts))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What was said of the last try, where none was valid.
fn wrong_with(folder: &Path, kind: &str, parts: &str) -> Option<String> {
    let times = match kind {
        "program" => "blocks = 1",
        "client" => "blocks = 1\nduration = '2s'",
        _ => "blocks = 1\nduration = '2s'\nwarmup = '500ms'",
    };
    let file = format!("{kind}.toml");
    let text = format!("title = '{kind}'\n[run]\n{times}\n{parts}\n");
    fs::write(folder.join(&file), text).expect("an experiment");
    let mut last = String::new();
    for number in 0..TRIES {
        let out = format!("{kind}-{number}");
        let output = common::prony(folder, &["run", &file, "--out", &out]);
        if output.status.success() {
            return None;
        }
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let (out, err) = (common::text(&output.stdout), common::text(&output.stderr));
        last = format!("{kind}: {} at a load of {load}{out}{err}", output.status);
    }
    Some(last)
}
