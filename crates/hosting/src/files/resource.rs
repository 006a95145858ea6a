//! What is known of one name: the file, the compressed forms that lie beside it, and
//! their content where it is small. Not for: whom it is sent to.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

use lru::LruCache;
use prony_base::{Instant, Nanos, clock};
use rustix::fs::FileType;
use rustix::io::{Errno, pread};

use super::beneath::{Beneath, Stamp};
use super::coding::{CODINGS, Coding};
use super::refusal::Refusal;

/// Files up to this size are kept in memory.
pub(super) const KEPT_FILE_BYTES_MAX: u64 = 64 << 10;
/// What all of them may take together, and what is known of those that are not kept.
const KEPT_BYTES_MAX: usize = 16 << 20;
/// The approximate cost of one beside its content.
const ENTRY_BYTES: usize = 1024;
/// How often is looked for compressed forms that came or went.
const LOOK_EVERY: Nanos = Nanos::from_secs(1);
/// A file that changed so lately may change again within one tick of the file system's
/// clock (two seconds on the coarsest), and its stamp would not tell: it is read anew
/// for each request.
pub(super) const SETTLED_AFTER_SECONDS: i64 = 3;
/// Attempts to read a file that changes while it is read.
const TRIES_MAX: u32 = 4;
const SECOND_NANOS: u64 = 1_000_000_000;

/// A file in the forms that it can be sent in.
#[derive(Debug)]
pub(super) struct Resource {
    pub content_type: String,
    /// The file as it is comes first; it is always there.
    pub forms: Vec<Form>,
    looked_at: Cell<Instant>,
}

/// One form of a file.
#[derive(Debug)]
pub(super) struct Form {
    /// None: as it is.
    pub coding: Option<Coding>,
    pub stamp: Stamp,
    /// Made of inode, size and time of modification, so that it changes with each of
    /// them. Strong where the file has rested: what is sent under it is the same bytes.
    /// Weak before, when it may change again within one tick of the file system's clock;
    /// and another than after, so that what a client has from then is asked for anew.
    pub etag: String,
    /// Seconds since the Unix epoch; never in the future.
    pub modified: u64,
    pub last_modified: String,
    /// The content, where it is kept in memory.
    pub content: Option<Box<[u8]>>,
}

/// Resources in memory, up to a number of bytes; the least recently requested one is
/// forgotten first.
#[derive(Debug)]
pub(super) struct Cache {
    known: RefCell<LruCache<Box<[u8]>, Rc<Resource>>>,
    bytes: Cell<usize>,
    settled_after_seconds: i64,
}

impl Cache {
    /// Of files that have rested for so long, which is [`SETTLED_AFTER_SECONDS`].
    pub(super) fn new(settled_after_seconds: i64) -> Cache {
        Cache {
            known: RefCell::new(LruCache::unbounded()),
            bytes: Cell::new(0),
            settled_after_seconds,
        }
    }

    /// The resource of this name now: from memory if the file is as it was, which costs one
    /// system call.
    pub(super) fn look(&self, beneath: &Beneath, name: &[u8]) -> Result<Rc<Resource>, Refusal> {
        let found = self.known.borrow_mut().get(name).map(Rc::clone);
        if let Some(found) = found {
            if found.is_current(beneath, name) {
                return Ok(found);
            }
            self.forget(name);
        }
        let mut resource = Resource::load(beneath, name)?;
        if !resource.is_settled(self.settled_after_seconds) {
            resource.weaken();
            return Ok(Rc::new(resource));
        }
        let resource = Rc::new(resource);
        self.keep(name, &resource);
        Ok(resource)
    }

    pub(super) fn forget(&self, name: &[u8]) {
        if let Some((name, removed)) = self.known.borrow_mut().pop_entry(name) {
            self.bytes.set(self.bytes.get() - weight(&name, &removed));
        }
    }

    fn keep(&self, name: &[u8], resource: &Rc<Resource>) {
        let mut known = self.known.borrow_mut();
        let mut bytes = self.bytes.get() + weight(name, resource);
        known.put(name.into(), Rc::clone(resource));
        while bytes > KEPT_BYTES_MAX {
            let Some((name, removed)) = known.pop_lru() else {
                break;
            };
            bytes -= weight(&name, &removed);
        }
        self.bytes.set(bytes);
    }
}

fn weight(name: &[u8], resource: &Resource) -> usize {
    let contents = resource.forms.iter().flat_map(|form| &form.content);
    ENTRY_BYTES + name.len() + contents.map(|content| content.len()).sum::<usize>()
}

impl Resource {
    fn load(beneath: &Beneath, name: &[u8]) -> Result<Resource, Refusal> {
        let plain = Form::load(beneath, name, None)?;
        let mut forms = vec![plain];
        for coding in CODINGS {
            // One that cannot be had is no reason to withhold the file.
            if let Ok(form) = Form::load(beneath, &with_suffix(name, coding), Some(coding))
                && form.stamp.modified >= forms[0].stamp.modified
            {
                forms.push(form);
            }
        }
        Ok(Resource {
            content_type: content_type(name),
            forms,
            looked_at: Cell::new(clock::monotonic()),
        })
    }

    /// Whether the file is as it was, and, once a second, whether its compressed forms
    /// are. Before one of those is sent, ask for it itself: [`Form::is_current`].
    fn is_current(&self, beneath: &Beneath, name: &[u8]) -> bool {
        if !self.forms[0].is_current(beneath, name) {
            return false;
        }
        let now = clock::monotonic();
        if now < self.looked_at.get() + LOOK_EVERY {
            return true;
        }
        self.looked_at.set(now);
        CODINGS.iter().all(|coding| {
            let form = self.forms.iter().find(|form| form.coding == Some(*coding));
            let there = beneath.stamp(&with_suffix(name, *coding)).ok();
            match form {
                Some(form) => there == Some(form.stamp),
                None => there.is_none_or(|there| there.modified < self.forms[0].stamp.modified),
            }
        })
    }

    /// Marks the tags as weak, which are made as strong ones.
    fn weaken(&mut self) {
        for form in &mut self.forms {
            form.etag = format!("W/\"new-{}", &form.etag[1..]);
        }
    }

    fn is_settled(&self, after_seconds: i64) -> bool {
        let now = (clock::unix_nanos() / SECOND_NANOS) as i64;
        let changed = |form: &Form| form.stamp.changed.0.max(form.stamp.modified.0);
        let last = self.forms.iter().map(changed).max().unwrap_or(now);
        last + after_seconds <= now
    }
}

impl Form {
    fn load(beneath: &Beneath, name: &[u8], coding: Option<Coding>) -> Result<Form, Refusal> {
        for _ in 0..TRIES_MAX {
            let file = beneath.file(name)?;
            let stamp = Stamp::of_file(&file)?;
            match stamp.file_type() {
                FileType::RegularFile => {}
                FileType::Directory => return Err(Refusal::Folder),
                _ => return Err(Refusal::NotFound),
            }
            let content = match stamp.size <= KEPT_FILE_BYTES_MAX {
                true => Some(content(&file, stamp.size)?),
                false => None,
            };
            let is_whole = content
                .as_ref()
                .is_none_or(|content| content.len() as u64 == stamp.size);
            if is_whole && Stamp::of_file(&file)? == stamp {
                return Ok(Form::new(stamp, coding, content));
            }
        }
        Err(Refusal::Busy)
    }

    fn new(stamp: Stamp, coding: Option<Coding>, content: Option<Box<[u8]>>) -> Form {
        let (seconds, nanos) = stamp.modified;
        let now = clock::unix_nanos() / SECOND_NANOS;
        let modified = u64::try_from(seconds).unwrap_or(0).min(now);
        let time = UNIX_EPOCH + Duration::from_secs(modified);
        let suffix = coding.map_or("", |coding| coding.suffix);
        Form {
            coding,
            stamp,
            etag: format!(
                "\"{:x}-{:x}-{seconds:x}.{nanos:x}{suffix}\"",
                stamp.inode, stamp.size
            ),
            modified,
            last_modified: httpdate::fmt_http_date(time),
            content,
        }
    }

    /// Whether it is still what has this name. `name` is the file's, as it is.
    pub(super) fn is_current(&self, beneath: &Beneath, name: &[u8]) -> bool {
        let stamp = match self.coding {
            None => beneath.stamp(name),
            Some(coding) => beneath.stamp(&with_suffix(name, coding)),
        };
        stamp == Ok(self.stamp)
    }

    /// Opens it, to be sent by the kernel; None if it is not any more what it was.
    pub(super) fn open(
        &self,
        beneath: &Beneath,
        name: &[u8],
    ) -> Result<Option<Rc<OwnedFd>>, Refusal> {
        let file = match self.coding {
            None => beneath.file(name)?,
            Some(coding) => beneath.file(&with_suffix(name, coding))?,
        };
        let is_same = Stamp::of_file(&file)? == self.stamp;
        Ok(is_same.then(|| Rc::new(file)))
    }
}

/// At most `length` bytes from the beginning; fewer if it has become shorter.
fn content(file: &OwnedFd, length: u64) -> Result<Box<[u8]>, Refusal> {
    // At most KEPT_FILE_BYTES_MAX.
    let mut bytes = vec![0; length as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match pread(file, &mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(filled);
    Ok(bytes.into())
}

fn with_suffix(name: &[u8], coding: Coding) -> Vec<u8> {
    [name, coding.suffix.as_bytes()].concat()
}

/// The type that a name's extension stands for. Text is taken for UTF-8.
fn content_type(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let found = mime_guess::from_path(&*name).first_or_octet_stream();
    match found.type_() == mime_guess::mime::TEXT && found.get_param("charset").is_none() {
        true => format!("{found}; charset=utf-8"),
        false => found.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_its_character_set_and_the_unknown_is_bytes() {
        for (name, expected) in [
            ("a.html", "text/html; charset=utf-8"),
            ("a/b.CSS", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.svg", "image/svg+xml"),
            ("a.png", "image/png"),
            ("a.woff2", "font/woff2"),
            ("a.wasm", "application/wasm"),
            ("a.css.gz", "application/gzip"),
            ("a.tar.gz", "application/gzip"),
            ("README", "application/octet-stream"),
            ("a.unheard-of", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn a_file_that_may_change_within_the_same_tick_had_a_strong_tag() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "new").unwrap();
        let beneath = Beneath::open(dir.path()).unwrap();
        let tag = |settled_after| {
            let found = Cache::new(settled_after).look(&beneath, b"f").unwrap();
            found.forms[0].etag.clone()
        };
        let (strong, weak) = (tag(0), tag(SETTLED_AFTER_SECONDS + 3600));
        assert!(strong.starts_with('"'), "{strong}");
        assert!(weak.starts_with("W/\"") && weak.ends_with('"'), "{weak}");
        assert_ne!(weak[2..], strong, "it is asked for anew");
    }

    #[test]
    fn what_is_kept_in_memory_has_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(SETTLED_AFTER_SECONDS);
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        let name = b"f";
        std::fs::write(dir.path().join("f"), [7; 60_000]).unwrap();
        let beneath = Beneath::open(dir.path()).unwrap();
        let file = std::fs::File::open(dir.path().join("f")).unwrap();
        file.set_modified(old).unwrap();
        let resource = Rc::new(Resource::load(&beneath, name).unwrap());
        assert!(
            !resource.is_settled(SETTLED_AFTER_SECONDS),
            "it was touched just now"
        );
        for number in 0..1000 {
            cache.keep(format!("{number}").as_bytes(), &resource);
        }
        assert!(cache.bytes.get() <= KEPT_BYTES_MAX);
        let left = cache.known.borrow().len();
        assert!((200..300).contains(&left), "{left}");
        assert!(cache.known.borrow().contains(&b"999"[..]));
        for number in 0..1000 {
            cache.forget(format!("{number}").as_bytes());
        }
        assert_eq!(cache.bytes.get(), 0);
    }
}
