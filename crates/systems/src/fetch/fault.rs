//! Why a URL was not fetched, by name: what happened, to which file, and what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use prony_client::{Kind, RequestPhase};

use super::name::BadName;

/// Linux's numbers for "no space left on device" and "disk quota exceeded".
const FULL: [i32; 2] = [28, 122];
/// The same for "too many open files", of the system and of the process.
const DESCRIPTORS: [i32; 2] = [23, 24];

/// Why a URL was not fetched.
#[derive(Debug)]
pub enum Fault {
    /// The client says why.
    Client(prony_client::Error),
    /// The server's answer is no file.
    Status(u16),
    /// The server's answer is no part of the file.
    BadPart(String),
    /// The file has more bytes than it may have, which are these.
    TooLong(u64),
    /// The server gives a name that is none.
    BadName(BadName),
    /// A file exists that was not to be replaced.
    Exists(PathBuf),
    /// Another process writes it.
    InUse(PathBuf),
    /// A file cannot be made, written or named.
    File {
        /// What was tried: "write".
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The file is not what it was to be.
    Checksum {
        /// The hash function.
        algorithm: &'static str,
        /// As asked for.
        expected: String,
        /// As it came.
        found: String,
    },
    /// The listing of checksums does not have the file of this name.
    NotListed(String),
    /// The user ended it.
    Interrupted,
}

impl From<prony_client::Error> for Fault {
    fn from(error: prony_client::Error) -> Fault {
        Fault::Client(error)
    }
}

impl Fault {
    /// A failure of the system with a file.
    pub fn file(doing: &'static str, path: &Path, error: io::Error) -> Fault {
        Fault::File {
            doing,
            path: path.to_owned(),
            error,
        }
    }

    /// What was being done, in one word.
    pub fn phase(&self) -> &'static str {
        match self {
            Fault::Client(error) => error.phase().name(),
            Fault::Status(_) | Fault::BadPart(_) => "head",
            Fault::TooLong(_) => "body",
            Fault::BadName(_) | Fault::Exists(_) | Fault::InUse(_) | Fault::File { .. } => "file",
            Fault::Checksum { .. } | Fault::NotListed(_) => "checksum",
            Fault::Interrupted => "interrupted",
        }
    }

    /// Its name in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Client(error) => error.kind().name(),
            Fault::Status(_) => "status",
            Fault::BadPart(_) => "bad_part",
            Fault::TooLong(_) => "too_long",
            Fault::BadName(_) => "bad_name",
            Fault::Exists(_) => "file_exists",
            Fault::InUse(_) => "file_in_use",
            Fault::File { error, .. } => kind_of_io(error),
            Fault::Checksum { .. } => "wrong_checksum",
            Fault::NotListed(_) => "not_listed",
            Fault::Interrupted => "interrupted",
        }
    }

    /// Whether the next try may go better: the body broke off. What fails before it, the
    /// client has tried again.
    pub fn is_passing(&self) -> bool {
        match self {
            Fault::Client(error) => {
                let broke = matches!(
                    error.kind(),
                    Kind::Truncated
                        | Kind::Reset(_)
                        | Kind::Closed
                        | Kind::Io(_)
                        | Kind::Http2(_)
                        | Kind::TimedOut(prony_client::TimeLimit::Stall, _)
                );
                broke && error.phase() == RequestPhase::Body
            }
            _ => false,
        }
    }

    /// Whether what was written is of no use.
    pub fn spoils_the_file(&self) -> bool {
        matches!(self, Fault::Checksum { .. } | Fault::TooLong(_))
    }

    /// Whether standard output was closed by who read it, and had what it wanted.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Fault::File { error, .. } if error.kind() == io::ErrorKind::BrokenPipe)
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match self.kind() {
            "status" => match self {
                Fault::Status(401) => "give user and password with --user",
                Fault::Status(300..=399) => "follow it with --redirects",
                Fault::Status(429 | 502..=504) => "try again later, or with --retries",
                _ => return None,
            },
            "bad_part" => "fetch it from its start: without --resume",
            "file_exists" => "replace it with --overwrite, or give another name with -o",
            "file_in_use" => "is another prony fetch writing it?",
            "disk_full" => "free some space, then continue with --resume",
            "out_of_descriptors" => "raise the limit (ulimit -n) or lower --parallel",
            "no_folder" => "make the folder first",
            "no_permission" => "write to another folder with --dir or -o",
            "too_long" => "raise --max-bytes",
            "tls_self_signed" | "tls_unknown_issuer" => {
                "with --cacert FILE; --danger-accept-invalid-certificates accepts any"
            }
            "wrong_checksum" => "the file was deleted; ask the publisher of the checksum",
            _ => return None,
        })
    }
}

fn kind_of_io(error: &io::Error) -> &'static str {
    match (error.kind(), error.raw_os_error()) {
        (_, Some(code)) if FULL.contains(&code) => "disk_full",
        (_, Some(code)) if DESCRIPTORS.contains(&code) => "out_of_descriptors",
        (io::ErrorKind::NotFound, _) => "no_folder",
        (io::ErrorKind::PermissionDenied, _) => "no_permission",
        (io::ErrorKind::AlreadyExists, _) => "file_exists",
        (io::ErrorKind::IsADirectory, _) => "is_folder",
        _ => "file",
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Client(error) => write!(f, "{error}")?,
            Fault::Status(status) => write!(f, "the server answered with status {status}")?,
            Fault::BadPart(why) => write!(f, "the server's answer does not fit: {why}")?,
            Fault::TooLong(max) => write!(f, "it has more than the {max} bytes it may have")?,
            Fault::BadName(bad) => write!(f, "{bad}")?,
            Fault::Exists(path) => write!(f, "{} exists", path.display())?,
            Fault::InUse(path) => write!(f, "{} is being written", path.display())?,
            Fault::File { doing, path, error } => {
                write!(f, "cannot {doing} {}: {error}", path.display())?;
            }
            Fault::Checksum {
                algorithm,
                expected,
                found,
            } => write!(f, "its {algorithm} is {found}, not {expected}")?,
            Fault::NotListed(name) => write!(f, "{name} is not in the list of checksums")?,
            Fault::Interrupted => f.write_str("interrupted")?,
        }
        match self.advice() {
            Some(advice) => write!(f, " ({advice})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_system_have_names() {
        let of = |code| {
            let error = io::Error::from_raw_os_error(code);
            let fault = Fault::file("write", Path::new("/x"), error);
            (fault.kind(), fault.to_string())
        };
        let (kind, text) = of(28);
        assert_eq!(kind, "disk_full");
        assert_eq!(
            text,
            "cannot write /x: No space left on device (os error 28) \
             (free some space, then continue with --resume)"
        );
        assert_eq!(of(122).0, "disk_full");
        assert_eq!(of(24).0, "out_of_descriptors");
        assert_eq!(of(13).0, "no_permission");
        assert_eq!(of(2).0, "no_folder");
        assert_eq!(of(21).0, "is_folder");
        assert_eq!(of(5).0, "file");
    }

    #[test]
    fn only_bodies_that_broke_are_tried_again_here() {
        let of = |phase, kind| Fault::Client(prony_client::Error::new(phase, kind)).is_passing();
        assert!(of(RequestPhase::Body, Kind::Truncated));
        assert!(!of(RequestPhase::Head, Kind::Truncated));
        assert!(!of(RequestPhase::Body, Kind::LoopGone));
        assert!(!Fault::Status(503).is_passing());
    }
}
