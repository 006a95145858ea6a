//! The rows of a CSV file, which all threads of a load share: each row goes to one request, and only a small part of the file
//! is in memory, however large it is.
//!
//! The first line names the columns. Fields are separated by commas; one in double quotes may hold commas, line breaks and,
//! doubled, quotes (RFC 4180). The file is read once before the load, to count its rows and to refuse one that is not whole.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use memchr::{memchr, memchr_iter, memchr2_iter};
use prony_base::Random;
use prony_record::{LoadPart, LoadSpec, RowOrder};

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Longest row.
const ROW_BYTES_MAX: usize = 1 << 20;
/// Rows that a thread takes at once, at the most: it begins with one and doubles, so that a small file is shared out, too.
const BATCH_ROWS_MAX: usize = 256;
/// Of so many rows one has its place kept, where rows are drawn at random.
const MARKED_EVERY: u64 = 64;
/// What some programs write before the text of a file.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What is wrong with a data file.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// It cannot be read.
    #[error("cannot read the data file {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It has no column, or no row.
    #[error("the data file {} has no {what}: its first line names the columns, and each line after it is a row", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        what: &'static str,
    },
    /// A row is not as the first line says.
    #[error("{}:{line}: {why}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line on which the row begins, from 1.
        line: u64,
        /// What is wrong there.
        why: String,
    },
}

/// A data file that was read through once.
#[derive(Debug)]
pub struct DataFile {
    path: PathBuf,
    order: RowOrder,
    /// Names of the columns.
    columns: Vec<String>,
    rows: u64,
    /// Where the first row begins.
    first: u64,
    /// Where every 64th row begins, and the end of the last; empty unless rows are drawn at random.
    marks: Vec<u64>,
    /// The rows that are used here, of which others are used elsewhere.
    share: RowShare,
    next: Mutex<RowReader>,
}

/// Which rows are used here: each belongs to a thread of the load, the nth to the nth, and so on in turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowShare {
    threads: u64,
    part: LoadPart,
}

impl RowShare {
    /// Those of the threads of `spec` that run here.
    pub fn of(spec: &LoadSpec) -> RowShare {
        RowShare {
            threads: u64::from(spec.threads),
            part: spec.part_here(),
        }
    }

    fn has(self, row: u64) -> bool {
        let thread = row.checked_rem(self.threads).unwrap_or(0);
        self.threads == 0 || (self.part.first..self.part.end).contains(&(thread as u32))
    }
}

impl DataFile {
    /// Reads `path` through.
    ///
    /// # Errors
    /// It cannot be read, is empty, or a row has another number of fields than the first line has names.
    pub fn open(path: &Path, order: RowOrder, share: RowShare) -> Result<Arc<DataFile>, DataError> {
        let read = |error| DataError::Read {
            path: path.to_owned(),
            error,
        };
        let mut reader = RowReader::open(path).map_err(read)?;
        let wrong = |line, why| DataError::Row {
            path: path.to_owned(),
            line,
            why,
        };
        let mut row = Vec::new();
        let columns = match reader.next(&mut row).map_err(read)? {
            RowRead::Row => names(&row).map_err(|why| wrong(1, why))?,
            RowRead::End => {
                return Err(DataError::Empty {
                    path: path.to_owned(),
                    what: "columns",
                });
            }
            RowRead::TooLong => return Err(wrong(1, too_long())),
        };
        let (first, mut line) = (reader.at, 1 + lines_in(&row));
        let (mut rows, mut marks) = (0, Vec::new());
        loop {
            let begins = reader.at;
            row.clear();
            match reader.next(&mut row).map_err(read)? {
                RowRead::Row => {}
                RowRead::End => break,
                RowRead::TooLong => return Err(wrong(line, too_long())),
            }
            let skipped = reader.skipped;
            check_row(&row, columns.len()).map_err(|why| wrong(line + skipped, why))?;
            line += skipped + lines_in(&row);
            if order == RowOrder::Random && rows % MARKED_EVERY == 0 {
                marks.push(begins);
            }
            rows += 1;
        }
        if rows == 0 {
            return Err(DataError::Empty {
                path: path.to_owned(),
                what: "rows",
            });
        }
        marks.push(reader.at);
        reader.seek(first).map_err(read)?;
        Ok(Arc::new(DataFile {
            path: path.to_owned(),
            order,
            columns,
            rows,
            first,
            marks,
            share,
            next: Mutex::new(reader),
        }))
    }

    /// Names of the columns, in order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Appends up to `count` rows, each with its line break, as they follow in the file. None: the file has ended, or cannot
    /// be read any more.
    fn take(&self, count: usize, out: &mut Vec<u8>) {
        let mut reader = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, mut passes) = (0, 0);
        while taken < count {
            let (before, number) = (out.len(), reader.rows);
            match reader.next(out) {
                Ok(RowRead::Row) if self.share.has(number) => (taken, passes) = (taken + 1, 0),
                Ok(RowRead::Row) => out.truncate(before),
                // From the start again, unless the file has become empty: in some pass there is a row for here.
                Ok(RowRead::End)
                    if self.order == RowOrder::InTurn && passes <= self.share.threads =>
                {
                    if reader.seek(self.first).is_err() {
                        return;
                    }
                    // Rows are numbered on: it is as if they stood there again and again.
                    reader.rows = number;
                    passes += 1;
                }
                _ => return,
            }
        }
    }
}

/// A reader of rows in their order.
#[derive(Debug)]
struct RowReader {
    file: File,
    buffer: Vec<u8>,
    from: usize,
    /// Place of `from` in the file.
    at: u64,
    /// Empty lines before the last row.
    skipped: u64,
    /// Rows that were read since it was last placed.
    rows: u64,
    has_ended: bool,
}

/// What a reader found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RowRead {
    Row,
    End,
    TooLong,
}

impl RowReader {
    fn open(path: &Path) -> io::Result<RowReader> {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::other("it is a directory"));
        }
        Ok(RowReader {
            file,
            buffer: Vec::new(),
            from: 0,
            at: 0,
            skipped: 0,
            rows: 0,
            has_ended: false,
        })
    }

    fn seek(&mut self, at: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.buffer.clear();
        (self.from, self.at, self.rows, self.has_ended) = (0, at, 0, false);
        Ok(())
    }

    /// Appends the next row with a line break; empty lines are left out.
    fn next(&mut self, out: &mut Vec<u8>) -> io::Result<RowRead> {
        self.skipped = 0;
        loop {
            let rest = &self.buffer[self.from..];
            let length = match row_length(rest) {
                Some(length) => length,
                None if !self.has_ended => {
                    if rest.len() > ROW_BYTES_MAX {
                        return Ok(RowRead::TooLong);
                    }
                    self.fill()?;
                    continue;
                }
                None if rest.is_empty() => return Ok(RowRead::End),
                None => rest.len(),
            };
            let row = &rest[..length];
            let is_empty = row.trim_ascii().is_empty();
            if !is_empty {
                out.extend_from_slice(row);
                if !row.ends_with(b"\n") {
                    out.push(b'\n');
                }
            }
            self.from += length;
            self.at += length as u64;
            if !is_empty {
                self.rows += 1;
                return Ok(RowRead::Row);
            }
            self.skipped += 1;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.from);
        self.from = 0;
        let room = self.buffer.len();
        self.buffer.resize(room + READ_BYTES, 0);
        let count = loop {
            match self.file.read(&mut self.buffer[room..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let count = count.inspect_err(|_| self.buffer.truncate(room))?;
        self.buffer.truncate(room + count);
        self.has_ended = count == 0;
        Ok(())
    }
}

/// The length of the row that `bytes` begin with, its line break included; `None`: it does not end there.
fn row_length(bytes: &[u8]) -> Option<usize> {
    let end = memchr(b'\n', bytes)?;
    if memchr(b'"', &bytes[..end]).is_none() {
        return Some(end + 1);
    }
    let mut is_quoted = false;
    for at in memchr2_iter(b'"', b'\n', bytes) {
        match bytes[at] {
            b'"' => is_quoted = !is_quoted,
            _ if !is_quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn lines_in(row: &[u8]) -> u64 {
    memchr_iter(b'\n', row).count() as u64
}

fn too_long() -> String {
    format!(
        "this row has more than {} MiB; is a quote missing?",
        ROW_BYTES_MAX >> 20
    )
}

/// The names in the first line.
fn names(row: &[u8]) -> Result<Vec<String>, String> {
    let row = row.strip_prefix(BYTE_ORDER_MARK).unwrap_or(row);
    let text = std::str::from_utf8(row);
    let text = text.map_err(|_| "the names of the columns are not UTF-8".to_owned())?;
    let mut names = Vec::new();
    each_value(text.as_bytes(), &mut |_, value| {
        names.push(String::from_utf8_lossy(value).trim().to_owned());
    })?;
    let mut seen = HashSet::new();
    for (place, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(format!("column {} has no name", place + 1));
        }
        if !seen.insert(name) {
            return Err(format!("two columns have the name `{name}`"));
        }
    }
    Ok(names)
}

fn check_row(row: &[u8], columns: usize) -> Result<(), String> {
    let mut count = 0;
    if memchr(b'"', row).is_none() {
        count = 1 + memchr_iter(b',', row).count();
    } else {
        each_value(row, &mut |_, _| count += 1)?;
    }
    match count == columns {
        true => Ok(()),
        false => Err(format!(
            "{}, but the first line names {}",
            prony_base::counted(count, "field"),
            prony_base::counted(columns, "column")
        )),
    }
}

/// Calls `take` with the place and the value of each field of a row.
///
/// # Errors
/// A quote that does not end, that is followed by something else than a comma, or that stands in a value without quotes.
pub fn each_value(row: &[u8], take: &mut dyn FnMut(usize, &[u8])) -> Result<(), String> {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    let mut rest = row.strip_suffix(b"\r").unwrap_or(row);
    let mut place = 0;
    loop {
        let after = match rest.strip_prefix(b"\"") {
            None => {
                let end = memchr(b',', rest).unwrap_or(rest.len());
                // The quotes of a row tell where it ends: those of a value that has none would hide that.
                if memchr(b'"', &rest[..end]).is_some() {
                    let field = place + 1;
                    return Err(format!("field {field}: a quote in a value without quotes"));
                }
                take(place, &rest[..end]);
                &rest[end..]
            }
            Some(quoted) => quoted_value(quoted, &mut |value| take(place, value))?,
        };
        place += 1;
        match after.split_first() {
            None => return Ok(()),
            Some((b',', following)) => rest = following,
            Some(_) => return Err(format!("field {place}: text behind its closing quote")),
        }
    }
}

/// Takes the value behind an opening quote; yields what follows the closing one.
fn quoted_value<'a>(quoted: &'a [u8], take: &mut dyn FnMut(&[u8])) -> Result<&'a [u8], String> {
    let mut doubled = Vec::new();
    let mut rest = quoted;
    loop {
        let Some(end) = memchr(b'"', rest) else {
            return Err("a quote that does not end".to_owned());
        };
        let (value, after) = (&rest[..end], &rest[end + 1..]);
        if let Some(more) = after.strip_prefix(b"\"") {
            doubled.extend_from_slice(&rest[..=end]);
            rest = more;
            continue;
        }
        if doubled.is_empty() {
            take(value);
        } else {
            doubled.extend_from_slice(value);
            take(&doubled);
        }
        return Ok(after);
    }
}

/// The rows that one thread takes.
#[derive(Debug)]
pub struct ThreadRows {
    of: Arc<DataFile>,
    /// Rows that were taken from the file, each with its line break, and the place of the next one.
    batch: Vec<u8>,
    at: usize,
    batch_rows: usize,
    /// Draws rows, and the thread's own reader for them.
    random: Random,
    own: Option<RowReader>,
}

impl ThreadRows {
    /// Rows of `of` for thread number `thread`.
    pub fn new(of: &Arc<DataFile>, seed: u64, thread: u32) -> ThreadRows {
        let own = (of.order == RowOrder::Random)
            .then(|| RowReader::open(&of.path).ok())
            .flatten();
        ThreadRows {
            of: Arc::clone(of),
            batch: Vec::new(),
            at: 0,
            batch_rows: 1,
            random: Random::of(seed, &format!("rows of thread {thread}")),
            own,
        }
    }

    /// The next row; `None` where there is none any more.
    pub fn next(&mut self) -> Option<&[u8]> {
        if self.of.order == RowOrder::Random {
            return self.draw();
        }
        if self.at == self.batch.len() {
            self.batch.clear();
            self.at = 0;
            self.of.take(self.batch_rows, &mut self.batch);
            self.batch_rows = (self.batch_rows * 2).min(BATCH_ROWS_MAX);
        }
        let rest = &self.batch[self.at..];
        let length = row_length(rest)?;
        self.at += length;
        Some(&rest[..length])
    }

    /// Any row, all equally likely.
    fn draw(&mut self) -> Option<&[u8]> {
        let row = self.random.below(self.of.rows);
        let from = *self.of.marks.get((row / MARKED_EVERY) as usize)?;
        let reader = self.own.as_mut()?;
        reader.seek(from).ok()?;
        for _ in 0..=row % MARKED_EVERY {
            self.batch.clear();
            match reader.next(&mut self.batch) {
                Ok(RowRead::Row) => {}
                _ => return None,
            }
        }
        Some(&self.batch)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn values(row: &[u8]) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        let mut take =
            |_: usize, value: &[u8]| values.push(String::from_utf8_lossy(value).into_owned());
        each_value(row, &mut take).map(|()| values)
    }

    #[test]
    fn a_row_is_taken_apart_as_rfc_4180_says() {
        let of = |row: &str| values(row.as_bytes()).unwrap();
        assert_eq!(of("a,b\n"), ["a", "b"]);
        assert_eq!(of("a,\r\n"), ["a", ""]);
        assert_eq!(of("\"a,\"\"b\"\"\nc\",d"), ["a,\"b\"\nc", "d"]);
        assert_eq!(of("\"\",\"\""), ["", ""]);
        for wrong in ["\"a", "\"a\"b,c", "a\"b,c"] {
            assert!(values(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_no_data_says_where_and_why() {
        let why = |bytes: &[u8]| {
            let file = file(bytes);
            let error =
                DataFile::open(file.path(), RowOrder::Once, RowShare::default()).unwrap_err();
            let shown = file.path().display().to_string();
            error.to_string().replace(&shown, "FILE")
        };
        let said = [
            why(b""),
            why(b"\n\n"),
            why(b"a,b\n"),
            why(b"a,b\n1,2\n\n3\n"),
            why(b"a,b\n\"1\n1\",2\n1,2,3\n"),
            why(b"a,a\n1,2\n"),
            why(b"a,\n1,2\n"),
            why(b"a\n\"1\n"),
            why(b"\xff\n1\n"),
        ];
        insta::assert_snapshot!(said.join("\n"), @r"
        the data file FILE has no columns: its first line names the columns, and each line after it is a row
        the data file FILE has no columns: its first line names the columns, and each line after it is a row
        the data file FILE has no rows: its first line names the columns, and each line after it is a row
        FILE:4: 1 field, but the first line names 2 columns
        FILE:4: 3 fields, but the first line names 2 columns
        FILE:1: two columns have the name `a`
        FILE:1: column 2 has no name
        FILE:2: a quote that does not end
        FILE:1: the names of the columns are not UTF-8
        ");
        let directory =
            DataFile::open(&std::env::temp_dir(), RowOrder::Once, RowShare::default()).unwrap_err();
        assert!(directory.to_string().ends_with("it is a directory"));
        let nowhere = DataFile::open(
            Path::new("/nowhere.csv"),
            RowOrder::Once,
            RowShare::default(),
        )
        .unwrap_err();
        assert!(nowhere.to_string().contains("No such file"), "{nowhere}");
    }

    #[test]
    fn threads_share_the_rows_and_each_is_used_once() {
        let rows = 10_000;
        let mut text = String::from("id,name\n");
        for number in 0..rows {
            text.push_str(&format!("{number},\"n, {number}\"\n"));
        }
        let file = file(text.as_bytes());
        let data = DataFile::open(file.path(), RowOrder::Once, RowShare::default()).unwrap();
        assert_eq!((data.columns().len(), data.rows), (2, rows));
        let taken: Vec<Vec<u64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let data = &data;
                    scope.spawn(move || {
                        let mut of = ThreadRows::new(data, 1, thread);
                        let mut taken = Vec::new();
                        while let Some(row) = of.next() {
                            taken.push(values(row).unwrap()[0].parse().unwrap());
                        }
                        taken
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.collect()
        });
        let mut all = taken.concat();
        all.sort_unstable();
        assert_eq!(all, (0..rows).collect::<Vec<_>>());
    }

    #[test]
    fn rows_in_turn_begin_again_and_random_ones_are_any() {
        let mut text = String::from("id\r\n");
        for number in 0..200 {
            text.push_str(&format!("{number}\r\n"));
        }
        // The last row has no line break.
        let file = file(text.trim_end().as_bytes());
        let data = DataFile::open(file.path(), RowOrder::InTurn, RowShare::default()).unwrap();
        let mut rows = ThreadRows::new(&data, 1, 0);
        for number in 0..500 {
            let row = values(rows.next().unwrap()).unwrap();
            assert_eq!(row, [(number % 200).to_string()]);
        }
        let data = DataFile::open(file.path(), RowOrder::Random, RowShare::default()).unwrap();
        let mut rows = ThreadRows::new(&data, 1, 0);
        let mut seen = BTreeMap::new();
        for _ in 0..4_000 {
            let row = values(rows.next().unwrap()).unwrap();
            *seen.entry(row[0].parse::<u32>().unwrap()).or_insert(0) += 1;
        }
        // 20 of each are expected; that one is missing has a chance of 4e-7.
        assert_eq!(seen.len(), 200);
        assert!(seen.values().all(|count| *count < 60), "{seen:?}");
    }

    #[test]
    fn a_hundred_thousand_columns_are_read_in_one_pass() {
        // Compared with each other, their names take minutes here.
        let names: Vec<String> = (0..100_000).map(|number| format!("c{number}")).collect();
        let row = vec!["1"; names.len()].join(",");
        let file = file(format!("{}\n{row}\n", names.join(",")).as_bytes());
        let data = DataFile::open(file.path(), RowOrder::InTurn, RowShare::default()).unwrap();
        assert_eq!(data.columns(), names);
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read_again(rows in prop::collection::vec(prop::collection::vec("[a\",\n\r é]{0,6}", 3), 1..20)) {
            let quote = |value: &String| format!("\"{}\"", value.replace('"', "\"\""));
            let mut text = String::from("a,b,c\n");
            for row in &rows {
                text.push_str(&row.iter().map(quote).collect::<Vec<_>>().join(","));
                text.push('\n');
            }
            let file = file(text.as_bytes());
            let data = DataFile::open(file.path(), RowOrder::Once, RowShare::default()).unwrap();
            let mut of = ThreadRows::new(&data, 1, 0);
            for row in &rows {
                let taken = values(of.next().unwrap());
                prop_assert_eq!(&taken.unwrap(), row);
            }
            prop_assert!(of.next().is_none());
        }

        #[test]
        fn whatever_a_file_holds_it_is_taken_or_refused(bytes in prop::collection::vec(prop::sample::select(b"a,\"\n\r".to_vec()), 0..60)) {
            let file = file(&bytes);
            if let Ok(data) = DataFile::open(file.path(), RowOrder::Once, RowShare::default()) {
                let mut of = ThreadRows::new(&data, 1, 0);
                let mut rows = 0;
                while let Some(row) = of.next() {
                    prop_assert!(values(row).is_ok());
                    rows += 1;
                }
                prop_assert_eq!(rows, data.rows);
            }
        }
    }

    #[test]
    fn rows_are_shared_out_over_machines_and_each_is_used_once() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "n").unwrap();
        (0..1_000).for_each(|n| writeln!(file, "{n}").unwrap());
        let mut seen = Vec::new();
        for (first, end) in [(0, 2), (2, 3), (3, 7)] {
            let share = RowShare {
                threads: 7,
                part: LoadPart { first, end },
            };
            let data = DataFile::open(file.path(), RowOrder::Once, share).unwrap();
            let mut rows = ThreadRows::new(&data, 1, first);
            let before = seen.len();
            while let Some(row) = rows.next() {
                seen.push(String::from_utf8_lossy(row).trim().parse::<u32>().unwrap());
            }
            assert!(seen.len() - before >= (end - first) as usize * 142);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..1_000).collect::<Vec<_>>());
        // Of a file with fewer rows than threads some machines have none, unless they are used again and again.
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "n\n0\n1\n").unwrap();
        let part = LoadPart { first: 3, end: 4 };
        let share = RowShare { threads: 7, part };
        let rows = |order| {
            let data = DataFile::open(file.path(), order, share).unwrap();
            let mut rows = ThreadRows::new(&data, 1, 3);
            let mut row = || {
                rows.next()
                    .map(|row| String::from_utf8_lossy(row).trim().to_owned())
            };
            [row(), row(), row()]
        };
        assert_eq!(rows(RowOrder::Once), [const { None }; 3]);
        // The fourth, the eleventh, the eighteenth of all.
        let seen = ["1", "0", "1"].map(|row| Some(row.to_owned()));
        assert_eq!(rows(RowOrder::InTurn), seen);
    }
}
