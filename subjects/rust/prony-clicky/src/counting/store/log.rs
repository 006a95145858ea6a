//! The bytes of a log of totals. Not for: files (`disk`), and when what is written (`file`).
//!
//! ```text
//! head    "CLICKLOG"  version u32  crc32c u32 of the twelve bytes before
//! record  length u32  crc32c u32 of length and payload  payload
//! payload number u64  then for each counter: length of its name u8, name, total u64
//! ```
//!
//! All numbers are little-endian. Records are numbered from 1 without a gap. They carry
//! totals, not clicks, so that the last one that names a counter is right. A batch is one
//! record, whatever its size: of several, a crash could leave the last without the first.

use std::collections::BTreeMap;

use crc32c::{crc32c, crc32c_append};

use super::super::name::Name;
use super::super::setting::TOTAL_MAX;

const MAGIC: &[u8; 8] = b"CLICKLOG";
const VERSION: u32 = 1;

/// Bytes of a log without a record.
pub const HEAD_BYTES: usize = 16;
/// Bytes of a record before its payload.
const FRAME_BYTES: usize = 8;
/// A payload with one total of the root counter.
const PAYLOAD_BYTES_MIN: usize = 8 + 1 + 8;
/// A payload with [`COUNTERS_MAX`] totals, each with the longest name.
const PAYLOAD_BYTES_MAX: usize = 8 + COUNTERS_MAX * (1 + 64 + 8);
/// Counters that a log can have.
pub const COUNTERS_MAX: usize = 100_000;

/// What a log says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Contents {
    pub totals: BTreeMap<Name, u64>,
    /// Number of the last whole record.
    pub number: u64,
    /// Bytes up to the end of the last whole record.
    pub whole: usize,
    /// Bytes after that, which the end of a write that broke off left.
    pub torn: usize,
}

/// What is wrong with a log, and where.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Damage {
    pub offset: usize,
    pub why: &'static str,
}

/// Whether these are the bytes of a log, whole or not.
pub fn is_log(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// A log with these totals and nothing else; its last record has number 1, or 0 where
/// there is none.
pub fn image(totals: &BTreeMap<Name, u64>) -> (Vec<u8>, u64) {
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    let check = crc32c(&bytes);
    bytes.extend_from_slice(&check.to_le_bytes());
    if totals.is_empty() {
        return (bytes, 0);
    }
    let totals = totals.iter().map(|(name, total)| (name, *total));
    append(&mut bytes, 1, totals);
    (bytes, 1)
}

/// Appends a record.
pub fn append<'a>(bytes: &mut Vec<u8>, number: u64, totals: impl Iterator<Item = (&'a Name, u64)>) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; FRAME_BYTES]);
    bytes.extend_from_slice(&number.to_le_bytes());
    for (name, total) in totals {
        let name = name.as_str().as_bytes();
        bytes.push(name.len() as u8);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(&total.to_le_bytes());
    }
    let (frame, payload) = bytes[start..].split_at_mut(FRAME_BYTES);
    frame[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    let check = crc32c_append(crc32c(&frame[..4]), payload);
    frame[4..].copy_from_slice(&check.to_le_bytes());
}

/// Reads a log.
///
/// # Errors
/// [`Damage`]: it is not a log of this version, or there is a whole record after one that
/// is not, so that something was lost that had been there.
pub fn read(bytes: &[u8]) -> Result<Contents, Damage> {
    let damage = |offset, why| Err(Damage { offset, why });
    let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
        return damage(0, "the head is not whole");
    };
    if !is_log(head) || u32_at(head, 12) != crc32c(&head[..12]) {
        return damage(0, "the head is not a log's");
    }
    if u32_at(head, 8) != VERSION {
        return damage(8, "the version is another");
    }
    let mut contents = Contents {
        whole: HEAD_BYTES,
        ..Contents::default()
    };
    while let Some(payload) = record(&bytes[contents.whole..]) {
        let due = contents.number + 1;
        if !take_in(payload, due, &mut contents.totals) {
            return damage(contents.whole, "a record that does not belong there");
        }
        contents.number = due;
        contents.whole += FRAME_BYTES + payload.len();
    }
    let rest = &bytes[contents.whole..];
    if (1..rest.len()).any(|start| record(&rest[start..]).is_some()) {
        return damage(
            contents.whole,
            "a record that is not whole, before one that is",
        );
    }
    contents.torn = rest.len();
    Ok(contents)
}

/// The payload of the whole record that these bytes begin with.
fn record(bytes: &[u8]) -> Option<&[u8]> {
    let frame = bytes.first_chunk::<FRAME_BYTES>()?;
    let length = u32_at(frame, 0) as usize;
    if !(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&length) {
        return None;
    }
    let payload = bytes[FRAME_BYTES..].get(..length)?;
    let check = crc32c_append(crc32c(&frame[..4]), payload);
    (check == u32_at(frame, 4)).then_some(payload)
}

/// Takes in the totals of record `due`; false when it is another, or makes no sense.
fn take_in(payload: &[u8], due: u64, totals: &mut BTreeMap<Name, u64>) -> bool {
    let Some((number, mut rest)) = payload.split_first_chunk::<8>() else {
        return false;
    };
    if u64::from_le_bytes(*number) != due {
        return false;
    }
    while let Some((&length, after)) = rest.split_first() {
        let Some((name, after)) = after.split_at_checked(usize::from(length)) else {
            return false;
        };
        let Some((total, after)) = after.split_first_chunk::<8>() else {
            return false;
        };
        let (Ok(name), total) = (Name::stored(name), u64::from_le_bytes(*total)) else {
            return false;
        };
        if total > 2 * TOTAL_MAX {
            return false;
        }
        totals.insert(name, total);
        rest = after;
    }
    totals.len() <= COUNTERS_MAX
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes[at..].first_chunk().copied();
    bytes.map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of three records; where each ends.
    fn three() -> (Vec<u8>, [usize; 4]) {
        let a = Name::new("a").expect("a name");
        let (mut bytes, _) = image(&BTreeMap::new());
        let mut ends = [bytes.len(); 4];
        for (number, total) in [(1, 500), (2, 1_000), (3, 1_500)] {
            append(
                &mut bytes,
                number,
                [(&Name::ROOT, total), (&a, number)].into_iter(),
            );
            ends[number as usize] = bytes.len();
        }
        (bytes, ends)
    }

    fn root(contents: &Contents) -> u64 {
        contents.totals.get(&Name::ROOT).copied().unwrap_or(0)
    }

    #[test]
    fn what_is_written_is_read() {
        let (bytes, _) = three();
        let contents = read(&bytes).expect("a log");
        assert_eq!((root(&contents), contents.number), (1_500, 3));
        assert_eq!((contents.whole, contents.torn), (bytes.len(), 0));
        let (again, number) = image(&contents.totals);
        let short = read(&again).expect("a log");
        assert_eq!(
            (short.totals, short.number, number),
            (contents.totals, 1, 1)
        );
    }

    #[test]
    fn a_log_that_ends_at_any_byte_has_its_whole_records() {
        let (bytes, ends) = three();
        for length in HEAD_BYTES..bytes.len() {
            let contents = read(&bytes[..length]).expect("a log");
            let whole = ends
                .iter()
                .rposition(|&end| end <= length)
                .expect("the head");
            assert_eq!(contents.number, whole as u64, "{length}");
            assert_eq!(root(&contents), 500 * whole as u64);
            assert_eq!(contents.torn, length - ends[whole]);
        }
        for length in 0..HEAD_BYTES {
            assert_eq!(
                read(&bytes[..length])
                    .map(drop)
                    .map_err(|damage| damage.offset),
                Err(0)
            );
        }
    }

    #[test]
    fn a_flipped_bit_is_found_and_named_unless_it_is_in_the_last_record() {
        let (bytes, ends) = three();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let at = bit / 8;
            let outcome = read(&flipped);
            if at < ends[0] {
                assert!(outcome.is_err_and(|damage| damage.offset <= at), "{bit}");
            } else if at < ends[2] {
                let start = ends.iter().rfind(|&&end| end <= at).expect("the head");
                assert_eq!(
                    outcome.map_err(|damage| damage.offset),
                    Err(*start),
                    "{bit}"
                );
            } else {
                let contents = outcome.expect("as if its writing had broken off");
                assert_eq!(
                    (root(&contents), contents.torn),
                    (1_000, bytes.len() - ends[2])
                );
            }
        }
    }

    #[test]
    fn a_record_twice_or_out_of_order_is_damage() {
        let (bytes, ends) = three();
        let twice = [&bytes[..ends[2]], &bytes[ends[1]..ends[2]]].concat();
        assert_eq!(read(&twice).map_err(|damage| damage.offset), Err(ends[2]));
        let without = [&bytes[..ends[1]], &bytes[ends[2]..]].concat();
        assert_eq!(read(&without).map_err(|damage| damage.offset), Err(ends[1]));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_log_or_damaged(tail in proptest::collection::vec(0_u8.., 0..200)) {
            let (bytes, _) = three();
            let contents = read(&[&bytes[..], &tail].concat()).expect("a tail that is torn");
            proptest::prop_assert_eq!((contents.number, contents.torn), (3, tail.len()));
        }
    }
}
