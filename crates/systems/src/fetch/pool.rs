//! Which URLs are fetched at once: at most so many in all, and of one host.

use std::collections::{HashMap, VecDeque};
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use prony_base::Nanos;
use prony_client::Client;
use prony_engine::{Handle, Task};

use super::bars::Bar;
use super::download::{Download, DownloadReport, Live};
use super::fault::Fault;
use super::plan::{Job, Options, To};
use super::show::Show;
use super::words::PER_HOST_MAX;
use crate::Ending;

/// How often progress is shown, and an interruption noticed.
const TICK: Nanos = Nanos::from_millis(100);

/// The downloads of one run, and the limits that they keep to.
pub struct DownloadPool<'r, 's, 'a> {
    /// The loop.
    pub handle: Handle,
    /// The client.
    pub client: Client,
    /// What holds for all.
    pub options: Rc<Options>,
    /// Most at once.
    pub parallel: usize,
    /// Set when the user ends it.
    pub interrupted: Arc<AtomicBool>,
    /// What reports progress and ends.
    pub show: &'r mut Show<'s, 'a>,
}

struct Running {
    job: Rc<Job>,
    live: Rc<Live>,
    task: Task<DownloadReport>,
    bar: Option<Bar>,
}

impl DownloadPool<'_, '_, '_> {
    /// Fetches all.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub async fn fetch(self, jobs: Vec<Job>) -> anyhow::Result<Ending> {
        let mut waiting: VecDeque<Rc<Job>> = jobs.into_iter().map(Rc::new).collect();
        let mut running: Vec<Running> = Vec::new();
        let mut has_failed = false;
        loop {
            self.fill(&mut waiting, &mut running);
            if running.is_empty() {
                break;
            }
            let ended = self.next(&mut running).await;
            if self.interrupted.load(Ordering::Relaxed) {
                return self.stop(waiting, running, ended);
            }
            if let Some((over, report)) = ended {
                let is_broken_pipe = report.fault.as_ref().is_some_and(Fault::is_broken_pipe);
                if over.job.to == To::Stdout && is_broken_pipe {
                    // A reader that went away has what it wanted.
                    continue;
                }
                has_failed |= report.fault.is_some();
                drop(over.bar);
                self.show.ended(&over.job, &over.live, &report)?;
            } else {
                let live = running.iter_mut().map(|one| (&*one.live, &mut one.bar));
                self.show.tick(live);
            }
        }
        Ok(match has_failed {
            true => Ending::Failed,
            false => Ending::Done,
        })
    }

    /// Starts what may be under way, in the order given, but past hosts that have enough.
    fn fill(&self, waiting: &mut VecDeque<Rc<Job>>, running: &mut Vec<Running>) {
        if running.len() >= self.parallel || waiting.is_empty() {
            return;
        }
        let mut busy: HashMap<String, usize> = HashMap::new();
        for one in running.iter() {
            *busy.entry(one.job.origin.clone()).or_default() += 1;
        }
        let mut place = 0;
        while running.len() < self.parallel && place < waiting.len() {
            let count = busy.entry(waiting[place].origin.clone()).or_default();
            if *count >= PER_HOST_MAX {
                place += 1;
                continue;
            }
            *count += 1;
            let job = waiting.remove(place);
            running.extend(job.map(|job| self.start(job)));
        }
    }

    fn start(&self, job: Rc<Job>) -> Running {
        let live = Rc::new(Live::default());
        *live.name.borrow_mut() = job.name();
        let download = Download {
            handle: self.handle.clone(),
            client: self.client.clone(),
            job: job.clone(),
            options: self.options.clone(),
            live: live.clone(),
        };
        Running {
            job,
            live,
            task: self.handle.spawn(download.run()),
            bar: self.show.bar(),
        }
    }

    /// The next that is over; None when it is time to look around.
    async fn next(&self, running: &mut Vec<Running>) -> Option<(Running, DownloadReport)> {
        let mut tick = pin!(self.handle.sleep(TICK));
        poll_fn(|cx| {
            for place in 0..running.len() {
                if let Poll::Ready(report) = Pin::new(&mut running[place].task).poll(cx) {
                    return Poll::Ready(Some((running.remove(place), report)));
                }
            }
            tick.as_mut().poll(cx).map(|_| None)
        })
        .await
    }

    /// Ends what is under way, which keeps what can be gone on with, and tells of each.
    fn stop(
        self,
        waiting: VecDeque<Rc<Job>>,
        running: Vec<Running>,
        ended: Option<(Running, DownloadReport)>,
    ) -> anyhow::Result<Ending> {
        if let Some((over, report)) = ended {
            self.show.ended(&over.job, &over.live, &report)?;
        }
        let interrupted = |job: &Job, bytes| DownloadReport {
            file: job.file(),
            bytes,
            fault: Some(Fault::Interrupted),
            ..DownloadReport::default()
        };
        for Running {
            job,
            live,
            task,
            bar,
        } in running
        {
            drop((task, bar));
            let report = interrupted(&job, live.bytes.get());
            self.show.ended(&job, &live, &report)?;
        }
        for job in waiting {
            let report = interrupted(&job, 0);
            self.show.ended(&job, &Live::default(), &report)?;
        }
        Ok(Ending::Interrupted)
    }
}
