//! Random services with random requirements and random faults, taken up and down
//! at random on the simulated driver, against what must hold at every moment.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_base::{Nanos, Random};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Task};
use prony_runtime::services::{
    Context, Definition, FactoryRequest, Failure, Filter, Options, Service, ServiceId, Services,
    State,
};
use proptest::prelude::*;

/// Services at most.
const NODES: usize = 12;

/// What the services say of themselves, and what they find wrong.
#[derive(Default)]
struct Board {
    running: [Cell<bool>; NODES],
    /// By node: those that it requires.
    requires: RefCell<Vec<Vec<usize>>>,
    needs_logger: RefCell<Vec<bool>>,
    /// Those that are wanted for certain; not while one is being restarted.
    wanted: [Cell<bool>; NODES],
    starts: Cell<u64>,
    stops: Cell<u64>,
    /// Providers that were handed out and not taken back.
    handed: Cell<i64>,
    wrong: RefCell<Vec<String>>,
}

impl Board {
    fn expect(&self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.wrong.borrow_mut().push(what());
        }
    }

    fn requirements_run(&self, node: usize, when: &str) {
        for &required in &self.requires.borrow()[node] {
            let runs = self.running[required].get();
            self.expect(runs, || format!("{required} does not run {when} {node}"));
        }
    }

    fn dependents_rest(&self, node: usize) {
        for (dependent, required) in self.requires.borrow().iter().enumerate() {
            let rests = !required.contains(&node) || !self.running[dependent].get();
            self.expect(rests, || format!("{dependent} runs while {node} stops"));
        }
    }
}

/// What may go wrong in one of sixteen starts or stops each.
#[derive(Clone, Copy, Debug)]
enum Luck {
    Well,
    Slow(u64),
    Fails,
    Panics,
    Hangs,
}

fn luck(random: &mut Random) -> Luck {
    match random.below(16) {
        0 => Luck::Fails,
        1 => Luck::Panics,
        2 => Luck::Hangs,
        3..=7 => Luck::Slow(1 + random.below(30)),
        _ => Luck::Well,
    }
}

struct Node {
    number: usize,
    board: Rc<Board>,
    random: RefCell<Random>,
    logger: RefCell<Option<Rc<dyn Logger>>>,
}

trait Numbered {
    fn number(&self) -> usize;
}

impl Numbered for Node {
    fn number(&self) -> usize {
        self.number
    }
}

trait Logger {
    fn is_up(&self) -> bool;
}

struct NodeLogger {
    board: Rc<Board>,
    up: Cell<bool>,
}

impl Logger for NodeLogger {
    fn is_up(&self) -> bool {
        self.up.get()
    }
}

impl Service for NodeLogger {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        context.handle().sleep(Nanos::from_millis(2)).await;
        self.up.set(true);
        self.board.starts.set(self.board.starts.get() + 1);
        Ok(())
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.up.set(false);
        self.board.stops.set(self.board.stops.get() + 1);
        Ok(())
    }
}

struct Loggers;

impl Service for Loggers {}

async fn live(luck: Luck, context: &Context) -> Result<(), Failure> {
    match luck {
        Luck::Well => Ok(()),
        Luck::Slow(millis) => {
            context.handle().sleep(Nanos::from_millis(millis)).await;
            Ok(())
        }
        Luck::Fails => Err(Failure::new("bad luck")),
        Luck::Panics => std::panic::resume_unwind(Box::new("bad luck")),
        Luck::Hangs => std::future::pending().await,
    }
}

/// Says that a node rests, however its stop ends.
struct Rests<'a>(&'a Node);

impl Drop for Rests<'_> {
    fn drop(&mut self) {
        let Node { board, number, .. } = self.0;
        board.requirements_run(*number, "until the end of the stop of");
        board.running[*number].set(false);
    }
}

impl Node {
    fn has_logger(&self) -> bool {
        let needs = self.board.needs_logger.borrow()[self.number];
        let logger = self.logger.borrow();
        !needs || logger.as_ref().is_some_and(|logger| logger.is_up())
    }
}

impl Service for Node {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        let (board, number) = (&self.board, self.number);
        board.requirements_run(number, "at the start of");
        board.expect(!board.running[number].get(), || {
            format!("{number} starts twice")
        });
        board.expect(self.has_logger(), || {
            format!("{number} starts without a logger")
        });
        let luck = luck(&mut self.random.borrow_mut());
        live(luck, context).await?;
        board.requirements_run(number, "after the start of");
        board.running[number].set(true);
        board.starts.set(board.starts.get() + 1);
        Ok(())
    }

    async fn stop(&self, context: &Context) -> Result<(), Failure> {
        let (board, number) = (&self.board, self.number);
        board.stops.set(board.stops.get() + 1);
        board.expect(board.running[number].get(), || {
            format!("{number} stops twice")
        });
        board.expect(self.has_logger(), || {
            format!("{number} stops without a logger")
        });
        board.dependents_rest(number);
        let _rests = Rests(self);
        let luck = luck(&mut self.random.borrow_mut());
        live(luck, context).await
    }
}

/// Requirements only of lower numbers, in three of four; else of any, which makes
/// cycles.
fn define(number: usize, board: &Rc<Board>, random: &mut Random) -> Definition<Node> {
    let mut required = Vec::new();
    let node = Node {
        number,
        board: board.clone(),
        random: RefCell::new(Random::new(random.next_u64())),
        logger: RefCell::new(None),
    };
    let mut definition = Definition::new(format!("node {number}"), node)
        .property("number", number as i64)
        .provides::<Rc<dyn Numbered>>(|node| node)
        .start_timeout(Nanos::from_millis(100))
        .stop_timeout(Nanos::from_millis(100));
    if random.chance(2, 3) {
        let below = if random.chance(3, 4) { number } else { NODES };
        required.extend((below > 0).then(|| random.below(below as u64) as usize));
        required.retain(|&required| required != number);
    }
    for &required in &required {
        definition = definition
            .requires::<Rc<dyn Numbered>>(told, taken_back)
            .filter::<Rc<dyn Numbered>>(Filter::equal("number", required as i64));
    }
    // A filter holds for all needs of an interface, so that these two have none.
    if required.is_empty() && random.chance(1, 2) {
        definition = definition.many::<Rc<dyn Numbered>>(told, taken_back);
    }
    let logger = random.chance(1, 3);
    if logger {
        definition = definition.requires::<Rc<dyn Logger>>(
            |node, logger, _| *node.logger.borrow_mut() = Some(logger),
            |node, _| *node.logger.borrow_mut() = None,
        );
    }
    board.requires.borrow_mut()[number] = required;
    board.needs_logger.borrow_mut()[number] = logger;
    definition
}

fn told(node: &Node, provider: Rc<dyn Numbered>, _: &prony_runtime::services::Properties) {
    let board = &node.board;
    board.handed.set(board.handed.get() + 1);
    let runs = board.running[provider.number()].get();
    board.expect(runs, || {
        format!(
            "{} is told of {}, which rests",
            node.number,
            provider.number()
        )
    });
}

fn taken_back(node: &Node, provider: &Rc<dyn Numbered>) {
    let board = &node.board;
    board.handed.set(board.handed.get() - 1);
    let runs = board.running[provider.number()].get();
    board.expect(runs, || {
        format!("{} loses {} too late", node.number, provider.number())
    });
}

fn loggers(board: &Rc<Board>) -> Definition<Loggers> {
    let board = board.clone();
    Definition::new("loggers", Loggers).makes::<Rc<dyn Logger>, _>(
        move |_, request: &FactoryRequest| {
            let logger = NodeLogger {
                board: board.clone(),
                up: Cell::new(false),
            };
            Definition::new(request.name(), logger).provides::<Rc<dyn Logger>>(|logger| logger)
        },
    )
}

/// One random thing.
async fn step(
    services: &Services,
    board: &Rc<Board>,
    ids: &RefCell<[Option<ServiceId>; NODES]>,
    tasks: &mut Vec<Task<()>>,
    random: &mut Random,
) {
    let number = random.below(NODES as u64) as usize;
    let id = ids.borrow()[number];
    match (random.below(8), id) {
        (0..=3, None) => {
            board.wanted[number].set(true);
            let definition = define(number, board, random);
            ids.borrow_mut()[number] = Some(services.add(definition).expect("there is room"));
        }
        (0, Some(id)) => {
            let removed = services.remove(id);
            // Given up half the time, which takes nothing back.
            let _ = services
                .handle()
                .timeout(Nanos::from_millis(random.below(40)), removed)
                .await;
            if services.state(id).is_some() {
                let _ = services.remove(id).await;
            }
            ids.borrow_mut()[number] = None;
        }
        (1, Some(id)) => {
            board.wanted[number].set(false);
            drop(services.stop(id).await);
        }
        (2, Some(id)) => drop(services.start(id).await),
        (3, Some(id)) => {
            board.wanted[number].set(false);
            let theirs = services.clone();
            let restart = async move { drop(theirs.restart(id).await) };
            tasks.push(services.handle().spawn(restart));
        }
        (4, _) => {
            services
                .handle()
                .sleep(Nanos::from_millis(random.below(50)))
                .await
        }
        (5, _) => {
            let factory = services.find("loggers").expect("it is never removed");
            let _ = match random.below(3) {
                0 => services.stop(factory).await,
                _ => services.start(factory).await,
            };
        }
        _ => drop(services.settle().await),
    }
}

/// Whoever waits has something to wait for.
fn nobody_waits_for_nothing(services: &Services, board: &Board) {
    for service in services.snapshot().services {
        let number = service
            .properties
            .first()
            .and_then(|(_, value)| value.as_int());
        let Some(number) = number.map(|number| number as usize) else {
            continue;
        };
        let goes = service.state != State::Stopped || !board.wanted[number].get();
        board.expect(goes, || format!("{number} is wanted and rests"));
        if service.state != State::Waiting {
            continue;
        }
        let lacks = service.needs.iter().any(|need| {
            need.rule == prony_runtime::services::Rule::Required && need.bound_to.is_empty()
        });
        board.expect(lacks, || format!("{number} waits for nothing"));
        let rests = |&required: &usize| !board.running[required].get();
        let factory = services.find("loggers").and_then(|id| services.state(id));
        let reason = board.requires.borrow()[number].iter().any(rests)
            || (board.needs_logger.borrow()[number] && factory != Some(State::Running));
        board.expect(reason, || {
            format!("{number} waits though all that it requires runs")
        });
    }
}

/// Everybody is wanted at the end, and then nobody rests who has not failed.
async fn want_all(services: &Services, board: &Board, ids: &RefCell<[Option<ServiceId>; NODES]>) {
    let factory = services.find("loggers");
    let installed: Vec<ServiceId> = ids.borrow().iter().flatten().copied().collect();
    for id in factory.into_iter().chain(installed) {
        drop(services.start(id).await);
    }
    let _ = services.settle().await;
    for service in services.snapshot().services {
        let goes = service.state != State::Stopped;
        board.expect(goes, || format!("{} is wanted and rests", service.name));
    }
    nobody_waits_for_nothing(services, board);
}

async fn remove_all(services: &Services, board: &Board, ids: &RefCell<[Option<ServiceId>; NODES]>) {
    let installed = ids.take();
    for id in installed.into_iter().flatten() {
        drop(services.remove(id).await);
    }
    let _ = services.settle().await;
    let left = services.len();
    board.expect(left == 1, || format!("{left} are left, with the factory"));
}

fn play(seed: u64, steps: usize) {
    let board = Rc::new(Board::default());
    board.requires.borrow_mut().resize(NODES, Vec::new());
    board.needs_logger.borrow_mut().resize(NODES, false);
    let theirs = board.clone();
    let mut world = World::new(seed, SimOptions::default());
    let outcome = world.spawn_loop(&Config::default(), |handle| async move {
        let services = Services::new(&handle, Options::default());
        let mut random = Random::new(seed);
        let ids = RefCell::default();
        let mut tasks = Vec::new();
        services.add(loggers(&theirs)).expect("there is room");
        for _ in 0..steps {
            step(&services, &theirs, &ids, &mut tasks, &mut random).await;
            if random.chance(1, 4) {
                let _ = services.settle().await;
                nobody_waits_for_nothing(&services, &theirs);
            }
        }
        for task in tasks {
            task.await;
        }
        want_all(&services, &theirs, &ids).await;
        // Removed from under a factory that runs, or after all has stopped.
        if random.chance(1, 2) {
            remove_all(&services, &theirs, &ids).await;
        }
        services.stop_all().await;
        theirs.expect(services.running() == 0, || "some run after all".to_owned());
        for service in services.snapshot().services {
            let rests = matches!(service.state, State::Stopped | State::Failed);
            theirs.expect(rests, || format!("{} is {}", service.name, service.state));
        }
        remove_all(&services, &theirs, &ids).await;
    });
    world.run(Nanos::from_secs(3_600)).expect("it ends");
    assert!(outcome.take().is_some());
    drop(world);
    assert_eq!(*board.wrong.borrow(), Vec::<String>::new(), "seed {seed}");
    assert_eq!(
        board.starts.get(),
        board.stops.get(),
        "seed {seed}: each start has its stop"
    );
    assert_eq!(
        board.handed.get(),
        0,
        "seed {seed}: what was handed out was taken back"
    );
    assert_eq!(Rc::strong_count(&board), 1, "seed {seed}: nothing is left");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: prony_testkit::seeds(200, 5_000) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_nobody_runs_without_what_it_requires(seed: u64, steps in 1_usize..120) {
        play(seed, steps);
    }
}

/// Steps that it takes to bring `count` services up and down again.
fn steps(count: u64, add: fn(&Services, u64)) -> u64 {
    let mut world = World::new(1, SimOptions::default());
    let outcome = world.spawn_loop(&Config::default(), |handle| async move {
        let services = Services::new(&handle, Options::default());
        add(&services, count);
        services.settle().await.expect("nothing is in the way");
        services.stop_all().await;
        services.steps()
    });
    world.run(Nanos::from_secs(3_600)).expect("it ends");
    outcome.take().expect("it returned")
}

struct Idle;

impl Service for Idle {}

trait Thing {}
impl Thing for Idle {}

fn idle(number: u64) -> Definition<Idle> {
    Definition::new("idle", Idle).property("number", number as i64)
}

fn needy(number: u64) -> Definition<Idle> {
    idle(number).requires::<Rc<dyn Thing>>(|_, _, _| (), |_, _| ())
}

fn all_of_one(services: &Services, count: u64) {
    for number in 0..count {
        services.add(needy(number)).expect("there is room");
    }
    services
        .add(idle(0).provides::<Rc<dyn Thing>>(|idle| idle))
        .expect("there is room");
}

fn each_of_its_own(services: &Services, count: u64) {
    for number in 0..count {
        let filter = Filter::equal("number", number as i64);
        services
            .add(needy(count + number).filter::<Rc<dyn Thing>>(filter))
            .expect("there is room");
    }
    for number in 0..count {
        let provider = idle(number).provides::<Rc<dyn Thing>>(|idle| idle);
        services.add(provider).expect("there is room");
    }
}

fn in_a_chain(services: &Services, count: u64) {
    for number in 0..count {
        let filter = Filter::equal("number", number as i64 + 1);
        let link = needy(number).filter::<Rc<dyn Thing>>(filter);
        services
            .add(link.provides::<Rc<dyn Thing>>(|idle| idle))
            .expect("there is room");
    }
    services
        .add(idle(count).provides::<Rc<dyn Thing>>(|idle| idle))
        .expect("there is room");
}

fn each_from_a_factory(services: &Services, count: u64) {
    for number in 0..count {
        services.add(needy(number)).expect("there is room");
    }
    let factory = idle(0).makes::<Rc<dyn Thing>, _>(|_, _: &FactoryRequest| {
        idle(0).provides::<Rc<dyn Thing>>(|idle| idle)
    });
    services.add(factory).expect("there is room");
}

fn many_of_all(services: &Services, count: u64) {
    for number in 0..count {
        services
            .add(idle(number).provides::<Rc<dyn Thing>>(|idle| idle))
            .expect("there is room");
    }
    services
        .add(idle(0).many::<Rc<dyn Thing>>(|_, _, _| (), |_, _| ()))
        .expect("there is room");
}

#[test]
fn twice_the_services_cost_twice_the_steps() {
    type Add = fn(&Services, u64);
    let shapes: [(&str, Add); 5] = [
        ("all of one", all_of_one),
        ("each of its own", each_of_its_own),
        ("in a chain", in_a_chain),
        ("each from a factory", each_from_a_factory),
        ("many of all", many_of_all),
    ];
    for (shape, add) in shapes {
        let (one, two) = (steps(1_000, add), steps(2_000, add));
        assert!(one >= 2_000, "{shape}: {one} steps are counted");
        assert!(one <= 20_000, "{shape}: {one} steps for 1,000 edges");
        assert!(two <= 2 * one + 100, "{shape}: {one} steps, then {two}");
    }
}
