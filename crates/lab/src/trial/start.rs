//! Where a subject listens and how it is started: placeholders and settings
//! resolved. Pure but for looking for a free port and a host's address.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};

use prony_record::{Source, Trial};

use crate::supervise::TrialOrder;
use crate::target::Target;

/// The port in a network of its own, where all are free.
const PORT: u16 = 8080;

/// Where the subject is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Where to connect.
    pub address: SocketAddr,
    /// What `Host` says.
    pub authority: String,
}

impl Place {
    /// Where the subject of `order` is or is to be.
    pub fn find(order: &TrialOrder, trial: &Trial) -> io::Result<Place> {
        if let Source::Url { url } = &order.subject.source {
            let target = Target::parse(url).map_err(io::Error::other)?;
            let authority = target.authority();
            let mut addresses = (target.host.as_str(), target.port).to_socket_addrs()?;
            let address = addresses
                .next()
                .ok_or_else(|| io::Error::other(format!("`{authority}` has no address")))?;
            return Ok(Place { address, authority });
        }
        let port = if trial.isolation.network_namespace {
            PORT
        } else {
            free_port()?
        };
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Ok(Place {
            address,
            authority: address.to_string(),
        })
    }
}

/// A port that nobody listens on. Another process may take it before the subject
/// does; the subject then fails to start, and says so.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// A command as it is executed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Resolved {
    /// Argument vector; empty: nothing is started.
    pub command: Vec<String>,
    /// Environment beside Prony's own.
    pub env: BTreeMap<String, String>,
    /// Folder that it runs in.
    pub dir: String,
}

/// The subject's command with its placeholders and the cell's settings put in.
pub fn resolve(order: &TrialOrder, place: &Place) -> Resolved {
    let dir = match &order.subject.source {
        Source::Folder { dir } | Source::Command { dir } => dir.clone(),
        Source::Url { .. } | Source::Unknown => String::new(),
    };
    let values = [
        ("{host}", place.address.ip().to_string()),
        ("{port}", place.address.port().to_string()),
        ("{threads}", order.subject.threads.to_string()),
        ("{dir}", dir.clone()),
        ("{build}", order.subject.build_dir.clone()),
        ("{work}", order.work_dir.display().to_string()),
        ("{prony}", order.prony.display().to_string()),
    ];
    let mut command: Vec<String> = order
        .subject
        .start
        .iter()
        .map(|word| fill(word, &values))
        .collect();
    let mut env: BTreeMap<String, String> = fill_all(&order.subject.env, &values);
    for setting in &order.settings {
        let Some(value) = order.cell.settings.get(&setting.name) else {
            continue;
        };
        let mut with_value = values.to_vec();
        with_value.push(("{value}", value.clone()));
        command.extend(setting.args.iter().map(|word| fill(word, &with_value)));
        env.extend(fill_all(&setting.env, &with_value));
    }
    Resolved { command, env, dir }
}

fn fill_all(
    texts: &BTreeMap<String, String>,
    values: &[(&str, String)],
) -> BTreeMap<String, String> {
    let filled = |(name, text): (&String, &String)| (name.clone(), fill(text, values));
    texts.iter().map(filled).collect()
}

/// Puts values in for placeholders, in one pass: a value that looks like a
/// placeholder stays as it is.
pub fn fill(text: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        match values.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, value)) => {
                filled.push_str(value);
                rest = &rest[name.len()..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_looks_like_a_placeholder_is_not_filled_again() {
        let values = [
            ("{dir}", "/a/{port}".to_owned()),
            ("{port}", "80".to_owned()),
        ];
        assert_eq!(
            fill("{dir}:{port} {other} {", &values),
            "/a/{port}:80 {other} {"
        );
    }
}
