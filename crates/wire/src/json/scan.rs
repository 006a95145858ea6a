//! Finds the bytes of a string that need attention, eight at a time. Reading and writing share it.

/// Where among eight bytes the first is that a string may not hold as it is, or that needs
/// a second look: a quote, a backslash, a control character.
#[inline(always)]
pub(super) fn special_at(bytes: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    // The lowest set bit is exact: a borrow only ever goes upward.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let word = u64::from_le_bytes(bytes);
    let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    let found =
        controls | zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// Bytes at the start of `bytes` that a string may hold as they are and that need no
/// second look.
#[inline]
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(at) = special_at(*word) {
            return index * 8 + at;
        }
    }
    // The last eight bytes, of which the first were looked at already.
    if let Some(last) = bytes.last_chunk::<8>() {
        return bytes.len() - 8 + special_at(*last).unwrap_or(8);
    }
    let special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    tail.iter().position(special).unwrap_or(tail.len())
}
