//! `prony agent`: one of several generators of a load.

use std::io;

use anyhow::bail;
use clap::Args;
use prony_agents::worker;

use crate::load::agents::greeting;
use crate::{Ending, Streams};

/// Words of `prony agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "`prony load --ssh HOST,…` starts it on each host, and ends it. It drives nothing but what its \
     controller says, and nothing for longer than that is there."
)]
pub struct AgentCommandWords {
    /// Take orders on standard input, and answer on standard output
    #[arg(long, required = true)]
    stdio: bool,
}

/// Runs `prony agent`.
pub fn run(_words: &AgentCommandWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    prony_program::children::raise_open_files();
    match worker::serve(io::stdin(), io::stdout(), greeting()) {
        Ok(()) => Ok(Ending::Done),
        Err(why) => {
            let _ = streams.err.flush();
            bail!("this agent has ended: {why}")
        }
    }
}
