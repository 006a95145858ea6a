//! Ports for servers that cannot choose one themselves, and addresses at which nothing listens.
//!
//! Not for: a server that takes port 0. The kernel's choice is then its own from the first moment on.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports that may be given away. The kernel gives none of them: what it chooses for others begins at 32768.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// How many this process has tried.
static TRIED: AtomicU16 = AtomicU16::new(0);

/// A port on which nothing listens, and that is no other test's until this process ends, also not of another process.
///
/// A port of the kernel's choice (`bind` to port 0, then close) is free again, so that the next test, or a connection that is
/// opened, may have it before the server that was meant to.
///
/// # Panics
/// Where none is left.
pub fn free_port() -> u16 {
    let count = PORTS.end - PORTS.start;
    // Processes begin at different places, only so that they seldom try the same ones.
    let first = (process::id() % u32::from(count)) as u16;
    for _ in PORTS {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + (first + tried % count) % count;
        if take(port) {
            return port;
        }
    }
    panic!("no port of {PORTS:?} is free");
}

/// Whether `port` is nobody's; then it is this process's. A socket with its number in its name says so, in a space of names
/// that the processes of one network share as they share its ports, and that has no file to leave behind.
fn take(port: u16) -> bool {
    let name = SocketAddr::from_abstract_name(format!("prony-test-port-{port}"));
    let Ok(lock) = name.and_then(|name| UnixDatagram::bind_addr(&name)) else {
        return false;
    };
    let is_free = TcpListener::bind(("127.0.0.1", port)).is_ok();
    if is_free {
        std::mem::forget(lock);
    }
    is_free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_and_can_be_listened_on() {
        let mut ports: Vec<u16> = (0..50).map(|_| free_port()).collect();
        let listeners = ports
            .iter()
            .map(|&port| TcpListener::bind(("127.0.0.1", port)));
        let listeners: Vec<_> = listeners.map(|bound| bound.expect("it is free")).collect();
        assert_eq!(listeners.len(), 50);
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 50);
    }

    #[test]
    fn what_another_holds_is_not_given() {
        assert!(!take(free_port()));
    }
}
