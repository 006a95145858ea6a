//! The terminal of the live screen: escape sequences that every terminal has which is not `dumb`, to standard error, and keys from
//! standard input. By itself, as a library for all terminals would be 22 crates for what is a page here.

use std::fmt::Write as _;
use std::io::{self, Stderr, Write as _};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// The other screen, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// The usual one again.
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// The command of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LiveKey {
    /// End the run.
    End,
    /// A higher rate.
    Faster,
    /// A lower rate.
    Slower,
}

/// A terminal that is drawn on, and as it was before when this is dropped.
pub struct DrawnTerminal {
    out: Stderr,
    before: Termios,
}

impl DrawnTerminal {
    /// Takes the terminal over: keys come at once and are not shown. Ctrl-C stays a signal.
    pub fn enter() -> io::Result<DrawnTerminal> {
        let before = tcgetattr(io::stdin())?;
        let mut now = before.clone();
        now.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &now)?;
        let mut terminal = DrawnTerminal {
            out: io::stderr(),
            before,
        };
        terminal.out.write_all(ENTER.as_bytes())?;
        terminal.out.flush()?;
        Ok(terminal)
    }
}

impl Drop for DrawnTerminal {
    fn drop(&mut self) {
        // A terminal that is gone takes nothing back.
        let _ = self.out.write_all(LEAVE.as_bytes());
        let _ = self.out.flush();
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// The keys that were pressed since the last call.
pub fn keys() -> Vec<LiveKey> {
    let stdin = io::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    let is_there = matches!(poll(&mut waiting, Some(&Timespec::default())), Ok(1..));
    if !is_there || !waiting[0].revents().contains(PollFlags::IN) {
        return Vec::new();
    }
    let mut bytes = [0; 256];
    let count = rustix::io::read(&stdin, &mut bytes).unwrap_or(0);
    keys_of(&bytes[..count])
}

/// Keys by what a terminal sends for them.
fn keys_of(bytes: &[u8]) -> Vec<LiveKey> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        let (key, after) = match (first, after) {
            // Arrows, and other keys of several bytes.
            (0x1b, [b'[' | b'O', b'A', after @ ..]) => (Some(LiveKey::Faster), after),
            (0x1b, [b'[' | b'O', b'B', after @ ..]) => (Some(LiveKey::Slower), after),
            (0x1b, [b'[' | b'O', _, after @ ..]) => (None, after),
            (b'q' | b'Q' | 0x1b, after) => (Some(LiveKey::End), after),
            (b'+' | b'=', after) => (Some(LiveKey::Faster), after),
            (b'-', after) => (Some(LiveKey::Slower), after),
            (_, after) => (None, after),
        };
        keys.extend(key);
        rest = after;
    }
    keys
}

/// The sequence that makes characters look as `cell`.
fn look(cell: &Cell) -> String {
    let mut look = String::from("\x1b[0");
    for (modifier, code) in [(Modifier::BOLD, 1), (Modifier::DIM, 2)] {
        if cell.modifier.contains(modifier) {
            let _ = write!(look, ";{code}");
        }
    }
    let colour = match cell.fg {
        Color::Red => Some(31),
        Color::Blue => Some(34),
        Color::Cyan => Some(36),
        _ => None,
    };
    if let Some(colour) = colour {
        let _ = write!(look, ";{colour}");
    }
    look.push('m');
    look
}

impl Backend for DrawnTerminal {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let (mut text, mut place, mut last) = (String::new(), None, String::new());
        for (x, y, cell) in content {
            if place != Some((x, y)) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\x1b[{};{}H", y + 1, x + 1);
            }
            let style = look(cell);
            if style != last {
                text.push_str(&style);
                last = style;
            }
            text.push_str(cell.symbol());
            place = Some((x + 1, y));
        }
        self.out.write_all(text.as_bytes())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x1b[?25l")
    }

    /// Never fails: the library prints to standard error where it does, which panics on a terminal that is gone.
    fn show_cursor(&mut self) -> io::Result<()> {
        let _ = self.out.write_all(b"\x1b[?25h");
        Ok(())
    }

    /// The cursor is hidden: where it is does not matter.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let at = position.into();
        write!(self.out, "\x1b[{};{}H", at.y + 1, at.x + 1)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x1b[0m\x1b[2J")
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(&self.out)?;
        Ok(Size::new(size.ws_col, size.ws_row))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_terminals_send_for_them() {
        use LiveKey::{End, Faster, Slower};
        assert_eq!(keys_of(b"+=-q"), [Faster, Faster, Slower, End]);
        assert_eq!(keys_of(b"\x1b[A\x1bOB\x1b[C\x1b"), [Faster, Slower, End]);
        assert_eq!(keys_of(b"xyz\r\n\0"), []);
        assert_eq!(keys_of(b""), []);
    }
}
