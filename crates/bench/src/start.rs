//! Services with two properties and a required logger, which a factory makes for each of
//! them: all are added, started and stopped.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_runtime::services::{
    Context, Definition, FactoryRequest, Failure, Options, Service, Services,
};

use crate::threads::{ThreadResult, at_once};
use crate::{BenchError, Done, Injection, Order, Work};

/// How often services started and stopped, each by its own doing.
#[derive(Default)]
struct Counts {
    starts: Cell<u64>,
    stops: Cell<u64>,
}

impl Counts {
    fn started(&self) -> Result<(), Failure> {
        self.starts.set(self.starts.get() + 1);
        Ok(())
    }

    fn stopped(&self) -> Result<(), Failure> {
        self.stops.set(self.stops.get() + 1);
        Ok(())
    }

    fn checksum(&self) -> u64 {
        self.starts.get() + 3 * self.stops.get()
    }
}

trait Logger {
    fn log(&self, text: &str);
}

/// A logger of one service: it keeps how much was logged.
struct Named {
    counts: Rc<Counts>,
    bytes: Cell<usize>,
}

impl Logger for Named {
    fn log(&self, text: &str) {
        self.bytes.set(self.bytes.get() + text.len());
    }
}

impl Service for Named {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        self.counts.started()
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.counts.stopped()
    }
}

/// The root: the factory of loggers, and one more service beside it.
struct Root {
    counts: Rc<Counts>,
}

impl Service for Root {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        self.counts.started()
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.counts.stopped()
    }
}

struct Worker {
    counts: Rc<Counts>,
    logger: RefCell<Option<Rc<dyn Logger>>>,
}

impl Worker {
    fn log(&self, text: &str) -> Result<(), Failure> {
        match &*self.logger.borrow() {
            Some(logger) => {
                logger.log(text);
                Ok(())
            }
            None => Err(Failure::new("it has no logger")),
        }
    }
}

impl Service for Worker {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        self.log("start")?;
        self.counts.started()
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.log("stop")?;
        self.counts.stopped()
    }
}

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "services", started_and_stopped)
}

fn started_and_stopped(order: &Order) -> Result<ThreadResult, BenchError> {
    let counts = Rc::new(Counts::default());
    let theirs = counts.clone();
    let went = prony_engine::run(&order.config(), |handle| async move {
        let services_max = order.count.saturating_mul(2).saturating_add(2);
        let options = Options {
            services_max: u32::try_from(services_max).unwrap_or(u32::MAX),
            ..Options::default()
        };
        let services = Services::new(&handle, options);
        add_all(&services, &theirs, order)?;
        let settled = services
            .settle()
            .await
            .map_err(|problems| problems.to_string());
        services.stop_all().await;
        settled
    })?;
    let wrong = |wrong| BenchError::Wrong {
        work: Work::Start,
        wrong,
    };
    went.map_err(wrong)?;
    let expected = 2 * order.count + 2;
    if (counts.starts.get(), counts.stops.get()) != (expected, expected) {
        let (starts, stops) = (counts.starts.get(), counts.stops.get());
        let not = format!("{starts} starts and {stops} stops instead of {expected} each");
        return Err(wrong(not));
    }
    Ok(ThreadResult {
        bytes: 0,
        checksum: counts.checksum(),
    })
}

fn add_all(services: &Services, counts: &Rc<Counts>, order: &Order) -> Result<(), String> {
    let root = |counts: &Rc<Counts>| Root {
        counts: counts.clone(),
    };
    let made = counts.clone();
    let loggers = Definition::new("loggers", root(counts)).makes::<Rc<dyn Logger>, _>(
        move |_, request: &FactoryRequest| {
            let logger = Named {
                counts: made.clone(),
                bytes: Cell::new(0),
            };
            Definition::new(request.name(), logger).provides::<Rc<dyn Logger>>(|logger| logger)
        },
    );
    let add = |added: Result<_, prony_runtime::services::AddError>| {
        added.map(drop).map_err(|error| error.to_string())
    };
    add(services.add(loggers))?;
    add(services.add(Definition::new("root", root(counts))))?;
    for number in 0..order.count {
        let worker = match order.injection {
            Injection::Explicit => explicit(counts),
            Injection::Constructor => constructed(counts),
        };
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let worker = worker.property("number", number).property("group", "bench");
        add(services.add(worker))?;
    }
    Ok(())
}

fn explicit(counts: &Rc<Counts>) -> Definition<Worker> {
    let worker = Worker {
        counts: counts.clone(),
        logger: RefCell::new(None),
    };
    Definition::new("worker", worker).requires::<Rc<dyn Logger>>(
        |worker, logger, _| drop(worker.logger.replace(Some(logger))),
        |worker, _| drop(worker.logger.take()),
    )
}

fn constructed(counts: &Rc<Counts>) -> Definition<Worker> {
    let counts = counts.clone();
    Definition::construct("worker", move |logger: Rc<dyn Logger>| Worker {
        counts: counts.clone(),
        logger: RefCell::new(Some(logger)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_and_every_logger_starts_and_stops() {
        for injection in [Injection::Explicit, Injection::Constructor] {
            let order = Order {
                count: 50,
                threads: 2,
                injection,
                ..Order::default()
            };
            let line = run(&order).unwrap().line;
            assert_eq!(line.count, 100);
            assert_eq!(line.checksum, (2 * 4 * (2 * 50 + 2)).to_string());
        }
    }
}
