//! Requests to the [ping service](prony_ping) over loopback: a thread for the service and
//! one for the generator, two connections, each request sent when the last is answered.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;

use prony_base::{Instant, Nanos};
use prony_engine::{Config, ListenOptions, Receiver, mailbox};
use prony_http::{Counters, Source};
use prony_load::prepare::{LoadUrl, RequestParts, prepare};
use prony_load::{LoadSpec, Observer};
use prony_ping::Fixed;

use crate::threads::{ThreadResult, at_once};
use crate::{BenchError, Done, Order, Work};

/// Connections of each generator.
const CONNECTIONS: u32 = 2;
/// Longest that one request may take.
const TIMEOUT: Nanos = Nanos::from_secs(10);

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "requests", exchanged)
}

fn wrong(wrong: impl ToString) -> BenchError {
    BenchError::Wrong {
        work: Work::Ping,
        wrong: wrong.to_string(),
    }
}

/// Serves and asks; both sides' counts must be what was ordered.
fn exchanged(order: &Order) -> Result<ThreadResult, BenchError> {
    let (stop, stopped) = mailbox::<()>(1);
    let (tell, announcements) = mpsc::channel();
    let config = order.config();
    let serving = thread::Builder::new()
        .name("ping".to_owned())
        .spawn(move || serve(&config, stopped, &tell))
        .map_err(BenchError::Thread)?;
    let outcome = match announcements.recv() {
        Ok((address, counters)) => ask(order, address).map(|completed| (completed, counters)),
        // Why, the thread itself says.
        Err(_) => Err(wrong("the service did not start")),
    };
    drop(stop);
    serving.join().map_err(|_| BenchError::Panicked)??;
    let (completed, counters) = outcome?;
    let answered = counters.totals().answered;
    if (completed, answered) != (order.count, order.count) {
        let count = order.count;
        return Err(wrong(format!(
            "{answered} answered and {completed} completed of {count} requests"
        )));
    }
    Ok(ThreadResult {
        bytes: 0,
        checksum: answered,
    })
}

type Announcement = (SocketAddr, Arc<Counters>);

fn serve(
    config: &Config,
    mut stopped: Receiver<()>,
    tell: &mpsc::Sender<Announcement>,
) -> Result<(), BenchError> {
    let served = prony_engine::run(config, |handle| async move {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = handle
            .listen(address, &ListenOptions::default())
            .map_err(wrong)?;
        let address = listener.local_addr();
        let stop = async {
            stopped.recv().await;
        };
        // The receiver goes away only after an error of its own.
        let started = |counters| drop(tell.send((address, counters)));
        let source = Source::Listener(listener);
        let mut settings = Fixed::default();
        // Nobody will ask any more: waiting for that would be a good part of a short work.
        settings.server.stop_idle_grace = Nanos::ZERO;
        let served = prony_ping::serve(&handle, settings, source, stop, started).await;
        served.map_err(wrong)
    });
    served?
}

struct Silent;

impl Observer for Silent {
    fn connected(&mut self, _: Instant, _: Instant) {}
}

fn ask(order: &Order, address: SocketAddr) -> Result<u64, BenchError> {
    let url = LoadUrl::parse(&format!("http://{address}/ping")).map_err(wrong)?;
    let headers = [("content-type".to_owned(), "application/json".to_owned())];
    let parts = RequestParts {
        method: "POST",
        path: &url.path,
        authority: &url.authority,
        headers: &headers,
        body: br#"{"sequence":7}"#,
    };
    let spec = LoadSpec {
        target: url.target(address),
        further: Vec::new(),
        threads: 1,
        connections: CONNECTIONS,
        warmup_ns: 0,
        duration_ns: Nanos::MAX.0,
        requests_max: Some(order.count),
        timeout_ns: TIMEOUT.0,
        requests: vec![prepare(&parts, None).map_err(wrong)?],
        expected_status: vec![200],
        driver: order.driver.to_string(),
        exact: true,
        ..LoadSpec::default()
    };
    let outcome = prony_load::run(&spec, &mut Silent).map_err(wrong)?;
    let counts = &outcome.report.counts;
    match counts.failed.total() + counts.unexpected_status {
        0 => Ok(counts.completed + counts.drained),
        failed => Err(wrong(format!("{failed} requests failed"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_count_every_request() {
        let order = Order {
            count: 50,
            threads: 2,
            ..Order::default()
        };
        let line = run(&order).unwrap().line;
        assert_eq!((line.count, line.checksum.as_str()), (100, "100"));
    }
}
