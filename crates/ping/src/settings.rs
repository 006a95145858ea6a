//! The service that knows how the application is to behave.

use prony_http::ServerOptions;
use prony_runtime::services::Service;

use super::Level;

/// How the application is to behave.
pub trait Settings {
    /// Limits and time-outs of the server.
    fn server(&self) -> ServerOptions;
    /// What is logged.
    fn level(&self) -> Level;
}

/// Settings that were known when the program began.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// Limits and time-outs of the server.
    pub server: ServerOptions,
    /// What is logged.
    pub level: Level,
}

impl Settings for Fixed {
    fn server(&self) -> ServerOptions {
        self.server.clone()
    }

    fn level(&self) -> Level {
        self.level
    }
}

impl Service for Fixed {}
