//! The servers of a trial: backing services, the instances of the subject, and the proxy in front. Each is a
//! [`Participant`] with services of its own; they are started in order and monitored together, and the subject's
//! instances can be stopped and restarted.
//!
//! ```text
//! backing <- .. <- instances <- front        (an arrow: is required by, once it is ready)
//! ```
//!
//! Not for: starting one process ([`super::process`]), or the load ([`super::server`]).

use std::rc::Rc;

use prony_record::{PlannedSubject, ReadySign, Role, Source};
use prony_runtime::services::ServiceId;
use rustix::process::Signal;

use super::context::{Halt, TrialContext};
use super::lifecycle::{Lifecycle, Mark};
use super::process::{Children, Participant, while_alive};
use super::start::{self, Place, Places};
use crate::launch::{self, Resolved};
use crate::network::Network;

/// An instance of the subject that was started.
struct Instance {
    participant: Rc<Participant>,
    service: ServiceId,
}

/// The servers of a trial.
pub struct Participants {
    context: Rc<TrialContext>,
    children: Rc<Children>,
    /// On whose far side they all are.
    network: Rc<Network>,
    /// Those that must stay alive, in start order.
    living: Vec<Rc<Participant>>,
    instances: Vec<Instance>,
    /// All that were started, in order.
    all: Vec<Rc<Participant>>,
    /// The place in the start order that the instances follow.
    before_instances: Option<Mark>,
}

impl Participants {
    /// No servers yet.
    pub fn new(lifecycle: &Lifecycle<'_>) -> Participants {
        Participants {
            context: lifecycle.context.clone(),
            children: lifecycle.children.clone(),
            network: lifecycle.network.clone(),
            living: Vec::new(),
            instances: Vec::new(),
            all: Vec::new(),
            before_instances: None,
        }
    }

    /// Starts the backing services, each once the one before is ready, then the instances.
    pub async fn start(&mut self, lifecycle: &Lifecycle<'_>, places: &Places) -> Result<(), Halt> {
        let order = self.context.clone();
        let order = &order.order;
        let names = names(order.backings.iter().map(|backing| backing.id.as_str()));
        for ((backing, place), name) in order.backings.iter().zip(&places.backings).zip(names) {
            let work = order.work_dir.join(&name);
            std::fs::create_dir_all(&work)
                .map_err(Halt::io("a backing's folder cannot be made"))?;
            let resolved = start::resolve_backing(order, backing, place, &work);
            let participant = self.participant(Role::Backing, backing, resolved, name);
            self.bring_up_ready(lifecycle, participant, &backing.ready, place)
                .await?;
        }
        self.before_instances = Some(lifecycle.mark());
        if !self.is_url() {
            self.start_instances(lifecycle, places, "").await?;
        }
        Ok(())
    }

    /// Waits until all instances are ready, then starts the front and waits for it.
    pub async fn wait_ready(
        &mut self,
        lifecycle: &Lifecycle<'_>,
        places: &Places,
    ) -> Result<(), Halt> {
        self.await_instances(places).await?;
        let order = self.context.clone();
        let order = &order.order;
        let (Some(front), Some(place)) = (&order.front, &places.front) else {
            return Ok(());
        };
        let backings = order.backings.iter().map(|backing| backing.id.as_str());
        let name = names(backings.chain(["front"])).pop().unwrap_or_default();
        let work = order.work_dir.join(&name);
        std::fs::create_dir_all(&work).map_err(Halt::io("the front's folder cannot be made"))?;
        let resolved = start::resolve_front(order, front, places, place, &work);
        let participant = self.participant(Role::Front, front, resolved, name);
        self.bring_up_ready(lifecycle, participant, &front.ready, place)
            .await
    }

    /// Starts a server beside the subject and waits until it is ready.
    async fn bring_up_ready(
        &mut self,
        lifecycle: &Lifecycle<'_>,
        participant: Participant,
        ready: &ReadySign,
        place: &Place,
    ) -> Result<(), Halt> {
        let participant = Rc::new(participant);
        self.bring_up(lifecycle, participant.clone()).await?;
        self.await_ready(&participant, ready, place).await
    }

    fn is_url(&self) -> bool {
        matches!(self.context.order.subject.source, Source::Url { .. })
    }

    async fn start_instances(
        &mut self,
        lifecycle: &Lifecycle<'_>,
        places: &Places,
        ending: &str,
    ) -> Result<(), Halt> {
        let context = self.context.clone();
        let order = &context.order;
        self.instances.clear();
        for (number, place) in places.instances.iter().enumerate() {
            let resolved = start::resolve(order, places, number, place);
            let participant = Participant {
                title: match start::instances(order) {
                    1 => "subject".to_owned(),
                    _ => format!("subject's instance {number}"),
                },
                log_name: match number {
                    0 => ending.to_owned(),
                    _ => format!("-{number}{ending}"),
                },
                output: order.cell.around.output,
                ..self.participant(Role::Subject, &order.subject, resolved, String::new())
            };
            let participant = Rc::new(participant);
            let service = self.bring_up(lifecycle, participant.clone()).await?;
            self.instances.push(Instance {
                participant,
                service,
            });
        }
        Ok(())
    }

    async fn await_instances(&self, places: &Places) -> Result<(), Halt> {
        for (instance, place) in self.instances.iter().zip(&places.instances) {
            let ready = &self.context.order.subject.ready;
            self.await_ready(&instance.participant, ready, place)
                .await?;
        }
        Ok(())
    }

    /// A server by its role, with a log of its own name.
    fn participant(
        &self,
        role: Role,
        server: &PlannedSubject,
        resolved: Resolved,
        name: String,
    ) -> Participant {
        let kind = if role == Role::Front {
            "front"
        } else {
            "backing"
        };
        Participant {
            role,
            title: format!("{kind} {}", server.id),
            resolved,
            cores: self.context.order.cores.subject.clone(),
            log_name: format!("-{name}"),
            ..Participant::new(self.children.clone(), self.network.clone(), &server.stop)
        }
    }

    async fn bring_up(
        &mut self,
        lifecycle: &Lifecycle<'_>,
        participant: Rc<Participant>,
    ) -> Result<ServiceId, Halt> {
        self.all.push(participant.clone());
        let before = format!("the {} was started", participant.title);
        let service = self
            .while_alive(&before, lifecycle.start(&participant))
            .await??;
        self.living.push(participant);
        Ok(service)
    }

    /// Waits until one is ready; fails if another one ends meanwhile.
    async fn await_ready(
        &self,
        participant: &Rc<Participant>,
        ready: &ReadySign,
        place: &Place,
    ) -> Result<(), Halt> {
        let before = format!("the {} was ready", participant.title);
        let waiting = participant.ready(ready, place);
        let waiting = self.context.unless_interrupted(waiting);
        let others = self.living.iter();
        let others = others.filter(|other| !Rc::ptr_eq(other, participant));
        while_alive(others.map(Rc::as_ref), &before, waiting).await??
    }

    /// Awaits `work`; fails if a server ends before it is done.
    pub async fn while_alive<T>(
        &self,
        before: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, Halt> {
        while_alive(self.living.iter().map(Rc::as_ref), before, work).await
    }

    /// Checks that all are alive. Errors: which one ended before `before`.
    pub fn check_alive(&self, before: &str) -> Result<(), Halt> {
        self.living
            .iter()
            .try_for_each(|participant| participant.check_alive(before))
    }

    fn expect_ends(&mut self) {
        self.children.expect_ends();
        self.living.retain(|server| server.role == Role::Backing);
    }

    /// Kills the instances and their descendants without waiting for them to end.
    pub fn kill(&mut self) {
        self.expect_ends();
        let pids = self.instances.iter();
        let pids = pids.filter_map(|one| one.participant.pid());
        // All are known before the first of them ends.
        let all: Vec<u32> = pids.flat_map(launch::family).collect();
        for pid in all {
            launch::signal(pid, Signal::KILL);
        }
    }

    /// Stops the instances by their stop rule, after whatever requires them.
    pub async fn stop(&mut self, lifecycle: &Lifecycle<'_>) -> Result<(), Halt> {
        self.expect_ends();
        let Some(first) = self.instances.first() else {
            return Ok(());
        };
        // The other instances and the front require the first, and are stopped before it.
        let stopping = lifecycle.services.stop(first.service);
        let stopped = self.context.unless_interrupted(stopping).await?;
        stopped.map_err(|error| Halt::Failed(format!("the subject cannot be stopped: {error}")))
    }

    /// Restarts the instances on new ports, and waits until they are ready.
    pub async fn start_anew(
        &mut self,
        lifecycle: &Lifecycle<'_>,
        places: &Places,
    ) -> Result<(), Halt> {
        let spared: Vec<u32> = self
            .living
            .iter()
            .filter_map(|participant| participant.pid())
            .collect();
        lifecycle.clear(&spared).await;
        if let Some(mark) = self.before_instances {
            lifecycle.follow(mark);
        }
        self.start_instances(lifecycle, places, "-anew").await?;
        self.await_instances(places).await
    }

    /// Every server that was started, in order.
    pub fn all(&self) -> &[Rc<Participant>] {
        &self.all
    }
}

/// Names for files and folders, one for each `id`: the last part of it, and a number where
/// that has been given away.
fn names<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<String> {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let mut names: Vec<String> = Vec::new();
    for id in ids {
        let last = id.rsplit('/').next().unwrap_or(id);
        let name: String = last.chars().map(plain).collect();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut free = std::iter::once(name.clone()).chain(numbered);
        names.extend(free.find(|name| !names.contains(name)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_files_of_its_own() {
        let ids = ["backing/redis", "other/redis", "front", "a b/../front", ""];
        assert_eq!(
            names(ids.into_iter()),
            ["redis", "redis-2", "front", "front-2", ""]
        );
    }
}
