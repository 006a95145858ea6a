//! The seconds of a run have every request of its report once, and so has the log that is written of them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::SystemTime;

use base64::Engine as _;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use prony_load::{IntervalLog, Latencies, LoadInterval, LoadSpec, Observer, percentiles_text};
use prony_record::{LoadTarget, PreparedRequest};

/// Answers everything; of each ten requests on a connection the last is cut off.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let serve = |mut stream: TcpStream| {
        let mut read = [0; 1_024];
        for _ in 0..9 {
            match stream.read(&mut read) {
                Ok(1..) => {}
                _ => return,
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            if stream.write_all(answer).is_err() {
                return;
            }
        }
        let _ = stream.read(&mut read);
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    address
}

#[derive(Default)]
struct Kept {
    wanted: bool,
    all: Vec<LoadInterval>,
}

impl Observer for Kept {
    fn wants_intervals(&self) -> bool {
        self.wanted
    }

    fn interval(&mut self, interval: &LoadInterval) {
        self.all.push(interval.clone());
    }
}

fn spec(address: SocketAddr) -> LoadSpec {
    LoadSpec {
        target: LoadTarget {
            url: format!("http://{address}/"),
            address: address.to_string(),
        },
        threads: 2,
        connections: 4,
        duration_ns: 1_300_000_000,
        timeout_ns: 1_000_000_000,
        requests: vec![PreparedRequest {
            method: "GET".to_owned(),
            bytes: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            expect: None,
            ..PreparedRequest::default()
        }],
        pace: prony_record::Pace::Constant { rate_per_s: 300.0 },
        driver: "auto".to_owned(),
        ..LoadSpec::default()
    }
}

#[test]
fn the_seconds_of_a_run_add_up_to_its_report() {
    let spec = spec(server());
    let mut kept = Kept {
        wanted: true,
        ..Kept::default()
    };
    let result = prony_load::run(&spec, &mut kept).expect("a run");
    let report = &result.report;
    assert!(!kept.all.is_empty());
    let sum = |of: fn(&LoadInterval) -> u64| kept.all.iter().map(of).sum::<u64>();
    assert!(report.counts.failed.total() > 0, "some were to fail");
    assert_eq!(sum(|of| of.completed), report.completed);
    assert_eq!(sum(|of| of.failed), report.counts.failed.total());
    assert_eq!(sum(|of| of.received_bytes), report.received_bytes);
    assert_eq!(sum(|of| of.sent_bytes), report.sent_bytes);
    let mut latency = Latencies::default();
    kept.all.iter().for_each(|of| latency.add(&of.latency));
    assert_eq!(latency.summary(), report.latency_ns);
    assert_eq!(latency.histogram(), result.histogram);
    let last = &kept.all.last().expect("one").total;
    assert_eq!(last.counts, report.counts);
    let status: Vec<_> = last
        .status
        .iter()
        .map(|(code, count)| (code.to_string(), *count))
        .collect();
    assert_eq!(
        status,
        report.status.clone().into_iter().collect::<Vec<_>>()
    );

    let (mut log, head) = IntervalLog::new(SystemTime::now(), "a run");
    let lines = kept.all.iter().map(|of| log.line(of).expect("memory"));
    let text: String = lines.collect();
    let legend = head.lines().filter(|line| line.starts_with('"')).count();
    assert_eq!(legend, 1);
    let mut of_log = 0;
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        let LogEntry::Interval(entry) = entry.expect("an entry") else {
            continue;
        };
        let coded = base64::engine::general_purpose::STANDARD.decode(entry.encoded_histogram());
        let coded = coded.expect("base64");
        let histogram: Hdr<u64> = Deserializer::new()
            .deserialize(&mut &coded[..])
            .expect("one");
        of_log += histogram.len();
    }
    let ended = report.latency_ns.count - report.latency_ns.infinite;
    assert_eq!(of_log, ended);
    let text = percentiles_text(&latency);
    assert!(
        text.contains(&format!("Total count    = {ended:12}]")),
        "{text}"
    );
}

#[test]
fn nobody_who_does_not_ask_is_told() {
    let mut kept = Kept::default();
    let result = prony_load::run(&spec(server()), &mut kept).expect("a run");
    assert!(result.report.completed > 0 && kept.all.is_empty());
}
