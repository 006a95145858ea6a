//! What only the simulated world does: reproduce, inject faults, find deadlocks.

use std::net::SocketAddr;

use prony_base::{Instant, Nanos};
use prony_engine::sim::{SimError, SimOptions, World};
use prony_engine::{Config, DriverKind, Handle, ListenOptions, mailbox};

const LIMIT: Nanos = Nanos::from_secs(3_600);

fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

async fn serve(handle: Handle, connections: usize) {
    let listener = handle
        .listen(server_address(), &ListenOptions::default())
        .expect("a free port");
    for _ in 0..connections {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        handle
            .spawn(async move {
                while let Ok(bytes) = stream.recv().await
                    && !bytes.is_empty()
                    && stream.post(bytes.to_vec()).is_ok()
                {}
            })
            .detach();
    }
    // Clients close when they are done; nothing else is to be waited for.
    while handle.tasks() > 0 {
        handle.sleep(Nanos::from_millis(1)).await;
    }
}

/// Messages that were answered before something broke.
async fn ask(handle: Handle, messages: usize) -> usize {
    handle.sleep(Nanos::from_millis(1)).await;
    let Ok(stream) = handle.connect(server_address()).await else {
        return 0;
    };
    for answered in 0..messages {
        let message = vec![answered as u8; 1 + answered * 37];
        if stream.post(message.clone()).is_err() {
            return answered;
        }
        let mut got = Vec::new();
        while got.len() < message.len() {
            match stream.recv().await {
                Ok(bytes) if !bytes.is_empty() => got.extend_from_slice(&bytes),
                _ => return answered,
            }
        }
        assert_eq!(got, message, "bytes were lost or mixed");
    }
    messages
}

struct Ended {
    trace: u64,
    at: Instant,
    answered: Vec<usize>,
}

fn client_against_server(seed: u64, options: &SimOptions) -> Ended {
    let mut world = World::new(seed, options.clone());
    let config = Config {
        recv_buffer_bytes: 256,
        ..Config::default()
    };
    // A refused client never reaches the server, so the server serves for a while.
    let server = world.spawn_loop(&config, |handle| async move {
        let own = handle.clone();
        let forever = serve(own, usize::MAX);
        handle.timeout(Nanos::from_secs(30), forever).await
    });
    let clients: Vec<_> = (0..3)
        .map(|_| world.spawn_loop(&config, |handle| ask(handle, 12)))
        .collect();
    world
        .run(LIMIT)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert!(server.take().is_some(), "seed {seed}");
    let answered = clients.iter().filter_map(|client| client.take()).collect();
    Ended {
        trace: world.trace_hash(),
        at: world.now(),
        answered,
    }
}

#[test]
fn a_seed_reproduces_a_run_exactly_and_another_seed_does_not() {
    let options = SimOptions {
        resets_per_million: 20_000,
        ..SimOptions::default()
    };
    for seed in 0..20 {
        let first = client_against_server(seed, &options);
        let second = client_against_server(seed, &options);
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert_eq!(first.at, second.at, "seed {seed}");
        assert_eq!(first.answered, second.answered, "seed {seed}");
        assert_ne!(
            first.trace,
            client_against_server(seed + 1_000, &options).trace
        );
    }
}

#[test]
fn without_faults_every_message_is_answered() {
    for seed in 0..prony_testkit::seeds(100, 5_000) {
        let ended = client_against_server(seed, &SimOptions::default());
        assert_eq!(ended.answered, [12, 12, 12], "seed {seed}");
    }
}

#[test]
fn resets_and_refusals_happen_and_lose_no_more_than_they_must() {
    let options = SimOptions {
        resets_per_million: 20_000,
        refusals_per_million: 100_000,
        ..SimOptions::default()
    };
    let (mut whole, mut cut, mut refused) = (0, 0, 0);
    let seeds = prony_testkit::seeds(200, 5_000);
    for seed in 0..seeds {
        for answered in client_against_server(seed, &options).answered {
            match answered {
                0 => refused += 1,
                12 => whole += 1,
                _ => cut += 1,
            }
        }
    }
    assert!(
        whole > 50 && cut > 50 && refused > 20,
        "{whole} whole, {cut} cut, {refused} refused"
    );
}

#[test]
fn virtual_time_jumps() {
    let mut world = World::new(1, SimOptions::default());
    let slept = world.spawn_loop(&Config::default(), |handle| async move {
        assert_eq!(handle.driver(), DriverKind::Sim);
        handle.sleep(Nanos::from_secs(1_000_000)).await;
        handle.now()
    });
    // What is due when the time is over has still been in time.
    world.run(Nanos::from_secs(1_000_000)).expect("it ends");
    assert_eq!(slept.take(), Some(Instant(1_000_000_000_000_000)));
}

#[test]
fn a_deadlock_is_reported_with_who_waits() {
    let mut world = World::new(1, SimOptions::default());
    let _done = world.spawn_loop(&Config::default(), |_| async {});
    let _waits = world.spawn_loop(&Config::default(), |handle| async move {
        let listener = handle.listen(server_address(), &ListenOptions::default());
        let _ = listener.expect("a free port").accept().await;
    });
    let error = world.run(LIMIT).expect_err("nobody ever connects");
    assert!(
        matches!(&error, SimError::Deadlock { waiting, .. } if waiting == &[1]),
        "{error}"
    );
}

#[test]
fn what_takes_too_long_is_reported_with_who_is_left() {
    let mut world = World::new(1, SimOptions::default());
    let _slow = world.spawn_loop(&Config::default(), |handle| async move {
        handle.sleep(Nanos::from_secs(10)).await;
    });
    let error = world.run(Nanos::from_secs(1)).expect_err("too long");
    assert_eq!(
        error.to_string(),
        "loops [0] had not finished in the time allowed"
    );
}

#[test]
fn loops_of_one_world_talk_by_mailbox_too() {
    let mut world = World::new(3, SimOptions::default());
    let (sender, mut receiver) = mailbox(8);
    let received = world.spawn_loop(&Config::default(), |_| async move {
        let mut sum = 0;
        while let Some(number) = receiver.recv().await {
            sum += number;
        }
        sum
    });
    let _sent = world.spawn_loop(&Config::default(), |handle| async move {
        for number in 1..=10 {
            handle.sleep(Nanos::from_millis(1)).await;
            sender.send(number).expect("there is room");
        }
    });
    world.run(LIMIT).expect("it ends");
    assert_eq!(received.take(), Some(55));
}

#[test]
fn descriptors_do_not_exist_there() {
    let mut world = World::new(1, SimOptions::default());
    let result = world.spawn_loop(&Config::default(), |handle| async move {
        handle.readable(std::io::stdin()).await
    });
    world.run(LIMIT).expect("it ends");
    let error = result.take().expect("it ended").expect_err("unsupported");
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
}
