//! Whether what a client and its peer counted agree. Pure.
//!
//! Each counts what it sees: the client answers that it read to their end, the peer
//! requests that it began. A client that stops at a moment leaves on each connection at
//! the most one request that is sent and not answered; one that reads what it asked for
//! to the end leaves none.
//!
//! Not for: what follows when they do not agree.
//!
//! ```
//! use prony_record::{ClientFigures, PeerCounts, ProgramLine, agreement};
//! let figures = ClientFigures { connections: 10, in_flight: Some(10), ..ClientFigures::default() };
//! let line = ProgramLine { measure: "requests".into(), count: 90, client: Some(figures), ..ProgramLine::default() };
//! let peer = PeerCounts { requests: Some(100), ..PeerCounts::default() };
//! assert!(agreement(&line, 10, &peer).holds());
//! ```

use crate::{ClientFigures, PeerCounts, ProgramLine};

/// The work of clients that ask again and again until the time is over.
pub const REQUESTS: &str = "requests";
/// The work of clients that ask once on each connection and read to the end.
pub const DOWNLOADS: &str = "downloads";

/// How what a client counted stands to what its peer counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Agreement {
    /// Whether the peer counts requests; where it does not, nothing can be compared.
    pub compared: bool,
    /// Whether the client says how many requests it had in flight at its end (or can have
    /// none), so that the two must be equal. Else each connection may have had one.
    pub exact: bool,
    /// Requests that the peer counted beyond those answered and failed: those in flight,
    /// where all is well. Negative: the client claims answers that were never asked for.
    pub unanswered: i128,
    /// The fewest `unanswered` that can be right.
    pub unanswered_min: u64,
    /// The most `unanswered` that can be right.
    pub unanswered_max: u64,
    /// Requests of the client's that the peer never saw.
    pub missing: u64,
    /// Requests that the peer saw and the client does not account for.
    pub extra: u64,
    /// Bytes of bodies that the peer sent less those that the client read, where both
    /// count them and must be equal: in downloads none of which failed.
    pub bytes_off: Option<i128>,
}

impl Agreement {
    /// Whether nothing contradicts anything; also where nothing could be compared.
    pub fn holds(&self) -> bool {
        self.missing == 0 && self.extra == 0 && self.bytes_off.unwrap_or(0) == 0
    }
}

/// Compares a client's line with its peer's counts. `connections`: those that the client
/// was told to open. Its work is `measure`: [`DOWNLOADS`] leave nothing in flight.
pub fn agreement(line: &ProgramLine, connections: u32, peer: &PeerCounts) -> Agreement {
    let usual = ClientFigures::default();
    let figures = line.client.as_ref().unwrap_or(&usual);
    let downloads = line.measure == DOWNLOADS;
    let in_flight = match downloads {
        true => Some(figures.in_flight.unwrap_or(0)),
        false => figures.in_flight,
    };
    let mut found = Agreement {
        compared: peer.requests.is_some(),
        exact: in_flight.is_some(),
        unanswered_min: in_flight.unwrap_or(0),
        unanswered_max: in_flight.unwrap_or_else(|| connections.into()),
        ..Agreement::default()
    };
    if let Some(served) = peer.requests {
        let done = i128::from(line.count) + i128::from(figures.failed);
        found.unanswered = i128::from(served) - done;
        found.missing = positive(i128::from(found.unanswered_min) - found.unanswered);
        found.extra = positive(found.unanswered - i128::from(found.unanswered_max));
    }
    if let (true, 0, Some(sent)) = (downloads, figures.failed, peer.bytes) {
        found.bytes_off = Some(i128::from(sent) - i128::from(line.bytes));
    }
    found
}

/// The number where it is above zero, else zero; saturating.
fn positive(number: i128) -> u64 {
    u64::try_from(number.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(measure: &str, count: u64, failed: u64, in_flight: Option<u64>) -> ProgramLine {
        ProgramLine {
            measure: measure.to_owned(),
            count,
            bytes: count * 7,
            client: Some(ClientFigures {
                connections: 10,
                failed,
                in_flight,
                ..ClientFigures::default()
            }),
            ..ProgramLine::default()
        }
    }

    fn peer(requests: u64, bytes: Option<u64>) -> PeerCounts {
        PeerCounts {
            requests: Some(requests),
            bytes,
            source: "a test".to_owned(),
        }
    }

    #[test]
    fn one_more_and_one_fewer_are_seen() {
        let all = line(REQUESTS, 90, 2, Some(8));
        let of = |requests| agreement(&all, 10, &peer(requests, None));
        assert!(of(100).holds() && of(100).exact);
        assert_eq!((of(101).extra, of(101).missing), (1, 0));
        assert_eq!((of(99).extra, of(99).missing), (0, 1));
        assert_eq!((of(91).unanswered, of(91).missing), (-1, 9));
    }

    #[test]
    fn a_download_that_is_cut_short_is_seen_in_its_bytes() {
        let all = line(DOWNLOADS, 10, 0, None);
        let of = |requests, bytes| agreement(&all, 10, &peer(requests, Some(bytes)));
        assert!(of(10, 70).holds());
        assert_eq!(of(10, 71).bytes_off, Some(1));
        assert_eq!(of(10, 69).bytes_off, Some(-1));
        assert_eq!(of(11, 70).extra, 1);
        let failed = line(DOWNLOADS, 9, 1, None);
        assert!(agreement(&failed, 10, &peer(10, Some(64))).holds());
    }

    #[test]
    fn nothing_is_compared_with_a_peer_that_does_not_count() {
        let found = agreement(&line(REQUESTS, 9, 0, None), 10, &PeerCounts::default());
        assert!(found.holds() && !found.compared);
    }

    proptest! {
        #[test]
        fn what_is_in_flight_and_said_makes_the_difference(
            count in 0_u64..1 << 40, failed in 0_u64..1000, in_flight in 0_u64..1000, off in -20_i64..20,
        ) {
            let served = (count + failed + in_flight).saturating_add_signed(off);
            let found = agreement(&line(REQUESTS, count, failed, Some(in_flight)), 1000, &peer(served, None));
            let off = i128::from(served) - i128::from(count + failed + in_flight);
            prop_assert_eq!(found.holds(), off == 0);
            prop_assert_eq!(i128::from(found.extra) - i128::from(found.missing), off);
            prop_assert_eq!(found.unanswered, i128::from(in_flight) + off);
        }

        #[test]
        fn what_is_in_flight_and_not_said_is_at_most_one_a_connection(
            count in 0_u64..1 << 40, failed in 0_u64..1000, connections in 1_u32..1000, more in 0_u64..2000,
        ) {
            let all = line(REQUESTS, count, failed, None);
            let found = agreement(&all, connections, &peer(count + failed + more, None));
            prop_assert_eq!(found.holds(), more <= u64::from(connections));
            prop_assert_eq!(found.extra, more.saturating_sub(connections.into()));
            prop_assert!(!found.exact && found.missing == 0);
        }

        #[test]
        fn no_numbers_make_it_overflow(
            count: u64, failed: u64, in_flight: Option<u64>, connections: u32,
            requests: Option<u64>, bytes: Option<u64>, downloads: bool,
        ) {
            let mut line = line(if downloads { DOWNLOADS } else { REQUESTS }, 0, failed, in_flight);
            (line.count, line.bytes) = (count, u64::MAX - count);
            let peer = PeerCounts { requests, bytes, source: String::new() };
            let found = agreement(&line, connections, &peer);
            prop_assert!(found.missing == 0 || found.extra == 0);
        }
    }
}
