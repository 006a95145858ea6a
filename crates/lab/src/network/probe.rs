//! Whether a machine can have a network: by making it once, as a trial would.
//!
//! Not for: making it for a trial ([`super::Network`]).

use std::path::Path;

use prony_base::Nanos;
use prony_record::PlannedNetwork;

use super::tools::{self, Refusal};
use crate::launch::Wanted;
use crate::supervise::{Order, Report, Supervisor};

/// How long it may take.
const TIMEOUT: Nanos = Nanos::from_secs(20);

/// Whether this machine can have `network` in a trial; `None`: it can. `prony`: its binary;
/// `offered`: the namespaces that trials have ([`crate::supervise::offer`]).
pub fn refusal(network: &PlannedNetwork, prony: &Path, offered: Wanted) -> Option<Refusal> {
    let name = &network.name;
    tried(network, prony, offered).map(|refusal| Refusal {
        reason: format!("the network `{name}` cannot be made: {}", refusal.reason),
        ..refusal
    })
}

fn tried(network: &PlannedNetwork, prony: &Path, offered: Wanted) -> Option<Refusal> {
    if !offered.network {
        let reason = "namespaces are not allowed here";
        let remedy = "run it as root, or: sysctl -w user.max_user_namespaces=1000";
        return Some(Refusal {
            reason: reason.to_owned(),
            remedy: remedy.to_owned(),
        });
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut tools = ["ip", "tc"].into_iter();
    if let Some(tool) = tools.find(|tool| tools::find(tool, &path).is_none()) {
        return Some(tools::missing(tool));
    }
    let order = Order::Network(network.clone());
    let mut supervisor = match Supervisor::start(prony, offered, order) {
        Ok(supervisor) => supervisor,
        Err(error) => return Some(Refusal::new(error.to_string())),
    };
    match supervisor.next(TIMEOUT.into()) {
        Ok(Some(Report::Tried { refusal })) => refusal,
        Ok(Some(_)) => Some(Refusal::new("the supervisor did not say whether it could")),
        Ok(None) => Some(Refusal::new(format!("it was not made within {TIMEOUT}"))),
        Err(error) => Some(Refusal::new(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gigabit() -> PlannedNetwork {
        PlannedNetwork {
            name: "gigabit".to_owned(),
            rate_bits_per_s: Some(1_000_000_000),
            mtu: 1_500,
            ..PlannedNetwork::default()
        }
    }

    #[test]
    fn without_namespaces_there_is_no_network() {
        let refusal = refusal(&gigabit(), Path::new("/nowhere"), Wanted::default());
        let refusal = refusal.expect("it cannot be had");
        let reason = "the network `gigabit` cannot be made: namespaces are not allowed here";
        assert_eq!(refusal.reason, reason);
        assert!(refusal.remedy.contains("root"));
    }

    #[test]
    fn a_supervisor_that_cannot_be_started_is_a_reason() {
        let [strongest, ..] = Wanted::BY_STRENGTH;
        let refusal = refusal(&gigabit(), Path::new("/nowhere/prony"), strongest);
        let reason = refusal.expect("it cannot be had").reason;
        assert!(
            reason.starts_with("the network `gigabit` cannot be made: "),
            "{reason}"
        );
    }
}
