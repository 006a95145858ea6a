//! `prony load --live`: a screen that follows the run, on standard error, with keys to end it and to change its rate.
//!
//! The picture is made in [`view`], which knows no terminal, and drawn in [`terminal`]. Not for: terminals that cannot be drawn on, where a line
//! follows the run instead.

mod terminal;
mod view;

use std::env;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use prony_base::{Instant, clock};
use prony_load::{LoadInterval, LoadSpec, Observer};
use ratatui_core::terminal::Terminal;

use terminal::{DrawnTerminal, LiveKey};
use view::LiveView;

/// By how much a key changes the rate.
const RATE_STEP: f64 = 1.1;

/// A screen, which is the terminal's own again when this is dropped.
pub struct LiveScreen {
    /// `None`: the terminal is gone, and the run goes on without it.
    terminal: Option<Terminal<DrawnTerminal>>,
    view: LiveView,
    interrupted: Arc<AtomicBool>,
    start: Instant,
    /// A rate that the run is to have from now on.
    wanted: Option<f64>,
    /// When the rate was changed, from the start of the window, and to what.
    changes: Vec<(f64, f64)>,
}

/// Whether there is a terminal that can be drawn on.
pub fn can_draw() -> bool {
    let dumb = env::var("TERM").map_or(true, |term| term == "dumb" || term.is_empty());
    io::stderr().is_terminal() && io::stdin().is_terminal() && !dumb
}

/// Ends the run where the terminal is closed, so that what was measured is written.
pub fn end_with_terminal(interrupted: &Arc<AtomicBool>) -> io::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(interrupted)).map(drop)
}

impl LiveScreen {
    /// Takes the terminal over. A signal sets `interrupted`, and so does the key that ends the run.
    pub fn new(spec: &LoadSpec, interrupted: Arc<AtomicBool>) -> io::Result<LiveScreen> {
        let terminal = Terminal::new(DrawnTerminal::enter()?)?;
        let mut screen = LiveScreen {
            terminal: Some(terminal),
            view: LiveView::new(spec),
            interrupted,
            start: Instant::NEVER,
            wanted: None,
            changes: Vec::new(),
        };
        screen.draw();
        Ok(screen)
    }

    /// Gives the terminal back; returns a line on each change of the rate.
    pub fn end(self) -> Vec<String> {
        let line = |(at, rate): &(f64, f64)| {
            format!("Rate changed: to {rate:.1}/s after {at:.1}s of the window\n")
        };
        self.changes.iter().map(line).collect()
    }

    fn draw(&mut self) {
        let Some(terminal) = &mut self.terminal else {
            return;
        };
        let view = &self.view;
        let drawn = terminal.draw(|frame| view.draw(frame.buffer_mut()));
        if drawn.is_err() {
            self.terminal = None;
        }
    }

    /// Takes the keys that were pressed.
    fn keys(&mut self) {
        if self.terminal.is_none() {
            return;
        }
        for key in terminal::keys() {
            match key {
                LiveKey::End => self.interrupted.store(true, Relaxed),
                LiveKey::Faster => self.change_rate(RATE_STEP),
                LiveKey::Slower => self.change_rate(1.0 / RATE_STEP),
            }
        }
    }

    fn change_rate(&mut self, factor: f64) {
        if let Some(rate) = self.view.change_rate(factor) {
            self.wanted = Some(rate);
            let at = clock::monotonic().since(self.start).as_secs_f64();
            self.changes.push((at, rate));
        }
    }
}

impl Observer for LiveScreen {
    fn connected(&mut self, start: Instant, end: Instant) {
        self.start = start;
        let length = (end != Instant::NEVER).then(|| end.since(start));
        self.view.begin(length);
        self.draw();
    }

    fn progress(&mut self, completed: u64, failed: u64) -> bool {
        self.keys();
        let now = clock::monotonic();
        let elapsed = (now >= self.start).then(|| now.since(self.start));
        self.view.progress(elapsed, completed, failed);
        self.draw();
        !self.interrupted.load(Relaxed)
    }

    fn wants_intervals(&self) -> bool {
        true
    }

    fn interval(&mut self, interval: &LoadInterval) {
        self.view.second(interval);
    }

    fn rate(&mut self) -> Option<f64> {
        self.wanted.take()
    }
}
