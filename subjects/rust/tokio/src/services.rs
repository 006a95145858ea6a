//! Services by the registry: many of them, each with a logger of its own, and two of which one requires the other.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use crate::WorkOutcome;
use crate::registry::{
    Handle, Id, Instance, Interface, Make, Properties, Registry, Service, Spec, Value, Work,
};

const LOGGER: Interface = "logger";
const FRAMEWORK_LOGGER: Interface = "framework logger";
const NEEDED: Interface = "needed";
const MANAGER: Interface = "manager";

#[derive(Default)]
struct Counts {
    starts: Cell<u64>,
    stops: Cell<u64>,
}

impl Counts {
    fn started(&self) -> u64 {
        self.starts.set(self.starts.get() + 1);
        self.starts.get()
    }
    fn stopped(&self) -> u64 {
        self.stops.set(self.stops.get() + 1);
        self.stops.get()
    }
}

trait Logger {
    fn log(&self, line: &str);
    fn lines(&self) -> u64;
}

/// Counts lines: the works measure no output.
struct NullLogger {
    counts: Rc<Counts>,
    lines: Cell<u64>,
    _level: &'static str,
}

impl Logger for NullLogger {
    fn log(&self, _line: &str) {
        self.lines.set(self.lines.get() + 1);
    }
    fn lines(&self) -> u64 {
        self.lines.get()
    }
}

impl Service for NullLogger {
    fn start(self: Rc<Self>, _: &Properties) -> Work {
        Box::pin(async move {
            self.counts.started();
        })
    }
    fn stop(self: Rc<Self>) -> Work {
        Box::pin(async move {
            self.counts.stopped();
        })
    }
    fn instance(self: Rc<Self>) -> Option<Instance> {
        Some(Rc::new(self as Rc<dyn Logger>))
    }
}

struct FrameworkLogger {
    counts: Rc<Counts>,
}

impl Service for FrameworkLogger {
    fn start(self: Rc<Self>, _: &Properties) -> Work {
        Box::pin(async move {
            self.counts.started();
        })
    }
    fn stop(self: Rc<Self>) -> Work {
        Box::pin(async move {
            self.counts.stopped();
        })
    }
    fn instance(self: Rc<Self>) -> Option<Instance> {
        Some(self)
    }
}

/// Makes a logger for each service that lacks one, offered to that service only.
struct LoggerFactory {
    handle: Handle,
    counts: Rc<Counts>,
}

impl Service for LoggerFactory {
    fn start(self: Rc<Self>, _: &Properties) -> Work {
        Box::pin(async move {
            self.counts.started();
            let made = RefCell::new(HashSet::new());
            let (handle, counts) = (self.handle.clone(), self.counts.clone());
            let make = move |requester: Id, properties: &Properties| {
                if made.borrow_mut().insert(requester) {
                    handle.insert(|_| logger(requester, level(properties), counts.clone()));
                }
            };
            self.handle.make_on_request(LOGGER, Rc::new(make));
        })
    }
    fn stop(self: Rc<Self>) -> Work {
        Box::pin(async move {
            self.counts.stopped();
        })
    }
}

fn number(properties: &Properties, name: &str) -> u64 {
    match properties.get(name) {
        Some(Value::Number(number)) => *number,
        _ => panic!("no number named {name}"),
    }
}

fn level(properties: &Properties) -> &'static str {
    match properties.get("level") {
        Some(Value::Level(level)) => level,
        _ => "warn",
    }
}

fn logger(owner: Id, level: &'static str, counts: Rc<Counts>) -> Spec {
    Spec {
        properties: Properties::from([
            ("owner", Value::Number(owner)),
            ("level", Value::Level(level)),
        ]),
        requires: vec![],
        provides: Some((LOGGER, Some(owner))),
        make: Make::Made(Rc::new(NullLogger {
            counts,
            lines: Cell::new(0),
            _level: level,
        })),
    }
}

/// The factory of loggers and what it requires.
fn insert_factory(handle: &Handle, counts: &Rc<Counts>) {
    handle.insert(|_| Spec {
        properties: Properties::new(),
        requires: vec![FRAMEWORK_LOGGER],
        provides: None,
        make: Make::Made(Rc::new(LoggerFactory {
            handle: handle.clone(),
            counts: counts.clone(),
        })),
    });
    handle.insert(|_| Spec {
        properties: Properties::new(),
        requires: vec![],
        provides: Some((FRAMEWORK_LOGGER, None)),
        make: Make::Made(Rc::new(FrameworkLogger {
            counts: counts.clone(),
        })),
    });
}

fn as_logger(instance: &Instance) -> Rc<dyn Logger> {
    instance
        .downcast_ref::<Rc<dyn Logger>>()
        .expect("a logger was required")
        .clone()
}

/// One of many: its last one to start ends the application.
struct Many {
    counts: Rc<Counts>,
    count: u64,
    handle: Handle,
    logger: RefCell<Option<Rc<dyn Logger>>>,
}

impl Service for Many {
    fn start(self: Rc<Self>, properties: &Properties) -> Work {
        let iteration = number(properties, "iteration");
        Box::pin(async move {
            assert!(iteration < self.count, "it has the properties of another");
            assert!(
                self.logger.borrow().is_some(),
                "it was started without what it requires"
            );
            if self.counts.started() == self.count {
                self.handle.quit();
            }
        })
    }
    fn stop(self: Rc<Self>) -> Work {
        Box::pin(async move {
            self.counts.stopped();
        })
    }
    fn inject(&self, _: Interface, _: Id, instance: &Instance) {
        self.logger.replace(Some(as_logger(instance)));
    }
}

fn many(constructor: bool, count: u64, counts: &Rc<Counts>, handle: &Handle) -> Make {
    let (counts, handle) = (counts.clone(), handle.clone());
    let make = move |logger| {
        Rc::new(Many {
            counts,
            count,
            handle,
            logger: RefCell::new(logger),
        })
    };
    if constructor {
        Make::WhenReady(Box::new(move |instances| {
            make.clone()(Some(as_logger(&instances[0])))
        }))
    } else {
        Make::Made(make(None))
    }
}

/// Many services, each of which requires a logger of its own.
pub async fn start(count: u64, constructor: bool) -> WorkOutcome {
    let registry = Registry::new();
    let handle = registry.handle();
    let (of_many, of_loggers) = (Rc::new(Counts::default()), Rc::new(Counts::default()));
    insert_factory(&handle, &of_loggers);
    for iteration in 0..count {
        handle.insert(|_| Spec {
            properties: Properties::from([
                ("iteration", Value::Number(iteration)),
                ("level", Value::Level("error")),
            ]),
            requires: vec![LOGGER],
            provides: None,
            make: many(constructor, count, &of_many, &handle),
        });
    }
    registry.run().await;
    let starts = of_many.starts.get() + of_loggers.starts.get();
    let stops = of_many.stops.get() + of_loggers.stops.get();
    WorkOutcome {
        checksum: starts + 3 * stops,
        bytes: 0,
    }
}

struct B {
    counts: Rc<Counts>,
    logger: RefCell<Option<Rc<dyn Logger>>>,
}

impl Service for B {
    fn start(self: Rc<Self>, _: &Properties) -> Work {
        Box::pin(async move {
            log(&self.logger, "start");
            self.counts.started();
        })
    }
    fn stop(self: Rc<Self>) -> Work {
        Box::pin(async move {
            log(&self.logger, "stop");
            self.counts.stopped();
        })
    }
    fn inject(&self, _: Interface, _: Id, instance: &Instance) {
        self.logger.replace(Some(as_logger(instance)));
    }
    fn instance(self: Rc<Self>) -> Option<Instance> {
        Some(self)
    }
}

/// Offers the registry's commands to those that require the manager.
struct Manager(Handle);

impl Service for Manager {
    fn start(self: Rc<Self>, _: &Properties) -> Work {
        Box::pin(async {})
    }
    fn stop(self: Rc<Self>) -> Work {
        Box::pin(async {})
    }
    fn instance(self: Rc<Self>) -> Option<Instance> {
        Some(Rc::new(self.0.clone()))
    }
}

fn log(logger: &RefCell<Option<Rc<dyn Logger>>>, line: &str) {
    logger.borrow().as_ref().expect("it has a logger").log(line);
}

fn lines(logger: &RefCell<Option<Rc<dyn Logger>>>) -> u64 {
    logger.borrow().as_ref().map_or(0, |logger| logger.lines())
}

/// Requires B, and has the manager stop it and start it again.
struct A {
    counts: Rc<Counts>,
    cycles: u64,
    manager: RefCell<Option<Handle>>,
    needed: Cell<Id>,
    logger: RefCell<Option<Rc<dyn Logger>>>,
}

impl A {
    fn manager(&self) -> Handle {
        self.manager.borrow().clone().expect("it has the manager")
    }
}

impl Service for A {
    fn start(self: Rc<Self>, _: &Properties) -> Work {
        Box::pin(async move {
            log(&self.logger, "start");
            if self.counts.started() <= self.cycles {
                self.manager().stop(self.needed.get());
            } else {
                self.manager().quit();
            }
        })
    }
    fn stop(self: Rc<Self>) -> Work {
        Box::pin(async move {
            log(&self.logger, "stop");
            if self.counts.stopped() <= self.cycles {
                self.manager().start(self.needed.get());
            }
        })
    }
    fn inject(&self, interface: Interface, provider: Id, instance: &Instance) {
        match interface {
            NEEDED => self.needed.set(provider),
            MANAGER => {
                let manager = instance.downcast_ref::<Handle>();
                self.manager
                    .replace(Some(manager.expect("the manager").clone()));
            }
            _ => drop(self.logger.replace(Some(as_logger(instance)))),
        }
    }
}

/// A requires B, a logger and the manager, by which it has B stopped, so that A stops first, and started, so that A
/// starts again. B requires a logger, too.
pub async fn start_stop(cycles: u64) -> WorkOutcome {
    let registry = Registry::new();
    let handle = registry.handle();
    let (of_a, of_b) = (Rc::new(Counts::default()), Rc::new(Counts::default()));
    insert_factory(&handle, &Rc::new(Counts::default()));
    let b = Rc::new(B {
        counts: of_b.clone(),
        logger: RefCell::default(),
    });
    let a = Rc::new(A {
        counts: of_a.clone(),
        cycles,
        manager: RefCell::default(),
        needed: Cell::default(),
        logger: RefCell::default(),
    });
    handle.insert(|_| Spec {
        properties: Properties::new(),
        requires: vec![],
        provides: Some((MANAGER, None)),
        make: Make::Made(Rc::new(Manager(handle.clone()))),
    });
    handle.insert(|_| Spec {
        properties: Properties::new(),
        requires: vec![LOGGER],
        provides: Some((NEEDED, None)),
        make: Make::Made(b.clone()),
    });
    handle.insert(|_| Spec {
        properties: Properties::new(),
        requires: vec![LOGGER, NEEDED, MANAGER],
        provides: None,
        make: Make::Made(a.clone()),
    });
    registry.run().await;
    let logged = 11 * lines(&a.logger) + 13 * lines(&b.logger);
    let checksum =
        of_a.starts.get() + 3 * of_b.starts.get() + 5 * of_a.stops.get() + 7 * of_b.stops.get();
    WorkOutcome {
        checksum: checksum + logged,
        bytes: 0,
    }
}
