//! What a network is made of, by arithmetic: burst, queues, the commands that make it, and
//! what a document calls it. Pure.
//!
//! Rates are limited by a token bucket (tbf) on both ends. Its *burst* is what may pass at
//! once after a pause: what the rate brings in 1 ms, so that a timer that is so late loses
//! nothing, and at least two packets. Its *queue* holds what the rate brings in 50 ms, and
//! at least 16 packets. What the kernel hands over as one packet, to be cut later (GSO), is
//! kept small enough to pass as one burst: tbf would cut a larger one itself, and the sender
//! would take what waits in the queue for sent, fill it and lose a third of its packets.
//!
//! Not for: running the commands ([`super::tools`]).

use std::net::Ipv4Addr;

use prony_record::PlannedNetwork;

/// The client's address.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 199, 0, 1);
/// The peer's address.
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 199, 0, 2);
/// The client's end of the pair.
const TO_PEER: &str = "to-peer";
/// The peer's end.
const TO_CLIENT: &str = "to-client";

/// Bytes of an Ethernet header, which tbf counts.
const HEADER_BYTES: u64 = 14;
/// What a burst lasts at the rate.
const BURST_US: u64 = 1_000;
const BURST_PACKETS_MIN: u64 = 2;
/// What a queue lasts at the rate.
const QUEUE_MS: u64 = 50;
const QUEUE_PACKETS_MIN: u64 = 16;
/// tc counts queues in 32 bits.
const QUEUE_BYTES_MAX: u64 = 2 << 30;
/// The largest GSO packet that the kernel makes of itself.
const GSO_BYTES_USUAL: u64 = 65_536;
/// Packets that may be under way in one direction where there is a delay.
const DELAYED_PACKETS: (u64, u64) = (1_000, 1_000_000);

/// One call of `ip` or `tc`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Step {
    /// Which.
    pub tool: &'static str,
    /// What it is told.
    pub arguments: Vec<String>,
    /// The kernel's queueing discipline that it asks for.
    pub discipline: Option<&'static str>,
}

impl Step {
    fn new(tool: &'static str, words: &str) -> Step {
        Step {
            tool,
            arguments: words.split_ascii_whitespace().map(str::to_owned).collect(),
            discipline: None,
        }
    }

    /// The command as one would type it.
    pub fn words(&self) -> String {
        format!("{} {}", self.tool, self.arguments.join(" "))
    }
}

/// A network, computed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shape {
    mtu: u32,
    limit: Option<Limit>,
    delay_ns: Option<u64>,
    delayed_packets_max: u64,
}

/// A token bucket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Limit {
    bits_per_s: u64,
    burst_bytes: u64,
    queue_bytes: u64,
}

impl Limit {
    fn new(bits_per_s: u64, frame_bytes: u64) -> Limit {
        let bytes_per_s = bits_per_s / 8;
        let burst = (bytes_per_s / (1_000_000 / BURST_US)).max(frame_bytes * BURST_PACKETS_MIN);
        let queue = bytes_per_s / 1_000 * QUEUE_MS;
        Limit {
            bits_per_s,
            burst_bytes: burst.next_power_of_two(),
            queue_bytes: queue.clamp(frame_bytes * QUEUE_PACKETS_MIN, QUEUE_BYTES_MAX),
        }
    }

    /// Payload of the largest GSO packet that passes as one burst with its headers, which
    /// are less than an eighth of it from an MTU of 576 on; `None`: every one does.
    fn gso_bytes_max(&self) -> Option<u64> {
        Some(self.burst_bytes / 8 * 7).filter(|&bytes| bytes < GSO_BYTES_USUAL)
    }

    fn words(&self) -> String {
        let by_time = self.queue_bytes == self.bits_per_s / 8 / 1_000 * QUEUE_MS;
        let queue = match by_time {
            true => format!("{QUEUE_MS} ms"),
            false => bytes(self.queue_bytes),
        };
        let (rate, burst) = (rate(self.bits_per_s), bytes(self.burst_bytes));
        format!("{rate} each way (tbf, burst {burst}, queue {queue})")
    }
}

impl Shape {
    /// What `network` is made of. Errors: it cannot be made, why.
    pub fn new(network: &PlannedNetwork) -> Result<Shape, String> {
        if network.rate_bits_per_s.is_some_and(|rate| rate < 8_000) {
            return Err("its rate is below 8 kbit/s".to_owned());
        }
        if network.mtu < 68 {
            return Err(format!(
                "its MTU of {} is below that of IPv4, 68",
                network.mtu
            ));
        }
        let frame = u64::from(network.mtu) + HEADER_BYTES;
        let limit = network.rate_bits_per_s.map(|rate| Limit::new(rate, frame));
        let (least, most) = DELAYED_PACKETS;
        // Twice what fills the delay at the rate, as small as packets usually get.
        let under_way = match (network.rate_bits_per_s, network.delay_ns) {
            (Some(rate), Some(delay)) => {
                let bits = u128::from(rate) * u128::from(delay) / 1_000_000_000;
                u64::try_from(bits / 8 * 2 / u128::from(frame)).unwrap_or(most)
            }
            _ => most,
        };
        Ok(Shape {
            mtu: network.mtu,
            limit,
            delay_ns: network.delay_ns.filter(|&delay| delay > 0),
            delayed_packets_max: under_way.clamp(least, most),
        })
    }

    /// The steps on the client's side; the peer's namespace is that of `thread`.
    pub fn at_client(&self, thread: i32) -> Vec<Step> {
        let mtu = self.mtu;
        let pair = format!(
            "link add name {TO_PEER} mtu {mtu} type veth peer name {TO_CLIENT} mtu {mtu} netns {thread}"
        );
        let mut steps = vec![Step::new("ip", &pair)];
        steps.extend(self.end(TO_PEER, CLIENT));
        steps
    }

    /// The steps on the peer's side, after those.
    pub fn at_peer(&self) -> Vec<Step> {
        self.end(TO_CLIENT, PEER)
    }

    /// Shaped before it is up, so that no packet passes unshaped.
    fn end(&self, device: &str, address: Ipv4Addr) -> Vec<Step> {
        let mut steps = vec![Step::new(
            "ip",
            &format!("address add {address}/24 dev {device}"),
        )];
        if let Some(bytes) = self.limit.and_then(|limit| limit.gso_bytes_max()) {
            let cut = format!("link set dev {device} gso_max_size {bytes}");
            steps.push(Step::new("ip", &cut));
        }
        let mut parent = "root".to_owned();
        if let Some(delay) = self.delay_ns {
            let (us, ns, packets) = (delay / 1_000, delay % 1_000, self.delayed_packets_max);
            let netem = format!("netem delay {us}.{ns:03}us limit {packets}");
            steps.push(discipline(device, &parent, 1, "netem", &netem));
            parent = "parent 1:".to_owned();
        }
        if let Some(limit) = &self.limit {
            let (rate, burst) = (limit.bits_per_s, limit.burst_bytes);
            let tbf = format!(
                "tbf rate {rate}bit burst {burst} limit {}",
                burst + limit.queue_bytes
            );
            steps.push(discipline(device, &parent, 2, "tbf", &tbf));
        }
        steps.push(Step::new("ip", &format!("link set dev {device} up")));
        steps
    }

    /// What a document calls it.
    pub fn words(&self) -> String {
        let mut words = format!("two network namespaces joined by veth, MTU {}", self.mtu);
        if let Some(limit) = &self.limit {
            words.push_str(&format!(", {}", limit.words()));
        }
        if let Some(delay) = self.delay_ns {
            words.push_str(&format!(", {} of delay each way (netem)", time(delay)));
        }
        words
    }
}

fn discipline(device: &str, parent: &str, handle: u32, kind: &'static str, what: &str) -> Step {
    let words = format!("qdisc add dev {device} {parent} handle {handle}: {what}");
    Step {
        discipline: Some(kind),
        ..Step::new("tc", &words)
    }
}

/// In the largest unit in which the amount is a whole number.
fn in_whole_units(amount: u64, units: &[(u64, &str)]) -> String {
    let fits = units.iter().find(|(size, _)| amount.is_multiple_of(*size));
    let (size, unit) = fits.copied().unwrap_or((1, ""));
    format!("{} {unit}", amount / size)
}

fn rate(bits_per_s: u64) -> String {
    let units = [
        (1_000_000_000, "Gbit/s"),
        (1_000_000, "Mbit/s"),
        (1_000, "kbit/s"),
        (1, "bit/s"),
    ];
    in_whole_units(bits_per_s, &units)
}

fn bytes(count: u64) -> String {
    in_whole_units(count, &[(1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes")])
}

fn time(ns: u64) -> String {
    let units = [
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "µs"),
        (1, "ns"),
    ];
    in_whole_units(ns, &units)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn planned(rate: Option<u64>, delay: Option<u64>, mtu: u32) -> PlannedNetwork {
        PlannedNetwork {
            rate_bits_per_s: rate,
            delay_ns: delay,
            mtu,
            ..PlannedNetwork::default()
        }
    }

    fn shown(network: &PlannedNetwork) -> String {
        let shape = Shape::new(network).expect("it can be made");
        let steps = [shape.at_client(77), shape.at_peer()].concat();
        let commands: Vec<String> = steps.iter().map(Step::words).collect();
        format!("{}\n{}", shape.words(), commands.join("\n"))
    }

    #[test]
    fn a_limited_network() {
        let gigabit = planned(Some(1_000_000_000), None, 1_500);
        insta::assert_snapshot!(shown(&gigabit), @r"
        two network namespaces joined by veth, MTU 1500, 1 Gbit/s each way (tbf, burst 128 KiB, queue 50 ms)
        ip link add name to-peer mtu 1500 type veth peer name to-client mtu 1500 netns 77
        ip address add 10.199.0.1/24 dev to-peer
        tc qdisc add dev to-peer root handle 2: tbf rate 1000000000bit burst 131072 limit 6381072
        ip link set dev to-peer up
        ip address add 10.199.0.2/24 dev to-client
        tc qdisc add dev to-client root handle 2: tbf rate 1000000000bit burst 131072 limit 6381072
        ip link set dev to-client up
        ");
    }

    #[test]
    fn a_slow_network_with_a_delay() {
        let slow = planned(Some(1_500_000), Some(2_500_000), 576);
        insta::assert_snapshot!(shown(&slow), @r"
        two network namespaces joined by veth, MTU 576, 1500 kbit/s each way (tbf, burst 2 KiB, queue 9440 bytes), 2500 µs of delay each way (netem)
        ip link add name to-peer mtu 576 type veth peer name to-client mtu 576 netns 77
        ip address add 10.199.0.1/24 dev to-peer
        ip link set dev to-peer gso_max_size 1792
        tc qdisc add dev to-peer root handle 1: netem delay 2500.000us limit 1000
        tc qdisc add dev to-peer parent 1: handle 2: tbf rate 1500000bit burst 2048 limit 11488
        ip link set dev to-peer up
        ip address add 10.199.0.2/24 dev to-client
        ip link set dev to-client gso_max_size 1792
        tc qdisc add dev to-client root handle 1: netem delay 2500.000us limit 1000
        tc qdisc add dev to-client parent 1: handle 2: tbf rate 1500000bit burst 2048 limit 11488
        ip link set dev to-client up
        ");
    }

    #[test]
    fn a_network_of_long_packets() {
        insta::assert_snapshot!(shown(&planned(None, None, 9_000)), @r"
        two network namespaces joined by veth, MTU 9000
        ip link add name to-peer mtu 9000 type veth peer name to-client mtu 9000 netns 77
        ip address add 10.199.0.1/24 dev to-peer
        ip link set dev to-peer up
        ip address add 10.199.0.2/24 dev to-client
        ip link set dev to-client up
        ");
    }

    #[test]
    fn what_cannot_be_is_said() {
        let wrong = |rate, mtu| Shape::new(&planned(rate, None, mtu)).expect_err("it cannot be");
        assert_eq!(wrong(Some(0), 1_500), "its rate is below 8 kbit/s");
        assert_eq!(wrong(None, 1), "its MTU of 1 is below that of IPv4, 68");
    }

    proptest! {
        #[test]
        fn every_rate_has_a_burst_and_a_queue_that_tc_can_count(
            rate in 8_000..=1_000_000_000_000_u64,
            mtu in 576..=65_535_u32,
            delay in proptest::option::of(1..=60_000_000_000_u64),
        ) {
            let shape = Shape::new(&planned(Some(rate), delay, mtu)).expect("it can be made");
            let limit = shape.limit.expect("a rate");
            let frame = u64::from(mtu) + HEADER_BYTES;
            prop_assert!(limit.burst_bytes >= 2 * frame);
            prop_assert!(limit.burst_bytes >= rate / 8_000);
            // A download of a second is let through within 1 % of its time, or by packets.
            prop_assert!(limit.burst_bytes <= (rate / 4_000).max(4 * frame));
            prop_assert!(limit.burst_bytes + limit.queue_bytes <= u64::from(u32::MAX));
            prop_assert!(limit.queue_bytes >= 16 * frame);
            let gso = limit.gso_bytes_max().unwrap_or(GSO_BYTES_USUAL);
            let segments = (gso / (u64::from(mtu) - 52)).max(1);
            prop_assert!(segments * frame <= limit.burst_bytes);
            prop_assert!((1_000..=1_000_000).contains(&shape.delayed_packets_max));
        }
    }
}
