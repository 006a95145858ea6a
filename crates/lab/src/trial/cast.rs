//! The servers of a trial, all of them: backing services, the instances of the subject, and
//! the proxy in front. Each is a [`Part`] with services of its own; here they are started in
//! their order, watched together, and the subject's ended and started anew.
//!
//! ```text
//! backing <- it is ready <- .. <- instances <- they are ready <- front <- it is ready
//! ```
//!
//! Not for: how one is started ([`super::process`]), or the load ([`super::server`]).

use std::cell::RefCell;
use std::rc::Rc;

use prony_base::Nanos;
use prony_record::{Output, PlannedSubject, Role, Source, StopRule};
use prony_runtime::services::ServiceId;
use rustix::process::Signal;

use super::children::Farewell;
use super::process::{Part, any_ended};
use super::scene::{Mark, Scene};
use super::stage::{First, Halt, Stage, first};
use super::start::{self, Place, Places, Resolved};
use crate::launch;
use crate::network::Network;

/// An instance of the subject that was started.
struct Instance {
    part: Rc<Part>,
    service: ServiceId,
}

/// The servers of a trial.
pub struct Cast {
    stage: Rc<Stage>,
    /// Those that must live, in the order of their start.
    living: Vec<Rc<Part>>,
    instances: Vec<Instance>,
    /// All that were ever started.
    all: Vec<Rc<Part>>,
    /// What the instances follow.
    before_instances: Option<Mark>,
}

impl Cast {
    /// None yet.
    pub fn new(stage: Rc<Stage>) -> Cast {
        Cast {
            stage,
            living: Vec::new(),
            instances: Vec::new(),
            all: Vec::new(),
            before_instances: None,
        }
    }

    /// Starts the backing services, each once the one before is ready, then the instances.
    pub async fn start(&mut self, scene: &Scene<'_>, places: &Places) -> Result<(), Halt> {
        let order = self.stage.clone();
        let order = &order.order;
        let names = names(order.backings.iter().map(|backing| backing.id.as_str()));
        for ((backing, place), name) in order.backings.iter().zip(&places.backings).zip(names) {
            let work = order.work_dir.join(&name);
            std::fs::create_dir_all(&work)
                .map_err(Halt::io("a backing's folder cannot be made"))?;
            let resolved = start::resolve_backing(order, backing, place, &work);
            let part = self.part(Role::Backing, backing, resolved, format!("-{name}"));
            self.bring_up(scene, part.clone()).await?;
            self.wait_ready(scene, &part, backing, place).await?;
        }
        self.before_instances = Some(scene.mark());
        if !self.is_url() {
            self.start_instances(scene, places, "").await?;
        }
        Ok(())
    }

    /// Waits until all instances are ready, then starts the front and waits for it.
    pub async fn ready(&mut self, scene: &Scene<'_>, places: &Places) -> Result<(), Halt> {
        self.instances_ready(scene, places).await?;
        let order = self.stage.clone();
        let order = &order.order;
        let (Some(front), Some(place)) = (&order.front, &places.front) else {
            return Ok(());
        };
        let backings = order.backings.iter().map(|backing| backing.id.as_str());
        let name = names(backings.chain(["front"])).pop().unwrap_or_default();
        let work = order.work_dir.join(&name);
        std::fs::create_dir_all(&work).map_err(Halt::io("the front's folder cannot be made"))?;
        let resolved = start::resolve_front(order, front, places, (place, &work));
        let part = self.part(Role::Front, front, resolved, format!("-{name}"));
        self.bring_up(scene, part.clone()).await?;
        self.wait_ready(scene, &part, front, place).await
    }

    fn is_url(&self) -> bool {
        matches!(self.stage.order.subject.source, Source::Url { .. })
    }

    async fn start_instances(
        &mut self,
        scene: &Scene<'_>,
        places: &Places,
        ending: &str,
    ) -> Result<(), Halt> {
        let stage = self.stage.clone();
        let order = &stage.order;
        self.instances.clear();
        for (number, place) in places.instances.iter().enumerate() {
            let log_name = match number {
                0 => ending.to_owned(),
                _ => format!("-{number}{ending}"),
            };
            let resolved = start::resolve(order, places, number, place);
            let mut part = self.part(Role::Subject, &order.subject, resolved, log_name);
            if let Some(part) = Rc::get_mut(&mut part) {
                part.output = order.cell.around.output;
                if start::instances(order) > 1 {
                    part.title = format!("subject's instance {number}");
                }
            }
            let service = self.bring_up(scene, part.clone()).await?;
            self.instances.push(Instance { part, service });
        }
        Ok(())
    }

    async fn instances_ready(&self, scene: &Scene<'_>, places: &Places) -> Result<(), Halt> {
        for (instance, place) in self.instances.iter().zip(&places.instances) {
            let subject = &self.stage.order.subject;
            self.wait_ready(scene, &instance.part, subject, place)
                .await?;
        }
        Ok(())
    }

    /// A part with a log of its own. `server`: what is started.
    fn part(
        &self,
        role: Role,
        server: &PlannedSubject,
        resolved: Resolved,
        log_name: String,
    ) -> Rc<Part> {
        let title = match role {
            Role::Backing => format!("backing {}", server.id),
            Role::Front => format!("front {}", server.id),
            _ => "subject".to_owned(),
        };
        Rc::new(Part {
            role,
            title,
            resolved,
            cores: self.stage.order.cores.subject.clone(),
            farewell: farewell(&server.stop),
            log_name,
            output: Output::File,
            reader: RefCell::default(),
            network: Rc::new(Network::loopback()),
            log: Rc::default(),
            child: RefCell::default(),
        })
    }

    async fn bring_up(&mut self, scene: &Scene<'_>, part: Rc<Part>) -> Result<ServiceId, Halt> {
        self.all.push(part.clone());
        let before = format!("the {} was started", part.title);
        let service = self.while_alive(&before, scene.start(&part)).await??;
        self.living.push(part);
        Ok(service)
    }

    /// Waits for one's sign while the others live.
    async fn wait_ready(
        &self,
        scene: &Scene<'_>,
        part: &Rc<Part>,
        server: &PlannedSubject,
        place: &Place,
    ) -> Result<(), Halt> {
        let before = format!("the {} was ready", part.title);
        let waiting = scene.wait_ready(part, &server.ready, place);
        let others = self.living.iter().filter(|other| !Rc::ptr_eq(other, part));
        let others: Vec<Rc<Part>> = others.cloned().collect();
        while_alive(&others, &before, waiting).await?
    }

    /// Does `work` while all live; the failure that one ended before that otherwise.
    pub async fn while_alive<T>(
        &self,
        before: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, Halt> {
        while_alive(&self.living, before, work).await
    }

    /// The failure that one of them ended too early, if it did.
    pub fn lives(&self, before: &str) -> Result<(), Halt> {
        self.living.iter().try_for_each(|part| part.lives(before))
    }

    /// Kills the instances and all that they started, and waits for none of them.
    pub fn kill(&mut self, scene: &Scene<'_>) {
        scene.children.expect_ends();
        self.living.retain(|part| part.role == Role::Backing);
        let own: Vec<u32> = self
            .instances
            .iter()
            .filter_map(|one| one.part.pid())
            .collect();
        let theirs: Vec<u32> = own
            .iter()
            .flat_map(|&pid| launch::descendants(pid))
            .collect();
        for pid in own.into_iter().chain(theirs) {
            launch::signal(pid, Signal::KILL);
        }
    }

    /// Stops the instances as they are to be stopped, and before them what requires them.
    pub async fn stop(&mut self, scene: &Scene<'_>) -> Result<(), Halt> {
        scene.children.expect_ends();
        self.living.retain(|part| part.role == Role::Backing);
        let Some(first) = self.instances.first() else {
            return Ok(());
        };
        // The others follow the first, and with it the front.
        let stopping = scene.services.stop(first.service);
        let stopped = self.stage.unless_interrupted(stopping).await?;
        stopped.map_err(|error| Halt::Failed(format!("the subject cannot be stopped: {error}")))
    }

    /// Starts the instances once more, at new places, and waits until they are ready.
    pub async fn start_anew(&mut self, scene: &Scene<'_>, places: &Places) -> Result<(), Halt> {
        let kept: Vec<u32> = self.living.iter().filter_map(|part| part.pid()).collect();
        scene.clear(&kept).await;
        if let Some(mark) = self.before_instances {
            scene.follow(mark);
        }
        self.start_instances(scene, places, "-anew").await?;
        self.instances_ready(scene, places).await
    }

    /// Every server that was started, in the order of their starts.
    pub fn all(&self) -> &[Rc<Part>] {
        &self.all
    }
}

async fn while_alive<T>(
    parts: &[Rc<Part>],
    before: &str,
    work: impl Future<Output = T>,
) -> Result<T, Halt> {
    let children: Vec<_> = parts.iter().flat_map(|part| part.children()).collect();
    match first(any_ended(&children), work).await {
        First::Other(done) => Ok(done),
        First::One(()) => {
            parts.iter().try_for_each(|part| part.lives(before))?;
            Err(Halt::Failed(format!("a process ended before {before}")))
        }
    }
}

/// How a server is asked to end.
pub fn farewell(rule: &StopRule) -> Farewell {
    Farewell {
        signal: launch::signal_named(&rule.signal).unwrap_or(Signal::TERM),
        timeout: Nanos(rule.timeout_ns),
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
