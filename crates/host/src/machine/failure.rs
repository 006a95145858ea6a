//! What went wrong in an application.

/// An error in Lua, or in what Lua gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What went wrong, and the traceback, if there is one.
    pub text: String,
    /// The state's memory was exhausted.
    pub is_memory: bool,
}

impl Failure {
    /// What went wrong, found here and not in Lua.
    pub fn new(text: String) -> Failure {
        Failure {
            text,
            is_memory: false,
        }
    }
}
