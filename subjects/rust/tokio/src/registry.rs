//! A registry of services, as one writes it for an application on tokio: a task that receives commands, starts a
//! service when all that it requires is there, and stops those that use a service before it.

use std::any::Any;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::rc::Rc;

use tokio::sync::mpsc;
use tokio::task::spawn_local;

pub type Id = u64;
pub type Interface = &'static str;
pub type Work = Pin<Box<dyn Future<Output = ()>>>;
/// What a service offers to others; who requires it knows its type.
pub type Instance = Rc<dyn Any>;
pub type Factory = Rc<dyn Fn(Id, &Properties)>;
/// Makes a service when what it requires is there, in the order in which it was named.
pub type Constructor = Box<dyn Fn(&[Instance]) -> Rc<dyn Service>>;

pub enum Value {
    Number(u64),
    Level(&'static str),
}

pub type Properties = HashMap<&'static str, Value>;

pub trait Service {
    fn start(self: Rc<Self>, properties: &Properties) -> Work;
    fn stop(self: Rc<Self>) -> Work;
    /// Gives it something that it requires, before it starts.
    fn inject(&self, _interface: Interface, _provider: Id, _instance: &Instance) {}
    fn instance(self: Rc<Self>) -> Option<Instance> {
        None
    }
}

pub enum Make {
    Made(Rc<dyn Service>),
    WhenReady(Constructor),
}

pub struct Spec {
    pub properties: Properties,
    pub requires: Vec<Interface>,
    /// What it offers, and to whom if not to all.
    pub provides: Option<(Interface, Option<Id>)>,
    pub make: Make,
}

enum Command {
    Insert(Id, Spec),
    Factory(Interface, Factory),
    Start(Id),
    Started(Id),
    Stop(Id, bool),
    Stopped(Id),
    Quit,
}

/// Sends commands to the registry.
#[derive(Clone)]
pub struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    next: Rc<Cell<Id>>,
}

impl Handle {
    pub fn insert(&self, spec: impl FnOnce(Id) -> Spec) -> Id {
        let id = self.next.get();
        self.next.set(id + 1);
        self.send(Command::Insert(id, spec(id)));
        id
    }
    /// From now on `factory` is called for each service that lacks `interface`.
    pub fn make_on_request(&self, interface: Interface, factory: Factory) {
        self.send(Command::Factory(interface, factory));
    }
    pub fn start(&self, id: Id) {
        self.send(Command::Start(id));
    }
    pub fn stop(&self, id: Id) {
        self.send(Command::Stop(id, false));
    }
    /// Stops and removes all services; then the registry ends.
    pub fn quit(&self) {
        self.send(Command::Quit);
    }
    fn send(&self, command: Command) {
        // The registry ends when all services have; what comes later concerns none.
        let _ = self.commands.send(command);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Installed,
    Starting,
    Active,
    Leaving,
    Stopping,
}

struct Entry {
    spec: Spec,
    service: Option<Rc<dyn Service>>,
    state: State,
    remove: bool,
    /// To be started again as soon as it has stopped.
    again: bool,
    uses: HashMap<Interface, Id>,
    dependents: HashSet<Id>,
}

pub struct Registry {
    handle: Handle,
    commands: mpsc::UnboundedReceiver<Command>,
    services: HashMap<Id, Entry>,
    /// Who lacks an interface.
    waiting: HashMap<Interface, HashSet<Id>>,
    /// Who offers an interface to all.
    online: HashMap<Interface, Id>,
    factories: HashMap<Interface, Factory>,
    quitting: bool,
}

impl Registry {
    pub fn new() -> Registry {
        let (sender, commands) = mpsc::unbounded_channel();
        Registry {
            handle: Handle {
                commands: sender,
                next: Rc::new(Cell::new(1)),
            },
            commands,
            services: HashMap::new(),
            waiting: HashMap::new(),
            online: HashMap::new(),
            factories: HashMap::new(),
            quitting: false,
        }
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Carries out commands until all services are gone after `quit`.
    pub async fn run(mut self) {
        while !(self.quitting && self.services.is_empty()) {
            match self
                .commands
                .recv()
                .await
                .expect("the registry itself can send")
            {
                Command::Insert(id, spec) => self.on_insert(id, spec),
                Command::Factory(interface, factory) => self.on_factory(interface, factory),
                Command::Start(id) => self.on_start(id),
                Command::Started(id) => self.on_started(id),
                Command::Stop(id, remove) => self.on_stop(id, remove),
                Command::Stopped(id) => self.on_stopped(id),
                Command::Quit => {
                    self.quitting = true;
                    self.services
                        .keys()
                        .for_each(|&id| self.handle.send(Command::Stop(id, true)));
                }
            }
        }
    }

    fn on_insert(&mut self, id: Id, spec: Spec) {
        let requires = spec.requires.clone();
        let service = match &spec.make {
            Make::Made(service) => Some(service.clone()),
            Make::WhenReady(_) => None,
        };
        let entry = Entry {
            spec,
            service,
            state: State::Installed,
            remove: false,
            again: false,
            uses: HashMap::new(),
            dependents: HashSet::new(),
        };
        self.services.insert(id, entry);
        for interface in requires {
            self.waiting.entry(interface).or_default().insert(id);
            if let Some(&provider) = self.online.get(interface) {
                self.offer(interface, provider, id);
            } else if let Some(factory) = self.factories.get(interface) {
                factory(id, &self.services[&id].spec.properties);
            }
        }
        self.start_if_ready(id);
    }

    fn on_factory(&mut self, interface: Interface, factory: Factory) {
        for id in self.waiting.get(interface).into_iter().flatten() {
            factory(*id, &self.services[id].spec.properties);
        }
        self.factories.insert(interface, factory);
    }

    fn on_start(&mut self, id: Id) {
        if let Some(entry) = self.services.get_mut(&id) {
            entry.again = matches!(entry.state, State::Leaving | State::Stopping);
            self.start_if_ready(id);
        }
    }

    fn start_if_ready(&mut self, id: Id) {
        let Some(entry) = self.services.get(&id) else {
            return;
        };
        if entry.state != State::Installed || entry.uses.len() < entry.spec.requires.len() {
            return;
        }
        let service = match &entry.spec.make {
            Make::Made(service) => service.clone(),
            Make::WhenReady(constructor) => {
                let instances: Vec<Instance> = (entry.spec.requires.iter())
                    .map(|interface| self.instance_of(entry.uses[interface]))
                    .collect();
                constructor(&instances)
            }
        };
        let entry = self.services.get_mut(&id).expect("found above");
        entry.service = Some(service.clone());
        entry.state = State::Starting;
        let handle = self.handle.clone();
        let starting = service.start(&entry.spec.properties);
        spawn_local(async move {
            starting.await;
            handle.send(Command::Started(id));
        });
    }

    fn instance_of(&self, provider: Id) -> Instance {
        let service = self.services[&provider]
            .service
            .clone()
            .expect("it is active");
        service.instance().expect("it said that it provides")
    }

    fn on_started(&mut self, id: Id) {
        let entry = self.services.get_mut(&id).expect("what starts is kept");
        entry.state = State::Active;
        match entry.spec.provides {
            Some((interface, Some(only))) => self.offer(interface, id, only),
            Some((interface, None)) => {
                self.online.insert(interface, id);
                let waiting: Vec<Id> = self
                    .waiting
                    .get(interface)
                    .into_iter()
                    .flatten()
                    .copied()
                    .collect();
                waiting
                    .into_iter()
                    .for_each(|waiting| self.offer(interface, id, waiting));
            }
            None => {}
        }
        let entry = &self.services[&id];
        if self.quitting
            || entry
                .uses
                .values()
                .any(|provider| self.services[provider].state == State::Leaving)
        {
            self.handle.send(Command::Stop(id, self.quitting));
        }
    }

    /// Gives `provider`'s instance to a service that lacks it.
    fn offer(&mut self, interface: Interface, provider: Id, to: Id) {
        if !self
            .waiting
            .get_mut(interface)
            .is_some_and(|waiting| waiting.remove(&to))
        {
            return;
        }
        let instance = self.instance_of(provider);
        let entry = self.services.get_mut(&to).expect("who waits is kept");
        entry.uses.insert(interface, provider);
        if let Some(service) = &entry.service {
            service.inject(interface, provider, &instance);
        }
        self.services
            .get_mut(&provider)
            .expect("it is active")
            .dependents
            .insert(to);
        self.start_if_ready(to);
    }

    fn on_stop(&mut self, id: Id, remove: bool) {
        let Some(entry) = self.services.get_mut(&id) else {
            return;
        };
        entry.remove |= remove;
        match entry.state {
            State::Active => {
                entry.state = State::Leaving;
                if let Some((interface, None)) = entry.spec.provides {
                    self.online.remove(interface);
                }
                let dependents: Vec<Id> = entry.dependents.iter().copied().collect();
                for dependent in dependents {
                    match self.services[&dependent].state {
                        State::Installed => self.release(dependent, id),
                        _ => self.handle.send(Command::Stop(dependent, false)),
                    }
                }
                self.stop_if_unused(id);
            }
            State::Installed if entry.remove => self.remove(id),
            _ => {}
        }
    }

    fn stop_if_unused(&mut self, id: Id) {
        let entry = self.services.get_mut(&id).expect("who leaves is kept");
        if entry.state != State::Leaving || !entry.dependents.is_empty() {
            return;
        }
        entry.state = State::Stopping;
        let service = entry.service.clone().expect("it was started");
        let handle = self.handle.clone();
        spawn_local(async move {
            service.stop().await;
            handle.send(Command::Stopped(id));
        });
    }

    fn on_stopped(&mut self, id: Id) {
        let entry = self.services.get_mut(&id).expect("who stops is kept");
        entry.state = State::Installed;
        let remove = entry.remove;
        let providers: Vec<Id> = entry.uses.values().copied().collect();
        for provider in providers {
            // One that stays is kept, so that this service starts again as soon as the others are back.
            if remove || self.services[&provider].state == State::Leaving {
                self.release(id, provider);
            }
        }
        if remove {
            return self.remove(id);
        }
        let entry = self.services.get_mut(&id).expect("it stays");
        if let Make::WhenReady(_) = entry.spec.make {
            entry.service = None;
        }
        if std::mem::take(&mut entry.again) {
            self.start_if_ready(id);
        }
    }

    /// `user` no longer uses `provider`, and lacks what it got from it.
    fn release(&mut self, user: Id, provider: Id) {
        let entry = self.services.get_mut(&user).expect("who uses is kept");
        let lost: Vec<Interface> = entry
            .uses
            .iter()
            .filter(|&(_, &used)| used == provider)
            .map(|(&interface, _)| interface)
            .collect();
        for interface in lost {
            entry.uses.remove(interface);
            self.waiting.entry(interface).or_default().insert(user);
        }
        self.services
            .get_mut(&provider)
            .expect("it is used")
            .dependents
            .remove(&user);
        self.stop_if_unused(provider);
    }

    fn remove(&mut self, id: Id) {
        let entry = self.services.remove(&id).expect("it is kept until now");
        for interface in entry.spec.requires {
            if let Some(waiting) = self.waiting.get_mut(interface) {
                waiting.remove(&id);
            }
        }
        for provider in entry.uses.into_values() {
            if let Some(provider) = self.services.get_mut(&provider) {
                provider.dependents.remove(&id);
            }
        }
    }
}
