//! Replays every file of the fuzz corpora through the hooks that the fuzz
//! targets call, so that what the fuzzer found stays found without it.

use std::path::Path;

use crate::hooks;

fn replay(target: &str, hook: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        let data = std::fs::read(&path).expect("a readable file");
        let replayed = std::panic::catch_unwind(|| hook(&data));
        assert!(replayed.is_ok(), "{} fails", path.display());
        files += 1;
    }
    assert!(files > 20, "{} holds only {files} files", folder.display());
}

#[test]
fn request() {
    replay("request", hooks::http1::request);
}

#[test]
fn response() {
    replay("response", hooks::http1::response);
}

#[test]
fn chunked() {
    replay("chunked", hooks::http1::chunked);
}

#[test]
fn fields() {
    replay("fields", hooks::http2::fields);
}

#[test]
fn json() {
    replay("json", hooks::json::json);
}
