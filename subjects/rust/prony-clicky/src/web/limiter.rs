//! How many requests an address may make: a token bucket for each, in a table of fixed size.
//!
//! A bucket holds a second's requests and fills at that rate. The table has sets of
//! [`WAYS`] places; a new address takes the place in its set whose bucket is fullest, which
//! is the one that loses least by being forgotten. An address that is forgotten starts with
//! a full bucket, so that many addresses at once may pass more than the limit, and never
//! use more memory. Sets are chosen by a hash with a secret, so that nobody can choose
//! addresses that push out a certain one.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use prony_base::{Instant, Nanos};

const SETS: usize = 4096;
const WAYS: usize = 8;
const SECOND_NANOS: u64 = 1_000_000_000;

/// Remembers [`SETS`] × [`WAYS`] = 32,768 addresses, in 1.3 MB.
pub struct Limiter {
    /// Nanoseconds in which one token comes.
    token_ns: u64,
    sets: Box<[Mutex<[Bucket; WAYS]>]>,
    hasher: RandomState,
}

/// The bucket of one address, as the time at which it will be full: then it is as good as
/// forgotten, and needs no clearing.
#[derive(Clone, Copy)]
struct Bucket {
    address: IpAddr,
    full_at: Instant,
}

impl Limiter {
    /// Allows `per_second` requests, at least one.
    pub fn new(per_second: u32) -> Limiter {
        let empty = Bucket {
            address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            full_at: Instant::ZERO,
        };
        Limiter {
            token_ns: (SECOND_NANOS / u64::from(per_second.max(1))).max(1),
            sets: (0..SETS).map(|_| Mutex::new([empty; WAYS])).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Takes a token of `address` at the time `now`.
    ///
    /// # Errors
    /// How long it is until there is one.
    pub fn take(&self, address: IpAddr, now: Instant) -> Result<(), Nanos> {
        let address = network(address);
        let place = self.hasher.hash_one(address) as usize % SETS;
        let mut set = self.sets[place]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let own = set.iter().position(|bucket| bucket.address == address);
        let Some(own) = own else {
            if let Some(fullest) = set.iter_mut().min_by_key(|bucket| bucket.full_at) {
                let full_at = now + Nanos(self.token_ns);
                *fullest = Bucket { address, full_at };
            }
            return Ok(());
        };
        let full_at = set[own].full_at.max(now) + Nanos(self.token_ns);
        // A second's tokens fit into a bucket, one at least.
        let room = Nanos(SECOND_NANOS.max(self.token_ns));
        if full_at.since(now) > room {
            return Err(full_at.since(now) - room);
        }
        set[own].full_at = full_at;
        Ok(())
    }
}

/// What counts as one address: of IPv6 the 64 bits that a network gives to one customer.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    const START: Instant = Instant(5 * SECOND_NANOS);

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(number))
    }

    fn at(millis: u64) -> Instant {
        START + Nanos::from_millis(millis)
    }

    #[test]
    fn a_seconds_requests_pass_at_once_and_then_one_for_each_token() {
        let limiter = Limiter::new(10);
        let passed = (0..50).filter(|_| limiter.take(address(1), START).is_ok());
        assert_eq!(passed.count(), 10);
        assert_eq!(
            limiter.take(address(1), at(40)),
            Err(Nanos::from_millis(60))
        );
        assert_eq!(limiter.take(address(1), at(100)), Ok(()));
        assert!(limiter.take(address(1), at(100)).is_err());
        assert_eq!(limiter.take(address(2), at(100)), Ok(()), "another address");
        let later = (0..50).filter(|_| limiter.take(address(1), at(60_000)).is_ok());
        assert_eq!(later.count(), 10, "a bucket holds no more than a second's");
    }

    #[test]
    fn one_a_second_is_one_a_second() {
        let limiter = Limiter::new(1);
        assert_eq!(limiter.take(address(1), at(0)), Ok(()));
        assert_eq!(
            limiter.take(address(1), at(999)),
            Err(Nanos::from_millis(1))
        );
        assert_eq!(limiter.take(address(1), at(1_000)), Ok(()));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address_and_a_mapped_one_is_ipv4() {
        let limiter = Limiter::new(1);
        let parse = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(limiter.take(parse("2001:db8:1:2::1"), START).is_ok());
        assert!(limiter.take(parse("2001:db8:1:2:9::7"), START).is_err());
        assert!(limiter.take(parse("2001:db8:1:3::1"), START).is_ok());
        assert!(limiter.take(parse("::ffff:10.0.0.1"), START).is_ok());
        assert!(limiter.take(parse("10.0.0.1"), START).is_err());
    }

    #[test]
    fn a_flood_of_addresses_forgets_those_that_asked_least() {
        let limiter = Limiter::new(100);
        for _ in 0..100 {
            assert!(limiter.take(address(0), START).is_ok());
        }
        for number in 1..=200_000 {
            assert!(limiter.take(address(number), START).is_ok());
        }
        assert!(limiter.take(address(0), START).is_err(), "still known");
    }

    proptest! {
        /// In any span the requests that pass are at most a bucket and what came meanwhile.
        #[test]
        fn no_more_pass_than_the_bucket_and_its_tokens(
            per_second in 1_u32..50,
            pauses in prop::collection::vec(0_u64..200, 1..200),
        ) {
            let limiter = Limiter::new(per_second);
            let (mut now, mut passed) = (0, 0);
            for pause in pauses {
                now += pause;
                passed += u64::from(limiter.take(address(9), at(now)).is_ok());
            }
            let tokens = u64::from(per_second) * now / 1_000;
            prop_assert!(passed <= u64::from(per_second) + tokens);
        }
    }
}
