//! The loop itself: one turn runs the tasks that are due, hands what they asked
//! for to the driver, waits, takes in what has happened, and looks at the clock.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;

use prony_base::{Instant, Nanos, clock};

use crate::buffers::Pool;
use crate::config::{Config, DriverKind, Error, LoopStats};
use crate::driver::{self, Blocking, Chosen, Completions, Driver, Wait};
use crate::net::Net;
use crate::patience::Patience;
use crate::remote::{Registration, Remote};
use crate::slab::Key;
use crate::tasks::{Entered, Main, Tasks, Waiter};
use crate::wakeup_latency::WakeupLatency;
use crate::wheel::Wheel;

/// Looks for wakes of other threads before a loop that spins asks the kernel: some
/// microseconds.
const SPINS_MAX: u32 = 128;
/// Turns in a row in which a loop that spins need not ask the kernel: where the driver
/// does not know whether a turn is of use, and where it does.
const BLIND_SKIPS_MAX: u32 = 16;
const SKIPS_MAX: u32 = 1024;
/// Polls in one turn before the kernel is asked again.
const POLLS_MAX: usize = 1024;

/// The action of a timer that is due.
pub(crate) enum Alarm {
    Wake(Waiter),
    /// The stream has had its time to get its last bytes out.
    Linger(Key),
}

/// One loop.
pub(crate) struct Core {
    pub tasks: Rc<Tasks>,
    pub net: RefCell<Net>,
    pub timers: RefCell<Wheel<Alarm>>,
    pub driver: RefCell<Box<dyn Driver>>,
    pub pool: Rc<Pool>,
    /// The way in which the driver's sockets block; None where they are no descriptors.
    pub blocking: Option<Blocking>,
    pub fallback: Option<String>,
    remote: Arc<Remote>,
    done: RefCell<Completions>,
    alarms: RefCell<Vec<Alarm>>,
    remote_woken: RefCell<Vec<u32>>,
    turns: Cell<u64>,
    pub spin: bool,
    /// Set where the loop may look for news before it sleeps.
    patience: Option<RefCell<Patience>>,
    /// Set where timers are to be on time.
    wakeup_latency: Option<RefCell<WakeupLatency>>,
    /// Turns since the kernel was asked.
    skipped: Cell<u32>,
    /// The last turn brought wakes from other threads.
    remote_lately: Cell<bool>,
    _registration: Registration,
}

impl Core {
    /// One turn: the whole engine in six lines.
    pub fn turn(&self, main: &mut Main<'_>, wait: Wait) -> Result<(), Error> {
        self.run_tasks(main);
        if main.is_finished() {
            return Ok(());
        }
        self.exchange(wait)?;
        self.expire_timers();
        self.take_remote_wakes();
        self.turns.set(self.turns.get() + 1);
        Ok(())
    }

    fn run_tasks(&self, main: &mut Main<'_>) {
        let _entered = Entered::new(self.tasks.loop_id, self.tasks.queue.clone());
        self.tasks.run(main, POLLS_MAX);
    }

    /// Submits what tasks asked for, waits, and takes in what has happened.
    fn exchange(&self, wait: Wait) -> Result<(), Error> {
        let mut driver = self.driver.borrow_mut();
        let mut net = self.net.borrow_mut();
        let mut done = self.done.borrow_mut();
        net.flush(&mut **driver, &mut done);
        while !done.is_empty() {
            // What completed at once may want more at once: the next posted bytes.
            net.take_in(&mut **driver, &mut done);
            net.flush(&mut **driver, &mut done);
        }
        self.start_linger_timers(&mut net, &**driver);
        if self.spin && wait != Wait::Not && self.spins(&mut **driver) {
            return Ok(());
        }
        let planned = self.wake_early(self.shorten(wait), &**driver);
        if let (Some(patience), Wait::Until(end)) = (&self.patience, planned) {
            let looked = self.looks(&mut patience.borrow_mut(), end, &mut **driver, &mut done);
            if !matches!(looked, Ok(false)) {
                net.take_in(&mut **driver, &mut done);
                return looked.map(drop);
            }
        }
        let wait = self.fall_asleep(planned);
        let turned = self.sleep(wait, &mut **driver, &mut done);
        if let (Some(latency), Wait::Until(wanted)) = (&self.wakeup_latency, planned) {
            let now = driver.now();
            match wait == planned && done.is_empty() && now >= wanted {
                true => latency.borrow_mut().note_wakeup(wanted, now),
                false => latency.borrow_mut().note_interrupted(),
            }
        }
        if wait != Wait::Not && !self.spin {
            self.remote.wake_up();
        }
        net.take_in(&mut **driver, &mut done);
        turned
    }

    /// One turn of the driver, of which a loop that looks before it sleeps takes the time.
    fn sleep(
        &self,
        wait: Wait,
        driver: &mut dyn Driver,
        done: &mut Completions,
    ) -> Result<(), Error> {
        let begun = self.patience.as_ref().map(|_| driver.now());
        let turned = driver.turn(wait, done).map_err(waiting);
        if let (Some(patience), Some(begun), Wait::Until(_)) = (&self.patience, begun, wait) {
            patience.borrow_mut().slept(driver.now().since(begun));
        }
        turned
    }

    /// Looks for news until there are some, or `end`, where that is worthwhile. True when the loop need not sleep.
    fn looks(
        &self,
        patience: &mut Patience,
        end: Instant,
        driver: &mut dyn Driver,
        done: &mut Completions,
    ) -> Result<bool, Error> {
        let begun = driver.now();
        if !patience.is_worthwhile(begun) {
            return Ok(false);
        }
        // What tasks asked for goes out first; that it is sent is no news.
        driver.turn(Wait::Not, done).map_err(waiting)?;
        if !done.is_empty() || self.remote.is_pending() {
            self.note_interrupted();
            return Ok(true);
        }
        let cpu = clock::thread_cpu();
        let mut now = driver.now();
        let until = end.min(now + patience.limit);
        let mut length = Nanos::ZERO;
        let has_found = loop {
            let from = now;
            while now < until && driver.is_quiet_at(now) && !self.remote.is_pending() {
                std::hint::spin_loop();
                now = driver.now();
            }
            length += now.since(from);
            if self.remote.is_pending() {
                break true;
            }
            if now >= until {
                break false;
            }
            // To take what is there is work, and to find nothing was part of the look.
            driver.turn(Wait::Not, done).map_err(waiting)?;
            if !done.is_empty() {
                break true;
            }
            let after = driver.now();
            length += after.since(now);
            now = after;
        };
        // While others had the core, the thread did not look.
        patience.looked(length.min(clock::thread_cpu() - cpu), has_found);
        if has_found {
            self.note_interrupted();
        }
        Ok(has_found || now >= end)
    }

    /// The wait for a timer was ended by something else.
    fn note_interrupted(&self) {
        if let Some(latency) = &self.wakeup_latency {
            latency.borrow_mut().note_interrupted();
        }
    }

    /// No wait while a task is due, nor one past the next timer.
    fn shorten(&self, wait: Wait) -> Wait {
        if !self.tasks.queue.is_empty() || self.remote.is_pending() {
            return Wait::Not;
        }
        match (wait, self.timers.borrow().next()) {
            (Wait::Until(limit), Some(next)) => Wait::Until(limit.min(next)),
            _ => wait,
        }
    }

    /// Where timers are to be on time, the wait ends somewhat before the next one.
    fn wake_early(&self, wait: Wait, driver: &dyn Driver) -> Wait {
        match (&self.wakeup_latency, wait) {
            (Some(latency), Wait::Until(end)) => latency.borrow_mut().wait(end, driver.now()),
            _ => wait,
        }
    }

    /// From here on another thread that wakes a task ends the wait.
    fn fall_asleep(&self, wait: Wait) -> Wait {
        match wait {
            Wait::Until(_) if !self.spin && !self.remote.fall_asleep() => Wait::Not,
            _ => wait,
        }
    }

    /// Waits for what needs no kernel: a task that is due, or woken by another thread.
    /// False when the kernel is to be asked: it has something or may have, or it is
    /// time to.
    fn spins(&self, driver: &mut dyn Driver) -> bool {
        let skipped = self.skipped.replace(0);
        // Where the driver does not know, only other threads are looked after for a while
        // after they have woken a task.
        let is_blind = self.remote_lately.get();
        for _ in 0..SPINS_MAX {
            let skips_max = match driver.has_news() {
                Some(true) => 0,
                Some(false) => SKIPS_MAX,
                None if is_blind => BLIND_SKIPS_MAX,
                None => 0,
            };
            if skipped >= skips_max {
                return false;
            }
            if !self.tasks.queue.is_empty() || self.remote.is_pending() {
                self.skipped.set(skipped + 1);
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    fn expire_timers(&self) {
        let mut timers = self.timers.borrow_mut();
        if timers.is_empty() {
            return;
        }
        let mut alarms = self.alarms.borrow_mut();
        timers.expire(self.driver.borrow().now(), &mut alarms);
        for alarm in alarms.drain(..) {
            match alarm {
                Alarm::Wake(mut waiter) => waiter.wake(&self.tasks.queue),
                Alarm::Linger(stream) => self.net.borrow_mut().reset_stream(stream),
            }
        }
    }

    fn start_linger_timers(&self, net: &mut Net, driver: &dyn Driver) {
        if net.lingering.is_empty() {
            return;
        }
        let due = driver.now() + net.limits.linger;
        let mut timers = self.timers.borrow_mut();
        for stream in net.lingering.drain(..) {
            timers.add(due, Alarm::Linger(stream));
        }
    }

    fn take_remote_wakes(&self) {
        self.remote_lately.set(self.remote.is_pending());
        if self.remote_lately.get() {
            let mut woken = self.remote_woken.borrow_mut();
            self.remote.drain(&mut woken);
            for task in woken.drain(..) {
                self.tasks.queue.wake(task);
            }
        }
    }

    /// True when a turn would do something without waiting.
    pub fn is_due(&self) -> bool {
        !self.tasks.queue.is_empty()
            || self.remote.is_pending()
            || self.net.borrow().has_pending_ops()
    }

    /// A time not later than the next timer.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.borrow().next()
    }

    pub fn kind(&self) -> DriverKind {
        self.driver.borrow().kind()
    }

    pub fn allows_threads(&self) -> bool {
        self.driver.borrow().allows_threads()
    }

    pub fn now(&self) -> Instant {
        self.driver.borrow().now()
    }

    pub fn turns(&self) -> u64 {
        self.turns.get()
    }

    pub fn stats(&self) -> LoopStats {
        let net = self.net.borrow();
        let driver = self.driver.borrow().stats();
        LoopStats {
            turns: self.turns.get(),
            submissions: net.submissions,
            completions: net.completions,
            enters: driver.enters,
            polls: self.tasks.polls(),
            pool_exhausted: self.pool.exhausted(),
            pool_buffers: self.pool.len() as u64,
            coalescing: driver.coalescing,
            spun: (self.patience.as_ref()).map_or(Nanos::ZERO, |patience| patience.borrow().spun),
        }
    }

    /// Ends the loop: drops all tasks, and gives posted bytes the linger time to
    /// get out.
    pub fn finish(&self) -> Result<(), Error> {
        let deadline = self.begin_finish();
        while !self.try_finish(deadline)? {
            self.turn(&mut Main::none(), Wait::Until(deadline))?;
        }
        Ok(())
    }

    /// Drops all tasks and starts closing all sockets; yields the time until which
    /// posted bytes may go out.
    pub fn begin_finish(&self) -> Instant {
        self.drop_tasks();
        let left = self.net.borrow_mut().close_all();
        drop(left);
        self.now() + self.net.borrow().limits.linger
    }

    /// A turn that does not wait; true when nothing is left to close.
    pub fn try_finish(&self, deadline: Instant) -> Result<bool, Error> {
        let mut main = Main::none();
        self.turn(&mut main, Wait::Not)?;
        if self.net.borrow().streams.len() > 0 {
            if self.now() < deadline {
                return Ok(false);
            }
            self.net.borrow_mut().reset_all();
            self.turn(&mut main, Wait::Not)?;
        }
        Ok(true)
    }

    fn drop_tasks(&self) {
        let _entered = Entered::new(self.tasks.loop_id, self.tasks.queue.clone());
        self.tasks.cancel_all();
    }
}

/// The error of a turn that failed.
fn waiting(cause: std::io::Error) -> Error {
    Error::System {
        call: "waiting for events",
        cause,
    }
}

/// Holds a loop while it runs, and takes its memory back from the kernel at the
/// end, also when a task panics.
///
/// INVARIANT: a buffer that the kernel may still use is never freed: where it
/// cannot be taken back, the whole loop is leaked.
pub(crate) struct Running(pub Rc<Core>);

impl Drop for Running {
    fn drop(&mut self) {
        // There are some only after a panic or an error. Should their end panic too, the
        // memory is taken back all the same.
        let dropped = catch_unwind(AssertUnwindSafe(|| self.0.drop_tasks()));
        if !self.0.reclaim_buffers() {
            std::mem::forget(self.0.clone());
        }
        if let Err(payload) = dropped {
            resume_unwind(payload);
        }
    }
}

impl Core {
    /// Closes what is left and takes all memory back from the kernel. False where
    /// that failed.
    fn reclaim_buffers(&self) -> bool {
        let _left;
        let (Ok(mut net), Ok(mut driver)) =
            (self.net.try_borrow_mut(), self.driver.try_borrow_mut())
        else {
            return false;
        };
        _left = net.close_all();
        net.reset_all();
        let mut done = Completions::new();
        // Twice, because cancelling what is outstanding comes before closing.
        for _ in 0..2 {
            net.flush(&mut **driver, &mut done);
            let turned = driver.turn(Wait::Not, &mut done);
            net.take_in(&mut **driver, &mut done);
            if turned.is_err() {
                break;
            }
        }
        driver.quiesce()
    }
}

impl Core {
    /// A loop on the driver that the settings choose.
    pub fn new(config: &Config) -> Result<Rc<Core>, Error> {
        config.check()?;
        let remote = Remote::with_event().map_err(|errno| Error::System {
            call: "eventfd",
            cause: errno.into(),
        })?;
        let pool = Pool::new(config.recv_buffer_bytes, config.recv_buffers);
        let chosen = driver::choose(config, &pool, &remote)?;
        Core::with_driver(config, pool, remote, chosen)
    }

    /// A loop on this driver.
    pub fn with_driver(
        config: &Config,
        pool: Rc<Pool>,
        remote: Arc<Remote>,
        (driver, fallback): Chosen,
    ) -> Result<Rc<Core>, Error> {
        let registration = Registration::new(remote.clone())
            .ok_or_else(|| Error::Config("more than 65536 loops in one process".to_owned()))?;
        let tasks = Tasks::new(registration.loop_id);
        // A simulated thread is always on time, and reading its clock is an event.
        let wakes_late = driver.wakes_late();
        let wakes_early = config.precise_timers && !config.spin && wakes_late;
        Ok(Rc::new(Core {
            blocking: driver.blocking(),
            net: RefCell::new(Net::new(config, tasks.queue.clone())),
            timers: RefCell::new(Wheel::new(driver.now())),
            tasks,
            driver: RefCell::new(driver),
            pool,
            fallback,
            remote,
            done: RefCell::default(),
            alarms: RefCell::default(),
            remote_woken: RefCell::default(),
            turns: Cell::new(0),
            spin: config.spin,
            // Where time is simulated, looking does not make it go on.
            patience: (Some(config.look_before_sleep).filter(|_| wakes_late && !config.spin))
                .and_then(|limit| Patience::new(limit, config.core_is_own))
                .map(RefCell::new),
            wakeup_latency: wakes_early.then(|| RefCell::new(WakeupLatency::new())),
            skipped: Cell::new(0),
            remote_lately: Cell::new(false),
            _registration: registration,
        }))
    }
}
