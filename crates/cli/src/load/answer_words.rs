//! Words of `prony load` on what follows from an answer before anything is expected of it.

use clap::Args;
use prony_base::typed::rate;

/// Redirects in a row that are followed, where no number is given: as many as k6, hey, oha and vegeta follow.
const FOLLOWED: &str = "10";
/// And at most.
const FOLLOWED_MAX: u64 = 100;

/// Words about redirects and codings.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Redirects and compressed answers")]
pub struct AnswerWords {
    /// Follow redirects within the same origin, up to N in a row [default: 10]; each is a request of its own in all counts, with a
    /// latency of its own, and -n and -R count without them. Without this they are answers like others
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = FOLLOWED, value_parser = followed,
        conflicts_with_all = ["pipeline", "think", "find_max"])]
    pub follow: Option<u32>,
    /// Ask for compressed answers (zstd, br, gzip, deflate; another `Accept-Encoding` by -H) and decode them: bytes are counted as they came
    /// and as they were decoded, checks are of the decoded body, and one that does not decode has failed
    #[arg(long, conflicts_with = "pipeline")]
    pub compressed: bool,
}

impl AnswerWords {
    /// Whether an answer may fail although nothing is expected of it.
    pub fn may_fail(&self) -> bool {
        self.follow.is_some() || self.compressed
    }
}

fn followed(text: &str) -> Result<u32, String> {
    match rate::count(text)? {
        count @ 1..=FOLLOWED_MAX => Ok(count as u32),
        _ => Err(format!("it is from 1 to {FOLLOWED_MAX}")),
    }
}
