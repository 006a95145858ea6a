//! Output for terminals.

use std::env;
use std::fmt;
use std::io::{self, IsTerminal as _, Write};

use prony_base::untrusted;

/// A stream that people read, or a program. What is formatted (`write!`) goes through [`untrusted::lines`], as any of it may be
/// a stranger's; bytes (`write_all`) are the program's own colours, or data, and stay as they are.
pub struct EscapedStream<'a>(pub &'a mut dyn Write);

impl Write for EscapedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        let text = text.to_string();
        self.0.write_all(untrusted::lines(&text).as_bytes())
    }
}

/// Columns of standard output; without end where that is no terminal.
pub fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    columns.filter(|columns| *columns > 0).unwrap_or(usize::MAX)
}

/// Colour only on a terminal, and not where `NO_COLOR` is set.
pub fn colour() -> bool {
    io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
