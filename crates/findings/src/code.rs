//! The codes of findings, each with its title and its page.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($code:ident $title:literal;)*) => {
        /// The code of a finding. A code never changes its meaning and is never used again.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum Code {
            $(#[doc = $title] $code,)*
        }

        impl Code {
            /// Every code, rising.
            pub const ALL: &'static [Code] = &[$(Code::$code),*];

            /// The code as it is written: `P003`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$code => stringify!($code),)* }
            }

            /// What it says, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$code => $title,)* }
            }

            /// The page about it, in Markdown.
            pub fn page(self) -> &'static str {
                match self {
                    $(Code::$code => include_str!(
                        concat!("../../../docs/findings/", stringify!($code), ".md")
                    ),)*
                }
            }
        }
    };
}

codes! {
    P001 "generator saturated";
    P002 "connections refused or reset";
    P003 "keep-alive not honoured";
    P004 "listen queue overflowed";
    P005 "connections not in flight";
    P006 "requests failed";
    P007 "more cores used than declared";
    P008 "not stable";
    P009 "machine drifted";
    P010 "trial failed";
    P011 "capability missing";
    P012 "not the same work";
    P013 "too short to be measured";
    P014 "not always running";
    P015 "checksum differs";
    P016 "peak memory of different work is the same";
    P017 "deadlines missed";
    P018 "counts of client and peer differ";
    P019 "the client's own figures contradict each other";
    P020 "peer saturated";
    P021 "more threads than cores";
    P022 "latency incomplete";
    P023 "acknowledged and not counted";
    P024 "acknowledged and lost";
    P025 "counted more than was sent";
    P026 "cores shared with services around";
    P027 "more instances than cores";
    P028 "server froze";
    P029 "overloaded";
    P030 "another generator disagrees";
    P031 "no rate found that keeps the objective";
    P032 "both sides sleep";
}

/// The page about a code as a user types it (`P003`, `p003`); `None` for an unknown one.
pub fn explain(code: &str) -> Option<&'static str> {
    code.parse::<Code>().ok().map(Code::page)
}

/// No finding has this code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownCode(pub String);

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (Code::ALL[0], Code::ALL[Code::ALL.len() - 1]);
        write!(
            f,
            "no finding has the code `{}`: they go from {first} to {last}",
            self.0
        )
    }
}

impl std::error::Error for UnknownCode {}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Code, UnknownCode> {
        let same = |code: &&Code| code.as_str().eq_ignore_ascii_case(text);
        Code::ALL
            .iter()
            .find(same)
            .copied()
            .ok_or_else(|| UnknownCode(text.to_owned()))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_its_title_and_its_five_parts() {
        for code in Code::ALL {
            let page = code.page();
            let title = format!("# {code}: {}\n", code.title());
            assert!(page.starts_with(&title), "{code}: begins with {title:?}");
            for part in [
                "How it is detected",
                "Why it matters",
                "What to do",
                "Example",
            ] {
                assert!(page.contains(&format!("\n## {part}\n")), "{code}: {part}");
            }
        }
    }

    #[test]
    fn a_code_is_read_as_typed_and_an_unknown_one_is_an_error() {
        assert_eq!("p003".parse(), Ok(Code::P003));
        assert!(explain("P010").is_some());
        assert_eq!(explain("P999"), None);
        let error = "X1".parse::<Code>().unwrap_err().to_string();
        assert_eq!(
            error,
            "no finding has the code `X1`: they go from P001 to P032"
        );
    }
}
