//! What a profile trial does beside one that is measured: the subject's threads are sampled and counted in the window, or
//! strace is attached to it from before the load until after it.
//!
//! Not for: how samples are taken ([`crate::profile`]).

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use prony_base::{Nanos, clock};
use prony_record::{Role, Trial, layout};
use rustix::process::Signal;

use super::Halt;
use super::children::{Child, Farewell};
use super::scene::Scene;
use super::stage::Stage;
use crate::profile::Profiler;
use crate::sample::Sampler;
use crate::{launch, profile};

/// How long strace has to attach itself to all threads.
const ATTACH: Nanos = Nanos::from_secs(5);
/// Pause between two looks whether it has.
const PAUSE: Nanos = Nanos::from_millis(5);
/// How strace is asked to let go of the subject and to write its table.
const FAREWELL: Farewell = Farewell {
    signal: Signal::INT,
    timeout: Nanos::from_secs(5),
};

/// strace at work.
pub struct Strace {
    child: Rc<Child>,
    table: PathBuf,
}

impl Stage {
    /// Opens what is looked at, shortly before the window.
    pub fn open_profile(&self) {
        if let Some(profiler) = &mut *self.profiler.borrow_mut() {
            let mut cores = self.order.cores.subject.clone();
            if cores.is_empty() {
                cores = online();
            }
            profiler.open(&self.subjects_threads(), &cores);
        }
    }

    /// The window begins.
    pub fn begin_profile(&self) {
        if let Some(profiler) = &mut *self.profiler.borrow_mut() {
            profiler.begin();
        }
    }

    /// The window is over.
    pub fn end_profile(&self) {
        if let Some(profiler) = &mut *self.profiler.borrow_mut() {
            profiler.end(&self.subjects_threads());
        }
    }

    fn subjects_threads(&self) -> Vec<(u32, u32)> {
        self.sampler.borrow().threads_of(Role::Subject)
    }

    fn refuse_profile(&self, sentence: String) {
        if let Some(profiler) = &mut *self.profiler.borrow_mut() {
            profiler.refuse(sentence);
        }
    }
}

/// Attaches strace, where that is what this trial is for; without it the trial goes on, and says so.
pub async fn attach(scene: &Scene<'_>) -> Result<Option<Strace>, Halt> {
    let stage = &scene.stage;
    let strace = {
        let profiler = stage.profiler.borrow();
        profiler.as_ref().and_then(|own| own.pass().strace.clone())
    };
    let Some(strace) = strace else {
        return Ok(None);
    };
    let threads = stage.subjects_threads();
    let (mut pids, tids): (Vec<u32>, Vec<u32>) = threads.into_iter().unzip();
    pids.dedup();
    let table = stage.order.work_dir.join("strace");
    let log = stage.log(".strace")?;
    let mut command = Command::new(strace);
    command
        .args(profile::strace_arguments(&pids, &table))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.writer().map_err(Halt::io("a log cannot be written"))?);
    let child = match launch::start(&mut command) {
        Ok(child) => scene.children.follow(child.id(), Role::Generator, FAREWELL),
        Err(error) => {
            stage.refuse_profile(format!("strace cannot be started: {error}"));
            return Ok(None);
        }
    };
    let deadline = clock::monotonic() + ATTACH;
    while !tids.iter().all(|&tid| is_traced(tid)) {
        scene.children.collect();
        if child.exit().is_some() || clock::monotonic() > deadline {
            scene.children.end(&child).await;
            let why = log.tail().pop().unwrap_or_default();
            stage.refuse_profile(format!("strace cannot attach itself to the subject: {why}"));
            return Ok(None);
        }
        stage.unless_interrupted(stage.handle.sleep(PAUSE)).await?;
    }
    Ok(Some(Strace { child, table }))
}

/// Lets it go, and reads what it counted.
pub async fn detach(scene: &Scene<'_>, strace: Strace) {
    scene.children.end(&strace.child).await;
    let text = std::fs::read(&strace.table).unwrap_or_default();
    let counts = profile::strace_counts(&String::from_utf8_lossy(&text));
    if let Some(profiler) = &mut *scene.stage.profiler.borrow_mut() {
        if counts.is_empty() {
            profiler.refuse("strace wrote no table".to_owned());
        }
        profiler.counted_by_strace(counts);
    }
}

/// Whether somebody follows this thread, or it is gone.
fn is_traced(tid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{tid}/status")) else {
        return true;
    };
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// The cores that are there.
fn online() -> Vec<u32> {
    crate::sample::machine::core_times().into_keys().collect()
}

/// Puts what was seen into the record, and the folded stacks into the run directory.
pub fn keep(profiler: Profiler, sampler: &Sampler, stage: &Stage, trial: &mut Trial) {
    let threads = sampler.profiled(Role::Subject);
    let (mut report, folded) = profiler.report(threads, trial.sampled_ns);
    if !folded.is_empty() {
        let name = format!("{}/{}.folded", layout::PROFILES, stage.order.file_stem);
        match write(&stage.order.run_dir, &name, &folded) {
            Ok(()) => report.folded = Some(name),
            Err(error) => report
                .refused
                .push(format!("{name} cannot be written: {error}")),
        }
    }
    trial.profile = Some(report);
}

fn write(dir: &Path, name: &str, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(dir.join(layout::PROFILES))?;
    let mut file = std::fs::File::create(dir.join(name))?;
    file.write_all(text.as_bytes())?;
    file.sync_data()
}
