//! Services, feature by feature, on the simulated driver: time jumps, so that
//! nothing waits.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use prony_base::Nanos;
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle};
use prony_runtime::services::{
    AddError, Change, Context, Definition, FactoryRequest, Failure, Filter, Live, Many, Options,
    Reason, Service, ServiceError, Services, State, What,
};

/// Runs `work` in a simulated loop and yields what it returned.
fn run<T: 'static, F: Future<Output = T> + 'static>(work: impl FnOnce(Handle) -> F) -> T {
    let mut world = World::new(1, SimOptions::default());
    let outcome = world.spawn_loop(&Config::default(), work);
    world.run(Nanos::from_secs(3_600)).expect("it ends");
    outcome.take().expect("it returned")
}

fn with_services<T: 'static, F: Future<Output = T> + 'static>(
    work: impl FnOnce(Services) -> F,
) -> T {
    run(|handle| work(Services::new(&handle, Options::default())))
}

type Log = Rc<RefCell<Vec<String>>>;

/// What a service does when it is started or stopped.
#[derive(Clone, Copy, Default, PartialEq)]
enum Does {
    #[default]
    Well,
    Sleeps(u64),
    Fails,
    Panics,
    NeverEnds,
}

/// Notes each start and stop.
#[derive(Default)]
struct Noted {
    name: &'static str,
    log: Log,
    start: Cell<Does>,
    stop: Cell<Does>,
}

impl Noted {
    fn new(name: &'static str, log: &Log) -> Noted {
        let log = log.clone();
        Noted {
            name,
            log,
            ..Noted::default()
        }
    }

    fn starting(self, does: Does) -> Noted {
        self.start.set(does);
        self
    }

    fn stopping(self, does: Does) -> Noted {
        self.stop.set(does);
        self
    }

    fn note(&self, sign: &str) {
        self.log.borrow_mut().push(format!("{sign}{}", self.name));
    }

    async fn go(&self, does: Does, context: &Context) -> Result<(), Failure> {
        match does {
            Does::Well => Ok(()),
            Does::Sleeps(millis) => {
                context.handle().sleep(Nanos::from_millis(millis)).await;
                Ok(())
            }
            Does::Fails => Err(Failure::new("out of luck")),
            Does::Panics => panic!("out of order"),
            Does::NeverEnds => std::future::pending().await,
        }
    }
}

impl Service for Noted {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        self.go(self.start.get(), context).await?;
        self.note("+");
        Ok(())
    }

    async fn stop(&self, context: &Context) -> Result<(), Failure> {
        self.note("-");
        self.go(self.stop.get(), context).await
    }
}

trait Cart {}
trait Store {}
trait Cache {}
trait Plugin {
    fn name(&self) -> &str;
}
impl Cart for Noted {}
impl Store for Noted {}
impl Cache for Noted {}
impl Plugin for Noted {
    fn name(&self) -> &str {
        self.name
    }
}

fn noted(name: &'static str, log: &Log) -> Definition<Noted> {
    Definition::new(name, Noted::new(name, log))
}

fn store(name: &'static str, log: &Log) -> Definition<Noted> {
    noted(name, log).provides::<Rc<dyn Store>>(|service| service)
}

trait Needs {
    fn store(self) -> Self;
    fn cart(self) -> Self;
}

impl Needs for Definition<Noted> {
    fn store(self) -> Self {
        self.requires::<Rc<dyn Store>>(|_, _, _| (), |_, _| ())
    }
    fn cart(self) -> Self {
        self.requires::<Rc<dyn Cart>>(|_, _, _| (), |_, _| ())
    }
}

fn taken(log: &Log) -> String {
    log.borrow_mut().drain(..).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_required_starts_first_and_stops_last_whatever_the_order_of_adding() {
    with_services(|services| async move {
        let log = Log::default();
        let cart = noted("cart", &log)
            .store()
            .provides::<Rc<dyn Cart>>(|cart| cart);
        services.add(noted("shop", &log).cart()).unwrap();
        services.add(cart).unwrap();
        services.add(store("store", &log)).unwrap();
        assert_eq!(services.settle().await, Ok(()));
        assert_eq!(taken(&log), "+store +cart +shop");
        services.stop_all().await;
        assert_eq!(taken(&log), "-shop -cart -store");
        assert_eq!(services.running(), 0);
    });
}

#[test]
fn services_start_by_themselves_soon() {
    with_services(|services| async move {
        let log = Log::default();
        let id = services.add(store("store", &log)).unwrap();
        assert_eq!(services.state(id), Some(State::Waiting));
        services.handle().yield_now().await;
        services.handle().yield_now().await;
        assert_eq!(services.state(id), Some(State::Running));
    });
}

#[test]
fn a_dependent_stops_before_what_it_requires_and_starts_again_when_it_returns() {
    with_services(|services| async move {
        let log = Log::default();
        let shop = services.add(noted("shop", &log).store()).unwrap();
        let id = services.add(store("store", &log)).unwrap();
        services.settle().await.unwrap();
        taken(&log);
        services.stop(id).await.unwrap();
        assert_eq!(taken(&log), "-shop -store");
        assert_eq!(services.state(shop), Some(State::Waiting));
        services.start(id).await.unwrap();
        assert_eq!(taken(&log), "+store +shop");
        services.restart(id).await.unwrap();
        assert_eq!(taken(&log), "-shop -store +store +shop");
        services.remove(id).await.unwrap();
        assert_eq!(taken(&log), "-shop -store");
        assert_eq!(services.state(id), None);
        services.add(store("another", &log)).unwrap();
        services.settle().await.unwrap();
        assert_eq!(taken(&log), "+another +shop");
    });
}

#[test]
fn starts_and_stops_that_take_time_run_side_by_side_where_they_may() {
    with_services(|services| async move {
        let log = Log::default();
        let slow = |name, millis| {
            let noted = Noted::new(name, &log)
                .starting(Does::Sleeps(millis))
                .stopping(Does::Sleeps(millis));
            Definition::new(name, noted)
        };
        let began = services.handle().now();
        services
            .add(slow("store", 20).provides::<Rc<dyn Store>>(|store| store))
            .unwrap();
        services.add(slow("shop", 10).store()).unwrap();
        services.add(slow("other", 5)).unwrap();
        services.settle().await.unwrap();
        assert_eq!(taken(&log), "+other +store +shop");
        let now = services.handle().now();
        assert_eq!(now.since(began).0 / 1_000_000, 30);
        services.stop_all().await;
        assert_eq!(taken(&log), "-shop -other -store");
        assert_eq!(services.handle().now().since(now).0 / 1_000_000, 30);
    });
}

struct App {
    store: Rc<dyn Store>,
    cache: Option<Rc<dyn Cache>>,
    live: Live<Rc<dyn Cache>>,
    plugins: Many<Rc<dyn Plugin>>,
    name: String,
}

impl Service for App {}

fn app() -> Definition<App> {
    let make = |store: Rc<dyn Store>,
                cache: Option<Rc<dyn Cache>>,
                context: Context,
                live: Live<Rc<dyn Cache>>,
                plugins: Many<Rc<dyn Plugin>>| App {
        store,
        cache,
        live,
        plugins,
        name: context.name().to_string(),
    };
    Definition::construct("app", make)
}

fn plugin(name: &'static str, log: &Log) -> Definition<Noted> {
    noted(name, log)
        .property("colour", name)
        .provides::<Rc<dyn Plugin>>(|plugin| plugin)
}

#[test]
fn a_constructor_gets_what_its_arguments_say_and_a_new_instance_for_each_start() {
    with_services(|services| async move {
        let log = Log::default();
        let id = services.add(app()).unwrap();
        services.settle().await.unwrap_err();
        assert!(
            services.instance::<App>(id).is_none(),
            "made only when all is there"
        );
        services.add(store("store", &log)).unwrap();
        services.settle().await.unwrap();
        let first = services.instance::<App>(id).unwrap();
        assert!(first.cache.is_none() && first.live.get().is_none() && first.plugins.is_empty());
        assert_eq!(first.name, "app");
        assert_eq!(
            Rc::strong_count(&first.store),
            3,
            "its own, the registry's and the table's"
        );

        // Plugins come and go while it runs; the static option makes it anew.
        let red = services.add(plugin("red", &log)).unwrap();
        services.add(plugin("blue", &log)).unwrap();
        services.settle().await.unwrap();
        let names = |app: &App| {
            app.plugins
                .to_vec()
                .iter()
                .map(|one| one.name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&first), ["red", "blue"]);
        let (_, properties) = first.plugins.with_properties().swap_remove(1);
        assert_eq!(properties.get("colour").unwrap().as_str(), Some("blue"));
        services.remove(red).await.unwrap();
        assert_eq!(names(&first), ["blue"]);

        let cache = noted("cache", &log).provides::<Rc<dyn Cache>>(|cache| cache);
        let cache = services.add(cache).unwrap();
        services.settle().await.unwrap();
        let second = services.instance::<App>(id).unwrap();
        assert!(!Rc::ptr_eq(&first, &second));
        assert!(second.cache.is_some() && second.live.get().is_some());
        assert_eq!(names(&second), ["blue"]);
        services.stop(cache).await.unwrap();
        services.settle().await.unwrap();
        assert!(services.instance::<App>(id).unwrap().cache.is_none());
    });
}

#[test]
fn a_live_option_comes_and_goes_without_a_restart() {
    struct Reader(Live<Rc<dyn Cache>>);
    impl Service for Reader {}
    with_services(|services| async move {
        let log = Log::default();
        let reader = Definition::construct("reader", |cache: Live<Rc<dyn Cache>>| Reader(cache));
        let id = services.add(reader).unwrap();
        services.settle().await.unwrap();
        let reader = services.instance::<Reader>(id).unwrap();
        assert_eq!(format!("{:?}", reader.0), "Live(not there)");
        let cache = noted("cache", &log).provides::<Rc<dyn Cache>>(|cache| cache);
        let cache = services.add(cache).unwrap();
        services.settle().await.unwrap();
        assert!(reader.0.get().is_some());
        services.stop(cache).await.unwrap();
        assert!(reader.0.get().is_none());
        assert!(Rc::ptr_eq(
            &reader,
            &services.instance::<Reader>(id).unwrap()
        ));
    });
}

#[derive(Default)]
struct Listens {
    heard: Log,
}

impl Service for Listens {}

#[test]
fn callbacks_tell_of_optional_and_many_while_the_service_runs() {
    with_services(|services| async move {
        let log = Log::default();
        let heard = Log::default();
        let listens = Listens {
            heard: heard.clone(),
        };
        let say = |listens: &Listens, what: String| listens.heard.borrow_mut().push(what);
        let definition = Definition::new("listens", listens)
            .many::<Rc<dyn Plugin>>(
                move |one, plugin, properties| {
                    let colour = properties.get("colour").unwrap();
                    say(one, format!("+{} {colour}", plugin.name()));
                },
                move |one, plugin| say(one, format!("-{}", plugin.name())),
            )
            .optional::<Rc<dyn Cache>>(
                move |one, _, _| say(one, "+cache".to_owned()),
                move |one, _| say(one, "-cache".to_owned()),
            );
        let red = services.add(plugin("red", &log)).unwrap();
        let id = services.add(definition).unwrap();
        services.settle().await.unwrap();
        assert_eq!(taken(&heard), "+red red");
        let cache = noted("cache", &log).provides::<Rc<dyn Cache>>(|cache| cache);
        let cache = services.add(cache).unwrap();
        services.add(plugin("blue", &log)).unwrap();
        services.settle().await.unwrap();
        assert_eq!(taken(&heard), "+cache +blue blue");
        services.stop(cache).await.unwrap();
        services.remove(red).await.unwrap();
        assert_eq!(taken(&heard), "-cache -red");
        services.stop(id).await.unwrap();
        assert_eq!(taken(&heard), "-blue");
        services.start(cache).await.unwrap();
        services.start(id).await.unwrap();
        assert_eq!(taken(&heard), "+blue blue +cache");
    });
}

trait Logger {
    fn of(&self) -> String;
}

struct NamedLogger(String);

impl Service for NamedLogger {}

impl Logger for NamedLogger {
    fn of(&self) -> String {
        self.0.clone()
    }
}

fn loggers(log: &Log) -> Definition<Noted> {
    noted("loggers", log).makes::<Rc<dyn Logger>, _>(|_, request: &FactoryRequest| {
        let level = request
            .property("level")
            .map_or("info".to_owned(), ToString::to_string);
        let logger = NamedLogger(format!("{}@{level}", request.name()));
        Definition::new(format!("logger of {}", request.name()), logger)
            .provides::<Rc<dyn Logger>>(|logger| logger)
    })
}

struct Logs(Rc<dyn Logger>);

impl Service for Logs {}

fn logs(name: &'static str) -> Definition<Logs> {
    Definition::construct(name, |logger: Rc<dyn Logger>| Logs(logger))
}

#[test]
fn a_factory_makes_one_for_each_requester_and_takes_it_away_with_it() {
    with_services(|services| async move {
        let log = Log::default();
        let web = services
            .add(logs("web").property("level", "debug"))
            .unwrap();
        let shop = services.add(logs("shop")).unwrap();
        let factory = services.add(loggers(&log)).unwrap();
        services.settle().await.unwrap();
        assert_eq!(services.len(), 5);
        assert_eq!(services.instance::<Logs>(web).unwrap().0.of(), "web@debug");
        assert_eq!(services.instance::<Logs>(shop).unwrap().0.of(), "shop@info");
        assert!(
            services.get::<Rc<dyn Logger>>().is_none(),
            "they are not for others"
        );

        services.stop(web).await.unwrap();
        assert_eq!(services.len(), 5, "kept for its return");
        services.remove(web).await.unwrap();
        services.settle().await.unwrap();
        assert_eq!(services.len(), 3);
        assert!(services.find("logger of web").is_none());

        services.stop(factory).await.unwrap();
        assert_eq!(services.len(), 2, "what it made goes with it");
        assert_eq!(services.state(shop), Some(State::Waiting));
        services.start(factory).await.unwrap();
        services.settle().await.unwrap();
        assert_eq!(services.state(shop), Some(State::Running));
        assert_eq!(services.len(), 3);
        services.stop_all().await;
        assert_eq!(services.running(), 0);
        assert_eq!(taken(&log), "+loggers -loggers +loggers -loggers");
    });
}

#[test]
fn a_factory_that_makes_the_wrong_thing_or_panics_fails_its_requester_with_the_reason() {
    with_services(|services| async move {
        let log = Log::default();
        let wrong = noted("wrong", &log).makes::<Rc<dyn Logger>, _>(|_, _: &FactoryRequest| {
            Definition::new("odd", NamedLogger(String::new()))
        });
        let wrong = services.add(wrong).unwrap();
        let web = services.add(logs("web")).unwrap();
        services.settle().await.unwrap_err();
        let made_odd = "the factory wrong made odd, which does not provide dyn Logger";
        assert_eq!(
            services.reason(web),
            Some(Reason::NotMade(made_odd.to_owned()))
        );
        services.remove(wrong).await.unwrap();
        let panics = noted("panics", &log)
            .makes::<Rc<dyn Logger>, NamedLogger>(|_, _: &FactoryRequest| panic!("no paper"));
        let panics = services.add(panics).unwrap();
        let error = services.start(web).await.unwrap_err().to_string();
        assert_eq!(error, "web: the factory panics panicked: no paper");
        services.remove(panics).await.unwrap();
        services.add(loggers(&log)).unwrap();
        assert_eq!(services.start(web).await, Ok(()));
    });
}

#[test]
fn filters_choose_by_value_and_by_predicate() {
    with_services(|services| async move {
        let log = Log::default();
        let in_region = |name, region: &'static str| store(name, &log).property("region", region);
        services.add(in_region("berlin", "eu")).unwrap();
        services.add(in_region("dallas", "us")).unwrap();
        let equal = noted("by value", &log)
            .store()
            .filter::<Rc<dyn Store>>(Filter::equal("region", "us"));
        let matching =
            noted("by predicate", &log)
                .store()
                .filter::<Rc<dyn Store>>(Filter::matching(|properties| {
                    properties
                        .get("region")
                        .is_some_and(|region| region.to_string().starts_with('e'))
                }));
        let nobody = noted("nobody", &log)
            .store()
            .filter::<Rc<dyn Store>>(Filter::equal("region", "mars"));
        let equal = services.add(equal).unwrap();
        let matching = services.add(matching).unwrap();
        services.add(nobody).unwrap();
        let error = services.settle().await.unwrap_err().to_string();
        assert_eq!(
            error,
            "nobody -> dyn Store: nobody provides it with region=mars (2 without)"
        );
        let bound = |name: &str| {
            let snapshot = services.snapshot();
            let service = snapshot
                .services
                .iter()
                .find(|one| &*one.name == name)
                .unwrap();
            let provider = service.needs[0].bound_to[0];
            services.name(provider).unwrap().to_string()
        };
        assert_eq!(bound("by value"), "dallas");
        assert_eq!(bound("by predicate"), "berlin");
        services
            .stop(services.find("dallas").unwrap())
            .await
            .unwrap();
        assert_eq!(services.state(equal), Some(State::Waiting));
        assert_eq!(services.state(matching), Some(State::Running));
        services.add(in_region("olympus", "mars")).unwrap();
        services.settle().await.unwrap_err();
        assert_eq!(bound("nobody"), "olympus");
    });
}

#[test]
fn a_service_may_require_from_another_what_it_provides_itself() {
    with_services(|services| async move {
        let log = Log::default();
        services.add(store("disk", &log)).unwrap();
        services.add(store("cached", &log).store()).unwrap();
        let filter = Filter::matching(|properties| properties.is_empty());
        services.settle().await.unwrap();
        assert_eq!(taken(&log), "+disk +cached");
        assert!(filter.accepts(&services.properties(services.find("disk").unwrap()).unwrap()));
    });
}

#[test]
fn one_arc_serves_several_loops() {
    trait Metrics {
        fn count(&self) -> u64;
    }
    struct Counter(std::sync::atomic::AtomicU64);
    impl Metrics for Counter {
        fn count(&self) -> u64 {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        }
    }
    type Shared = Arc<dyn Metrics + Send + Sync>;
    struct Holder(Shared);
    impl Service for Holder {}
    struct User(Shared);
    impl Service for User {
        async fn start(&self, _: &Context) -> Result<(), Failure> {
            self.0.count();
            Ok(())
        }
    }
    let metrics: Shared = Arc::new(Counter(0.into()));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let metrics = metrics.clone();
            std::thread::spawn(move || {
                prony_engine::run(&Config::default(), |handle| async move {
                    let services = Services::new(&handle, Options::default());
                    let holder = Definition::new("metrics", Holder(metrics))
                        .provides::<Shared>(|holder| holder.0.clone());
                    services.add(holder).unwrap();
                    services
                        .add(Definition::construct("user", |metrics: Shared| {
                            User(metrics)
                        }))
                        .unwrap();
                    services.settle().await.unwrap();
                    services.stop_all().await;
                })
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
    assert_eq!(metrics.count(), 2);
    assert_eq!(Arc::strong_count(&metrics), 1);
}

#[test]
fn a_start_that_fails_panics_or_never_ends_is_recorded_and_does_not_hold_the_rest() {
    with_services(|services| async move {
        let log = Log::default();
        let add = |name, does| {
            let noted = Noted::new(name, &log).starting(does);
            services.add(Definition::new(name, noted)).unwrap()
        };
        let fails = add("fails", Does::Fails);
        let panics = add("panics", Does::Panics);
        let hangs = add("hangs", Does::NeverEnds);
        let well = add("well", Does::Well);
        let problems = services.settle().await.unwrap_err();
        insta::assert_snapshot!(problems, @"
        fails: its start failed: out of luck
        panics: its start panicked: out of order
        hangs: its start was not over after 10.0s and was dropped
        ");
        assert_eq!(taken(&log), "+well");
        for id in [fails, panics, hangs] {
            assert_eq!(services.state(id), Some(State::Failed));
        }
        assert_eq!(services.state(well), Some(State::Running));
        // Asked again, it may do better.
        services
            .instance::<Noted>(fails)
            .unwrap()
            .start
            .set(Does::Well);
        assert_eq!(services.start(fails).await, Ok(()));
        assert_eq!(services.reason(fails), None);
        assert_eq!(taken(&log), "+fails");
    });
}

#[test]
fn a_stop_that_fails_panics_or_never_ends_is_recorded_and_the_rest_stops() {
    with_services(|services| async move {
        let log = Log::default();
        let base = services.add(store("store", &log)).unwrap();
        let mut ids = Vec::new();
        for (name, does) in [
            ("fails", Does::Fails),
            ("panics", Does::Panics),
            ("hangs", Does::NeverEnds),
        ] {
            let noted = Noted::new(name, &log).stopping(does);
            let definition = Definition::new(name, noted)
                .store()
                .stop_timeout(Nanos::from_millis(50));
            ids.push(services.add(definition).unwrap());
        }
        services.settle().await.unwrap();
        taken(&log);
        let began = services.handle().now();
        assert_eq!(services.stop(base).await, Ok(()));
        assert_eq!(taken(&log), "-fails -panics -hangs -store");
        assert_eq!(services.handle().now().since(began).0 / 1_000_000, 50);
        let reasons: Vec<String> = ids
            .iter()
            .map(|&id| services.reason(id).unwrap().to_string())
            .collect();
        insta::assert_snapshot!(reasons.join("\n"), @"
        its stop failed: out of luck
        its stop panicked: out of order
        its stop was not over after 50.0ms and was dropped
        ");
        assert_eq!(services.remove(ids[0]).await, Ok(()));
        services.start(base).await.unwrap();
        services.start(ids[1]).await.unwrap();
        let error = services.remove(ids[1]).await.unwrap_err();
        assert!(matches!(error, ServiceError::Failed { .. }), "{error}");
        assert_eq!(services.state(ids[1]), None);
    });
}

#[test]
fn constructors_and_callbacks_that_panic_fail_only_their_service() {
    with_services(|services| async move {
        let log = Log::default();
        let make = |_: Rc<dyn Store>| -> Noted { panic!("no tools") };
        let made = services.add(Definition::construct("made", make)).unwrap();
        let called = noted("called", &log)
            .requires::<Rc<dyn Store>>(|_, _, _| panic!("not now"), |_, _| panic!("nor now"));
        let called = services.add(called).unwrap();
        services.add(store("store", &log)).unwrap();
        services.settle().await.unwrap_err();
        let reason = |id| services.reason(id).unwrap().to_string();
        assert_eq!(reason(made), "its start panicked: no tools");
        assert_eq!(reason(called), "its start panicked: not now");
        assert_eq!(taken(&log), "+store");
        services.stop_all().await;
        assert_eq!(taken(&log), "-store");
    });
}

#[test]
fn all_is_taken_back_also_where_callbacks_for_that_panic() {
    with_services(|services| async move {
        let log = Log::default();
        let gone = log.clone();
        let uses = noted("uses", &log)
            .requires::<Rc<dyn Store>>(|_, _, _| (), |_, _| panic!("not now"))
            .requires::<Rc<dyn Cart>>(|_, _, _| (), |_, _| panic!("nor now"))
            .requires::<Rc<Noted>>(
                |_, _, _| (),
                move |_, other| gone.borrow_mut().push(format!("<{}", other.name)),
            );
        services.add(store("store", &log)).unwrap();
        let cart = noted("cart", &log).provides::<Rc<dyn Cart>>(|cart| cart);
        services.add(cart).unwrap();
        let other = noted("other", &log).provides::<Rc<Noted>>(|other| other);
        services.add(other).unwrap();
        let uses = services.add(uses).unwrap();
        for _ in 0..2 {
            services.settle().await.unwrap();
            assert_eq!(services.running(), 4);
            services.stop(uses).await.unwrap();
            services.start(uses).await.unwrap();
        }
        taken(&log);
        services.stop_all().await;
        assert_eq!(taken(&log), "-uses <other -other -cart -store");
    });
}

#[test]
fn problems_are_named_with_the_path_to_their_cause() {
    with_services(|services| async move {
        let log = Log::default();
        trait Connection {}
        impl Connection for Noted {}
        let redis = noted("RedisCart", &log)
            .requires::<Rc<dyn Connection>>(|_, _, _| (), |_, _| ())
            .provides::<Rc<dyn Cart>>(|cart| cart);
        services.add(noted("Shop", &log).cart()).unwrap();
        services.add(redis).unwrap();
        let missing = services.check().unwrap_err();
        insta::assert_snapshot!(missing, @"Shop -> dyn Cart -> RedisCart -> dyn Connection: nobody provides it");
        assert_eq!(services.settle().await.unwrap_err(), missing);
        let shop = services.find("Shop").unwrap();
        let error = services.start(shop).await.unwrap_err();
        insta::assert_snapshot!(error, @"Shop does not run: Shop -> dyn Cart -> RedisCart -> dyn Connection: nobody provides it");

        let broken = Noted::new("Socket", &log).starting(Does::Fails);
        let socket =
            Definition::new("Socket", broken).provides::<Rc<dyn Connection>>(|socket| socket);
        let socket = services.add(socket).unwrap();
        insta::assert_snapshot!(services.settle().await.unwrap_err(), @"Shop -> dyn Cart -> RedisCart -> dyn Connection -> Socket: its start failed: out of luck");
        services.stop(socket).await.unwrap();
        services
            .instance::<Noted>(socket)
            .unwrap()
            .start
            .set(Does::Well);
        services.start(socket).await.unwrap();
        services.settle().await.unwrap();
        services.stop(socket).await.unwrap();
        insta::assert_snapshot!(services.check().unwrap_err(), @"Shop -> dyn Cart -> RedisCart -> dyn Connection -> Socket: it is stopped");
    });
}

#[test]
fn two_candidates_are_one_too_many_whichever_of_them_runs() {
    with_services(|services| async move {
        let log = Log::default();
        let broken = Noted::new("broken", &log).starting(Does::Fails);
        let shop = services.add(noted("shop", &log).store()).unwrap();
        services.add(store("one", &log)).unwrap();
        let broken = services
            .add(Definition::new("broken", broken).provides::<Rc<dyn Store>>(|store| store))
            .unwrap();
        let problems = services.settle().await.unwrap_err();
        insta::assert_snapshot!(problems, @"
        shop -> dyn Store: several provide it (one, broken), and no filter says which
        broken: its start failed: out of luck
        ");
        services.remove(broken).await.unwrap();
        assert_eq!(services.settle().await, Ok(()));
        assert_eq!(services.state(shop), Some(State::Running));
        // One that runs keeps what it has; check tells that it could not start anew.
        services.add(store("two", &log)).unwrap();
        services.settle().await.unwrap();
        assert_eq!(services.state(shop), Some(State::Running));
        insta::assert_snapshot!(services.check().unwrap_err(), @"shop -> dyn Store: several provide it (one, two), and no filter says which");
        services.stop(shop).await.unwrap();
        services.start(shop).await.unwrap_err();
    });
}

#[test]
fn a_cycle_is_printed_as_one() {
    with_services(|services| async move {
        let log = Log::default();
        let cart = noted("cart", &log)
            .store()
            .provides::<Rc<dyn Cart>>(|cart| cart);
        services.add(noted("shop", &log).cart()).unwrap();
        services.add(cart).unwrap();
        services.add(store("store", &log).cart()).unwrap();
        let problems = services.settle().await.unwrap_err();
        insta::assert_snapshot!(problems, @"cart -> dyn Store -> store -> dyn Cart -> cart: a cycle");
    });
}

#[test]
fn a_long_path_is_shortened_and_a_long_chain_needs_no_stack() {
    struct Link;
    impl Service for Link {}
    trait Chain {}
    impl Chain for Link {}
    with_services(|services| async move {
        let length = 50_000_i64;
        for number in 0..length {
            let link = Definition::new(format!("link {number}"), Link)
                .property("number", number)
                .requires::<Rc<dyn Chain>>(|_, _, _| (), |_, _| ())
                .filter::<Rc<dyn Chain>>(Filter::equal("number", number + 1))
                .provides::<Rc<dyn Chain>>(|link| link);
            services.add(link).unwrap();
        }
        let problems = services.settle().await.unwrap_err();
        insta::assert_snapshot!(problems, @"link 0 -> dyn Chain -> link 1 -> dyn Chain -> link 2 -> dyn Chain -> link 3 -> dyn Chain -> (99984 steps) -> link 49996 -> dyn Chain -> link 49997 -> dyn Chain -> link 49998 -> dyn Chain -> link 49999 -> dyn Chain: nobody provides it with number=50000 (50000 without)");
        let last = Definition::new("last", Link)
            .property("number", length)
            .provides::<Rc<dyn Chain>>(|link| link);
        let last = services.add(last).unwrap();
        services.settle().await.unwrap();
        assert_eq!(services.running() as i64, length + 1);
        services.stop(last).await.unwrap();
        assert_eq!(services.running(), 0);
    });
}

#[test]
fn limits_are_errors_that_name_them() {
    run(|handle| async move {
        let options = Options {
            services_max: 1,
            ..Options::default()
        };
        let services = Services::new(&handle, options);
        let log = Log::default();
        let twice = store("twice", &log).provides::<Rc<dyn Store>>(|store| store);
        let errors = [
            services.add(twice).unwrap_err(),
            services
                .add(noted("lone", &log).filter::<Rc<dyn Cart>>(Filter::equal("a", 1)))
                .unwrap_err(),
            services
                .add((0..65).fold(noted("rich", &log), |rich, n| {
                    rich.property(format!("p{n}"), n)
                }))
                .unwrap_err(),
            services
                .add((0..1025).fold(noted("needy", &log), |needy, _| needy.store()))
                .unwrap_err(),
            {
                services.add(store("first", &log)).unwrap();
                services.add(store("second", &log)).unwrap_err()
            },
        ];
        assert!(matches!(
            errors[4],
            AddError::TooMany {
                services_max: 1,
                ..
            }
        ));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(errors.join("\n"), @"
        cannot add twice: it provides dyn Store twice
        cannot add lone: it filters dyn Cart, which it does not need
        cannot add rich: more than 64 properties
        cannot add needy: more than 1024 needs or offers
        cannot add second: there are 1 services already, the limit services_max
        ");
    });
}

#[test]
fn changes_are_told_in_order_until_the_observation_ends() {
    with_services(|services| async move {
        let log = Log::default();
        let told: Log = Log::default();
        let theirs = told.clone();
        let observation = services.observe(move |change: &Change| {
            let what = match &change.what {
                What::Added => "added".to_owned(),
                What::State(state) => state.to_string(),
                What::Failed(reason) => reason.to_string(),
                What::Removed => "removed".to_owned(),
            };
            theirs.borrow_mut().push(format!("{}:{what}", change.name));
        });
        services.add(noted("shop", &log).store()).unwrap();
        let id = services.add(store("store", &log)).unwrap();
        services.settle().await.unwrap();
        assert_eq!(
            taken(&told),
            "shop:added store:added store:starting store:running shop:starting shop:running"
        );
        services.remove(id).await.unwrap();
        assert_eq!(
            taken(&told),
            "store:leaving shop:leaving shop:stopping shop:waiting store:stopping store:stopped store:removed"
        );
        drop(observation);
        services.stop_all().await;
        assert_eq!(taken(&told), "");
    });
}

#[test]
fn a_service_may_ask_for_changes_while_it_starts() {
    struct Spawner(Log);
    impl Service for Spawner {
        async fn start(&self, context: &Context) -> Result<(), Failure> {
            let services = context.services().ok_or_else(|| Failure::new("gone"))?;
            let child = services.add(noted("child", &self.0))?;
            services.start(child).await?;
            self.0.borrow_mut().push("+parent".to_owned());
            Ok(())
        }
    }
    with_services(|services| async move {
        let log = Log::default();
        services
            .add(Definition::new("parent", Spawner(log.clone())))
            .unwrap();
        services.settle().await.unwrap();
        assert_eq!(taken(&log), "+child +parent");
    });
}

/// Starts and stops after this many milliseconds.
struct Slow(u64);

impl Service for Slow {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        context.handle().sleep(Nanos::from_millis(self.0)).await;
        Ok(())
    }

    async fn stop(&self, context: &Context) -> Result<(), Failure> {
        context.handle().sleep(Nanos::from_millis(self.0)).await;
        Ok(())
    }
}

/// Counts how often it is polled.
async fn counted<T>(polls: &Cell<u64>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| {
        polls.set(polls.get() + 1);
        work.as_mut().poll(cx)
    })
    .await
}

#[test]
fn each_change_woke_all_who_waited_for_other_services() {
    const COUNT: u64 = 300;
    with_services(|services| async move {
        let handle = services.handle().clone();
        let ids: Vec<_> = (0..COUNT)
            .map(|number| {
                let definition = Definition::new("slow", Slow(number + 1)).stopped();
                services.add(definition).unwrap()
            })
            .collect();
        let polls = Rc::new(Cell::new(0));
        for starts in [true, false] {
            polls.set(0);
            let tasks: Vec<_> = ids
                .iter()
                .map(|&id| {
                    let (services, polls) = (services.clone(), polls.clone());
                    handle.spawn(async move {
                        match starts {
                            true => counted(&polls, services.start(id)).await,
                            false => counted(&polls, services.stop(id)).await,
                        }
                    })
                })
                .collect();
            let settling = {
                let (services, polls) = (services.clone(), polls.clone());
                handle.spawn(async move { counted(&polls, services.settle()).await })
            };
            for task in tasks {
                task.await.unwrap();
            }
            settling.await.unwrap();
            assert_eq!(services.running() as u64, if starts { COUNT } else { 0 });
            assert!(polls.get() <= 4 * COUNT, "{} polls", polls.get());
        }
    });
}

#[test]
fn who_waits_hears_that_a_service_is_wanted_again_or_gone() {
    with_services(|services| async move {
        let handle = services.handle().clone();
        let id = services.add(Definition::new("slow", Slow(5))).unwrap();
        services.settle().await.unwrap();
        let stopping = services.clone();
        let stopped = handle.spawn(async move { stopping.stop(id).await });
        handle.sleep(Nanos::from_millis(1)).await;
        services.start(id).await.unwrap();
        stopped.await.unwrap();
        let removing = services.clone();
        let removed = handle.spawn(async move { removing.remove(id).await });
        services.remove(id).await.unwrap();
        removed.await.unwrap();
        assert_eq!(services.start(id).await, Err(ServiceError::Unknown(id)));
    });
}

#[test]
fn nothing_is_left_when_the_registry_is_dropped() {
    let log = Log::default();
    let theirs = log.clone();
    with_services(|services| async move {
        services.add(loggers(&theirs)).unwrap();
        services.add(logs("web")).unwrap();
        services.add(store("store", &theirs)).unwrap();
        services.add(app()).unwrap();
        services.settle().await.unwrap();
        services
            .add(Definition::new(
                "slow",
                Noted::new("slow", &theirs).starting(Does::NeverEnds),
            ))
            .unwrap();
        services.handle().yield_now().await;
    });
    assert_eq!(Rc::strong_count(&log), 1);
}

#[test]
fn a_snapshot_says_how_things_stand() {
    with_services(|services| async move {
        let log = Log::default();
        let slow = Noted::new("store", &log).starting(Does::Sleeps(3));
        let store = Definition::new("store", slow)
            .property("region", "eu")
            .property("size", 3)
            .provides::<Rc<dyn Store>>(|store| store);
        services.add(store).unwrap();
        services.add(loggers(&log)).unwrap();
        services.add(logs("web")).unwrap();
        services.add(app()).unwrap();
        let cart = noted("cart", &log)
            .cart()
            .filter::<Rc<dyn Cart>>(Filter::equal("kind", "fast"));
        services.add(cart).unwrap();
        services
            .add(Definition::new(
                "bad",
                Noted::new("bad", &log).starting(Does::Fails),
            ))
            .unwrap();
        services.settle().await.unwrap_err();
        services.handle().sleep(Nanos::from_secs(2)).await;
        let snapshot = services.snapshot();
        insta::assert_snapshot!("snapshot_text", snapshot.to_string());
        insta::assert_snapshot!("snapshot_dot", snapshot.dot());
        insta::assert_snapshot!(
            "snapshot_json",
            serde_json::to_string_pretty(&snapshot).unwrap()
        );
    });
}
