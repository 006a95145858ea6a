//! The defaults of each tool, and what depends on several flags together.

use prony_base::Nanos;

use super::actions::follow;
use super::translation::Translation;

/// Threads of wrk and wrk2, if no others are given.
const THREADS_OF_WRK: u64 = 2;
const AGENT_OF_HEY: &str = "hey/0.0.1";

/// Completes what the flags of a command say.
///
/// # Errors
/// The tool would refuse the command, or it has no counterpart.
pub fn finish(to: &mut Translation) -> Result<(), String> {
    match to.tool() {
        "wrk2" if to.rate.is_none() => Err("wrk2 needs -R".to_owned()),
        "wrk" | "wrk2" => wrk(to),
        "hey" => hey(to),
        "ab" => ab(to),
        "oha" => oha(to),
        "h2load" => h2load(to),
        "vegeta" => vegeta(to),
        "fortio" => fortio(to),
        _ => curl(to),
    }
}

/// Connections, and requests or else a length, where none are given; and a time-out, where zero is none.
fn defaults(
    to: &mut Translation,
    connections: u64,
    requests: Option<u64>,
    duration: Option<Nanos>,
    timeout: Nanos,
) {
    to.connections.get_or_insert(connections);
    to.timeout.get_or_insert(timeout);
    if to.duration.is_none() {
        to.requests = to.requests.or(requests);
        to.duration = duration;
    } else if matches!(to.tool(), "hey" | "oha" | "h2load") {
        // A length stands above a number there.
        to.requests = None;
    }
}

/// The method of tools that send GET with a body, too.
fn get() -> String {
    "GET".to_owned()
}

/// The codings that Go's client requests by default.
fn compressed_of_go(to: &mut Translation) {
    let is_own = to.given("Range").is_some() || to.method.as_deref() == Some("HEAD");
    if !to.no_compression && !is_own {
        to.sends(&[("Accept-Encoding", "gzip")]);
    }
}

fn wrk(to: &mut Translation) -> Result<(), String> {
    let duration = Some(Nanos::from_secs(10));
    defaults(to, 10, None, duration, Nanos::from_secs(2));
    to.insecure = true;
    // It opens as many on each thread, and leaves the rest out.
    let threads = to.threads.unwrap_or(THREADS_OF_WRK).max(1);
    to.connections = to.connections.map(|all| match all % threads {
        rest if rest < all => all - rest,
        _ => all,
    });
    if to.script.is_some() {
        to.script_args = to.urls.split_off(to.urls.len().min(1));
    }
    Ok(())
}

fn hey(to: &mut Translation) -> Result<(), String> {
    defaults(to, 50, Some(200), None, Nanos::from_secs(20));
    to.follow.get_or_insert(9);
    to.insecure = true;
    // Each connection sends as many, and the rest is left out.
    let connections = to.connections.unwrap_or(1).max(1);
    if let Some(requests) = &mut to.requests {
        if *requests < connections {
            return Err("hey wants -n to be no less than -c".to_owned());
        }
        *requests -= *requests % connections;
    }
    to.method = Some(to.method.take().map_or_else(get, |of| of.to_uppercase()));
    to.content_type.get_or_insert("text/html".to_owned());
    let agent = match to.given("User-Agent") {
        Some(given) => format!("{given} {AGENT_OF_HEY}"),
        None => AGENT_OF_HEY.to_owned(),
    };
    to.only_header("User-Agent", agent);
    compressed_of_go(to);
    to.http2 &= to.is_secure();
    to.on_one_connection();
    Ok(())
}

fn ab(to: &mut Translation) -> Result<(), String> {
    defaults(to, 1, Some(1), None, Nanos::from_secs(30));
    to.keep_alive.get_or_insert(false);
    to.insecure = true;
    to.http1_0 = true;
    if to.has_body {
        to.content_type.get_or_insert("text/plain".to_owned());
    }
    to.sends(&[("User-Agent", "ApacheBench/2.3"), ("Accept", "*/*")]);
    Ok(())
}

fn oha(to: &mut Translation) -> Result<(), String> {
    defaults(to, 50, Some(200), None, Nanos::ZERO);
    if !to.http2 {
        // oha takes it, and does nothing with it.
        to.depth = None;
    }
    to.method.get_or_insert_with(get);
    to.sends(&[("Accept", "*/*"), ("User-Agent", "oha/1.16.0")]);
    if !to.no_compression {
        to.sends(&[("Accept-Encoding", "gzip, compress, deflate, br")]);
    }
    Ok(())
}

fn h2load(to: &mut Translation) -> Result<(), String> {
    defaults(to, 1, Some(1), None, Nanos::ZERO);
    to.threads.get_or_insert(1);
    to.http2 = !to.http1;
    to.insecure = true;
    to.sends(&[("User-Agent", "h2load nghttp2/1.52.0")]);
    Ok(())
}

fn vegeta(to: &mut Translation) -> Result<(), String> {
    let has_limit = to.connections.is_some();
    defaults(to, 100, None, None, Nanos::from_secs(30));
    to.follow.get_or_insert(10);
    to.no_resumption = !to.session_tickets;
    to.http2 |= to.is_secure() && !to.http1;
    // A file of targets has headers of its own, which ours would replace.
    if to.requests_file.is_none() {
        let agent = match to.http2 {
            true => "Go-http-client/2.0",
            false => "Go-http-client/1.1",
        };
        to.sends(&[("User-Agent", agent)]);
        compressed_of_go(to);
    }
    to.on_one_connection();
    match to.rate {
        Some(0.0) if !has_limit => {
            return Err("vegeta wants -max-workers with -rate 0".to_owned());
        }
        Some(0.0) => to.rate = None,
        None => to.rate = Some(50.0),
        Some(_) => {}
    }
    match to.duration {
        None | Some(Nanos::ZERO) => Err("without -duration vegeta never ends: give one".to_owned()),
        Some(_) => Ok(()),
    }
}

fn curl(to: &mut Translation) -> Result<(), String> {
    match to.redirects_max.take().filter(|_| to.follow.is_some()) {
        None => {}
        Some(max) if max == "-1" => follow(to, "100")?,
        Some(max) if max == "0" => {
            return Err(
                "with --max-redirs 0 a redirect is an error: `--expect-status 2xx` says so"
                    .to_owned(),
            );
        }
        Some(max) => follow(to, &max)?,
    }
    to.sends(&[("User-Agent", "curl/7.88.1"), ("Accept", "*/*")]);
    to.drop_empty_headers();
    defaults(to, 10, None, None, Nanos::from_secs(10));
    Ok(())
}

fn fortio(to: &mut Translation) -> Result<(), String> {
    if let Some(url) = to.urls.first().filter(|url| url.contains("://"))
        && !url.starts_with("http://")
        && !url.starts_with("https://")
    {
        return Err(format!("HTTP is what is sent, and not `{url}`"));
    }
    count_of_fortio(to)?;
    to.timeout = to.timeout.filter(|timeout| *timeout > Nanos::ZERO);
    to.timeout.get_or_insert(Nanos::from_secs(3));
    if to.is_go_client {
        to.http1_0 = false;
    } else if to.http1_0 {
        to.keep_alive = Some(false);
    }
    to.content_type = to.content_type_first.take().or(to.content_type.take());
    if to.has_body {
        to.content_type
            .get_or_insert("application/octet-stream".to_owned());
    }
    if to.content_type.is_some() {
        to.method.get_or_insert("POST".to_owned());
    }
    to.sends(&[("User-Agent", "fortio.org/fortio-1.75.3")]);
    to.drop_empty("User-Agent");
    if to.asks_for_compressed && to.is_go_client {
        compressed_of_go(to);
    }
    to.resolve_to_address()
}

/// How many, over how many connections, how long and how often.
fn count_of_fortio(to: &mut Translation) -> Result<(), String> {
    let length = to.duration.unwrap_or(Nanos::from_secs(5));
    if to.rate_is_of_all {
        match to.requests {
            Some(requests) if length > Nanos::ZERO => {
                to.rate = Some(requests as f64 / length.as_secs_f64());
            }
            _ => return Err("it wants -n and -t with -calc-qps".to_owned()),
        }
    }
    to.rate = match to.rate {
        None => Some(8.0),
        Some(0.0) => None,
        given => given,
    };
    to.duration = match to.requests {
        Some(_) => None,
        None if length == Nanos::ZERO => {
            return Err("with -t 0 Fortio never ends: give a length".to_owned());
        }
        None => Some(length),
    };
    let mut connections = to.connections.filter(|&count| count > 0).unwrap_or(4);
    if let Some(rate) = to.rate {
        let all = to.requests.unwrap_or((rate * length.as_secs_f64()) as u64);
        connections = connections.min((all / 2).max(1));
    }
    to.connections = Some(connections);
    Ok(())
}
