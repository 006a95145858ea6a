//! `prony host`: web applications in Lua.

use anyhow::{Context as _, anyhow};
use clap::Args;
use prony_base::typed::size;
use prony_host::LuaLimits;
use prony_host::choice::{Version, configured};
use prony_hosting::{Ended, Words, alone, supervise};

use crate::lua54::{self, PROGRAM, Typed, advise};
use prony_program::{Ending, Streams};

/// `prony host`
#[derive(Debug, Args)]
#[command(after_help = SIGNALS)]
pub struct HostWords {
    #[command(flatten)]
    hosting: Words,
    /// Memory that the application of one worker may use
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse_positive)]
    memory_max: u64,
    /// Which Lua [default: what config.toml beside the application says ([host] lua), else jit]
    #[arg(long, value_name = "LUA", value_enum)]
    lua: Option<Typed>,
}

const SIGNALS: &str = "\
Signals: SIGTERM and SIGINT finish the requests in flight and exit (within --graceful-timeout), a second \
one exits at once; SIGHUP replaces all workers without losing a request, and keeps the old ones if the \
application can no longer be loaded. SIGTERM to a worker replaces that one.

Exit codes: 0 ended by a signal; 2 wrong usage, an address that is in use, or an application that \
cannot be loaded (the text says where); 130 ended at once.

Example: prony host --workers 4 --static ./static --access-log - docs.app:app 8080";

/// Serves until SIGTERM or SIGINT.
pub fn run(words: &HostWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let limits = serde_json::to_value(LuaLimits {
        memory_max: words.memory_max,
    })?;
    let settings = words
        .hosting
        .resolve(limits)
        .map_err(|wrong| anyhow!(wrong))?;
    let configured_lua =
        configured(&settings.application, &settings.path).map_err(anyhow::Error::msg)?;
    let version = lua54::decide(words.lua, configured_lua, streams);
    let ended = match (version, settings.workers) {
        (Version::Jit, 0) => alone(settings, prony_host::load, streams.out),
        (Version::Lua54, 0) => {
            let settings = serde_json::to_string(&settings)?;
            return Err(PROGRAM.become_it(&PROGRAM.path()?, ["alone", &settings]));
        }
        (Version::Jit, _) => {
            let program = std::env::current_exe().context("cannot find this program")?;
            let worker = [program.into(), "__host-worker".into()];
            supervise(settings, &worker, streams.out, streams.err)
        }
        (Version::Lua54, _) => {
            let worker = [PROGRAM.path()?.into(), "worker".into()];
            supervise(settings, &worker, streams.out, streams.err)
        }
    };
    if let (Version::Jit, Err(why)) = (version, &ended) {
        advise(why, streams);
    }
    Ok(match ended? {
        Ended::Gracefully => Ending::Done,
        Ended::AtOnce => Ending::Interrupted,
    })
}

/// A worker's life, started by [`run`].
pub fn work() -> Ending {
    match prony_hosting::work(prony_host::load) {
        0 => Ending::Done,
        _ => Ending::Failed,
    }
}
