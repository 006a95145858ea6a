//! `prony bench`, `fetch`, `host` and `lua`, as which `prony` becomes the program beside it. What they do is tested in
//! `crates/systems`.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{PRONY, folder, systems, text};

#[test]
fn prony_becomes_the_program_beside_it_with_its_words() {
    let _systems = systems();
    let file = folder("becomes").join("process.lua");
    fs::write(&file, "print(io.open('/proc/self/stat'):read('*n'), ...)").expect("a file");
    let child = Command::new(PRONY)
        .arg("lua")
        .arg(&file)
        .args(["a", "--b"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("prony starts");
    let wanted = format!("{}\ta\t--b\n", child.id());
    let output = child.wait_with_output().expect("its output");
    assert_eq!(text(&output.stdout), wanted);

    let mut fetch = Command::new(PRONY);
    fetch.args([
        "fetch",
        "-o",
        "one",
        "http://127.0.0.1:1/a",
        "http://127.0.0.1:1/b",
    ]);
    let output = fetch.output().expect("prony starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("-o names one file"), "{said}");
}
