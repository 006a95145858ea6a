//! One worker as a process: started, talked to, watched, collected.

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::Handle;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::events::Events;
use super::pool::{Event, Exit, Id};
use crate::channel::{Channel, MESSAGE_BYTES_MAX, MessageKind, Received, Start, is_full};

/// Bytes of what a worker says, shown to a reader.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Pause before a full channel is tried again.
const PAUSE: Nanos = Nanos::from_millis(10);

/// A worker's process. Dropping it kills it.
pub(super) struct Process {
    id: Id,
    child: Child,
    /// Names the process also when its number has come again.
    watched: Rc<OwnedFd>,
    pub(super) channel: Rc<Channel>,
    /// The worker's own end of `channel`, held so that what it has not read outlives it.
    unread: Channel,
    /// Its line on the board.
    pub(super) line: u32,
}

impl Process {
    /// Starts one and tells it what it has to know; `sockets` are the board and what it
    /// listens on.
    pub(super) fn start(
        id: Id,
        command: &[OsString],
        start: &Start,
        sockets: &[BorrowedFd<'_>],
    ) -> io::Result<Process> {
        let (program, words) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let text = serde_json::to_vec(start)?;
        if text.len() >= MESSAGE_BYTES_MAX {
            let wrong = format!(
                "the settings have {} bytes, and may have {MESSAGE_BYTES_MAX}",
                text.len()
            );
            return Err(io::Error::other(wrong));
        }
        let (channel, theirs) = Channel::pair()?;
        channel.send(MessageKind::Start, &text, sockets)?;
        let unread = Channel::from_socket(theirs.try_clone()?);
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::from(theirs))
            .spawn()?;
        match watch(&child) {
            Ok(watched) => Ok(Process {
                id,
                watched: Rc::new(watched),
                child,
                channel: Rc::new(channel),
                unread,
                line: start.line,
            }),
            Err(error) => {
                // Nobody would see its end.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// The number of the process.
    pub(super) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Has what it says, and its end, put among the events.
    pub(super) fn listen(&self, handle: &Handle, events: &Rc<Events>) {
        let (id, channel, events) = (self.id, self.channel.clone(), events.clone());
        let (watched, ended, loop_handle) = (self.watched.clone(), events.clone(), handle.clone());
        handle
            .spawn(async move {
                let readable = loop_handle.readable(&*watched).await;
                // Where it cannot be waited for, collecting it waits.
                let _ = readable;
                ended.exited(id);
            })
            .detach();
        let loop_handle = handle.clone();
        handle
            .spawn(async move {
                while loop_handle.readable(&*channel).await.is_ok() {
                    if !hear(id, &channel, &events) {
                        break;
                    }
                }
            })
            .detach();
    }

    /// Says something to it, in its order.
    pub(super) fn say(&self, handle: &Handle, kind: MessageKind) {
        if !self.channel.send(kind, b"", &[]).is_err_and(is_full) {
            return;
        }
        // It has much to take in before. If it never does, its time is limited.
        let (channel, loop_handle) = (self.channel.clone(), handle.clone());
        handle
            .spawn(async move {
                while channel.send(kind, b"", &[]).is_err_and(is_full) {
                    loop_handle.sleep(PAUSE).await;
                }
            })
            .detach();
    }

    pub(super) fn kill(&self) {
        // One that is gone needs none.
        let _ = pidfd_send_signal(&*self.watched, Signal::KILL);
    }

    /// The connections that were passed to it and that it had not taken in; it has ended.
    pub(super) fn untaken(&self) -> Vec<OwnedFd> {
        connections_in(&self.unread)
    }

    /// Takes in its last messages, and collects it; it has ended.
    pub(super) fn collect(mut self, events: &Events) -> Exit {
        hear(self.id, &self.channel, events);
        match self.child.wait() {
            Ok(status) => Exit {
                is_clean: status.success(),
                text: describe(status),
            },
            Err(error) => Exit {
                is_clean: false,
                text: format!("was lost: {error}"),
            },
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails where it has been collected.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn watch(child: &Child) -> io::Result<OwnedFd> {
    let pid = Pid::from_child(child);
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// The connections that wait in a channel.
fn connections_in(channel: &Channel) -> Vec<OwnedFd> {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    let mut connections = Vec::new();
    loop {
        match channel.receive(&mut buffer) {
            Received::Message(message) if message.kind == MessageKind::Connections => {
                connections.extend(message.descriptors);
            }
            Received::Message(_) | Received::Unknown => {}
            Received::Nothing | Received::End => return connections,
        }
    }
}

/// Puts the messages of a worker among the events; false when there are no more.
fn hear(id: Id, channel: &Channel, events: &Events) -> bool {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    loop {
        let message = match channel.receive(&mut buffer) {
            Received::Message(message) => message,
            Received::Unknown => continue,
            Received::Nothing => return true,
            Received::End => return false,
        };
        let text = &message.text[..message.text.len().min(TEXT_BYTES_MAX)];
        match message.kind {
            MessageKind::Ready => events.put(Event::Ready(id)),
            MessageKind::Spent => events.put(Event::Spent(id)),
            MessageKind::Failed => {
                let text = String::from_utf8_lossy(text).into_owned();
                events.put(Event::Failed(id, text));
            }
            // Not a worker's to say.
            MessageKind::Start
            | MessageKind::Connections
            | MessageKind::Retire
            | MessageKind::Drain => {}
        }
    }
}

/// `ended with status 3`, `was ended by SIGSEGV`
fn describe(status: ExitStatus) -> String {
    let signal = status.signal();
    match (signal, status.code()) {
        (Some(signal), _) => {
            let name = signal_hook::low_level::signal_name(signal)
                .map_or_else(|| format!("signal {signal}"), str::to_owned);
            let core = if status.core_dumped() {
                " (core dumped)"
            } else {
                ""
            };
            format!("was ended by {name}{core}")
        }
        (None, Some(code)) => format!("ended with status {code}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn connections_that_a_dead_worker_had_not_taken_in_were_closed_with_it() {
        let (channel, theirs) = Channel::pair().unwrap();
        let unread = Channel::from_socket(theirs.try_clone().unwrap());
        let (read, write) = rustix::pipe::pipe().unwrap();
        channel
            .send(MessageKind::Connections, &[1], &[write.as_fd()])
            .unwrap();
        channel.send(MessageKind::Retire, b"", &[]).unwrap();
        channel
            .send(MessageKind::Connections, &[1], &[read.as_fd()])
            .unwrap();
        drop((theirs, read, write));
        let mut kept = connections_in(&unread).into_iter();
        let (write, read) = (kept.next().unwrap(), kept.next().unwrap());
        assert!(kept.next().is_none());
        rustix::io::write(&write, b"still open").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(rustix::io::read(&read, &mut buffer).unwrap(), 10);
        // Its end is known as soon as nobody holds the worker's end any more.
        drop(unread);
        assert!(matches!(channel.receive(&mut buffer), Received::End));
    }
}
