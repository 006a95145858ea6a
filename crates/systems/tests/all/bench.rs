//! `prony bench`: each work by itself, as a user starts it.

use std::process::Output;

use prony_bench::Work;
use prony_record::ProgramLine;

use crate::common::systems;

fn bench(words: &[&str]) -> Output {
    let output = systems(&["bench"]).args(words).output();
    output.expect("it starts")
}

#[test]
fn every_work_prints_a_line_for_people_and_one_for_programs() {
    for work in Work::ALL {
        let said = bench(&[work.name(), "-n", "20"]);
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(
            said.status.success(),
            "{work}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
        let begins = format!("prony bench {work}, one thread: ");
        assert!(
            text.starts_with(&begins) && text.contains(" B peak memory, "),
            "{text}"
        );

        let said = bench(&[work.name(), "-n", "20", "--json"]);
        let line: ProgramLine = serde_json::from_slice(&said.stdout).expect("one line of JSON");
        assert_eq!((line.count, line.threads), (20, 1));
        assert!(line.elapsed_ns > 0 && !line.checksum.is_empty());
        let value: serde_json::Value = serde_json::from_slice(&said.stdout).expect("an object");
        assert!(
            value["peak_bytes"]
                .as_u64()
                .is_some_and(|bytes| bytes > 1 << 20)
        );
    }
}

#[test]
fn each_thread_does_the_whole_work() {
    let one = bench(&["serializer", "-n", "1000", "--json"]);
    let two = bench(&["serializer", "-n", "1000", "-t", "2", "--json"]);
    let [one, two]: [ProgramLine; 2] =
        [one, two].map(|said| serde_json::from_slice(&said.stdout).expect("one line of JSON"));
    assert_eq!((two.count, two.bytes), (2 * one.count, 2 * one.bytes));
    let number = |line: &ProgramLine| line.checksum.parse::<u64>().expect("a number");
    assert_eq!(number(&two), 2 * number(&one));
}

#[test]
fn a_work_that_is_not_there_is_answered_with_those_that_are() {
    let said = bench(&["corutine"]);
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(2));
    assert!(
        text.contains("unknown work `corutine`: use one of coroutine, event"),
        "{text}"
    );
}

#[test]
fn a_flag_of_another_work_was_taken_and_did_nothing() {
    for (words, of) in [
        (["event", "--injection", "constructor"], "start"),
        (["start-stop", "--injection", "explicit"], "start"),
        (["start", "--priorities", "8"], "event"),
        (["coroutine", "--priorities", "1"], "event"),
        (["event", "--deadline", "2ms"], "realtime"),
        (["start", "--handler", "plain"], "event"),
        (["serializer", "--payload", "32"], "event"),
        (["event", "--through", "tasks"], "coroutine"),
    ] {
        let said = bench(&[&words[..], &["-n", "1"]].concat());
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(2), "{words:?}: {text}");
        let (work, flag) = (words[0], words[1]);
        let wanted = format!("{flag} belongs to the work {of} and has no effect on {work}");
        assert!(text.contains(&wanted) && said.stdout.is_empty(), "{text}");
    }
    for words in [
        ["start", "--injection", "constructor"],
        ["event", "--priorities", "8"],
        ["event", "--handler", "none"],
        ["event", "--payload", "32"],
        ["coroutine", "--through", "tasks"],
        ["realtime", "--deadline", "1h"],
    ] {
        let said = bench(&[&words[..], &["-n", "20"]].concat());
        assert_eq!(said.status.code(), Some(0), "{words:?}");
    }
}
