//! `prony host`: web applications in Lua.

use anyhow::anyhow;
use clap::Args;
use prony_base::typed::size;
use prony_host::Own;
use prony_hosting::{Words, alone};

use crate::{Ending, Streams};

/// `prony host`
#[derive(Debug, Args)]
pub struct HostWords {
    #[command(flatten)]
    hosting: Words,
    /// Memory that the application of one worker may use
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse_positive)]
    memory_max: u64,
}

/// Serves until SIGTERM or SIGINT.
pub fn run(words: &HostWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let own = serde_json::to_value(Own {
        memory_max: words.memory_max,
    })?;
    let settings = words.hosting.resolve(own).map_err(|wrong| anyhow!(wrong))?;
    alone(settings, prony_host::load, streams.out)?;
    Ok(Ending::Done)
}
