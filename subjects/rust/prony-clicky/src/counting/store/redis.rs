//! Totals in Redis or Valkey, which several instances share.
//! Not for: keeping a crash of that server from losing what it had not written to its disk;
//! that is for its own `appendonly` and `appendfsync` to say.
//!
//! A batch is one call of a script (`redis.lua`), which the server runs as a whole. The
//! script knows the number of each instance's last batch, so that a batch whose answer was
//! lost can be sent again and counts once; it remembers that for a day.
//!
//! A server that comes back empty, or with what it had a while ago, has another run id. Then
//! each instance tells the totals that it saw last, and the script raises each counter by
//! what is missing to the highest of them. What was added by another instance whose totals
//! no living instance has seen is lost with that server.
//!
//! The root counter is a plain number under the original service's key, so that its counts
//! go on and `GET` shows it. The script works with numbers up to 2^53 exactly when it raises
//! to a floor; adding clicks is exact for all. The server must not evict keys
//! (`maxmemory-policy noeviction`).

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

use prony_base::Nanos;
use redis::{Client, Connection, ErrorKind, RedisError};

use super::super::name::Name;
use super::{Batch, CommitError, Committed, OpenError, Store, Totals};

const SCRIPT: &str = include_str!("redis.lua");

/// A server of Redis or Valkey.
pub struct RedisStore {
    client: Client,
    answer_max: Duration,
    link: Option<Link>,
    keys: [String; 5],
    /// The totals that the server had when it was last asked.
    seen: HashMap<Name, u64>,
    /// Run id of the server that knows of them.
    told: Option<String>,
    /// Number of the last batch that it has taken.
    sequence: u64,
}

/// A connection, and what was asked for at its beginning.
struct Link {
    connection: Connection,
    run_id: String,
    /// Digest by which the server knows the script.
    digest: String,
    /// A total was found lower than it had been, by this connection.
    fell: bool,
}

impl RedisStore {
    /// The server at `url`, with the root counter under `key`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`OpenError::Setting`]: the URL cannot be one.
    pub fn open(url: &str, key: &str, answer_max: Nanos) -> Result<RedisStore, OpenError> {
        let client = Client::open(url);
        let client = client.map_err(|error| OpenError::Setting(format!("{url}: {error}")))?;
        // Two random numbers of the standard library's hasher: no other instance has them.
        let random = || RandomState::new().build_hasher().finish();
        let instance = format!("{:016x}{:016x}", random(), random());
        // The braces keep all of them on one node of a cluster.
        let key_of = |what: &str| format!("{{{key}}}:{what}");
        Ok(RedisStore {
            client,
            answer_max: answer_max.max(Nanos::from_millis(1)).into(),
            link: None,
            keys: [
                key.to_owned(),
                key_of("named"),
                key_of("floors"),
                key_of("server"),
                key_of(&format!("batch:{instance}")),
            ],
            seen: HashMap::new(),
            told: None,
            sequence: 0,
        })
    }

    fn connect(&self) -> Result<Link, RedisError> {
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
        Ok(Link {
            connection,
            run_id: run_id.trim().to_owned(),
            digest,
            fell: false,
        })
    }

    /// The connection that there is, or a new one.
    fn link(&mut self) -> Result<&mut Link, CommitError> {
        if self.link.is_none() {
            let link = self.connect();
            self.link = Some(link.map_err(|error| CommitError::NotKept(error.to_string()))?);
        }
        let missing = || CommitError::NotKept("no connection".to_owned());
        self.link.as_mut().ok_or_else(missing)
    }

    /// Has the script run, with this batch, or only to tell totals.
    fn run_script(&mut self, batch: &Batch) -> Result<Committed, CommitError> {
        let link = self.link()?;
        let (run_id, digest) = (link.run_id.clone(), link.digest.clone());
        let mut call = redis::cmd("EVALSHA");
        call.arg(digest).arg(self.keys.len()).arg(&self.keys);
        call.arg(&run_id).arg(batch.sequence);
        let tells = self.told.as_ref() != Some(&run_id);
        call.arg(if tells { self.seen.len() } else { 0 });
        for (name, total) in self.seen.iter().filter(|_| tells) {
            call.arg(name.as_str()).arg(*total);
        }
        for (name, clicks) in &batch.clicks {
            call.arg(name.as_str()).arg(*clicks);
        }
        let answer: Result<Vec<u64>, RedisError> = call.query(&mut self.link()?.connection);
        let answer = answer.map_err(|error| self.failed(&error))?;
        let Some((&before, totals)) = answer.split_first() else {
            return Err(self.failed(&RedisError::from((ErrorKind::Parse, "an empty answer"))));
        };
        self.told = Some(run_id);
        for (&(name, _), &total) in batch.clicks.iter().zip(totals) {
            self.see(name, total);
        }
        Ok(Committed {
            totals: totals.to_vec(),
            before: before == 1,
        })
    }

    /// Notes a total. One that fell within the life of a server was taken away by hand or
    /// evicted; what was seen is told once more.
    fn see(&mut self, name: Name, total: u64) {
        let seen = self.seen.entry(name).or_insert(0);
        if total >= *seen {
            *seen = total;
        } else if let Some(link) = &mut self.link
            && !std::mem::replace(&mut link.fell, true)
        {
            self.told = None;
        }
    }

    /// What a failure leaves us knowing. After an answer that says no, the script has
    /// changed nothing; without an answer nobody knows. Either way the connection goes:
    /// the server may have forgotten the script, or an answer may still be on its way.
    fn failed(&mut self, error: &RedisError) -> CommitError {
        self.link = None;
        match error.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension => CommitError::NotKept(error.to_string()),
            _ => CommitError::Unknown(error.to_string()),
        }
    }

    fn read_totals(&mut self) -> Result<Totals, CommitError> {
        let [root, named, ..] = self.keys.clone();
        let mut pipe = redis::pipe();
        pipe.cmd("GET").arg(root).cmd("HGETALL").arg(named);
        let answer = pipe.query(&mut self.link()?.connection);
        let (root, named): (Option<u64>, Vec<(String, u64)>) = answer.map_err(|error| {
            self.link = None;
            CommitError::NotKept(error.to_string())
        })?;
        let mut totals = vec![(Name::ROOT, root.unwrap_or(0))];
        for (name, total) in named {
            // One that somebody else put there, under a name that nobody can ask for.
            if let Ok(name) = Name::new(&name) {
                totals.push((name, total));
            }
        }
        for &(name, total) in &totals {
            self.see(name, total);
        }
        Ok(totals)
    }
}

impl Store for RedisStore {
    fn load(&mut self) -> Result<Totals, OpenError> {
        self.read_totals()
            .map_err(|error| OpenError::Unreachable(format!("Redis: {}", error.why())))
    }

    fn commit(&mut self, batch: &Batch) -> Result<Committed, CommitError> {
        let committed = self.run_script(batch)?;
        self.sequence = batch.sequence;
        Ok(committed)
    }

    fn refresh(&mut self) -> Result<Totals, CommitError> {
        let run_id = self.link()?.run_id.clone();
        if self.told.as_ref() != Some(&run_id) {
            // It may be a server that has forgotten: nobody shall see less than there was.
            let nothing = Batch {
                sequence: self.sequence,
                clicks: Vec::new(),
            };
            let told = self.run_script(&nothing);
            told.map_err(|error| CommitError::NotKept(error.why().to_owned()))?;
        }
        self.read_totals()
    }

    fn close(&mut self) {
        let last = self.keys[4].clone();
        if let Some(link) = &mut self.link {
            // If it cannot be taken away now, the server does so in a day.
            let _: Result<(), _> = redis::cmd("DEL").arg(last).query(&mut link.connection);
        }
    }
}
