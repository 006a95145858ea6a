//! Where the connections of `prony load` go: as the URL says, or as `--resolve` and `--connect-to` do, in curl's words.
//! Not for: connecting.

use std::net::{IpAddr, SocketAddr};

use anyhow::bail;
use clap::Args;
use prony_load::prepare::LoadUrl;

use crate::typed::{connections, positive};

/// Requests outstanding on a connection at the most.
const DEPTH_MAX: u32 = 1_000;

/// Words about connections: how long they last, where they go, where they come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct WayWords {
    /// Open another connection for each request, and say so with `Connection: close`
    #[arg(
        long,
        conflicts_with = "requests_per_connection",
        alias = "disable-keepalive"
    )]
    pub no_keepalive: bool,
    /// HTTP/1.1: send this many requests on a connection without waiting for the first one's answer
    #[arg(long, value_name = "N", value_parser = depth, conflicts_with_all = ["no_keepalive", "requests_per_connection"])]
    pub pipeline: Option<u32>,
    /// Speak HTTP/2: agreed by ALPN over https://, by prior knowledge over http://
    #[arg(long, conflicts_with_all = ["pipeline", "no_keepalive", "requests_per_connection"])]
    pub http2: bool,
    /// HTTP/2: requests that are outstanding on each connection [default: 1]
    #[arg(long, value_name = "N", value_parser = depth, requires = "http2", alias = "max-concurrent-streams")]
    pub streams: Option<u32>,
    /// Close a connection after this many answers and open another
    #[arg(long, value_name = "N", value_parser = positive)]
    pub requests_per_connection: Option<u64>,
    /// Connect to ADDR where the URL names this host and port; several addresses are used in turn
    #[arg(long, value_name = "HOST:PORT:ADDR[,ADDR…]", value_parser = resolved)]
    pub resolve: Vec<ResolvedHost>,
    /// Connect to the second host and port where the URL names the first; what is sent names the first
    #[arg(long, value_name = "HOST:PORT:HOST:PORT", value_parser = instead)]
    pub connect_to: Vec<Instead>,
    /// Connect from this address of this machine; may be repeated, and is then used in turn: each has ports for some 28 k
    /// connections to one server, or as many as net.ipv4.ip_local_port_range has
    #[arg(long, value_name = "ADDR")]
    pub source: Vec<IpAddr>,
}

/// A host and port, and the addresses at which they are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResolvedHost {
    host: String,
    port: u16,
    addresses: Vec<IpAddr>,
}

/// A host and port, and those to connect to in their place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Instead {
    host: String,
    port: u16,
    to: (String, u16),
}

/// Reads `HOST:PORT:ADDR[,ADDR…]`.
fn resolved(text: &str) -> Result<ResolvedHost, String> {
    let (host, rest) = host(text)?;
    let (port, addresses) = rest.split_once(':').ok_or_else(|| {
        "it has three parts: HOST:PORT:ADDR, such as example.org:443:127.0.0.1".to_owned()
    })?;
    let address = |text: &str| {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let wrong = |_| format!("`{text}` is not an address such as 127.0.0.1 or [::1]");
        bare.parse().map_err(wrong)
    };
    Ok(ResolvedHost {
        host,
        port: port_of(port)?,
        addresses: addresses
            .split(',')
            .map(address)
            .collect::<Result<_, _>>()?,
    })
}

/// Reads `HOST:PORT:HOST:PORT`.
fn instead(text: &str) -> Result<Instead, String> {
    let parts = "it has four parts: HOST:PORT:HOST:PORT, such as example.org:443:127.0.0.1:8443";
    let (from, rest) = host(text)?;
    let (port, rest) = rest.split_once(':').ok_or(parts)?;
    let (to, to_port) = host(rest).map_err(|_| parts)?;
    Ok(Instead {
        host: from,
        port: port_of(port)?,
        to: (to, port_of(to_port)?),
    })
}

/// A host, brackets removed, and what follows its colon.
fn host(text: &str) -> Result<(String, &str), String> {
    let split = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:"),
        None => text.split_once(':'),
    };
    match split {
        Some((host, rest)) if !host.is_empty() => Ok((host.to_ascii_lowercase(), rest)),
        _ => Err("it begins with HOST:PORT:, an IPv6 address in brackets".to_owned()),
    }
}

fn port_of(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a port from 1 to 65535")),
        Ok(port) => Ok(port),
    }
}

fn depth(text: &str) -> Result<u32, String> {
    let depth = connections(text)?;
    match depth <= DEPTH_MAX {
        true => Ok(depth),
        false => Err(format!("at most {DEPTH_MAX}")),
    }
}

/// Where connections of a load on `url` go, in turn; at least one.
pub fn addresses(url: &LoadUrl, words: &WayWords) -> anyhow::Result<Vec<SocketAddr>> {
    let is_of = |host: &str, port| host.eq_ignore_ascii_case(&url.host) && port == url.port;
    let mut place = (url.host.clone(), url.port);
    if let Some(instead) = words
        .connect_to
        .iter()
        .find(|one| is_of(&one.host, one.port))
    {
        place.clone_from(&instead.to);
    } else if !words.connect_to.is_empty() {
        let (host, port) = (&url.host, url.port);
        bail!(
            "no --connect-to is for {host}:{port}, which `{}` names",
            url.text
        );
    }
    let of_place =
        |one: &&ResolvedHost| one.host.eq_ignore_ascii_case(&place.0) && one.port == place.1;
    if let Some(resolved) = words.resolve.iter().find(of_place) {
        let with_port = |&address| SocketAddr::new(address, resolved.port);
        return Ok(resolved.addresses.iter().map(with_port).collect());
    }
    if !words.resolve.is_empty() {
        bail!("no --resolve is for {}:{}", place.0, place.1);
    }
    let there = LoadUrl {
        host: place.0,
        port: place.1,
        ..url.clone()
    };
    Ok(vec![there.resolve()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> WayWords {
        WayWords {
            no_keepalive: false,
            pipeline: None,
            http2: false,
            streams: None,
            requests_per_connection: None,
            resolve: Vec::new(),
            connect_to: Vec::new(),
            source: Vec::new(),
        }
    }

    fn found(url: &str, words: &WayWords) -> String {
        let url = LoadUrl::parse(url).unwrap();
        match addresses(&url, words) {
            Ok(addresses) => format!("{addresses:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn connections_go_where_they_are_told_in_curls_words() {
        assert_eq!(found("http://127.0.0.1:81/", &words()), "[127.0.0.1:81]");
        assert_eq!(found("http://[::1]:81/", &words()), "[[::1]:81]");
        let mut resolving = words();
        resolving.resolve = vec![resolved("A.test:443:127.0.0.2,[::1]").unwrap()];
        assert_eq!(
            found("https://a.TEST/", &resolving),
            "[127.0.0.2:443, [::1]:443]"
        );
        assert_eq!(
            found("https://b.test/", &resolving),
            "no --resolve is for b.test:443"
        );
        let mut connecting = words();
        connecting.connect_to = vec![instead("a.test:443:[::1]:8443").unwrap()];
        assert_eq!(found("https://a.test/", &connecting), "[[::1]:8443]");
        let refused = "no --connect-to is for a.test:444, which `https://a.test:444/` names";
        assert_eq!(found("https://a.test:444/", &connecting), refused);
        // First the one, then the other.
        connecting.connect_to = vec![instead("a.test:443:b.test:8443").unwrap()];
        connecting.resolve = vec![resolved("b.test:8443:127.0.0.3").unwrap()];
        assert_eq!(found("https://a.test/", &connecting), "[127.0.0.3:8443]");
    }

    #[test]
    fn what_is_no_way_says_why() {
        for wrong in [
            "",
            "a",
            "a:1",
            ":1:127.0.0.1",
            "a:0:127.0.0.1",
            "a:1:b",
            "a:x:127.0.0.1",
            "[::1:2:3",
        ] {
            assert!(resolved(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "",
            "a",
            "a:1",
            "a:1:b",
            "a:1:b:",
            "a:1:b:0",
            "a:1::2",
            "a:99999:b:1",
        ] {
            assert!(instead(wrong).is_err(), "{wrong}");
        }
    }
}
