//! `/testpayload`: one large body for downloads, sent from a file by the kernel.
//! Not for: folders of files; this is no file server.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context as _, bail};
use prony_base::Random;
use prony_http::{Header, Method, Range, Request, Response};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

/// All of it is to stay in the kernel's cache.
const MADE_BYTES_MAX: u64 = 16 << 30;
/// The content is the same for everybody, so that it can be checked.
const SEED: u64 = 1;

/// The body, shared by all loops.
#[derive(Debug)]
pub struct Payload {
    file: OwnedFd,
    length: u64,
    /// Changes with the content.
    tag: String,
}

impl Payload {
    /// Makes `length` bytes, pseudo-random and always the same, in a file without a name.
    pub fn made(length: u64) -> anyhow::Result<Payload> {
        if length > MADE_BYTES_MAX {
            bail!("--payload makes at most 16GiB: give a larger one as --payload-file");
        }
        let folder = std::env::temp_dir();
        let on_disk = nameless(&folder).and_then(|file| fill(&file, length).map(|()| file));
        let file = match on_disk {
            Ok(file) => file,
            // No room, or a file system without such files.
            Err(_) => in_memory(length).context("cannot make the payload")?,
        };
        Ok(Payload {
            file: file.into(),
            length,
            tag: format!("\"{length:x}-{SEED}\""),
        })
    }

    /// A file as it is now; what is appended later is not seen.
    pub fn from_file(path: &Path) -> anyhow::Result<Payload> {
        let cannot = || format!("cannot serve `{}` as the payload", path.display());
        // Opening a pipe would otherwise wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map_err(io::Error::from);
        let file = File::from(file.with_context(cannot)?);
        let about = file.metadata().with_context(cannot)?;
        if !about.is_file() {
            bail!("{}: not a regular file", cannot());
        }
        Ok(Payload {
            file: file.into(),
            length: about.len(),
            tag: tag(&about),
        })
    }

    /// The payload as one loop sends it: with a descriptor of its own.
    pub fn for_loop(&self) -> io::Result<LoopPayload> {
        Ok(LoopPayload {
            file: Rc::new(self.file.try_clone()?),
            length: self.length,
            tag: self.tag.clone(),
        })
    }
}

/// A file that is gone when it is closed. The kernel sends from one of a disk's with a
/// tenth less CPU than from one in memory, whose pages it takes one by one.
fn nameless(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(open(folder, flags, Mode::RUSR | Mode::WUSR)?.into())
}

fn in_memory(length: u64) -> io::Result<File> {
    let file = File::from(memfd_create("testpayload", MemfdFlags::CLOEXEC)?);
    fill(&file, length)?;
    Ok(file)
}

fn fill(file: &File, length: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut random = Random::of(SEED, "payload");
    for _ in 0..length / 8 {
        out.write_all(&random.next_u64().to_le_bytes())?;
    }
    let rest = random.next_u64().to_le_bytes();
    // Less than eight.
    out.write_all(&rest[..(length % 8) as usize])?;
    out.flush()?;
    drop(out);
    // What is written to the disk now is not written while something is measured.
    file.sync_data()
}

fn tag(about: &Metadata) -> String {
    let (seconds, nanos) = (about.mtime(), about.mtime_nsec());
    format!("\"{:x}-{seconds:x}-{nanos:x}\"", about.len())
}

/// The body, as one loop gives it.
#[derive(Debug)]
pub struct LoopPayload {
    file: Rc<OwnedFd>,
    length: u64,
    tag: String,
}

impl LoopPayload {
    /// Answers GET and HEAD, for the whole of it or a range.
    pub async fn give(&self, request: &Request<'_>, response: &mut Response) {
        let headers = request.headers();
        let range = headers.get("range").filter(|_| {
            let same = |tag| tag == self.tag.as_bytes();
            request.method() == Method::Get && headers.get("if-range").is_none_or(same)
        });
        let wanted = range.map_or(Range::Whole, |range| Range::of(range, self.length));
        let total = self.length;
        match wanted {
            Range::Whole => self.give_part(response, 200, 0, total, None).await,
            Range::Part(part) => {
                let (first, last) = (*part.start(), *part.end());
                let content_range = format!("bytes {first}-{last}/{total}");
                let length = last - first + 1;
                self.give_part(response, 206, first, length, Some(&content_range))
                    .await;
            }
            Range::Unsatisfiable => {
                let content_range = format!("bytes */{total}");
                let headers = [
                    Header::new("content-type", b"text/plain"),
                    Header::new("content-range", content_range.as_bytes()),
                ];
                response.send(416, headers, b"the range lies behind the end\n");
            }
        }
    }

    async fn give_part(
        &self,
        response: &mut Response,
        status: u16,
        first: u64,
        length: u64,
        content_range: Option<&str>,
    ) {
        let headers = [
            Header::new("content-type", b"application/octet-stream"),
            Header::new("accept-ranges", b"bytes"),
            Header::new("etag", self.tag.as_bytes()),
        ];
        let content_range = content_range.map(|of| Header::new("content-range", of.as_bytes()));
        let headers = headers.into_iter().chain(content_range);
        let mut body = response.stream(status, headers, Some(length));
        // A connection that is gone, or a file that has become shorter, ends the matter:
        // the client sees that it is not whole.
        if length > 0 && body.write_file(&self.file, first, length).await.is_err() {
            return;
        }
        // Cannot be short.
        let _ = body.finish().await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_made_payload_is_always_the_same_wherever_it_is() {
        let bytes = |length| {
            let payload = Payload::made(length).expect("made");
            let mut file = File::from(payload.file);
            io::Seek::rewind(&mut file).expect("a file");
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).expect("read");
            bytes
        };
        let long = bytes(100_003);
        assert_eq!(long.len(), 100_003);
        assert_eq!(bytes(17), long[..17]);
        // What was measured before can be compared as long as this holds.
        assert_eq!(long[..8], Random::of(1, "payload").next_u64().to_le_bytes());
        let mut file = in_memory(100_003).expect("made");
        io::Seek::rewind(&mut file).expect("a file");
        let mut same = Vec::new();
        file.read_to_end(&mut same).expect("read");
        assert!(same == long);
        assert!(Payload::made(MADE_BYTES_MAX + 1).is_err());
    }

    #[test]
    fn a_pipe_as_the_payload_was_waited_for() {
        use rustix::fs::{CWD, FileType, mknodat};
        let path = std::env::temp_dir().join(format!("prony-pipe-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let refused = Payload::from_file(&path);
        std::fs::remove_file(&path).expect("it is there");
        let said = format!("{:#}", refused.expect_err("refused"));
        assert!(said.ends_with("not a regular file"), "{said}");
    }

    #[test]
    fn a_payload_that_is_no_file_is_refused_by_name() {
        let message = |path| {
            format!(
                "{:#}",
                Payload::from_file(Path::new(path)).expect_err("refused")
            )
        };
        assert_eq!(
            message("/"),
            "cannot serve `/` as the payload: not a regular file"
        );
        let missing = message("/nowhere/at/all");
        assert!(missing.starts_with("cannot serve `/nowhere/at/all` as the payload: No such file"));
    }
}
