//! Counting as a loop's tasks see it: clicks are added, and waited for, here.
//! Not for: what is done with them then (`keeper`).
//!
//! A click that is answered from memory is an addition to an atomic number. One that is
//! answered when it is durable goes onto the table that all loops share, and its task waits
//! at this desk; the keeper wakes the loop once for each batch, and the desk wakes the tasks.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use prony_base::Nanos;
use prony_engine::{Handle, Receiver, Task, mailbox};

use super::counters::Counter;
use super::name::Name;
use super::setting::{Ack, TOTAL_MAX};
use super::shared::{News, Refusal, Shared};

/// How often those who wait for a change are looked after. A total that changes a hundred
/// thousand times a second is told so many times a second and no more.
pub const CHANGES_EVERY: Nanos = Nanos::from_millis(50);

/// News that may wait for a loop: more than requests may wait there. Between two looks at
/// its news a loop polls many tasks, and each may put clicks into a batch of its own.
const NEWS_MAX: usize = 1 << 17;

/// A loop's desk. It stays on its thread; put it into an `Rc` to share it among tasks.
pub struct Desk {
    shared: Arc<Shared>,
    local: Rc<Local>,
    place: usize,
    _news: Task<()>,
}

struct Local {
    handle: Handle,
    /// Counters that were asked for here, so that nothing is locked for them again. As many
    /// as there are counters.
    known: RefCell<HashMap<Name, (u32, Arc<Counter>)>>,
    line: RefCell<Line>,
    watchers: RefCell<Watchers>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.shared.intake.rise(self.place);
    }
}

impl Desk {
    pub(super) fn new(shared: Arc<Shared>, handle: &Handle) -> Desk {
        let (sender, receiver) = mailbox(NEWS_MAX);
        let place = shared.intake.sit(sender);
        let local = Rc::new(Local {
            handle: handle.clone(),
            known: RefCell::default(),
            line: RefCell::default(),
            watchers: RefCell::default(),
        });
        let news = handle.spawn(read_news(local.clone(), receiver));
        Desk {
            shared,
            local,
            place,
            _news: news,
        }
    }

    /// When a click is answered, by the setting.
    pub fn ack(&self) -> Ack {
        self.shared.ack
    }

    /// The total; zero where nobody has clicked.
    pub fn total(&self, name: &Name) -> u64 {
        if name.is_root() {
            return self.shared.counters.root.total();
        }
        self.find(name).map_or(0, |(_, counter)| counter.total())
    }

    /// Counts clicks and answers as the setting says: [`add`](Desk::add) or
    /// [`add_synced`](Desk::add_synced).
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn click(&self, name: &Name, clicks: u64) -> Result<u64, Refusal> {
        match self.shared.ack {
            Ack::Memory => self.add(name, clicks),
            Ack::Synced => self.add_synced(name, clicks).await,
        }
    }

    /// Counts clicks in memory; the total with them. For the root counter it allocates
    /// nothing and asks the kernel nothing.
    ///
    /// # Errors
    /// [`Refusal`]: then nothing was counted.
    #[inline]
    pub fn add(&self, name: &Name, clicks: u64) -> Result<u64, Refusal> {
        if name.is_root() {
            return self.add_to(&self.shared.counters.root, clicks);
        }
        if let Some((_, counter)) = self.local.known.borrow().get(name) {
            return self.add_to(counter, clicks);
        }
        self.add_to_unknown(name, clicks)
    }

    /// Counts clicks once they are durable; a total that is durable and has them. The total
    /// is not higher for anyone before that.
    ///
    /// # Errors
    /// [`Refusal`]: then nothing was counted, or, when it is [`Refusal::Unsure`], perhaps.
    pub async fn add_synced(&self, name: &Name, clicks: u64) -> Result<u64, Refusal> {
        if !self.shared.keeps || clicks == 0 {
            return self.add(name, clicks);
        }
        has_room(self.total(name), clicks)?;
        self.shared.gate.enter(clicks)?;
        let put = self.ensure(name).and_then(|(number, counter)| {
            let batch = self.shared.intake.put(self.place, number, clicks)?;
            Ok((counter, batch))
        });
        let (counter, batch) = put.inspect_err(|_| self.shared.gate.leave(clicks))?;
        let mut waiting = Waiting {
            local: &self.local,
            slot: self.local.line.borrow_mut().wait_for(batch),
        };
        poll_fn(|cx| waiting.poll(cx)).await?;
        Ok(counter.total())
    }

    /// Waits until the total is another than `seen`; that total. Changes are seen every
    /// [`CHANGES_EVERY`], whatever loop or instance they come from.
    pub async fn changed(&self, name: &Name, seen: u64) -> u64 {
        loop {
            let total = self.total(name);
            if total != seen {
                return total;
            }
            self.next_look().await;
        }
    }

    /// Waits for the next look at all counters. All who wait at this desk share one timer.
    async fn next_look(&self) {
        let seen = self.local.watchers.borrow().looks;
        let mut left = None;
        poll_fn(|cx| self.local.poll_look(seen, &mut left, cx)).await;
    }

    fn find(&self, name: &Name) -> Option<(u32, Arc<Counter>)> {
        if let Some(known) = self.local.known.borrow().get(name) {
            return Some(known.clone());
        }
        let found = self.shared.counters.find(name)?;
        let mut known = self.local.known.borrow_mut();
        known.insert(*name, found.clone());
        Some(found)
    }

    fn ensure(&self, name: &Name) -> Result<(u32, Arc<Counter>), Refusal> {
        if let Some(found) = self.find(name) {
            return Ok(found);
        }
        let made = self.shared.counters.ensure(name);
        made.map_err(|_| Refusal::TooManyCounters)
    }

    /// Adds to a counter that this desk was not asked for yet, and that there may not be:
    /// clicks that are refused do not make it, and neither does none.
    fn add_to_unknown(&self, name: &Name, clicks: u64) -> Result<u64, Refusal> {
        if let Some((_, counter)) = self.find(name) {
            return self.add_to(&counter, clicks);
        }
        if clicks == 0 {
            return Ok(0);
        }
        has_room(0, clicks)?;
        let is_much = self.enter(clicks)?;
        let ensured = self.ensure(name).inspect_err(|_| {
            if self.shared.keeps {
                self.shared.gate.leave(clicks);
            }
        });
        Ok(self.count(&ensured?.1, clicks, is_much))
    }

    #[inline]
    fn add_to(&self, counter: &Counter, clicks: u64) -> Result<u64, Refusal> {
        has_room(counter.total(), clicks)?;
        let is_much = self.enter(clicks)?;
        Ok(self.count(counter, clicks, is_much))
    }

    /// Passes the gate, where there is one.
    #[inline]
    fn enter(&self, clicks: u64) -> Result<bool, Refusal> {
        Ok(self.shared.keeps && self.shared.gate.enter(clicks)?)
    }

    /// Counts clicks that were let in; the total.
    #[inline]
    fn count(&self, counter: &Counter, clicks: u64, is_much: bool) -> u64 {
        let total = counter.add(clicks);
        // Not before it is counted, or the keeper might look too early.
        if is_much {
            self.shared.intake.ask();
        }
        total
    }
}

/// Whether a counter may be raised by so much. Many at once may pass the limit by what each
/// of them adds, for which the stores' numbers have room.
#[inline]
fn has_room(total: u64, clicks: u64) -> Result<(), Refusal> {
    match total.saturating_add(clicks) > TOTAL_MAX {
        true => Err(Refusal::TotalFull),
        false => Ok(()),
    }
}

async fn read_news(local: Rc<Local>, mut receiver: Receiver<News>) {
    while let Some(news) = receiver.recv().await {
        let wakers = local.line.borrow_mut().settle(&news);
        for waker in wakers {
            waker.wake();
        }
    }
    // The keeper is gone: whoever still waits is told so.
    let wakers = local.line.borrow_mut().end();
    for waker in wakers {
        waker.wake();
    }
}

/// Tasks that wait for their batches, in the batches' order.
#[derive(Default)]
struct Line {
    slots: Vec<Slot>,
    free: Vec<u32>,
    order: VecDeque<(u64, u32)>,
}

enum Slot {
    Free,
    Waiting(Option<Waker>),
    /// Its task is gone before its batch was.
    Left,
    Settled(Result<(), Refusal>),
}

impl Line {
    fn wait_for(&mut self, batch: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::Free);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Slot::Waiting(None);
        self.order.push_back((batch, slot));
        slot
    }

    /// Who is to be woken because of the news.
    fn settle(&mut self, news: &News) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(&(batch, slot)) = self.order.front()
            && batch <= news.batch
        {
            self.order.pop_front();
            // The news of an earlier batch is missing: a later one says nothing about it.
            let verdict = match batch == news.batch {
                true => news.verdict,
                false => Err(Refusal::Unsure),
            };
            wakers.extend(self.settle_one(slot, verdict));
        }
        wakers
    }

    fn settle_one(&mut self, slot: u32, verdict: Result<(), Refusal>) -> Option<Waker> {
        let settled = Slot::Settled(verdict);
        match std::mem::replace(&mut self.slots[slot as usize], settled) {
            Slot::Waiting(waker) => waker,
            _ => {
                self.release(slot);
                None
            }
        }
    }

    /// No news will come any more.
    fn end(&mut self) -> Vec<Waker> {
        self.settle(&News {
            batch: u64::MAX,
            verdict: Err(Refusal::Unsure),
        })
    }

    fn release(&mut self, slot: u32) {
        self.slots[slot as usize] = Slot::Free;
        self.free.push(slot);
    }
}

/// A task's place in the line.
struct Waiting<'a> {
    local: &'a Local,
    slot: u32,
}

impl Waiting<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        let mut line = self.local.line.borrow_mut();
        match &mut line.slots[self.slot as usize] {
            Slot::Settled(verdict) => Poll::Ready(*verdict),
            slot => {
                *slot = Slot::Waiting(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut line = self.local.line.borrow_mut();
        match line.slots[self.slot as usize] {
            Slot::Settled(_) => line.release(self.slot),
            _ => line.slots[self.slot as usize] = Slot::Left,
        }
    }
}

/// Those who wait for the next look.
#[derive(Default)]
struct Watchers {
    /// Looks so far.
    looks: u64,
    wakers: Vec<Waker>,
    is_looking: bool,
}

impl Local {
    /// One look further than the one that `seen` counts. A task leaves one waker for a look,
    /// however often it is polled meanwhile.
    fn poll_look(
        self: &Rc<Local>,
        seen: u64,
        left: &mut Option<Waker>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        let mut watchers = self.watchers.borrow_mut();
        if watchers.looks != seen {
            return Poll::Ready(());
        }
        if left.as_ref().is_none_or(|left| !left.will_wake(cx.waker())) {
            watchers.wakers.push(cx.waker().clone());
            *left = Some(cx.waker().clone());
        }
        if !std::mem::replace(&mut watchers.is_looking, true) {
            self.handle.spawn(look(self.clone())).detach();
        }
        Poll::Pending
    }
}

/// Looks as long as anybody waits for it.
async fn look(local: Rc<Local>) {
    loop {
        local.handle.sleep(CHANGES_EVERY).await;
        let mut watchers = local.watchers.borrow_mut();
        watchers.looks += 1;
        let wakers = std::mem::take(&mut watchers.wakers);
        watchers.is_looking = !wakers.is_empty();
        drop(watchers);
        if wakers.is_empty() {
            return;
        }
        for waker in wakers {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_for_its_own_batch_alone() {
        let mut line = Line::default();
        let [missed, told, later] = [3, 4, 5].map(|batch| line.wait_for(batch));
        let wakers = line.settle(&News {
            batch: 4,
            verdict: Ok(()),
        });
        assert!(wakers.is_empty(), "nobody was polled yet");
        let slot = |slot: u32| &line.slots[slot as usize];
        assert!(matches!(slot(missed), Slot::Settled(Err(Refusal::Unsure))));
        assert!(matches!(slot(told), Slot::Settled(Ok(()))));
        assert!(matches!(slot(later), Slot::Waiting(None)));
    }
}
