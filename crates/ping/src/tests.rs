use std::cell::RefCell;
use std::rc::Rc;

use prony_client::{Client, Settings};
use prony_engine::{Config, ListenOptions};
use prony_http::Source;
use prony_runtime::coroutines::ManualEvent;

use super::*;

/// Serves while `ask` runs, and yields what it said and how many requests were answered.
fn with_service(
    requests: &'static [(&'static str, &'static str, &'static [u8])],
) -> Vec<(u16, Vec<u8>)> {
    let answers = prony_engine::run(&Config::default(), |handle| async move {
        let address = "127.0.0.1:0".parse().expect("an address");
        let listener = handle.listen(address, &ListenOptions::default())?;
        let address = listener.local_addr();
        let (ready, stop) = (Rc::new(ManualEvent::new()), Rc::new(ManualEvent::new()));
        let counters = Rc::new(RefCell::new(None));
        let (their_ready, their_stop) = (ready.clone(), stop.clone());
        let (own, theirs) = (handle.clone(), counters.clone());
        let serving = handle.spawn(async move {
            let started = |counted| {
                *theirs.borrow_mut() = Some(counted);
                their_ready.set();
            };
            let source = Source::Listener(listener);
            let stop = async move { their_stop.wait().await };
            serve(&own, Fixed::default(), source, stop, started).await
        });
        ready.wait().await;
        let client = Client::new(&handle, Settings::default());
        let mut answers = Vec::new();
        for (method, path, body) in requests {
            let url = format!("http://{address}{path}");
            let request = match *method {
                "POST" => client.post(&url).body(*body),
                _ => client.get(&url),
            };
            let answer = request.send().await?;
            answers.push((answer.status(), answer.bytes().await?));
        }
        drop(client);
        stop.set();
        serving.await.map_err(|failure| failure.to_string())?;
        let counted = counters
            .borrow_mut()
            .take()
            .map(|counters| counters.totals().answered);
        assert_eq!(counted, Some(requests.len() as u64));
        Ok::<_, Box<dyn std::error::Error>>(answers)
    });
    answers.expect("a loop").expect("a server that answers")
}

#[test]
fn a_ping_comes_back_and_what_is_none_is_refused() {
    let answers = with_service(&[
        ("POST", "/ping", b"{\"sequence\":9007199254740991}"),
        ("POST", "/ping", b" { \"sequence\" : 1 } "),
        ("POST", "/ping", b"{\"sequence\":1.5}"),
        ("POST", "/ping", b"[1]"),
        ("GET", "/hello", b""),
        ("GET", "/ping", b""),
        ("GET", "/nowhere", b""),
    ]);
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.0).collect();
    assert_eq!(statuses, [200, 200, 400, 400, 200, 405, 404]);
    assert_eq!(answers[0].1, b"{\"sequence\":9007199254740991}");
    assert_eq!(answers[1].1, b"{\"sequence\":1}");
    assert_eq!(answers[4].1, b"Hello, World!");
}

#[test]
fn it_ends_with_its_source() {
    let served = prony_engine::run(&Config::default(), |handle| async move {
        let (sender, connections) = prony_engine::mailbox(1);
        let source = Source::HandedOver(connections);
        let started = |_| drop(sender);
        serve(
            &handle,
            Fixed::default(),
            source,
            std::future::pending(),
            started,
        )
        .await
    });
    assert!(served.expect("a loop").is_ok());
}
