//! Errors in files that users write, printed or as one error.

use prony_lab::diagnosis::Diagnoses;

use crate::Streams;
use crate::terminal::colour;

/// The value that was read; `None`: the errors have been printed.
pub fn printed<T>(
    read: Result<T, Vec<Diagnoses>>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(files) => {
            for file in files {
                streams.err.write_all(file.render(colour()).as_bytes())?;
            }
            Ok(None)
        }
    }
}

/// All errors as one.
pub fn error(files: Vec<Diagnoses>) -> anyhow::Error {
    let texts: Vec<String> = files.iter().map(|file| file.render(false)).collect();
    anyhow::Error::msg(texts.join("\n"))
}
