//! Whether a value in a JSON text is what it must be: `$.user.id == 5`, `$.items[0].name == "a"`, `$.token`.
//!
//! The text is only scanned as far as the value, and nothing is allocated unless a string has escapes. It is not checked
//! to be JSON as a whole: what cannot be scanned has no such value.

use std::cmp::Ordering;
use std::str::FromStr;

use memchr::memchr2;
use serde_json::Value;

/// Deepest nesting that is scanned.
const DEPTH_MAX: usize = 128;

/// A step from a value to one in it.
#[derive(Clone, Debug, Eq, PartialEq)]
enum JsonStep {
    Key(String),
    Place(usize),
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum JsonRelation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

/// Where in a text of JSON a value stands: `$.user.id`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JsonPath(Vec<JsonStep>);

/// A value that a text must have.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonCheck {
    path: JsonPath,
    /// What it is compared with; `None`: it must only be there.
    compared: Option<(JsonRelation, Value)>,
}

impl FromStr for JsonPath {
    type Err = String;

    fn from_str(text: &str) -> Result<JsonPath, String> {
        let wrong = |why: &str| format!("`{text}` is no path in JSON, such as $.user.id: {why}");
        match JsonPath::begin(text, &wrong)? {
            (path, "") => Ok(path),
            (_, rest) => Err(wrong(&format!("`{rest}` is no part of one"))),
        }
    }
}

impl JsonPath {
    /// The path that `text` begins with, and what follows it. An error is what `wrong` makes of the reason.
    fn begin<'t>(
        text: &'t str,
        wrong: &dyn Fn(&str) -> String,
    ) -> Result<(JsonPath, &'t str), String> {
        let rest = text.trim().strip_prefix('$');
        let mut rest = rest.ok_or_else(|| wrong("it does not begin with $"))?;
        let mut steps = Vec::new();
        loop {
            if let Some(from) = rest.strip_prefix('.') {
                let is_end = |c: char| ".[=!<>".contains(c) || c.is_whitespace();
                let end = from.find(is_end).unwrap_or(from.len());
                if end == 0 {
                    return Err(wrong("a dot without a name"));
                }
                steps.push(JsonStep::Key(from[..end].to_owned()));
                rest = &from[end..];
            } else if let Some(from) = rest.strip_prefix('[') {
                let (inside, after) =
                    bracket(from).ok_or_else(|| wrong("a [ that does not end"))?;
                let place = inside.parse().map(JsonStep::Place).ok();
                let step = place
                    .or_else(|| key(inside))
                    .ok_or_else(|| wrong("in [] stands a number from 0 on, or a name in quotes"))?;
                steps.push(step);
                rest = after;
            } else {
                return Ok((JsonPath(steps), rest.trim()));
            }
        }
    }

    /// Appends the value in `text` to `out`: a string without its quotes and escapes, anything else as it is written. False where
    /// there is none, or it is null.
    pub fn take(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(value) = find(text, &self.0).filter(|value| *value != b"null") else {
            return false;
        };
        match value.first() {
            Some(b'"') => string(value, |text| out.extend_from_slice(text.as_bytes())).is_some(),
            _ => {
                out.extend_from_slice(value);
                true
            }
        }
    }
}

impl FromStr for JsonCheck {
    type Err = String;

    fn from_str(text: &str) -> Result<JsonCheck, String> {
        let wrong =
            |why: &str| format!("`{text}` is no check of JSON, such as $.user.id == 5: {why}");
        let (path, rest) = JsonPath::begin(text, &wrong)?;
        if rest.is_empty() {
            return Ok(JsonCheck {
                path,
                compared: None,
            });
        }
        // The longer ones come first.
        let operators = [
            ("==", JsonRelation::Equal),
            ("!=", JsonRelation::Unequal),
            ("<=", JsonRelation::LessOrEqual),
            (">=", JsonRelation::MoreOrEqual),
            ("<", JsonRelation::Less),
            (">", JsonRelation::More),
        ];
        let found = operators
            .iter()
            .find_map(|(sign, how)| Some((*how, rest.strip_prefix(sign)?.trim())));
        let (how, value) =
            found.ok_or_else(|| wrong("behind the path comes ==, !=, <, <=, > or >="))?;
        let value = match value
            .strip_prefix('\'')
            .and_then(|of| of.strip_suffix('\''))
        {
            Some(text) => Value::String(text.to_owned()),
            None => serde_json::from_str(value).map_err(|_| {
                wrong("it is compared with a number, a text in quotes, true, false or null")
            })?,
        };
        let is_ordered = !matches!(how, JsonRelation::Equal | JsonRelation::Unequal);
        match value {
            Value::Array(_) | Value::Object(_) => Err(wrong("it is compared with a single value")),
            Value::Bool(_) | Value::Null if is_ordered => {
                Err(wrong("only numbers and texts are less or more"))
            }
            value => Ok(JsonCheck {
                path,
                compared: Some((how, value)),
            }),
        }
    }
}

/// What stands in a bracket, and what follows it.
fn bracket(from: &str) -> Option<(&str, &str)> {
    let quote = from.chars().next().filter(|first| "\"'".contains(*first));
    let end = match quote {
        Some(quote) => 2 + from[1..].find(quote)?,
        None => from.find(']')?,
    };
    Some((&from[..end], from[end..].strip_prefix(']')?))
}

fn key(inside: &str) -> Option<JsonStep> {
    let between = |quote: char| inside.strip_prefix(quote)?.strip_suffix(quote);
    let key = between('"').or_else(|| between('\''))?;
    Some(JsonStep::Key(key.to_owned()))
}

impl JsonCheck {
    /// Whether the value is in this text, and as it must be.
    pub fn holds(&self, text: &[u8]) -> bool {
        let Some(value) = find(text, &self.path.0) else {
            return false;
        };
        match &self.compared {
            None => true,
            Some((how, expected)) => compare(value, *how, expected),
        }
    }
}

fn compare(value: &[u8], how: JsonRelation, expected: &Value) -> bool {
    let order = match expected {
        Value::String(text) => string(value, |of| of.cmp(text.as_str())),
        Value::Number(number) => {
            let of = std::str::from_utf8(value)
                .ok()
                .and_then(|of| of.parse::<f64>().ok());
            let is_number = value
                .first()
                .is_some_and(|first| *first == b'-' || first.is_ascii_digit());
            of.filter(|_| is_number)
                .and_then(|of| of.partial_cmp(&number.as_f64()?))
        }
        other => (value == other.to_string().as_bytes()).then_some(Ordering::Equal),
    };
    match how {
        JsonRelation::Equal => order == Some(Ordering::Equal),
        JsonRelation::Unequal => order != Some(Ordering::Equal),
        JsonRelation::Less => order == Some(Ordering::Less),
        JsonRelation::LessOrEqual => order.is_some_and(Ordering::is_le),
        JsonRelation::More => order == Some(Ordering::Greater),
        JsonRelation::MoreOrEqual => order.is_some_and(Ordering::is_ge),
    }
}

/// Calls `take` with the text of a string in its quotes; `None`: it is no string.
fn string<T>(value: &[u8], take: impl FnOnce(&str) -> T) -> Option<T> {
    let inside = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inside).is_none() {
        return Some(take(std::str::from_utf8(inside).ok()?));
    }
    let text: String = serde_json::from_slice(value).ok()?;
    Some(take(&text))
}

/// The text of the value that these steps lead to.
fn find<'a>(text: &'a [u8], steps: &[JsonStep]) -> Option<&'a [u8]> {
    let mut at = blank(text, 0);
    for step in steps {
        at = match step {
            JsonStep::Key(key) => member(text, at, key)?,
            JsonStep::Place(place) => element(text, at, *place)?,
        };
    }
    let end = skipped(text, at)?;
    Some(&text[at..end])
}

/// Where the value of `key` in the object at `at` begins.
fn member(text: &[u8], at: usize, key: &str) -> Option<usize> {
    let mut at = opened(text, at, b'{')?;
    while text.get(at)? == &b'"' {
        let end = skipped(text, at)?;
        let is_key = string(&text[at..end], |of| of == key)?;
        at = blank(text, end);
        if text.get(at)? != &b':' {
            return None;
        }
        at = blank(text, at + 1);
        if is_key {
            return Some(at);
        }
        at = blank(text, skipped(text, at)?);
        if text.get(at)? != &b',' {
            return None;
        }
        at = blank(text, at + 1);
    }
    None
}

/// Where the element at `place` of the array at `at` begins.
fn element(text: &[u8], at: usize, place: usize) -> Option<usize> {
    let mut at = opened(text, at, b'[')?;
    for _ in 0..place {
        at = blank(text, skipped(text, at)?);
        if text.get(at)? != &b',' {
            return None;
        }
        at = blank(text, at + 1);
    }
    (text.get(at)? != &b']').then_some(at)
}

fn opened(text: &[u8], at: usize, bracket: u8) -> Option<usize> {
    (text.get(at)? == &bracket).then(|| blank(text, at + 1))
}

fn blank(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// The end of the value that begins at `at`.
fn skipped(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => end_of_string(text, at),
        b'{' | b'[' => {
            let (mut at, mut depth) = (at, 0_usize);
            loop {
                match text.get(at)? {
                    b'"' => at = end_of_string(text, at)?,
                    b'{' | b'[' => {
                        depth += 1;
                        at += 1;
                        if depth > DEPTH_MAX {
                            return None;
                        }
                    }
                    b'}' | b']' => {
                        depth -= 1;
                        at += 1;
                        if depth == 0 {
                            return Some(at);
                        }
                    }
                    _ => at += 1,
                }
            }
        }
        _ => {
            let is_end =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
            let length = text[at..].iter().position(is_end);
            let end = length.map_or(text.len(), |length| at + length);
            (end > at).then_some(end)
        }
    }
}

fn end_of_string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#" {"a": 1, "b\"": {"c": [true, {"d": "x\u00e9"}, -2.5e1, null]}, "e f": "", "g": [], "h": {}} "#;

    fn holds(check: &str) -> bool {
        check.parse::<JsonCheck>().unwrap().holds(TEXT.as_bytes())
    }

    #[test]
    fn a_value_is_found_and_compared() {
        for check in [
            "$",
            "$.a",
            "$.a == 1",
            "$.a==1.0",
            "$.a != 2",
            "$.a < 1.5",
            "$.a >= 1",
            "$['b\"'].c[0] == true",
            "$['b\"'].c[1].d == 'xé'",
            "$['b\"'].c[1].d > \"x\"",
            "$['b\"'].c[2] == -25",
            "$['b\"'].c[3] == null",
            "$['e f'] == ''",
            "$.h",
            "$.g",
        ] {
            assert!(holds(check), "{check}");
        }
        for check in [
            "$.b",
            "$.a == 2",
            "$.a == '1'",
            "$.a > 1",
            "$.g[0]",
            "$[0]",
            "$.a.b",
            "$['e f'] < 1",
            "$['b\"'].c[0] == false",
            "$['b\"'].c[4]",
            "$.h.x",
        ] {
            assert!(!holds(check), "{check}");
        }
    }

    #[test]
    fn what_is_no_check_says_why() {
        let why = |text: &str| text.parse::<JsonCheck>().unwrap_err();
        let said = [
            "a == 1",
            "$.",
            "$[",
            "$[x]",
            "$.a = 1",
            "$.a == x",
            "$.a == [1]",
            "$.a < true",
            "$['a'",
        ];
        let said: Vec<String> = said.iter().map(|text| why(text)).collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        `a == 1` is no check of JSON, such as $.user.id == 5: it does not begin with $
        `$.` is no check of JSON, such as $.user.id == 5: a dot without a name
        `$[` is no check of JSON, such as $.user.id == 5: a [ that does not end
        `$[x]` is no check of JSON, such as $.user.id == 5: in [] stands a number from 0 on, or a name in quotes
        `$.a = 1` is no check of JSON, such as $.user.id == 5: behind the path comes ==, !=, <, <=, > or >=
        `$.a == x` is no check of JSON, such as $.user.id == 5: it is compared with a number, a text in quotes, true, false or null
        `$.a == [1]` is no check of JSON, such as $.user.id == 5: it is compared with a single value
        `$.a < true` is no check of JSON, such as $.user.id == 5: only numbers and texts are less or more
        `$['a'` is no check of JSON, such as $.user.id == 5: a [ that does not end
        ");
    }

    /// JSON of some depth.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c\"\\\\é\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_another_reader_finds(value in value(), steps in prop::collection::vec((any::<bool>(), 0_usize..4), 0..4), pretty: bool) {
            let text = match pretty {
                true => serde_json::to_string_pretty(&value),
                false => serde_json::to_string(&value),
            };
            let text = text.unwrap();
            let mut theirs = Some(&value);
            let mut ours = Vec::new();
            for (is_key, place) in steps {
                let key = ["a", "b", "c", "d"][place];
                theirs = theirs.and_then(|of| match is_key {
                    true => of.as_object()?.get(key),
                    false => of.as_array()?.get(place),
                });
                ours.push(match is_key {
                    true => JsonStep::Key(key.to_owned()),
                    false => JsonStep::Place(place),
                });
            }
            let found = find(text.as_bytes(), &ours).map(|of| serde_json::from_slice::<Value>(of).unwrap());
            prop_assert_eq!(found.as_ref(), theirs);
        }

        #[test]
        fn whatever_a_text_is_it_is_scanned(text in "[\\[\\]{}\",:a1\\\\ ]{0,60}", check in "\\$[.a\\[\\]0'=<! ]{0,12}") {
            if let Ok(check) = check.parse::<JsonCheck>() {
                check.holds(text.as_bytes());
            }
        }
    }
}
