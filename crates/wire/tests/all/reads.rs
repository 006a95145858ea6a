//! Every vector, whole and cut at every place, says the same.

use super::vectors;

/// Inputs up to this long are cut at every pair of places, too.
const PAIRS_BYTES_MAX: usize = 72;

#[test]
fn whole() {
    let wrong: Vec<String> = vectors::all()
        .into_iter()
        .map(|(name, input, lines, read)| (name, lines, read(&input, &[])))
        .filter(|(_, lines, seen)| lines != seen)
        .map(|(name, lines, seen)| format!("{name}:\n  expected {lines:?}\n  seen     {seen:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn byte_by_byte() {
    for (name, input, lines, read) in vectors::all() {
        let cuts: Vec<usize> = (1..input.len()).collect();
        assert_eq!(read(&input, &cuts), lines, "{name}");
    }
}

#[test]
fn cut_at_every_place() {
    for (name, input, lines, read) in vectors::all() {
        for cut in 0..=input.len() {
            assert_eq!(read(&input, &[cut]), lines, "{name}, cut at {cut}");
        }
    }
}

#[test]
fn short_ones_cut_at_every_pair_of_places() {
    for (name, input, lines, read) in vectors::all() {
        if input.len() > PAIRS_BYTES_MAX {
            continue;
        }
        for second in 0..=input.len() {
            for first in 0..=second {
                let cuts = [first, second];
                assert_eq!(read(&input, &cuts), lines, "{name}, cut at {cuts:?}");
            }
        }
    }
}

#[test]
fn names_are_unlike() {
    for table in [
        vectors::REQUESTS,
        vectors::REFUSED,
        vectors::CHUNKED,
        vectors::LIMITED,
    ] {
        let mut names: Vec<&str> = table.iter().map(|row| row.0).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}

#[test]
fn a_head_request_that_is_refused_was_not_known_as_one() {
    use prony_wire::{Limits, RequestReader};
    for (request, is_head) in [
        ("HEAD / HTTP/1.1\r\n\r\n", true),
        ("\r\n\r\nHEAD /a b HTTP/1.1\r\nHost: a\r\n\r\n", true),
        ("HEAD / HTTP/1.1\r\nHost: a\n", true),
        ("HEAD / HTTP/1.1\r\nHost: a\r\nx", true),
        ("GET /HEAD HTTP/1.1\r\n\r\n", false),
        ("HEADS / HTTP/1.1\r\n\r\n", false),
        (
            "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            false,
        ),
    ] {
        for cut in 0..=request.len() {
            let mut reader = RequestReader::new(Limits::for_requests());
            let (first, second) = request.as_bytes().split_at(cut);
            let mut left: &[u8] = b"";
            for part in [first, second] {
                left = part;
                while let Ok((used, event)) = reader.next(left) {
                    left = &left[used..];
                    if event.is_none() {
                        break;
                    }
                }
                if !left.is_empty() {
                    break;
                }
            }
            let known = reader.part_is_head_request(left);
            assert_eq!(known, is_head, "{request:?}, cut at {cut}");
        }
    }
}
