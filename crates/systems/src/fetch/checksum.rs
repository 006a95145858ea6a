//! What a file must hash to, and the hash of what has come so far.
//!
//! Not for: protection against servers: a server that has the file often has the sum, too.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256, Sha512};

/// Bytes of a listing that are read at most.
const LISTING_BYTES_MAX: u64 = 16 << 20;

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    /// Its name, as it is typed and printed.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        }
    }

    const fn digits(self) -> usize {
        match self {
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        }
    }
}

/// What was asked for with `--checksum`.
#[derive(Debug)]
pub struct Checksum {
    /// The function.
    pub algorithm: Algorithm,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    /// To be told only.
    Anything,
    /// Of the one file, in small letters.
    This(String),
    /// By name of file.
    Listed(HashMap<String, String>),
}

impl Checksum {
    /// Reads `sha256`, `sha256:HEX` or `sha256:FILE`, and the file.
    ///
    /// # Errors
    /// An unknown function; a file that cannot be read or holds something else.
    pub fn parse(text: &str) -> anyhow::Result<Checksum> {
        let (name, what) = match text.split_once(':') {
            Some((name, what)) => (name, Some(what)),
            None => (text, None),
        };
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => bail!("`{name}` is not a known checksum: use sha256 or sha512"),
        };
        let expected = match what {
            None => Expected::Anything,
            Some(what) if is_sum(what, algorithm) => Expected::This(what.to_ascii_lowercase()),
            Some(file) => Expected::Listed(listing(Path::new(file), algorithm)?),
        };
        Ok(Checksum {
            algorithm,
            expected,
        })
    }

    /// True for one sum, which can be that of one file only.
    pub fn is_single(&self) -> bool {
        matches!(self.expected, Expected::This(_))
    }

    /// What the file of this name must hash to; None: anything. An error where a listing
    /// does not have it.
    pub fn expected(&self, name: &str) -> Result<Option<&str>, NotListed> {
        match &self.expected {
            Expected::Anything => Ok(None),
            Expected::This(sum) => Ok(Some(sum)),
            Expected::Listed(all) => match all.get(name) {
                Some(sum) => Ok(Some(sum)),
                None => Err(NotListed),
            },
        }
    }
}

/// A listing of sums does not have the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotListed;

fn is_sum(text: &str, algorithm: Algorithm) -> bool {
    text.len() == algorithm.digits() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn listing(path: &Path, algorithm: Algorithm) -> anyhow::Result<HashMap<String, String>> {
    let shown = path.display();
    let digits = algorithm.digits();
    let mut text = String::new();
    let file = File::open(path).with_context(|| {
        format!("`{shown}` is neither {digits} hexadecimal digits nor a file of checksums")
    })?;
    let read = file.take(LISTING_BYTES_MAX + 1).read_to_string(&mut text);
    read.with_context(|| format!("cannot read {shown}"))?;
    if text.len() as u64 > LISTING_BYTES_MAX {
        bail!("{shown}: a file of checksums may have {LISTING_BYTES_MAX} bytes");
    }
    let mut all = HashMap::new();
    for (place, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let pair = line.split_once(' ');
        let Some((sum, name)) = pair.filter(|(sum, _)| is_sum(sum, algorithm)) else {
            let place = place + 1;
            bail!("{shown}:{place}: not `HEX  NAME` with {digits} hexadecimal digits");
        };
        // A star says "binary", which is all the same.
        let name = name.strip_prefix(['*', ' ']).unwrap_or(name);
        let name = name.rsplit('/').next().unwrap_or(name);
        all.insert(name.to_owned(), sum.to_ascii_lowercase());
    }
    Ok(all)
}

/// The hash of what has come so far.
pub enum Sum {
    /// SHA-256.
    Sha256(Sha256),
    /// SHA-512.
    Sha512(Sha512),
}

impl Sum {
    /// Of nothing yet.
    pub fn new(algorithm: Algorithm) -> Sum {
        match algorithm {
            Algorithm::Sha256 => Sum::Sha256(Sha256::new()),
            Algorithm::Sha512 => Sum::Sha512(Sha512::new()),
        }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Sum::Sha256(sum) => sum.update(bytes),
            Sum::Sha512(sum) => sum.update(bytes),
        }
    }

    /// In hexadecimal digits, small letters.
    pub fn finish(self) -> String {
        match self {
            Sum::Sha256(sum) => hex(&sum.finalize()),
            Sum::Sha512(sum) => hex(&sum.finalize()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn sums_are_those_of_the_standard() {
        let mut sum = Sum::new(Algorithm::Sha256);
        sum.update(b"a");
        sum.update(b"bc");
        assert_eq!(sum.finish(), OF_ABC);
        let empty = Sum::new(Algorithm::Sha512).finish();
        assert!(empty.starts_with("cf83e1357eefb8bd") && empty.len() == 128);
    }

    #[test]
    fn what_is_typed_is_a_function_a_sum_or_a_file() {
        let typed = |text: &str| Checksum::parse(text).map_err(|error| format!("{error:#}"));
        let report = typed("sha256").expect("fine");
        assert_eq!(report.expected("any"), Ok(None));
        let one = typed(&format!("sha256:{}", OF_ABC.to_uppercase())).expect("fine");
        assert_eq!(one.expected("any"), Ok(Some(OF_ABC)));
        assert!(one.is_single());
        assert!(typed("md5:00").is_err_and(|why| why.contains("use sha256 or sha512")));
        let short = typed("sha512:/nowhere/abcdef").unwrap_err();
        assert!(short.contains("neither 128 hexadecimal digits"), "{short}");
    }

    #[test]
    fn listings_are_as_sha256sum_writes_them() {
        let path = std::env::temp_dir().join(format!("prony-sums-{}", std::process::id()));
        let text = format!("{OF_ABC}  a b.txt\n\n{OF_ABC} *./dir/c\n");
        std::fs::write(&path, text).expect("written");
        let read = Checksum::parse(&format!("sha256:{}", path.display())).expect("fine");
        assert_eq!(read.expected("a b.txt"), Ok(Some(OF_ABC)));
        assert_eq!(read.expected("c"), Ok(Some(OF_ABC)));
        assert_eq!(read.expected("d"), Err(NotListed));
        std::fs::write(&path, format!("{OF_ABC}  a\nnonsense\n")).expect("written");
        let error = Checksum::parse(&format!("sha256:{}", path.display())).unwrap_err();
        assert!(error.to_string().contains(":2: not `HEX  NAME`"), "{error}");
        let _ = std::fs::remove_file(&path);
    }
}
