//! `prony bench client`: the client library in a closed loop.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use prony_base::Nanos;
use prony_bench::client::{ClientBenchError, ClientDone, ClientOrder, run as ask};
use prony_load::prepare::LoadUrl;

use super::figures::{grouped, write_line};
use super::words::ClientWords;
use prony_program::{Ending, Streams};

/// Failures that are put in words.
const FAILURES_MAX: usize = 10;

/// Runs `prony bench client`.
pub fn run(words: &ClientWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let order = resolve(words)?;
    let done = match ask(&order) {
        Ok(done) => done,
        Err(wrong @ ClientBenchError::Order(_)) => bail!("{wrong}"),
        Err(error) => {
            writeln!(streams.err, "prony: {error}")?;
            return Ok(Ending::Failed);
        }
    };
    if words.json {
        write_line(&done.line, None, streams)?;
    } else {
        write!(streams.out, "{}", for_people(&order, &done))?;
    }
    for failure in done.failures.iter().take(FAILURES_MAX) {
        writeln!(streams.err, "prony: {failure}")?;
    }
    Ok(ending(words, &done))
}

/// For a program the line says it all, failures among it, unless nothing was asked at all.
fn ending(words: &ClientWords, done: &ClientDone) -> Ending {
    let failed = done.line.client.as_ref().map_or(0, |client| client.failed);
    match (words.json, done.line.count, failed) {
        (_, 0, 0) => Ending::Invalid,
        (true, ..) | (_, _, 0) => Ending::Done,
        (_, 0, _) => Ending::Invalid,
        _ => Ending::Failed,
    }
}

fn resolve(words: &ClientWords) -> anyhow::Result<ClientOrder> {
    let url = LoadUrl::parse(&words.url)?.plain()?;
    let address = url.resolve()?;
    prony_load::target::check(&url.host, &[address.ip()], words.yes_i_own_this_host)?;
    let connections = if words.per_thread {
        let all = words.connections.checked_mul(words.threads);
        all.context("that many connections cannot be counted")?
    } else {
        words.connections
    };
    let driver = prony_program::driver::chosen()?;
    Ok(ClientOrder {
        length: words.length,
        connections,
        threads: words.threads,
        driver: driver.parse().map_err(anyhow::Error::msg)?,
        timeout: words.timeout,
        ..ClientOrder::new(&words.url)
    })
}

fn for_people(order: &ClientOrder, done: &ClientDone) -> String {
    let line = &done.line;
    let client = line.client.clone().unwrap_or_default();
    let seconds = order.length.as_secs_f64();
    let mut text = format!(
        "prony bench client {}: {seconds} s, {} connections in all on {} threads\n\n",
        order.url, order.connections, order.threads
    );
    if let Some(rates) = line.figures.get("thread_requests_per_s") {
        let _ = writeln!(
            text,
            "each thread      {:.0} requests/s (least {:.0}, most {:.0}, deviation {:.0})",
            rates.mean, rates.min, rates.max, rates.stdev
        );
    }
    let rate = line.count as f64 / seconds;
    let _ = writeln!(
        text,
        "requests         {} answered, {rate:.0} requests/s, {:.1} MiB/s of bodies",
        grouped(line.count),
        line.bytes as f64 / seconds / f64::from(1 << 20),
    );
    if let Some(latency) = &client.latency {
        let at = |ns: u64| Nanos(ns).to_string();
        let _ = writeln!(
            text,
            "latency          p50 {}, p90 {}, p99 {}, p99.9 {}, most {}, mean {}",
            at(latency.p50),
            at(latency.p90),
            at(latency.p99),
            at(latency.p99_9),
            at(latency.max),
            at(latency.mean as u64),
        );
    }
    let each = done.cpu.as_micros_f64() / done.sent.max(1) as f64;
    let cpu = Nanos(done.cpu.0);
    let _ = writeln!(
        text,
        "client CPU       {each:.2} µs per request, {cpu} in all"
    );
    let _ = writeln!(
        text,
        "sent             {} = {} answered + {} failed + {} in flight at the end",
        grouped(done.sent),
        grouped(line.count),
        grouped(client.failed),
        grouped(client.in_flight.unwrap_or_default()),
    );
    for (kind, count) in &client.failed_by_kind {
        let _ = writeln!(text, "failed           {} {kind}", grouped(*count));
    }
    for (name, words) in [
        ("unsent", "could not be sent"),
        ("resent", "sent again on a new connection"),
    ] {
        if let Some(&count @ 1..) = line.tallies.get(name) {
            let _ = writeln!(text, "{name:<17}{} {words}", grouped(count));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_record::{ClientFigures, LatencyNs, ProgramLine, Spread};

    #[test]
    fn the_summary_accounts_for_every_request() {
        let mut order = ClientOrder::new("http://127.0.0.1:8000/hello");
        (order.connections, order.threads) = (100, 2);
        let latency = LatencyNs {
            count: 1_000_000,
            p50: 900_000,
            p90: 1_200_000,
            p99: 2_000_000,
            p99_9: 3_100_000,
            max: 9_000_000,
            mean: 950_000.0,
            ..LatencyNs::default()
        };
        let spread = Spread {
            count: 2,
            min: 49_000.0,
            mean: 50_000.0,
            max: 51_000.0,
            stdev: 1_414.0,
            p50: 50_000.0,
        };
        let line = ProgramLine {
            count: 1_000_000,
            bytes: 13_000_000,
            client: Some(ClientFigures {
                failed: 3,
                failed_by_kind: [("reset".to_owned(), 3)].into(),
                in_flight: Some(97),
                latency: Some(latency),
                ..ClientFigures::default()
            }),
            figures: [("thread_requests_per_s".to_owned(), spread)].into(),
            tallies: [("resent".to_owned(), 2), ("unsent".to_owned(), 0)].into(),
            ..ProgramLine::default()
        };
        let done = ClientDone {
            line,
            cpu: Nanos::from_secs(5),
            sent: 1_000_100,
            ..ClientDone::default()
        };
        insta::assert_snapshot!(for_people(&order, &done));
    }
}
