//! The kernel's own stamps of what arrives (`SO_TIMESTAMPING`): asking for them, finding
//! them in a message's control data, and moving them from its wall clock to
//! `CLOCK_MONOTONIC`.
//! Not for: stamps by hardware, or of what is sent.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use prony_base::{Instant, Nanos, clock};
use rustix::io::Errno;

use crate::stamps::Arrival;

/// Bytes of control data that a stamp takes: a head of 16 bytes and three `timespec`s, of
/// which the first is the kernel's own.
pub(crate) const CONTROL_BYTES: usize = 64;
const HEAD_BYTES: usize = 16;

/// The smallest difference that is no error of the readings: then the wall clock was stepped.
const STEP_MIN: i64 = 1_000;
/// So long after a step no stamp is believed: it may be of before.
const DOUBT: Nanos = Nanos::from_secs(1);
/// Pairs of readings of which the closest is taken.
const READINGS: usize = 5;

/// Makes the kernel stamp what arrives on a socket.
pub(crate) fn ask(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the call reads the one integer that it is given the size of.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            size_of_val(&flags) as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives what waits in a socket, without waiting for more; yields the number of bytes and
/// the stamp of the last of them, in nanoseconds of `CLOCK_REALTIME`.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
) -> Result<(usize, Option<u64>), Errno> {
    let mut control = [0_u64; CONTROL_BYTES / 8];
    let mut part = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    // SAFETY: an all-zero header is a valid one, of no name, no parts and no control data.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the header names one part and control data, which live across the call, with
    // their lengths.
    let result = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
    let Ok(count) = usize::try_from(result) else {
        let error = io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    };
    let mut bytes = [0; CONTROL_BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(control) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    let filled = (header.msg_controllen as usize).min(CONTROL_BYTES);
    Ok((count, stamp_in(&bytes[..filled])))
}

/// The stamp in control data, in nanoseconds of `CLOCK_REALTIME`.
pub(crate) fn stamp_in(mut control: &[u8]) -> Option<u64> {
    let word = |bytes: &[u8], at: usize| -> Option<u64> {
        let word = bytes.get(at..at + 8)?;
        Some(u64::from_ne_bytes(word.try_into().ok()?))
    };
    let half = |bytes: &[u8], at: usize| -> Option<i32> {
        let half = bytes.get(at..at + 4)?;
        Some(i32::from_ne_bytes(half.try_into().ok()?))
    };
    loop {
        let len = usize::try_from(word(control, 0)?).ok()?;
        let (level, kind) = (half(control, 8)?, half(control, 12)?);
        if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPING {
            let secs = word(control, HEAD_BYTES)?;
            let nanos = word(control, HEAD_BYTES + 8)?;
            let stamp = secs.checked_mul(1_000_000_000)?.checked_add(nanos)?;
            return (stamp > 0).then_some(stamp);
        }
        control = control.get(len.max(HEAD_BYTES).next_multiple_of(8)..)?;
    }
}

/// One reading of the wall clock between two of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
struct Reading {
    before: Instant,
    real: u64,
    after: Instant,
}

impl Reading {
    fn take() -> Reading {
        Reading {
            before: clock::monotonic(),
            real: clock::unix_nanos(),
            after: clock::monotonic(),
        }
    }

    /// Nanoseconds by which the wall clock is ahead, with an error of half the width.
    fn ahead(&self) -> i64 {
        let middle = self.before.0 + self.width() / 2;
        self.real.wrapping_sub(middle) as i64
    }

    fn width(&self) -> u64 {
        self.after.since(self.before).0
    }
}

/// Moves stamps from the wall clock to `CLOCK_MONOTONIC`.
///
/// Both clocks are slewed alike: what they differ by changes in steps only. It is looked at
/// each time that stamps come, and stamps about a step are not believed.
pub(crate) struct WallClock {
    ahead: i64,
    doubted_until: Instant,
}

impl WallClock {
    pub fn new() -> WallClock {
        WallClock {
            ahead: closest().ahead(),
            doubted_until: Instant::ZERO,
        }
    }

    /// Looks whether the wall clock was stepped. To be called once stamps have come and
    /// before they are believed.
    pub fn look(&mut self) {
        let reading = Reading::take();
        if self.differs_from(&reading) {
            self.noted(&closest());
        }
    }

    /// Whether the wall clock may have been stepped, as far as this reading shows.
    fn differs_from(&self, reading: &Reading) -> bool {
        let error = reading.width() as i64 / 2;
        (reading.ahead() - self.ahead).abs() > error + STEP_MIN
    }

    /// Takes over what a reading says.
    fn noted(&mut self, reading: &Reading) {
        if self.differs_from(reading) {
            self.ahead = reading.ahead();
            self.doubted_until = reading.after + DOUBT;
        }
    }

    /// A stamp of what came with this arrival, on `CLOCK_MONOTONIC`; None where it cannot be
    /// believed.
    pub fn monotonic(&self, stamp: u64, arrival: &Arrival) -> Option<Instant> {
        let moved = Instant(u64::try_from(stamp as i64 - self.ahead).ok()?);
        let latest = arrival.reaped + Nanos(STEP_MIN as u64);
        let is_believed = arrival.reaped >= self.doubted_until && moved <= latest;
        // The difference between the clocks is known to some ten nanoseconds.
        is_believed.then_some(moved.min(arrival.reaped))
    }
}

/// The closest of some readings: one that nothing interrupted.
fn closest() -> Reading {
    let mut closest = Reading::take();
    for _ in 1..READINGS {
        let reading = Reading::take();
        if reading.width() < closest.width() {
            closest = reading;
        }
    }
    closest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(monotonic: u64, real: u64) -> Reading {
        Reading {
            before: Instant(monotonic - 20),
            real,
            after: Instant(monotonic + 20),
        }
    }

    fn reaped(at: u64) -> Arrival {
        Arrival {
            reaped: Instant(at),
            ..Arrival::default()
        }
    }

    fn message(kind: i32, secs: u64, nanos: u64) -> Vec<u8> {
        let mut bytes = (CONTROL_BYTES as u64).to_ne_bytes().to_vec();
        bytes.extend(libc::SOL_SOCKET.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        for word in [secs, nanos, 0, 0, 0, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn without_stamps_bytes_are_received_all_the_same() {
        use std::io::Write;
        use std::os::fd::AsFd;
        let no_socket = std::fs::File::open("/dev/null").unwrap();
        assert!(ask(no_socket.as_fd()).is_err());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"unstamped").unwrap();
        rustix::event::poll(
            &mut [rustix::event::PollFd::new(
                &client,
                rustix::event::PollFlags::IN,
            )],
            None,
        )
        .unwrap();
        let mut into = [0; 64];
        let received = receive(client.as_fd(), &mut into);
        assert_eq!(received, Ok((9, None)));
        assert_eq!(&into[..9], b"unstamped");
        let nothing = receive(client.as_fd(), &mut into);
        assert_eq!(nothing, Err(Errno::AGAIN));
    }

    #[test]
    fn a_stamp_is_found_behind_other_control_data() {
        let stamp = message(libc::SCM_TIMESTAMPING, 7, 5);
        assert_eq!(stamp_in(&stamp), Some(7_000_000_005));
        let mut both = message(libc::SCM_RIGHTS, 1, 1);
        both.extend(&stamp);
        assert_eq!(stamp_in(&both), Some(7_000_000_005));
        assert_eq!(stamp_in(&message(libc::SCM_TIMESTAMPING, 0, 0)), None);
        assert_eq!(stamp_in(&[]), None);
        for len in 0..stamp.len() - 32 {
            assert_eq!(stamp_in(&stamp[..len]), None, "of {len} bytes");
        }
        // A header of length 0 is skipped.
        assert_eq!(stamp_in(&[0; CONTROL_BYTES]), None);
    }

    #[test]
    fn a_stamp_moves_by_what_the_clocks_differ() {
        let clock = WallClock {
            ahead: reading(1_000, 1_000_000).ahead(),
            doubted_until: Instant::ZERO,
        };
        let moved = clock.monotonic(1_004_000, &reaped(9_000));
        assert_eq!(moved, Some(Instant(5_000)));
        // By the error of a reading later than it was taken.
        let moved = clock.monotonic(1_004_010, &reaped(5_000));
        assert_eq!(moved, Some(Instant(5_000)));
        // Of another time altogether.
        assert_eq!(clock.monotonic(1_009_000, &reaped(5_000)), None);
        assert_eq!(clock.monotonic(1, &reaped(5_000)), None);
    }

    #[test]
    fn stamps_about_a_step_of_the_wall_clock_are_not_believed() {
        for step in [-3_600_000_000_000_i64, -5_000, 5_000, 3_600_000_000_000] {
            let real = |at: u64| 5_000_000_000_000 + at;
            let stepped = |at: u64| real(at).wrapping_add_signed(step);
            let mut clock = WallClock {
                ahead: reading(1_000, real(1_000)).ahead(),
                doubted_until: Instant::ZERO,
            };
            clock.noted(&reading(50_000, real(50_000)));
            assert!(clock.monotonic(real(49_000), &reaped(50_000)).is_some());
            clock.noted(&reading(90_000, stepped(90_000)));
            assert_eq!(clock.monotonic(real(89_000), &reaped(90_000)), None);
            assert_eq!(clock.monotonic(stepped(89_000), &reaped(90_000)), None);
            let later = 90_000 + 2 * DOUBT.0;
            let moved = clock.monotonic(stepped(later), &reaped(later));
            assert_eq!(moved, Some(Instant(later)));
        }
    }

    #[test]
    fn a_reading_that_was_interrupted_is_no_step() {
        let clock = WallClock {
            ahead: 1_000_000,
            doubted_until: Instant::ZERO,
        };
        let interrupted = Reading {
            before: Instant(1_000),
            real: 1_001_100,
            after: Instant(500_000),
        };
        assert!(!clock.differs_from(&interrupted));
    }
}
