//! Every vector, whole and cut at every place, says the same.

mod vectors;

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
