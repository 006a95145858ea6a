//! Integers, strings and literal fields of HPACK (RFC 7541, sections 5 and 6). What is written enters no table and is
//! not coded by Huffman: that costs some bytes, and no time.

use super::decode::BadBlock;

/// Names of the static table that an answer often has, with their indexes.
const NAMES: [(&str, u64); 14] = [
    ("content-type", 31),
    ("date", 33),
    ("content-length", 28),
    ("server", 54),
    ("cache-control", 24),
    ("etag", 34),
    ("accept-ranges", 18),
    ("content-range", 30),
    ("content-encoding", 26),
    ("last-modified", 44),
    ("location", 46),
    ("vary", 59),
    ("allow", 22),
    ("set-cookie", 55),
];
const STATUS: u64 = 8;

/// Appends an integer behind the upper bits of `first` (section 5.1).
#[inline]
pub fn put_integer(out: &mut Vec<u8>, first: u8, bits: u32, mut value: u64) {
    let most = (1_u64 << bits) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    value -= most;
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a string.
#[inline]
pub fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_integer(out, 0, 7, text.len() as u64);
    out.extend_from_slice(text);
}

/// Appends a status, from 100 to 999.
#[inline]
pub fn put_status(out: &mut Vec<u8>, status: u16) {
    let index = match status {
        200 => 8,
        204 => 9,
        206 => 10,
        304 => 11,
        400 => 12,
        404 => 13,
        500 => 14,
        _ => {
            put_integer(out, 0, 4, STATUS);
            let digit = |of: u16| b'0' + (of % 10) as u8;
            let digits = [digit(status / 100), digit(status / 10), digit(status)];
            return put_string(out, &digits);
        }
    };
    out.push(0x80 | index);
}

/// Appends a field; upper case in its name becomes lower.
#[inline]
pub fn put_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    let known = NAMES
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known));
    match known {
        Some((_, index)) => put_integer(out, 0, 4, *index),
        None => {
            out.push(0);
            put_integer(out, 0, 7, name.len() as u64);
            out.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
    }
    put_string(out, value);
}

/// Takes an integer that starts in the lower `bits` of the first byte.
///
/// # Errors
/// [`BadBlock`] where it is cut, or has more bits than any length of a block.
#[inline]
pub fn take_integer(rest: &mut &[u8], bits: u32) -> Result<u64, BadBlock> {
    let (&first, mut after) = rest.split_first().ok_or(BadBlock)?;
    let most = (1_u64 << bits) - 1;
    let mut value = u64::from(first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (&byte, following) = after.split_first().ok_or(BadBlock)?;
            after = following;
            // No length of a block has more bits than this.
            if shift > 28 {
                return Err(BadBlock);
            }
            value += u64::from(byte & 127) << shift;
            shift += 7;
            if byte & 128 == 0 {
                break;
            }
        }
    }
    *rest = after;
    Ok(value)
}

/// Takes a string as it is, and whether it is in Huffman's code.
///
/// # Errors
/// [`BadBlock`] where it is cut.
#[inline]
pub fn take_string<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], bool), BadBlock> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = usize::try_from(take_integer(rest, 7)?).map_err(|_| BadBlock)?;
    let (text, after) = rest.split_at_checked(length).ok_or(BadBlock)?;
    *rest = after;
    Ok((text, is_coded))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_literals_with_names_of_the_static_table_where_it_has_them() {
        let mut out = Vec::new();
        put_status(&mut out, 200);
        put_status(&mut out, 418);
        put_field(&mut out, "Date", b"now");
        put_field(&mut out, "X-y", b"Z");
        let expected = b"\x88\x08\x03418\x0f\x12\x03now\x00\x03x-y\x01Z";
        assert_eq!(out, expected);
    }

    proptest! {
        #[test]
        fn integers_are_read_as_they_were_written(value in 0..1_u64 << 30, bits in 4_u32..8) {
            let mut out = Vec::new();
            put_integer(&mut out, 0, bits, value);
            prop_assert_eq!(take_integer(&mut &out[..], bits), Ok(value));
        }
    }
}
