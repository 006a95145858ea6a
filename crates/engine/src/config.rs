//! The settings of a loop, and the counters that it reports.
//! Not for: anything that changes while the loop runs.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;

use prony_base::Nanos;

/// The largest number of pooled receive buffers: the kernel's buffer ring has
/// no more entries than this.
pub const RECV_BUFFERS_LIMIT: u32 = 32_768;

/// Settings of one loop. Every field is a limit or a size; `Config::default()`
/// suits a server or a client of up to some ten thousand connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which driver to use.
    pub driver: DriverChoice,
    /// Size of one pooled receive buffer in bytes: what one
    /// [`recv`](crate::Stream::recv) yields at most. At least 64, at most 1 MiB.
    pub recv_buffer_bytes: u32,
    /// Most pooled receive buffers (at most [`RECV_BUFFERS_LIMIT`]). The pool
    /// starts small and grows to this. When all of them are held, a stream that
    /// a task waits on gets one of its own, so that nothing stalls for ever.
    pub recv_buffers: u32,
    /// The way in which io_uring is asked for received bytes; the other drivers have one way.
    pub receive: Receive,
    /// Buffers that a stream may hold unread before the loop stops receiving on
    /// it (a burst that the kernel already delivered can pass it).
    pub recv_queue_max: u32,
    /// Entries of the submission queue: more operations than this in one turn
    /// cost one more system call, nothing else. At most 32768.
    pub submissions_max: u32,
    /// How many connections are expected: sizes the completion queue. More than
    /// this work too, at a small cost.
    pub connections_hint: u32,
    /// Most bytes that may be posted and unsent on one stream. A single post to
    /// a stream with nothing queued is taken whatever its size.
    pub post_bytes_max: usize,
    /// Send buffers kept for [`take_buffer`](crate::Handle::take_buffer).
    pub send_buffers_max: usize,
    /// A send buffer that grew past this many bytes is freed, not kept.
    pub send_buffer_bytes_max: usize,
    /// How long a dropped stream may take to get its posted bytes out before it
    /// is reset; also the longest that the end of the loop waits for them.
    pub linger: Nanos,
    /// Poll without sleeping: lower latency at few connections, one core busy. What
    /// other threads want is then seen in memory, and costs them no system call; the
    /// kernel is asked every few microseconds, or when it says in memory that it has
    /// something (io_uring).
    pub spin: bool,
    /// Look for news for up to so long before sleeping, as long as that pays: where sleeps turn out to be short, where news
    /// come while it looks, and where no other thread waits for the core. Zero: never. Of no effect with `spin`, or where
    /// the kernel does not say who waits.
    pub look_before_sleep: Nanos,
    /// The core is this thread's alone: who else waits for it is not asked before looking.
    pub core_is_own: bool,
    /// Have the kernel end waits for timers on time. By default it may end them some 50 µs
    /// late, to serve several wake-ups at once, and on epoll up to a millisecond. Holds for
    /// the loop's thread, while it runs. To be woken takes a thread tens of microseconds, too:
    /// where the wait is long enough for that, it is woken as much earlier, and stays awake.
    pub precise_timers: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            driver: DriverChoice::Auto,
            recv_buffer_bytes: 4096,
            recv_buffers: 16_384,
            receive: Receive::default(),
            recv_queue_max: 64,
            submissions_max: 4096,
            connections_hint: 1024,
            post_bytes_max: 4 << 20,
            send_buffers_max: 1024,
            send_buffer_bytes_max: 64 << 10,
            linger: Nanos::from_secs(1),
            spin: false,
            look_before_sleep: Nanos::ZERO,
            core_is_own: false,
            precise_timers: false,
        }
    }
}

impl Config {
    /// Checks every field against its limit.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Config(what.to_owned()));
        if !(64..=1 << 20).contains(&self.recv_buffer_bytes) {
            return wrong("recv_buffer_bytes must be from 64 to 1048576");
        }
        if !(1..=RECV_BUFFERS_LIMIT).contains(&self.recv_buffers) {
            return wrong("recv_buffers must be from 1 to 32768");
        }
        if self.recv_queue_max == 0 {
            return wrong("recv_queue_max must be at least 1");
        }
        if !(1..=32_768).contains(&self.submissions_max) {
            return wrong("submissions_max must be from 1 to 32768");
        }
        Ok(())
    }
}

/// The way in which io_uring is asked for the bytes that a stream receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receive {
    /// Once for all: each arrival fills a buffer of the pool that the kernel picks.
    #[default]
    Multishot,
    /// Once for each buffer, still one of the pool that the kernel picks.
    OneShot,
}

/// Which driver a loop should use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverChoice {
    /// io_uring where it is allowed, else epoll.
    #[default]
    Auto,
    /// io_uring, or an error that says why not.
    Ring,
    /// epoll.
    Epoll,
}

impl fmt::Display for DriverChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriverChoice::Auto => "auto",
            DriverChoice::Ring => "ring",
            DriverChoice::Epoll => "epoll",
        })
    }
}

impl FromStr for DriverChoice {
    type Err = String;

    /// Reads `auto`, `ring` or `epoll`.
    fn from_str(word: &str) -> Result<DriverChoice, String> {
        match word {
            "auto" | "" => Ok(DriverChoice::Auto),
            "ring" => Ok(DriverChoice::Ring),
            "epoll" => Ok(DriverChoice::Epoll),
            _ => Err(format!("\"{word}\" is no driver: use auto, ring or epoll")),
        }
    }
}

/// The driver that a loop runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverKind {
    /// io_uring.
    Ring,
    /// epoll.
    Epoll,
    /// The simulated network of [`sim`](crate::sim).
    Sim,
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriverKind::Ring => "ring",
            DriverKind::Epoll => "epoll",
            DriverKind::Sim => "sim",
        })
    }
}

/// Options of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections that the kernel may hold before they are accepted. The
    /// kernel lowers it to `net.core.somaxconn`.
    pub backlog: u32,
    /// Several listeners, one per thread, share the address and the kernel
    /// spreads connections over them.
    pub reuse_port: bool,
    /// Connections accepted by the loop and not yet taken by
    /// [`accept`](crate::Listener::accept) before the loop stops accepting.
    pub accept_queue_max: u32,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            backlog: 4096,
            reuse_port: false,
            accept_queue_max: 1024,
        }
    }
}

/// Options of a connect. `ConnectOptions::default()` leaves everything to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// This side's address; port 0 takes a free one. None: as the route says.
    pub local: Option<SocketAddr>,
    /// Bytes that the kernel may hold unread (`SO_RCVBUF`), set before connecting, so
    /// that the window can grow to it. The kernel lowers it to `net.core.rmem_max`, and
    /// adjusts it no more. None: it adjusts it to what is needed. Of no effect in sim.
    pub kernel_recv_bytes: Option<u32>,
    /// Ask the kernel to stamp what arrives.
    /// [`Received::arrival`](crate::Received::arrival)'s `kernel` is None where it refuses,
    /// in sim, and with receive buffers of less than 256 bytes.
    pub timestamps: bool,
}

/// Counters of one loop since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopStats {
    /// Turns of the loop.
    pub turns: u64,
    /// Operations given to the driver.
    pub submissions: u64,
    /// Completions that came back.
    pub completions: u64,
    /// Waiting system calls: `io_uring_enter` or `epoll_wait`.
    pub enters: u64,
    /// Times a task was polled.
    pub polls: u64,
    /// Times that the receive pool was empty when a buffer was wanted.
    pub pool_exhausted: u64,
    /// Receive buffers that exist; there are never fewer again.
    pub pool_buffers: u64,
    /// The longest wait for more completions that is in force now; zero where
    /// none was [asked for](crate::Handle::set_coalescing) or the driver has none.
    pub coalescing: Nanos,
    /// The time that was spent [looking for news](Config::look_before_sleep) instead of sleeping.
    pub spun: Nanos,
}

/// The reason why a loop could not start or go on.
#[derive(Debug)]
pub enum Error {
    /// A setting is outside its limit.
    Config(String),
    /// io_uring was asked for and is not to be had.
    RingUnavailable {
        /// The error of the kernel.
        cause: io::Error,
        /// Advice to the user.
        advice: &'static str,
    },
    /// A system call that the loop cannot go on without failed.
    System {
        /// The call.
        call: &'static str,
        /// The error of the kernel.
        cause: io::Error,
    },
    /// Every task waits for something that no operation or timer will bring.
    Deadlock,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(what) => write!(f, "engine settings: {what}"),
            Error::RingUnavailable { cause, advice } => {
                write!(f, "io_uring is not available: {cause}; {advice}")
            }
            Error::System { call, cause } => write!(f, "{call}: {cause}"),
            Error::Deadlock => {
                f.write_str("deadlock: every task waits, and no operation or timer is outstanding")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::RingUnavailable { cause, .. } | Error::System { cause, .. } => Some(cause),
            Error::Config(_) | Error::Deadlock => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_named_by_one_of_three_words() {
        assert_eq!("ring".parse(), Ok(DriverChoice::Ring));
        assert_eq!("epoll".parse(), Ok(DriverChoice::Epoll));
        assert_eq!("auto".parse(), Ok(DriverChoice::Auto));
        assert_eq!(
            "kqueue".parse::<DriverChoice>().unwrap_err(),
            "\"kqueue\" is no driver: use auto, ring or epoll"
        );
    }

    #[test]
    fn settings_outside_their_limits_are_refused_by_name() {
        let config = Config {
            recv_buffers: 40_000,
            ..Config::default()
        };
        let message = config.check().unwrap_err().to_string();
        assert_eq!(
            message,
            "engine settings: recv_buffers must be from 1 to 32768"
        );
        assert!(Config::default().check().is_ok());
    }
}
