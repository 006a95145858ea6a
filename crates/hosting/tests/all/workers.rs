//! Hosts with workers, from without: what serves, what is replaced, what ends.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::common::{self, Host, answer, ask, command, is_closed, is_gone, watch_number, who};
use rustix::process::Signal;

const WAYS: [&str; 3] = ["shared", "reuseport", "least"];

#[test]
fn each_way_of_distribution_serves_and_ends_when_it_is_told_to() {
    for way in WAYS {
        let mut host = Host::start(&["--workers", "2", "--distribution", way]);
        let (number, process, version) = host.who();
        assert!(number < 2, "{way}");
        assert_eq!(version, "v1", "{way}");
        let worker = watch_number(process);
        host.signal(Signal::TERM);
        assert!(host.ends().success(), "{way}");
        assert!(is_gone(&worker), "{way}");
        assert_eq!(host.last_words(), "", "{way}");
    }
}

/// A socket is a blocking one for all who accept from it, or for none.
#[test]
fn workers_on_one_socket_chose_their_driver_each_for_itself() {
    let options = [
        "--workers",
        "2",
        "--distribution",
        "shared",
        "--driver",
        "auto",
    ];
    let host = Host::start(&options);
    let mut stream = host.connect();
    ask(&mut stream, "/driver");
    let (_, driver) = answer(&mut stream).expect("an answer");
    assert!(["ring", "epoll"].contains(&&*driver), "{driver}");
}

#[test]
fn of_few_connections_each_of_several_workers_has_as_many_unless_told_otherwise() {
    let host = Host::start(&["--workers", "4"]);
    let mut streams: Vec<_> = (0..12).map(|_| host.connect()).collect();
    let mut count = BTreeMap::new();
    for stream in &mut streams {
        *count.entry(who(stream).0).or_insert(0) += 1;
    }
    assert_eq!(count, BTreeMap::from([(0, 3), (1, 3), (2, 3), (3, 3)]));
    // Those of one worker end: the next ones are its.
    let mut ended = 0;
    streams.retain_mut(|stream| {
        let is_of_2 = who(stream).0 == 2;
        ended += u32::from(is_of_2);
        !is_of_2
    });
    assert_eq!(ended, 3);
    // Its end is known once a new connection gets there.
    let new = host.until(|who| who.0 == 2);
    assert_eq!(new.0, 2);
}

#[test]
fn a_worker_that_crashes_is_replaced_and_the_others_go_on() {
    for (target, how) in [
        ("/abort", "was ended by SIGABRT"),
        ("/exit", "ended with status 3"),
    ] {
        let mut host = Host::start(&["--workers", "2", "--distribution", "least"]);
        let mut other = host.connect();
        let mut falling = host.connect();
        let (fallen, of_other) = (who(&mut falling), who(&mut other));
        assert_ne!(fallen.1, of_other.1);
        ask(&mut falling, target);
        assert!(answer(&mut falling).is_err(), "its client is told");
        let line = host.hears("another is started");
        assert!(
            line.contains(&format!("worker {} (process {})", fallen.0, fallen.1)),
            "{line}"
        );
        assert!(line.contains(how), "{line}");
        assert_eq!(who(&mut other), of_other);
        let new = host.until(|who| who.0 == fallen.0);
        assert_ne!(new.1, fallen.1);
    }
}

#[test]
fn a_worker_that_is_stuck_is_killed_and_replaced() {
    let mut host = Host::start(&[
        "--workers",
        "2",
        "--distribution",
        "least",
        "--timeout",
        "2s",
    ]);
    let (mut other, mut sticking) = (host.connect(), host.connect());
    let (stuck, of_other) = (who(&mut sticking), who(&mut other));
    let process = watch_number(stuck.1);
    ask(&mut sticking, "/stick");
    assert!(answer(&mut sticking).is_err(), "its client is told");
    assert!(is_gone(&process));
    let line = host.hears("was killed");
    assert!(line.contains("was stuck for 2.00s"), "{line}");
    assert_eq!(who(&mut other), of_other);
    host.until(|who| who.0 == stuck.0 && who.1 != stuck.1);
}

#[test]
fn a_worker_that_is_killed_in_mid_request_breaks_that_request_alone() {
    let mut host = Host::start(&["--workers", "2", "--distribution", "least"]);
    let (mut other, mut waiting) = (host.connect(), host.connect());
    let (killed, of_other) = (who(&mut waiting), who(&mut other));
    ask(&mut waiting, "/wait?60000");
    ask(&mut other, "/wait?300");
    let pid = rustix::process::Pid::from_raw(killed.1 as i32).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    let error = answer(&mut waiting).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
        ),
        "{error}"
    );
    assert_eq!(answer(&mut other).unwrap().1, "waited\n");
    assert_eq!(who(&mut other), of_other);
    host.hears("was ended by SIGKILL; another is started");
}

#[test]
fn connections_that_a_worker_had_not_taken_in_when_it_was_killed_were_reset() {
    for workers in ["1", "2"] {
        let host = Host::start(&["--workers", workers, "--distribution", "least"]);
        let mut streams: Vec<_> = (0..2).map(|_| host.connect()).collect();
        let killed = who(&mut streams[0]).1;
        let pid = rustix::process::Pid::from_raw(killed as i32).unwrap();
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        let mut passed: Vec<_> = (0..100).map(|_| host.connect()).collect();
        for stream in &mut passed {
            ask(stream, "/who");
        }
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        for stream in &mut passed {
            answer(stream).expect("an answer by another worker");
        }
    }
}

#[test]
fn workers_end_with_their_supervisor_whatever_ends_it_and_even_when_stuck() {
    let mut host = Host::start(&["--workers", "2", "--distribution", "least"]);
    let (mut one, mut two) = (host.connect(), host.connect());
    let processes = [who(&mut one).1, who(&mut two).1].map(watch_number);
    ask(&mut one, "/stick");
    host.signal(Signal::KILL);
    assert!(!host.ends().success());
    assert!(processes.iter().all(is_gone));
}

#[test]
fn what_was_begun_is_answered_before_a_host_ends() {
    for way in WAYS {
        for workers in ["0", "1", "3"] {
            let mut host = Host::start(&["--workers", workers, "--distribution", way]);
            let (mut streams, mut at_rest) = (Vec::new(), BTreeMap::new());
            // Of each worker the first one is left at rest, which it may have no other of: the first that is ready may get all.
            for _ in 0..12 {
                let mut stream = host.connect();
                let process = who(&mut stream).1;
                if let Entry::Vacant(place) = at_rest.entry(process) {
                    place.insert(stream);
                    continue;
                }
                ask(&mut stream, "/until");
                streams.push(stream);
            }
            // Whoever answers this has read the requests of before.
            for stream in at_rest.values_mut() {
                who(stream);
            }
            host.signal(Signal::TERM);
            // A worker ends what is at rest once it has been told to end.
            assert!(at_rest.values_mut().all(is_closed), "{way} {workers}");
            host.go();
            for stream in &mut streams {
                let (head, body) = answer(stream).expect("an answer");
                assert!(
                    head.contains("connection: close"),
                    "{way} {workers}: {head}"
                );
                assert_eq!(body, "waited\n");
            }
            assert!(host.ends().success(), "{way} {workers}");
        }
    }
}

#[test]
fn a_second_signal_ends_a_host_at_once() {
    for workers in ["0", "2"] {
        let mut host = Host::start(&["--workers", workers]);
        let mut waiting = host.connect();
        let process = watch_number(who(&mut waiting).1);
        ask(&mut waiting, "/wait?600000");
        host.signal(Signal::INT);
        // The first one was heard: nobody listens any more.
        let due = Instant::now() + common::PATIENCE;
        while std::net::TcpStream::connect(host.address).is_ok() {
            assert!(Instant::now() < due, "it goes on listening");
        }
        host.signal(Signal::TERM);
        assert_eq!(host.ends().code(), Some(130));
        assert!(answer(&mut waiting).is_err());
        assert!(is_gone(&process));
    }
}

#[test]
fn an_address_in_use_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for way in WAYS {
        let port = address.port().to_string();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("app.txt"), "v1").unwrap();
        let output = command(folder.path(), &["--distribution", way], &port)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&address.to_string()), "{said}");
        assert!(said.contains("or give another port"), "{said}");
    }
}

#[test]
fn an_application_that_cannot_be_loaded_ends_the_host_with_its_text() {
    for workers in ["0", "1", "3"] {
        let (status, said) = Host::try_start("fail", &["--workers", workers])
            .err()
            .expect("an end");
        assert_eq!(status.code(), Some(2));
        assert!(said.contains("app.txt:1: it says `fail`"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let (status, said) = Host::try_start("abort", &["--workers", "2"])
        .err()
        .expect("an end");
    assert_eq!(status.code(), Some(2));
    assert!(
        said.contains("was ended by SIGABRT before it served"),
        "{said}"
    );
    let (status, said) = Host::try_start("stick", &["--timeout", "1s"])
        .err()
        .expect("an end");
    assert_eq!(status.code(), Some(2));
    assert!(
        said.contains("had not loaded the application after 1.00s"),
        "{said}"
    );
}

#[test]
fn workers_are_renewed_and_stay_where_the_new_application_does_not_load() {
    for way in WAYS {
        let mut host = Host::start(&["--workers", "3", "--distribution", way]);
        let old = host.who();
        host.become_version("v2");
        host.signal(Signal::HUP);
        host.hears("all workers are new");
        let new = host.until(|who| who.2 == "v2");
        assert_ne!(new.1, old.1);
        for broken in ["fail", "abort"] {
            host.become_version(broken);
            host.signal(Signal::HUP);
            host.hears("the workers are not replaced, the old ones keep serving");
            assert_eq!(host.who().2, "v2", "{way} {broken}");
        }
        host.become_version("v3");
        host.signal(Signal::HUP);
        host.hears("all workers are new");
        host.until(|who| who.2 == "v3");
        host.signal(Signal::TERM);
        assert!(host.ends().success());
    }
}

#[test]
fn what_a_worker_has_begun_when_it_is_renewed_it_answers() {
    for way in WAYS {
        let mut host = Host::start(&["--workers", "2", "--distribution", way]);
        let (number, mut stream, mut at_rest) = host.two_of_one(2);
        let process = watch_number(number);
        ask(&mut stream, "/until");
        who(&mut at_rest);
        host.signal(Signal::HUP);
        host.hears("all workers are new");
        assert!(is_closed(&mut at_rest), "{way}");
        host.go();
        let (head, body) = answer(&mut stream).unwrap();
        assert!(head.contains("connection: close"), "{head}");
        assert_eq!(body, "waited\n");
        assert!(is_gone(&process));
    }
}

#[test]
fn a_worker_is_replaced_after_its_requests_and_none_is_lost() {
    let options = [
        "--workers",
        "2",
        "--max-requests",
        "50",
        "--max-requests-jitter",
        "30",
    ];
    let host = Host::start(&options);
    let mut processes = BTreeSet::new();
    let due = Instant::now() + common::PATIENCE;
    let mut asked = 0;
    while processes.len() < 6 {
        processes.insert(host.who().1);
        asked += 1;
        assert!(Instant::now() < due, "{asked} requests: {processes:?}");
    }
}

#[test]
fn a_worker_that_is_told_to_end_is_replaced() {
    let mut host = Host::start(&["--workers", "1"]);
    let old = host.who();
    let pid = rustix::process::Pid::from_raw(old.1 as i32).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    host.until(|who| who.1 != old.1);
    host.signal(Signal::TERM);
    assert!(host.ends().success());
    assert_eq!(host.last_words(), "");
}

#[test]
fn workers_are_renewed_when_a_file_changes_also_in_a_new_directory() {
    let mut host = Host::start(&["--workers", "2", "--reload"]);
    host.become_version("v2");
    host.hears("all workers are new");
    host.until(|who| who.2 == "v2");
    let folder = host.folder.path().join("pages");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(".page.html.swp"), "an editor's").unwrap();
    std::fs::write(folder.join("page.html"), "one").unwrap();
    host.hears("all workers are new");
    let before = host.who();
    std::fs::write(folder.join("access.log"), "not the application's").unwrap();
    std::fs::write(folder.join("page.html"), "two").unwrap();
    host.hears("all workers are new");
    // It may have heard of what was begun before.
    host.until(|who| who.1 != before.1);
    host.become_version("fail");
    host.hears("the workers are not replaced");
}

#[test]
fn what_crashes_again_and_again_is_started_ever_more_slowly() {
    let mut host = Host::start(&["--workers", "1"]);
    host.become_version("abort");
    let mut stream = host.connect();
    ask(&mut stream, "/abort");
    let begin = Instant::now();
    for wait in ["100ms", "200ms", "400ms", "800ms"] {
        host.hears(&format!("another is started in {wait}"));
    }
    assert!(begin.elapsed() >= Duration::from_millis(700));
    // What comes meanwhile waits, and is answered.
    let mut waiting = host.connect();
    ask(&mut waiting, "/who");
    host.become_version("v2");
    // A renewal does not wait for the next try.
    host.signal(Signal::HUP);
    assert!(answer(&mut waiting).unwrap().1.ends_with("v2\n"));
}
