//! A small pipeline of coroutines: a generator of orders, workers that share an oven,
//! a receiver that counts, a deadline for it all; and what became of the tasks.
//!
//! `cargo run -p prony-runtime --example coroutines`

use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::{Config, run};
use prony_runtime::coroutines::{Coroutines, Generator, ManualEvent, Mutex, Scope, channel};

fn main() {
    let report = run(&Config::default(), |handle| async move {
        let coroutines = Coroutines::new(&handle);
        let scope = Scope::new(&coroutines);
        scope.set_timeout(Nanos::from_secs(5));

        let oven = Rc::new(Mutex::new(0));
        let opened = Rc::new(ManualEvent::new());
        let (baked, mut shelf) = channel(2);
        for baker in ["Ada", "Grace"] {
            let (oven, opened, baked) = (oven.clone(), opened.clone(), baked.clone());
            let handle = handle.clone();
            let baking = async move {
                opened.wait().await;
                let mut loaves = Generator::new(async move |yielder| {
                    for loaf in 1..=3 {
                        yielder.emit(format!("{baker}'s loaf {loaf}")).await;
                    }
                });
                while let Some(loaf) = loaves.next().await {
                    let mut count = oven.lock().await; // one loaf at a time
                    handle.sleep(Nanos::from_millis(1)).await;
                    *count += 1;
                    drop(count);
                    if baked.send(loaf).await.is_err() {
                        return; // the shop has closed
                    }
                }
            };
            scope.spawn_named(baker, baking).detach();
        }
        let burning = async { panic!("the apprentice dropped a tray") };
        scope.spawn_named("apprentice", burning).detach();
        drop(baked);

        opened.set();
        let mut sold = Vec::new();
        while let Some(loaf) = shelf.recv().await {
            sold.push(loaf);
        }
        let ended = scope.close().await;
        (sold, ended, coroutines.snapshot())
    });
    let (sold, ended, tasks) = report.expect("the loop runs");
    for loaf in &sold {
        println!("{loaf}");
    }
    for failure in &ended.failures {
        let name = failure.name.as_deref().unwrap_or("?");
        println!("{name}: {}", failure.message);
    }
    println!("{tasks:?}");
    assert_eq!((sold.len(), ended.finished, ended.failed), (6, 2, 1));
}
