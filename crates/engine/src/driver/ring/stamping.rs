//! Receives with the kernel's stamps: the header that the kernel is given once, and how a buffer that it
//! has filled is laid out.

use io_uring::types::RecvMsgOut;

use crate::buffers::Received;
use crate::driver::kernel_stamps::{CONTROL_BYTES, WallClock, stamp_in};
use crate::stamps::Arrival;

/// Bytes before the control data: four numbers of the kernel.
const OUT_BYTES: usize = 16;
/// Bytes before what was received.
const HEAD_BYTES: u32 = (OUT_BYTES + CONTROL_BYTES) as u32;
/// Receive buffers below this have no room for stamps beside what is received.
pub(super) const BUFFER_BYTES_MIN: u32 = 256;

/// Receives with stamps.
///
/// INVARIANT: `header` stays where it is, unchanged, while operations name it.
pub(super) struct Stamping {
    /// Of every one of them: how much room there is for control data.
    header: Box<libc::msghdr>,
    wall: WallClock,
    /// The wall clock has not been looked at since the kernel was asked last.
    is_to_look: bool,
}

impl Stamping {
    pub fn new() -> Stamping {
        // SAFETY: an all-zero header is a valid one, of no name, no parts and no control data.
        let mut header: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        header.msg_controllen = CONTROL_BYTES as _;
        Stamping {
            header,
            wall: WallClock::new(),
            is_to_look: true,
        }
    }

    /// The header that the operations name.
    pub fn header(&self) -> *const libc::msghdr {
        &raw const *self.header
    }

    /// The kernel was asked.
    pub fn asked(&mut self) {
        self.is_to_look = true;
    }

    /// The bytes in a buffer that the kernel has filled, with their arrival.
    pub fn unpack(&mut self, mut filled: Received, mut arrival: Arrival) -> Received {
        let Ok(message) = RecvMsgOut::parse(&filled, &self.header) else {
            // Not so much as its own head: nothing was received.
            filled.skip(u64::from(u32::MAX));
            return filled.at(arrival);
        };
        if let Some(stamp) = stamp_in(message.control_data()) {
            if std::mem::take(&mut self.is_to_look) {
                self.wall.look();
            }
            arrival.kernel = self.wall.monotonic(stamp, &arrival);
        }
        filled.skip(u64::from(HEAD_BYTES));
        filled.at(arrival)
    }
}
