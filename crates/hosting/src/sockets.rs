//! Listening sockets that outlive their worker: opened by the supervisor.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::sockopt;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, ipproto, listen, socket_with,
};

use crate::settings::{Distribution, Settings};

/// A host's listening sockets.
pub(crate) struct Sockets {
    /// One, or one for each worker with [`Distribution::Reuseport`].
    pub listening: Vec<OwnedFd>,
    /// Where, with the port that was got.
    pub address: SocketAddr,
}

impl Sockets {
    /// Opens them.
    ///
    /// # Errors
    /// An error of the kernel: address in use, permission denied.
    pub(crate) fn open(settings: &Settings) -> io::Result<Sockets> {
        let is_each_own = settings.distribution == Distribution::Reuseport;
        if is_each_own && settings.address.port() != 0 {
            // Another program that shares its port so would otherwise get half of the
            // connections, and neither would be told.
            drop(open(settings.address, settings.backlog, false)?);
        }
        let first = open(settings.address, settings.backlog, is_each_own)?;
        let address = SocketAddr::try_from(getsockname(&first)?)?;
        let mut listening = vec![first];
        for _ in 1..if is_each_own { settings.workers } else { 1 } {
            listening.push(open(address, settings.backlog, true)?);
        }
        Ok(Sockets { listening, address })
    }
}

fn open(address: SocketAddr, backlog: u32, shares_port: bool) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let kind = SocketType::STREAM;
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    // An accepted connection inherits this from its listener.
    sockopt::set_tcp_nodelay(&socket, true)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shares_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    bind(&socket, &address)?;
    listen(&socket, i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket)
}

/// Advice on an address that cannot be listened on.
pub(crate) fn advice(address: SocketAddr, error: &io::Error) -> Option<String> {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "stop what listens there (`ss -ltnp 'sport = :{}'` names it), or give another port; 0 takes a free one",
            address.port()
        ),
        io::ErrorKind::PermissionDenied => "ports under 1024 are root's: give another".to_owned(),
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: give another --host, such as 127.0.0.1 or 0.0.0.0"
                .to_owned()
        }
        _ => return None,
    };
    Some(advice)
}
