//! What every driver must do: each case runs on ring and on epoll, on each of them
//! again while it waits for more completions, and on sim with many seeds. Where
//! io_uring is not allowed its cases say so and pass.

mod stamps;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use prony_base::{Instant, Nanos};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{
    Accepted, Config, ConnectOptions, DriverChoice, DriverKind, Elapsed, Error, FileTooShort,
    Handle, ListenOptions, Listener, PostLimit, Receive, Stream, mailbox, run,
};

use stamps::*;

const LIMIT: Nanos = Nanos::from_secs(600);

macro_rules! cases {
    ($($name:ident $(($config:expr))?),* $(,)?) => {
        mod ring { use super::{Config, Nanos, Receive}; $(#[test] fn $name() {
            super::on_kernel(super::DriverChoice::Ring, super::config!($($config)?), super::$name);
        })* }
        mod epoll { use super::{Config, Nanos, Receive}; $(#[test] fn $name() {
            super::on_kernel(super::DriverChoice::Epoll, super::config!($($config)?), super::$name);
        })* }
        mod ring_coalescing { use super::{Config, Nanos, Receive}; $(#[test] fn $name() {
            super::on_kernel(super::DriverChoice::Ring, super::config!($($config)?), |handle| {
                super::coalesce(&handle);
                super::$name(handle)
            });
        })* }
        mod epoll_coalescing { use super::{Config, Nanos, Receive}; $(#[test] fn $name() {
            super::on_kernel(super::DriverChoice::Epoll, super::config!($($config)?), |handle| {
                super::coalesce(&handle);
                super::$name(handle)
            });
        })* }
        mod sim { use super::{Config, Nanos, Receive}; $(#[test] fn $name() {
            super::on_sim(super::config!($($config)?), super::$name);
        })* }
    };
}
macro_rules! config {
    () => {
        prony_engine::Config::default()
    };
    ($config:expr) => {
        $config
    };
}
use config;

fn on_kernel<F: Future<Output = ()>>(
    driver: DriverChoice,
    config: Config,
    case: impl FnOnce(Handle) -> F,
) {
    let config = Config { driver, ..config };
    match run(&config, case) {
        Err(error @ Error::RingUnavailable { .. }) => prony_testkit::skip_ring(&error.to_string()),
        result => result.expect("the loop runs"),
    }
}

fn coalesce(handle: &Handle) {
    handle.set_coalescing(16, Nanos::from_micros(200));
}

fn on_sim<F: Future<Output = ()> + 'static>(config: Config, case: fn(Handle) -> F) {
    for seed in 0..prony_testkit::seeds(25, 500) {
        let mut world = World::new(seed, SimOptions::default());
        let done = world.spawn_loop(&config, case);
        world
            .run(LIMIT)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(done.take(), Some(()), "seed {seed}");
    }
}

cases! {
    echo,
    many_connections,
    bulk_both_ways_under_backpressure(Config { post_bytes_max: 70_000, ..Config::default() }),
    posts_arrive_whole_and_in_order,
    a_stream_that_ends_one_side_still_receives,
    an_end_of_writing_before_a_close_ends_no_later_connection,
    a_reset_reaches_the_peer_as_an_error,
    what_was_posted_arrives_though_the_stream_was_dropped,
    a_peer_that_never_reads_holds_the_end_no_longer_than_linger(
        Config { linger: Nanos::from_millis(20), post_bytes_max: 1 << 30, ..Config::default() }
    ),
    connecting_where_nobody_listens_is_refused,
    an_address_in_use_is_an_error,
    an_address_that_is_about_to_be_let_go_was_not_waited_for,
    a_dropped_recv_loses_nothing,
    a_dropped_accept_loses_nothing,
    a_dropped_connect_leaves_nothing,
    a_dropped_listener_resets_who_waits,
    errors_stay,
    posting_after_the_end_of_writing_fails,
    posting_past_the_limit_names_the_limit(Config { post_bytes_max: 1_000, ..Config::default() }),
    an_exhausted_pool_stops_nobody(Config { recv_buffers: 2, recv_buffer_bytes: 64, ..Config::default() }),
    buffers_that_lack_at_once_double_the_pool_once,
    an_unread_stream_leaves_buffers_to_others(
        Config { recv_buffers: 8, recv_queue_max: 2, recv_buffer_bytes: 64, ..Config::default() }
    ),
    timers_fire_in_order_and_not_early,
    a_timeout_ends_what_waits_and_lets_pass_what_is_ready,
    many_timeouts_that_never_fire,
    tasks_join_and_cancel,
    a_loop_ends_while_tasks_still_wait,
    addresses_of_both_sides_agree,
    sent_buffers_come_back,
    a_burst_of_connects_passes_a_small_accept_queue,
    strangers_wakers_work,
    a_strangers_waker_that_is_dropped_may_use_the_loop,
    few_large_buffers_serve_many_streams_evenly(
        Config { recv_buffers: 3, recv_buffer_bytes: 65_536, ..Config::default() }
    ),
    few_large_buffers_serve_many_streams_evenly_by_one_shots(
        Config {
            recv_buffers: 3,
            recv_buffer_bytes: 65_536,
            receive: Receive::OneShot,
            ..Config::default()
        }
    ),
    one_shots_lose_nothing(Config { receive: Receive::OneShot, ..Config::default() }),
    who_waits_for_a_buffer_gets_one_given_back(
        Config { recv_buffers: 4, recv_buffer_bytes: 1024, ..Config::default() }
    ),
    discarded_bytes_are_counted_and_gone,
    discarding_counts_what_was_received_first,
    discarding_and_receiving_take_turns,
    a_dropped_discard_loses_no_more_than_it_asked_for,
    discarding_tells_the_end_and_errors,
    a_stream_dropped_while_it_discards_is_closed,
    files_and_posts_arrive_in_order,
    a_large_file_arrives_whole_though_read_late,
    a_file_that_is_too_short_is_an_error_by_name,
    a_file_that_cannot_be_read_is_an_error,
    a_file_that_is_too_short_left_its_reader_waiting,
    parts_of_files_whose_lengths_overflowed,
    a_file_is_let_go_with_its_stream,
    a_file_to_a_peer_that_resets_is_an_error,
    files_count_little_against_the_limit(Config { post_bytes_max: 8_192, ..Config::default() }),
    a_file_arrives_though_the_stream_was_dropped,
    connecting_from_an_address_of_ones_own,
    a_post_was_submitted_after_it_was_posted,
    posts_that_are_joined_were_submitted_at_once,
    what_arrives_says_when,
    sends_of_one_turn_have_growing_brackets,
    a_post_to_a_peer_that_does_not_read_was_submitted_when_there_was_room(
        Config { post_bytes_max: 1 << 30, ..Config::default() }
    ),
    the_first_byte_counts_though_the_others_wait(
        Config { post_bytes_max: 1 << 30, ..Config::default() }
    ),
    stamped_bytes_arrive_as_others_do,
    stamped_streams_discard_and_are_dropped_while_they_receive,
    small_buffers_receive_without_stamps(Config { recv_buffer_bytes: 64, ..Config::default() }),
    without_being_asked_nothing_is_stamped_by_the_kernel,
}

fn localhost() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn listen(handle: &Handle) -> Listener {
    let listener = handle.listen(localhost(), &ListenOptions::default());
    listener.expect("a free port")
}

async fn pair(handle: &Handle) -> (Stream, Stream) {
    let listener = listen(handle);
    let connecting = handle.clone();
    let address = listener.local_addr();
    let client = handle.spawn(async move { connecting.connect(address).await });
    let (server, _) = listener.accept().await.expect("a connection");
    (client.await.expect("connected"), server)
}

async fn recv_exactly(stream: &Stream, count: usize) -> Vec<u8> {
    let mut got = Vec::new();
    while got.len() < count {
        let bytes = stream.recv().await.expect("the connection stands");
        assert!(!bytes.is_empty(), "ended after {} bytes", got.len());
        got.extend_from_slice(&bytes);
    }
    got
}

async fn recv_to_end(stream: &Stream) -> io::Result<Vec<u8>> {
    let mut got = Vec::new();
    loop {
        let bytes = stream.recv().await?;
        if bytes.is_empty() {
            return Ok(got);
        }
        got.extend_from_slice(&bytes);
    }
}

async fn echo_until_end(stream: Stream) {
    while let Ok(bytes) = stream.recv().await
        && !bytes.is_empty()
    {
        stream.post(bytes.to_vec()).expect("the connection stands");
    }
}

/// Polls once; true if it was pending.
async fn poll_once<F: Future>(work: F) -> bool {
    let mut work = pin!(work);
    poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_pending())).await
}

/// Bytes of which each says where it stands.
fn pattern(count: usize) -> Vec<u8> {
    (0..count as u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .take(count)
        .collect()
}

async fn echo(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let answering = handle.spawn(echo_until_end(server));
    for text in ["one", "two", "three"] {
        client.post(text).expect("the connection stands");
        assert_eq!(recv_exactly(&client, text.len()).await, text.as_bytes());
    }
    drop(client);
    answering.await;
}

async fn many_connections(handle: Handle) {
    let count = if handle.driver() == DriverKind::Sim {
        40
    } else {
        200
    };
    let listener = listen(&handle);
    let address = listener.local_addr();
    let accepting = handle.clone();
    let server = handle.spawn(async move {
        for _ in 0..count {
            let (stream, _) = listener.accept().await.expect("a connection");
            accepting.spawn(echo_until_end(stream)).detach();
        }
    });
    let mut clients = Vec::new();
    for number in 0..count {
        let own = handle.clone();
        clients.push(handle.spawn(async move {
            let stream = own.connect(address).await.expect("connected");
            for round in 0..5 {
                let message = format!("{number} in round {round}").into_bytes();
                stream.post(message.clone()).expect("the connection stands");
                assert_eq!(recv_exactly(&stream, message.len()).await, message);
            }
        }));
    }
    for client in clients {
        client.await;
    }
    server.await;
}

async fn post_all(stream: &Stream, bytes: &[u8]) {
    for part in bytes.chunks(30_000) {
        while let Err(error) = stream.post(part.to_vec()) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            stream.flush().await.expect("the connection stands");
        }
    }
    stream.flush().await.expect("the connection stands");
    assert_eq!(stream.posted_bytes(), 0);
    stream.shutdown_write();
}

async fn bulk_both_ways_under_backpressure(handle: Handle) {
    let bytes = sized(&handle, 100_000, 4 << 20);
    let (client, server) = pair(&handle).await;
    let own = handle.clone();
    let other_side = handle.spawn(async move {
        let server = Rc::new(server);
        let sending = server.clone();
        let sender = own.spawn(async move { post_all(&sending, &pattern(bytes)).await });
        // Nobody reads for a while, so that the sender meets a full link.
        own.sleep(Nanos::from_millis(20)).await;
        let got = recv_to_end(&server).await.expect("the connection stands");
        sender.await;
        got
    });
    let client = Rc::new(client);
    let sending = client.clone();
    let sender = handle.spawn(async move { post_all(&sending, &pattern(bytes)).await });
    let got = recv_to_end(&client).await.expect("the connection stands");
    sender.await;
    assert!(got == pattern(bytes), "what came back differs");
    assert!(
        other_side.await == pattern(bytes),
        "what went there differs"
    );
}

async fn posts_arrive_whole_and_in_order(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let shared: Rc<[u8]> = Rc::from(pattern(70_000));
    let mut expected = Vec::new();
    for round in 0..6_u8 {
        client.post(vec![round; 10]).expect("posted");
        client.post(shared.clone()).expect("posted");
        client.post("between").expect("posted");
        client.post(Vec::new()).expect("nothing is posted");
        client.post(pattern(20_000)).expect("posted");
        expected.extend([round; 10]);
        expected.extend_from_slice(&shared);
        expected.extend_from_slice(b"between");
        expected.extend(pattern(20_000));
        if round % 2 == 0 {
            handle.yield_now().await;
        }
    }
    assert!(client.posted_bytes() <= expected.len());
    client.shutdown_write();
    let got = recv_to_end(&server).await.expect("the connection stands");
    assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
    assert_eq!(Rc::strong_count(&shared), 1, "sent buffers are let go");
}

async fn a_stream_that_ends_one_side_still_receives(handle: Handle) {
    let (client, server) = pair(&handle).await;
    client.post("request").expect("posted");
    client.shutdown_write();
    assert_eq!(recv_to_end(&server).await.expect("an end"), b"request");
    // The end stays the end.
    assert!(server.recv().await.expect("an end").is_empty());
    server.post("answer").expect("posted");
    drop(server);
    assert_eq!(recv_to_end(&client).await.expect("an end"), b"answer");
}

async fn an_end_of_writing_before_a_close_ends_no_later_connection(handle: Handle) {
    // The later one gets the earlier one's descriptor.
    for _ in 0..50 {
        let (client, server) = pair(&handle).await;
        client.shutdown_write();
        server.shutdown_write();
        handle.yield_now().await;
        drop((client, server));
        let (client, server) = pair(&handle).await;
        for (one, other) in [(&client, &server), (&server, &client)] {
            one.post("still open").expect("posted");
            assert_eq!(recv_exactly(other, 10).await, b"still open");
        }
    }
}

async fn a_reset_reaches_the_peer_as_an_error(handle: Handle) {
    let (client, server) = pair(&handle).await;
    client.reset();
    let error = recv_to_end(&server).await.expect_err("no orderly end");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(client.recv().await.is_err());
    assert!(client.post("late").is_err());
}

async fn what_was_posted_arrives_though_the_stream_was_dropped(handle: Handle) {
    let bytes = sized(&handle, 100_000, 1 << 20);
    let (client, server) = pair(&handle).await;
    client.post(pattern(bytes)).expect("posted");
    drop(client);
    let got = recv_to_end(&server).await.expect("an orderly end");
    assert!(got == pattern(bytes), "{} bytes", got.len());
}

async fn a_peer_that_never_reads_holds_the_end_no_longer_than_linger(handle: Handle) {
    let (client, server) = pair(&handle).await;
    client.post(vec![0; 64 << 20]).expect("posted");
    drop(client);
    handle.sleep(Nanos::from_millis(100)).await;
    let error = recv_to_end(&server).await.expect_err("no orderly end");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    // And at the end of the loop, which this test would not reach.
    let (client, server) = pair(&handle).await;
    client.post(vec![0; 64 << 20]).expect("posted");
    handle
        .spawn(async move {
            let _keep = server;
            std::future::pending::<()>().await;
        })
        .detach();
}

async fn connecting_where_nobody_listens_is_refused(handle: Handle) {
    let listener = listen(&handle);
    let address = listener.local_addr();
    drop(listener);
    handle.yield_now().await;
    let error = handle.connect(address).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

async fn an_address_in_use_is_an_error(handle: Handle) {
    let listener = listen(&handle);
    let again = handle.listen(listener.local_addr(), &ListenOptions::default());
    assert_eq!(again.expect_err("in use").kind(), ErrorKind::AddrInUse);
    let shared = ListenOptions {
        reuse_port: true,
        ..ListenOptions::default()
    };
    let first = handle.listen(localhost(), &shared).expect("a free port");
    let second = handle.listen(first.local_addr(), &shared);
    assert!(second.is_ok());
}

async fn an_address_that_is_about_to_be_let_go_was_not_waited_for(handle: Handle) {
    let options = ListenOptions::default();
    let held = listen(&handle);
    let address = held.local_addr();
    let begun = handle.now();
    let patience = Nanos::from_millis(10);
    let refused = handle.listen_within(address, &options, patience).await;
    assert_eq!(refused.expect_err("in use").kind(), ErrorKind::AddrInUse);
    assert!(handle.now().since(begun) >= patience);
    let waiting = handle.spawn({
        let handle = handle.clone();
        async move { handle.listen_within(address, &options, LIMIT).await }
    });
    handle.yield_now().await;
    drop(held);
    let listener = waiting.await.expect("it is free");
    assert_eq!(listener.local_addr(), address);
}

async fn a_dropped_recv_loses_nothing(handle: Handle) {
    let (client, server) = pair(&handle).await;
    for number in 0..20_u8 {
        assert!(poll_once(client.recv()).await);
        server.post(vec![number; 3]).expect("posted");
        let waited = handle.timeout(Nanos::from_micros(50), client.recv()).await;
        let mut got = match waited {
            Ok(bytes) => bytes.expect("the connection stands").to_vec(),
            Err(Elapsed) => Vec::new(),
        };
        got.extend(recv_exactly(&client, 3 - got.len()).await);
        assert_eq!(got, [number; 3]);
    }
}

async fn a_dropped_accept_loses_nothing(handle: Handle) {
    let listener = listen(&handle);
    assert!(poll_once(listener.accept()).await);
    let own = handle.clone();
    let address = listener.local_addr();
    let client = handle.spawn(async move { own.connect(address).await });
    handle.sleep(Nanos::from_millis(1)).await;
    let (server, _) = listener.accept().await.expect("a connection");
    server.post("welcome").expect("posted");
    let client = client.await.expect("connected");
    assert_eq!(recv_exactly(&client, 7).await, b"welcome");
}

async fn a_dropped_connect_leaves_nothing(handle: Handle) {
    let listener = listen(&handle);
    for _ in 0..10 {
        assert!(poll_once(handle.connect(listener.local_addr())).await);
    }
    let own = handle.clone();
    let address = listener.local_addr();
    let client = handle.spawn(async move {
        let stream = own.connect(address).await.expect("connected");
        stream.post("real").expect("posted");
        recv_to_end(&stream).await
    });
    // The dropped ones may be seen to come and go; the real one must be served.
    loop {
        let (server, _) = listener.accept().await.expect("a connection");
        if let Ok(got) = server.recv().await
            && !got.is_empty()
        {
            recv_rest(&server, got.to_vec(), b"real").await;
            break;
        }
    }
    assert_eq!(client.await.expect("an orderly end"), b"");
}

async fn recv_rest(stream: &Stream, mut got: Vec<u8>, expected: &[u8]) {
    got.extend(recv_exactly(stream, expected.len() - got.len()).await);
    assert_eq!(got, expected);
}

async fn a_dropped_listener_resets_who_waits(handle: Handle) {
    let listener = listen(&handle);
    let client = handle
        .connect(listener.local_addr())
        .await
        .expect("the backlog takes it");
    drop(listener);
    assert!(recv_to_end(&client).await.is_err());
}

async fn errors_stay(handle: Handle) {
    let (client, server) = pair(&handle).await;
    server.reset();
    let broken = recv_to_end(&client).await.expect_err("reset");
    assert_eq!(broken.kind(), ErrorKind::ConnectionReset);
    for _ in 0..3 {
        assert!(client.post("more").is_err());
        assert!(client.flush().await.is_err());
        assert!(client.recv().await.is_err());
    }
}

async fn posting_after_the_end_of_writing_fails(handle: Handle) {
    let (client, server) = pair(&handle).await;
    client.post("last").expect("posted");
    client.shutdown_write();
    let error = client.post("later").expect_err("ended");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert_eq!(recv_to_end(&server).await.expect("an end"), b"last");
}

async fn posting_past_the_limit_names_the_limit(handle: Handle) {
    let (client, server) = pair(&handle).await;
    // The first post is taken whatever its size.
    client.post(pattern(5_000)).expect("posted");
    let error = client.post("more").expect_err("too much");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let limit = error.get_ref().and_then(|inner| inner.downcast_ref());
    let expected = PostLimit {
        posted_bytes: 5_000,
        post_bytes_max: 1_000,
    };
    assert_eq!(limit, Some(&expected));
    assert!(
        error.to_string().contains("post_bytes_max = 1000"),
        "{error}"
    );
    assert!(recv_exactly(&server, 5_000).await == pattern(5_000));
    client.flush().await.expect("the connection stands");
    client.post("more").expect("posted");
    assert_eq!(recv_exactly(&server, 4).await, b"more");
}

async fn an_exhausted_pool_stops_nobody(handle: Handle) {
    let (client, server) = pair(&handle).await;
    server.post(pattern(64 * 20)).expect("posted");
    let mut held = Vec::new();
    let mut bytes = 0;
    while bytes < 64 * 20 {
        let received = client.recv().await.expect("the connection stands");
        assert!(!received.is_empty());
        bytes += received.len();
        held.push(received);
    }
    assert!(held.len() >= 20);
    let got: Vec<u8> = held.iter().flat_map(|received| received.to_vec()).collect();
    assert!(got == pattern(64 * 20));
    assert!(handle.stats().pool_exhausted > 0);
    drop(held);
    server.post("and on").expect("posted");
    assert_eq!(recv_exactly(&client, 6).await, b"and on");
}

/// 200 buffers are wanted at once, several times. They would be 16384 if the pool doubled
/// for each that was lacking.
async fn buffers_that_lack_at_once_double_the_pool_once(handle: Handle) {
    let mut pairs = Vec::new();
    for _ in 0..200 {
        pairs.push(pair(&handle).await);
    }
    for _ in 0..5 {
        let mut reading = Vec::new();
        let mut servers = Vec::new();
        for (client, server) in pairs.drain(..) {
            servers.push(server);
            reading.push(handle.spawn(async move {
                assert_eq!(recv_exactly(&client, 5).await, b"a few");
                client
            }));
        }
        handle.yield_now().await;
        for server in &servers {
            server.post("a few").expect("posted");
        }
        for (server, client) in servers.into_iter().zip(reading) {
            pairs.push((client.await, server));
        }
    }
    let buffers = handle.stats().pool_buffers;
    assert!(buffers <= 512, "{buffers} buffers");
}

async fn an_unread_stream_leaves_buffers_to_others(handle: Handle) {
    let mut unread = Vec::new();
    for _ in 0..6 {
        let (client, server) = pair(&handle).await;
        // Asked once, so that receiving has begun; then nobody comes back for it.
        assert!(poll_once(client.recv()).await);
        server.post(pattern(6_400)).expect("posted");
        unread.push((client, server));
    }
    let (client, server) = pair(&handle).await;
    let answering = handle.spawn(echo_until_end(server));
    for _ in 0..50 {
        client.post("still here").expect("posted");
        assert_eq!(recv_exactly(&client, 10).await, b"still here");
    }
    for (client, _) in &unread {
        assert!(recv_exactly(client, 6_400).await == pattern(6_400));
    }
    drop(client);
    answering.await;
}

async fn timers_fire_in_order_and_not_early(handle: Handle) {
    let fired = Rc::new(RefCell::new(Vec::new()));
    let start = handle.now();
    let mut tasks = Vec::new();
    for length in [5_000_u64, 1, 300, 2_000, 40, 2_001, 0] {
        let (own, fired) = (handle.clone(), fired.clone());
        tasks.push(handle.spawn(async move {
            let due = start + Nanos::from_micros(length);
            own.sleep_until(due).await;
            assert!(own.now() >= due, "woke early");
            fired.borrow_mut().push(length);
        }));
    }
    for task in tasks {
        task.await;
    }
    let mut order = fired.borrow().clone();
    // Those that were due when they were asked for may come in any order.
    order.retain(|&length| length >= 300);
    assert_eq!(order, [300, 2_000, 2_001, 5_000]);
    handle.sleep_until(Instant::ZERO).await;
}

async fn a_timeout_ends_what_waits_and_lets_pass_what_is_ready(handle: Handle) {
    let start = handle.now();
    let never = std::future::pending::<()>();
    let length = Nanos::from_millis(2);
    assert_eq!(handle.timeout(length, never).await, Err(Elapsed));
    assert!(handle.now().since(start) >= length);
    assert_eq!(handle.timeout(length, async { 7 }).await, Ok(7));
    let soon = handle.sleep(Nanos::from_micros(10));
    assert_eq!(handle.timeout(Nanos::from_secs(60), soon).await, Ok(()));
}

async fn many_timeouts_that_never_fire(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let answering = handle.spawn(echo_until_end(server));
    for _ in 0..200 {
        client.post("x").expect("posted");
        let received = handle.timeout(Nanos::from_secs(3_600), client.recv()).await;
        assert_eq!(&received.expect("in time").expect("it stands")[..], b"x");
    }
    drop(client);
    answering.await;
}

struct CountDrops(Rc<Cell<u32>>);

impl Drop for CountDrops {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

async fn tasks_join_and_cancel(handle: Handle) {
    let drops = Rc::new(Cell::new(0));
    let own = handle.clone();
    let joined = handle.spawn(async move {
        own.sleep(Nanos::from_micros(100)).await;
        own.spawn(async { 5 }).await + 1
    });
    assert!(!joined.is_finished());
    assert_eq!(joined.await, 6);
    let counted = CountDrops(drops.clone());
    let (own, listener) = (handle.clone(), listen(&handle));
    let waiting = handle.spawn(async move {
        let _counted = counted;
        let _ = own.timeout(Nanos::from_secs(9), listener.accept()).await;
    });
    handle.yield_now().await;
    assert_eq!(handle.tasks(), 1);
    drop(waiting);
    assert_eq!((drops.get(), handle.tasks()), (1, 0));
}

async fn a_loop_ends_while_tasks_still_wait(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let drops = Rc::new(Cell::new(0));
    for stream in [client, server] {
        let counted = CountDrops(drops.clone());
        let own = handle.clone();
        handle
            .spawn(async move {
                let _both = (counted, own);
                let _ = stream.recv().await;
            })
            .detach();
    }
    handle.yield_now().await;
    assert_eq!(drops.get(), 0);
    // That the loop then drops them is in `a_loop_drops_what_is_left`: nothing here outlives it.
}

async fn addresses_of_both_sides_agree(handle: Handle) {
    let listener = listen(&handle);
    let (own, address) = (handle.clone(), listener.local_addr());
    let client = handle.spawn(async move { own.connect(address).await });
    let (server, peer) = listener.accept().await.expect("a connection");
    let client = client.await.expect("connected");
    assert_eq!(client.peer_addr().expect("known"), address);
    assert_eq!(server.local_addr().expect("known"), address);
    assert_eq!(client.local_addr().expect("known"), peer);
    assert_eq!(server.peer_addr().expect("known"), peer);
}

async fn sent_buffers_come_back(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let mut out = handle.take_buffer();
    out.extend_from_slice(&pattern(777));
    let (start, capacity) = (out.as_ptr(), out.capacity());
    client.post(out).expect("posted");
    client.flush().await.expect("the connection stands");
    recv_exactly(&server, 777).await;
    let again = handle.take_buffer();
    assert!(again.is_empty());
    assert_eq!((again.as_ptr(), again.capacity()), (start, capacity));
    let stats = handle.stats();
    assert!(stats.submissions >= 3 && stats.completions >= 3 && stats.enters >= 1);
    assert!(stats.turns == handle.turns() && stats.polls > 0);
}

async fn a_burst_of_connects_passes_a_small_accept_queue(handle: Handle) {
    let options = ListenOptions {
        accept_queue_max: 2,
        ..ListenOptions::default()
    };
    let listener = handle.listen(localhost(), &options).expect("a free port");
    let address = listener.local_addr();
    let mut clients = Vec::new();
    for _ in 0..30 {
        let own = handle.clone();
        clients.push(handle.spawn(async move {
            let stream = own.connect(address).await.expect("connected");
            recv_exactly(&stream, 2).await
        }));
    }
    handle.sleep(Nanos::from_millis(1)).await;
    for _ in 0..30 {
        let (server, _) = listener.accept().await.expect("a connection");
        server.post("ok").expect("posted");
    }
    for client in clients {
        assert_eq!(client.await, b"ok");
    }
}

/// A combinator with a waker of its own.
struct Flag(
    std::sync::atomic::AtomicBool,
    std::sync::Mutex<Option<std::task::Waker>>,
);

impl std::task::Wake for Flag {
    fn wake(self: std::sync::Arc<Flag>) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        let outer = self.1.lock().expect("no panic").take();
        outer.expect("was polled").wake();
    }
}

async fn strangers_wakers_work(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let flag = std::sync::Arc::new(Flag(Default::default(), Default::default()));
    let mut receiving = pin!(client.recv());
    server.post("x").expect("posted");
    let got = poll_fn(|cx| {
        *flag.1.lock().expect("no panic") = Some(cx.waker().clone());
        let own = std::task::Waker::from(flag.clone());
        let mut inner = std::task::Context::from_waker(&own);
        receiving.as_mut().poll(&mut inner)
    })
    .await;
    assert_eq!(&got.expect("the connection stands")[..], b"x");
    assert!(flag.0.load(std::sync::atomic::Ordering::SeqCst));
}

thread_local! {
    /// What a [`Holder`] does when it is cloned or dropped, and how often one was dropped.
    static WHEN_DROPPED: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
    static DROPPED: Cell<u32> = const { Cell::new(0) };
}

/// Wakes nobody. It stands for the waker of a combinator that holds what belongs to the loop.
struct Holder;

impl std::task::Wake for Holder {
    fn wake(self: std::sync::Arc<Holder>) {}
}

impl Drop for Holder {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
        let work = WHEN_DROPPED.with_borrow(|work| work.clone());
        work.expect("set by the test")();
    }
}

/// Polls `work` with a holder's waker, and again with another's, so that the first is dropped.
fn poll_as_two_strangers<T>(work: impl Future<Output = T>) {
    let mut work = pin!(work);
    for _ in 0..2 {
        let waker = std::task::Waker::from(std::sync::Arc::new(Holder));
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(work.as_mut().poll(&mut cx).is_pending());
    }
}

async fn a_strangers_waker_that_is_dropped_may_use_the_loop(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let listener = listen(&handle);
    let (watched, loop_of) = (Rc::new(client), handle.clone());
    let used = watched.clone();
    let uses = move || {
        assert_eq!(used.posted_bytes(), 0);
        poll_as_nobody(loop_of.sleep(Nanos::from_secs(1)));
        poll_as_nobody(loop_of.connect(localhost()));
    };
    WHEN_DROPPED.set(Some(Rc::new(uses)));
    DROPPED.set(0);
    poll_as_two_strangers(watched.recv());
    poll_as_two_strangers(watched.discard(5));
    poll_as_two_strangers(handle.sleep(Nanos::from_secs(1)));
    poll_as_two_strangers(handle.connect(listener.local_addr()));
    poll_as_two_strangers(listener.accept());
    server.post(vec![1; 1 << 20]).expect("posted");
    poll_as_two_strangers(server.flush());
    assert!(DROPPED.get() >= 6, "{}", DROPPED.get());
    let before = DROPPED.get();
    drop((server, listener));
    assert_eq!(DROPPED.get(), before + 2);
    WHEN_DROPPED.set(Some(Rc::new(|| ())));
}

fn poll_as_nobody<T>(work: impl Future<Output = T>) {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let _ = pin!(work).poll(&mut cx);
}

async fn few_large_buffers_serve_many_streams_evenly_by_one_shots(handle: Handle) {
    few_large_buffers_serve_many_streams_evenly(handle).await;
}

/// Streams that always have more, until told to stop, share few buffers with some that
/// ask and wait for the answer.
async fn few_large_buffers_serve_many_streams_evenly(handle: Handle) {
    let enough = Rc::new(Cell::new(false));
    let bytes = sized(&handle, 3_000, 200_000);
    let mut tasks = Vec::new();
    for _ in 0..5 {
        let (client, server) = pair(&handle).await;
        let enough = enough.clone();
        tasks.push(handle.spawn(async move {
            while !enough.get() {
                server.post(vec![7; bytes]).expect("posted");
                server.flush().await.expect("the connection stands");
            }
        }));
        tasks
            .push(handle.spawn(async move {
                while !client.recv().await.expect("it stands").is_empty() {}
            }));
    }
    let mut small = Vec::new();
    for _ in 0..5 {
        let (client, server) = pair(&handle).await;
        tasks.push(handle.spawn(echo_until_end(server)));
        small.push(handle.spawn(async move {
            for _ in 0..5 {
                client.post("still here").expect("posted");
                assert_eq!(recv_exactly(&client, 10).await, b"still here");
            }
        }));
    }
    let answered = async {
        for task in small {
            task.await;
        }
    };
    let answered = handle.timeout(Nanos::from_secs(60), answered).await;
    assert_eq!(answered, Ok(()), "some streams get nothing");
    enough.set(true);
    for task in tasks {
        task.await;
    }
}

async fn one_shots_lose_nothing(handle: Handle) {
    bulk_both_ways_under_backpressure(handle.clone()).await;
    a_dropped_recv_loses_nothing(handle.clone()).await;
    a_reset_reaches_the_peer_as_an_error(handle).await;
}

async fn who_waits_for_a_buffer_gets_one_given_back(handle: Handle) {
    let (hoarder, giver) = pair(&handle).await;
    giver.post(pattern(64 * 1024)).expect("posted");
    let mut held = Vec::new();
    let mut bytes = 0;
    while bytes < 64 * 1024 {
        let received = hoarder.recv().await.expect("the connection stands");
        bytes += received.len();
        held.push(received);
    }
    let (client, server) = pair(&handle).await;
    let waiting = handle.spawn(async move { recv_exactly(&client, 3_000).await });
    server.post(pattern(3_000)).expect("posted");
    handle.yield_now().await;
    drop(held);
    assert!(waiting.await == pattern(3_000));
    let before = handle.stats().pool_exhausted;
    giver.post("and on").expect("posted");
    assert_eq!(recv_exactly(&hoarder, 6).await, b"and on");
    assert!(handle.stats().pool_exhausted <= before + 1, "it spins");
}

async fn discard_exactly(stream: &Stream, count: u64) {
    let mut left = count;
    while left > 0 {
        let gone = stream.discard(left).await.expect("the connection stands");
        assert!(0 < gone && gone <= left, "{gone} of {left}");
        left -= gone;
    }
}

async fn discarded_bytes_are_counted_and_gone(handle: Handle) {
    let bytes = sized(&handle, 100_000, 3 << 20);
    let (client, server) = pair(&handle).await;
    server.post(pattern(bytes)).expect("posted");
    server.post("and these are wanted").expect("posted");
    assert_eq!(client.discard(0).await.expect("nothing to do"), 0);
    discard_exactly(&client, bytes as u64).await;
    assert_eq!(recv_exactly(&client, 20).await, b"and these are wanted");
}

async fn discarding_counts_what_was_received_first(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let all = pattern(10_000);
    server.post(all.clone()).expect("posted");
    // Something is here, and more is on its way into buffers.
    let mut got = client.recv().await.expect("the connection stands").to_vec();
    let mut place = got.len();
    for step in [1, 10, 2_500, 700] {
        discard_exactly(&client, step as u64).await;
        place += step;
        got = client.recv().await.expect("the connection stands").to_vec();
        assert_eq!(got, all[place..place + got.len()]);
        place += got.len();
        if place + 3_500 > all.len() {
            break;
        }
    }
    assert!(recv_exactly(&client, all.len() - place).await == all[place..]);
}

async fn discarding_and_receiving_take_turns(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let answering = handle.spawn(echo_until_end(server));
    for round in 0..30_usize {
        let message = pattern(100 + round * 50);
        // A receive or a discard that waits for nothing is given up for the other.
        match round % 3 {
            0 => assert!(poll_once(client.recv()).await),
            1 => assert!(poll_once(client.discard(1 + round as u64)).await),
            _ => {}
        }
        if round % 2 == 0 {
            handle.yield_now().await;
        }
        let cut = if round % 3 == 1 { 1 + round } else { 40 };
        client.post(message.clone()).expect("posted");
        discard_exactly(&client, cut as u64).await;
        let rest = recv_exactly(&client, message.len() - cut).await;
        assert!(rest == message[cut..], "round {round}");
    }
    drop(client);
    answering.await;
}

async fn a_dropped_discard_loses_no_more_than_it_asked_for(handle: Handle) {
    let (client, server) = pair(&handle).await;
    for number in 0..20_u8 {
        assert!(poll_once(client.discard(4)).await);
        server.post(vec![number; 10]).expect("posted");
        let waited = handle
            .timeout(Nanos::from_micros(50), client.discard(4))
            .await;
        let gone = match waited {
            Ok(gone) => gone.expect("the connection stands"),
            Err(Elapsed) => 0,
        };
        discard_exactly(&client, 4 - gone).await;
        assert_eq!(recv_exactly(&client, 6).await, [number; 6]);
    }
    // Given up for good: what follows the four bytes is all there.
    assert!(poll_once(client.discard(4)).await);
    server.post("1234and the rest").expect("posted");
    server.shutdown_write();
    let got = recv_to_end(&client).await.expect("an end");
    let all = b"1234and the rest";
    assert!(all.ends_with(&got) && got.len() >= 12, "{got:?}");
}

async fn discarding_tells_the_end_and_errors(handle: Handle) {
    let (client, server) = pair(&handle).await;
    server.post(pattern(5_000)).expect("posted");
    server.shutdown_write();
    let mut gone = 0;
    loop {
        match client.discard(1 << 40).await.expect("an end") {
            0 => break,
            more => gone += more,
        }
    }
    assert_eq!(gone, 5_000);
    assert_eq!(client.discard(7).await.expect("the end stays"), 0);
    assert!(client.recv().await.expect("the end stays").is_empty());
    client.post("still").expect("this side is open");
    assert_eq!(recv_exactly(&server, 5).await, b"still");

    let (client, server) = pair(&handle).await;
    assert!(poll_once(client.discard(100)).await);
    handle.yield_now().await;
    server.reset();
    let error = client.discard(100).await.expect_err("reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(client.discard(1).await.is_err() && client.recv().await.is_err());
    assert!(client.post("late").is_err());
}

async fn a_stream_dropped_while_it_discards_is_closed(handle: Handle) {
    let (client, server) = pair(&handle).await;
    assert!(poll_once(client.discard(100)).await);
    handle.yield_now().await;
    drop(client);
    assert_eq!(recv_to_end(&server).await.expect("an orderly end"), b"");
}

/// A size for this driver: the simulated network is slow.
fn sized(handle: &Handle, sim: usize, kernel: usize) -> usize {
    match handle.driver() {
        DriverKind::Sim => sim,
        _ => kernel,
    }
}

/// An unlinked file with these bytes.
fn file_of(bytes: &[u8]) -> Rc<OwnedFd> {
    use std::io::Write;
    let fd = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC);
    let mut file = std::fs::File::from(fd.expect("a file in memory"));
    file.write_all(bytes).expect("written");
    Rc::new(file.into())
}

async fn files_and_posts_arrive_in_order(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let content = pattern(90_000);
    let file = file_of(&content);
    let mut expected = Vec::new();
    for round in 0..5_u8 {
        server.post(vec![round; 10]).expect("posted");
        server.send_file(file.clone(), 0, 70_000).expect("posted");
        server
            .send_file(file.clone(), 89_000, 1_000)
            .expect("posted");
        server
            .send_file(file.clone(), 5, 0)
            .expect("nothing is posted");
        server.post("between").expect("posted");
        server.post(pattern(3_000)).expect("posted");
        server.send_file(file.clone(), 1, 1).expect("posted");
        expected.extend([round; 10]);
        expected.extend_from_slice(&content[..70_000]);
        expected.extend_from_slice(&content[89_000..]);
        expected.extend_from_slice(b"between");
        expected.extend(pattern(3_000));
        expected.push(content[1]);
        if round % 2 == 0 {
            handle.yield_now().await;
        }
    }
    assert!(server.posted_bytes() > 74_000);
    // Receiving on the same socket goes on beside it.
    client.post("a request").expect("posted");
    let flushing = handle.spawn(async move {
        assert_eq!(recv_exactly(&server, 9).await, b"a request");
        server.flush().await.expect("the connection stands");
        assert_eq!(server.posted_bytes(), 0);
        server.shutdown_write();
        assert!(server.recv().await.expect("the end").is_empty());
    });
    let got = recv_to_end(&client).await.expect("the connection stands");
    assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
    drop(client);
    flushing.await;
    assert_eq!(Rc::strong_count(&file), 1, "sent files are let go");
}

async fn a_large_file_arrives_whole_though_read_late(handle: Handle) {
    let bytes = sized(&handle, 150_000, 12 << 20);
    let (client, server) = pair(&handle).await;
    let content = pattern(bytes);
    server
        .send_file(file_of(&content), 0, bytes as u64)
        .expect("posted");
    server.shutdown_write();
    // Nobody reads for a while, so that the sender meets a full link.
    handle.sleep(Nanos::from_millis(20)).await;
    let early = server.posted_bytes();
    assert!(0 < early && early < bytes, "{early} bytes are left");
    let got = recv_to_end(&client).await.expect("the connection stands");
    assert!(got == content, "{} bytes of {bytes}", got.len());
    server.flush().await.expect("all is out");
}

async fn a_file_that_is_too_short_is_an_error_by_name(handle: Handle) {
    for posted_behind in [false, true] {
        let (client, server) = pair(&handle).await;
        server
            .send_file(file_of(b"too short"), 4, 100)
            .expect("posted");
        if posted_behind {
            server.post("never sent").expect("posted");
        }
        let error = server.flush().await.expect_err("too short");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        assert_eq!(inner, Some(&FileTooShort));
        let later = server.post("later").expect_err("broken");
        assert_eq!(later.kind(), ErrorKind::UnexpectedEof);
        drop(server);
        assert_eq!(recv_to_end(&client).await.expect("an end"), b"short");
    }
}

async fn a_file_that_cannot_be_read_is_an_error(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let folder = std::fs::File::open("/").expect("it is there");
    let folder = Rc::new(OwnedFd::from(folder));
    server.send_file(folder, 0, 100).expect("posted");
    assert!(server.flush().await.is_err());
    assert!(server.post("later").is_err());
    drop(server);
    assert_eq!(recv_to_end(&client).await.expect("an end"), b"");
}

async fn a_file_that_is_too_short_left_its_reader_waiting(handle: Handle) {
    for is_readable in [true, false] {
        let (client, server) = pair(&handle).await;
        client.post("before").expect("posted");
        assert_eq!(recv_exactly(&server, 6).await, b"before");
        let file = match is_readable {
            true => file_of(b"too short"),
            false => Rc::new(OwnedFd::from(std::fs::File::open("/").expect("there"))),
        };
        server.send_file(file, 4, 100).expect("posted");
        // The socket stands, so that only the sending side knows.
        let waited = handle.timeout(Nanos::from_secs(60), server.recv()).await;
        let error = waited.expect("in time").expect_err("broken");
        let is_named = error.kind() == ErrorKind::UnexpectedEof;
        assert_eq!(is_named, is_readable, "{error}");
        drop(client);
    }
}

async fn parts_of_files_whose_lengths_overflowed(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let file = file_of(b"few");
    for _ in 0..3 {
        server.send_file(file.clone(), 0, u64::MAX).expect("posted");
    }
    assert_eq!(server.posted_bytes(), usize::MAX);
    let error = server.flush().await.expect_err("too short");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    drop(server);
    assert_eq!(recv_to_end(&client).await.expect("an end"), b"few");
}

async fn a_file_is_let_go_with_its_stream(handle: Handle) {
    let bytes = sized(&handle, 300_000, 20_000_000);
    let file = file_of(&pattern(bytes));
    for _ in 0..3 {
        let (client, server) = pair(&handle).await;
        server
            .send_file(file.clone(), 0, bytes as u64)
            .expect("posted");
        handle.yield_now().await;
        handle.yield_now().await;
        server.reset();
        drop(server);
        // A number that is free again is taken by the next pair, which gets nothing of it.
        let (other, untouched) = pair(&handle).await;
        assert!(recv_to_end(&client).await.is_err());
        untouched.post("clean").expect("posted");
        drop(untouched);
        assert_eq!(recv_to_end(&other).await.expect("an end"), b"clean");
    }
    let waited = async {
        while Rc::strong_count(&file) > 1 {
            handle.yield_now().await;
        }
    };
    let waited = handle.timeout(Nanos::from_secs(60), waited).await;
    assert_eq!(waited, Ok(()), "the file is still held");
}

async fn a_file_to_a_peer_that_resets_is_an_error(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let bytes = sized(&handle, 300_000, 20_000_000);
    let file = file_of(&pattern(bytes));
    server
        .send_file(file.clone(), 0, bytes as u64)
        .expect("posted");
    assert!(!client.recv().await.expect("it stands").is_empty());
    client.reset();
    assert!(server.flush().await.is_err());
    assert!(server.post("later").is_err());
}

async fn files_count_little_against_the_limit(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let bytes = sized(&handle, 90_000, 6_000_000) as u64;
    let file = file_of(&pattern(bytes as usize));
    server.post("head").expect("posted");
    server.send_file(file.clone(), 0, bytes).expect("posted");
    let error = server.send_file(file.clone(), 0, 1).expect_err("too much");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    server.post("tail").expect("posted");
    let error = server.post(pattern(5_000)).expect_err("too much");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let flushing = handle.spawn(async move {
        server.flush().await.expect("it stands");
        server.send_file(file, 0, 1).expect("posted");
    });
    discard_exactly(&client, bytes + 4).await;
    let got = recv_to_end(&client).await.expect("an end");
    flushing.await;
    assert_eq!(got, [b"tail", &pattern(1)[..]].concat());
}

async fn a_file_arrives_though_the_stream_was_dropped(handle: Handle) {
    let bytes = sized(&handle, 100_000, 1 << 20);
    let (client, server) = pair(&handle).await;
    let content = pattern(bytes);
    server.post("head").expect("posted");
    server
        .send_file(file_of(&content), 0, bytes as u64)
        .expect("posted");
    drop(server);
    discard_exactly(&client, 4).await;
    let got = recv_to_end(&client).await.expect("an orderly end");
    assert!(got == content, "{} bytes", got.len());
}

async fn connecting_from_an_address_of_ones_own(handle: Handle) {
    let listener = listen(&handle);
    let options = ConnectOptions {
        local: Some(SocketAddr::from(([127, 0, 0, 2], 0))),
        kernel_recv_bytes: Some(100_000),
        ..ConnectOptions::default()
    };
    let connecting = handle.connect_with(listener.local_addr(), &options);
    let client = connecting.await.expect("connected");
    let (server, peer) = listener.accept().await.expect("a connection");
    assert_eq!(peer.ip().to_string(), "127.0.0.2");
    assert_eq!(client.local_addr().expect("known"), peer);
    server.post("welcome").expect("posted");
    assert_eq!(recv_exactly(&client, 7).await, b"welcome");
}

// What only a kernel's driver can do, or what looks at a whole run.

fn on_both(case: impl Fn(Config)) {
    for driver in [DriverChoice::Ring, DriverChoice::Epoll] {
        let config = Config {
            driver,
            ..Config::default()
        };
        match run(&config, |_| async {}) {
            Err(error @ Error::RingUnavailable { .. }) => {
                prony_testkit::skip_ring(&error.to_string())
            }
            _ => case(config),
        }
    }
}

#[test]
fn a_loop_drops_what_is_left() {
    on_both(|config| {
        let drops = Rc::new(Cell::new(0));
        let counted = CountDrops(drops.clone());
        let result = run(&config, |handle| async move {
            handle
                .spawn(async move {
                    let _counted = counted;
                    std::future::pending::<()>().await;
                })
                .detach();
            handle.yield_now().await;
            "done"
        });
        assert_eq!((result.expect("it runs"), drops.get()), ("done", 1));
    });
}

#[test]
fn a_panic_in_a_task_leaves_the_loop_with_everything_dropped() {
    on_both(|config| {
        let drops = Rc::new(Cell::new(0));
        let counted = CountDrops(drops.clone());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(&config, |handle| async move {
                let (client, server) = pair(&handle).await;
                client.post(pattern(1 << 20)).expect("posted");
                handle
                    .spawn(async move {
                        let _counted = counted;
                        let _ = (server.recv().await, server);
                        std::future::pending::<()>().await;
                    })
                    .detach();
                handle.yield_now().await;
                handle.yield_now().await;
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(drops.get(), 1);
    });
}

#[test]
fn a_mailbox_carries_values_from_other_threads_in_order() {
    on_both(|config| {
        let (sender, mut receiver) = mailbox(100_000);
        let threads: Vec<_> = (0..3_u32)
            .map(|thread| {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    for number in 0..10_000_u32 {
                        sender.send((thread, number)).expect("there is room");
                    }
                })
            })
            .collect();
        drop(sender);
        let counts = run(&config, |_| async move {
            let mut next = [0_u32; 3];
            while let Some((thread, number)) = receiver.recv().await {
                assert_eq!(number, next[thread as usize]);
                next[thread as usize] += 1;
            }
            next
        });
        assert_eq!(counts.expect("it runs"), [10_000; 3]);
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

#[test]
fn a_mailbox_refuses_past_its_limit_and_without_receiver() {
    let (sender, mut receiver) = mailbox(1);
    sender.send(1).expect("room for one");
    assert_eq!(sender.send(2), Err(prony_engine::SendError::Full(2)));
    assert_eq!(receiver.try_recv(), Some(1));
    assert_eq!(receiver.try_recv(), None);
    drop(receiver);
    assert_eq!(sender.send(3), Err(prony_engine::SendError::Closed(3)));
}

#[test]
fn a_wake_from_another_thread_reaches_a_sleeping_loop() {
    on_both(|config| {
        let (there, mut ping) = mailbox::<u32>(4);
        let (answer, mut pong) = mailbox::<u32>(4);
        let other_config = config.clone();
        let other = std::thread::spawn(move || {
            run(&other_config, |_| async move {
                while let Some(number) = ping.recv().await {
                    answer.send(number + 1).expect("there is room");
                }
            })
        });
        let last = run(&config, |_| async move {
            let mut number = 0;
            for _ in 0..500 {
                there.send(number).expect("there is room");
                number = pong.recv().await.expect("the other loop answers");
            }
            number
        });
        assert_eq!(last.expect("it runs"), 500);
        other.join().expect("no panic").expect("it runs");
    });
}

#[test]
fn a_connection_accepted_by_one_loop_is_served_by_another_of_either_driver() {
    for served_by in [DriverChoice::Epoll, DriverChoice::Auto] {
        on_both(|config| {
            let (give, mut taken) = mailbox::<Accepted>(4);
            let server = std::thread::spawn(move || {
                let config = Config {
                    driver: served_by,
                    ..Config::default()
                };
                run(&config, |handle| async move {
                    let accepted = taken.recv().await.expect("one comes");
                    echo_until_end(handle.attach(accepted).expect("attached")).await;
                })
            });
            let got = run(&config, |handle| async move {
                let listener = listen(&handle);
                let connecting = handle.connect(listener.local_addr());
                let client = connecting.await.expect("the backlog takes it");
                let accepted = listener.accept_unattached().await.expect("a connection");
                give.send(accepted).expect("there is room");
                client.post(pattern(50_000)).expect("posted");
                recv_exactly(&client, 50_000).await
            });
            assert!(got.expect("it runs") == pattern(50_000));
            server.join().expect("no panic").expect("it runs");
        });
    }
}

/// Others may be about to accept from it, whom nothing else keeps from waiting.
#[test]
fn who_took_the_rest_from_a_shared_socket_took_back_its_time_limit() {
    use rustix::net::sockopt::{Timeout, socket_timeout};
    on_both(|config| {
        let shared = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let limit = run(&config, |handle| async move {
            let copy = shared.try_clone().expect("a copy").into();
            let listener = handle.listen_on(copy, &ListenOptions::default());
            let listener = listener.expect("it listens");
            let client = handle.connect(listener.local_addr()).await;
            client.expect("the backlog takes it");
            listener.accept_rest().await.expect("it waits");
            socket_timeout(&shared, Timeout::Recv).expect("known")
        });
        assert!(limit.expect("it runs").is_some());
    });
}

#[test]
fn a_pipe_is_readable_when_it_is() {
    on_both(|config| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let result = run(&config, |handle| async move {
            let short = Nanos::from_millis(1);
            let early = handle.timeout(short, handle.readable(&reader)).await;
            assert!(early.is_err(), "nothing was written");
            let waiting = handle.spawn({
                let handle = handle.clone();
                async move { handle.readable(&reader).await }
            });
            handle.yield_now().await;
            use std::io::Write;
            (&writer).write_all(b"x").expect("written");
            waiting.await
        });
        assert!(result.expect("it runs").is_ok());
    });
}

#[test]
fn a_spinning_loop_works_like_a_sleeping_one() {
    on_both(|config| {
        let config = Config {
            spin: true,
            ..config
        };
        run(&config, echo).expect("it runs");
    });
}

/// A peer on another thread answers a thousand bytes, one after the other, and wakes a task beside.
async fn asks_a_thread(handle: Handle) {
    let listener = std::net::TcpListener::bind(localhost()).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (woken, mut wakes) = prony_engine::mailbox(1);
    let peer = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut byte = [0];
        for _ in 0..1_000 {
            stream.read_exact(&mut byte).expect("a byte");
            stream.write_all(&byte).expect("written");
        }
        woken.send(()).expect("the loop is there");
    });
    let stream = handle.connect(address).await.expect("connected");
    for round in 0..1_000 {
        stream.post(vec![round as u8]).expect("posted");
        assert_eq!(recv_exactly(&stream, 1).await, [round as u8]);
    }
    assert_eq!(wakes.recv().await, Some(()));
    // A timer that comes while it looks is not missed either.
    handle.sleep(Nanos::from_micros(50)).await;
    peer.join().expect("no panic");
}

#[test]
fn a_loop_that_looks_before_it_sleeps_misses_nothing() {
    on_both(|config| {
        for precise_timers in [false, true] {
            let config = Config {
                look_before_sleep: Nanos::from_millis(1),
                precise_timers,
                ..config.clone()
            };
            run(&config, asks_a_thread).expect("it runs");
        }
    });
}

/// Two streams that wait for a byte each, which another thread sends one after the
/// other when told; and the turns of the loop at which the two arrived.
async fn two_bytes_apart(handle: Handle) -> (u64, u64, Nanos) {
    let listener = std::net::TcpListener::bind(localhost()).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let one = handle.connect(address).await.expect("connected");
    let two = handle.connect(address).await.expect("connected");
    let (go, gone) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        let mut accepted = [(); 2].map(|()| listener.accept().expect("a connection").0);
        gone.recv().expect("told to go");
        accepted[0].write_all(b"1").expect("written");
        // Something that takes far longer than the loop needs to see the first byte.
        for _ in 0..200 {
            let other = std::net::TcpListener::bind(localhost()).expect("a free port");
            let address = other.local_addr().expect("bound");
            std::net::TcpStream::connect(address).expect("connected");
        }
        accepted[1].write_all(b"2").expect("written");
        accepted
    });
    assert!(poll_once(one.recv()).await && poll_once(two.recv()).await);
    handle.yield_now().await;
    // Long enough for any machine; it ends with the second byte.
    handle.set_coalescing(2, Nanos::from_secs(60));
    go.send(()).expect("the thread is there");
    assert_eq!(recv_exactly(&one, 1).await, b"1");
    let first = handle.turns();
    assert_eq!(recv_exactly(&two, 1).await, b"2");
    drop(writer.join().expect("no panic"));
    (first, handle.turns(), handle.stats().coalescing)
}

#[test]
fn a_turn_that_may_wait_for_two_completions_brings_both() {
    on_both(|config| {
        let (first, second, in_force) = run(&config, two_bytes_apart).expect("it runs");
        // Where the wait is shorter, two turns bring them, as a rule.
        assert!(first == second || in_force < Nanos::from_secs(60));
    });
}

#[test]
fn a_wait_for_more_completions_ends_with_the_next_timer() {
    on_both(|config| {
        let length = run(&config, |handle| async move {
            handle.set_coalescing(1_000, Nanos::from_secs(60));
            let start = handle.now();
            handle.sleep(Nanos::from_millis(2)).await;
            handle.now().since(start)
        });
        assert!(length.expect("it runs") < Nanos::from_secs(50));
    });
}

#[test]
fn small_queues_to_the_kernel_overflow_without_loss() {
    on_both(|config| {
        let config = Config {
            submissions_max: 2,
            connections_hint: 1,
            ..config
        };
        run(&config, many_connections).expect("it runs");
    });
}

#[test]
fn auto_takes_a_driver_and_says_why_not_the_ring() {
    let config = Config::default();
    let (kind, fallback) = run(&config, |handle| async move {
        (handle.driver(), handle.fallback().map(str::to_owned))
    })
    .expect("it runs");
    match kind {
        DriverKind::Ring => assert_eq!(fallback, None),
        DriverKind::Epoll => {
            let why = fallback.expect("a reason");
            assert!(why.contains("io_uring is not available"), "{why}");
        }
        DriverKind::Sim => panic!("a real loop is not simulated"),
    }
}
