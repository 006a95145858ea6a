//! What the rest of the runtime does meanwhile: services that require each other and
//! push events, and coroutines in scopes; all of them fail, hang and are cancelled.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_base::{Nanos, Random};
use prony_runtime::coroutines::{Coroutines, Join, Scope};
use prony_runtime::events::{Events, Registration};
use prony_runtime::services::{
    Context, Definition, Failure, Filter, Observation, Options, Properties, Reason, Service,
    ServiceId, Services, State, What,
};

use crate::events::{Plain, Pusher, Soak};

/// Services at most.
const NODES: usize = 10;
/// Requests at most that are under way at a time.
const REQUESTS: usize = 24;
/// Starts and stops take this long at most.
const LIMIT: Nanos = Nanos(300_000);

/// How often something began, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub begun: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub panicked: u64,
    /// Its future was dropped: it timed out.
    pub dropped: u64,
}

impl Tally {
    fn ended(&self) -> u64 {
        self.succeeded + self.failed + self.panicked + self.dropped
    }
}

/// What has been lived through.
#[derive(Clone, Debug, Default)]
pub struct Lived {
    pub starts: Tally,
    pub stops: Tally,
    pub removed: u64,
    /// Callbacks that panicked, each of which fails a start that has not begun.
    pub callback_panics: u64,
    /// Requests of which the answer was not waited for.
    pub given_up: u64,
    pub coroutines: Tally,
}

/// Each kind of fate has been met in one of these lives.
pub fn have_seen_everything(lives: &[Lived]) {
    type Count = fn(&Lived) -> u64;
    let all: [(&str, Count); 14] = [
        ("starts", |lived| lived.starts.succeeded),
        ("starts that fail", |lived| lived.starts.failed),
        ("starts that panic", |lived| lived.starts.panicked),
        ("starts that time out", |lived| lived.starts.dropped),
        ("stops", |lived| lived.stops.succeeded),
        ("stops that fail", |lived| lived.stops.failed),
        ("stops that panic", |lived| lived.stops.panicked),
        ("stops that time out", |lived| lived.stops.dropped),
        ("coroutines", |lived| lived.coroutines.succeeded),
        ("coroutines that panic", |lived| lived.coroutines.panicked),
        ("coroutines that are cancelled", |lived| {
            lived.coroutines.dropped
        }),
        ("removals", |lived| lived.removed),
        ("callbacks that panic", |lived| lived.callback_panics),
        ("requests given up", |lived| lived.given_up),
    ];
    for (what, count) in all {
        assert!(lives.iter().map(count).sum::<u64>() > 0, "no {what}");
    }
}

/// The same as an observer of the registry is told it.
#[derive(Default)]
struct Heard {
    lived: RefCell<Lived>,
}

impl Heard {
    fn hear(&self, what: &What) {
        let mut lived = self.lived.borrow_mut();
        match what {
            What::State(State::Starting) => lived.starts.begun += 1,
            What::State(State::Running) => lived.starts.succeeded += 1,
            What::State(State::Stopping) => lived.stops.begun += 1,
            What::Failed(Reason::StartFailed(_)) => lived.starts.failed += 1,
            What::Failed(Reason::StartPanicked(_)) => lived.starts.panicked += 1,
            What::Failed(Reason::StartTimedOut(_)) => lived.starts.dropped += 1,
            What::Failed(Reason::StopFailed(_)) => lived.stops.failed += 1,
            What::Failed(Reason::StopPanicked(_)) => lived.stops.panicked += 1,
            What::Failed(Reason::StopTimedOut(_)) => lived.stops.dropped += 1,
            What::Removed => lived.removed += 1,
            _ => {}
        }
    }

    /// Against what the services say of themselves.
    fn check(&self, own: &Lived) {
        let mut heard = self.lived.borrow().clone();
        heard.starts.begun -= own.callback_panics;
        heard.starts.panicked -= own.callback_panics;
        assert_eq!(heard.starts, own.starts);
        heard.stops.succeeded = own.stops.succeeded;
        assert_eq!(heard.stops, own.stops);
        assert_eq!(heard.removed, own.removed);
    }
}

/// What all services and coroutines share.
struct Ground {
    lived: RefCell<Lived>,
    pusher: Pusher,
    events: Events,
    coroutines: Coroutines,
    random: RefCell<Random>,
    /// Providers that were handed out and not taken back.
    handed: Cell<i64>,
    running: Cell<i64>,
}

impl Ground {
    fn below(&self, limit: u64) -> u64 {
        self.random.borrow_mut().below(limit)
    }

    fn push_some(&self) {
        for _ in 0..self.below(4) {
            self.pusher.push(self.below(10_000));
        }
    }

    /// Lives out a fate, and counts it, also where it is dropped on the way.
    async fn live(&self, of: fn(&mut Lived) -> &mut Tally) -> Result<(), Failure> {
        of(&mut self.lived.borrow_mut()).begun += 1;
        let mut fate = Fate {
            ground: self,
            of,
            count: |tally| &mut tally.dropped,
        };
        let handle = self.coroutines.handle();
        match self.below(16) {
            0 => {
                fate.count = |tally| &mut tally.panicked;
                // Without the hook's message: there are many.
                std::panic::resume_unwind(Box::new("as the soak wants"));
            }
            1 => {
                fate.count = |tally| &mut tally.failed;
                return Err(Failure::new("as the soak wants"));
            }
            2 => std::future::pending().await,
            3 => handle.sleep(Nanos::from_micros(self.below(100))).await,
            4 | 5 => handle.yield_now().await,
            6 => self.pusher.push_and_wait(self.below(10_000)).await,
            _ => self.push_some(),
        }
        fate.count = |tally| &mut tally.succeeded;
        Ok(())
    }
}

/// Counts how something ended, when that is known: at its end.
struct Fate<'a> {
    ground: &'a Ground,
    of: fn(&mut Lived) -> &mut Tally,
    count: fn(&mut Tally) -> &mut u64,
}

impl Drop for Fate<'_> {
    fn drop(&mut self) {
        let mut lived = self.ground.lived.borrow_mut();
        *(self.count)((self.of)(&mut lived)) += 1;
    }
}

trait Numbered {
    fn runs(&self) -> bool;
}

struct Node {
    ground: Rc<Ground>,
    runs: Cell<bool>,
    /// What it has while it runs.
    handler: RefCell<Option<(Registration, Scope)>>,
    provider: RefCell<Option<Rc<dyn Numbered>>>,
}

impl Numbered for Node {
    fn runs(&self) -> bool {
        self.runs.get()
    }
}

impl Node {
    fn provider_runs(&self) -> bool {
        let provider = self.provider.borrow();
        provider.as_ref().is_none_or(|provider| provider.runs())
    }

    fn told(&self, provider: Rc<dyn Numbered>, _: &Properties) {
        self.ground.handed.set(self.ground.handed.get() + 1);
        *self.provider.borrow_mut() = Some(provider);
        if self.ground.below(16) == 0 {
            self.ground.lived.borrow_mut().callback_panics += 1;
            std::panic::resume_unwind(Box::new("as the soak wants"));
        }
    }

    fn taken_back(&self, _: &Rc<dyn Numbered>) {
        self.ground.handed.set(self.ground.handed.get() - 1);
        *self.provider.borrow_mut() = None;
    }

    /// A handler, and coroutines that live as long as the service runs.
    fn equip(&self) -> (Registration, Scope) {
        let ground = self.ground.clone();
        let count = Cell::new(0_u64);
        let handler = self.ground.events.on(move |_: &Plain, _| {
            count.set(count.get() + 1);
            if count.get().is_multiple_of(500) {
                ground.pusher.push(count.get());
            }
        });
        let scope = Scope::new(&self.ground.coroutines);
        let ground = self.ground.clone();
        let pushing = async move {
            loop {
                ground.coroutines.handle().sleep(LIMIT).await;
                ground.pusher.push_and_wait(ground.below(10_000)).await;
            }
        };
        scope.spawn_named("pushing", pushing).detach();
        (handler, scope)
    }
}

impl Service for Node {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        assert!(!self.runs.get() && self.provider_runs(), "at its start");
        let equipment = self.equip();
        self.ground.live(|lived| &mut lived.starts).await?;
        assert!(self.provider_runs(), "after its start");
        *self.handler.borrow_mut() = Some(equipment);
        self.runs.set(true);
        self.ground.running.set(self.ground.running.get() + 1);
        Ok(())
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        assert!(self.runs.get() && self.provider_runs(), "at its stop");
        self.runs.set(false);
        self.ground.running.set(self.ground.running.get() - 1);
        let equipment = self.handler.borrow_mut().take();
        if let Some((handler, scope)) = equipment {
            drop(handler);
            scope.close().await;
        }
        self.ground.live(|lived| &mut lived.stops).await
    }
}

pub struct Life {
    ground: Rc<Ground>,
    services: Services,
    observed: Option<(Observation, Rc<Heard>)>,
    ids: [Option<ServiceId>; NODES],
    requests: Vec<Join<()>>,
    scope: Scope,
}

impl Life {
    pub fn new(soak: &mut Soak, is_observed: bool) -> Life {
        let coroutines = Coroutines::new(&soak.handle);
        let options = Options {
            services_max: 2 * NODES as u32,
            start_timeout: LIMIT,
            stop_timeout: LIMIT,
            ..Options::default()
        };
        let services = Services::new(&soak.handle, options);
        let observed = is_observed.then(|| {
            let heard: Rc<Heard> = Rc::default();
            let theirs = heard.clone();
            let observation = services.observe(move |change| theirs.hear(&change.what));
            (observation, heard)
        });
        let ground = Ground {
            lived: RefCell::default(),
            pusher: soak.pusher.clone(),
            events: soak.events.clone(),
            random: RefCell::new(Random::new(soak.random.next_u64())),
            handed: Cell::new(0),
            running: Cell::new(0),
            coroutines,
        };
        Life {
            scope: Scope::new(&ground.coroutines),
            ground: Rc::new(ground),
            services,
            observed,
            ids: [None; NODES],
            requests: Vec::new(),
        }
    }

    /// Some random things.
    pub async fn step(&mut self, soak: &mut Soak) {
        for _ in 0..soak.random.below(60) {
            self.change_services(&mut soak.random).await;
            self.change_coroutines(&mut soak.random).await;
        }
    }

    /// Requires another number, in two of three; of which some are never there.
    fn define(&self, number: usize, random: &mut Random) -> Definition<Node> {
        let node = Node {
            ground: self.ground.clone(),
            runs: Cell::new(false),
            handler: RefCell::default(),
            provider: RefCell::default(),
        };
        let definition = Definition::new("node", node)
            .property("number", number as i64)
            .provides::<Rc<dyn Numbered>>(|node| node);
        if number == 0 || random.below(3) == 0 {
            return definition;
        }
        let required = random.below(number as u64) as i64;
        definition
            .requires::<Rc<dyn Numbered>>(Node::told, Node::taken_back)
            .filter::<Rc<dyn Numbered>>(Filter::equal("number", required))
    }

    async fn change_services(&mut self, random: &mut Random) {
        let number = random.below(NODES as u64) as usize;
        let Some(id) = self.ids[number] else {
            let added = self.services.add(self.define(number, random));
            self.ids[number] = Some(added.expect("there is room"));
            return;
        };
        let services = self.services.clone();
        match random.below(8) {
            0 => {
                self.ids[number] = None;
                self.remove(id, random).await;
            }
            1 => self.request(random, async move { drop(services.stop(id).await) }),
            2 | 3 => self.request(random, async move { drop(services.restart(id).await) }),
            4 => drop(services.stop(id).await),
            5 => drop(services.snapshot()),
            _ => self.request(random, async move { drop(services.start(id).await) }),
        }
    }

    /// Half the time the first request is given up, which takes nothing back.
    async fn remove(&self, id: ServiceId, random: &mut Random) {
        let limit = Nanos::from_micros(random.below(200));
        let removed = self.services.remove(id);
        if self
            .services
            .handle()
            .timeout(limit, removed)
            .await
            .is_err()
        {
            self.ground.lived.borrow_mut().given_up += 1;
            drop(self.services.remove(id).await);
        }
        assert_eq!(self.services.state(id), None, "it is gone");
        self.ground.lived.borrow_mut().removed += 1;
    }

    /// Asks for something without waiting for it, and gives some older request up.
    fn request(&mut self, random: &mut Random, work: impl Future<Output = ()> + 'static) {
        self.requests.push(self.ground.coroutines.spawn(work));
        if self.requests.len() == REQUESTS {
            let given_up = self
                .requests
                .swap_remove(random.below(REQUESTS as u64) as usize);
            let count = u64::from(!given_up.is_finished());
            self.ground.lived.borrow_mut().given_up += count;
            self.requests.retain(|request| !request.is_finished());
        }
    }

    async fn change_coroutines(&mut self, random: &mut Random) {
        let ground = self.ground.clone();
        let work = async move { ground.live(|lived| &mut lived.coroutines).await };
        let child = match random.below(2) {
            0 => self.scope.spawn(work),
            _ => self.scope.spawn_named("child", work),
        };
        match random.below(8) {
            0 => drop(child),
            1 => {
                self.services.handle().yield_now().await;
                child.cancel();
                drop(child.await);
            }
            _ => child.detach(),
        }
        if random.below(16) == 0 {
            let next = Scope::new(&self.ground.coroutines);
            end_scope(std::mem::replace(&mut self.scope, next)).await;
        }
    }

    /// Takes everything down, and checks what is left.
    pub async fn end(mut self) -> Lived {
        self.requests.clear();
        end_scope(self.scope).await;
        self.services.stop_all().await;
        assert_eq!((self.services.running(), self.ground.running.get()), (0, 0));
        for id in self.ids.iter_mut().filter_map(Option::take) {
            drop(self.services.remove(id).await);
            self.ground.lived.borrow_mut().removed += 1;
        }
        assert!(self.services.is_empty());
        assert_eq!(self.ground.handed.get(), 0, "what was handed out is back");
        let lived = self.ground.lived.borrow().clone();
        for tally in [&lived.starts, &lived.stops, &lived.coroutines] {
            assert_eq!(tally.begun, tally.ended(), "each ends once: {lived:?}");
        }
        assert_eq!(lived.starts.succeeded, lived.stops.begun, "{lived:?}");
        if let Some((observation, heard)) = self.observed {
            heard.check(&lived);
            drop(observation);
        }
        drop(self.services);
        assert_eq!(Rc::strong_count(&self.ground), 1, "nothing is left");
        lived
    }
}

async fn end_scope(scope: Scope) {
    scope.cancel();
    let ended = scope.join().await;
    assert_eq!(scope.alive(), 0);
    assert!(ended.failures.len() as u64 <= ended.failed);
}
