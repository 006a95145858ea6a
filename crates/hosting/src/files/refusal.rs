//! Why a file is not sent.

/// Why a file is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The path cannot be read.
    BadPath,
    NotFound,
    Forbidden,
    /// It is a directory, and was asked for without a slash at the end.
    Folder,
    /// None of its forms is one that the client takes.
    NotAcceptable,
    /// Something is scarce just now, or the file never rests.
    Busy,
    Failed,
}
