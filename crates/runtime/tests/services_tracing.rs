//! What `tracing` is told: the life cycle of services, with spans around what runs in
//! their starts, and a task that panics while nobody awaits it.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use prony_engine::{Config, run};
use prony_runtime::coroutines::Coroutines;
use prony_runtime::services::{Context, Definition, Failure, Options, Service, Services};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Metadata, Subscriber};

/// Writes down each event as a line, after the span that it is in.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Written>>);

#[derive(Default)]
struct Written {
    lines: Vec<String>,
    /// By the number of the span, from 1.
    spans: Vec<String>,
    entered: Vec<usize>,
}

/// The fields of an event or a span, the message first.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.others, " {name}={value:?}"),
        };
        written.expect("strings take everything");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("prony_runtime")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut written = self.0.lock().expect("nobody panics with it");
        let name = span.metadata().name();
        written
            .spans
            .push(format!("{name}{{{}}}", fields.others.trim()));
        Id::from_u64(written.spans.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut written = self.0.lock().expect("nobody panics with it");
        let span = written
            .entered
            .last()
            .map(|&number| written.spans[number - 1].clone());
        let span = span.map_or_else(String::new, |span| format!("{span}: "));
        let (level, message) = (event.metadata().level(), &fields.message);
        let line = format!("{level} {span}{message}{}", fields.others);
        written.lines.push(line);
    }

    fn enter(&self, span: &Id) {
        let mut written = self.0.lock().expect("nobody panics with it");
        written.entered.push(span.into_u64() as usize);
    }

    fn exit(&self, _: &Id) {
        self.0.lock().expect("nobody panics with it").entered.pop();
    }
}

struct Shop;

impl Service for Shop {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        tracing::info!(target: "prony_runtime::test", "it opens");
        context.handle().yield_now().await;
        tracing::info!(target: "prony_runtime::test", "it is open");
        Ok(())
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        Err(Failure::new("the door is stuck"))
    }
}

#[test]
fn lives_of_services_and_unseen_panics_are_told_to_tracing() {
    let lines = Lines::default();
    let work = async |handle| {
        let services = Services::new(&handle, Options::default());
        let shop = services
            .add(Definition::new("shop", Shop))
            .expect("there is room");
        services.settle().await.expect("nothing is in the way");
        let stopped = services.remove(shop).await;
        stopped.expect_err("the door is stuck");
        let coroutines = Coroutines::new(&handle);
        // Without the hook's message, which would stand among those of the tests.
        let panic = |why: &'static str| async move { std::panic::resume_unwind(Box::new(why)) };
        let quiet = coroutines.spawn(panic("as its owner sees"));
        quiet.await.expect_err("it panicked");
        coroutines.spawn(panic("out of paper")).detach();
        coroutines
            .spawn_named("printer", panic("out of ink"))
            .detach();
        while handle.tasks() > 0 {
            handle.yield_now().await;
        }
    };
    with_default(lines.clone(), || run(&Config::default(), work)).expect("a loop");
    let written = lines.0.lock().expect("nobody panics with it");
    insta::assert_snapshot!(written.lines.join("\n"), @r#"
    DEBUG added service=shop id=0
    DEBUG starting service=shop id=0
    INFO start{service=shop id=0}: it opens
    INFO start{service=shop id=0}: it is open
    DEBUG running service=shop id=0
    DEBUG leaving service=shop id=0
    DEBUG stopping service=shop id=0
    WARN service failed service=shop id=0 reason=its stop failed: the door is stuck
    DEBUG failed service=shop id=0
    DEBUG removed service=shop id=0
    ERROR a task panicked, and nobody awaits it task="(no name)" panic="out of paper"
    ERROR a task panicked, and nobody awaits it task="printer" panic="out of ink"
    "#);
    assert!(written.entered.is_empty(), "each span is left");
}
