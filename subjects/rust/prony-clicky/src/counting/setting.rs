//! How counting is set. Not for: reading it from the environment (`settings`).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use prony_base::Nanos;

/// The highest total that a counter reaches: the stores' numbers have 63 bits, and one bit
/// less leaves room for what is added by many at once.
pub const TOTAL_MAX: u64 = 1 << 62;

/// When a click is answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ack {
    /// When it is counted in memory; a crash may lose one interval's clicks.
    #[default]
    Memory,
    /// When it is durable: an acknowledged click is never lost.
    Synced,
}

/// Where totals are kept.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Backend {
    /// Nowhere: a fresh start begins at zero.
    #[default]
    None,
    /// In a log of checked records.
    File {
        /// Its path. While it is written anew, `PATH.new` stands beside it.
        path: PathBuf,
        /// Bytes of the log at which it is written anew, with one record for each counter.
        log_bytes_max: u64,
    },
    /// In Redis or Valkey, where several instances share the counters.
    Redis {
        /// `redis://[user:password@]host:port[/database]`.
        url: String,
        /// Key of the root counter; the others are named after it.
        key: String,
        /// How long connecting, and waiting for an answer, may take.
        answer_max: Nanos,
    },
    /// In an SQLite database.
    Sqlite {
        /// Its path.
        path: PathBuf,
    },
}

impl Backend {
    /// A log at `path`, written anew at 4 MiB.
    pub fn file(path: impl Into<PathBuf>) -> Backend {
        Backend::File {
            path: path.into(),
            log_bytes_max: 4 << 20,
        }
    }

    /// Redis at `url`, under the original service's key, with a second's patience.
    pub fn redis(url: impl Into<String>) -> Backend {
        Backend::Redis {
            url: url.into(),
            key: "CLICKY_COUNTER".to_owned(),
            answer_max: Nanos::from_secs(1),
        }
    }
}

/// Takes a line for the log: what was taken over or cut off at the start, the first
/// failure of a store, and its end. It is called on the keeper's thread.
#[derive(Clone)]
pub struct Tell(Arc<dyn Fn(&str) + Send + Sync>);

impl Tell {
    /// Gives each line to `take`.
    pub fn new(take: impl Fn(&str) + Send + Sync + 'static) -> Tell {
        Tell(Arc::new(take))
    }

    /// Says a line.
    pub fn say(&self, line: &str) {
        (self.0)(line);
    }
}

impl Default for Tell {
    /// To standard error.
    fn default() -> Tell {
        Tell::new(|line| eprintln!("prony-clicky: {line}"))
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell(..)")
    }
}

/// How clicks are counted and kept.
#[derive(Clone, Debug)]
pub struct CountingSetting {
    /// Where totals are kept.
    pub backend: Backend,
    /// When a click is answered.
    pub ack: Ack,
    /// How long a click that was answered from memory may wait to be kept; also how old
    /// what other instances counted may be. At least a millisecond.
    pub sync: Nanos,
    /// Clicks that may be in memory alone, then clicks are refused. Half of them are
    /// reason enough to keep them before the interval is over.
    pub pending_max: u64,
    /// Counters that there may be.
    pub counters_max: usize,
    /// How long the end may wait for a store that does not take what is left.
    pub close_max: Nanos,
    /// Where lines for the log go.
    pub tell: Tell,
}

impl Default for CountingSetting {
    /// Nothing is kept; otherwise as the original: answered from memory, a second's interval.
    fn default() -> CountingSetting {
        CountingSetting {
            backend: Backend::None,
            ack: Ack::Memory,
            sync: Nanos::from_secs(1),
            pending_max: 1_000_000_000,
            counters_max: 10_000,
            close_max: Nanos::from_secs(5),
            tell: Tell::default(),
        }
    }
}
