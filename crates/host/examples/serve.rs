//! Serves an application in this process, with the options that all hosts have: the host
//! without its command, for looking at what a request costs.

use std::io;

use clap::Parser;
use prony_host::LuaLimits;
use prony_hosting::{Words, alone};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    words: Words,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = serde_json::to_value(LuaLimits {
        memory_max: 256 << 20,
    })?;
    let settings = Line::parse().words.resolve(own)?;
    alone(settings, prony_host::load, &mut io::stdout())?;
    Ok(())
}
