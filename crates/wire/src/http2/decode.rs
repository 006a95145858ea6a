//! Header blocks to fields, with the table of the sender's fields (RFC 7541).

use std::collections::VecDeque;

use super::hpack::{take_integer, take_string};
use super::huffman::unfold;

/// Bytes of the table, by the standard's count; what every sender may use that was told nothing else.
pub const TABLE_BYTES: usize = 4_096;
/// What an entry counts beside its name and value.
const ENTRY_BYTES: usize = 32;

/// The static table (appendix A).
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""),
    ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""),
    ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""),
    ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""),
    ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""),
    ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""), ("transfer-encoding", ""),
    ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// A block is not as it must be: the table is of no use from here on, and so is the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadBlock;

/// Whether a list of fields is within its limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListSize {
    /// It is.
    Fits,
    /// It is not; the fields from there on were only counted.
    TooLarge,
}

/// Reads the blocks of one connection, in their order.
#[derive(Debug)]
pub struct FieldDecoder {
    table: FieldTable,
    /// The most that the sender may make of the table.
    table_bytes_max: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for FieldDecoder {
    fn default() -> FieldDecoder {
        FieldDecoder::with_table(TABLE_BYTES)
    }
}

impl FieldDecoder {
    /// For a sender that was allowed a table of so many bytes, at most [`TABLE_BYTES`]. With none, what a block means does not depend on
    /// those before it.
    pub fn with_table(bytes_max: usize) -> FieldDecoder {
        FieldDecoder {
            table: FieldTable {
                entries: VecDeque::new(),
                data: Vec::new(),
                size: 0,
                size_max: bytes_max,
            },
            table_bytes_max: bytes_max,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Reads a block; `field` is called with the name and value of each field, as long as they make at most
    /// `list_bytes_max`, each counted with 32 bytes more.
    ///
    /// # Errors
    /// [`BadBlock`].
    pub fn decode(
        &mut self,
        block: &[u8],
        list_bytes_max: usize,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<ListSize, BadBlock> {
        let mut rest = block;
        let mut left = Some(list_bytes_max);
        let mut give = |name: &[u8], value: &[u8]| {
            left = left.and_then(|left| left.checked_sub(name.len() + value.len() + ENTRY_BYTES));
            if left.is_some() {
                field(name, value);
            }
        };
        let mut may_resize = true;
        while let Some(&first) = rest.first() {
            if first & 0xe0 == 0x20 {
                let size = take_integer(&mut rest, 5)? as usize;
                if !may_resize || size > self.table_bytes_max {
                    return Err(BadBlock);
                }
                self.table.resize(size);
                continue;
            }
            may_resize = false;
            if first & 0x80 != 0 {
                let index = take_integer(&mut rest, 7)?;
                let (name, value) = self.table.get(index)?;
                give(name, value);
            } else if first & 0x40 != 0 {
                self.literal(&mut rest, 6)?;
                give(&self.name, &self.value);
                self.table.insert(&self.name, &self.value);
            } else {
                self.literal(&mut rest, 4)?;
                give(&self.name, &self.value);
            }
        }
        Ok(match left {
            Some(_) => ListSize::Fits,
            None => ListSize::TooLarge,
        })
    }

    /// Reads a literal into `name` and `value`.
    fn literal(&mut self, rest: &mut &[u8], bits: u32) -> Result<(), BadBlock> {
        match take_integer(rest, bits)? {
            0 => string(rest, &mut self.name)?,
            index => {
                let (name, _) = self.table.get(index)?;
                self.name.clear();
                self.name.extend_from_slice(name);
            }
        }
        string(rest, &mut self.value)
    }
}

fn string(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), BadBlock> {
    out.clear();
    match take_string(rest)? {
        (text, false) => out.extend_from_slice(text),
        (text, true) => unfold(text, out).map_err(|_| BadBlock)?,
    }
    Ok(())
}

/// The fields that a sender may name by their number.
#[derive(Debug)]
struct FieldTable {
    /// The newest first: where its name starts in `data`, and the lengths of both.
    entries: VecDeque<(usize, usize, usize)>,
    /// Names and values, the oldest first, behind those that are no entries any more.
    data: Vec<u8>,
    /// By the standard's count.
    size: usize,
    size_max: usize,
}

impl FieldTable {
    fn get(&self, index: u64) -> Result<(&[u8], &[u8]), BadBlock> {
        let place = usize::try_from(index).map_err(|_| BadBlock)?;
        let place = place.checked_sub(1).ok_or(BadBlock)?;
        if let Some((name, value)) = STATIC.get(place) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.entries.get(place - STATIC.len());
        let &(start, name, value) = entry.ok_or(BadBlock)?;
        let both = self.data.get(start..start + name + value);
        both.map(|both| both.split_at(name)).ok_or(BadBlock)
    }

    fn resize(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict(size_max);
    }

    /// Removes the oldest until the others have at most `size` bytes.
    fn evict(&mut self, size: usize) {
        while self.size > size {
            let Some((_, name, value)) = self.entries.pop_back() else {
                return;
            };
            self.size -= name + value + ENTRY_BYTES;
        }
    }

    fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_BYTES;
        let Some(room) = self.size_max.checked_sub(size) else {
            // A field that does not fit empties the table (section 4.4).
            return self.evict(0);
        };
        self.evict(room);
        if self.data.len() + name.len() + value.len() > 2 * TABLE_BYTES {
            let oldest = self.entries.back().map_or(self.data.len(), |entry| entry.0);
            self.data.drain(..oldest);
            for entry in &mut self.entries {
                entry.0 -= oldest;
            }
        }
        let entry = (self.data.len(), name.len(), value.len());
        self.data.extend_from_slice(name);
        self.data.extend_from_slice(value);
        self.entries.push_front(entry);
        self.size += size;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::hpack::{put_integer, put_string};
    use super::*;

    fn read(decoder: &mut FieldDecoder, block: &[u8]) -> Result<Vec<String>, BadBlock> {
        let mut seen = Vec::new();
        decoder.decode(block, 10_000, |name, value| {
            let text = |bytes| String::from_utf8_lossy(bytes);
            seen.push(format!("{}: {}", text(name), text(value)));
        })?;
        Ok(seen)
    }

    #[test]
    fn the_requests_of_the_standard_are_read_with_their_table() {
        // RFC 7541, C.4: three requests of one connection, in Huffman's code.
        let mut decoder = FieldDecoder::default();
        let first = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        let expected = [
            ":method: GET",
            ":scheme: http",
            ":path: /",
            ":authority: www.example.com",
        ];
        assert_eq!(read(&mut decoder, first).unwrap(), expected);
        let second = b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf";
        let seen = read(&mut decoder, second).unwrap();
        assert_eq!(
            seen[3..],
            [":authority: www.example.com", "cache-control: no-cache"]
        );
        let third = b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf";
        let seen = read(&mut decoder, third).unwrap();
        assert_eq!(
            seen[3..],
            [":authority: www.example.com", "custom-key: custom-value"]
        );
        assert_eq!(decoder.table.size, 164);
    }

    #[test]
    fn the_oldest_entries_make_room() {
        let mut decoder = FieldDecoder::default();
        for number in 0..5_000 {
            let mut block = vec![0x40];
            put_string(&mut block, b"name");
            put_string(&mut block, format!("{number:0200}").as_bytes());
            read(&mut decoder, &block).unwrap();
            assert!(
                decoder.table.size <= TABLE_BYTES && decoder.table.data.len() <= 2 * TABLE_BYTES
            );
        }
        assert_eq!(decoder.table.entries.len(), 17);
        let seen = read(&mut decoder, b"\xbe\xce").unwrap();
        assert!(seen[0].ends_with("04999") && seen[1].ends_with("04983"));
        assert_eq!(read(&mut decoder, b"\xcf"), Err(BadBlock));
        // Emptied, and one that does not fit.
        assert_eq!(read(&mut decoder, b"\x20\xbe"), Err(BadBlock));
        assert_eq!(
            read(&mut decoder, b"\x3f\xe1\x1f\x40\x01a\x01b\xbe").unwrap(),
            ["a: b", "a: b"]
        );
    }

    #[test]
    fn without_a_table_nothing_of_a_block_is_of_use_to_the_next() {
        let mut decoder = FieldDecoder::with_table(0);
        assert_eq!(read(&mut decoder, b"\x20\x40\x01a\x01b").unwrap(), ["a: b"]);
        assert_eq!(read(&mut decoder, b"\xbe"), Err(BadBlock));
        assert_eq!(read(&mut decoder, b"\x21"), Err(BadBlock));
    }

    #[test]
    fn a_list_that_is_too_long_is_counted_and_the_table_kept() {
        let mut decoder = FieldDecoder::default();
        let mut block = vec![0x40];
        put_string(&mut block, b"a");
        put_string(&mut block, &[b'x'; 3_000]);
        // A bomb: each byte is 3,000.
        block.extend([0xbe; 10_000]);
        let mut count = 0;
        let size = decoder.decode(&block, 16_384, |_, _| count += 1);
        assert_eq!((size, count), (Ok(ListSize::TooLarge), 5));
        assert_eq!(read(&mut decoder, b"\xbe").unwrap().len(), 1);
    }

    #[test]
    fn blocks_that_break_a_rule_are_refused() {
        for wrong in [
            &b"\x80"[..],
            b"\xbe",
            b"\xff",
            b"\x40\x01a",
            b"\x40\x05a",
            b"\x82\x20",
            b"\x3f\xe2\x1f",
            b"\x40\x81\xff\x01b",
            b"\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x00\x7f\xff\xff\xff\xff\xff\x7f",
        ] {
            let read = read(&mut FieldDecoder::default(), wrong);
            assert_eq!(read, Err(BadBlock), "{wrong:x?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..10)) {
            let mut decoder = FieldDecoder::default();
            for block in blocks {
                let _ = decoder.decode(&block, 4_096, |_, _| {});
                prop_assert!(decoder.table.size <= TABLE_BYTES);
            }
        }

        #[test]
        fn fields_are_read_as_they_were_written(fields in prop::collection::vec(("[a-z-]{1,20}", "[ -~]{0,300}", 0_usize..3), 0..60)) {
            let mut decoder = FieldDecoder::default();
            for (name, value, kind) in fields {
                let mut block = Vec::new();
                put_integer(&mut block, [0, 0x10, 0x40][kind], [4, 4, 6][kind], 0);
                put_string(&mut block, name.as_bytes());
                put_string(&mut block, value.as_bytes());
                prop_assert_eq!(read(&mut decoder, &block), Ok(vec![format!("{name}: {value}")]));
            }
        }
    }
}
