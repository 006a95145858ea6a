//! What the environment says, read once and checked: every problem in one sentence that
//! names its variable. Not for: using it.
//!
//! The names of the first five are the original service's, so that one can stand in for
//! the other.

use std::ffi::OsString;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use prony_base::Nanos;
use prony_engine::DriverChoice;

use crate::counting::{Ack, Backend, CountingSetting};
use crate::web::{Level, LogFormat, LogPlace, LogSetting};

/// Loops that there may be.
const THREADS_MAX: u32 = 1024;
/// The shortest and the longest interval between two syncs.
const SYNC_MIN: Nanos = Nanos::from_millis(1);
const SYNC_MAX: Nanos = Nanos::from_secs(3_600);
/// A tenth of the places that there are. It holds for loopback as well, as a proxy there may
/// bring anybody.
const LISTENERS_PER_ADDRESS: Option<u32> = Some(1_000);
/// The counter's file of the original, and the database beside it.
const COUNTER_FILE: &str = "clicky.txt";
const SQLITE_FILE: &str = "clicky.sqlite";
const REDIS_URL: &str = "redis://127.0.0.1:6379";

/// How the service is to behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens; port 0 takes a free one. `SERVER_ADDRESS`.
    pub address: SocketAddr,
    /// Loops, each on a thread of its own. `CLICKY_THREADS`.
    pub threads: u32,
    /// How the loops wait. `PRONY_DRIVER`.
    pub driver: DriverChoice,
    /// What is logged, and where. `RUST_LOG`, `CLICKY_NO_LOGGING`, `CLICKY_LOG_TO`,
    /// `CLICKY_LOG_FORMAT`.
    pub log: LogSetting,
    /// How clicks are counted and kept. `CLICKY_BACKEND`, `CLICKY_COUNTER_FILE`,
    /// `CLICKY_REDIS_URL`, `CLICKY_SQLITE_FILE`, `CLICKY_SYNC_FREQUENCY`, `CLICKY_ACK`,
    /// `CLICKY_PENDING_MAX`.
    pub counting: CountingSetting,
    /// Requests that an address may make in a second; None: any number.
    /// `CLICKY_RATE_LIMIT`.
    pub rate_limit: Option<u32>,
    /// Listeners for events that an address may have at once; None: any number.
    /// `CLICKY_LISTENERS_PER_ADDRESS`.
    pub listeners_per_address: Option<u32>,
}

/// What is wrong with one variable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// Its name.
    pub variable: &'static str,
    sentence: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.variable, self.sentence)
    }
}

impl Settings {
    /// Reads what `lookup` has for each variable; a variable that is empty is not set.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Settings, Vec<Problem>> {
        let mut read = Reading {
            lookup,
            problems: Vec::new(),
        };
        let address = read.address();
        let settings = Settings {
            address: address.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))),
            threads: read.number("CLICKY_THREADS", 1, THREADS_MAX).unwrap_or(1),
            driver: read.driver(),
            log: read.log(),
            counting: read.counting(),
            rate_limit: read.limit("CLICKY_RATE_LIMIT", None),
            listeners_per_address: read
                .limit("CLICKY_LISTENERS_PER_ADDRESS", LISTENERS_PER_ADDRESS),
        };
        match read.problems.is_empty() {
            true => Ok(settings),
            false => Err(read.problems),
        }
    }
}

/// Reads one variable after another, and notes what is wrong.
struct Reading<L> {
    lookup: L,
    problems: Vec<Problem>,
}

impl<L: Fn(&str) -> Option<OsString>> Reading<L> {
    fn raw(&self, variable: &str) -> Option<OsString> {
        (self.lookup)(variable).filter(|value| !value.is_empty())
    }

    fn text(&mut self, variable: &'static str) -> Option<String> {
        let value = self.raw(variable)?;
        let text = value.into_string();
        text.map_err(|_| self.note(variable, "is not UTF-8 text".to_owned()))
            .ok()
    }

    fn note(&mut self, variable: &'static str, sentence: String) {
        self.problems.push(Problem { variable, sentence });
    }

    /// The value that `read` makes of a variable, if it is set and right.
    fn parsed<T>(
        &mut self,
        variable: &'static str,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(variable)?;
        let value = read(&text);
        if value.is_none() {
            let shown = match text.contains('@') {
                true => "is not right".to_owned(), // A URL may hold a password.
                false => format!("is `{text}`"),
            };
            self.note(variable, format!("{shown}: write {wanted}"));
        }
        value
    }

    fn number<N: FromStr + PartialOrd + fmt::Display>(
        &mut self,
        variable: &'static str,
        least: N,
        most: N,
    ) -> Option<N> {
        let wanted = format!("a number from {least} to {most}");
        self.parsed(variable, &wanted, |text| {
            let number = digits(text)?;
            (least <= number && number <= most).then_some(number)
        })
    }

    fn address(&mut self) -> Option<SocketAddr> {
        let wanted = "an address and a port, such as 127.0.0.1:8080 or [::1]:8080";
        self.parsed("SERVER_ADDRESS", wanted, |text| {
            text.to_socket_addrs().ok()?.next()
        })
    }

    fn driver(&mut self) -> DriverChoice {
        let driver = self.parsed("PRONY_DRIVER", "auto, ring or epoll", |text| {
            text.parse().ok()
        });
        driver.unwrap_or_default()
    }

    /// A limit that can be `off`.
    fn limit(&mut self, variable: &'static str, otherwise: Option<u32>) -> Option<u32> {
        match self.raw(variable) {
            None => otherwise,
            Some(value) if value == "off" => None,
            Some(_) => self.number(variable, 1, 1_000_000_000),
        }
    }

    fn log(&mut self) -> LogSetting {
        let wanted = "off, error, warn, info or debug";
        let level = self.parsed("RUST_LOG", wanted, level);
        let is_off = self.raw("CLICKY_NO_LOGGING").is_some();
        let wanted = "stdout, or file:PATH";
        let place = self.parsed("CLICKY_LOG_TO", wanted, |text| match text {
            "stdout" => Some(LogPlace::Stdout),
            _ => {
                let path = text.strip_prefix("file:").filter(|path| !path.is_empty())?;
                Some(LogPlace::File(PathBuf::from(path)))
            }
        });
        let format = self.parsed("CLICKY_LOG_FORMAT", "text or journal", |text| match text {
            "text" => Some(LogFormat::Text),
            "journal" => Some(LogFormat::Journal),
            _ => None,
        });
        LogSetting {
            level: match is_off {
                true => None,
                false => level.unwrap_or(Some(Level::Info)),
            },
            place: place.unwrap_or_default(),
            format: format.unwrap_or_default(),
        }
    }

    fn counting(&mut self) -> CountingSetting {
        let default = CountingSetting::default();
        let ack = self.parsed("CLICKY_ACK", "memory or synced", |text| match text {
            "memory" => Some(Ack::Memory),
            "synced" => Some(Ack::Synced),
            _ => None,
        });
        let wanted = "a time from 1ms to 60m, such as 500ms, 1s or 2m";
        let sync = self.parsed("CLICKY_SYNC_FREQUENCY", wanted, |text| {
            length(text).filter(|length| (SYNC_MIN..=SYNC_MAX).contains(length))
        });
        let pending_max = self.number("CLICKY_PENDING_MAX", 1, 1_000_000_000_000);
        CountingSetting {
            backend: self.backend(),
            ack: ack.unwrap_or_default(),
            sync: sync.unwrap_or(default.sync),
            pending_max: pending_max.unwrap_or(default.pending_max),
            ..default
        }
    }

    fn backend(&mut self) -> Backend {
        let file = self.path("CLICKY_COUNTER_FILE", COUNTER_FILE);
        let sqlite = self.path("CLICKY_SQLITE_FILE", SQLITE_FILE);
        let redis = self.parsed(
            "CLICKY_REDIS_URL",
            "an address such as redis://127.0.0.1:6379, or redis://user:password@host:port/0",
            |text| text.starts_with("redis://").then(|| text.to_owned()),
        );
        let redis = redis.unwrap_or_else(|| REDIS_URL.to_owned());
        let wanted = "none, file, redis or sqlite";
        let backend = self.parsed("CLICKY_BACKEND", wanted, |text| match text {
            "none" => Some(Backend::None),
            "file" => Some(Backend::file(file.clone())),
            "redis" => Some(Backend::redis(redis.clone())),
            "sqlite" => Some(Backend::Sqlite {
                path: sqlite.clone(),
            }),
            _ => None,
        });
        backend.unwrap_or_else(|| Backend::file(file))
    }

    fn path(&self, variable: &str, otherwise: &str) -> PathBuf {
        let path = self.raw(variable);
        path.map_or_else(|| PathBuf::from(otherwise), PathBuf::from)
    }
}

/// Digits alone: no sign, no space.
fn digits<N: FromStr>(text: &str) -> Option<N> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().ok()).flatten()
}

/// A length of time: `500ms`, `1s`, `2m`.
fn length(text: &str) -> Option<Nanos> {
    let place = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = digits(&text[..place])?;
    let unit_ns: u64 = match &text[place..] {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit_ns).map(Nanos)
}

/// The level that a list of directives asks for, as `env_logger` reads it: `info`, or
/// `warn,clicky=debug`. What is said of other targets is passed over.
fn level(text: &str) -> Option<Option<Level>> {
    let (mut general, mut own) = (None, None);
    for directive in text.split(',').map(str::trim) {
        match directive.split_once('=') {
            None => general = Some(one_level(directive)?),
            Some(("clicky" | "prony_clicky", level)) => own = Some(one_level(level)?),
            Some(_) => {}
        }
    }
    // What names only others turns everything else off, as there.
    Some(own.or(general).unwrap_or(None))
}

fn one_level(word: &str) -> Option<Option<Level>> {
    Some(match word.to_ascii_lowercase().as_str() {
        "off" => None,
        "error" => Some(Level::Error),
        "warn" => Some(Level::Warn),
        "info" => Some(Level::Info),
        "debug" | "trace" => Some(Level::Debug),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let told = |problems: Vec<Problem>| problems.iter().map(Problem::to_string).collect();
        Settings::read(lookup).map_err(told)
    }

    #[test]
    fn nothing_set_is_the_original_with_a_file() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.address.to_string(), "127.0.0.1:8080");
        assert_eq!(settings.threads, 1);
        assert_eq!(settings.log.level, Some(Level::Info));
        assert_eq!(settings.counting.backend, Backend::file("clicky.txt"));
        assert_eq!(settings.counting.ack, Ack::Memory);
        assert_eq!(settings.counting.sync, Nanos::from_secs(1));
        assert_eq!(settings.rate_limit, None);
        assert_eq!(settings.listeners_per_address, Some(1_000));
        // As a shell sets what it has nothing for.
        assert!(read(&[("CLICKY_THREADS", "")]).is_ok());
    }

    #[test]
    fn everything_that_can_be_set_is() {
        let settings = read(&[
            ("SERVER_ADDRESS", "[::1]:0"),
            ("CLICKY_THREADS", "4"),
            ("PRONY_DRIVER", "epoll"),
            ("RUST_LOG", "warn,clicky=debug"),
            ("CLICKY_LOG_TO", "file:/tmp/log"),
            ("CLICKY_LOG_FORMAT", "journal"),
            ("CLICKY_BACKEND", "redis"),
            ("CLICKY_REDIS_URL", "redis://there:1/2"),
            ("CLICKY_SYNC_FREQUENCY", "250ms"),
            ("CLICKY_ACK", "synced"),
            ("CLICKY_PENDING_MAX", "7"),
            ("CLICKY_RATE_LIMIT", "100"),
            ("CLICKY_LISTENERS_PER_ADDRESS", "off"),
        ]);
        let settings = settings.unwrap();
        assert_eq!(settings.address.to_string(), "[::1]:0");
        assert_eq!(settings.threads, 4);
        assert_eq!(settings.driver, DriverChoice::Epoll);
        assert_eq!(settings.log.level, Some(Level::Debug));
        assert_eq!(settings.log.place, LogPlace::File("/tmp/log".into()));
        assert_eq!(settings.log.format, LogFormat::Journal);
        let counting = settings.counting;
        assert_eq!(counting.backend, Backend::redis("redis://there:1/2"));
        assert_eq!(counting.sync, Nanos::from_millis(250));
        assert_eq!((counting.ack, counting.pending_max), (Ack::Synced, 7));
        assert_eq!(settings.rate_limit, Some(100));
        assert_eq!(settings.listeners_per_address, None);
    }

    #[test]
    fn each_problem_is_a_sentence_with_its_variable() {
        let problems = read(&[
            ("SERVER_ADDRESS", "8080"),
            ("CLICKY_THREADS", "0"),
            ("PRONY_DRIVER", "kqueue"),
            ("RUST_LOG", "loud"),
            ("CLICKY_LOG_TO", "file:"),
            ("CLICKY_LOG_FORMAT", "xml"),
            ("CLICKY_BACKEND", "etcd"),
            ("CLICKY_REDIS_URL", "127.0.0.1"),
            ("CLICKY_SYNC_FREQUENCY", "0s"),
            ("CLICKY_ACK", "maybe"),
            ("CLICKY_PENDING_MAX", "-1"),
            ("CLICKY_RATE_LIMIT", "some"),
            ("CLICKY_LISTENERS_PER_ADDRESS", "0"),
        ]);
        let problems = problems.unwrap_err();
        assert_eq!(problems.len(), 13, "{problems:#?}");
        assert!(problems.contains(&"CLICKY_THREADS is `0`: write a number from 1 to 1024".into()));
        assert!(problems.contains(
            &"CLICKY_SYNC_FREQUENCY is `0s`: write a time from 1ms to 60m, such as 500ms, 1s or 2m"
                .into()
        ));
    }

    #[test]
    fn logging_is_off_by_either_variable() {
        let level = |variables: &[_]| read(variables).unwrap().log.level;
        assert_eq!(level(&[("RUST_LOG", "off")]), None);
        let both = [("RUST_LOG", "info"), ("CLICKY_NO_LOGGING", "1")];
        assert_eq!(level(&both), None);
        assert_eq!(level(&[("RUST_LOG", "actix_web=debug")]), None);
        let original = [("RUST_LOG", "info,actix_web=debug")];
        assert_eq!(level(&original), Some(Level::Info));
    }
}
