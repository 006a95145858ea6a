//! Which driver the event loops run on: `PRONY_DRIVER`, else the best that is allowed.

use anyhow::bail;

/// The driver that the environment asks for: `auto`, `ring` or `epoll`.
pub fn chosen() -> anyhow::Result<String> {
    match std::env::var("PRONY_DRIVER") {
        Err(_) => Ok("auto".to_owned()),
        Ok(name) if ["auto", "ring", "epoll"].contains(&name.as_str()) => Ok(name),
        Ok(other) => bail!("PRONY_DRIVER is `{other}`; it may be `ring`, `epoll` or `auto`"),
    }
}
