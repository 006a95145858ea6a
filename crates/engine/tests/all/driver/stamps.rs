//! When bytes were handed over and when they came: of every driver, and what only a kernel's
//! driver can show.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use prony_base::Nanos;
use prony_engine::{Bracket, Config, ConnectOptions, DriverKind, Handle, Stream, run};

use super::{listen, localhost, on_both, pair, pattern, recv_exactly, recv_to_end, sized};

/// Posts, and waits until it is out.
async fn submit(stream: &Stream, bytes: &'static str) -> Bracket {
    stream.post(bytes).expect("the connection stands");
    assert_eq!(stream.submitted(), None, "nothing is handed over yet");
    stream.flush().await.expect("the connection stands");
    stream.submitted().expect("it is out")
}

pub async fn a_post_was_submitted_after_it_was_posted(handle: Handle) {
    let (client, server) = pair(&handle).await;
    assert_eq!(client.submitted(), None, "nothing was ever posted");
    let before = handle.now();
    let first = submit(&client, "first").await;
    let between = handle.now();
    let second = submit(&client, "second").await;
    let after = handle.now();
    assert!(before <= first.from && first.from <= first.to && first.to <= between);
    assert!(between <= second.from && second.from <= second.to && second.to <= after);
    assert_eq!(recv_exactly(&server, 11).await, b"firstsecond");
    assert_eq!(
        client.submitted(),
        Some(second),
        "it stays that of the last"
    );
}

pub async fn posts_that_are_joined_were_submitted_at_once(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let before = handle.now();
    client.post(b"one ".to_vec()).expect("posted");
    client.post(b"after ".to_vec()).expect("posted");
    client.post(b"another".to_vec()).expect("posted");
    client.flush().await.expect("the connection stands");
    let at = client.submitted().expect("it is out");
    assert!(before <= at.from && at.from <= at.to && at.to <= handle.now());
    assert_eq!(recv_exactly(&server, 17).await, b"one after another");
}

pub async fn what_arrives_says_when(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let mut last = handle.now();
    for _ in 0..20 {
        let sent = submit(&server, "x").await;
        let received = client.recv().await.expect("the connection stands");
        let arrival = received.arrival();
        assert!(arrival.since <= arrival.reaped, "{arrival:?}");
        assert!(last <= arrival.reaped && arrival.reaped <= handle.now());
        assert!(sent.from <= arrival.reaped, "it came before it was sent");
        last = arrival.reaped;
    }
    drop(server);
    let end = client.recv().await.expect("an end");
    assert!(end.is_empty());
    assert!(last <= end.arrival().reaped && end.arrival().reaped <= handle.now());
}

pub async fn sends_of_one_turn_have_growing_brackets(handle: Handle) {
    const COUNT: usize = 20;
    let listener = listen(&handle);
    let mut pairs = Vec::new();
    for _ in 0..COUNT {
        let client = handle.connect(listener.local_addr()).await;
        let (server, _) = listener.accept().await.expect("a connection");
        pairs.push((client.expect("connected"), server));
    }
    // The last connection's completion has a turn of its own: those of the posts are in order.
    handle.yield_now().await;
    let before = handle.now();
    for (client, _) in &pairs {
        client.post("at once").expect("the connection stands");
    }
    let mut brackets = Vec::new();
    for (client, server) in &pairs {
        assert_eq!(recv_exactly(server, 7).await, b"at once");
        brackets.push(client.submitted().expect("it is out"));
    }
    let after = handle.now();
    assert!(
        brackets
            .iter()
            .all(|at| before <= at.from && at.to <= after)
    );
    for two in brackets.windows(2) {
        assert!(two[0].from <= two[1].from && two[0].to <= two[1].to);
        // Either of the same call, or one after the other.
        assert!(two[0] == two[1] || two[0].to <= two[1].from, "{two:?}");
    }
    let distinct: HashSet<_> = brackets.iter().map(|at| at.from).collect();
    let least = match handle.driver() {
        DriverKind::Ring => COUNT.div_ceil(8),
        DriverKind::Epoll => COUNT,
        DriverKind::Sim => 1,
    };
    assert!(distinct.len() >= least, "{} brackets", distinct.len());
}

pub async fn a_post_to_a_peer_that_does_not_read_was_submitted_when_there_was_room(handle: Handle) {
    let bytes = sized(&handle, 300_000, 16 << 20);
    let (client, server) = pair(&handle).await;
    let before = handle.now();
    client.post(pattern(bytes)).expect("posted");
    // More than any socket holds, so that this one waits for the reader.
    client.post("the last").expect("posted");
    handle.sleep(Nanos::from_millis(5)).await;
    assert_eq!(client.submitted(), None);
    client.shutdown_write();
    let reading = handle.now();
    let got = recv_to_end(&server).await.expect("the connection stands");
    assert!(got[..bytes] == pattern(bytes), "what came differs");
    assert_eq!(got[bytes..], *b"the last");
    let at = client.submitted().expect("it is out");
    assert!(before < reading && reading <= at.from && at.to <= handle.now());
}

pub async fn the_first_byte_counts_though_the_others_wait(handle: Handle) {
    let bytes = sized(&handle, 300_000, 16 << 20);
    let (client, server) = pair(&handle).await;
    let before = handle.now();
    client.post(pattern(bytes)).expect("posted");
    handle.sleep(Nanos::from_millis(5)).await;
    let reading = handle.now();
    let at = client.submitted().expect("a part is out");
    assert!(before <= at.from && at.to <= reading);
    assert!(client.posted_bytes() > 0, "the others wait");
    client.shutdown_write();
    let got = recv_to_end(&server).await.expect("the connection stands");
    assert!(got == pattern(bytes), "what came differs");
    assert_eq!(client.submitted(), Some(at));
}

/// A thread that accepts two connections, and for each byte of the first one sends a byte on
/// the second, until the first one ends.
fn other_answers() -> (std::net::SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(localhost()).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let thread = std::thread::spawn(move || {
        let (mut asks, _) = listener.accept().expect("a connection");
        let (mut answers, _) = listener.accept().expect("a connection");
        let mut byte = [0];
        while asks.read(&mut byte).expect("the connection stands") == 1 {
            answers.write_all(&byte).expect("the connection stands");
        }
    });
    (address, thread)
}

const ROUNDS: u64 = 200;

async fn ask_one_and_hear_another(handle: Handle) -> u64 {
    let (address, thread) = other_answers();
    let asks = handle.connect(address).await.expect("connected");
    let answers = handle.connect(address).await.expect("connected");
    // The first receive begins before there is anything to receive.
    let before = handle.stats().enters;
    for _ in 0..ROUNDS {
        asks.post("x").expect("posted");
        let received = answers.recv().await.expect("the connection stands");
        let at = asks.submitted().expect("it is out");
        assert!(at.from <= received.arrival().reaped);
        assert_eq!(&received[..], b"x");
    }
    let enters = handle.stats().enters - before;
    drop(asks);
    assert!(answers.recv().await.expect("an end").is_empty());
    thread.join().expect("no panic");
    enters
}

#[test]
fn a_wait_that_also_sends_ends_with_a_receive_of_another_stream() {
    on_both(|config| {
        run(&config, ask_one_and_hear_another).expect("it runs");
        let spinning = Config {
            spin: true,
            ..config
        };
        run(&spinning, ask_one_and_hear_another).expect("it runs");
    });
}

#[test]
fn a_request_and_its_answer_took_two_calls_of_the_ring() {
    on_both(|config| {
        let (kind, enters) = run(&config, |handle| async move {
            (handle.driver(), ask_one_and_hear_another(handle).await)
        })
        .expect("it runs");
        // One in sixteen sends has a call of its own, to be measured.
        let enters_max = ROUNDS + ROUNDS / 16 + 10;
        assert!(kind != DriverKind::Ring || enters <= enters_max, "{enters}");
    });
}

#[test]
fn a_loop_with_precise_timers_works_like_another() {
    on_both(|config| {
        let config = Config {
            precise_timers: true,
            ..config
        };
        let late = run(&config, |handle| async move {
            let due = handle.now() + Nanos::from_millis(2);
            handle.sleep_until(due).await;
            handle.now().since(due)
        });
        assert!(late.expect("it runs") < Nanos::from_secs(50));
    });
}

/// A connection whose client asked for the kernel's stamps.
async fn stamped_pair(handle: &Handle) -> (Stream, Stream) {
    let listener = listen(handle);
    let options = ConnectOptions {
        timestamps: true,
        ..ConnectOptions::default()
    };
    let connecting = handle.connect_with(listener.local_addr(), &options);
    let client = connecting.await.expect("connected");
    let (server, _) = listener.accept().await.expect("a connection");
    (client, server)
}

pub async fn stamped_bytes_arrive_as_others_do(handle: Handle) {
    let bytes = sized(&handle, 50_000, 2 << 20);
    let (client, server) = stamped_pair(&handle).await;
    server.post(pattern(bytes)).expect("posted");
    server.shutdown_write();
    let got = recv_to_end(&client).await.expect("the connection stands");
    assert!(got == pattern(bytes), "what came differs");
    client.post("and back").expect("posted");
    assert_eq!(recv_exactly(&server, 8).await, b"and back");
}

pub async fn stamped_streams_discard_and_are_dropped_while_they_receive(handle: Handle) {
    let (client, server) = stamped_pair(&handle).await;
    server.post("thrown away").expect("posted");
    let mut left = 11;
    while left > 0 {
        left -= client.discard(left).await.expect("the connection stands");
    }
    server.post("kept").expect("posted");
    assert_eq!(recv_exactly(&client, 4).await, b"kept");
    drop(client);
    assert_eq!(recv_to_end(&server).await.expect("an end"), b"");
}

/// Stamps are those of the last of the bytes, and lie between the post and the reaping. The
/// kernel begins to stamp a moment after it was first asked to; and what it has stamped may
/// wait in it for a thread of its own to bring it to the socket, on a busy machine.
async fn kernel_stamps_lie_between_post_and_reaping_of(handle: Handle) {
    const ROUNDS_MAX: usize = 100_000;
    const STAMPS: usize = 200;
    let (client, server) = stamped_pair(&handle).await;
    let (mut stamps, mut late) = (0, 0);
    for _ in 0..ROUNDS_MAX {
        let sent = submit(&server, "x").await;
        let received = client.recv().await.expect("the connection stands");
        let arrival = received.arrival();
        if let Some(stamp) = arrival.kernel {
            stamps += 1;
            // The two clocks are read one after the other.
            let error = Nanos::from_micros(1);
            assert!(sent.from <= stamp + error, "{sent:?} {arrival:?}");
            late += usize::from(arrival.since > stamp + error);
            assert!(stamp <= arrival.reaped, "{arrival:?}");
        }
        if stamps == STAMPS {
            assert!(late <= STAMPS / 2, "{late} were stamped long before");
            return;
        }
    }
    panic!("{stamps} stamps in {ROUNDS_MAX} rounds");
}

#[test]
fn kernel_stamps_lie_between_post_and_reaping() {
    on_both(|config| {
        run(&config, kernel_stamps_lie_between_post_and_reaping_of).expect("it runs");
    });
}

pub async fn small_buffers_receive_without_stamps(handle: Handle) {
    stamped_bytes_arrive_as_others_do(handle).await;
}

pub async fn without_being_asked_nothing_is_stamped_by_the_kernel(handle: Handle) {
    let (client, server) = pair(&handle).await;
    server.post("unstamped").expect("posted");
    let received = client.recv().await.expect("the connection stands");
    assert_eq!(received.arrival().kernel, None);
}
