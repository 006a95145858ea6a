//! `--spin`: whether threads look for news before they sleep. Not for: looking, which the engine does.

use prony_base::Nanos;
use prony_base::typed::duration;

/// When a thread that waits does not sleep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Spin {
    /// It never does.
    Always,
    /// It looks for so long before, where that pays. Zero: it sleeps at once.
    UpTo(Nanos),
}

/// As long as it takes to wake a server that sleeps: with less, who looks gives up before the first answer, and both go on sleeping.
const AUTO: Spin = Spin::UpTo(Nanos::from_micros(50));

/// Whether others want the core is looked at before each look only.
const LONGEST: Nanos = Nanos::from_millis(10);

impl Spin {
    /// Reads `auto`, `off`, `always` or a length of time. For use as a clap value parser.
    pub fn parse(text: &str) -> Result<Spin, String> {
        match text {
            "always" => Ok(Spin::Always),
            "auto" => Ok(AUTO),
            "off" => Ok(Spin::UpTo(Nanos::ZERO)),
            _ => match duration::parse(text) {
                Ok(length) if length <= LONGEST => Ok(Spin::UpTo(length)),
                Ok(_) => Err("at most 10ms; `always` never sleeps".to_owned()),
                Err(_) => Err(format!(
                    "`{text}` is none of auto, off and always, nor a length of time such as 20us"
                )),
            },
        }
    }

    /// Whether it never sleeps.
    pub fn is_always(self) -> bool {
        self == Spin::Always
    }

    /// The longest look before it sleeps.
    pub fn look_before_sleep(self) -> Nanos {
        match self {
            Spin::Always => Nanos::ZERO,
            Spin::UpTo(length) => length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_word_or_a_length_of_time() {
        assert_eq!(Spin::parse("always"), Ok(Spin::Always));
        assert_eq!(Spin::parse("auto"), Spin::parse("50us"));
        assert_eq!(Spin::parse("off"), Ok(Spin::UpTo(Nanos::ZERO)));
        assert!(Spin::parse("11ms").unwrap_err().contains("at most 10ms"));
        assert!(Spin::parse("on").unwrap_err().contains("`on` is none of"));
    }
}
