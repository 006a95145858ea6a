//! Programs that tests write and start.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an executable file.
///
/// Not by this process: where another test's thread forks while the file is open for writing, its child has it open until
/// it becomes another program, and nobody can execute the file so long ("Text file busy").
///
/// # Panics
/// Where the file cannot be written.
pub fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("/bin/sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut input = writer.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("it is read");
    drop(input);
    let written = writer.wait().expect("its end");
    assert!(written.success(), "{}: {written}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_can_be_started_at_once_whoever_forks_meanwhile() {
        let folder = crate::folder("program");
        let start = |number: u32| {
            for round in 0..20 {
                let path = folder.join(format!("{number}-{round}"));
                write_program(&path, &format!("#!/bin/sh\necho {round}\n"));
                let output = Command::new(&path).output().expect("it starts");
                assert_eq!(output.stdout, format!("{round}\n").as_bytes());
            }
        };
        std::thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn(move || start(number));
            }
        });
    }
}
