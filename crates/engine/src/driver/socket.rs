//! Sockets of the real drivers: opening them and asking them for addresses.
//! Also the two calls for bulk that io_uring has no operation for, or not everywhere.
//! Not for: sending and receiving, which each driver does in its own way.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketType, accept_with, bind, getpeername, getsockname, ipproto,
    listen, socket_with,
};

use super::{
    Blocking, Closing, DISCARD_BYTES_MAX, FILE_BYTES_MAX, FilePart, Socket, kernel_stamps,
};
use crate::config::{ConnectOptions, ListenOptions};

impl Socket {
    /// Takes over a descriptor.
    pub fn own(fd: OwnedFd) -> Socket {
        // SAFETY: open, and the loop's from here on.
        unsafe { Socket::from_raw(fd.into_raw_fd()) }
    }

    /// The descriptor, for one call.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open until the loop closes it, by the INVARIANT of Socket, and
        // the borrow ends with the call that it is made for.
        unsafe { BorrowedFd::borrow_raw(self.raw()) }
    }

    /// Gives the descriptor up, so that dropping it closes it.
    ///
    /// # Safety
    /// The loop owns it, and neither this socket nor a copy of it is used after this.
    pub unsafe fn into_fd(self) -> OwnedFd {
        // SAFETY: open by the INVARIANT of Socket, and the caller's alone.
        unsafe { OwnedFd::from_raw_fd(self.raw()) }
    }
}

fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

fn open_stream(address: SocketAddr, blocking: Blocking) -> io::Result<OwnedFd> {
    let fd = socket_with(
        family(address),
        SocketType::STREAM,
        blocking.flags(),
        Some(ipproto::TCP),
    )?;
    // An accepted socket inherits this from its listener.
    sockopt::set_tcp_nodelay(&fd, true)?;
    Ok(fd)
}

/// A listening socket, and the address that it got.
pub(crate) fn open_listener(
    address: SocketAddr,
    options: &ListenOptions,
    blocking: Blocking,
) -> io::Result<(Socket, SocketAddr)> {
    let fd = open_stream(address, blocking)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if options.reuse_port {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    bind(&fd, &address)?;
    listen(&fd, i32::try_from(options.backlog).unwrap_or(i32::MAX))?;
    let local = inet(getsockname(&fd)?)?;
    Ok((Socket::own(fd), local))
}

/// The longest wait of [`accept_waiting`] where another process takes what it saw.
const ACCEPT_WAIT: Duration = Duration::from_millis(1);

/// A connection that waits already, if there is one.
pub(crate) fn accept_waiting(listener: Socket, blocking: Blocking) -> Option<Socket> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let fd = listener.fd();
    // The socket may be a blocking one, and its flags are shared with other processes:
    // looking first makes waiting unlikely, and the time-out makes it short. It stays, as
    // taking it back would take it from another process that is about to accept, too.
    // Connections inherit it, which does no harm: a loop's receives never block.
    if poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)) != Ok(1) {
        return None;
    }
    sockopt::set_socket_timeout(fd, sockopt::Timeout::Recv, Some(ACCEPT_WAIT)).ok()?;
    let accepted = accept_with(fd, blocking.flags());
    accepted.ok().map(Socket::own)
}

/// A socket that can connect to `address`.
pub(crate) fn open_client(
    address: SocketAddr,
    options: &ConnectOptions,
    blocking: Blocking,
) -> io::Result<Socket> {
    let fd = open_stream(address, blocking)?;
    if let Some(bytes) = options.kernel_recv_bytes {
        sockopt::set_socket_recv_buffer_size(&fd, bytes as usize)?;
    }
    if options.timestamps {
        // Where the kernel refuses, what arrives has no stamp, which its receiver sees.
        let _ = kernel_stamps::ask(fd.as_fd());
    }
    if let Some(local) = options.local {
        bind(&fd, &local)?;
    }
    Ok(Socket::own(fd))
}

/// Throws away up to `count` bytes that wait in a socket, without waiting for more;
/// yields how many, and zero at the end of the stream.
pub(crate) fn discard(socket: Socket, count: u64) -> Result<u64, Errno> {
    let len = count.min(DISCARD_BYTES_MAX) as usize;
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: with this flag TCP writes nothing; should it do so, no memory is there, and
    // the call fails.
    let result = unsafe { libc::recv(socket.raw(), std::ptr::null_mut(), len, flags) };
    u64::try_from(result).map_err(|_| {
        let error = io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}

/// Hands a part of a file to a socket that does not block; yields how many bytes it
/// took, and zero where the file has ended.
pub(crate) fn send_file(socket: Socket, part: FilePart) -> Result<u64, Errno> {
    let count = part.len().min(FILE_BYTES_MAX) as usize;
    let mut offset = part.offset();
    let sent = sendfile(socket.fd(), part.file(), Some(&mut offset), count)?;
    Ok(sent as u64)
}

/// This side's address.
pub(crate) fn local_addr(socket: Socket) -> io::Result<SocketAddr> {
    inet(getsockname(socket.fd())?)
}

/// The peer's address.
pub(crate) fn peer_addr(socket: Socket) -> io::Result<SocketAddr> {
    inet(getpeername(socket.fd())?.ok_or(rustix::io::Errno::NOTCONN)?)
}

/// Prepares a socket for the way in which it will be closed.
pub(crate) fn before_close(socket: Socket, closing: Closing) {
    if closing == Closing::Reset {
        // On failure the close is an orderly one, which is no worse.
        let _ = sockopt::set_socket_linger(socket.fd(), Some(Duration::ZERO));
    }
}

fn inet(address: SocketAddrAny) -> io::Result<SocketAddr> {
    SocketAddr::try_from(address).map_err(io::Error::from)
}
