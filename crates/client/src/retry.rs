//! Whether a request that failed is made again, and when.
//!
//! For: one decision from values alone, [`RetryPolicy::decide`], with time and randomness as
//! arguments. Not for: waiting or sending; redirects, which are answers and no failures.
//!
//! A kept connection may be closed by its server just as a request goes out on it. Such a
//! request is made once more on another connection, whatever the policy, where that is safe:
//! every client does it, and without it keep-alive would make requests fail at random. That
//! is no retry and is not decided here. All retries are off until
//! [`RetryPolicy::retries_max`] is set.

use std::time::{Duration, UNIX_EPOCH};

use prony_base::{Nanos, Random};
use prony_wire::Method;

/// Which requests are tried again, how often and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Further attempts after the first; 0 is the default.
    pub retries_max: u32,
    /// Whether a connection that could not be made is tried again. Nothing was sent then,
    /// so that every method may be.
    pub on_connect_failure: bool,
    /// Whether a connection that broke before any of the answer came, or whose answer took
    /// too long to begin, is tried again, for methods that may be.
    pub on_broken_connection: bool,
    /// Whether 429, 502, 503 and 504 are tried again, for methods that may be.
    pub on_busy_status: bool,
    /// Treats every method as if doing it twice were the same as once. Set it for a server
    /// that sorts out doubles itself.
    pub every_method: bool,
    /// Most that is waited before the first retry; it doubles with each further one.
    pub backoff_first: Nanos,
    /// Most that is waited before any retry.
    pub backoff_max: Nanos,
    /// The longest Retry-After that is waited for. Beyond it the answer is the result.
    pub retry_after_max: Nanos,
}

impl Default for RetryPolicy {
    /// No retries. Once `retries_max` is set: all causes, for methods that are safe to
    /// repeat; up to 100 ms before the first, doubling up to 10 s; Retry-After up to 60 s.
    fn default() -> RetryPolicy {
        RetryPolicy {
            retries_max: 0,
            on_connect_failure: true,
            on_broken_connection: true,
            on_busy_status: true,
            every_method: false,
            backoff_first: Nanos::from_millis(100),
            backoff_max: Nanos::from_secs(10),
            retry_after_max: Nanos::from_secs(60),
        }
    }
}

/// The attempts so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Method of the request.
    pub method: Method,
    /// Retries so far.
    pub retries: u32,
    /// Whether the body can be sent (again): there is none, it is kept or can be read anew,
    /// or nothing of it was taken.
    pub body_is_there: bool,
}

/// How the last attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome<'a> {
    /// No connection came about: not found, refused, unreachable, too slow.
    NotConnected,
    /// The connection broke before any of the answer came, or the wait for it took too long.
    NoAnswer {
        /// Whether the kernel had taken some of the request.
        was_sent: bool,
    },
    /// An answer came.
    Status {
        /// Its status code.
        status: u16,
        /// Its Retry-After, where it has one.
        retry_after: Option<&'a [u8]>,
    },
    /// Anything else: the answer broke off, broke a rule, or the time for all was over.
    Final,
}

/// The next step after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Make the request again after so long.
    RetryAfter(Nanos),
    /// The last answer or error is the result.
    GiveUp,
}

impl RetryPolicy {
    /// The next step after `outcome`. `unix_seconds` is the time of day, for a Retry-After that
    /// is a date.
    pub fn decide(
        &self,
        attempt: &Attempt,
        outcome: &AttemptOutcome<'_>,
        unix_seconds: u64,
        random: &mut Random,
    ) -> Decision {
        if !attempt.body_is_there {
            return Decision::GiveUp;
        }
        let may_repeat = self.every_method || is_idempotent(attempt.method);
        let (is_wanted, is_safe) = match *outcome {
            AttemptOutcome::NoAnswer { was_sent } => {
                (self.on_broken_connection, may_repeat || !was_sent)
            }
            AttemptOutcome::NotConnected => (self.on_connect_failure, true),
            AttemptOutcome::Status { status, .. } => {
                (self.on_busy_status && is_busy(status), may_repeat)
            }
            AttemptOutcome::Final => (false, false),
        };
        if !(is_wanted && is_safe) || attempt.retries >= self.retries_max {
            return Decision::GiveUp;
        }
        let backoff = self.backoff(attempt.retries, random);
        let AttemptOutcome::Status {
            retry_after: Some(value),
            ..
        } = *outcome
        else {
            return Decision::RetryAfter(backoff);
        };
        match retry_after(value, unix_seconds) {
            // A value that says nothing is as good as none.
            None => Decision::RetryAfter(backoff),
            Some(wait) if wait > self.retry_after_max => Decision::GiveUp,
            // Spread, because the server has told all its clients the same.
            Some(wait) => Decision::RetryAfter(wait + self.backoff(0, random)),
        }
    }

    /// A random length below a limit that doubles ("full jitter": M. Brooker, "Exponential
    /// Backoff And Jitter", AWS Architecture Blog, 2015).
    fn backoff(&self, retries: u32, random: &mut Random) -> Nanos {
        let factor = 1_u64.checked_shl(retries).unwrap_or(u64::MAX);
        let most = (self.backoff_first * factor).min(self.backoff_max);
        Nanos(random.below(most.0.saturating_add(1)))
    }
}

/// Whether doing it twice is meant to be the same as once (RFC 9110, section 9.2.2).
pub fn is_idempotent(method: Method) -> bool {
    matches!(
        method,
        Method::Get | Method::Head | Method::Options | Method::Trace | Method::Put | Method::Delete
    )
}

/// Whether a status says that another attempt may go better.
pub fn is_busy(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// The wait that a Retry-After asks for: seconds, or a date in HTTP's format. None where it
/// is neither.
fn retry_after(value: &[u8], unix_seconds: u64) -> Option<Nanos> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are more seconds than anybody waits.
        return Some(Nanos::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let date = date.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Some(Nanos::from_secs(
        date.as_secs().saturating_sub(unix_seconds),
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 784_111_777;

    fn policy(retries_max: u32) -> RetryPolicy {
        RetryPolicy {
            retries_max,
            ..RetryPolicy::default()
        }
    }

    fn attempt(method: Method) -> Attempt {
        Attempt {
            method,
            retries: 0,
            body_is_there: true,
        }
    }

    fn decide(policy: &RetryPolicy, attempt: &Attempt, outcome: &AttemptOutcome<'_>) -> Decision {
        policy.decide(attempt, outcome, NOW, &mut Random::new(1))
    }

    fn retries(policy: &RetryPolicy, attempt: &Attempt, outcome: &AttemptOutcome<'_>) -> bool {
        matches!(decide(policy, attempt, outcome), Decision::RetryAfter(_))
    }

    fn busy(retry_after: &str) -> AttemptOutcome<'_> {
        AttemptOutcome::Status {
            status: 503,
            retry_after: Some(retry_after.as_bytes()),
        }
    }

    #[test]
    fn nothing_is_retried_by_default_or_without_its_body() {
        let causes = [
            AttemptOutcome::NotConnected,
            AttemptOutcome::NoAnswer { was_sent: true },
            busy("0"),
        ];
        for cause in causes {
            let get = attempt(Method::Get);
            assert!(retries(&policy(1), &get, &cause));
            assert_eq!(decide(&policy(0), &get, &cause), Decision::GiveUp);
            let gone = Attempt {
                body_is_there: false,
                ..get
            };
            assert_eq!(decide(&policy(1), &gone, &cause), Decision::GiveUp);
        }
    }

    #[test]
    fn only_what_may_be_done_twice_is() {
        let three = policy(3);
        let (get, post) = (attempt(Method::Get), attempt(Method::Post));
        let cut = AttemptOutcome::NoAnswer { was_sent: true };
        assert!(retries(&three, &get, &cut) && !retries(&three, &post, &cut));
        assert!(retries(
            &three,
            &post,
            &AttemptOutcome::NoAnswer { was_sent: false }
        ));
        assert!(retries(&three, &post, &AttemptOutcome::NotConnected));
        assert!(!retries(&three, &post, &busy("0")) && retries(&three, &get, &busy("0")));
        assert!(!retries(&three, &get, &AttemptOutcome::Final));
        let bold = RetryPolicy {
            every_method: true,
            ..three
        };
        assert!(retries(&bold, &post, &cut) && retries(&bold, &post, &busy("0")));
        for status in [200, 301, 404, 408, 500, 501, 505] {
            let retry_after = None;
            let outcome = AttemptOutcome::Status {
                status,
                retry_after,
            };
            assert!(!retries(&three, &get, &outcome), "{status}");
        }
    }

    #[test]
    fn each_cause_can_be_switched_off() {
        let none = RetryPolicy {
            on_connect_failure: false,
            on_broken_connection: false,
            on_busy_status: false,
            ..policy(3)
        };
        let causes = [
            AttemptOutcome::NotConnected,
            AttemptOutcome::NoAnswer { was_sent: false },
            busy("1"),
        ];
        for cause in causes {
            assert!(!retries(&none, &attempt(Method::Get), &cause), "{cause:?}");
            assert!(retries(&policy(3), &attempt(Method::Get), &cause));
        }
    }

    #[test]
    fn a_retry_after_is_kept_to() {
        let get = attempt(Method::Get);
        let waits = |value| match decide(&policy(1), &get, &busy(value)) {
            Decision::RetryAfter(wait) => Some(wait.0 / 1_000_000_000),
            _ => None,
        };
        assert_eq!(waits("7"), Some(7));
        assert_eq!(waits("60"), Some(60));
        assert_eq!(waits("61"), None);
        assert_eq!(waits("99999999999999999999999"), None);
        assert_eq!(waits("Sun, 06 Nov 1994 08:49:57 GMT"), Some(20));
        assert_eq!(waits("Sun, 06 Nov 1994 08:49:07 GMT"), Some(0));
        assert_eq!(waits("Mon, 06 Nov 1995 08:49:07 GMT"), None);
        assert_eq!(waits("soon"), Some(0));
        assert_eq!(waits("-3"), Some(0));
    }

    fn outcomes() -> impl Strategy<Value = AttemptOutcome<'static>> {
        prop_oneof![
            Just(AttemptOutcome::NotConnected),
            any::<bool>().prop_map(|was_sent| AttemptOutcome::NoAnswer { was_sent }),
            Just(AttemptOutcome::Final),
            (100_u16..600).prop_map(|status| AttemptOutcome::Status {
                status,
                retry_after: None
            }),
        ]
    }

    proptest! {
        #[test]
        fn attempts_end(
            retries_max in 0_u32..80,
            outcomes in proptest::collection::vec(outcomes(), 100),
            seed: u64,
        ) {
            let policy = policy(retries_max);
            let mut attempt = attempt(Method::Get);
            let mut random = Random::new(seed);
            for outcome in outcomes {
                match policy.decide(&attempt, &outcome, NOW, &mut random) {
                    Decision::GiveUp => {}
                    Decision::RetryAfter(wait) => {
                        let doubled = policy.backoff_first.0 as f64 * 2_f64.powi(attempt.retries as i32);
                        prop_assert!(wait.0 as f64 <= doubled);
                        prop_assert!(wait <= policy.backoff_max);
                        attempt.retries += 1;
                    }
                }
            }
            prop_assert!(attempt.retries <= retries_max);
        }

        #[test]
        fn a_wait_is_never_shorter_than_asked(seconds in 0_u64..200, seed: u64, retries in 0_u32..5) {
            let attempt = Attempt { retries, ..attempt(Method::Get) };
            let value = seconds.to_string();
            match policy(5).decide(&attempt, &busy(&value), NOW, &mut Random::new(seed)) {
                Decision::RetryAfter(wait) => prop_assert!(wait >= Nanos::from_secs(seconds)),
                Decision::GiveUp => prop_assert!(seconds > 60),
            }
        }

        #[test]
        fn any_retry_after_is_read_or_ignored(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            retry_after(&value, NOW);
        }
    }
}
