//! Jars in files of the format that Netscape began and curl and wget use: seven fields
//! with tabs between them, a line for each cookie.
//!
//! Reading and writing block; a jar is small, and both are done before and after requests.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{Cookie, CookieJar, CookieLimits};

/// The prefix before the domain of a cookie that scripts may not see.
const HTTP_ONLY: &str = "#HttpOnly_";
/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

impl CookieJar {
    /// Adds the cookies of a file's text; those that are over are left out.
    ///
    /// # Errors
    /// [`FileError::Line`] for the first line that is none of the format.
    pub fn read_text(&mut self, text: &str, unix_seconds: u64) -> Result<(), FileError> {
        for (place, line) in text.lines().enumerate() {
            let bare = line.strip_prefix(HTTP_ONLY);
            let content = bare.unwrap_or(line);
            if content.trim().is_empty() || (bare.is_none() && line.starts_with('#')) {
                continue;
            }
            let cookie =
                read_line(content, bare.is_some()).ok_or(FileError::Line { line: place + 1 })?;
            if !cookie.is_over(unix_seconds) {
                self.insert(cookie, unix_seconds);
            }
        }
        Ok(())
    }

    /// All cookies that are not over, as a file's text.
    pub fn to_text(&self, unix_seconds: u64) -> String {
        let mut text = String::from("# Netscape HTTP Cookie File\n# Written by prony.\n\n");
        let lasting = |cookie: &&Cookie| !cookie.is_over(unix_seconds);
        for cookie in self.cookies().into_iter().filter(lasting) {
            let flag = |is: bool| if is { "TRUE" } else { "FALSE" };
            // Writing to a String does not fail.
            let _ = writeln!(
                text,
                "{}{}{}\t{}\t{}\t{}\t{}\t{}\t{}",
                if cookie.http_only { HTTP_ONLY } else { "" },
                if cookie.host_only { "" } else { "." },
                cookie.domain,
                flag(!cookie.host_only),
                cookie.path,
                flag(cookie.secure),
                cookie.expires.unwrap_or(0),
                cookie.name,
                cookie.value,
            );
        }
        text
    }

    /// A jar from a file.
    ///
    /// # Errors
    /// An error of the system, a file of more than 64 MiB, or a line that is not a cookie.
    pub fn load(
        path: &Path,
        limits: CookieLimits,
        unix_seconds: u64,
    ) -> Result<CookieJar, FileError> {
        let mut text = String::new();
        let file = File::open(path).map_err(FileError::Io)?;
        let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(FileError::Io)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(FileError::TooLong);
        }
        let mut jar = CookieJar::new(limits);
        jar.read_text(&text, unix_seconds)?;
        Ok(jar)
    }

    /// Writes it to a file atomically: a reader finds the old file or the new one, whole. It is
    /// readable for its owner alone, since cookies are as good as passwords.
    ///
    /// # Errors
    /// An error of the system; the file is then unchanged.
    pub fn save(&self, path: &Path, unix_seconds: u64) -> Result<(), FileError> {
        let mut beside = OsString::from(path);
        beside.push(format!(".{}.new", std::process::id()));
        let beside = Path::new(&beside);
        let text = self.to_text(unix_seconds);
        let written = write_new(beside, &text).and_then(|()| fs::rename(beside, path));
        if written.is_err() {
            // The first error is the one to tell.
            let _ = fs::remove_file(beside);
        }
        written.map_err(FileError::Io)
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// `domain below? path secure? expires name value`
fn read_line(line: &str, http_only: bool) -> Option<Cookie> {
    let fields: Vec<&str> = line.splitn(7, '\t').collect();
    let [domain, below, path, secure, expires, name, rest @ ..] = &fields[..] else {
        return None;
    };
    let truth = |text: &str| match text {
        _ if text.eq_ignore_ascii_case("TRUE") => Some(true),
        _ if text.eq_ignore_ascii_case("FALSE") => Some(false),
        _ => None,
    };
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    let is_fine = !domain.is_empty() && !name.is_empty() && path.starts_with('/');
    // Some write fractions of a second, or -1 for the session.
    let expires = expires.split('.').next()?.parse::<i64>().ok()?;
    let cookie = Cookie {
        name: (*name).to_owned(),
        value: rest
            .first()
            .copied()
            .unwrap_or_default()
            .trim_end()
            .to_owned(),
        domain: domain.to_ascii_lowercase(),
        host_only: !truth(below)?,
        path: (*path).to_owned(),
        secure: truth(secure)?,
        http_only,
        expires: u64::try_from(expires).ok().filter(|&seconds| seconds > 0),
        order: 0,
    };
    is_fine.then_some(cookie)
}

/// Why a jar could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// An error of the system.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// More than 64 MiB.
    #[error("a file of cookies of more than 64 MiB")]
    TooLong,
    /// A line that is no cookie.
    #[error(
        "line {line} is no cookie: it needs domain, TRUE or FALSE, path, TRUE or FALSE, \
             seconds since 1970, name and value, with tabs between them"
    )]
    Line {
        /// Its number, from 1.
        line: usize,
    },
}
