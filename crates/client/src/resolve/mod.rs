//! Names to addresses, without holding up the loop.
//!
//! For: [`Resolver::resolve`], which asks, in this order, the caller's own overrides, the
//! name itself where it is an address, a small cache, and the system; and [`race`], which
//! connects to the first of several addresses that answers. Not for: asking name servers;
//! the system's `getaddrinfo` knows `/etc/hosts`, search domains and what else is set up.
//!
//! The system's call blocks, so a few threads make it, and wake the loop when they are done.
//! It cannot be broken off: dropping a [`resolve`](Resolver::resolve) leaves its thread to
//! end in its own time, and its answer is still cached if another request waits for it. Time-outs
//! are the caller's. In a simulated loop there are no threads, and no names beyond overrides
//! and what a [`Lookup`] of the caller's own gives.

mod race;
mod threads;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use prony_base::{Instant, Nanos};
use prony_engine::Handle;

pub use race::{interleave, race};
use threads::Threads;

/// The most addresses of one name that are used; further ones are left out.
pub const ADDRESSES_MAX: usize = 16;

/// A function that turns a name into addresses, on a thread where it may block. What it reports of a
/// failure is in the error.
pub type Lookup = Arc<dyn Fn(&str) -> std::io::Result<Vec<IpAddr>> + Send + Sync>;

/// Addresses that a name has because the caller says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The name, whatever its case; `*` stands for every name.
    pub host: String,
    /// The port for which it holds; None: all.
    pub port: Option<u16>,
    /// The addresses, the best first.
    pub addresses: Vec<IpAddr>,
}

impl Override {
    /// From `HOST:PORT:ADDRESS[,ADDRESS]...`, as curl's `--resolve` has it, or
    /// `HOST:ADDRESS[,ADDRESS]...` for all ports. IPv6 addresses may be in brackets.
    ///
    /// # Errors
    /// [`ResolveError::BadOverride`].
    pub fn parse(text: &str) -> Result<Override, ResolveError> {
        let bad = || ResolveError::BadOverride(text.chars().take(200).collect());
        let (host, rest) = text.split_once(':').ok_or_else(bad)?;
        let with_port = rest
            .split_once(':')
            .and_then(|(port, addresses)| Some((port.parse().ok()?, addresses)));
        // `a:1:2::3` has a port, `a:1::2` may be an address: ports go first.
        let (port, addresses) = match with_port {
            Some((port, addresses)) if parse_all(addresses).is_some() => (Some(port), addresses),
            _ => (None, rest),
        };
        let addresses = parse_all(addresses).ok_or_else(bad)?;
        if host.is_empty() {
            return Err(bad());
        }
        Ok(Override {
            host: host.to_owned(),
            port,
            addresses,
        })
    }

    fn holds(&self, host: &str, port: u16) -> bool {
        (self.host == "*" || self.host.eq_ignore_ascii_case(host))
            && self.port.is_none_or(|only| only == port)
    }
}

fn parse_all(list: &str) -> Option<Vec<IpAddr>> {
    list.split(',').map(|one| literal(one.trim())).collect()
}

/// The address that `host` is, with or without brackets.
fn literal(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match bare {
        Some(bare) => bare.parse().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

/// How names are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveSettings {
    /// Looked at first. Where several hold, one with a port goes before one without.
    pub overrides: Vec<Override>,
    /// How long an answer of the system is used again.
    pub cache_time: Nanos,
    /// Names in the cache. Beyond it the one that ends first goes.
    pub cache_names_max: usize,
    /// Threads that ask the system; they end when there is nothing to ask.
    pub threads_max: usize,
    /// Names that wait for a thread; one more is [`ResolveError::Busy`].
    pub waiting_names_max: usize,
}

impl Default for ResolveSettings {
    /// No overrides; answers live for 10 s, 256 of them; 4 threads, for which 1,000 names
    /// wait.
    fn default() -> ResolveSettings {
        ResolveSettings {
            overrides: Vec::new(),
            cache_time: Nanos::from_secs(10),
            cache_names_max: 256,
            threads_max: 4,
            waiting_names_max: 1_000,
        }
    }
}

/// Resolves names for one client. Cheap to clone; clones share cache and threads.
#[derive(Clone)]
pub struct Resolver {
    shared: Rc<ResolverState>,
}

struct ResolverState {
    handle: Handle,
    settings: ResolveSettings,
    /// None: the system's.
    own_lookup: Option<Lookup>,
    threads: Threads,
    cache: RefCell<HashMap<String, Cached>>,
}

struct Cached {
    addresses: Vec<IpAddr>,
    until: Instant,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.shared.cache.borrow().len();
        write!(f, "Resolver({names} names known)")
    }
}

impl Resolver {
    /// Asks the system.
    pub fn new(handle: &Handle, settings: ResolveSettings) -> Resolver {
        Resolver::build(handle, settings, None)
    }

    /// Asks `lookup` instead of the system.
    pub fn with_lookup(handle: &Handle, settings: ResolveSettings, lookup: Lookup) -> Resolver {
        Resolver::build(handle, settings, Some(lookup))
    }

    fn build(handle: &Handle, settings: ResolveSettings, own_lookup: Option<Lookup>) -> Resolver {
        let lookup = own_lookup
            .clone()
            .unwrap_or_else(|| Arc::new(threads::ask_system));
        let threads = Threads::new(lookup, settings.threads_max, settings.waiting_names_max);
        Resolver {
            shared: Rc::new(ResolverState {
                handle: handle.clone(),
                settings,
                own_lookup,
                threads,
                cache: RefCell::default(),
            }),
        }
    }

    /// The addresses of `host`, at least one and at most [`ADDRESSES_MAX`], in the order in
    /// which to try them. Several calls for one name at the same time are one question.
    ///
    /// # Errors
    /// [`ResolveError`], by name.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
        if let Some(known) = self.known(host, port) {
            return known;
        }
        let name = host.to_ascii_lowercase();
        let answer = match self.shared.handle.allows_threads() {
            false => self.ask_here(&name),
            true => self.shared.threads.ask(&name)?.await,
        };
        let addresses = answer.map_err(|reason| ResolveError::NotFound {
            name: name.clone(),
            reason,
        })?;
        if addresses.is_empty() {
            return Err(ResolveError::NoAddress { name });
        }
        let ordered = in_order(&addresses, port);
        self.keep(name, addresses);
        Ok(ordered)
    }

    /// Addresses that are known without a query.
    fn known(&self, host: &str, port: u16) -> Option<Result<Vec<SocketAddr>, ResolveError>> {
        let overrides = &self.shared.settings.overrides;
        let holding = || overrides.iter().filter(|one| one.holds(host, port));
        let entry = holding()
            .find(|one| one.port.is_some())
            .or_else(|| holding().next());
        if let Some(entry) = entry {
            if entry.addresses.is_empty() {
                let name = host.to_owned();
                return Some(Err(ResolveError::NoAddress { name }));
            }
            return Some(Ok(in_order(&entry.addresses, port)));
        }
        if let Some(address) = literal(host) {
            return Some(Ok(vec![SocketAddr::new(address, port)]));
        }
        if let Err(error) = check(host) {
            return Some(Err(error));
        }
        let cache = self.shared.cache.borrow();
        let cached = cache.get(host).or_else(|| {
            let is_lower = !host.bytes().any(|byte| byte.is_ascii_uppercase());
            let lower = (!is_lower).then(|| host.to_ascii_lowercase())?;
            cache.get(&lower)
        })?;
        let is_fresh = self.shared.handle.now() < cached.until;
        is_fresh.then(|| Ok(in_order(&cached.addresses, port)))
    }

    fn ask_here(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        match &self.shared.own_lookup {
            Some(lookup) => lookup(name).map_err(|error| error.to_string()),
            None => Err("a simulated network has no names but overrides".to_owned()),
        }
    }

    fn keep(&self, name: String, addresses: Vec<IpAddr>) {
        let settings = &self.shared.settings;
        if settings.cache_names_max == 0 || settings.cache_time == Nanos::ZERO {
            return;
        }
        let mut cache = self.shared.cache.borrow_mut();
        if cache.len() >= settings.cache_names_max && !cache.contains_key(&name) {
            let first = cache.iter().min_by_key(|(_, cached)| cached.until);
            let first = first.map(|(name, _)| name.clone());
            first.and_then(|name| cache.remove(&name));
        }
        let until = self.shared.handle.now() + settings.cache_time;
        cache.insert(name, Cached { addresses, until });
    }

    /// Forgets the answers of the system for all names.
    pub fn forget(&self) {
        self.shared.cache.borrow_mut().clear();
    }
}

/// Names that the system's call would misread, or read past.
fn check(host: &str) -> Result<(), ResolveError> {
    let is_fine = !host.is_empty() && host.len() <= 253 + 1 && !host.contains(['\0', ' ', '/']);
    match is_fine {
        true => Ok(()),
        false => Err(ResolveError::BadName(host.chars().take(260).collect())),
    }
}

fn in_order(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    let with_port = addresses.iter().map(|&ip| SocketAddr::new(ip, port));
    let mut ordered = interleave(with_port);
    ordered.truncate(ADDRESSES_MAX);
    ordered
}

/// Why a name has no addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The system found none.
    #[error("name not found: `{name}` ({reason})")]
    NotFound {
        /// The name.
        name: String,
        /// The error of the system.
        reason: String,
    },
    /// The name is known and has no address.
    #[error("name not found: `{name}` has no address")]
    NoAddress {
        /// The name.
        name: String,
    },
    /// Empty, too long, or with a character that no name has.
    #[error("`{0}` cannot be the name of a host")]
    BadName(String),
    /// As many names wait as may.
    #[error("more names to resolve than waiting_names_max = {waiting_names_max}")]
    Busy {
        /// The limit, from [`ResolveSettings::waiting_names_max`].
        waiting_names_max: usize,
    },
    /// No thread could be started to ask the system.
    #[error("no thread to ask the system for a name: {reason}")]
    NoThread {
        /// The error of the system.
        reason: String,
    },
    /// No override: its first 200 characters.
    #[error("`{0}` is not HOST:PORT:ADDRESS[,ADDRESS] or HOST:ADDRESS[,ADDRESS]")]
    BadOverride(String),
}

impl ResolveError {
    /// Its name in one word, as programs print it.
    pub const fn kind_name(&self) -> &'static str {
        match self {
            ResolveError::NotFound { .. } | ResolveError::NoAddress { .. } => "name_not_found",
            ResolveError::BadName(_) => "bad_name",
            ResolveError::Busy { .. } => "resolver_busy",
            ResolveError::NoThread { .. } => "resolver_thread",
            ResolveError::BadOverride(_) => "bad_override",
        }
    }
}

#[cfg(test)]
mod tests;
