use std::pin::pin;

use super::*;

/// A connection that carries nothing and can be told to be dead.
#[derive(Clone, Default)]
struct Fake {
    number: u32,
    is_dead: Rc<Cell<bool>>,
    can_pipeline: bool,
    pipelined: Rc<Cell<u32>>,
}

impl Fake {
    fn new(number: u32) -> Fake {
        Fake {
            number,
            ..Fake::default()
        }
    }
}

impl Exclusive for Fake {
    fn is_alive(&mut self, _: &mut Context<'_>) -> bool {
        !self.is_dead.get()
    }

    fn can_pipeline(&self) -> bool {
        self.can_pipeline
    }

    fn post_pipelined(&mut self, _: SendBuf) -> bool {
        self.pipelined.set(self.pipelined.get() + 1);
        true
    }

    async fn skip_response(&mut self, _: Method, _: u64, now: Instant) -> Option<Instant> {
        Some(now)
    }
}

/// No shared connections.
#[derive(Default)]
struct Unshared;

impl Multiplexed for Unshared {
    fn idle(&self) -> usize {
        0
    }

    fn waiting(&self) -> usize {
        0
    }

    fn evict(&self, _: Instant, _: Nanos) -> Option<Instant> {
        None
    }

    fn clear(&self) {}
}

type FakePool = Rc<Pool<Fake, Unshared>>;
type FakeHost = Rc<Host<Fake, Unshared>>;
type FakeGranted = Granted<Fake, Unshared>;

/// Runs `test` on a loop with a pool of these settings.
fn with_pool(settings: Settings, test: impl FnOnce(FakePool, Instant) + 'static) {
    let done = prony_engine::run(&prony_engine::Config::default(), async move |handle| {
        let pool = Pool::new(&handle, &settings);
        test(pool.clone(), handle.now());
        pool.close();
    });
    done.expect("the loop runs");
}

fn host(pool: &FakePool, name: &str) -> FakeHost {
    pool.host(Origin {
        secure: false,
        host: name.to_owned(),
        port: 80,
    })
}

/// What a request is given at once; None where it waits.
fn try_now(
    future: std::pin::Pin<&mut impl Future<Output = Result<FakeGranted, Error>>>,
) -> Option<FakeGranted> {
    let mut cx = Context::from_waker(Waker::noop());
    match future.poll(&mut cx) {
        Poll::Ready(granted) => Some(granted.unwrap_or_else(|error| panic!("{error}"))),
        Poll::Pending => None,
    }
}

/// A connection in a new slot.
fn connect(
    pool: &FakePool,
    host: &FakeHost,
    fake: Fake,
    now: Instant,
) -> Box<Pooled<Fake, Unshared>> {
    match try_now(pin!(pool.acquire(host, true, || None))) {
        Some(Granted::Slot(slot)) => Pooled::new(slot, fake, now),
        _ => panic!("there is no slot"),
    }
}

fn number_of(granted: Option<FakeGranted>) -> Option<u32> {
    match granted {
        Some(Granted::Used(connection, _)) => Some(connection.number),
        Some(Granted::Slot(_)) | None => None,
    }
}

#[test]
fn the_connection_that_was_used_last_is_reused_first_and_dead_ones_are_closed() {
    with_pool(Settings::default(), |pool, now| {
        let host = host(&pool, "a");
        let dead = Fake::new(3);
        for fake in [Fake::new(1), Fake::new(2), dead.clone()] {
            // Held until all are there: each is a new one.
            connect(&pool, &host, fake, now).release(now);
        }
        assert_eq!(pool.connections(), (3, 3));
        dead.is_dead.set(true);
        let granted = try_now(pin!(pool.acquire(&host, false, || None)));
        assert_eq!(pool.connections(), (2, 1));
        assert_eq!(number_of(granted), Some(2));
        // What was granted and dropped is closed.
        assert_eq!(pool.connections(), (1, 1));
    });
}

#[test]
fn a_free_slot_goes_to_the_request_that_has_waited_longest_over_all_hosts() {
    let settings = Settings {
        connections_max: 1,
        ..Settings::default()
    };
    with_pool(settings, |pool, now| {
        let (a, b) = (host(&pool, "a"), host(&pool, "b"));
        let busy = connect(&pool, &a, Fake::new(1), now);
        let mut first = pin!(pool.acquire(&b, false, || None));
        let mut second = pin!(pool.acquire(&a, false, || None));
        assert!(try_now(first.as_mut()).is_none());
        assert!(try_now(second.as_mut()).is_none());
        assert_eq!(pool.waiting(), 2);
        drop(busy);
        assert!(try_now(second.as_mut()).is_none());
        let slot = try_now(first.as_mut());
        assert!(matches!(slot, Some(Granted::Slot(_))));
        drop(slot);
        assert!(matches!(try_now(second.as_mut()), Some(Granted::Slot(_))));
    });
}

#[test]
fn pipelined_requests_get_the_connection_in_their_order_and_wait_again_once_it_breaks() {
    let settings = Settings {
        connections_max: 1,
        pipelining_max: 2,
        ..Settings::default()
    };
    with_pool(settings, |pool, now| {
        let host = host(&pool, "a");
        let pending = || {
            Some(Pending {
                head: SendBuf::Static(b"GET / HTTP/1.1\r\n\r\n"),
                method: Method::Get,
            })
        };
        let fake = Fake {
            can_pipeline: true,
            ..Fake::new(1)
        };
        let connection = connect(&pool, &host, fake.clone(), now);
        let mut first = pin!(pool.acquire(&host, false, pending));
        let mut second = pin!(pool.acquire(&host, false, pending));
        assert!(try_now(first.as_mut()).is_none());
        assert!(try_now(second.as_mut()).is_none());
        connection.release(now);
        assert_eq!(fake.pipelined.get(), 2);
        assert!(try_now(second.as_mut()).is_none());
        let connection = match try_now(first.as_mut()) {
            Some(Granted::Used(connection, Some(sent))) if sent == now => connection,
            _ => panic!("it is the first one's, which was pipelined"),
        };
        // It breaks: the second request is first in line for another connection.
        drop(connection);
        assert!(matches!(try_now(second.as_mut()), Some(Granted::Slot(_))));
        assert_eq!(pool.pipelined(), (2, 1));
    });
}
