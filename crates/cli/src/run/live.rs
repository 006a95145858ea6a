//! `prony run --open`: the document of a run, shown in a browser while it grows.
//!
//! It must not disturb what is measured. So it is rendered between trials, while no process of a trial is alive, by the thread that would
//! start the next one, which waits meanwhile: at most once a second, and for at most a twentieth of the run. The page then waits on one connection
//! for the next state (server-sent events), and nothing is asked for or sent while a trial runs. The thread that serves it keeps to
//! the cores of the run's own sampler. Only this machine can reach it ([`server`]).
//!
//! Not for: the documents in the run directory, which are written at the end as without it.

mod server;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::Context as _;
use prony_base::{Instant, Nanos, clock};
use prony_lab::run::Event;
use prony_record::{GeneratorKind, Plan, layout};

use super::progress::minutes;
use crate::{Streams, report};
use server::LiveServer;

/// The least time between two states.
const EVERY: Nanos = Nanos::from_secs(1);
/// After a state that took a while to render, none is rendered for this many times as long.
const REST: u64 = 20;
/// How long the last state may take to be fetched by a page that is open.
const LAST: Nanos = Nanos::from_secs(1);
/// The page until there is a document.
const EMPTY: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Prony</title>\n</head>\n<body>\n\
                     <header></header>\n<main></main>\n</body>\n</html>\n";
/// The script that brings the next states into an open page.
const SCRIPT: &str = include_str!("live/page.js");
/// How the line above the document looks.
const STYLE: &str = "position:sticky;top:0;z-index:1;margin:0;max-width:none;padding:.4rem 0;background:var(--paper,Canvas);color:var(--ink,CanvasText);\
                     border-bottom:1px solid var(--rule,GrayText)";

/// The page of one run.
pub struct LivePage {
    server: LiveServer,
    dir: PathBuf,
    /// The newest document; the page's frame where there is none.
    document: String,
    /// Trials whose processes may be alive, by cell, block and generator.
    alive: BTreeSet<(String, u32, GeneratorKind)>,
    /// How far the run has come.
    progress: String,
    /// No state is rendered before.
    next: Instant,
}

impl LivePage {
    /// Begins to serve the page of the run in `dir`; its address is printed, and opened where there is a display.
    pub fn start(plan: &Plan, dir: &Path, streams: &mut Streams<'_>) -> anyhow::Result<LivePage> {
        let server =
            LiveServer::start(&plan.cores.lab).context("no page can be served on 127.0.0.1")?;
        let page = LivePage {
            server,
            dir: dir.to_owned(),
            document: EMPTY.to_owned(),
            alive: BTreeSet::new(),
            progress: "Nothing is measured yet.".to_owned(),
            next: clock::monotonic(),
        };
        page.show(false);
        let url = page.server.url();
        writeln!(streams.err, "  live page, until the run ends: {url}")?;
        if has_display() {
            open(&url);
        }
        Ok(page)
    }

    /// Something happened in the run.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Begun {
                reused,
                total,
                left,
            } => {
                self.progress = progress(*reused, *total, Some(*left));
                self.render();
            }
            Event::Started {
                cell,
                block,
                generator,
            } => {
                self.alive.insert((cell.id.clone(), *block, *generator));
            }
            Event::Phase(_) => {}
            Event::Ended {
                trial,
                done,
                total,
                left,
            } => {
                let ended = (trial.cell.clone(), trial.block, trial.generator);
                self.alive.remove(&ended);
                self.progress = progress(*done, *total, Some(*left));
                self.render_if_due();
            }
            Event::LeftOut { done, total, .. } => {
                self.progress = progress(*done, *total, None);
                self.render_if_due();
            }
        }
    }

    fn render_if_due(&mut self) {
        if self.alive.is_empty() && clock::monotonic() >= self.next {
            self.render();
        }
    }

    /// Renders the records as they are now. What cannot be read or rendered is no reason to end the run: the state before stays.
    fn render(&mut self) {
        let began = clock::monotonic();
        if let Ok((run, _)) = report::read(&self.dir) {
            self.document = prony_report::render(&run).index_html;
        }
        self.show(false);
        let now = clock::monotonic();
        let took = now.since(began);
        self.next = now + EVERY.max(Nanos(took.0.saturating_mul(REST)));
    }

    fn show(&self, is_last: bool) {
        let number = self.server.next_number();
        self.server
            .show(with_line(&self.document, number, &self.progress), is_last);
    }

    /// Shows the document that was written, if one was, and stops serving once the pages that are open have it.
    pub fn end(mut self) {
        if let Ok(document) = fs::read_to_string(self.dir.join(layout::PAGE)) {
            self.document = document;
        }
        self.progress = "The run has ended; this page is not updated any more.".to_owned();
        self.show(true);
        self.server.end(LAST);
    }
}

/// The document with a line above it that says how far the run is, and with what brings the next states.
fn with_line(document: &str, number: u64, progress: &str) -> String {
    let line = format!(
        "<p id=\"live\" role=\"status\" data-state=\"{number}\" style=\"{STYLE}\">{progress}</p>\n"
    );
    let script = format!("<script>\n{SCRIPT}</script>\n</body>");
    document
        .replacen("<body>\n", &format!("<body>\n{line}"), 1)
        .replacen("</body>", &script, 1)
}

fn progress(done: u32, total: u32, left: Option<Nanos>) -> String {
    let left = left.map_or_else(String::new, |left| format!(", {} left", minutes(left)));
    format!("Running: {done} of {total} trials{left}. Figures change until the end.")
}

/// Whether a browser could be seen.
fn has_display() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Opens the page in the user's browser. Its address has been printed, so that a browser that cannot be started is no error.
fn open(url: &str) {
    let mut command = Command::new("xdg-open");
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // It is waited for, as nothing that has ended is to stay in the table of processes.
        thread::spawn(move || child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_stands_above_the_document_and_the_script_below() {
        let page = with_line(EMPTY, 7, &progress(3, 40, Some(Nanos::from_secs(200))));
        let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}: {page}"));
        assert!(at("data-state=\"7\"") < at("Running: 3 of 40 trials, 3 min 20 s left."));
        assert!(at("<p id=\"live\"") < at("<main>") && at("</main>") < at("<script>"));
        assert_eq!(page.matches("</body>").count(), 1);
        assert!(progress(1, 2, None).starts_with("Running: 1 of 2 trials."));
    }
}
