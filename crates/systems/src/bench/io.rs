//! `prony bench io`: strategies of input and output, one by one.

mod table;

use std::env::VarError;
use std::fs::File;
use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use clap::ValueEnum as _;
use prony_bench::io::{Buffers, IoDone, IoError, IoOrder, Strategy, Version, run as download};
use prony_engine::Receive;

use super::figures::write_line;
use super::profile;
use super::words::{BuffersWord, HttpWord, IoWords, ReceiveWord, StrategyWord};
use prony_program::{Ending, Streams};

/// Buffer of one receive by default.
const BUFFER_BYTES: usize = 64 << 10;
/// The same of the ring, where few large buffers cost least: each completion has its price.
const RING_BUFFER_BYTES: usize = 1 << 20;
/// Buffers of its pool.
const RING_BUFFERS: u32 = 6;

/// Runs `prony bench io`.
pub fn run(words: &IoWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let mut order = resolve(words, &|name| std::env::var(name))?;
    let address = order.address;
    let host = address.ip().to_string();
    prony_load::target::check(&host, &[address.ip()], words.yes_i_own_this_host)?;
    if words.under.is_some() {
        profile::under()?;
    }
    for file in words.profile.iter().chain(&words.record_scheduling) {
        // Before anything takes its time.
        File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(file) = &words.profile {
        return profile::profiled(file, streams);
    }
    if let Some(file) = &words.record_scheduling
        && let Some(ending) = profile::scheduled(file, streams)?
    {
        return Ok(ending);
    }
    order.schedule.clone_from(&words.record_scheduling);
    let mut shown = Ok(());
    if !words.json {
        write!(streams.out, "{}", table::heading(&order))?;
        streams.out.flush()?;
    }
    let mut number = 0;
    let done = download(&order, &mut |run| {
        number += 1;
        if words.json || shown.is_err() {
            return;
        }
        shown = write!(streams.out, "{}", table::row(&number.to_string(), run))
            .and_then(|()| streams.out.flush());
    });
    let done = match done {
        Ok(done) => done,
        Err(wrong @ IoError::Order(_)) => bail!("{wrong}"),
        Err(error) => {
            writeln!(streams.err, "prony: {error}")?;
            return Ok(Ending::Failed);
        }
    };
    shown?;
    say(words, &done, streams)
}

fn say(words: &IoWords, done: &IoDone, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    if words.json {
        write_line(&done.line, None, streams)?;
    } else {
        write!(streams.out, "{}", table::rest(done))?;
    }
    let marked = words.under.iter().cloned();
    let marked = marked.chain(
        words
            .record_scheduling
            .iter()
            .map(|_| "a recorder".to_owned()),
    );
    for tool in marked {
        writeln!(
            streams.err,
            "prony: measured under {tool}: slower than without, not to be compared"
        )?;
    }
    for note in &done.notes {
        writeln!(streams.err, "prony: {note}")?;
    }
    for failure in &done.failures {
        writeln!(streams.err, "prony: {failure}")?;
    }
    let client = done.line.client.as_ref();
    match client.map_or(0, |client| client.failed) {
        0 => Ok(Ending::Done),
        failed => {
            let all = done.line.count + failed;
            writeln!(streams.err, "prony: {failed} of {all} downloads failed")?;
            Ok(Ending::Failed)
        }
    }
}

/// What is of other strategies would be typed in vain: who does so expects something of it.
fn refuse_what_is_of_others(words: &IoWords) -> anyhow::Result<()> {
    use StrategyWord::{Epoll, Poll, Ring, Threads};
    let name = |strategy: StrategyWord| {
        let value = strategy.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    };
    for (is_given, flag, of) in [
        (words.buffers.is_some(), "--buffers", &[Poll, Epoll][..]),
        (words.drain, "--drain", &[Poll, Epoll]),
        (words.ring_buffers.is_some(), "--ring-buffers", &[Ring]),
        (words.receive.is_some(), "--receive", &[Ring]),
        (
            words.vectored.is_some(),
            "--vectored",
            &[Threads, Poll, Epoll],
        ),
    ] {
        if is_given && !of.contains(&words.strategy) {
            let of: Vec<_> = of.iter().map(|&strategy| name(strategy)).collect();
            bail!(
                "{flag} is of the strategy {}, and means nothing to {}: leave it out",
                of.join(" or "),
                name(words.strategy)
            );
        }
    }
    Ok(())
}

/// The words, checked, with nothing left to default. `variable` reads the environment.
fn resolve(
    words: &IoWords,
    variable: &dyn Fn(&str) -> Result<String, VarError>,
) -> anyhow::Result<IoOrder> {
    let number = |name: &str| -> anyhow::Result<Option<u32>> {
        match variable(name) {
            Err(VarError::NotPresent) => Ok(None),
            Err(error) => Err(error).with_context(|| name.to_owned()),
            Ok(text) => {
                let number = text.trim().parse::<u32>().ok().filter(|&number| number > 0);
                match number {
                    Some(number) => Ok(Some(number)),
                    None => bail!("{name} is `{text}`; it must be a whole number from 1"),
                }
            }
        }
    };
    let connections = match words.connections {
        None => number("NO_CONNECTIONS")?.unwrap_or(100),
        Some(given) => given,
    };
    let iterations = match words.iterations {
        None => number("ITERATIONS")?.unwrap_or(1),
        Some(given) => given,
    };
    let payload_bytes = match words.payload_bytes {
        None => number("TEST_PAYLOAD")?.map(|mebibytes| u64::from(mebibytes) << 20),
        given => given,
    };
    refuse_what_is_of_others(words)?;
    Ok(IoOrder {
        path: words.path.clone(),
        version: match words.http {
            HttpWord::Http10 => Version::Http10,
            HttpWord::Http11 => Version::Http11,
        },
        connections,
        iterations,
        strategy: match words.strategy {
            StrategyWord::Threads => Strategy::Threads,
            StrategyWord::Poll => Strategy::Poll,
            StrategyWord::Epoll => Strategy::Epoll,
            StrategyWord::Ring => Strategy::Ring,
        },
        receive: match words.receive {
            None | Some(ReceiveWord::Multishot) => Receive::Multishot,
            Some(ReceiveWord::Oneshot) => Receive::OneShot,
        },
        buffer_bytes: match words.buffer {
            Some(bytes) => usize::try_from(bytes)?,
            None if matches!(words.strategy, StrategyWord::Ring) => RING_BUFFER_BYTES,
            None => BUFFER_BYTES,
        },
        buffers: match words.buffers {
            None | Some(BuffersWord::Shared) => Buffers::Shared,
            Some(BuffersWord::Own) => Buffers::Own,
        },
        drains: words.drain,
        ring_buffers: words.ring_buffers.unwrap_or(RING_BUFFERS),
        vectored: words.vectored.unwrap_or(1),
        discard: words.discard,
        spin: words.spin,
        payload_bytes,
        timeout: words.timeout,
        memory: !words.no_memory,
        ..IoOrder::new(SocketAddr::new(words.address, words.port))
    })
}

#[cfg(test)]
mod tests {
    use super::super::words::BenchCommand;
    use super::*;
    use crate::words::{SystemsCommand, SystemsLine};
    use clap::Parser as _;

    fn resolved(words: &str, environment: &[(&str, &str)]) -> anyhow::Result<IoOrder> {
        let words = format!("prony bench io 127.0.0.1 80 {words}");
        let typed = SystemsLine::try_parse_from(words.split_whitespace())?;
        let SystemsCommand::Bench(bench) = typed.command else {
            bail!("another command");
        };
        let Some(BenchCommand::Io(io)) = bench.other else {
            bail!("another bench");
        };
        resolve(&io, &|name| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found
                .map(|(_, value)| (*value).to_owned())
                .ok_or(VarError::NotPresent)
        })
    }

    #[test]
    fn the_originals_variables_count_where_no_option_is_given() {
        let environment = [
            ("NO_CONNECTIONS", "7"),
            ("ITERATIONS", "3"),
            ("TEST_PAYLOAD", "2"),
        ];
        let order = resolved("", &environment).unwrap();
        assert_eq!((order.connections, order.iterations), (7, 3));
        assert_eq!(order.payload_bytes, Some(2 << 20));
        let order = resolved("-c 9 -n 4 --payload-bytes 5KiB", &environment).unwrap();
        assert_eq!((order.connections, order.iterations), (9, 4));
        assert_eq!(order.payload_bytes, Some(5 << 10));
        let order = resolved("", &[]).unwrap();
        assert_eq!((order.connections, order.iterations), (100, 1));
        assert_eq!(order.payload_bytes, None);
    }

    #[test]
    fn a_variable_that_is_no_number_is_said() {
        let said = resolved("", &[("ITERATIONS", "many")]).unwrap_err();
        assert_eq!(
            said.to_string(),
            "ITERATIONS is `many`; it must be a whole number from 1"
        );
        assert!(resolved("-n 2", &[("ITERATIONS", "many")]).is_ok());
        assert!(resolved("", &[("NO_CONNECTIONS", "0")]).is_err());
    }

    #[test]
    fn every_axis_is_a_word() {
        let order = resolved(
            "--strategy ring --receive oneshot --buffer 256KiB --ring-buffers 8 --discard --spin --http 1.0 \
             --path /a --timeout 250ms --no-memory",
            &[],
        )
        .unwrap();
        assert_eq!(
            (order.strategy, order.receive),
            (Strategy::Ring, Receive::OneShot)
        );
        assert_eq!((order.buffer_bytes, order.ring_buffers), (256 << 10, 8));
        assert!(order.discard && order.spin && !order.memory);
        assert_eq!(
            (order.version, order.path.as_str()),
            (Version::Http10, "/a")
        );
        let order = resolved("-s ring", &[]).unwrap();
        assert_eq!((order.buffer_bytes, order.ring_buffers), (1 << 20, 6));
        let order = resolved("-s epoll --buffers own --drain --vectored 4 -b 4MiB", &[]).unwrap();
        assert_eq!(
            (order.strategy, order.buffers),
            (Strategy::Epoll, Buffers::Own)
        );
        assert_eq!((order.vectored, order.buffer_bytes), (4, 4 << 20));
        assert!(order.drains);
        assert!(resolved("-s threads --drain", &[]).is_err());
    }
}
