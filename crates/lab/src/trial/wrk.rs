//! wrk as the load generator of a cross-check: its command, its script, and its
//! output as a report. Pure.

use prony_record::{Counts, Failures, LatencyNs, LoadReport, LoadSpec};

use crate::experiment::words;

/// The script that makes wrk send the first request of `spec`.
pub fn script(method: &str, body: &str, headers: &[(String, String)]) -> String {
    let mut script = format!(
        "wrk.method = {}\nwrk.body = {}\n",
        quoted(method),
        quoted(body)
    );
    for (name, value) in headers {
        script.push_str(&format!(
            "wrk.headers[{}] = {}\n",
            quoted(name),
            quoted(value)
        ));
    }
    script
}

/// A string of Lua: every byte that is not plain is written as its number.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | 0..=31 | 127..=255 => quoted.push_str(&format!("\\{byte:03}")),
            _ => quoted.push(byte as char),
        }
    }
    quoted.push('"');
    quoted
}

/// The arguments for `seconds` of load by `spec`.
pub fn arguments(spec: &LoadSpec, seconds: u64, script: &str, url: &str) -> Vec<String> {
    let timeout_s = (spec.timeout_ns / 1_000_000_000).max(1);
    vec![
        format!("-t{}", spec.threads),
        format!("-c{}", spec.connections),
        format!("-d{seconds}s"),
        "--latency".to_owned(),
        format!("--timeout={timeout_s}s"),
        "-s".to_owned(),
        script.to_owned(),
        url.to_owned(),
    ]
}

/// Reads what wrk printed; `None` when it holds no rate. What wrk does not say
/// (what was in flight, the lowest latency) stays zero.
pub fn report(text: &str, spec: &LoadSpec, version: &str) -> Option<LoadReport> {
    let mut report = LoadReport {
        schema: prony_record::SCHEMA,
        generator: version.to_owned(),
        driver: "epoll".to_owned(),
        target: spec.target.clone(),
        threads: spec.threads,
        connections: spec.connections,
        ..LoadReport::default()
    };
    let mut rate = None;
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["Requests/sec:", value] => rate = value.parse().ok(),
            ["Latency", mean, stdev, max, _] => {
                report.latency_ns.mean = duration_ns(mean)? as f64;
                report.latency_ns.stdev = duration_ns(stdev)? as f64;
                report.latency_ns.max = duration_ns(max)?;
            }
            [percent, value] if percent.ends_with('%') => {
                set_percentile(&mut report.latency_ns, percent, duration_ns(value)?);
            }
            [count, "requests", "in", time, size, "read"] => {
                report.completed = count.parse().ok()?;
                report.window_ns = duration_ns(time.trim_end_matches(','))?;
                report.received_bytes = size_bytes(size)?;
            }
            ["Socket", "errors:", ..] => report.counts.failed = socket_errors(line),
            ["Non-2xx", "or", "3xx", "responses:", count] => {
                report.counts.unexpected_status = count.parse().ok()?;
            }
            _ => {}
        }
    }
    report.rate_per_s = rate?;
    report.latency_ns.count = report.completed;
    report.counts = counts(report.counts, report.completed);
    report.errors = errors(&report.counts.failed);
    Some(report)
}

/// wrk does not tell what it sent: only what was answered or failed is known.
fn counts(seen: Counts, completed: u64) -> Counts {
    Counts {
        sent: completed + seen.failed.total(),
        completed,
        ..seen
    }
}

fn errors(failed: &Failures) -> std::collections::BTreeMap<String, u64> {
    let happened = failed.by_kind().into_iter().filter(|&(_, count)| count > 0);
    happened
        .map(|(kind, count)| (kind.to_owned(), count))
        .collect()
}

fn set_percentile(latency: &mut LatencyNs, percent: &str, value: u64) {
    match percent {
        "50%" => latency.p50 = value,
        "75%" => latency.p75 = value,
        "90%" => latency.p90 = value,
        "99%" => latency.p99 = value,
        _ => {}
    }
}

/// `Socket errors: connect 0, read 3, write 0, timeout 1`.
fn socket_errors(line: &str) -> Failures {
    let of = |kind: &str| {
        let after = line.split_once(kind).map_or("", |(_, rest)| rest);
        let number = after.trim_start().split([',', ' ']).next().unwrap_or("");
        number.parse().unwrap_or(0)
    };
    Failures {
        refused: of("connect"),
        reset: of("read"),
        system: of("write"),
        timeout: of("timeout"),
        ..Failures::default()
    }
}

/// `12.34us`, `1.00ms`, `2.00s`, `1.20m`, `1.20h`.
fn duration_ns(text: &str) -> Option<u64> {
    words::duration(text).ok().map(|length| length.0)
}

/// `1.23GB` with factors of 1024, as wrk counts.
fn size_bytes(text: &str) -> Option<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let power = ["B", "KB", "MB", "GB", "TB", "PB"]
        .iter()
        .position(|&name| name == unit)?;
    Some((number.parse::<f64>().ok()? * 1024_f64.powi(power as i32)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "Running 2s test @ http://127.0.0.1:8080/ping
  1 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   812.34us    1.20ms  20.10ms   95.00%
    Req/Sec   120.00k     2.00k  130.00k    70.00%
  Latency Distribution
     50%  700.00us
     75%  900.00us
     90%    1.10ms
     99%    4.50ms
  240000 requests in 2.01s, 33.10MB read
  Socket errors: connect 0, read 3, write 0, timeout 1
  Non-2xx or 3xx responses: 7
Requests/sec: 119402.98
Transfer/sec:     16.47MB
";

    #[test]
    fn the_output_of_wrk_is_a_report() {
        let spec = LoadSpec {
            target: Default::default(),
            further: Vec::new(),
            threads: 1,
            connections: 100,
            warmup_ns: 0,
            duration_ns: 2_000_000_000,
            requests_max: None,
            timeout_ns: 2_000_000_000,
            requests: Vec::new(),
            expected_status: Vec::new(),
            driver: "auto".into(),
            exact: false,
            ..LoadSpec::default()
        };
        let report = report(OUTPUT, &spec, "wrk 4.1.0").expect("a report");
        assert_eq!(report.completed, 240_000);
        assert_eq!(report.rate_per_s, 119_402.98);
        assert_eq!(report.latency_ns.p99, 4_500_000);
        assert_eq!(report.latency_ns.mean, 812_340.0);
        assert_eq!(report.window_ns, 2_010_000_000);
        assert_eq!(
            (report.counts.failed.reset, report.counts.failed.timeout),
            (3, 1)
        );
        assert_eq!(report.counts.unexpected_status, 7);
        assert_eq!(report.errors.len(), 2);
        assert_eq!(report.counts.sent, 240_004);
        assert!(super::report("unable to connect", &spec, "wrk").is_none());
    }

    #[test]
    fn a_body_reaches_lua_byte_by_byte() {
        let script = script("POST", "{\"a\":\"\\n\u{e9}\"}", &[("X".into(), "1".into())]);
        assert_eq!(
            script,
            "wrk.method = \"POST\"\nwrk.body = \"{\\034a\\034:\\034\\092n\\195\\169\\034}\"\nwrk.headers[\"X\"] = \"1\"\n"
        );
    }
}
