//! Files that lie there compressed, and who takes which (RFC 9110, section 12.5.3).
//! Not for: compressing.

use prony_http::Headers;

/// A content coding, and the suffix of files that are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coding {
    pub token: &'static str,
    pub suffix: &'static str,
}

pub(super) const CODINGS: [Coding; 3] = [
    Coding {
        token: "br",
        suffix: ".br",
    },
    Coding {
        token: "zstd",
        suffix: ".zst",
    },
    Coding {
        token: "gzip",
        suffix: ".gz",
    },
];

/// A weight in thousandths.
type Weight = u16;
const WEIGHT_MAX: Weight = 1000;

/// Chooses among forms of one file, each with its coding (None: as it is) and its bytes:
/// of those that the client takes with the greatest weight, the smallest. None where it
/// takes none of them.
///
/// A client that says nothing gets the file as it is, because not all that say nothing
/// can decode; so does one that takes none and does not forbid that.
pub(super) fn choose(
    headers: &Headers<'_>,
    forms: impl Iterator<Item = (Option<Coding>, u64)>,
) -> Option<usize> {
    let weighed = forms.enumerate().filter_map(|(index, (coding, bytes))| {
        let weight = match coding {
            Some(coding) => weight_of(headers, coding.token).unwrap_or(0),
            // What is not forbidden may be sent, after all that is asked for.
            None => weight_of(headers, "identity").map_or(1, |weight| weight * 2),
        };
        let weight = if coding.is_some() { weight * 2 } else { weight };
        (weight > 0).then_some((weight, std::cmp::Reverse(bytes), index))
    });
    weighed.max().map(|(_, _, index)| index)
}

/// What the client says about a coding, by name or by `*`; None: nothing.
fn weight_of(headers: &Headers<'_>, token: &str) -> Option<Weight> {
    let mut any = None;
    for value in headers.get_all("accept-encoding") {
        let text = str::from_utf8(value).unwrap_or_default();
        for element in text.split(',') {
            let (name, parameters) = element.split_once(';').unwrap_or((element, ""));
            let name = name.trim_matches([' ', '\t']);
            if is_name(name, token) {
                return Some(weight(parameters));
            }
            if name == "*" {
                any = Some(weight(parameters));
            }
        }
    }
    any
}

fn is_name(name: &str, token: &str) -> bool {
    // RFC 9110, section 8.4.1.3: x-gzip is gzip.
    name.eq_ignore_ascii_case(token) || (token == "gzip" && name.eq_ignore_ascii_case("x-gzip"))
}

/// `q=0.5`: up to three decimals. What cannot be read is not wanted.
fn weight(parameters: &str) -> Weight {
    let parameters = parameters.trim_matches([' ', '\t']);
    if parameters.is_empty() {
        return WEIGHT_MAX;
    }
    let Some(("q" | "Q", number)) = parameters.split_once('=') else {
        return 0;
    };
    let (digits, decimals) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = decimals.bytes().all(|byte| byte.is_ascii_digit());
    if decimals.len() > 3 || !all_digits {
        return 0;
    }
    match digits {
        "1" => WEIGHT_MAX,
        "0" => format!("{decimals:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use prony_http::OwnedHeaders;

    use super::*;

    /// Which of the file (100 bytes), br (30), zstd (40) and gzip (50) is chosen.
    fn chosen(accept: &[&str]) -> &'static str {
        let mut headers = OwnedHeaders::default();
        for value in accept {
            assert!(headers.push("Accept-Encoding", value.as_bytes()));
        }
        let coded = CODINGS.iter().zip([30, 40, 50]);
        let forms = coded.map(|(coding, bytes)| (Some(*coding), bytes));
        let forms = std::iter::once((None, 100)).chain(forms);
        match choose(&headers.as_headers(), forms) {
            None => "nothing",
            Some(0) => "plain",
            Some(index) => CODINGS[index - 1].token,
        }
    }

    #[test]
    fn the_greatest_weight_is_chosen_and_among_equals_the_smallest() {
        for (accept, expected) in [
            ("", "plain"),
            ("gzip", "gzip"),
            ("GZIP", "gzip"),
            ("x-gzip", "gzip"),
            ("gzip, br", "br"),
            ("gzip, deflate, br, zstd", "br"),
            ("gzip;q=1, br;q=0.9", "gzip"),
            ("gzip;q=0.001, br;q=0", "gzip"),
            ("gzip ; q=0.5 , zstd ;q=0.6", "zstd"),
            ("deflate", "plain"),
            ("deflate, *", "br"),
            ("*;q=0, gzip", "gzip"),
            ("*;q=0", "nothing"),
            ("identity;q=0", "nothing"),
            ("identity;q=0, gzip", "gzip"),
            ("identity;q=0, deflate", "nothing"),
            ("identity, gzip;q=0.5", "plain"),
            ("identity;q=0.5, gzip", "gzip"),
            ("identity, gzip", "gzip"),
            ("gzip;q=0", "plain"),
            ("gzip;q=2", "plain"),
            ("gzip;q=0.1234", "plain"),
            ("gzip;level=9", "plain"),
            ("gzip;q=", "plain"),
            (",,", "plain"),
        ] {
            assert_eq!(chosen(&[accept]), expected, "{accept:?}");
        }
        assert_eq!(chosen(&[]), "plain");
        assert_eq!(chosen(&["deflate", "zstd"]), "zstd");
    }
}
