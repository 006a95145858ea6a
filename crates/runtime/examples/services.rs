//! What services cost: `start` (10,000 services and a logger for each, by callback
//! or by constructor) and `start-stop` (A requires B; stop B, start B).
//!
//! Not for: guarding the speed by a test. Run it with
//! `cargo run --release -p prony-runtime --example services -- NAME [COUNT]`.

use std::cell::Cell;
use std::rc::Rc;

use prony_base::clock::{monotonic, thread_cpu};
use prony_engine::Config;
use prony_runtime::services::{
    Context, Definition, FactoryRequest, Failure, Options, Service, Services,
};

/// What every service counts, so that its work can be checked.
#[derive(Default)]
struct Counts {
    starts: Cell<u64>,
    stops: Cell<u64>,
}

impl Counts {
    fn start(&self) {
        self.starts.set(self.starts.get() + 1);
    }

    fn stop(&self) {
        self.stops.set(self.stops.get() + 1);
    }
}

macro_rules! counted {
    ($service:ty) => {
        impl Service for $service {
            async fn start(&self, _: &Context) -> Result<(), Failure> {
                self.counts.start();
                Ok(())
            }

            async fn stop(&self, _: &Context) -> Result<(), Failure> {
                self.counts.stop();
                Ok(())
            }
        }
    };
}

trait Logger {
    fn log(&self, what: &str);
}

struct NamedLogger {
    counts: Rc<Counts>,
    lines: Cell<u64>,
}

impl Logger for NamedLogger {
    fn log(&self, what: &str) {
        self.lines.set(self.lines.get() + what.len() as u64);
    }
}

counted!(NamedLogger);

struct Loggers {
    counts: Rc<Counts>,
}

counted!(Loggers);

struct Worker {
    counts: Rc<Counts>,
    logger: Cell<Option<Rc<dyn Logger>>>,
}

impl Service for Worker {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        let logger = self
            .logger
            .take()
            .ok_or_else(|| Failure::new("no logger"))?;
        logger.log("start");
        self.logger.set(Some(logger));
        self.counts.start();
        Ok(())
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.counts.stop();
        Ok(())
    }
}

fn options() -> Options {
    Options {
        services_max: 4_000_000,
        ..Options::default()
    }
}

fn add_loggers(services: &Services, counts: &Rc<Counts>) {
    let made = counts.clone();
    let loggers = Loggers {
        counts: counts.clone(),
    };
    let loggers = Definition::new("loggers", loggers).makes::<Rc<dyn Logger>, _>(
        move |_, request: &FactoryRequest| {
            let logger = NamedLogger {
                counts: made.clone(),
                lines: Cell::new(0),
            };
            Definition::new(request.name(), logger).provides::<Rc<dyn Logger>>(|logger| logger)
        },
    );
    services.add(loggers).expect("there is room");
}

fn add_by_callback(services: &Services, counts: &Rc<Counts>, number: i64) {
    let worker = Worker {
        counts: counts.clone(),
        logger: Cell::new(None),
    };
    let worker = Definition::new("worker", worker)
        .property("number", number)
        .property("group", "bench")
        .requires::<Rc<dyn Logger>>(
            |worker, logger, _| worker.logger.set(Some(logger)),
            |worker, _| worker.logger.set(None),
        );
    services.add(worker).expect("there is room");
}

fn add_by_constructor(services: &Services, counts: &Rc<Counts>, number: i64) {
    let counts = counts.clone();
    let worker = Definition::construct("worker", move |logger: Rc<dyn Logger>| Worker {
        counts: counts.clone(),
        logger: Cell::new(Some(logger)),
    })
    .property("number", number)
    .property("group", "bench");
    services.add(worker).expect("there is room");
}

fn start(count: u64, add: fn(&Services, &Rc<Counts>, i64)) -> Took {
    let began = Clocks::read();
    let counts = Rc::new(Counts::default());
    let theirs = counts.clone();
    prony_engine::run(&Config::default(), |handle| async move {
        let services = Services::new(&handle, options());
        add_loggers(&services, &theirs);
        let root = Loggers {
            counts: theirs.clone(),
        };
        services
            .add(Definition::new("root", root))
            .expect("there is room");
        for number in 0..count {
            add(&services, &theirs, number as i64);
        }
        services.settle().await.expect("nothing is in the way");
        services.stop_all().await;
    })
    .expect("a loop");
    let took = began.elapsed();
    let expected = 2 * count + 2;
    assert_eq!(
        (counts.starts.get(), counts.stops.get()),
        (expected, expected)
    );
    took
}

struct Provider {
    counts: Rc<Counts>,
}

counted!(Provider);

struct Dependent {
    counts: Rc<Counts>,
    provider: Cell<Option<Rc<Provider>>>,
}

counted!(Dependent);

fn start_stop(cycles: u64) -> Took {
    let began = Clocks::read();
    let counts = Rc::new(Counts::default());
    let theirs = counts.clone();
    prony_engine::run(&Config::default(), |handle| async move {
        let services = Services::new(&handle, options());
        let dependent = Dependent {
            counts: theirs.clone(),
            provider: Cell::new(None),
        };
        let dependent = Definition::new("A", dependent).requires::<Rc<Provider>>(
            |dependent, provider, _| dependent.provider.set(Some(provider)),
            |dependent, _| dependent.provider.set(None),
        );
        let provider = Provider { counts: theirs };
        let provider = Definition::new("B", provider).provides::<Rc<Provider>>(|provider| provider);
        services.add(dependent).expect("there is room");
        let provider = services.add(provider).expect("there is room");
        services.settle().await.expect("nothing is in the way");
        for _ in 0..cycles {
            services.stop(provider).await.expect("it stops");
            services.start(provider).await.expect("it starts");
        }
        services.stop_all().await;
    })
    .expect("a loop");
    let took = began.elapsed();
    let expected = 2 * cycles + 2;
    assert_eq!(
        (counts.starts.get(), counts.stops.get()),
        (expected, expected)
    );
    took
}

/// Seconds by the clock on the wall, and of CPU.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    cpu: f64,
}

struct Clocks {
    wall: prony_base::Instant,
    cpu: prony_base::Nanos,
}

impl Clocks {
    fn read() -> Clocks {
        Clocks {
            wall: monotonic(),
            cpu: thread_cpu(),
        }
    }

    fn elapsed(&self) -> Took {
        Took {
            wall: monotonic().since(self.wall).as_secs_f64(),
            cpu: (thread_cpu() - self.cpu).as_secs_f64(),
        }
    }
}

/// The least of each: on a machine that does other things too, CPU time is the
/// better measure.
fn best(times: u32, work: impl Fn() -> Took) -> Took {
    let all: Vec<Took> = (0..times).map(|_| work()).collect();
    let least = |of: fn(&Took) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
    Took {
        wall: least(|took| took.wall),
        cpu: least(|took| took.cpu),
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "all".to_owned());
    let count: Option<u64> = arguments.next().and_then(|count| count.parse().ok());
    let all = name == "all";
    let show = |what: &str, count: u64, took: Took| {
        let each = took.cpu * 1e9 / count as f64;
        let (wall, cpu) = (took.wall * 1e3, took.cpu * 1e3);
        println!("{what:<22} {count:>9}  {wall:>9.3} ms  cpu {cpu:>9.3} ms  {each:>6.1} ns each");
    };
    if all || name == "start" {
        let count = count.unwrap_or(10_000);
        show(
            "start, by callback",
            2 * count + 2,
            best(5, || start(count, add_by_callback)),
        );
        show(
            "start, by constructor",
            2 * count + 2,
            best(5, || start(count, add_by_constructor)),
        );
    }
    if all || name == "start-stop" {
        let count = count.unwrap_or(1_000_000);
        show("start-stop", count, best(5, || start_stop(count)));
    }
}
