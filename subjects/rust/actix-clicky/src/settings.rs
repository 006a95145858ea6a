//! What the environment says.

use std::path::PathBuf;
use std::time::Duration;

use actix_web::http::KeepAlive;
use anyhow::{Context, bail};

pub struct Settings {
    pub address: String,
    pub workers: usize,
    pub keep_alive: KeepAlive,
    /// Whether clicks are added to a static, not to what a request is handed.
    pub is_global: bool,
    pub backend: Backend,
    pub sync_every: Duration,
}

pub enum Backend {
    None,
    File(PathBuf),
    Redis(String),
}

impl Settings {
    pub fn from_env() -> anyhow::Result<Settings> {
        Ok(Settings {
            address: var("SERVER_ADDRESS", "127.0.0.1:8080")?,
            workers: workers()?,
            keep_alive: keep_alive()?,
            is_global: is_global()?,
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
        _ => KeepAlive::Timeout(duration("CLICKY_KEEP_ALIVE", "os")?),
    })
}

fn is_global() -> anyhow::Result<bool> {
    Ok(match var("CLICKY_COUNTER", "data")?.as_str() {
        "data" => false,
        "global" => true,
        other => bail!("CLICKY_COUNTER is data or global, not {other}"),
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
