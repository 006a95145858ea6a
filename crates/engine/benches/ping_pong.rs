//! CPU per request of a 100-byte ping-pong: a client thread against a server
//! thread on the same engine, each on a core of its own.
//!
//! `cargo bench -p prony-engine` prints, for each driver, the client's CPU time
//! per request; several rounds, the drivers taking turns. Without `--bench` (as in
//! a test run) it makes a few requests, to show that it still works.
//! `ping_pong DRIVER client ADDRESS CONNECTIONS SECONDS` and `ping_pong DRIVER server
//! PORT` run one side against a stranger.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::{Nanos, clock};
use prony_engine::{Config, Handle, ListenOptions, Stream, mailbox, run};

const MESSAGE_BYTES: usize = 100;

struct Size {
    connections: usize,
    window: Nanos,
    rounds: usize,
}

const LARGE: Size = Size {
    connections: 100,
    window: Nanos::from_secs(1),
    rounds: 5,
};
const SMALL: Size = Size {
    connections: 3,
    window: Nanos::from_millis(5),
    rounds: 1,
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [driver, "server", port] => {
            let address = SocketAddr::from(([127, 0, 0, 1], port.parse().expect("a port")));
            let done = run(&config(driver), |handle| serve_for_ever(handle, address));
            done.expect("the server runs");
        }
        [driver, "client", address, connections, seconds] => {
            let size = Size {
                connections: connections.parse().expect("a number"),
                window: Nanos::from_secs(seconds.parse().expect("seconds")),
                rounds: 1,
            };
            let address = address.parse().expect("an address");
            println!("{driver}: {}", measure(&config(driver), address, &size));
        }
        _ if words.contains(&"--bench") => compare(&LARGE),
        _ => compare(&SMALL),
    }
}

fn config(driver: &str) -> Config {
    Config {
        driver: driver.parse().expect("ring or epoll"),
        ..Config::default()
    }
}

fn compare(size: &Size) {
    for round in 0..size.rounds {
        for driver in ["ring", "epoll"] {
            println!("round {round}, {driver}: {}", one(&config(driver), size));
        }
    }
}

fn one(config: &Config, size: &Size) -> String {
    let (tell_address, address) = std::sync::mpsc::channel();
    let (stop, mut stopped) = mailbox::<()>(1);
    let server_config = config.clone();
    let server = std::thread::spawn(move || {
        pin_to(0);
        run(&server_config, |handle| async move {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = handle.listen(any, &ListenOptions::default())?;
            tell_address
                .send(listener.local_addr())
                .expect("somebody waits");
            let serving = handle.spawn(serve(handle.clone(), listener));
            stopped.recv().await;
            drop(serving);
            Ok::<(), std::io::Error>(())
        })
    });
    let Ok(address) = address.recv() else {
        let error = server.join().expect("no panic");
        return format!("not run: {}", error.map(|_| ()).unwrap_err());
    };
    pin_to(1);
    let result = measure(config, address, size);
    stop.send(()).expect("the server waits for it");
    server
        .join()
        .expect("no panic")
        .expect("the loop runs")
        .expect("it listens");
    result
}

async fn serve_for_ever(handle: Handle, address: SocketAddr) {
    let listener = handle.listen(address, &ListenOptions::default());
    serve(handle.clone(), listener.expect("a free port")).await;
}

async fn serve(handle: Handle, listener: prony_engine::Listener) {
    while let Ok((stream, _)) = listener.accept().await {
        let answering = answer(handle.clone(), stream);
        handle.spawn(answering).detach();
    }
}

async fn answer(handle: Handle, stream: Stream) {
    let mut partial = 0;
    loop {
        match stream.recv().await {
            Ok(bytes) if !bytes.is_empty() => partial += bytes.len(),
            _ => return,
        }
        let mut out = handle.take_buffer();
        while partial >= MESSAGE_BYTES {
            out.extend_from_slice(&[b'y'; MESSAGE_BYTES]);
            partial -= MESSAGE_BYTES;
        }
        if stream.post(out).is_err() {
            return;
        }
    }
}

struct Counts {
    requests: Cell<u64>,
    stop: Cell<bool>,
}

fn measure(config: &Config, address: SocketAddr, size: &Size) -> String {
    let measured = run(config, |handle| async move {
        let counts = Rc::new(Counts {
            requests: Cell::new(0),
            stop: Cell::new(false),
        });
        let mut asking = Vec::new();
        for _ in 0..size.connections {
            let stream = handle.connect(address).await.expect("the server listens");
            asking.push(handle.spawn(ask(handle.clone(), stream, counts.clone())));
        }
        handle.sleep(Nanos(size.window.0 / 5)).await;
        let (requests, cpu, start) = (counts.requests.get(), clock::thread_cpu(), handle.now());
        let before = handle.stats();
        handle.sleep(size.window).await;
        let requests = counts.requests.get() - requests;
        let cpu = clock::thread_cpu() - cpu;
        let elapsed = handle.now().since(start);
        let enters = handle.stats().enters - before.enters;
        counts.stop.set(true);
        for task in asking {
            task.await;
        }
        format!(
            "{:.3} us CPU per request, {:.0} requests/s, {:.1} requests per system call",
            cpu.as_micros_f64() / requests.max(1) as f64,
            requests as f64 / elapsed.as_secs_f64(),
            requests as f64 / enters.max(1) as f64,
        )
    });
    measured.unwrap_or_else(|error| format!("not run: {error}"))
}

async fn ask(handle: Handle, stream: Stream, counts: Rc<Counts>) {
    while !counts.stop.get() {
        let mut out = handle.take_buffer();
        out.extend_from_slice(&[b'x'; MESSAGE_BYTES]);
        stream.post(out).expect("the connection stands");
        let mut answer = 0;
        while answer < MESSAGE_BYTES {
            let bytes = stream.recv().await.expect("the connection stands");
            assert!(!bytes.is_empty(), "the server closed");
            answer += bytes.len();
        }
        counts.requests.set(counts.requests.get() + 1);
    }
}

fn pin_to(core: usize) {
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(core % std::thread::available_parallelism().map_or(1, usize::from));
    // Unpinned where that is not allowed: the figures are then worse, not wrong.
    let _ = rustix::thread::sched_setaffinity(None, &cores);
}
