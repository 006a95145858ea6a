//! Receives of the ring: how each is asked for, and who comes first where buffers lack.

use std::collections::HashMap;
use std::ptr;

use io_uring::types::Fd;
use io_uring::{opcode, squeue};

use super::Ring;
use super::buffer_ring::GROUP;
use super::stamping::{self, Stamping};
use crate::buffers::Empty;
use crate::config::Receive;
use crate::driver::{Completions, Role, Socket, Token};

impl Ring {
    /// Begins a receive, now or in its turn.
    pub(super) fn queue_receive(
        &mut self,
        receive: Receive,
        socket: Socket,
        token: Token,
        done: &mut Completions,
    ) {
        let receive = match self.receive {
            Receive::OneShot => Receive::OneShot,
            Receive::Multishot => receive,
        };
        if self.unbuffered.is_empty() {
            self.receive(receive, socket, token, done);
        } else {
            self.queued_receives.push((socket, token));
        }
    }

    /// Begins the receives that queue for buffers.
    pub(super) fn serve_queue(&mut self, done: &mut Completions) {
        if self.unbuffered.is_empty() {
            return;
        }
        let mut queued_receives = std::mem::take(&mut self.queued_receives);
        let place =
            |(_, token): &(Socket, Token)| *self.unbuffered.get(token).unwrap_or(&usize::MAX);
        queued_receives.sort_by_key(place);
        self.unbuffered.clear();
        for (socket, token) in queued_receives {
            self.receive(self.receive, socket, token, done);
        }
    }

    fn receive(&mut self, receive: Receive, socket: Socket, token: Token, done: &mut Completions) {
        let fd = Fd(socket.raw());
        // Buffers that came back meanwhile are the kernel's before it sees this.
        self.starved &= !self.pool.has_free();
        if !self.starved {
            let entry = match receive {
                _ if token.role == Role::ReceiveStamped && self.has_room_for_stamps() => {
                    let stamping = self.stamping.get_or_insert_with(Stamping::new);
                    opcode::RecvMsgMulti::new(fd, stamping.header(), GROUP).build()
                }
                Receive::Multishot => opcode::RecvMulti::new(fd, GROUP).build(),
                Receive::OneShot => opcode::Recv::new(fd, ptr::null_mut(), 0)
                    .buf_group(GROUP)
                    .build()
                    .flags(squeue::Flags::BUFFER_SELECT),
            };
            // SAFETY: the buffers are those of `buffers`, and the header is that of
            // `stamping`: both live as long as the ring.
            return unsafe { self.begin(entry, token, done) };
        }
        // The task that holds all the buffers may be waiting for these very bytes.
        let mut own = Empty::own(&self.pool);
        let entry = opcode::Recv::new(fd, own.as_mut_ptr(), own.capacity() as u32).build();
        self.own.insert(token, own);
        // SAFETY: the buffer stays in `own` until the completion.
        unsafe { self.begin(entry, token, done) };
    }

    fn has_room_for_stamps(&self) -> bool {
        self.pool.buffer_bytes >= stamping::BUFFER_BYTES_MIN
    }
}

/// Notes a receive that found no buffer. One that has just had some waits behind those
/// that had none.
pub(super) fn note_unbuffered(
    unbuffered: &mut HashMap<Token, usize>,
    token: Token,
    had_some: bool,
) {
    let place = match had_some {
        true => usize::MAX,
        false => unbuffered.len(),
    };
    unbuffered.insert(token, place);
}
