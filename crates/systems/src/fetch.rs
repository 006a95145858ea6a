//! `prony fetch`: one or many downloads with the client library.
//!
//! The words become jobs (`plan`) and settings of the client (`client`); a pool (`pool`) runs
//! a download for each (`download`), into a file that has its name only when it is whole
//! (`file`). Not for: load, which `prony load` makes.

mod bars;
mod checksum;
mod client;
mod download;
mod fault;
mod file;
mod name;
mod plan;
mod pool;
mod range;
mod show;
pub mod words;

use std::rc::Rc;

use anyhow::Context as _;
use prony_client::Client;
use prony_engine::{Config, DriverChoice};

use self::pool::DownloadPool;
use self::show::Show;
use self::words::FetchWords;
use prony_program::signals::interruption;
use prony_program::{Ending, Streams};

/// What one receive takes at most: fewer and longer pieces make downloads cheaper.
const RECV_BUFFER_BYTES: u32 = 256 << 10;
/// Buffers of this size, for all connections; one that finds none gets one of its own.
const RECV_BUFFERS: u32 = 128;
/// Buffers that one connection may fill before the file has taken them.
const RECV_QUEUE_MAX: u32 = 4;

/// The driver: epoll unless the environment asks for another. Over a few busy connections there is
/// nothing to share a system call with, and a receive that the reader makes itself is the
/// cheaper one (docs/clients.md).
fn driver() -> anyhow::Result<DriverChoice> {
    let chosen = prony_program::driver::chosen()?
        .parse()
        .map_err(anyhow::Error::msg)?;
    Ok(match chosen {
        DriverChoice::Auto => DriverChoice::Epoll,
        chosen => chosen,
    })
}

/// Runs `prony fetch`.
pub fn run(words: &FetchWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let jobs = plan::jobs(words)?;
    let options = Rc::new(plan::options(words, &jobs)?);
    let settings = client::settings(words)?;
    let interrupted = interruption()?;
    let config = Config {
        driver: driver()?,
        recv_buffer_bytes: RECV_BUFFER_BYTES,
        recv_buffers: RECV_BUFFERS,
        recv_queue_max: RECV_QUEUE_MAX,
        connections_hint: words.parallel,
        ..Config::default()
    };
    let mut show = Show::new(words, jobs.len(), streams)?;
    let ran = prony_engine::run(&config, async |handle| {
        if let Some(why) = handle.fallback() {
            show.say(&format!("using epoll, not io_uring: {why}"));
        }
        let client = Client::new(&handle, settings);
        let pool = DownloadPool {
            handle,
            client: client.clone(),
            options,
            parallel: words.parallel as usize,
            interrupted,
            show: &mut show,
        };
        let ending = pool.fetch(jobs).await;
        keep_cookies(words, &client)?;
        ending
    });
    show.clear();
    match ran {
        Ok(ending) => ending,
        Err(error) => {
            writeln!(streams.err, "prony: the event loop cannot run: {error}")?;
            Ok(Ending::Failed)
        }
    }
}

fn keep_cookies(words: &FetchWords, client: &Client) -> anyhow::Result<()> {
    let (Some(file), Some(jar)) = (&words.cookie_file, client.cookies()) else {
        return Ok(());
    };
    let saved = jar.save(file, client::unix_seconds());
    saved.with_context(|| format!("cannot write cookies to {}", file.display()))
}
