//! Stamps beside a capture of the packets: what the drivers say about the moments of sending
//! and of arrival, against the kernel's stamps of the packets themselves, in a network of the
//! test's own.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;

use prony_base::{Instant, Nanos, clock};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with, sockopt};

use super::kernel_stamps;
use crate::{Arrival, Bracket, Config, ConnectOptions, DriverChoice, Handle, run};

const ROUNDS: usize = 500;
/// Connections that are busy at the same time.
const STREAMS: usize = 8;
/// What the readings of two clocks may differ by.
const ERROR: Nanos = Nanos(1_000);
/// How long the kernel takes to bring a packet to its socket, as a rule.
const WAY: Nanos = Nanos::from_micros(20);

/// Packets of every protocol, as the kernel numbers them for packet sockets, in the network's
/// order of bytes. Those of one protocol reach such a socket only after TCP has had them.
fn every() -> Option<Protocol> {
    NonZeroU32::new(u32::from(0x0003_u16.to_be())).map(Protocol::from_raw)
}

/// A network of the calling thread's own, with a loopback that is up. None, with a note,
/// where this user may not.
fn own_network() -> Option<()> {
    let ip = prony_testkit::need("ip")?;
    // SAFETY: only the calling thread changes, into a network without any interface in use.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let error = std::io::Error::last_os_error();
        let what = format!("a network of its own, for a capture: {error}");
        prony_testkit::skip_without("root", &what);
        return None;
    }
    let up = Command::new(ip).args(["link", "set", "lo", "up"]).status();
    assert!(up.expect("ip starts").success());
    Some(())
}

fn capture() -> OwnedFd {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, every());
    let socket = socket.expect("root may capture");
    let yes: libc::c_int = 1;
    // SAFETY: the call reads the one integer that it is given the size of.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const yes).cast(),
            size_of_val(&yes) as libc::socklen_t,
        )
    };
    assert_eq!(result, 0, "packets can be had as they come alone");
    sockopt::set_socket_recv_buffer_size_force(&socket, 256 << 20).expect("root may");
    kernel_stamps::ask(socket.as_fd()).expect("packets are stamped");
    until_stamped(&socket);
    socket
}

/// Sends packets until one is stamped: the kernel begins with it a moment after it was asked to,
/// and on a busy machine later.
fn until_stamped(capture: &OwnedFd) {
    const PACKETS_MAX: usize = 10_000_000;
    let own = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let to = own.local_addr().expect("bound");
    let mut bytes = [0; 2_000];
    let is_stamped = (0..PACKETS_MAX).any(|_| {
        own.send_to(b"x", to).expect("loopback is up");
        let received = kernel_stamps::receive(capture.as_fd(), &mut bytes);
        std::thread::yield_now();
        matches!(received, Ok((_, Some(_))))
    });
    assert!(is_stamped, "the kernel stamps no packet");
    while kernel_stamps::receive(capture.as_fd(), &mut bytes).is_ok() {}
}

/// Times of the packets that carried bytes, first sent first, by the ports of sender and
/// receiver.
type Packets = HashMap<(u16, u16), Vec<Option<Instant>>>;

fn packets(capture: &OwnedFd) -> Packets {
    let ahead = (0..100).map(|_| {
        let before = clock::monotonic();
        let real = clock::unix_nanos();
        let after = clock::monotonic();
        (after.since(before), real - (before.0 + after.0) / 2)
    });
    let (_, ahead) = ahead.min().expect("a hundred");
    let mut seen = HashSet::new();
    let mut packets = Packets::new();
    let mut bytes = [0; 2_000];
    while let Ok((len, stamp)) = kernel_stamps::receive(capture.as_fd(), &mut bytes) {
        let (ip, len) = (usize::from(bytes[0] & 15) * 4, len.min(bytes.len()));
        let tcp = &bytes[ip..len];
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let ports = (port(0), port(2));
        let place = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let is_payload = tcp.len() > usize::from(tcp[12] >> 4) * 4;
        // Of what is sent again, because its receiver was slow to answer, the first counts.
        if is_payload && seen.insert((ports, place)) {
            let at = stamp.map(|stamp| Instant(stamp - ahead));
            packets.entry(ports).or_default().push(at);
        }
    }
    packets
}

/// What one connection saw of each round.
struct Seen {
    port: u16,
    rounds: Vec<(Bracket, Arrival)>,
}

async fn ask(handle: Handle, server: std::net::SocketAddr) -> Seen {
    let options = ConnectOptions {
        timestamps: true,
        ..ConnectOptions::default()
    };
    let stream = handle.connect_with(server, &options).await;
    let stream = stream.expect("connected");
    let port = stream.local_addr().expect("known").port();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        stream.post("ask").expect("posted");
        let received = stream.recv().await.expect("an answer");
        assert_eq!(received.len(), 3);
        let submitted = stream.submitted().expect("it was answered");
        rounds.push((submitted, received.arrival()));
    }
    Seen { port, rounds }
}

/// Answers every connection by a thread of its own.
fn answering() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for _ in 0..STREAMS {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            std::thread::spawn(move || {
                let mut bytes = [0; 3];
                while stream.read_exact(&mut bytes).is_ok() {
                    stream.write_all(&bytes).expect("the client waits");
                }
            });
        }
    });
    address
}

fn hold_against_a_capture(driver: DriverChoice, spin: bool) {
    if own_network().is_none() {
        return;
    }
    let capture = capture();
    let server = answering();
    let config = Config {
        driver,
        spin,
        ..Config::default()
    };
    let ran = run(&config, |handle| async move {
        let asking: Vec<_> = (0..STREAMS)
            .map(|_| handle.spawn(ask(handle.clone(), server)))
            .collect();
        let mut all = Vec::new();
        for one in asking {
            all.push(one.await);
        }
        (handle.driver(), all)
    });
    let (driver, all) = match ran {
        Err(error @ crate::Error::RingUnavailable { .. }) => {
            return prony_testkit::skip_ring(&error.to_string());
        }
        ran => ran.expect("it runs"),
    };
    let packets = packets(&capture);
    let found = Found::of(&all, &packets, server.port());
    println!("{driver}, spinning: {spin}: {found:?}");
    assert!(found.sends * 2 >= STREAMS * ROUNDS, "{found:?}");
    // A latency from `from` on is never less than the true one, whatever the machine does.
    assert_eq!(found.sent_before, 0, "{found:?}");
    assert_eq!(found.taken_before, 0, "{found:?}");
    assert_eq!(found.stamped_before, 0, "{found:?}");
    // What is estimated, and where the machine may be busy with something else.
    assert!(found.sent_after * 4 <= found.sends, "{found:?}");
    assert!(found.there_before * 4 <= found.sends, "{found:?}");
    assert!(found.stamps_apart * 4 <= found.stamps, "{found:?}");
    assert!(found.stamps > 0, "{found:?}");
}

/// In how many of so many sends and arrivals the capture says something else.
#[derive(Debug, Default)]
struct Found {
    sends: usize,
    /// The packet was sent before its bracket begins.
    sent_before: usize,
    /// … after it ends.
    sent_after: usize,
    /// The packet came later than it was taken from the kernel.
    taken_before: usize,
    /// … and long before the moment at which it was not there.
    there_before: usize,
    stamps: usize,
    /// The stamp of the kernel is earlier than the packet's.
    stamped_before: usize,
    /// … or more than 5 µs later: something else had the processor between the two.
    stamps_apart: usize,
    /// Brackets of more than 20 µs.
    wide: usize,
    /// By how much a packet was late for its bracket.
    latest: Nanos,
}

impl Found {
    fn of(all: &[Seen], packets: &Packets, server: u16) -> Found {
        let mut found = Found::default();
        for one in all {
            let sent = &packets[&(one.port, server)];
            let came = &packets[&(server, one.port)];
            assert_eq!((sent.len(), came.len()), (ROUNDS, ROUNDS));
            for (&(bracket, arrival), (&sent, &came)) in
                one.rounds.iter().zip(sent.iter().zip(came))
            {
                if let (Some(sent), Some(came)) = (sent, came) {
                    found.note(bracket, arrival, sent, came);
                }
            }
        }
        found
    }

    fn note(&mut self, bracket: Bracket, arrival: Arrival, sent: Instant, came: Instant) {
        self.sends += 1;
        self.sent_before += usize::from(sent + ERROR < bracket.from);
        self.sent_after += usize::from(sent > bracket.to + ERROR);
        self.latest = self.latest.max(sent.since(bracket.to));
        self.wide += usize::from(bracket.width() > Nanos::from_micros(20));
        self.taken_before += usize::from(arrival.reaped + ERROR < came);
        self.there_before += usize::from(came + WAY < arrival.since);
        if let Some(stamp) = arrival.kernel {
            let apart = stamp.since(came);
            self.stamped_before += usize::from(stamp + ERROR < came);
            self.stamps += 1;
            self.stamps_apart += usize::from(apart > Nanos::from_micros(5));
        }
    }
}

#[test]
fn brackets_and_stamps_hold_against_a_capture_on_the_ring() {
    hold_against_a_capture(DriverChoice::Ring, false);
}

#[test]
fn brackets_and_stamps_hold_against_a_capture_on_a_spinning_ring() {
    hold_against_a_capture(DriverChoice::Ring, true);
}

#[test]
fn brackets_and_stamps_hold_against_a_capture_on_epoll() {
    hold_against_a_capture(DriverChoice::Epoll, false);
}
