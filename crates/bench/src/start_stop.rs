//! A requires B, a logger and the manager; B requires a logger of its own. A orders, by an
//! event that the manager handles, that B is stopped once A runs, for which A stops first,
//! and that B is started once A has stopped, after which A starts again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_runtime::coroutines::AutoEvent;
use prony_runtime::events::{Emitter, Events};
use prony_runtime::services::{
    Context, Definition, FactoryRequest, Failure, Options, Service, ServiceId, Services,
};

use crate::threads::{ThreadResult, at_once};
use crate::{BenchError, Done, Order, Work};

/// How often each of the two started and stopped, and what their loggers were given.
#[derive(Default)]
struct Counts {
    a_starts: Cell<u64>,
    b_starts: Cell<u64>,
    a_stops: Cell<u64>,
    b_stops: Cell<u64>,
    lines_of_a: Cell<u64>,
    lines_of_b: Cell<u64>,
}

fn count(cell: &Cell<u64>) -> u64 {
    let number = cell.get() + 1;
    cell.set(number);
    number
}

trait Logger {
    fn log(&self, line: &str);
}

/// Makes a logger for each service that asks.
struct Loggers;

impl Service for Loggers {}

/// A logger of one service: it counts lines.
struct Lines {
    counts: Rc<Counts>,
    is_of_a: bool,
}

impl Service for Lines {}

impl Logger for Lines {
    fn log(&self, _: &str) {
        count(match self.is_of_a {
            true => &self.counts.lines_of_a,
            false => &self.counts.lines_of_b,
        });
    }
}

/// An order to the manager.
enum Ask {
    Stop(ServiceId),
    Start(ServiceId),
}

/// Takes orders that concern services, through the queue of events.
struct Manager(Emitter<Ask>);

impl Service for Manager {}

impl Manager {
    fn ask(&self, ask: Ask) -> Result<(), Failure> {
        match self.0.push(ask) {
            Ok(_) => Ok(()),
            Err(refused) => Err(Failure::new(refused.to_string())),
        }
    }
}

/// The dependencies of A. It has all of them, or does not run.
#[derive(Default)]
struct Given {
    b: Option<Rc<B>>,
    logger: Option<Rc<dyn Logger>>,
    manager: Option<Rc<Manager>>,
}

struct A {
    counts: Rc<Counts>,
    /// Cycles to go through.
    cycles: u64,
    given: RefCell<Given>,
    over: Rc<AutoEvent>,
}

impl A {
    /// Logs a line, counts, and asks the manager for something to be done with B.
    fn step(
        &self,
        line: &str,
        steps: &Cell<u64>,
        next: impl FnOnce(ServiceId) -> Ask,
    ) -> Result<(), Failure> {
        let given = self.given.borrow();
        let (Some(b), Some(logger), Some(manager)) = (&given.b, &given.logger, &given.manager)
        else {
            return Err(Failure::new("it lacks what it requires"));
        };
        logger.log(line);
        if count(steps) <= self.cycles {
            return manager.ask(next(b.id.get().ok_or_else(|| Failure::new("B is nobody"))?));
        }
        self.over.set();
        Ok(())
    }
}

impl Service for A {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        self.step("start", &self.counts.a_starts, Ask::Stop)
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.step("stop", &self.counts.a_stops, Ask::Start)
    }
}

struct B {
    counts: Rc<Counts>,
    id: Cell<Option<ServiceId>>,
    logger: RefCell<Option<Rc<dyn Logger>>>,
}

impl B {
    fn step(&self, line: &str, steps: &Cell<u64>) -> Result<(), Failure> {
        match &*self.logger.borrow() {
            Some(logger) => logger.log(line),
            None => return Err(Failure::new("it has no logger")),
        }
        count(steps);
        Ok(())
    }
}

impl Service for B {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        self.id.set(Some(context.id()));
        self.step("start", &self.counts.b_starts)
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.step("stop", &self.counts.b_stops)
    }
}

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "cycles", cycles)
}

fn cycles(order: &Order) -> Result<ThreadResult, BenchError> {
    let counts = Rc::new(Counts::default());
    let theirs = counts.clone();
    let went = prony_engine::run(&order.config(), |handle| async move {
        let services = Services::new(&handle, Options::default());
        cycle(&services, &Events::new(&handle), theirs, order.count).await
    })?;
    let wrong = |wrong| BenchError::Wrong {
        work: Work::StartStop,
        wrong,
    };
    went.map_err(|failure| wrong(failure.to_string()))?;
    let Counts {
        a_starts,
        b_starts,
        a_stops,
        b_stops,
        lines_of_a,
        lines_of_b,
    } = &*counts;
    let steps = [a_starts, b_starts, a_stops, b_stops].map(Cell::get);
    let lines = [lines_of_a, lines_of_b].map(Cell::get);
    let times = order.count + 1;
    if steps != [times; 4] || lines != [2 * times; 2] {
        return Err(wrong(format!(
            "starts of A and B, stops of A and B: {steps:?}; lines logged: {lines:?}"
        )));
    }
    let weighed = steps.into_iter().chain(lines).zip([1, 3, 5, 7, 11, 13]);
    Ok(ThreadResult {
        bytes: 0,
        checksum: weighed.map(|(number, weight)| number * weight).sum(),
    })
}

async fn cycle(
    services: &Services,
    events: &Events,
    counts: Rc<Counts>,
    cycles: u64,
) -> Result<(), Failure> {
    let managed = services.clone();
    let managing = events.on_async(move |ask: &Ask, _| {
        let (stops, id) = match ask {
            Ask::Stop(id) => (true, *id),
            Ask::Start(id) => (false, *id),
        };
        let services = managed.clone();
        async move {
            // Whoever fails is not started again, which shows in the counts.
            let _ = match stops {
                true => services.stop(id).await,
                false => services.start(id).await,
            };
        }
    });
    let over = Rc::new(AutoEvent::new());
    add_all(services, events, &counts, cycles, &over)?;
    services.settle().await?;
    over.wait().await;
    services.settle().await?;
    services.stop_all().await;
    drop(managing);
    Ok(())
}

fn add_all(
    services: &Services,
    events: &Events,
    counts: &Rc<Counts>,
    cycles: u64,
    over: &Rc<AutoEvent>,
) -> Result<(), Failure> {
    let made = counts.clone();
    let loggers = Definition::new("loggers", Loggers).makes::<Rc<dyn Logger>, _>(
        move |_, request: &FactoryRequest| {
            let lines = Lines {
                counts: made.clone(),
                is_of_a: request.name().as_str() == "A",
            };
            Definition::new(request.name(), lines).provides::<Rc<dyn Logger>>(|lines| lines)
        },
    );
    let manager = Definition::new("manager", Manager(events.emitter()));
    let b = B {
        counts: counts.clone(),
        id: Cell::new(None),
        logger: RefCell::new(None),
    };
    let b = Definition::new("B", b).requires::<Rc<dyn Logger>>(
        |b, logger, _| drop(b.logger.replace(Some(logger))),
        |b, _| drop(b.logger.take()),
    );
    let a = A {
        counts: counts.clone(),
        cycles,
        given: RefCell::default(),
        over: over.clone(),
    };
    let a = Definition::new("A", a)
        .requires::<Rc<dyn Logger>>(
            |a, logger, _| a.given.borrow_mut().logger = Some(logger),
            |a, _| a.given.borrow_mut().logger = None,
        )
        .requires::<Rc<B>>(
            |a, b, _| a.given.borrow_mut().b = Some(b),
            |a, _| a.given.borrow_mut().b = None,
        )
        .requires::<Rc<Manager>>(
            |a, manager, _| a.given.borrow_mut().manager = Some(manager),
            |a, _| a.given.borrow_mut().manager = None,
        );
    services.add(loggers)?;
    services.add(manager.provides::<Rc<Manager>>(|manager| manager))?;
    services.add(b.provides::<Rc<B>>(|b| b))?;
    services.add(a)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cycle_stops_and_starts_both_and_each_step_is_logged() {
        let order = Order {
            count: 100,
            threads: 2,
            ..Order::default()
        };
        let line = run(&order).unwrap().line;
        assert_eq!(line.count, 200);
        assert_eq!(line.checksum, (2 * 64 * 101).to_string());
    }
}
