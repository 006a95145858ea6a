//! The settings of a host: as they are typed ([`Words`]), and as they are meant ([`Settings`]).

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use prony_base::Nanos;
use prony_base::typed::{duration, size};
use prony_engine::DriverChoice;
use prony_http::BODY_MEMORY_BYTES;
use serde::{Deserialize, Serialize};

/// The longest time between two words of a worker that its loop turns.
const BEAT_MAX: Nanos = Nanos::from_secs(1);

/// How connections reach workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All workers accept from one listening socket
    Shared,
    /// Each worker has its own listening socket; the kernel picks one for each connection
    Reuseport,
    /// The supervisor accepts, and passes each connection to the worker with the fewest
    Least,
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Distribution::Shared => "shared",
            Distribution::Reuseport => "reuseport",
            Distribution::Least => "least",
        })
    }
}

/// The options that every host has.
#[derive(Clone, Debug, Args)]
pub struct Words {
    /// The application: a module and the name of a value in it
    #[arg(value_name = "MODULE:APP")]
    pub application: String,
    /// Port to listen on; 0 takes a free one, which is printed
    #[arg(value_name = "PORT", default_value_t = 8080)]
    pub port: u16,
    /// Address to listen on; 0.0.0.0 for all of this machine's
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Worker processes; 0: serve in this process, which is not restarted if it ends
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub workers: u32,
    /// How connections reach workers [default: least; shared for one worker]
    #[arg(long, value_name = "WAY", value_enum)]
    pub distribution: Option<Distribution>,
    /// Connections that the kernel may hold before they are accepted
    /// (it lowers this to net.core.somaxconn)
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub backlog: u32,
    /// Serve the files of this directory
    #[arg(long = "static", value_name = "DIR")]
    pub static_dir: Option<PathBuf>,
    /// URL path of the files of --static
    #[arg(long, value_name = "URL", default_value = "/static")]
    pub static_url: String,
    /// Write a line for each request to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
    /// Replace a worker after this many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_requests: Option<u64>,
    /// Add a random number of up to this many to --max-requests, so that workers are not all replaced at once
    #[arg(long, value_name = "N", default_value_t = 0, requires = "max_requests")]
    pub max_requests_jitter: u64,
    /// Kill and replace a worker that is stuck for this long, or takes longer to load the
    /// application; 0: never
    #[arg(long, value_name = "T", default_value = "30s", value_parser = duration::parse)]
    pub timeout: Nanos,
    /// How long a worker that is stopped or replaced may take to finish its requests
    #[arg(long, value_name = "T", default_value = "30s", value_parser = duration::parse_positive)]
    pub graceful_timeout: Nanos,
    /// Close a connection that is idle for this long; 0: never
    #[arg(long, value_name = "T", default_value = "75s", value_parser = duration::parse)]
    pub idle_timeout: Nanos,
    /// Largest body of a request
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size::parse_positive)]
    pub body_max: u64,
    /// Minimum bytes a second of a request's body, from 30 s after its head on; slower ones are refused (408); 0: none
    #[arg(long, value_name = "SIZE", default_value = "500", value_parser = size::parse)]
    pub body_rate_min: u64,
    /// Memory of one worker for the bodies of all unanswered requests; a request whose body does not fit is refused
    /// (503) [default: 256MiB, or --body-max if that is more]
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive)]
    pub body_memory: Option<u64>,
    /// Connections of one worker at once; others wait until one ends, as --backlog says. Fewer if the process may not
    /// have so many descriptors
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections_max: u32,
    /// Look for modules in this directory (may be repeated) [default: .]
    #[arg(long, value_name = "DIR")]
    pub path: Vec<PathBuf>,
    /// Show errors of the application, with traceback, to clients
    #[arg(long)]
    pub development: bool,
    /// Replace the workers whenever a file of the application changes; implies --development
    #[arg(long)]
    pub reload: bool,
    /// Driver of the event loops: auto, ring or epoll [default: $PRONY_DRIVER, else auto]
    #[arg(long, value_name = "DRIVER")]
    pub driver: Option<DriverChoice>,
}

/// The checked settings. They go to the workers as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// `module:app`.
    pub application: String,
    /// The address to listen on.
    pub address: SocketAddr,
    /// Worker processes; 0: none beside this one.
    pub workers: u32,
    /// How connections reach them.
    pub distribution: Distribution,
    /// Length of the kernel's queue.
    pub backlog: u32,
    /// A directory of files, and the path below which they are: `/static`, no slash at
    /// its end.
    pub static_files: Option<(PathBuf, String)>,
    /// The access log; `-` is standard output.
    pub access_log: Option<PathBuf>,
    /// Requests after which a worker is replaced, and the most that is added to them.
    pub max_requests: Option<(u64, u64)>,
    /// Nanoseconds that a worker may be stuck; None: for ever.
    pub timeout_ns: Option<u64>,
    /// Nanoseconds for a graceful end.
    pub graceful_timeout_ns: u64,
    /// Nanoseconds that a connection may rest; None: for ever.
    pub idle_timeout_ns: Option<u64>,
    /// Bytes.
    pub body_max: u64,
    /// Bytes a second; 0: any.
    pub body_rate_min: u64,
    /// Bytes of all bodies of one worker together.
    pub body_memory: u64,
    /// Connections of one worker.
    pub connections_max: u32,
    /// Where modules are looked for, in this order; absolute.
    pub path: Vec<PathBuf>,
    /// Errors are shown to clients.
    pub development: bool,
    /// Workers are replaced when files change.
    pub reload: bool,
    /// `auto`, `ring` or `epoll`; for workers never `auto`, so that all have the same.
    pub driver: String,
    /// Settings that only one kind of host has, read by its `load`.
    pub own: serde_json::Value,
}

impl Words {
    /// Checks them. `host_settings` are those that only this host has.
    ///
    /// # Errors
    /// Which option is wrong, why, and what would be right.
    pub fn resolve(&self, host_settings: serde_json::Value) -> Result<Settings, String> {
        let address = self.address()?;
        self.check_workers()?;
        let here = std::env::current_dir()
            .map_err(|error| format!("cannot find the current directory: {error}"))?;
        let path = match self.path.is_empty() {
            true => vec![here.clone()],
            false => self.path.iter().map(|dir| here.join(dir)).collect(),
        };
        let never = |length: Nanos| (length != Nanos::ZERO).then_some(length.0);
        let driver = match self.driver {
            Some(driver) => driver.to_string(),
            None => std::env::var("PRONY_DRIVER").unwrap_or_else(|_| "auto".to_owned()),
        };
        DriverChoice::from_str(&driver).map_err(|error| error.to_string())?;
        Ok(Settings {
            application: self.application.clone(),
            address,
            workers: self.workers,
            distribution: self.distribution.unwrap_or(match self.workers {
                0 | 1 => Distribution::Shared,
                _ => Distribution::Least,
            }),
            backlog: self.backlog,
            static_files: self.static_files(&here)?,
            access_log: self.access_log.as_ref().map(|file| match file.as_os_str() {
                dash if dash == "-" => file.clone(),
                _ => here.join(file),
            }),
            max_requests: self
                .max_requests
                .map(|most| (most, self.max_requests_jitter)),
            timeout_ns: never(self.timeout),
            graceful_timeout_ns: self.graceful_timeout.0,
            idle_timeout_ns: never(self.idle_timeout),
            body_max: self.body_max,
            body_rate_min: self.body_rate_min,
            body_memory: self.body_memory()?,
            connections_max: self.connections_max,
            path,
            development: self.development || self.reload,
            reload: self.reload,
            driver,
            own: host_settings,
        })
    }

    fn body_memory(&self) -> Result<u64, String> {
        match self.body_memory {
            None => Ok(BODY_MEMORY_BYTES.max(self.body_max)),
            Some(memory) if memory >= self.body_max => Ok(memory),
            Some(memory) => Err(format!(
                "--body-memory: a body of {} bytes (--body-max) has no room in {memory}: give \
                 as many or more",
                self.body_max
            )),
        }
    }

    fn check_workers(&self) -> Result<(), String> {
        let replaces = match (self.reload, self.max_requests) {
            (true, _) => "--reload",
            (false, Some(_)) => "--max-requests",
            (false, None) => return Ok(()),
        };
        match self.workers {
            0 => Err(format!(
                "{replaces} replaces workers: give --workers 1 or more"
            )),
            _ => Ok(()),
        }
    }

    fn address(&self) -> Result<SocketAddr, String> {
        let wrong = || {
            format!(
                "`{}` is not the address of a host: give one such as 127.0.0.1, 0.0.0.0 or ::1",
                self.host
            )
        };
        let mut found = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|_| wrong())?;
        found.next().ok_or_else(wrong)
    }

    fn static_files(&self, here: &std::path::Path) -> Result<Option<(PathBuf, String)>, String> {
        let Some(dir) = &self.static_dir else {
            return Ok(None);
        };
        let dir = here.join(dir);
        if !dir.is_dir() {
            return Err(format!("--static: `{}` is not a directory", dir.display()));
        }
        let url = self.static_url.trim_end_matches('/');
        if !url.is_empty() && !url.starts_with('/') {
            return Err(format!(
                "--static-url: `{}` does not start with a slash",
                self.static_url
            ));
        }
        Ok(Some((dir, url.to_owned())))
    }
}

impl Settings {
    /// The way of the event loop.
    pub fn driver(&self) -> DriverChoice {
        DriverChoice::from_str(&self.driver).unwrap_or(DriverChoice::Auto)
    }

    /// How often a worker says that its loop turns.
    pub(crate) fn beat_interval(&self) -> Nanos {
        let of_timeout = self.timeout_ns.map(|timeout| Nanos(timeout / 4));
        of_timeout.map_or(BEAT_MAX, |interval| interval.min(BEAT_MAX))
    }
}
