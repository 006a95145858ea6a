//! A requires B. B is stopped, for which A stops first, and started, after which A
//! starts again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_runtime::services::{Context, Definition, Failure, Options, Service, Services};

use crate::crew::{Share, at_once};
use crate::{BenchError, Done, Order, Work};

/// How often each of the two started and stopped.
#[derive(Default)]
struct Counts {
    a_starts: Cell<u64>,
    b_starts: Cell<u64>,
    a_stops: Cell<u64>,
    b_stops: Cell<u64>,
}

fn count(cell: &Cell<u64>) -> Result<(), Failure> {
    cell.set(cell.get() + 1);
    Ok(())
}

struct A {
    counts: Rc<Counts>,
    b: RefCell<Option<Rc<B>>>,
}

impl Service for A {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        if self.b.borrow().is_none() {
            return Err(Failure::new("it starts without B"));
        }
        count(&self.counts.a_starts)
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        if self.b.borrow().is_none() {
            return Err(Failure::new("B went before it"));
        }
        count(&self.counts.a_stops)
    }
}

struct B {
    counts: Rc<Counts>,
}

impl Service for B {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        count(&self.counts.b_starts)
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        count(&self.counts.b_stops)
    }
}

pub fn run(order: &Order) -> Result<Done, BenchError> {
    at_once(order, "cycles", cycles)
}

fn cycles(order: &Order) -> Result<Share, BenchError> {
    let counts = Rc::new(Counts::default());
    let theirs = counts.clone();
    let went = prony_engine::run(&order.config(), |handle| async move {
        cycle(
            &Services::new(&handle, Options::default()),
            theirs,
            order.count,
        )
        .await
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
    } = &*counts;
    let all = [a_starts, b_starts, a_stops, b_stops].map(Cell::get);
    if all != [order.count + 1; 4] {
        return Err(wrong(format!(
            "starts of A and B, stops of A and B: {all:?}"
        )));
    }
    Ok(Share {
        bytes: 0,
        checksum: all[0] + 3 * all[1] + 5 * all[2] + 7 * all[3],
    })
}

async fn cycle(services: &Services, counts: Rc<Counts>, times: u64) -> Result<(), Failure> {
    let a = A {
        counts: counts.clone(),
        b: RefCell::new(None),
    };
    let a = Definition::new("A", a).requires::<Rc<B>>(
        |a, b, _| drop(a.b.replace(Some(b))),
        |a, _| drop(a.b.take()),
    );
    services.add(a)?;
    let b = services.add(Definition::new("B", B { counts }).provides::<Rc<B>>(|b| b))?;
    services.settle().await?;
    for _ in 0..times {
        services.stop(b).await?;
        services.start(b).await?;
    }
    services.settle().await?;
    services.stop_all().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cycle_stops_and_starts_both() {
        let order = Order {
            count: 100,
            threads: 2,
            ..Order::default()
        };
        let line = run(&order).unwrap().line;
        assert_eq!(line.count, 200);
        assert_eq!(line.checksum, (2 * 16 * 101).to_string());
    }
}
