//! Forms with files, as browsers send them: `multipart/form-data` (RFC 7578).
//!
//! For: [`Form`], to which parts are added, and [`FormBody`], which gives its bytes in
//! pieces. A file is opened when its turn comes and read piece by piece, never whole. Its
//! reads block the loop, each for at most [`PIECE_BYTES_MAX`] bytes: with a disk that may
//! take long, give the client a thread of its own. Not for: forms without files, which a
//! body of `name=value&name=value` serves.
//!
//! Names are escaped as browsers do it (WHATWG HTML, "Multipart form data"); values are sent
//! as they are. The boundary is random, and drawn again should it occur in a header or in a
//! value that is in memory. Content-Length is known where the length of every part is: all
//! but those from pipes and the like.
//!
//! ```
//! use prony_client::multipart::Form;
//!
//! let form = Form::new().text("title", "A walk").bytes("photo", "walk.jpg", vec![0xff, 0xd8]);
//! let body = form.build();
//! assert!(body.content_type().starts_with("multipart/form-data; boundary="));
//! assert_eq!(body.length(), Some(297));
//! ```

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

use memchr::memmem;

use super::body::{Body, Pieces};

/// The most that one piece has, in bytes.
pub const PIECE_BYTES_MAX: usize = 64 << 10;

const ANY_BYTES: &str = "application/octet-stream";

/// A form that is being filled in.
#[derive(Debug, Default)]
pub struct Form {
    parts: Vec<FormPart>,
}

/// One field.
#[derive(Debug)]
struct FormPart {
    name: String,
    file_name: Option<String>,
    content_type: Option<String>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    File {
        path: PathBuf,
        /// None where it is no regular file.
        length: Option<u64>,
    },
}

impl Form {
    /// A form without fields.
    pub fn new() -> Form {
        Form::default()
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, name: &str, value: impl Into<String>) -> Form {
        self.with(name, None, None, Content::Bytes(value.into().into_bytes()))
    }

    /// Adds bytes as if they were a file.
    #[must_use]
    pub fn bytes(self, name: &str, file_name: &str, bytes: impl Into<Vec<u8>>) -> Form {
        let content = Content::Bytes(bytes.into());
        self.with(name, Some(file_name), Some(ANY_BYTES), content)
    }

    /// Adds a file under its own name. It is read while it is sent, and must not become
    /// shorter until then; what is added to it meanwhile is not sent.
    ///
    /// # Errors
    /// An error of the system; the path is a folder.
    pub fn file(self, name: &str, path: impl Into<PathBuf>) -> io::Result<Form> {
        let path = path.into();
        let metadata = fs::metadata(&path)?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let file_name = path
            .file_name()
            .map(|file_name| file_name.to_string_lossy().into_owned());
        let length = metadata.is_file().then_some(metadata.len());
        let content = Content::File { path, length };
        Ok(self.with(name, file_name.as_deref(), Some(ANY_BYTES), content))
    }

    /// Gives the part that was added last another file name.
    #[must_use]
    pub fn file_name(mut self, file_name: &str) -> Form {
        if let Some(last) = self.parts.last_mut() {
            last.file_name = Some(file_name.to_owned());
        }
        self
    }

    /// Gives the part that was added last another media type. Control characters are left
    /// out of it.
    #[must_use]
    pub fn content_type(mut self, media_type: &str) -> Form {
        let clean: String = media_type.chars().filter(|c| !c.is_control()).collect();
        if let Some(last) = self.parts.last_mut() {
            last.content_type = Some(clean);
        }
        self
    }

    fn with(
        mut self,
        name: &str,
        file_name: Option<&str>,
        content_type: Option<&str>,
        content: Content,
    ) -> Form {
        self.parts.push(FormPart {
            name: name.to_owned(),
            file_name: file_name.map(str::to_owned),
            content_type: content_type.map(str::to_owned),
            content,
        });
        self
    }

    /// Ready to be sent.
    pub fn build(self) -> FormBody {
        self.build_with(&mut draw)
    }

    fn build_with(self, draw: &mut dyn FnMut() -> u128) -> FormBody {
        let heads: Vec<String> = self.parts.iter().map(FormPart::head).collect();
        let boundary = loop {
            let boundary = format!("prony-{:032x}", draw());
            let finder = memmem::Finder::new(&boundary);
            let is_in_head = heads
                .iter()
                .any(|head| finder.find(head.as_bytes()).is_some());
            let is_in_value = self.parts.iter().any(|part| match &part.content {
                Content::Bytes(bytes) => finder.find(bytes).is_some(),
                Content::File { .. } => false,
            });
            if !is_in_head && !is_in_value {
                break boundary;
            }
        };
        let contents = self.parts.into_iter().map(|part| part.content);
        FormBody {
            boundary,
            parts: heads.into_iter().zip(contents).collect(),
            at: At::Head(0),
            open: None,
            is_spent: false,
        }
    }
}

/// Draws 128 unpredictable bits: the system's random keys of the standard library's
/// hash, which is made for that. [`prony_base::Random`] is not: its seed gives it away.
fn draw() -> u128 {
    let half = || u128::from(RandomState::new().hash_one("boundary"));
    (half() << 64) | half()
}

impl FormPart {
    /// Its header lines, and the empty one.
    fn head(&self) -> String {
        let name = escaped(&with_line_ends(&self.name));
        let mut head = format!("Content-Disposition: form-data; name=\"{name}\"");
        if let Some(file_name) = &self.file_name {
            head.push_str(&format!("; filename=\"{}\"", escaped(file_name)));
        }
        if let Some(content_type) = &self.content_type {
            head.push_str("\r\nContent-Type: ");
            head.push_str(content_type);
        }
        head.push_str("\r\n\r\n");
        head
    }
}

/// Every end of a line as CR and LF.
fn with_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace('\n', "\r\n")
}

fn escaped(text: &str) -> String {
    text.replace('\r', "%0D")
        .replace('\n', "%0A")
        .replace('"', "%22")
}

/// A form as bytes.
pub struct FormBody {
    boundary: String,
    /// Head and content of each part.
    parts: Vec<(String, Content)>,
    at: At,
    /// The file of the part that is being sent.
    open: Option<File>,
    /// Something was read that cannot be read again.
    is_spent: bool,
}

#[derive(Clone, Copy, Debug)]
enum At {
    /// Before the boundary of a part, or the last one.
    Head(usize),
    /// In the content of a part, with so many bytes sent of it.
    Content(usize, u64),
    End,
}

impl fmt::Debug for FormBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FormBody({} parts, {:?})", self.parts.len(), self.at)
    }
}

impl FormBody {
    /// The value of the request's Content-Type.
    pub fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    /// Bytes of the whole, where the length of each part is known.
    pub fn length(&self) -> Option<u64> {
        // Two dashes, boundary, line end; content; line end.
        let frame = self.boundary.len() as u64 + 6;
        let mut length = frame;
        for (head, content) in &self.parts {
            let content = match content {
                Content::Bytes(bytes) => bytes.len() as u64,
                Content::File { length, .. } => (*length)?,
            };
            length = length.checked_add(frame + head.len() as u64 + content)?;
        }
        Some(length)
    }

    /// As the body of a request, together with its Content-Type.
    pub fn into_body(self) -> (String, Body) {
        let (content_type, length) = (self.content_type(), self.length());
        (content_type, Body::pieces(self, length))
    }

    /// Adds bytes to `piece`, up to [`PIECE_BYTES_MAX`] or a whole head more.
    fn fill(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        while piece.len() < PIECE_BYTES_MAX {
            match self.at {
                At::Head(place) => {
                    piece.extend_from_slice(b"--");
                    piece.extend_from_slice(self.boundary.as_bytes());
                    let Some((head, _)) = self.parts.get(place) else {
                        piece.extend_from_slice(b"--\r\n");
                        self.at = At::End;
                        return Ok(());
                    };
                    piece.extend_from_slice(b"\r\n");
                    piece.extend_from_slice(head.as_bytes());
                    self.at = At::Content(place, 0);
                }
                At::Content(place, sent) => {
                    let added = self.add_content(place, sent, piece)?;
                    self.at = At::Content(place, sent + added);
                    if added == 0 {
                        self.open = None;
                        piece.extend_from_slice(b"\r\n");
                        self.at = At::Head(place + 1);
                    }
                }
                At::End => return Ok(()),
            }
        }
        Ok(())
    }

    /// Adds a piece of a part's content; 0 at its end.
    fn add_content(&mut self, place: usize, sent: u64, piece: &mut Vec<u8>) -> io::Result<u64> {
        let room = PIECE_BYTES_MAX - piece.len();
        match &self.parts[place].1 {
            Content::Bytes(bytes) => {
                let rest = &bytes[usize::try_from(sent).unwrap_or(bytes.len())..];
                let some = &rest[..rest.len().min(room)];
                piece.extend_from_slice(some);
                Ok(some.len() as u64)
            }
            Content::File { path, length } => {
                let file = match &mut self.open {
                    Some(file) => file,
                    None => {
                        self.is_spent |= length.is_none();
                        self.open.insert(File::open(path)?)
                    }
                };
                let left = length.map_or(u64::MAX, |length| length - sent);
                let wanted = (room as u64).min(left);
                let added = file.take(wanted).read_to_end(piece)? as u64;
                match length {
                    Some(length) if added == 0 && left > 0 => Err(shrunk(path, sent, *length)),
                    _ => Ok(added),
                }
            }
        }
    }
}

fn shrunk(path: &Path, sent: u64, length: u64) -> io::Error {
    let message = format!(
        "{} became shorter while it was sent: {sent} bytes, it had {length}",
        path.display()
    );
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}

impl Pieces for FormBody {
    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        if matches!(self.at, At::End) {
            return Poll::Ready(Ok(None));
        }
        let mut piece = Vec::new();
        Poll::Ready(self.fill(&mut piece).map(|()| Some(piece)))
    }

    fn rewind(&mut self) -> bool {
        self.open = None;
        self.at = At::Head(0);
        !self.is_spent
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use proptest::prelude::*;

    use super::*;

    fn collect(body: &mut FormBody) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            match body.poll_piece(&mut cx) {
                Poll::Ready(Ok(Some(piece))) => {
                    assert!(piece.len() < PIECE_BYTES_MAX + 2_000);
                    whole.extend(piece);
                }
                Poll::Ready(Ok(None)) => return Ok(whole),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => panic!("it never waits"),
            }
        }
    }

    /// A file that goes when the test ends.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, bytes: &[u8]) -> Temporary {
            let name = format!("prony-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::write(&path, bytes).expect("a file");
            Temporary(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    /// What a server reads, by hand: head and content of each part.
    fn parse(content_type: &str, whole: &[u8]) -> Vec<(String, Vec<u8>)> {
        let boundary = content_type
            .strip_prefix("multipart/form-data; boundary=")
            .expect("a form");
        let frame = format!("--{boundary}");
        let mut places: Vec<usize> = memmem::find_iter(whole, &frame).collect();
        let end = places.pop().expect("the last boundary");
        assert_eq!(&whole[end..], format!("{frame}--\r\n").as_bytes());
        places.push(end);
        let part = |place: &[usize]| {
            let part = &whole[place[0] + frame.len() + 2..place[1] - 2];
            assert_eq!(&whole[place[1] - 2..place[1]], b"\r\n");
            let head = memmem::find(part, b"\r\n\r\n").expect("an empty line");
            let text = String::from_utf8(part[..head].to_vec()).expect("text");
            (text, part[head + 4..].to_vec())
        };
        places.windows(2).map(part).collect()
    }

    #[test]
    fn a_form_is_as_browsers_send_it() {
        let file = Temporary::new("a.txt", b"of a file");
        let form = Form::new()
            .text("title", "A walk\nin the park")
            .bytes("photo", "walk.jpg", b"\xff\xd8".as_slice())
            .content_type("image/jpeg")
            .file("notes", &file.0)
            .expect("it is there")
            .file_name("notes.txt")
            .content_type("text/plain\r\nX-Evil: 1");
        let mut body = form.build_with(&mut || 7);
        let boundary = "prony-00000000000000000000000000000007";
        assert_eq!(
            body.content_type(),
            format!("multipart/form-data; boundary={boundary}")
        );
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\n\
             A walk\nin the park\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"walk.jpg\"\r\n\
             Content-Type: image/jpeg\r\n\r\n??\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"notes\"; filename=\"notes.txt\"\r\n\
             Content-Type: text/plainX-Evil: 1\r\n\r\nof a file\r\n\
             --{boundary}--\r\n"
        );
        let length = body.length();
        let whole = collect(&mut body).expect("it can be read");
        assert_eq!(length, Some(whole.len() as u64));
        let shown: Vec<u8> = whole
            .iter()
            .map(|&byte| if byte.is_ascii() { byte } else { b'?' })
            .collect();
        assert_eq!(String::from_utf8(shown).expect("ASCII"), expected);
    }

    #[test]
    fn names_cannot_break_out() {
        let mut body = Form::new()
            .bytes("a\"b\nc\rd\r\ne", "x\"\r\n\n.txt\u{e4}", b"".as_slice())
            .build();
        let parts = parse(&body.content_type(), &collect(&mut body).expect("memory"));
        assert_eq!(
            parts[0].0,
            "Content-Disposition: form-data; name=\"a%22b%0D%0Ac%0D%0Ad%0D%0Ae\"; \
             filename=\"x%22%0D%0A%0A.txt\u{e4}\"\r\nContent-Type: application/octet-stream"
        );
    }

    #[test]
    fn a_boundary_that_occurs_is_drawn_again() {
        let taken = |number: u128| format!("prony-{number:032x}");
        let form = Form::new()
            .text(&taken(1), "value")
            .bytes("b", &taken(2), b"".as_slice())
            .text("c", format!("in the middle {} of it", taken(3)));
        let mut next = 0;
        let body = form.build_with(&mut || {
            next += 1;
            next
        });
        assert_eq!(body.boundary, taken(4));
        assert_ne!(Form::new().build().boundary, Form::new().build().boundary);
    }

    #[test]
    fn an_empty_form_is_a_form() {
        let mut body = Form::new().build();
        let whole = collect(&mut body).expect("memory");
        assert_eq!(body.length(), Some(whole.len() as u64));
        assert_eq!(parse(&body.content_type(), &whole), []);
    }

    #[test]
    fn a_long_file_comes_in_pieces_and_again() {
        let bytes: Vec<u8> = (0..400_000_u32).map(|n| (n * 7 % 251) as u8).collect();
        let file = Temporary::new("long", &bytes);
        let form = Form::new().file("f", &file.0).expect("it is there");
        let mut body = form.text("after", "it").build();
        let length = body.length();
        for _ in 0..2 {
            let whole = collect(&mut body).expect("it can be read");
            assert_eq!(length, Some(whole.len() as u64));
            let parts = parse(&body.content_type(), &whole);
            assert!(parts[0].1 == bytes && parts[1].1 == b"it");
            assert!(body.rewind());
        }
        // In the middle of it, too.
        let mut cx = Context::from_waker(Waker::noop());
        assert!(body.poll_piece(&mut cx).is_ready() && body.rewind());
        assert_eq!(
            collect(&mut body).map(|whole| whole.len() as u64).ok(),
            length
        );
    }

    #[test]
    fn a_file_that_changes_is_an_error_or_cut_where_it_was() {
        let file = Temporary::new("changes", b"0123456789");
        let build = || Form::new().file("f", &file.0).expect("it is there").build();
        let mut shorter = build();
        let mut longer = build();
        fs::write(&file.0, b"0123456789ABC").expect("a file");
        let parts = parse(&longer.content_type(), &collect(&mut longer).expect("fine"));
        assert_eq!(parts[0].1, b"0123456789");
        fs::write(&file.0, b"0123").expect("a file");
        let error = collect(&mut shorter).unwrap_err().to_string();
        assert!(
            error.ends_with("became shorter while it was sent: 4 bytes, it had 10"),
            "{error}"
        );
        fs::remove_file(&file.0).expect("it was there");
        assert_eq!(
            collect(&mut build_missing(&file)).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        let missing = Form::new().file("f", &file.0).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let folder = Form::new().file("f", std::env::temp_dir()).unwrap_err();
        assert_eq!(folder.kind(), io::ErrorKind::IsADirectory);
    }

    /// A body whose file goes before it is sent.
    fn build_missing(file: &Temporary) -> FormBody {
        fs::write(&file.0, b"0").expect("a file");
        let body = Form::new().file("f", &file.0).expect("it is there").build();
        fs::remove_file(&file.0).expect("it was there");
        body
    }

    #[test]
    fn what_has_no_length_is_sent_once() {
        let form = Form::new().file("f", "/dev/null").expect("Linux has it");
        let mut body = form.build();
        assert_eq!(body.length(), None);
        assert!(body.rewind());
        let parts = parse(&body.content_type(), &collect(&mut body).expect("nothing"));
        assert_eq!(parts[0].1, b"");
        assert!(!body.rewind());
    }

    proptest! {
        #[test]
        fn every_form_is_read_as_it_was_written(
            fields in proptest::collection::vec(
                (".{0,20}", proptest::collection::vec(any::<u8>(), 0..300), 1_usize..700),
                0..6,
            ),
        ) {
            let mut form = Form::new();
            for (name, bytes, repeats) in &fields {
                form = form.bytes(name, name, bytes.repeat(*repeats));
            }
            let mut body = form.build();
            let length = body.length();
            let whole = collect(&mut body).expect("memory");
            prop_assert_eq!(length, Some(whole.len() as u64));
            let parts = parse(&body.content_type(), &whole);
            prop_assert_eq!(parts.len(), fields.len());
            for (part, (name, bytes, repeats)) in parts.iter().zip(&fields) {
                prop_assert!(part.1 == bytes.repeat(*repeats));
                prop_assert!(part.0.lines().count() == 2, "{name:?}");
            }
        }
    }
}
