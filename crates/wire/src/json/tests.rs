use proptest::prelude::*;

use super::*;

super::message! {
    #[derive(Clone, Debug, PartialEq)]
    struct Inner {
        name: String,
        count: u64,
    }

    /// All of it is read straight.
    #[derive(Clone, Debug, PartialEq)]
    struct Outer {
        id: u64,
        inner: Inner,
        text: String,
    }

    /// Read by serde_json.
    #[derive(Clone, Debug, PartialEq)]
    struct Mixed {
        id: u64,
        shift: i64,
        share: f64,
        note: Option<String>,
        on: bool,
        outer: Outer,
        many: Vec<u64>,
    }

    #[derive(Clone, Debug, PartialEq)]
    struct One {
        a: Option<u64>,
    }
}

fn outer() -> impl Strategy<Value = Outer> {
    let plain = any::<(u64, String, u64, String)>();
    plain.prop_map(|(id, name, count, text)| Outer {
        id,
        inner: Inner { name, count },
        text,
    })
}

fn mixed() -> impl Strategy<Value = Mixed> {
    let plain = any::<(u64, i64, Option<String>, bool)>();
    let many = proptest::collection::vec(any::<u64>(), 0..4);
    (plain, -1e300..1e300_f64, outer(), many).prop_map(
        |((id, shift, note, on), share, outer, many)| Mixed {
            id,
            shift,
            share,
            note,
            on,
            outer,
            many,
        },
    )
}

/// What serde_json, an independent reader, makes of the same bytes.
fn theirs(bytes: &[u8]) -> Option<Outer> {
    serde_json::from_slice(bytes).ok()
}

proptest! {
    #[test]
    fn what_is_written_is_what_another_writer_writes_and_is_read_again(
        outer in outer(),
        mixed in mixed(),
    ) {
        let bytes = to_vec(&outer);
        prop_assert_eq!(&bytes, &serde_json::to_vec(&outer).unwrap());
        prop_assert_eq!(from_slice::<Outer>(&bytes).unwrap(), outer);
        let bytes = to_vec(&mixed);
        prop_assert_eq!(&bytes, &serde_json::to_vec(&mixed).unwrap());
        prop_assert_eq!(from_slice::<Mixed>(&bytes).unwrap(), mixed);
    }

    #[test]
    fn what_is_written_with_white_space_is_read(message in outer()) {
        let bytes = serde_json::to_vec_pretty(&message).unwrap();
        prop_assert_eq!(from_slice::<Outer>(&bytes).unwrap(), message);
    }

    #[test]
    fn every_part_of_a_message_is_an_error(message in outer()) {
        let bytes = to_vec(&message);
        for end in 0..bytes.len() {
            prop_assert!(from_slice::<Outer>(&bytes[..end]).is_err());
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
        prop_assert_eq!(from_slice::<Outer>(&bytes).ok(), theirs(&bytes));
    }

    #[test]
    fn plain_bytes_are_found_as_by_looking_at_each(bytes: Vec<u8>) {
        let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
        let slow = bytes.iter().position(special).unwrap_or(bytes.len());
        prop_assert_eq!(plain_bytes(&bytes), slow);
    }
}

#[test]
fn what_is_not_the_message_is_an_error_with_its_place() {
    let error = |text: &[u8]| from_slice::<Inner>(text).unwrap_err().to_string();
    for (text, expected) in [
        (&b""[..], "EOF while parsing a value at line 1 column 0"),
        (b" [\"a\",1]", "invalid type: sequence, expected an object"),
        (
            b"{\"name\":\"a\",\"count\":1.5}",
            "invalid type: floating point `1.5`, expected u64 at line 1 column 23",
        ),
        (
            b"{\"name\":\"a\",\"count\":18446744073709551616}",
            "invalid type: floating point `1.8446744073709552e+19`, expected u64 at line 1 column 40",
        ),
        (
            b"{\"name\":\"a\",\n\"name\":\"b\"}",
            "duplicate field `name` at line 2 column 6",
        ),
        (
            b"{\"name\":\"a\"}",
            "missing field `count` at line 1 column 12",
        ),
        (
            b"{\"name\":\"a\",\"count\":1} x",
            "trailing characters at line 1 column 24",
        ),
        (
            b"{\"name\":\"a\",\"count\":1,\"x\":\"\xff\"}",
            "invalid utf-8 sequence of 1 bytes from index 27",
        ),
    ] {
        let text_shown = String::from_utf8_lossy(text);
        assert_eq!(error(text), expected, "{text_shown}");
    }
    let deep = format!("{{\"a\":{}", "[".repeat(1_000_000));
    let wrong = error(deep.as_bytes());
    assert!(wrong.starts_with("EOF while parsing a list"), "{wrong}");
}

#[test]
fn fields_in_any_order_and_unknown_ones_are_read() {
    let text = r#" { "text" : "\ud83d\ude00\t" , "x" : [ {"y":null}, true, -0.5e3, "\u00e9" ] ,
        "inner" : {"count":0,"name":"é"} , "id":7 } "#;
    let read: Outer = from_slice(text.as_bytes()).unwrap();
    assert_eq!((read.id, read.inner.count), (7, 0));
    assert_eq!(
        (read.inner.name.as_str(), read.text.as_str()),
        ("é", "\u{1f600}\t")
    );
}

#[test]
fn what_may_be_absent_is_none_and_written_as_null() {
    assert_eq!(to_vec(&One { a: None }), b"{\"a\":null}");
    assert_eq!(from_slice::<One>(b" {\"b\":1} ").unwrap(), One { a: None });
}

#[test]
fn a_number_that_is_not_finite_is_written_as_null() {
    assert_eq!(to_vec(&f64::NAN), b"null");
}

#[test]
fn what_is_written_is_read_straight() {
    let message = Outer {
        id: 1,
        inner: Inner {
            name: "a".into(),
            count: u64::MAX / 2,
        },
        text: "five hundred".into(),
    };
    let bytes = to_vec(&message);
    let mut reader = Reader { rest: &bytes };
    assert_eq!(Outer::straight(&mut reader), Some(message));
    assert!(reader.rest.is_empty());
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
                assert_eq!(from_slice::<String>(&written).ok(), Some(text));
            }
        }
    }
}

#[test]
fn numbers_of_one_two_and_more_digits_are_written() {
    for number in [0, 7, 9, 10, 42, 99, 100, 1_234, u64::MAX] {
        assert_eq!(to_vec(&number), number.to_string().into_bytes());
    }
}

#[test]
fn a_number_is_read_by_the_grammar() {
    let read = |text: &str| from_slice::<u64>(text.as_bytes()).ok();
    for number in [0, 7, 10, 1_234, u64::MAX / 2, u64::MAX] {
        assert_eq!(read(&number.to_string()), Some(number));
    }
    for text in ["01", "00", "+1", "-1", "1.", "1.0", "1e1", "", "0x1"] {
        assert_eq!(read(text), None, "{text}");
    }
}
