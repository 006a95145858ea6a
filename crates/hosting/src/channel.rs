//! The messages between supervisor and worker, over a Unix socket that keeps
//! their borders and their order (`SOCK_SEQPACKET`), with open descriptors where they
//! belong to them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::settings::Settings;

/// Bytes of a message. The settings have to fit in one; the kernel takes more.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Descriptors that go with one message (the kernel takes 253).
pub(crate) const DESCRIPTORS_MAX: usize = 64;

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum MessageKind {
    /// To a worker, its first: [`Start`], with the board and where it is to listen.
    Start = b'S',
    /// To a worker: connections that it is to serve; the text is how many, in one byte.
    Connections = b'C',
    /// To a worker: another takes its place.
    Retire = b'R',
    /// To a worker: the whole host ends.
    Drain = b'D',
    /// From a worker: it has loaded the application and serves it.
    Ready = b'r',
    /// From a worker: it has not, and ends; the text is why.
    Failed = b'f',
    /// From a worker: it is to be replaced.
    Spent = b's',
}

impl MessageKind {
    fn from_byte(byte: u8) -> Option<MessageKind> {
        use MessageKind::{Connections, Drain, Failed, Ready, Retire, Spent, Start};
        [Start, Connections, Retire, Drain, Ready, Failed, Spent]
            .into_iter()
            .find(|&kind| kind as u8 == byte)
    }
}

/// The first message to a worker: all that it has to know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    /// With the address that is listened on.
    pub settings: Settings,
    pub number: u32,
    /// The supervisor's process: who finds another parent has lost it.
    pub supervisor: i32,
    /// Its line on the board.
    pub line: u32,
    /// Requests after which it is spent.
    pub requests_max: Option<u64>,
}

/// A message, as it came.
#[derive(Debug)]
pub(crate) struct Message<'b> {
    pub kind: MessageKind,
    pub text: &'b [u8],
    pub descriptors: Vec<OwnedFd>,
}

/// The outcome of receiving a message.
#[derive(Debug)]
pub(crate) enum Received<'b> {
    /// One that is known.
    Message(Message<'b>),
    /// One that is not: passed over.
    Unknown,
    /// None is there now.
    Nothing,
    /// The other side is gone.
    End,
}

/// One side's end.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
}

impl Channel {
    /// A new one, and what the worker gets as its standard input.
    pub(crate) fn pair() -> io::Result<(Channel, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Channel { socket: ours }, theirs))
    }

    /// The end that this process was given.
    pub(crate) fn from_socket(socket: OwnedFd) -> Channel {
        Channel { socket }
    }

    /// Sends a message, whole or not at all, without waiting.
    ///
    /// # Errors
    /// [`is_full`] errors when it can be tried again; else the other side is gone.
    pub(crate) fn send(
        &self,
        kind: MessageKind,
        text: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        debug_assert!(descriptors.len() <= DESCRIPTORS_MAX && text.len() < MESSAGE_BYTES_MAX);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(Errno::INVAL);
        }
        let kind = [kind as u8];
        let parts = [IoSlice::new(&kind), IoSlice::new(text)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.socket, &parts, &mut control, flags).map(|_| ())
    }

    /// The next message, if one is there. `buffer` is of [`MESSAGE_BYTES_MAX`] bytes.
    pub(crate) fn receive<'b>(&self, buffer: &'b mut [u8]) -> Received<'b> {
        self.receive_with(buffer, RecvFlags::DONTWAIT)
    }

    /// The next message, waited for.
    pub(crate) fn wait<'b>(&self, buffer: &'b mut [u8]) -> Received<'b> {
        self.receive_with(buffer, RecvFlags::empty())
    }

    fn receive_with<'b>(&self, buffer: &'b mut [u8], flags: RecvFlags) -> Received<'b> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let length = loop {
            let mut parts = [IoSliceMut::new(buffer)];
            match recvmsg(&self.socket, &mut parts, &mut control, flags) {
                Ok(received) => break received.bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                Err(_) => return Received::End,
            }
        };
        let mut descriptors = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = part {
                descriptors.extend(received);
            }
        }
        match buffer[..length].split_first() {
            None => Received::End,
            Some((&kind, text)) => match MessageKind::from_byte(kind) {
                None => Received::Unknown,
                Some(kind) => Received::Message(Message {
                    kind,
                    text,
                    descriptors,
                }),
            },
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a message was not taken because the socket is full, and may be later.
pub(crate) fn is_full(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::TOOMANYREFS | Errno::INTR
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_borders_their_order_and_their_descriptors() {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel::from_socket(theirs);
        let (read, write) = rustix::pipe::pipe().unwrap();
        ours.send(
            MessageKind::Connections,
            &[2],
            &[read.as_fd(), write.as_fd()],
        )
        .unwrap();
        ours.send(MessageKind::Failed, b"why", &[]).unwrap();
        drop((read, ours));
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let Received::Message(message) = theirs.receive(&mut buffer) else {
            panic!("no message");
        };
        assert_eq!(
            (message.kind, message.text),
            (MessageKind::Connections, &[2][..])
        );
        assert_eq!(message.descriptors.len(), 2);
        rustix::io::write(&message.descriptors[1], b"through the copy").unwrap();
        let Received::Message(message) = theirs.receive(&mut buffer) else {
            panic!("no second message");
        };
        assert_eq!(
            (message.kind, message.text),
            (MessageKind::Failed, &b"why"[..])
        );
        assert!(message.descriptors.is_empty());
        assert!(matches!(theirs.receive(&mut buffer), Received::End));
    }

    #[test]
    fn a_channel_that_nobody_reads_says_that_it_is_full_and_blocks_nobody() {
        let (ours, _theirs) = Channel::pair().unwrap();
        let sent = (0..1_000_000).find_map(|_| ours.send(MessageKind::Retire, b"", &[]).err());
        assert!(is_full(sent.expect("an end")));
    }
}
