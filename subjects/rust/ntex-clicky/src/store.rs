//! Where the count is kept: a file of its own, or a key in Redis that others add to as well.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use redis::{Client, Connection};

use crate::settings::Backend;

const KEY: &str = "CLICKY_COUNTER";
const REDIS_TIMEOUT: Duration = Duration::from_secs(1);

/// Something that keeps a count.
pub trait Store: Send {
    /// Stores the count as it is here. Returns what has to be added to it, because others
    /// have stored theirs.
    fn save(&mut self, count: u64) -> anyhow::Result<i64>;
}

/// The store and the count that is in it; `None`: nothing is to be kept.
pub fn open(backend: &Backend) -> anyhow::Result<Option<(Box<dyn Store>, u64)>> {
    Ok(match backend {
        Backend::None => None,
        Backend::File(path) => {
            let store = FileStore::open(path)?;
            let stored = store.saved;
            Some((Box::new(store), stored))
        }
        Backend::Redis(url) => {
            let store = RedisStore::open(url).with_context(|| url.clone())?;
            let stored = store.known;
            Some((Box::new(store), stored))
        }
    })
}

struct FileStore {
    path: PathBuf,
    temporary: PathBuf,
    folder: File,
    saved: u64,
}

impl FileStore {
    fn open(path: &Path) -> anyhow::Result<FileStore> {
        let saved = match fs::read_to_string(path) {
            Ok(text) => text.trim().parse(),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let saved = saved.with_context(|| format!("{} is not a count", path.display()))?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        Ok(FileStore {
            path: path.to_owned(),
            temporary: path.with_added_extension("new"),
            folder: File::open(folder).with_context(|| folder.display().to_string())?,
            saved,
        })
    }
}

impl Store for FileStore {
    /// Whole or not at all: a new file is on the disk before it takes the name of the old one.
    fn save(&mut self, count: u64) -> anyhow::Result<i64> {
        if count != self.saved {
            let mut file = File::create(&self.temporary)?;
            file.write_all(count.to_string().as_bytes())?;
            file.sync_all()?;
            fs::rename(&self.temporary, &self.path)?;
            self.folder.sync_all()?;
            self.saved = count;
        }
        Ok(0)
    }
}

struct RedisStore {
    client: Client,
    connection: Option<Connection>,
    /// What Redis had after the last save, and so what is here beside what came since.
    known: u64,
}

impl RedisStore {
    fn open(url: &str) -> anyhow::Result<RedisStore> {
        let client = Client::open(url)?;
        let mut connection = connect(&client)?;
        let known: Option<u64> = redis::cmd("GET").arg(KEY).query(&mut connection)?;
        Ok(RedisStore {
            client,
            connection: Some(connection),
            known: known.unwrap_or(0),
        })
    }
}

fn connect(client: &Client) -> redis::RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(REDIS_TIMEOUT)?;
    connection.set_read_timeout(Some(REDIS_TIMEOUT))?;
    connection.set_write_timeout(Some(REDIS_TIMEOUT))?;
    Ok(connection)
}

impl Store for RedisStore {
    /// Adds what came since the last save, so that several instances share one key. Where the
    /// key is gone, it begins again with what was known of it.
    fn save(&mut self, count: u64) -> anyhow::Result<i64> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.client)?,
        };
        let (total,): (u64,) = redis::pipe()
            .atomic()
            .cmd("SET")
            .arg(KEY)
            .arg(self.known)
            .arg("NX")
            .ignore()
            .cmd("INCRBY")
            .arg(KEY)
            .arg(count - self.known)
            .query(&mut connection)?;
        // Only a connection that has answered is used again.
        self.connection = Some(connection);
        self.known = total;
        Ok(total as i64 - count as i64)
    }
}
