//! A logger for each service that asks for one, named after it.

use std::io::Write;

use prony_runtime::services::{Service, Text};

/// What is logged: this and what is more important.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// What goes wrong.
    #[default]
    Error,
    /// The life of services.
    Info,
    /// Every request.
    Debug,
}

/// Where a service writes what happens to it.
pub trait Logger {
    /// Whether anything of this level is written: ask before making a text of it.
    fn logs(&self, level: Level) -> bool;
    /// Writes a line to standard error.
    fn log(&self, level: Level, line: &str);
}

/// The service that makes loggers.
pub struct Loggers {
    level: Level,
}

impl Loggers {
    /// One whose loggers write what is at least so important.
    pub fn new(level: Level) -> Loggers {
        Loggers { level }
    }

    /// The logger of the service of this name.
    pub fn named(&self, name: &Text) -> Named {
        Named {
            name: name.to_string(),
            level: self.level,
        }
    }
}

impl Service for Loggers {}

/// The logger of one service.
pub struct Named {
    name: String,
    level: Level,
}

impl Logger for Named {
    fn logs(&self, level: Level) -> bool {
        level <= self.level
    }

    fn log(&self, level: Level, line: &str) {
        if self.logs(level) {
            // A standard error that is closed leaves nowhere to say so.
            let _ = writeln!(std::io::stderr(), "{}: {line}", self.name);
        }
    }
}

impl Service for Named {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_includes_what_is_more_important() {
        let logger = Loggers::new(Level::Info).named(&Text::from("http"));
        assert!(logger.logs(Level::Error) && logger.logs(Level::Info));
        assert!(!logger.logs(Level::Debug));
    }
}
