//! One value that is taken from an answer.

use prony_record::{StepTake, TakeFrom};
use prony_wire::Headers;
use regex::bytes::{Regex, RegexBuilder};

use crate::cookies::LaneCookies;
use crate::json_check::JsonPath;

/// Bytes of a value at the most; a longer one is not there.
pub const TAKEN_BYTES_MAX: usize = 64 << 10;
/// Most memory that a compiled expression takes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Where a value stands, compiled.
#[derive(Debug)]
enum TakeRule {
    Json(JsonPath),
    Header(String),
    Regex(Regex),
    Cookie(String),
}

/// A value that is taken.
#[derive(Debug)]
pub struct CompiledTake {
    /// Where the value goes among those of a user.
    pub place: usize,
    /// It and where it is taken from, in words.
    pub words: String,
    rule: TakeRule,
}

impl CompiledTake {
    /// Compiles `take`, whose value goes to `place`.
    ///
    /// # Errors
    /// What says where the value stands cannot.
    pub fn new(take: &StepTake, place: usize) -> Result<CompiledTake, String> {
        let (rule, from) = match &take.from {
            TakeFrom::Json(path) => (TakeRule::Json(path.parse()?), format!("json {path}")),
            TakeFrom::Header(name) => (TakeRule::Header(name.clone()), format!("header {name}")),
            TakeFrom::Cookie(name) => (TakeRule::Cookie(name.clone()), format!("cookie {name}")),
            TakeFrom::Regex(text) => {
                let regex = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
                let regex = regex.map_err(|error| {
                    // It shows the place on lines of its own, and says in the last one what is wrong.
                    let error = error.to_string();
                    let why = error.lines().last().unwrap_or_default();
                    let why = why.trim_start_matches("error: ");
                    format!("`{text}` is no regular expression: {why}")
                })?;
                (TakeRule::Regex(regex), format!("regex {text}"))
            }
        };
        Ok(CompiledTake {
            place,
            words: format!("take {} from {from}", take.name),
            rule,
        })
    }

    /// Whether it needs the body as a whole.
    pub fn needs_body(&self) -> bool {
        matches!(self.rule, TakeRule::Json(_) | TakeRule::Regex(_))
    }

    /// The value that these headers have, where it stands in one.
    pub fn of_head<'h>(&self, headers: &Headers<'h>) -> Option<&'h [u8]> {
        match &self.rule {
            TakeRule::Header(name) => headers.get_all(name).next(),
            _ => None,
        }
    }

    /// Appends the value to `out`: `head` is what [`Self::of_head`] found, and `body` the whole body, where it is held. False
    /// where there is none, or one that is too long.
    pub fn write(
        &self,
        head: Option<&[u8]>,
        body: Option<&[u8]>,
        cookies: &LaneCookies,
        out: &mut Vec<u8>,
    ) -> bool {
        let from = out.len();
        let found = match &self.rule {
            TakeRule::Json(path) => body.is_some_and(|body| path.take(body, out)),
            TakeRule::Header(_) => append(head, out),
            TakeRule::Cookie(name) => append(cookies.value(name.as_bytes()), out),
            TakeRule::Regex(regex) => {
                let captures = body.and_then(|body| regex.captures(body));
                let group = captures.and_then(|of| match of.len() {
                    1 => of.get(0),
                    _ => of.get(1),
                });
                append(group.map(|group| group.as_bytes()), out)
            }
        };
        found && out.len() - from <= TAKEN_BYTES_MAX
    }
}

fn append(value: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(value.unwrap_or_default());
    value.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(from: TakeFrom, body: &str) -> Option<String> {
        let name = "a".to_owned();
        let take = CompiledTake::new(&StepTake { name, from }, 0).unwrap();
        let mut cookies = LaneCookies::default();
        cookies.set(b"id=7; Path=/");
        let mut out = Vec::new();
        let found = take.write(Some(b"of head"), Some(body.as_bytes()), &cookies, &mut out);
        found.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_value_is_taken_from_each_part_of_an_answer() {
        let json = r#"{"t": "a\"b\u00e9", "n": 5, "o": {"x": [1]}, "z": null, "e": ""}"#;
        for (from, expected) in [
            (TakeFrom::Json("$.t".into()), Some("a\"bé")),
            (TakeFrom::Json("$.n".into()), Some("5")),
            (TakeFrom::Json("$.o".into()), Some(r#"{"x": [1]}"#)),
            (TakeFrom::Json("$.e".into()), Some("")),
            (TakeFrom::Json("$.z".into()), None),
            (TakeFrom::Json("$.none".into()), None),
            (TakeFrom::Header("X".into()), Some("of head")),
            (TakeFrom::Regex(r#""n": (\d)"#.into()), Some("5")),
            (TakeFrom::Regex(r"\d+".into()), Some("00")),
            (TakeFrom::Regex("(x)?q".into()), None),
            (TakeFrom::Cookie("id".into()), Some("7")),
            (TakeFrom::Cookie("no".into()), None),
        ] {
            assert_eq!(taken(from.clone(), json).as_deref(), expected, "{from:?}");
        }
        let long = format!("{{\"t\": \"{}\"}}", "x".repeat(TAKEN_BYTES_MAX + 1));
        assert_eq!(taken(TakeFrom::Json("$.t".into()), &long), None);
    }

    #[test]
    fn what_cannot_be_taken_says_why() {
        let why = |from: TakeFrom| {
            let name = "a".to_owned();
            CompiledTake::new(&StepTake { name, from }, 0).unwrap_err()
        };
        assert!(why(TakeFrom::Regex("(".into())).starts_with("`(` is no regular expression: "));
        assert!(why(TakeFrom::Json("$.a == 1".into())).ends_with("`== 1` is no part of one"));
    }
}
