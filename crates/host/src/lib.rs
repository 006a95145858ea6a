//! Web applications in Lua (LuaJIT) on Prony's server, over the WSGI convention as it
//! reads in Lua: `app(environ, start_response)` returns an iterator or a table of strings.
//!
//! Not for: worker processes, static files, the access log (`prony-hosting`).

use prony_hosting::{LoadError, Post};
use prony_http::{Handler, Request, Response};
use serde::{Deserialize, Serialize};

/// Settings that only this host has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// Bytes that the Lua state of one worker may use.
    pub memory_max: u64,
}

/// An application, loaded.
pub struct Application {}

/// Loads `module:app`.
///
/// # Errors
/// The module is not found or fails, or has no such function; with file and line.
pub fn load(post: &Post) -> Result<Application, LoadError> {
    Err(LoadError(format!(
        "cannot load {}",
        post.settings.application
    )))
}

impl Handler for Application {
    async fn handle(&self, _: &Request<'_>, response: &mut Response) {
        response.text(404, "no such page\n");
    }
}
