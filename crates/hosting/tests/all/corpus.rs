//! Replays every file of the fuzz corpus through the hook that the fuzz target calls, so
//! that what the fuzzer found stays found without it.

use std::path::Path;

#[test]
fn files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/files");
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        let data = std::fs::read(&path).expect("a readable file");
        let hook = || prony_hosting::files::fuzz::files(&data);
        let replayed = std::panic::catch_unwind(hook);
        assert!(replayed.is_ok(), "{} fails", path.display());
        files += 1;
    }
    assert!(files > 20, "{} holds only {files} files", folder.display());
}
