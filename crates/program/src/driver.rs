//! Which driver the event loops run on: `PRONY_DRIVER`, else the best that is allowed.

use anyhow::bail;
use prony_engine::{Config, DriverChoice, run};

/// The driver that the environment asks for: `auto`, `ring` or `epoll`.
pub fn chosen() -> anyhow::Result<String> {
    match std::env::var("PRONY_DRIVER") {
        Err(_) => Ok("auto".to_owned()),
        Ok(name) if ["auto", "ring", "epoll"].contains(&name.as_str()) => Ok(name),
        Ok(other) => bail!("PRONY_DRIVER is `{other}`; it may be `ring`, `epoll` or `auto`"),
    }
}

/// The driver that this machine gives for the one chosen, with the reason where it is not
/// the ring: `ring`, `epoll (as PRONY_DRIVER asks)`, `epoll (io_uring is …)`.
pub fn in_force() -> anyhow::Result<String> {
    let chosen = chosen()?;
    let driver: DriverChoice = chosen.parse().map_err(anyhow::Error::msg)?;
    let config = Config {
        driver,
        ..Config::default()
    };
    let given = run(&config, |handle| async move {
        let why = handle.fallback().map(|why| format!(" ({why})"));
        (handle.driver().to_string(), why.unwrap_or_default())
    });
    let (name, why) = given?;
    let asked = if chosen == "epoll" {
        " (as PRONY_DRIVER asks)"
    } else {
        ""
    };
    Ok(format!("{name}{asked}{why}"))
}
