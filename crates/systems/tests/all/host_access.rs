//! The access log of a host, as somebody keeps it who rotates it: on the real
//! `prony host`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use rustix::process::Signal;

use crate::common::PATIENCE;
use crate::host::{Folder, Host};

const APP: &str = r#"
local function app(environ, start_response)
    start_response("200 OK", { { "Content-Type", "text/plain" } })
    return { "hello" }
end
return { app = app }
"#;

/// How often each target stands in a log whose lines are whole.
fn targets(log: &Path) -> BTreeMap<String, u32> {
    let mut count = BTreeMap::new();
    for line in fs::read_to_string(log).unwrap_or_default().lines() {
        let (request, after) = line
            .split_once("] \"GET ")
            .and_then(|(_, rest)| rest.split_once(" HTTP/1.1\" "))
            .unwrap_or_else(|| panic!("{line}"));
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
        assert!(after.starts_with("200 5 \"-\" \"-\" "), "{line}");
        *count.entry(request.to_owned()).or_default() += 1;
    }
    count
}

#[test]
fn a_log_that_is_renamed_goes_on_in_a_new_file_and_no_line_is_lost() {
    for way in ["shared", "least"] {
        let folder = Folder::new();
        folder.write("app.lua", APP);
        let (log, old) = (folder.0.join("access.log"), folder.0.join("old.log"));
        let file = log.to_str().expect("text");
        let options = [
            "--workers",
            "2",
            "--distribution",
            way,
            "--access-log",
            file,
        ];
        let mut host = Host::start(&folder.0, &options);
        let mut asked = BTreeMap::new();
        let mut ask = |host: &Host, target: String| {
            assert_eq!(host.get(&target).text(), "hello");
            asked.insert(target, 1);
        };
        for number in 0..50 {
            ask(&host, format!("/before/{number}"));
        }
        fs::rename(&log, &old).expect("renamed");
        // Until the host is told, the old file has what comes.
        ask(&host, "/between".to_owned());
        assert!(!log.exists(), "{way}");
        host.signal(Signal::HUP);
        host.says("all workers are new");
        let due = Instant::now() + PATIENCE;
        let mut number = 0;
        // Those that leave may answer one more.
        let is_empty = || fs::metadata(&log).map_or(true, |about| about.len() == 0);
        while is_empty() || number < 50 {
            ask(&host, format!("/after/{number}"));
            number += 1;
            assert!(Instant::now() < due, "{way}: no line in the new file");
        }
        host.signal(Signal::TERM);
        assert!(host.ends().success(), "{way}");
        let (before, after) = (targets(&old), targets(&log));
        assert!(before.contains_key("/between"), "{way}: {before:?}");
        assert!(!after.keys().any(|target| target.starts_with("/b")));
        let both: BTreeMap<_, _> = before.into_iter().chain(after).collect();
        assert_eq!(both, asked, "{way}");
    }
}
