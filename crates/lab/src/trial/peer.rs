//! The peer of a client: a server as in any trial, on the generator's cores. The page that the client will request is
//! looked at, and the peer's counters are read before and after the client. Both sides' counts are recorded, whether
//! they agree or not: that is judged from the record.
//!
//! Not for: the client ([`super::program`]), or networks ([`crate::network`]).

use std::rc::Rc;

use prony_base::{Nanos, clock};
use prony_record::{
    ClientReport, CountsSign, DOWNLOADS, Phase, PlannedClient, PlannedSubject, Role, Trial,
};
use prony_wire::Method;

use super::context::{Halt, POLL_MAX, TrialContext};
use super::lifecycle::{self, Lifecycle};
use super::process::Participant;
use super::start::{self, Place};
use crate::counts::{Patterns, Readings};

/// How long the peer's counters may take to settle after the client has ended.
const SETTLE: Nanos = Nanos::from_secs(5);
/// First interval at which they are read; it doubles each time.
const PAUSE_MIN: Nanos = Nanos::from_millis(1);

/// The server on the other side of a client.
pub struct ClientPeer<'a> {
    context: Rc<TrialContext>,
    client: &'a PlannedClient,
    server: PlannedSubject,
    /// Its process.
    pub participant: Rc<Participant>,
    /// Its place, as the client reaches it.
    pub place: Place,
    readings: Readings,
    /// What is known of both sides.
    pub report: ClientReport,
}

impl<'a> ClientPeer<'a> {
    /// The peer of a client; it has not been started. Errors: it has no place to listen.
    pub fn new(
        lifecycle: &Lifecycle<'_>,
        client: &'a PlannedClient,
    ) -> Result<ClientPeer<'a>, Halt> {
        let (context, network) = (lifecycle.context.clone(), lifecycle.network.clone());
        let order = &context.order;
        let lacking = || Halt::Failed("the trial has no peer".to_owned());
        let server = order.peer.clone().ok_or_else(lacking)?;
        let place = Place::for_peer(&network, &context.trial.borrow())
            .map_err(Halt::io("there is no place to listen"))?;
        let report = ClientReport {
            network: network.words().to_owned(),
            ..ClientReport::default()
        };
        let participant = Participant {
            role: Role::Peer,
            title: "peer".to_owned(),
            resolved: start::resolve_peer(order, &server, client, &place),
            cores: order.cores.generator.clone(),
            log_name: ".peer".to_owned(),
            ..Participant::new(lifecycle.children.clone(), network, &server.stop)
        };
        let of_lab = server.counts.as_ref().map_or(0, |sign| sign.own_requests);
        Ok(ClientPeer {
            context,
            client,
            server,
            participant: Rc::new(participant),
            place,
            readings: Readings::new(of_lab),
            report,
        })
    }

    /// Starts it, waits until it is ready, looks at its page and reads its counters.
    pub async fn bring_up(&mut self, lifecycle: &mut Lifecycle<'_>) -> Result<(), Halt> {
        lifecycle.watch_over().await?;
        lifecycle.start(&self.participant).await?;
        lifecycle.enter(Phase::Ready);
        let ready = self.participant.ready(&self.server.ready, &self.place);
        self.context.unless_interrupted(ready).await??;
        lifecycle.enter(Phase::Verify);
        let page = self.look_at_page();
        self.context.check("page", page)?;
        self.count(lifecycle).await?;
        self.readings.start();
        Ok(())
    }

    /// Requests the page once, as the clients will; of a payload only its head.
    fn look_at_page(&mut self) -> Result<(), String> {
        let path = &self.client.path;
        let downloads = self.client.work == DOWNLOADS;
        let method = if downloads { Method::Head } else { Method::Get };
        let mut page = self.place.request(&method, path)?;
        if downloads && page.content_length.is_none() {
            page = self.place.request(&Method::Get, path)?;
        }
        self.report.page_status = page.status;
        self.report.page_head_bytes = page.head_bytes;
        // Of a HEAD, those that it says a GET has.
        self.report.page_body_bytes = match page.content_length {
            Some(bytes) if downloads => bytes,
            _ => page.body_bytes,
        };
        if page.status != 200 {
            let status = page.status;
            return Err(format!("the peer answers `{path}` with status {status}"));
        }
        let (came, wanted) = (self.report.page_body_bytes, self.client.payload_bytes);
        if downloads && came != wanted {
            return Err(format!(
                "the peer serves {came} bytes at `{path}`, not {wanted}"
            ));
        }
        Ok(())
    }

    fn sign(&self) -> Result<CountsSign, Halt> {
        let sign = self.server.counts.clone();
        sign.ok_or_else(|| Halt::Failed("the peer does not say what it counts".to_owned()))
    }

    /// Reads the counters until only the readings themselves change them.
    async fn count(&mut self, lifecycle: &Lifecycle<'_>) -> Result<(), Halt> {
        let sign = self.sign()?;
        let patterns = Patterns::new(&sign).map_err(Halt::Failed)?;
        // A request just before a reading may be missing from it for so long.
        let stale = Nanos(sign.refresh_ns + sign.refresh_ns / 5);
        let deadline = clock::monotonic() + SETTLE + stale * 4;
        let mut pause = PAUSE_MIN;
        loop {
            let waiting = self.context.handle.sleep(stale);
            self.context.unless_interrupted(waiting).await?;
            lifecycle.children.collect();
            self.participant.check_alive("its counts were read")?;
            let page = self.place.request(&Method::Get, &sign.path);
            let reading = page
                .and_then(|page| patterns.read(&page.body))
                .map_err(|why| {
                    Halt::Failed(format!("the peer's counts at {}: {why}", sign.path))
                })?;
            if self.readings.add(reading) {
                return Ok(());
            }
            if clock::monotonic() > deadline {
                let reason = format!("the peer's counts did not come to rest within {SETTLE}");
                return Err(Halt::Failed(reason));
            }
            let pausing = self.context.handle.sleep(pause);
            self.context.unless_interrupted(pausing).await?;
            pause = (pause * 2).min(POLL_MAX);
        }
    }

    /// Reads the counters once the client has ended.
    pub async fn count_again(&mut self, lifecycle: &Lifecycle<'_>) -> Result<(), Halt> {
        self.count(lifecycle).await?;
        let source = format!("GET {} of {}", self.sign()?.path, self.server.name);
        self.report.peer = self.readings.counted(&source);
        Ok(())
    }

    /// Records what the window took of the sampler, and that the generator's cores were the peer's.
    pub fn note_window(&self, sampler_cpu: Nanos) {
        let mut trial = self.context.trial.borrow_mut();
        trial.sampler_cpu_ns = Some(sampler_cpu.0);
        for core in &mut trial.cores {
            if core.role == Some(Role::Generator) {
                core.role = Some(Role::Peer);
            }
        }
    }

    /// Records both sides' counts and its processes.
    pub fn finish(self, trial: &mut Trial) {
        trial.client = Some(self.report);
        // The client is recorded by what the kernel says of it at its end, with all that it
        // waited for; its parent is Prony's own.
        lifecycle::keep_processes(&self.context, " of the peer", trial);
        trial.processes.retain(|process| process.role == Role::Peer);
        if let Some(log) = self.participant.log.take() {
            lifecycle::close(log, "peer", trial);
        }
    }
}
