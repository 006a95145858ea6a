//! Totals in Redis or Valkey, which several instances share.
//! Not for: keeping a crash of that server from losing what it had not written to its disk;
//! that is for its own `appendonly` and `appendfsync` to say.
//!
//! A batch is one call of a script (`redis.lua`), which the server runs as a whole. The
//! script knows the number of each instance's last batch, so that a batch whose answer was
//! lost can be sent again and counts once; it remembers that for a day.
//!
//! A server that comes back empty, or with what it had a while ago, begins a new epoch.
//! Then each instance tells the totals that it saw last, and the script raises each counter
//! by what is missing to the highest of them. What was added by another instance and seen by
//! none that lives is lost with that server. A batch counts twice if all of this comes
//! together: its answer was lost, another instance saw a total that has it, and then the
//! server forgot. A counter that is lowered or deleted by hand
//! stays so there; instances that run go on from what they saw.
//!
//! The root counter is a plain number under the original service's key, so that its counts
//! go on and `GET` shows it. The script works with numbers up to 2^53 exactly when it raises
//! to a floor; adding clicks is exact for all. The server must not evict keys
//! (`maxmemory-policy noeviction`).

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::error::Error;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use prony_base::Nanos;
use redis::{Client, Connection, ErrorKind, RedisError};

use super::super::name::Name;
use super::contract::{Batch, CommitError, Committed, OpenError, Store, Totals};

const SCRIPT: &str = include_str!("redis.lua");

/// How long the number of the last batch is known after the end.
const FORGET_AFTER_SECONDS: u64 = 600;

/// How often a question that signals interrupt is asked again.
const INTERRUPTIONS_MAX: u32 = 20;

/// A server of Redis or Valkey.
pub struct RedisStore {
    client: Client,
    answer_max: Duration,
    session: Option<RedisSession>,
    keys: [String; 5],
    /// The totals that the server had when it was last asked.
    seen: HashMap<Name, u64>,
    /// The epoch in which it had them.
    epoch: Option<String>,
    /// A name that no other instance has.
    instance: String,
    /// How often the script was called, which makes names of epochs.
    calls: u64,
    /// Number of the last batch that it has taken.
    sequence: u64,
}

/// A connection, and what was requested at its beginning.
struct RedisSession {
    connection: Connection,
    run_id: String,
    /// Digest by which the server knows the script.
    digest: String,
}

impl RedisStore {
    /// The server at `url`, with the root counter under `key`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`OpenError::Setting`]: the URL cannot be one.
    pub fn open(url: &str, key: &str, answer_max: Nanos) -> Result<RedisStore, OpenError> {
        let client = Client::open(url);
        let client = client
            .map_err(|error| OpenError::Setting(format!("{}: {error}", without_password(url))))?;
        // Two random numbers of the standard library's hasher: no other instance has them.
        let random = || RandomState::new().build_hasher().finish();
        let instance = format!("{:016x}{:016x}", random(), random());
        // The braces keep all of them on one node of a cluster.
        let key_of = |what: &str| format!("{{{key}}}:{what}");
        Ok(RedisStore {
            client,
            answer_max: answer_max.max(Nanos::from_millis(1)).into(),
            session: None,
            keys: [
                key.to_owned(),
                key_of("named"),
                key_of("floors"),
                key_of("server"),
                key_of(&format!("batch:{instance}")),
            ],
            seen: HashMap::new(),
            epoch: None,
            instance,
            calls: 0,
            sequence: 0,
        })
    }

    fn connect(&self) -> Result<RedisSession, RedisError> {
        let mut connection = self.client.get_connection_with_timeout(self.answer_max)?;
        connection.set_read_timeout(Some(self.answer_max))?;
        connection.set_write_timeout(Some(self.answer_max))?;
        let about: String = redis::cmd("INFO").arg("server").query(&mut connection)?;
        let run_id = about
            .lines()
            .find_map(|line| line.strip_prefix("run_id:"))
            .unwrap_or_default();
        let digest = redis::cmd("SCRIPT")
            .arg("LOAD")
            .arg(SCRIPT)
            .query(&mut connection)?;
        Ok(RedisSession {
            connection,
            run_id: run_id.trim().to_owned(),
            digest,
        })
    }

    /// The connection that there is, or a new one.
    fn session(&mut self) -> Result<&mut RedisSession, CommitError> {
        if self.session.is_none() {
            let session = asked_again(|| self.connect());
            self.session = Some(session.map_err(|error| CommitError::NotKept(error.to_string()))?);
        }
        let missing = || CommitError::NotKept("no connection".to_owned());
        self.session.as_mut().ok_or_else(missing)
    }

    /// Has the script run with a batch, which may be empty.
    fn run_script(&mut self, batch: &Batch) -> Result<Committed, CommitError> {
        loop {
            let answer = self.call(batch)?;
            let mut words = answer.iter().map(String::as_str);
            let before = match words.next() {
                // It does not know our totals, and will not ask twice.
                Some("again") if self.epoch.take().is_some() => continue,
                Some("before") => true,
                Some("now") => false,
                _ => return Err(self.failed(&strange())),
            };
            self.epoch = words.next().map(str::to_owned);
            let totals: Result<Vec<u64>, _> = words.map(str::parse).collect();
            let totals = totals.map_err(|_| self.failed(&strange()))?;
            for (&(name, _), &total) in batch.clicks.iter().zip(&totals) {
                self.see(name, total);
            }
            return Ok(Committed { totals, before });
        }
    }

    /// Calls the script once. Where there is no epoch yet it is told the totals.
    fn call(&mut self, batch: &Batch) -> Result<Vec<String>, CommitError> {
        let session = self.session()?;
        let (run_id, digest) = (session.run_id.clone(), session.digest.clone());
        self.calls += 1;
        let new_epoch = format!("{run_id}:{}:{}", self.instance, self.calls);
        let mut call = redis::cmd("EVALSHA");
        call.arg(digest).arg(self.keys.len()).arg(&self.keys);
        call.arg(&run_id)
            .arg(self.epoch.as_deref().unwrap_or_default());
        call.arg(new_epoch).arg(batch.sequence);
        match &self.epoch {
            Some(_) => call.arg(-1),
            None => call.arg(self.seen.len()),
        };
        let tells = self.epoch.is_none();
        for (name, total) in self.seen.iter().filter(|_| tells) {
            call.arg(name.as_str()).arg(*total);
        }
        for (name, clicks) in &batch.clicks {
            call.arg(name.as_str()).arg(*clicks);
        }
        let answer = call.query(&mut self.session()?.connection);
        answer.map_err(|error| self.failed(&error))
    }

    fn see(&mut self, name: Name, total: u64) {
        let seen = self.seen.entry(name).or_insert(0);
        *seen = total.max(*seen);
    }

    /// What a failure leaves us knowing. After an answer that says no, the script has
    /// changed nothing; without an answer nobody knows. Either way the connection goes:
    /// the server may have forgotten the script, or an answer may still be on its way.
    fn failed(&mut self, error: &RedisError) -> CommitError {
        self.session = None;
        match error.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension => CommitError::NotKept(error.to_string()),
            _ => CommitError::Unknown(error.to_string()),
        }
    }

    /// The totals, and the epoch that they are of.
    fn read_totals(&mut self) -> Result<(Totals, Option<String>), CommitError> {
        let [root, named, _, epoch, _] = self.keys.clone();
        let mut pipe = redis::pipe();
        // As one transaction, so that they belong together.
        pipe.atomic().cmd("GET").arg(epoch);
        pipe.cmd("GET").arg(root).cmd("HGETALL").arg(named);
        let mut session = self.session.take();
        let answer = asked_again(|| {
            // A connection with half an answer on it is none.
            let mut session = session.take().map_or_else(|| self.connect(), Ok)?;
            let answer = pipe.query(&mut session.connection)?;
            self.session = Some(session);
            Ok(answer)
        });
        let (epoch, root, named): (_, Option<u64>, Vec<(String, u64)>) =
            answer.map_err(|error| CommitError::NotKept(error.to_string()))?;
        let mut totals = vec![(Name::ROOT, root.unwrap_or(0))];
        for (name, total) in named {
            // One that somebody else put there, under a name that nobody can ask for.
            if let Ok(name) = Name::new(&name) {
                totals.push((name, total));
            }
        }
        Ok((totals, epoch))
    }
}

/// What `ask` comes to, which changes nothing on the server. It is asked again where a signal interrupts it: calls
/// with a time limit are not gone on with by the kernel, and a ring that ran on this thread may interrupt one while
/// the kernel takes it apart.
fn asked_again<T>(mut ask: impl FnMut() -> Result<T, RedisError>) -> Result<T, RedisError> {
    let mut left = INTERRUPTIONS_MAX;
    loop {
        let answer = ask();
        let interrupted = |error: &RedisError| {
            // What it gives for its cause is the pointer in which it keeps that.
            let cause = error.source().and_then(|cause| cause.downcast_ref());
            let cause = cause.and_then(|cause: &Arc<dyn Error + Send + Sync>| cause.downcast_ref());
            cause.is_some_and(|cause: &io::Error| cause.kind() == io::ErrorKind::Interrupted)
        };
        if left == 0 || !answer.as_ref().is_err_and(interrupted) {
            return answer;
        }
        left -= 1;
    }
}

/// The URL as it may be shown.
fn without_password(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((before, place)) => {
            let scheme = before.find("://").map_or("", |end| &before[..end + 3]);
            format!("{scheme}…@{place}")
        }
        None => url.to_owned(),
    }
}

fn strange() -> RedisError {
    RedisError::from((ErrorKind::Parse, "an answer that is not the script's"))
}

impl Store for RedisStore {
    fn load(&mut self) -> Result<Totals, OpenError> {
        let unreachable = |error: CommitError| format!("Redis: {}", error.why());
        let read = self.read_totals();
        let (totals, epoch) = read.map_err(|error| OpenError::Unreachable(unreachable(error)))?;
        for &(name, total) in &totals {
            self.see(name, total);
        }
        self.epoch = epoch;
        Ok(totals)
    }

    fn commit(&mut self, batch: &Batch) -> Result<Committed, CommitError> {
        let committed = self.run_script(batch)?;
        self.sequence = batch.sequence;
        Ok(committed)
    }

    fn refresh(&mut self) -> Result<Totals, CommitError> {
        // It may be a server that has forgotten: nobody shall see less than there was.
        let nothing = Batch {
            sequence: self.sequence,
            clicks: Vec::new(),
        };
        let told = self.run_script(&nothing);
        told.map_err(|error| CommitError::NotKept(error.why().to_owned()))?;
        let (totals, epoch) = self.read_totals()?;
        if epoch == self.epoch {
            for &(name, total) in &totals {
                self.see(name, total);
            }
        }
        Ok(totals)
    }

    fn probe(&mut self) -> Result<(), CommitError> {
        // A key of its own, which is gone in a second.
        let mut set = redis::cmd("SET");
        set.arg(format!("{{{}}}:probe:{}", self.keys[0], self.instance));
        set.arg("").arg("EX").arg(1);
        let written = set.query(&mut self.session()?.connection);
        written.map_err(|error| self.failed(&error))
    }

    fn close(&mut self) {
        let last = self.keys[4].clone();
        if let Some(session) = &mut self.session {
            // Not at once: a sending whose answer was not waited for may still arrive, and
            // must not count again. If it cannot be said now, the server forgets in a day.
            let mut expire = redis::cmd("EXPIRE");
            expire.arg(last).arg(FORGET_AFTER_SECONDS);
            let _: Result<(), _> = expire.query(&mut session.connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_while_it_asked_was_taken_for_a_server_that_cannot_be_reached() {
        let asked = |interruptions: u32| {
            let mut left = interruptions;
            asked_again(|| {
                let interrupted = RedisError::from(io::Error::from(io::ErrorKind::Interrupted));
                let answer = if left == 0 { Ok(()) } else { Err(interrupted) };
                left = left.saturating_sub(1);
                answer
            })
        };
        assert!(asked(INTERRUPTIONS_MAX).is_ok());
        assert!(asked(INTERRUPTIONS_MAX + 1).is_err(), "not for ever");
        let mut refused = 0;
        let refuse = || {
            refused += 1;
            Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused).into())
        };
        assert!(asked_again(refuse).is_err());
        assert_eq!(refused, 1);
    }

    #[test]
    fn a_url_that_cannot_be_is_named_without_its_password() {
        let open = |url| RedisStore::open(url, "key", Nanos::from_secs(1)).map(drop);
        for url in ["redis://alice:s3@cr3t@host:port", "alice:s3@cr3t@host:port"] {
            let said = open(url).expect_err("there is no such port").to_string();
            assert!(said.contains("@host:port: "), "{said}");
            assert!(!said.contains("alice") && !said.contains("cr3t"), "{said}");
        }
    }

    #[test]
    fn the_password_of_a_url_is_not_shown() {
        for (url, shown) in [
            ("redis://:secret@here:6379/1", "redis://…@here:6379/1"),
            ("redis://me:a@b@here", "redis://…@here"),
            ("me:secret@here", "…@here"),
            ("redis://here:6379", "redis://here:6379"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
