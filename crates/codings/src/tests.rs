//! Every coding whole, at every split, cut off, spoilt and too dense.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use zstd_safe::{CCtx, CParameter};

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("into memory");
    encoder.finish().expect("into memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("into memory");
    encoder.finish().expect("into memory")
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("into memory");
    encoder.finish().expect("into memory")
}

fn br(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = brotli::CompressorWriter::new(&mut out, 4096, 5, 22);
    writer.write_all(bytes).expect("into memory");
    drop(writer);
    out
}

fn zstd_with(bytes: &[u8], window_log: u32) -> Vec<u8> {
    let mut context = CCtx::create();
    let parameters = [
        CParameter::WindowLog(window_log),
        CParameter::ChecksumFlag(true),
        CParameter::ContentSizeFlag(false),
    ];
    for parameter in parameters {
        context.set_parameter(parameter).expect("a parameter");
    }
    let mut out = vec![0; zstd_safe::compress_bound(bytes.len()) + 64];
    let mut input = zstd_safe::InBuffer::around(bytes);
    let mut output = zstd_safe::OutBuffer::around(&mut out[..]);
    context
        .compress_stream(&mut output, &mut input)
        .expect("there is room");
    assert_eq!(context.end_stream(&mut output), Ok(0));
    let made = output.pos();
    out.truncate(made);
    out
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd_with(bytes, 20)
}

type Encode = fn(&[u8]) -> Vec<u8>;

/// Each coding, by the name in headers and what makes it.
const ALL: [(&str, Encode); 5] = [
    ("gzip", gzip),
    ("deflate", zlib),
    ("deflate", raw),
    ("br", br),
    ("zstd", zstd),
];

fn decoder(names: &str) -> Decoder {
    Decoder::new([names], &DecodeSettings::all())
        .expect("known codings")
        .expect("there is one")
}

/// Feeds pieces of the input; checks what a caller may lean on.
fn decode<'a>(
    decoder: &mut Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<u8>, DecodeError> {
    let (mut body, mut out) = (Vec::new(), Vec::new());
    for mut rest in pieces {
        loop {
            let used = decoder.decode(rest, &mut out)?;
            rest = &rest[used..];
            assert!(out.len() <= PIECE_BYTES_MAX);
            body.extend_from_slice(&out);
            if out.len() < PIECE_BYTES_MAX {
                assert_eq!(rest, b"", "there was room, and all is taken");
                out.clear();
                break;
            }
            out.clear();
        }
    }
    decoder.finish()?;
    Ok(body)
}

fn whole(names: &str, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    decode(&mut decoder(names), [bytes])
}

fn bytewise(names: &str, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    decode(&mut decoder(names), bytes.chunks(1))
}

fn text() -> Vec<u8> {
    (0..300)
        .flat_map(|line: u32| format!("line {line} of {}\n", line * line).into_bytes())
        .collect()
}

#[test]
fn each_coding_is_taken_off_at_every_split() {
    let text = &text()[..600];
    for (name, encode) in ALL {
        let bytes = encode(text);
        for split in 0..=bytes.len() {
            let (first, second) = bytes.split_at(split);
            let body = decode(&mut decoder(name), [first, second]);
            assert_eq!(body.as_deref(), Ok(text), "{name} split at {split}");
        }
        assert_eq!(bytewise(name, &bytes).as_deref(), Ok(text), "{name}");
    }
}

#[test]
fn a_cut_is_seen_at_every_place() {
    let text = &text()[..200];
    for (name, encode) in ALL {
        let bytes = encode(text);
        for cut in 1..bytes.len() {
            let coding = Coding::from_name(name).expect("known");
            assert_eq!(
                whole(name, &bytes[..cut]),
                Err(DecodeError::Truncated(coding)),
                "{name} cut at {cut} of {}",
                bytes.len()
            );
        }
    }
}

#[test]
fn a_body_without_a_byte_is_empty_and_so_is_a_coded_one() {
    for (name, encode) in ALL {
        assert_eq!(whole(name, b""), Ok(Vec::new()), "{name}");
        assert_eq!(whole(name, &encode(b"")), Ok(Vec::new()), "{name}");
        assert_eq!(bytewise(name, &encode(b"")), Ok(Vec::new()), "{name}");
    }
}

#[test]
fn codings_are_stacked_in_the_order_of_the_header() {
    let text = text();
    let stacked = zstd(&br(&zlib(&gzip(&text))));
    let names = "gzip, deflate,,identity , BR,zstd";
    assert_eq!(whole(names, &stacked).as_ref(), Ok(&text));
    assert_eq!(bytewise(names, &stacked).as_ref(), Ok(&text));
    let lines = ["gzip, deflate", "br", "zstd"];
    let mut decoder = Decoder::new(lines, &DecodeSettings::all())
        .unwrap()
        .unwrap();
    assert_eq!(decode(&mut decoder, [&stacked[..]]).as_ref(), Ok(&text));
    // The one that is cut is the one that is named.
    let cut = zstd(&gzip(&text)[..20]);
    assert_eq!(
        whole("gzip, zstd", &cut),
        Err(DecodeError::Truncated(Coding::Gzip))
    );
}

#[test]
fn what_is_long_comes_in_pieces() {
    let long: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 1000 * 31) as u8).collect();
    for (name, encode) in ALL {
        let bytes = encode(&long);
        assert!(whole(name, &bytes).unwrap() == long, "{name}");
        let pieces = decode(&mut decoder(name), bytes.chunks(7));
        assert!(pieces.unwrap() == long, "{name}");
    }
    let stacked = gzip(&zstd(&br(&long)));
    assert!(whole("br, zstd, gzip", &stacked).unwrap() == long);
}

#[test]
fn several_members_are_one_body() {
    let both = |encode: Encode| [encode(b"one "), encode(b""), encode(b"two")].concat();
    for (name, encode) in [("x-gzip", gzip as Encode), ("zstd", zstd)] {
        assert_eq!(whole(name, &both(encode)).unwrap(), b"one two");
        assert_eq!(bytewise(name, &both(encode)).unwrap(), b"one two");
    }
    let padded = [gzip(b"one"), vec![0; 700]].concat();
    assert_eq!(whole("gzip", &padded).unwrap(), b"one");
    assert_eq!(bytewise("gzip", &padded).unwrap(), b"one");
}

#[test]
fn what_follows_the_end_is_an_error_by_name() {
    for (name, encode) in ALL {
        let bytes = [encode(b"text"), b"garbage".to_vec()].concat();
        let coding = Coding::from_name(name).expect("known");
        let error = Err(DecodeError::Trailing(coding));
        assert_eq!(whole(name, &bytes), error, "{name}");
        assert_eq!(bytewise(name, &bytes), error, "{name}");
    }
}

#[test]
fn garbage_is_an_error_by_name_and_final() {
    let garbage = b"<html>this is not compressed at all</html>";
    for (name, _) in ALL {
        let mut decoder = decoder(name);
        let mut out = Vec::new();
        let error = decoder.decode(garbage, &mut out).unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with(&format!("the body is not in {name} as its header says: ")),
            "{said}"
        );
        assert_eq!(decoder.decode(b"", &mut out), Err(error.clone()));
        assert_eq!(decoder.finish(), Err(error));
    }
    // A sum that does not fit.
    let mut wrong = gzip(b"some text");
    let last = wrong.len() - 6;
    wrong[last] ^= 1;
    assert!(matches!(
        whole("gzip", &wrong),
        Err(DecodeError::Garbage { .. })
    ));
}

#[test]
fn unknown_and_too_many_codings_are_refused() {
    let new = |names| Decoder::new([names], &DecodeSettings::all()).map(|made| made.is_some());
    assert_eq!(new("identity, "), Ok(false));
    assert_eq!(
        new("gzip, compress"),
        Err(DecodeError::Unknown("compress".into()))
    );
    assert_eq!(new("gzip,gzip,gzip,gzip"), Ok(true));
    assert_eq!(new("gzip,gzip,gzip,gzip,gzip"), Err(DecodeError::TooMany));
    assert!(DecodeError::TooMany.to_string().contains("codings_max = 4"));
}

#[test]
fn a_bomb_is_an_error_by_name() {
    let settings = |decoded_bytes_max, ratio_free_bytes| DecodeSettings {
        decoded_bytes_max,
        ratio_free_bytes,
        ratio_max: 100,
        ..DecodeSettings::all()
    };
    let zeros = vec![0; 1_000_000];
    for (name, encode) in ALL {
        let bytes = encode(&zeros);
        let with = |settings| {
            let mut decoder = Decoder::new([name], &settings).unwrap().unwrap();
            decode(&mut decoder, [&bytes[..]])
        };
        let absolute = with(settings(999_999, u64::MAX)).unwrap_err();
        assert_eq!(
            absolute.to_string(),
            "the decoded body is longer than decoded_bytes_max = 999999"
        );
        let dense = with(settings(u64::MAX, 500_000)).unwrap_err();
        assert!(dense.to_string().contains("ratio_max = 100"), "{dense}");
        assert!(with(settings(1_000_000, 1_000_000)).is_ok(), "{name}");
    }
    // In the middle of a stack, too.
    let inner = gzip(&gzip(&zeros));
    let mut decoder = Decoder::new(["gzip, gzip"], &settings(u64::MAX, 10_000)).unwrap();
    let stacked = decode(decoder.as_mut().unwrap(), [&inner[..]]);
    assert!(matches!(stacked, Err(DecodeError::TooDense { .. })));
}

#[test]
fn a_window_beyond_the_limit_is_refused() {
    let long = text().repeat(4_000);
    let fine = zstd_with(&long, 23);
    assert!(whole("zstd", &fine).unwrap() == long);
    let error = whole("zstd", &zstd_with(&long, 24)).unwrap_err();
    assert!(error.to_string().contains("too much memory"), "{error}");
}

#[test]
fn what_is_asked_for_is_what_is_set() {
    assert_eq!(DecodeSettings::default().accept_encoding(), None);
    let all = DecodeSettings::all().accept_encoding();
    assert_eq!(all.as_deref(), Some("zstd, br, gzip, deflate"));
}

proptest! {
    #[test]
    fn round_trips(
        body in proptest::collection::vec(any::<u8>(), 0..5_000),
        repeats in 1_usize..40,
        order in proptest::collection::vec(0_usize..ALL.len(), 1..=CODINGS_MAX),
        piece in 1_usize..3_000,
    ) {
        let body = body.repeat(repeats);
        let mut bytes = body.clone();
        let mut names = Vec::new();
        for &place in &order {
            let (name, encode) = ALL[place];
            bytes = encode(&bytes);
            names.push(name);
        }
        let mut decoder = decoder(&names.join(", "));
        let decoded = decode(&mut decoder, bytes.chunks(piece));
        prop_assert!(decoded.as_ref() == Ok(&body), "{names:?}");
    }

    #[test]
    fn spoilt_bytes_do_no_harm_and_splits_make_no_difference(
        place in 0_usize..ALL.len(),
        spoils in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        piece in 1_usize..50,
    ) {
        let (name, encode) = ALL[place];
        let mut bytes = encode(&text()[..700]);
        for (at, byte) in spoils {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        let at_once = whole(name, &bytes);
        let in_pieces = decode(&mut decoder(name), bytes.chunks(piece));
        // What a library says of garbage may depend on what it has seen.
        match (&at_once, &in_pieces) {
            (Err(DecodeError::Garbage { .. }), Err(DecodeError::Garbage { .. })) => {}
            _ => prop_assert_eq!(at_once, in_pieces),
        }
    }

    #[test]
    fn garbage_does_no_harm(
        place in 0_usize..ALL.len(),
        bytes in proptest::collection::vec(any::<u8>(), 0..2_000),
    ) {
        let _ = whole(ALL[place].0, &bytes);
    }
}
