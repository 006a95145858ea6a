//! What the environment says.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use ntex::http::KeepAlive;
use ntex::time::Seconds;

pub struct Settings {
    pub address: String,
    pub workers: usize,
    pub keep_alive: KeepAlive,
    pub messages: Messages,
    pub backend: Backend,
    pub sync_every: Duration,
}

pub enum Backend {
    None,
    File(PathBuf),
    Redis(String),
}

/// How a click is read and its answer made.
#[derive(Clone, Copy)]
pub struct Messages {
    /// Whether a click is two bytes, the higher one first, not digits.
    pub is_binary: bool,
    /// Whether the answer is written into its value, not into memory that is asked for.
    pub is_inline: bool,
}

impl Settings {
    pub fn from_env() -> anyhow::Result<Settings> {
        Ok(Settings {
            address: var("SERVER_ADDRESS", "127.0.0.1:8080")?,
            workers: workers()?,
            keep_alive: keep_alive()?,
            messages: messages()?,
            backend: backend()?,
            sync_every: duration("CLICKY_SYNC_FREQUENCY", "1s")?,
        })
    }
}

fn var(name: &str, usual: &str) -> anyhow::Result<String> {
    match std::env::var(name) {
        Ok(value) => Ok(value),
        Err(std::env::VarError::NotPresent) => Ok(usual.to_owned()),
        Err(error) => Err(error).context(name.to_owned()),
    }
}

fn workers() -> anyhow::Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = var("CLICKY_THREADS", &cores.to_string())?.parse();
    match workers {
        Ok(workers) if workers > 0 => Ok(workers),
        _ => bail!("CLICKY_THREADS is not a number from 1"),
    }
}

fn duration(name: &str, usual: &str) -> anyhow::Result<Duration> {
    let typed = var(name, usual)?;
    match humantime::parse_duration(&typed) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => bail!("{name} is not a time such as 500ms, 1s or 2m: {typed}"),
    }
}

fn keep_alive() -> anyhow::Result<KeepAlive> {
    Ok(match var("CLICKY_KEEP_ALIVE", "os")?.as_str() {
        "os" => KeepAlive::Os,
        "off" => KeepAlive::Disabled,
        _ => {
            let whole = duration("CLICKY_KEEP_ALIVE", "os")?.as_secs();
            KeepAlive::Timeout(Seconds(u16::try_from(whole)?.max(1)))
        }
    })
}

fn messages() -> anyhow::Result<Messages> {
    Ok(match var("CLICKY_MESSAGES", "text")?.as_str() {
        "text" => Messages {
            is_binary: false,
            is_inline: false,
        },
        "inline" => Messages {
            is_binary: false,
            is_inline: true,
        },
        "binary" => Messages {
            is_binary: true,
            is_inline: true,
        },
        other => bail!("CLICKY_MESSAGES is text, inline or binary, not {other}"),
    })
}

fn backend() -> anyhow::Result<Backend> {
    Ok(match var("CLICKY_BACKEND", "file")?.as_str() {
        "none" => Backend::None,
        "file" => Backend::File(var("CLICKY_COUNTER_FILE", "clicky.txt")?.into()),
        "redis" => Backend::Redis(var("CLICKY_REDIS_URL", "redis://127.0.0.1:6379")?),
        other => bail!("CLICKY_BACKEND is none, file or redis, not {other}"),
    })
}
