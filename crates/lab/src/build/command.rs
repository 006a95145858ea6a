//! What a command that an experiment names is made of: the files that it runs. Not for: what these load in turn, which the
//! code around the experiment tells as far as it can.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::job::part;
use crate::subject::Subject;
use crate::sums::hex;

/// A larger file is told by its size and when it was written: to read it takes longer than anyone waits for.
const READ_BYTES_MAX: u64 = 256 << 20;

/// The digest, in hexadecimal, of all files that the words of the commands of `subject` name, for each the word and what is
/// in it; `None` where there is none. A program without a folder is looked for in `path`, all else from `folder` on.
pub(super) fn digest(subject: &Subject, folder: &Path, path: &str) -> Option<String> {
    let mut commands = vec![&subject.start];
    commands.extend(subject.programs().map(|program| &program.cmd));
    commands.extend(subject.client.iter().map(|client| &client.translate));
    let mut hash = Sha256::new();
    let mut is_any = false;
    for (number, word) in commands.iter().flat_map(|words| words.iter().enumerate()) {
        let Some(file) = file_of(word, number == 0, folder, path) else {
            continue;
        };
        // One that cannot be read is told by that.
        let content = content(&file).unwrap_or_else(|error| error.to_string());
        part(&mut hash, word, content.as_bytes());
        is_any = true;
    }
    is_any.then(|| hex(&hash.finalize()))
}

/// The file that `word` names: as it is, or behind the sign of equality of a flag.
fn file_of(word: &str, is_program: bool, folder: &Path, path: &str) -> Option<PathBuf> {
    if is_program && !word.contains('/') {
        let mut places = std::env::split_paths(path).map(|place| place.join(word));
        return places.find(|place| place.is_file());
    }
    let here = |name: &str| folder.join(name.replace("{dir}", &folder.display().to_string()));
    let behind = word.split_once('=').map(|(_, value)| value);
    let mut places = [Some(word), behind].into_iter().flatten().map(here);
    places.find(|place| place.is_file())
}

fn content(file: &Path) -> io::Result<String> {
    let about = fs::metadata(file)?;
    if about.len() > READ_BYTES_MAX {
        return Ok(format!("{} bytes of {}", about.len(), about.mtime()));
    }
    Ok(hex(&Sha256::digest(fs::read(file)?)))
}
