//! Fields in the text of a request: `{random}`, `{counter}`, `{uuid}`, `{time}`, and the columns of a data file.
//!
//! A field is a name in braces. Any other brace is text, so that JSON needs no escape; `{{name}}` is the text `{name}`. Pure:
//! for their values see `filled` and `mixed`.

/// What stands for a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Field {
    /// A random number from 0 to 2^53 - 1, the same one everywhere in a request.
    Random,
    /// The number of the request, from 1; no two requests of a load have the same.
    Counter,
    /// A random UUID (version 4), likewise.
    Uuid,
    /// Unix time in milliseconds.
    Time,
    /// A column of the data file, or, behind these, a value that a scenario takes, by its place.
    Column(usize),
    /// The line `Cookie` of a user, or nothing. No name stands for it.
    Cookies,
}

/// Fields that need no data file.
const OWN: [(&str, Field); 4] = [
    ("random", Field::Random),
    ("counter", Field::Counter),
    ("uuid", Field::Uuid),
    ("time", Field::Time),
];
/// What a name of the environment stands behind.
const ENVIRONMENT: &str = "env:";
/// Longest name in braces that is taken for a field.
const NAME_BYTES_MAX: usize = 100;

/// A part of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TemplateSpan<'a> {
    /// Bytes as they are.
    Text(&'a [u8]),
    /// A field.
    Field(Field),
}

/// A field that there is not.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FieldError {
    /// Nothing has this name.
    #[error("{{{name}}} is no field: {known}; to send it as it is, write {{{{{name}}}}}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The environment has no such variable.
    #[error("{{env:{0}}}: the environment has no {0}")]
    Environment(String),
}

/// Takes `text` apart. `columns` are those of the data file.
///
/// # Errors
/// A name in braces that is no field.
pub fn spans<'a>(text: &'a [u8], columns: &[String]) -> Result<Vec<TemplateSpan<'a>>, FieldError> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'{') {
        let (before, from) = rest.split_at(at);
        if let Some(name) = named(&from[1..], columns).filter(|_| !is_escaped(from)) {
            push(&mut found, before);
            found.push(TemplateSpan::Field(field(name, columns)?));
            rest = &from[name.len() + 2..];
        } else if let Some(name) = escaped(from, columns) {
            push(&mut found, before);
            push(&mut found, &from[1..name.len() + 3]);
            rest = &from[name.len() + 4..];
        } else {
            push(&mut found, &rest[..=at]);
            rest = &rest[at + 1..];
        }
    }
    push(&mut found, rest);
    Ok(found)
}

/// `text` with `change` done to all of it but its fields, whatever these are called: for texts that are to be encoded.
pub fn around_fields(text: &str, change: &dyn Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut from = 0;
    while let Some(at) = rest[from..].find('{').map(|at| from + at) {
        let begun = &rest.as_bytes()[at..];
        let is_escape = escaped(begun, &[]);
        let length = match (is_escape, named(&begun[1..], &[])) {
            (Some(name), _) => name.len() + 4,
            (None, Some(name)) if !is_escaped(begun) => name.len() + 2,
            _ => {
                from = at + 1;
                continue;
            }
        };
        out.push_str(&change(&rest[..at]));
        out.push_str(&rest[at..at + length]);
        rest = &rest[at + length..];
        from = 0;
    }
    out.push_str(&change(rest));
    out
}

/// Checks that each name in braces of `text` is a field, or among `names`.
///
/// # Errors
/// One that is neither.
pub fn check_fields(text: &str, names: &[String]) -> Result<(), FieldError> {
    spans(text.as_bytes(), names).map(|_| ())
}

/// The names in braces of a text, in their order.
pub fn names_in(text: &[u8]) -> Vec<&[u8]> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'{') {
        let from = &rest[at..];
        let length = match (escaped(from, &[]), named(&from[1..], &[])) {
            (Some(name), _) => name.len() + 4,
            (None, Some(name)) if !is_escaped(from) => {
                names.push(name);
                name.len() + 2
            }
            _ => 1,
        };
        rest = &from[length..];
    }
    names
}

/// Whether `text` has a field, known or not.
pub fn has_fields(text: &[u8], columns: &[String]) -> bool {
    spans(text, columns).map_or(true, |spans| {
        let is_field = |span: &TemplateSpan<'_>| matches!(span, TemplateSpan::Field(_));
        let text_bytes = spans.iter().map(|span| match span {
            TemplateSpan::Text(bytes) => bytes.len(),
            TemplateSpan::Field(_) => 0,
        });
        // What was escaped is shorter without the escape, and has to be written anew as well.
        spans.iter().any(is_field) || text_bytes.sum::<usize>() != text.len()
    })
}

/// `text` with an escape wherever it would be taken for a field.
pub fn escaped_text(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'{') {
        out.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 1..];
        if let Some(name) = named(rest, &[]) {
            out.push(b'{');
            out.extend_from_slice(name);
            out.extend_from_slice(b"}}");
            rest = &rest[name.len() + 1..];
        }
    }
    out.extend_from_slice(rest);
    out
}

/// `text` with each `{env:NAME}` replaced by what `value` has for it.
///
/// # Errors
/// A variable that there is not.
pub fn with_environment(
    text: &str,
    value: &dyn Fn(&str) -> Option<String>,
) -> Result<String, FieldError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('{') {
        out.push_str(before);
        rest = from;
        let name = named(from.as_bytes(), &[]).and_then(|name| std::str::from_utf8(name).ok());
        let is_escaped = out.ends_with('{');
        match name.and_then(|name| name.strip_prefix(ENVIRONMENT)) {
            Some(variable) if !is_escaped => {
                let missing = || FieldError::Environment(variable.to_owned());
                out.push_str(&value(variable).ok_or_else(missing)?);
                rest = &from[ENVIRONMENT.len() + variable.len() + 1..];
            }
            _ => out.push('{'),
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn push<'a>(found: &mut Vec<TemplateSpan<'a>>, text: &'a [u8]) {
    if !text.is_empty() {
        found.push(TemplateSpan::Text(text));
    }
}

/// The name that `text`, which follows a brace, begins with, where another brace ends it.
fn named<'a>(text: &'a [u8], columns: &[String]) -> Option<&'a [u8]> {
    let is_column = |column: &&String| {
        text.starts_with(column.as_bytes()) && text.get(column.len()) == Some(&b'}')
    };
    if let Some(column) = columns.iter().find(is_column) {
        return Some(&text[..column.len()]);
    }
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(byte);
    let length = text.iter().take_while(|byte| is_of_name(byte)).count();
    let begins = text.first()?.is_ascii_alphabetic() || text[0] == b'_';
    let ends = text.get(length) == Some(&b'}');
    (begins && ends && length <= NAME_BYTES_MAX).then(|| &text[..length])
}

/// Whether a text that begins with a brace begins with two.
fn is_escaped(from: &[u8]) -> bool {
    from.starts_with(b"{{")
}

/// The name in two braces at the beginning of `from`.
fn escaped<'a>(from: &'a [u8], columns: &[String]) -> Option<&'a [u8]> {
    let name = named(from.strip_prefix(b"{{")?, columns)?;
    from[name.len() + 2..].starts_with(b"}}").then_some(name)
}

fn field(name: &[u8], columns: &[String]) -> Result<Field, FieldError> {
    let column = columns.iter().position(|column| column.as_bytes() == name);
    let own = OWN.iter().find(|(own, _)| own.as_bytes() == name);
    match (column, own) {
        (Some(place), _) => Ok(Field::Column(place)),
        (None, Some((_, field))) => Ok(*field),
        (None, None) => Err(FieldError::Unknown {
            name: String::from_utf8_lossy(name).into_owned(),
            known: known(columns),
        }),
    }
}

fn known(columns: &[String]) -> String {
    let own: Vec<String> = OWN.iter().map(|(name, _)| format!("{{{name}}}")).collect();
    let own = format!("there are {}, {{env:NAME}}", own.join(", "));
    if columns.is_empty() {
        return format!("{own}, and the columns of a data file, which is not given");
    }
    let columns: Vec<String> = columns.iter().map(|name| format!("{{{name}}}")).collect();
    format!("{own}, and the columns {}", columns.join(", "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The spans as text, a field in angle brackets.
    fn shown(text: &str, columns: &[&str]) -> String {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let spans = match spans(text.as_bytes(), &columns) {
            Ok(spans) => spans,
            Err(error) => return error.to_string(),
        };
        let one = |span: &TemplateSpan<'_>| match span {
            TemplateSpan::Text(text) => String::from_utf8_lossy(text).into_owned(),
            TemplateSpan::Field(Field::Column(place)) => format!("<{}>", columns[*place]),
            TemplateSpan::Field(field) => format!("<{field:?}>"),
        };
        spans.iter().map(one).collect()
    }

    #[test]
    fn a_name_in_braces_is_a_field_and_any_other_brace_is_text() {
        for (text, expected) in [
            ("", ""),
            ("/a", "/a"),
            ("/{random}", "/<Random>"),
            (r#"{"a":{counter},"b":{}}"#, r#"{"a":<Counter>,"b":{}}"#),
            ("{uuid}{time}", "<Uuid><Time>"),
            ("{{random}}", "{random}"),
            ("{{{random}}}", "{{random}}"),
            ("{ random}{1}{a b}{", "{ random}{1}{a b}{"),
            (r#"{{"a":1}}"#, r#"{{"a":1}}"#),
        ] {
            assert_eq!(shown(text, &[]), expected, "{text}");
        }
        // A column may have any name, and comes before what has the same name here.
        assert_eq!(
            shown("{First name}-{time}", &["time", "First name"]),
            "<First name>-<time>"
        );
    }

    #[test]
    fn a_name_that_is_no_field_says_which_there_are() {
        let alone = "{rnadom} is no field: there are {random}, {counter}, {uuid}, {time}, {env:NAME}, and the columns of a \
             data file, which is not given; to send it as it is, write {{rnadom}}";
        assert_eq!(shown("/{rnadom}", &[]), alone);
        let with = shown("/{nam}", &["name"]);
        assert!(with.contains("and the columns {name};"), "{with}");
        assert!(has_fields(b"{nam}", &[]) && has_fields(b"{{nam}}", &[]));
        assert!(!has_fields(br#"{"a":{}}"#, &[]));
    }

    #[test]
    fn a_text_is_encoded_around_its_fields() {
        let shout = |text: &str| text.to_uppercase();
        for (text, expected, names) in [
            ("a {b} c", "A {b} C", "b"),
            ("{{b}} {c}", "{{b}} {c}", "c"),
            ("{ a }{", "{ A }{", ""),
            ("{a b} {{{c}}}", "{A B} {{{c}}}", ""),
        ] {
            let found = names_in(text.as_bytes());
            assert_eq!(around_fields(text, &shout), expected, "{text}");
            assert_eq!(found.join(&b" "[..]), names.as_bytes(), "{text}");
        }
    }

    #[test]
    fn the_environment_is_filled_in_once() {
        let value = |name: &str| (name == "TOKEN").then(|| "{random}".to_owned());
        let with = |text| with_environment(text, &value).map_err(|error| error.to_string());
        assert_eq!(with("a {env:TOKEN} {b}").as_deref(), Ok("a {random} {b}"));
        assert_eq!(with("{{env:TOKEN}}").as_deref(), Ok("{{env:TOKEN}}"));
        assert_eq!(
            with("{env:NO}"),
            Err("{env:NO}: the environment has no NO".to_owned())
        );
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_taken_apart_or_refused(text in "[{}a-c:\"é]{0,40}", column in "[a-c ]{1,3}") {
            let columns = [column];
            if let Ok(spans) = spans(text.as_bytes(), &columns) {
                let texts = spans.iter().map(|span| match span {
                    TemplateSpan::Text(bytes) => bytes.len(),
                    TemplateSpan::Field(_) => 0,
                });
                prop_assert!(texts.sum::<usize>() <= text.len());
            }
            let _ = with_environment(&text, &|_| None);
            let escaped = escaped_text(text.as_bytes());
            let again = spans(&escaped, &[]).unwrap();
            let whole: Vec<u8> = again.iter().flat_map(|span| match span {
                TemplateSpan::Text(bytes) => bytes.to_vec(),
                TemplateSpan::Field(_) => b"<field>".to_vec(),
            }).collect();
            prop_assert_eq!(String::from_utf8_lossy(&whole), text);
        }
    }
}
