//! A trial of a program or of a client: it is started fresh and runs to its end; then what it printed is read, and
//! what the kernel says that it used. A client is a program beside a peer ([`super::peer`]), a server as in any trial.
//!
//! ```text
//! children <- sampling <- peer, ready <- client        (an arrow: is required by)
//!             sampling, program
//! ```
//!
//! Nothing of Prony runs on the cores of what is measured meanwhile, where there are others: its parent sleeps until it
//! ends ([`crate::supervise`] says why there is one), and it is not sampled.
//!
//! Not for: what the lines mean ([`crate::printed`]).

use std::cell::RefCell;
use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;

use prony_base::Nanos;
use prony_record::{
    Cores, Exit, Histogram, Phase, PlannedClient, ProgramLine, REQUESTS, Trial, Work, layout,
};
use prony_runtime::services::Definition;

use super::context::{Halt, TrialContext, in_words};
use super::lifecycle::{Lifecycle, OpenWindow, STUCK, TrialCourse};
use super::peer::ClientPeer;
use super::profiling::WholeRun;
use super::runner::{Runner, read_output, translate};
use super::start;
use crate::experiment::THREADS;
use crate::launch::Resolved;
use crate::plan::client::seconds;
use crate::printed::{self, Assignment, ClientAssignment, Pattern};
use crate::supervise::TrialOrder;

/// Bytes of a tool's own output that a record keeps.
const SAID_BYTES_MAX: usize = 16 << 10;
/// What the loader reports of a library that it could not preload: it then continues
/// without, and another program would be measured than the one that was named.
const NOT_PRELOADED: &str = "cannot be preloaded";
/// What a program prints beside its measurement when it was refused a realtime priority.
const NOT_REALTIME: &str = "\"realtime\":false";

/// A trial of a program or a client under way.
pub struct ProgramTrial<'a> {
    lifecycle: Lifecycle<'a>,
    context: Rc<TrialContext>,
    work: Work<'a>,
    threads: u32,
    /// The server on the other side of a client.
    peer: Option<ClientPeer<'a>>,
    runner: Option<Rc<Runner>>,
    /// What translates the output; empty: nothing does.
    translation: Resolved,
    lines: Vec<ProgramLine>,
}

/// Threads that a program or a client is told to use.
pub fn threads(order: &TrialOrder, work: Work<'_>) -> u32 {
    let setting = order.cell.settings.get(THREADS);
    let threads = setting.and_then(|value| value.parse().ok());
    let declared = match work {
        Work::Client(client) => client.threads,
        Work::Program(_) | Work::Server => order.subject.program_threads,
    };
    threads.unwrap_or(declared).max(1)
}

/// A program's cores and those of the supervisor: as many as it is told threads, and
/// the lab's own, or else the others, if there are any.
pub fn split(cores: &Cores, threads: u32) -> Cores {
    let mut all: Vec<u32> = Vec::new();
    for &core in cores.subject.iter().chain(&cores.generator) {
        if !all.contains(&core) {
            all.push(core);
        }
    }
    let own = all.split_off(all.len().min(threads.max(1) as usize));
    Cores {
        subject: all,
        generator: own,
        lab: cores.lab.clone(),
    }
}

impl<'a> ProgramTrial<'a> {
    /// A trial of `work`, a program's or a client's, that has not begun.
    pub fn new(lifecycle: Lifecycle<'a>, work: Work<'a>) -> ProgramTrial<'a> {
        let context = lifecycle.context.clone();
        ProgramTrial {
            threads: threads(&context.order, work),
            lifecycle,
            context,
            work,
            peer: None,
            runner: None,
            translation: Resolved::default(),
            lines: Vec::new(),
        }
    }

    /// What is run, in messages.
    fn title(&self) -> &'static str {
        match self.work {
            Work::Client(_) => "client",
            Work::Program(_) | Work::Server => "program",
        }
    }

    /// Resolves its command, and the peer, and makes its files.
    fn set_up(&mut self) -> Result<Rc<Runner>, Halt> {
        let order = &self.context.order;
        let resolved = match self.work {
            Work::Client(client) => {
                let peer = ClientPeer::new(&self.lifecycle, client)?;
                let place = &peer.place;
                let (client, translation) =
                    start::resolve_client(order, client, self.threads, place);
                self.translation = translation;
                self.peer = Some(peer);
                client
            }
            Work::Program(program) => start::resolve_program(order, program, self.threads),
            Work::Server => Resolved::default(),
        };
        let title = self.title();
        if resolved.command.is_empty() {
            let reason = format!("the subject has no command that runs it as a {title}");
            return Err(Halt::Failed(reason));
        }
        let output = self.file(".output.log");
        File::create(&output).map_err(Halt::io("a log cannot be written"))?;
        let log = Rc::new(RefCell::new(Some(self.context.log("")?)));
        self.lifecycle.watched.logs.borrow_mut().push(log.clone());
        let files = (output, self.file(".log"), log);
        let runner = Runner::new(self.context.clone(), title, resolved, files);
        self.runner = Some(runner.clone());
        Ok(runner)
    }

    fn file(&self, ending: &str) -> PathBuf {
        let name = format!("{}{ending}", self.context.order.file_stem);
        self.context.order.run_dir.join(layout::LOGS).join(name)
    }

    /// How long it may run.
    fn timeout(&self) -> Nanos {
        let order = &self.context.order;
        let time = match self.work {
            Work::Client(client) if client.work == REQUESTS => {
                Nanos::from_secs(seconds(Nanos(order.duration_ns)))
            }
            _ => Nanos::ZERO,
        };
        time + Nanos(order.workload.timeout_ns)
    }

    fn open_window(&mut self) -> OpenWindow {
        self.lifecycle.enter(Phase::Measure);
        if self.peer.is_some() {
            self.context.sampler.borrow_mut().reset_peaks();
        }
        self.lifecycle.open_window(0)
    }

    /// Starts it and waits for its end.
    async fn measure(&mut self, runner: &Rc<Runner>) -> Result<(), Halt> {
        // What a peer does for its client's first request belongs to the window. Beside a program nothing is measured, and
        // what it takes to start it is not its own.
        let early = self.peer.is_some().then(|| self.open_window());
        let stop = Nanos(self.context.order.subject.stop.timeout_ns);
        let service = Definition::shared(self.title(), runner.clone()).stop_timeout(stop + STUCK);
        self.lifecycle
            .bring_up(self.lifecycle.after_last(service))
            .await?;
        if let Some(pid) = runner.pid() {
            let order = &self.context.order;
            let run_sample = WholeRun::begin(order, pid, &order.cores.subject);
            *self.lifecycle.watched.run_sample.borrow_mut() = run_sample;
        }
        let window = early.unwrap_or_else(|| self.open_window());
        let timeout = self.timeout();
        let late = || runner.with_last_line(format!("it had not ended after {timeout}"));
        let ended = self.context.within(timeout, runner.await_end(), late);
        let living = async {
            match &self.peer {
                Some(peer) => (peer.participant.while_alive("the client ended", ended)).await,
                None => Ok(ended.await),
            }
        };
        let waited = self.context.unless_interrupted(living).await;
        if self.peer.is_some() {
            self.context.sampler.borrow_mut().look();
        }
        let (_, used) = self.lifecycle.close_window(window);
        if let Some(peer) = &self.peer {
            peer.note_window(used);
        }
        waited???;
        if let Some(peer) = &self.peer {
            peer.participant.check_alive("the client ended")?;
        }
        self.note_end(runner);
        match runner.exit() {
            Some(Exit::Code { code: 0 }) | None => Ok(()),
            Some(exit) => {
                let reason = format!("it {}", in_words(&exit));
                Err(Halt::Failed(runner.with_last_line(reason)))
            }
        }
    }

    /// Records how long it ran.
    fn note_end(&self, runner: &Runner) {
        let wall_ns = runner.usage().map_or(0, |usage| usage.wall_ns);
        let mut trial = self.context.trial.borrow_mut();
        trial.window_ns = wall_ns;
        if self.peer.is_none() {
            trial.sampled_ns = wall_ns;
        }
    }

    /// Reads what it printed, translated where that is needed.
    async fn read(&mut self, runner: &Runner) -> Result<(), Halt> {
        if let Some(line) = runner
            .errors()
            .iter()
            .find(|line| line.contains(NOT_PRELOADED))
        {
            let reason = format!("what the experiment preloads was left out: {}", line.trim());
            return Err(Halt::Failed(reason));
        }
        let text = read_output(runner.output())?;
        self.lines = match self.work {
            Work::Client(client) => {
                let text = self.translate(runner, text).await?;
                vec![self.line_of_client(client, runner, &text)?]
            }
            _ => self.lines_of_program(&text)?,
        };
        Ok(())
    }

    fn lines_of_program(&self, text: &str) -> Result<Vec<ProgramLine>, Halt> {
        let TrialOrder { subject, cell, .. } = &self.context.order;
        let pattern = subject.program_output.as_deref().map(Pattern::new);
        let assignment = Assignment {
            count: cell.count.unwrap_or(0),
            threads: self.threads,
            told_threads: subject.mentions(self.work, "{threads}"),
        };
        let pattern = pattern.transpose().map_err(Halt::Failed)?;
        let lines = printed::read(text, pattern.as_ref(), &assignment).map_err(Halt::Failed)?;
        if text.contains(NOT_REALTIME) {
            let note = "the program says that it was not allowed to be scheduled in real time";
            self.context.note(note.to_owned());
        }
        Ok(lines)
    }

    async fn translate(&mut self, runner: &Runner, text: String) -> Result<String, Halt> {
        if self.translation.command.is_empty() {
            return Ok(text);
        }
        if let Some(peer) = &mut self.peer {
            peer.report.said = text[..text.floor_char_boundary(SAID_BYTES_MAX)].to_owned();
        }
        let output = self.file(".line.log");
        let children = &self.lifecycle.children;
        let files = (runner.output(), output.as_path());
        translate(&self.context, children, &self.translation, files).await?;
        let text = read_output(&output)?;
        // Its one line is part of the record.
        let _ = std::fs::remove_file(&output);
        Ok(text)
    }

    fn line_of_client(
        &self,
        client: &PlannedClient,
        runner: &Runner,
        text: &str,
    ) -> Result<ProgramLine, Halt> {
        let TrialOrder { subject, cell, .. } = &self.context.order;
        let peer = self.peer.as_ref();
        let assignment = ClientAssignment {
            told_threads: subject.mentions(self.work, "{threads}"),
            work: &client.work,
            connections: cell.connections,
            threads: self.threads,
            body_bytes: peer.map_or(0, |peer| peer.report.page_body_bytes),
            wall_ns: runner.usage().map_or(0, |usage| usage.wall_ns),
        };
        printed::read_client(text, &assignment).map_err(Halt::Failed)
    }
}

impl<'a> TrialCourse<'a> for ProgramTrial<'a> {
    fn lifecycle(&mut self) -> &mut Lifecycle<'a> {
        &mut self.lifecycle
    }

    async fn carry_out(&mut self) -> Result<(), Halt> {
        self.lifecycle.prepare()?;
        let runner = self.set_up()?;
        self.lifecycle.enter(Phase::Start);
        match &mut self.peer {
            Some(peer) => peer.bring_up(&mut self.lifecycle).await?,
            None => self.lifecycle.watch_files().await?,
        }
        self.measure(&runner).await?;
        match &mut self.peer {
            Some(peer) => {
                self.lifecycle.enter(Phase::Drain);
                peer.count_again(&self.lifecycle).await?;
            }
            None => self.lifecycle.enter(Phase::Verify),
        }
        let read = match self.read(&runner).await {
            Err(Halt::Interrupted) => return Err(Halt::Interrupted),
            read => read.map_err(|halt| halt.to_string()),
        };
        self.context.check("output", read)
    }

    fn finish(self, trial: &mut Trial) -> Option<Histogram> {
        if let Some(run_sample) = self.lifecycle.watched.run_sample.take() {
            run_sample.keep(&self.context.order, trial);
        }
        if let Some(peer) = self.peer {
            peer.finish(trial);
        }
        if let Some(runner) = self.runner {
            trial.program = runner.usage();
            trial.processes.extend(runner.record());
            trial.log_tail = runner.tail();
            runner.close(trial);
        }
        if let Some(report) = &mut trial.program {
            report.lines = self.lines;
        }
        trial
            .processes
            .sort_by_key(|process| (process.role, process.pid));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_as_many_cores_as_threads_and_the_supervisor_the_others() {
        let cores = |subject: &[u32], generator: &[u32]| Cores {
            subject: subject.to_vec(),
            generator: generator.to_vec(),
            lab: Vec::new(),
        };
        let all = cores(&[0, 2], &[1, 2, 3]);
        assert_eq!(split(&all, 1), cores(&[0], &[2, 1, 3]));
        assert_eq!(split(&all, 0), cores(&[0], &[2, 1, 3]));
        assert_eq!(split(&all, 3), cores(&[0, 2, 1], &[3]));
        assert_eq!(split(&all, 99), cores(&[0, 2, 1, 3], &[]));
        assert_eq!(split(&Cores::default(), 2), Cores::default());
        let with_lab = Cores {
            lab: vec![4],
            ..cores(&[0], &[1, 2])
        };
        let run_sample = split(&with_lab, 9);
        assert_eq!(
            (run_sample.subject, run_sample.lab),
            (vec![0, 1, 2], vec![4])
        );
        assert_eq!(split(&with_lab, 1).of_sampler(), [4]);
        assert_eq!(split(&all, 1).of_sampler(), [2, 1, 3]);
    }
}
