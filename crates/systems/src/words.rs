//! The words of the command line, as they are typed after `prony`.

use clap::{Parser, Subcommand};

use crate::bench::words::BenchWords;
use crate::fetch::words::FetchWords;
use crate::host::HostWords;
use crate::lua::LuaWords;

/// What is measured beside servers: the works of the runtime, hosts, the client
#[derive(Debug, Parser)]
#[command(
    name = "prony-systems",
    bin_name = "prony",
    version,
    max_term_width = 100
)]
pub struct SystemsLine {
    /// What to do.
    #[command(subcommand)]
    pub command: SystemsCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum SystemsCommand {
    /// Measure one thing by itself: a work of the runtime, I/O strategies, the client
    Bench(BenchWords),
    /// Fetch URLs to files, with the client library
    Fetch(FetchWords),
    /// Host a web application in Lua
    Host(HostWords),
    /// Run a Lua file with the host's framework, such as the tests of an application
    Lua(LuaWords),
    /// A worker of a host: its supervisor at the other end of standard input
    #[command(name = "__host-worker", hide = true)]
    HostWorker,
    /// These words, as data
    #[command(name = "__words", hide = true)]
    Words,
}
