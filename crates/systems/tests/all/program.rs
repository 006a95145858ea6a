//! The program by itself: what `prony` asks of it before it becomes it.

use crate::common::systems;

fn printed(word: &str) -> String {
    let output = systems(&[word]).output().expect("it runs");
    assert!(output.status.success(), "{word}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn it_says_its_version_and_its_words() {
    let version = format!("prony-systems {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed("--version"), version);
    let words = printed("__words");
    for word in [
        "\"bench\"",
        "\"fetch\"",
        "\"host\"",
        "\"lua\"",
        "\"record-scheduling\"",
    ] {
        assert!(words.contains(word), "{word}: {words}");
    }
    assert!(!words.contains("__host-worker"), "{words}");
}
