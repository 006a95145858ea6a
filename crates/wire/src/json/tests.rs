use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;

super::message! {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Inner<'a> {
        name: Text<'a>,
        on: bool,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Outer<'a> {
        id: u64,
        shift: i64,
        share: f64,
        note: Option<String>,
        inner: Inner<'a>,
        many: Vec<u64>,
    }

    #[derive(Clone, Debug, PartialEq)]
    struct One {
        a: Option<u64>,
    }
}

fn outer() -> impl Strategy<Value = Outer<'static>> {
    let inner = (any::<String>(), any::<bool>()).prop_map(|(name, on)| Inner {
        name: name.into(),
        on,
    });
    let numbers = (any::<u64>(), any::<i64>(), -1e300..1e300_f64);
    let rest = (
        any::<Option<String>>(),
        inner,
        proptest::collection::vec(any::<u64>(), 0..4),
    );
    (numbers, rest).prop_map(|((id, shift, share), (note, inner, many))| Outer {
        id,
        shift,
        share,
        note,
        inner,
        many,
    })
}

/// What serde_json, an independent reader, makes of the same bytes.
fn theirs(bytes: &[u8]) -> Option<Outer<'static>> {
    serde_json::from_slice(bytes).ok()
}

proptest! {
    #[test]
    fn what_is_written_is_read_again_here_and_elsewhere(message in outer()) {
        let bytes = to_vec(&message);
        prop_assert_eq!(&from_slice::<Outer<'_>>(&bytes).unwrap(), &message);
        prop_assert_eq!(&theirs(&bytes).unwrap(), &message);
    }

    #[test]
    fn what_another_writer_wrote_is_read(message in outer(), pretty: bool) {
        let bytes = match pretty {
            true => serde_json::to_vec_pretty(&message),
            false => serde_json::to_vec(&message),
        };
        let bytes = bytes.unwrap();
        prop_assert_eq!(from_slice::<Outer<'_>>(&bytes).unwrap(), message);
    }

    #[test]
    fn every_part_of_a_message_is_an_error(message in outer()) {
        let bytes = to_vec(&message);
        for end in 0..bytes.len() {
            prop_assert!(from_slice::<Outer<'_>>(&bytes[..end]).is_err());
        }
    }

    /// One byte is changed: both readers take it or neither does.
    #[test]
    fn a_changed_byte_is_judged_as_by_another_reader(
        message in outer(),
        at: proptest::sample::Index,
        byte: u8,
    ) {
        let mut bytes = to_vec(&message);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let ours = from_slice::<Outer<'_>>(&bytes);
        prop_assert_eq!(ours.ok(), theirs(&bytes));
    }

    #[test]
    fn plain_bytes_are_found_as_by_looking_at_each(bytes: Vec<u8>) {
        let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
        let slow = bytes.iter().position(special).unwrap_or(bytes.len());
        prop_assert_eq!(scan::plain_bytes(&bytes), slow);
    }
}

fn error(text: &str) -> String {
    from_slice::<Outer<'_>>(text.as_bytes())
        .unwrap_err()
        .to_string()
}

#[test]
fn an_error_names_the_byte_and_what_is_wrong_there() {
    assert_eq!(error(""), "byte 0: the text ends too early");
    assert_eq!(error("[]"), "byte 0: expected an object");
    assert_eq!(
        error(r#"{"id":1.5}"#),
        "byte 6: expected an unsigned number"
    );
    assert_eq!(error(r#"{"id":01}"#), "byte 6: expected an unsigned number");
    assert_eq!(
        error(r#"{"id":18446744073709551616}"#),
        "byte 6: the number is out of the range of a 64-bit unsigned number"
    );
    assert_eq!(
        error(r#"{"shift":-9223372036854775809}"#),
        "byte 9: the number is out of the range of a 64-bit number"
    );
    assert_eq!(
        error(r#"{"share":1e999}"#),
        "byte 9: the number is out of the range of a double"
    );
    assert_eq!(
        error(r#"{"id":1,"id":2}"#),
        "byte 13: the field `id` is there twice"
    );
    assert_eq!(error(r#"{"id":1}"#), "byte 8: the field `shift` is missing");
    assert_eq!(error(r#"{"id":1 "a":2}"#), "byte 8: expected `,` or `}`");
    assert_eq!(
        error(r#"{"a":"\ud800x"}"#),
        "byte 6: there is no such escape"
    );
    assert_eq!(error(r#"{"a":"\x"}"#), "byte 6: there is no such escape");
    assert_eq!(
        error("{\"a\":\"\n\"}"),
        "byte 6: a control character in a string must be escaped"
    );
    assert_eq!(
        error(&format!("{{\"a\":{}", "[".repeat(1_000_000))),
        "byte 68: nested deeper than 64"
    );
    let utf8 = from_slice::<Outer<'_>>(b"{\"a\":\"\xff\"}").unwrap_err();
    assert_eq!(utf8.to_string(), "byte 5: the string is not UTF-8");
    let more = from_slice::<One>(b"{} x").unwrap_err();
    assert_eq!(more.to_string(), "byte 3: something follows the value");
}

#[test]
fn fields_in_any_order_and_unknown_ones_are_read() {
    let text = r#" { "many" : [ 1 , 2 ] , "x" : [ {"y":null}, true, -0.5e3, "\u00e9" ] , "inner" :
        {"on":false,"name":"\ud83d\ude00\t"} , "share" : -0 , "shift":-7 , "id":0 } "#;
    let read: Outer<'_> = from_slice(text.as_bytes()).unwrap();
    assert_eq!((read.id, read.shift, read.note), (0, -7, None));
    assert_eq!(read.inner.name, "\u{1f600}\t");
    assert_eq!(read.many, [1, 2]);
}

#[test]
fn what_may_be_absent_is_none_and_written_as_null() {
    assert_eq!(to_vec(&One { a: None }), b"{\"a\":null}");
    assert_eq!(from_slice::<One>(b" {\"b\":1} ").unwrap(), One { a: None });
}

#[test]
fn what_needs_an_escape_gets_one() {
    let text = Text::from("a\"b\\c\n\u{1}\u{1f}é");
    assert_eq!(
        to_vec(&text),
        "\"a\\\"b\\\\c\\n\\u0001\\u001fé\"".as_bytes()
    );
    assert_eq!(to_vec(&f64::NAN), b"null");
}

#[test]
fn every_escape_is_read() {
    let read = |text: &str| from_slice::<String>(format!("\"{text}\"").as_bytes());
    for (text, expected) in [
        (r#"\"\\\/"#, "\"\\/"),
        (r"\b\f\n\r\t", "\u{8}\u{c}\n\r\t"),
        (r"\u0000\u00e9\uFFFF", "\0é\u{ffff}"),
        (r"\ud7ff\ue000", "\u{d7ff}\u{e000}"),
        (r"\ud800\udc00\uDBFF\uDFFF", "\u{10000}\u{10ffff}"),
        (r"a\ud83d\ude00b", "a\u{1f600}b"),
    ] {
        assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
    }
    for text in [
        r"\ud800",
        r"\ud800\ud800",
        r"\udc00",
        r"\ud800\ue000",
        r"\u12",
        r"\u12g4",
        r"\a",
        r"\",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn a_text_of_any_length_is_written_as_by_another_writer_wherever_it_needs_an_escape() {
    for len in 0..=80 {
        let plain: String = ('0'..'z')
            .filter(|c| *c != '\\')
            .cycle()
            .take(len)
            .collect();
        assert_eq!(to_vec(&plain), serde_json::to_vec(&plain).unwrap());
        for at in 0..len {
            for special in ["\"", "\\", "\n", "é"] {
                let mut text = plain.clone();
                text.replace_range(at..=at, special);
                let written = to_vec(&text);
                assert_eq!(written, serde_json::to_vec(&text).unwrap(), "{text:?}");
                assert_eq!(from_slice::<String>(&written), Ok(text));
            }
        }
    }
}

#[test]
fn the_short_escapes_are_written_where_there_are_some() {
    let written = to_vec(&Text::from("\n\r\t\u{8}\u{c}/"));
    assert_eq!(written, br#""\n\r\t\u0008\u000c/""#);
}

#[test]
fn numbers_of_one_two_and_more_digits_are_written() {
    for number in [0, 7, 9, 10, 42, 99, 100, 1_234, u64::MAX] {
        assert_eq!(to_vec(&number), number.to_string().into_bytes());
    }
}

#[test]
fn a_number_is_read_by_the_grammar_and_not_by_what_rust_would_read() {
    let read = |text: &str| from_slice::<f64>(text.as_bytes()).ok();
    for (text, expected) in [
        ("0", 0.0),
        ("-0.5", -0.5),
        ("10", 10.0),
        ("0e1", 0.0),
        ("1.5E-2", 0.015),
        ("2e+1", 20.0),
    ] {
        assert_eq!(read(text), Some(expected), "{text}");
    }
    let none = [
        "01", "-01", "00", "+1", ".5", "1.", "1e", "1e+", "-", "", "inf", "NaN", "0x1",
    ];
    for text in none {
        assert_eq!(read(text), None, "{text}");
        let unknown = format!("{{\"b\":{text}}}");
        assert!(from_slice::<One>(unknown.as_bytes()).is_err(), "{text}");
    }
}
