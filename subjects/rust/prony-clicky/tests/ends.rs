//! The whole service, killed and stopped under load at seeded moments, over and over on the
//! same store: clicks that were answered with 200 are counted by its clients, and after the
//! end by the next service.

mod service;

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use prony_base::Random;
use rustix::process::Signal;
use service::{PATIENCE, post, start, until};

/// Lives of a service; at a moment that is drawn each ends.
const MOMENTS: u64 = 100;

/// Clients, each with a connection and a request at a time.
const CLIENTS: usize = 16;

/// Clicks by what became of them. One that was not answered with 200 may be counted where
/// there was no answer, and is not counted where the answer was another.
#[derive(Default)]
struct Clicks {
    acknowledged: AtomicU64,
    unanswered: AtomicU64,
}

/// A response's status, read to its end.
fn status(stream: &mut TcpStream) -> io::Result<u16> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let more = stream.read(&mut buffer)?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..more]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.trim().parse().ok());
        if body.len() >= length.expect("a length") {
            return Ok(head
                .split(' ')
                .nth(1)
                .and_then(|word| word.parse().ok())
                .expect("a status"));
        }
    }
}

/// Clicks until the service is gone.
fn click(address: SocketAddr, clicks: &Clicks) {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return;
    };
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let request = post("/", "1");
    loop {
        let answer = stream
            .write_all(request.as_bytes())
            .and_then(|()| status(&mut stream));
        match answer {
            Ok(200) => clicks.acknowledged.fetch_add(1, Ordering::Relaxed),
            Ok(_) => continue,
            Err(_) => {
                clicks.unanswered.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
    }
}

/// One life, ended by `signal` when so many clicks were acknowledged: what it found, and
/// what came of its clicks.
fn live(settings: &[(&str, &str)], signal: Signal, moment: u64) -> (u64, Clicks) {
    let service = start(settings);
    let found = service.get("/").parse().expect("a number");
    let (clicks, address) = (Clicks::default(), service.address);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| click(address, &clicks));
        }
        until("clicks are acknowledged", || {
            clicks.acknowledged.load(Ordering::Relaxed) >= moment
        });
        service.signal(signal);
        let ended = service.ended();
        let expected = (signal == Signal::TERM).then_some(0);
        assert_eq!(ended.code, expected, "{ended:?}");
    });
    (found, clicks)
}

/// The most acknowledged clicks that an end lost.
fn end_again_and_again(signal: Signal, ack: &str, store: &Path) -> u64 {
    let settings = [
        ("CLICKY_BACKEND", "file"),
        ("CLICKY_COUNTER_FILE", store.to_str().expect("a path")),
        ("CLICKY_ACK", ack),
        ("CLICKY_SYNC_FREQUENCY", "20ms"),
    ];
    let mut random = Random::of(signal.as_raw() as u64, ack);
    let (mut least, mut most, mut lost) = (0, 0, 0);
    for life in 0..=MOMENTS {
        let (found, clicks) = live(&settings, signal, random.below(300));
        assert!(
            found <= most,
            "life {life}: {found} clicks, and {most} were sent"
        );
        lost = lost.max(least - found.min(least));
        least = found + clicks.acknowledged.into_inner();
        most = least + clicks.unanswered.into_inner();
    }
    lost
}

#[test]
fn killed_under_load_it_has_every_durable_click() {
    let folder = tempfile::tempdir().expect("a folder");
    let lost = end_again_and_again(Signal::KILL, "synced", &folder.path().join("log"));
    println!("synced, {MOMENTS} x SIGKILL: {lost} acknowledged clicks lost");
    assert_eq!(lost, 0);
}

#[test]
fn stopped_under_load_it_has_every_click() {
    for ack in ["memory", "synced"] {
        let folder = tempfile::tempdir().expect("a folder");
        let lost = end_again_and_again(Signal::TERM, ack, &folder.path().join("log"));
        println!("{ack}, {MOMENTS} x SIGTERM: {lost} acknowledged clicks lost");
        assert_eq!(lost, 0, "{ack}");
    }
}

/// On io_uring the kernel holds the address for some milliseconds after the end.
#[test]
fn started_right_after_a_kill_it_found_its_address_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let mut settings = vec![
        ("CLICKY_BACKEND", "file"),
        ("CLICKY_ACK", "synced"),
        ("CLICKY_COUNTER_FILE", log.to_str().expect("a path")),
    ];
    let mut service = start(&settings);
    let address = service.address.to_string();
    settings.push(("SERVER_ADDRESS", &address));
    for kills in 0..40 {
        assert_eq!(service.ask(&post("/", "1")).body, (kills + 1).to_string());
        service.signal(Signal::KILL);
        if kills < 20 {
            service.ended();
            service = start(&settings);
        } else {
            // Nor is its end waited for: it may still have its log.
            service = start(&settings);
        }
    }
}
