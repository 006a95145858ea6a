//! `prony load -s FILE`: a Lua script of wrk's.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use prony_base::Nanos;
use prony_base::typed::{duration, size};
use prony_load::form::head_and_body;
use prony_load::prepare::LoadUrl;
use prony_load::{LoadError, LoadResult, LoadSpec, Observer};
use prony_script::{ScriptSettings, Scripted};

use crate::Streams;

/// Words about a script.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scripts")]
pub struct ScriptWords {
    /// Run this Lua script of wrk's: setup, init, delay, request, response, done. HTTP/1.1 only
    #[arg(short = 's', long, value_name = "FILE", conflicts_with_all = ["requests_file", "data", "order", "find_max", "pipeline", "http2",
        "cookies", "expect_continue", "chunked", "http10", "proxy", "scenario", "print_request", "debug", "follow", "compressed"])]
    pub script: Option<PathBuf>,
    /// Longest time that one call into the script may take
    #[arg(long, value_name = "T", default_value = "10s", requires = "script", value_parser = duration::parse_positive)]
    pub script_timeout: Nanos,
    /// Memory that the script may have, for each thread
    #[arg(long, value_name = "SIZE", default_value = "512MiB", requires = "script", value_parser = size::parse_positive)]
    pub script_memory: u64,
    /// Given to the script's init
    #[arg(last = true, value_name = "ARG", requires = "script")]
    pub script_args: Vec<String>,
}

/// Sets the script of the words up, if there is one, and gives `spec` what it says of connections.
///
/// `is_quiet`: standard output has something else than what it prints; `is_owned`: it may be load on any host.
pub fn prepare(
    words: &ScriptWords,
    urls: &[String],
    (is_quiet, is_owned): (bool, bool),
    spec: &mut LoadSpec,
) -> anyhow::Result<Option<Scripted>> {
    let Some(file) = &words.script else {
        return Ok(None);
    };
    let [text] = urls else {
        bail!("--script takes one URL: the script says what else is requested");
    };
    if spec.has_fields {
        bail!("fields such as `{{counter}}` are not filled in where a script writes the requests");
    }
    let url = LoadUrl::parse(text)?;
    let first = spec.requests.first().context("a URL makes a request")?;
    let (headers, body) = taken_apart(&first.bytes);
    let targets = std::iter::once(&spec.target).chain(&spec.further);
    let addresses = targets.map(|target| target.address.parse());
    let settings = ScriptSettings {
        file: file.clone(),
        args: [text]
            .into_iter()
            .chain(&words.script_args)
            .cloned()
            .collect(),
        scheme: if url.is_secure { "https" } else { "http" }.to_owned(),
        port: url
            .authority
            .ends_with(&format!(":{}", url.port))
            .then(|| url.port.to_string()),
        host: url.host,
        authority: url.authority,
        path: url.path,
        method: first.method.clone(),
        headers,
        body,
        threads: spec.threads,
        addresses: addresses.collect::<Result<_, _>>()?,
        call_max: words.script_timeout.into(),
        memory_max: usize::try_from(words.script_memory).unwrap_or(usize::MAX),
        is_quiet,
    };
    let scripted = Scripted::new(&settings).map_err(|why| anyhow!(why))?;
    let all: Vec<_> = scripted
        .addresses()
        .iter()
        .map(std::net::SocketAddr::ip)
        .collect();
    prony_load::target::check(&settings.host, &all, is_owned)?;
    if scripted.has_delay() && spec.pace.is_open() {
        bail!("delay() says when requests start, and so does --rate: leave one of them out");
    }
    if scripted.depth() > 1 && spec.pace.is_open() {
        bail!(
            "request() returns several requests at once, which cannot start one by one: leave --rate out"
        );
    }
    (spec.depth, spec.has_fields) = (scripted.depth(), false);
    Ok(Some(scripted))
}

/// Headers and body of a request of ours, without what the script writes itself.
fn taken_apart(request: &[u8]) -> (Vec<(String, String)>, Option<Vec<u8>>) {
    let (head, body) = head_and_body(request);
    let head = String::from_utf8_lossy(head);
    let headers = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "));
    let headers = headers.filter(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let body = (!body.is_empty()).then(|| body.to_vec());
    (headers.collect(), body)
}

/// Runs a load, by its script if it has one. Where that fails, `observer` ends the run, which is no interruption.
pub fn run(
    spec: &LoadSpec,
    scripted: Option<&Scripted>,
    observer: &mut dyn Observer,
) -> Result<LoadResult, LoadError> {
    let Some(scripted) = scripted else {
        return prony_load::run(spec, observer);
    };
    let outcome = prony_load::run_by(spec, scripted, observer);
    outcome.map(|mut outcome| {
        outcome.interrupted &= !scripted.has_failed();
        outcome
    })
}

/// Calls the script's `done`, and says where it failed, then or in the run; without a script there is nothing to say. `is_quiet`: standard
/// output has something else.
pub fn end(
    scripted: Option<&Scripted>,
    outcome: &LoadResult,
    is_quiet: bool,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<String>> {
    let Some(scripted) = scripted else {
        return Ok(None);
    };
    // The script prints by itself, after all that was printed so far.
    streams.out.flush()?;
    let failure = scripted.failure().or_else(|| scripted.done(outcome).err());
    if let Some(failure) = &failure {
        match is_quiet {
            true => writeln!(streams.err, "prony: {failure}")?,
            false => writeln!(streams.out, "Script:       {failure}")?,
        }
    }
    Ok(failure)
}
