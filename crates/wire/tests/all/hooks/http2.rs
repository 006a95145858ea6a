//! For the fuzz target `fields`, whose corpus a test replays.

use prony_wire::http2::{FieldDecoder, FrameHead, ListSize, put_integer, put_string, take_integer};

/// Most bytes of a list that the decoder is to give.
const LIST_BYTES_MAX: usize = 512;

/// Any bytes as frames of blocks, each read by two decoders that must agree: one gives no more than its limit, both
/// the same fields up to there. Then the fields are written, and read as they were.
pub fn fields(data: &[u8]) {
    let (mut bounded, mut whole) = (FieldDecoder::default(), FieldDecoder::default());
    let mut rest = data;
    while let Some((head, after)) = rest.split_first_chunk() {
        let length = FrameHead::read(*head).length.min(after.len());
        let (block, next) = after.split_at(length);
        rest = next;
        let (mut few, mut all) = (Vec::new(), Vec::new());
        let size = bounded.decode(block, LIST_BYTES_MAX, |name, value| {
            few.push((name.to_vec(), value.to_vec()));
        });
        let read = whole.decode(block, usize::MAX, |name, value| {
            all.push((name.to_vec(), value.to_vec()));
        });
        assert_eq!(size.is_err(), read.is_err());
        assert!(all.starts_with(&few));
        let bytes = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len() + 32;
        assert!(few.iter().map(bytes).sum::<usize>() <= LIST_BYTES_MAX);
        assert!(size != Ok(ListSize::Fits) || few == all);
        if read.is_err() {
            return;
        }
        check_written(&all);
    }
}

fn check_written(fields: &[(Vec<u8>, Vec<u8>)]) {
    let mut block = Vec::new();
    for (name, value) in fields {
        put_integer(&mut block, 0x40, 6, 0);
        put_string(&mut block, name);
        put_string(&mut block, value);
        let mut number = Vec::new();
        put_integer(&mut number, 0, 5, value.len() as u64);
        assert_eq!(take_integer(&mut &number[..], 5), Ok(value.len() as u64));
    }
    let mut seen = Vec::new();
    let read = FieldDecoder::default().decode(&block, usize::MAX, |name, value| {
        seen.push((name.to_vec(), value.to_vec()));
    });
    assert!(read == Ok(ListSize::Fits) && seen == fields);
}
