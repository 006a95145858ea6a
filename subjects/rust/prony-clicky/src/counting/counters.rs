//! The counters: atomics that every loop adds to and the keeper reads.
//! Not for: what is done when a click is refused or kept.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::name::Name;

/// One counter. Its total is `base + counted`; both only rise, and so does the total.
///
/// It has a line of the processor's cache to itself: loops on several cores that add to
/// different counters do not wait for each other.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Counter {
    /// Clicks that this process has counted since its start.
    counted: AtomicU64,
    /// What was kept before it started, and what other instances have added since.
    base: AtomicU64,
}

impl Counter {
    pub fn total(&self) -> u64 {
        // Neither number says anything about other memory, so no order is asked for.
        let base = self.base.load(Ordering::Relaxed);
        base.saturating_add(self.counted.load(Ordering::Relaxed))
    }

    /// Adds clicks; the total with them.
    #[inline]
    pub fn add(&self, clicks: u64) -> u64 {
        let before = self.counted.fetch_add(clicks, Ordering::Relaxed);
        let base = self.base.load(Ordering::Relaxed);
        base.saturating_add(before).saturating_add(clicks)
    }

    /// Clicks that this process has counted.
    pub fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// Takes over what others had counted, unless more is known already.
    pub fn raise_base(&self, base: u64) {
        self.base.fetch_max(base, Ordering::Relaxed);
    }
}

/// All counters, by name and by number; number 0 is the root counter's.
#[derive(Debug)]
pub(super) struct Counters {
    pub root: Arc<Counter>,
    named: RwLock<Named>,
    counters_max: usize,
}

#[derive(Debug)]
struct Named {
    numbers: HashMap<Name, u32>,
    counters: Vec<(Name, Arc<Counter>)>,
}

/// There are as many counters as there may be.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct TooManyCounters;

impl Counters {
    pub fn new(counters_max: usize) -> Counters {
        let root = Arc::new(Counter::default());
        let named = Named {
            numbers: HashMap::from([(Name::ROOT, 0)]),
            counters: vec![(Name::ROOT, root.clone())],
        };
        Counters {
            root,
            named: RwLock::new(named),
            counters_max: counters_max.clamp(1, u32::MAX as usize),
        }
    }

    /// The counter of this name and its number, if there is one.
    pub fn find(&self, name: &Name) -> Option<(u32, Arc<Counter>)> {
        let named = self.named.read().unwrap_or_else(PoisonError::into_inner);
        let number = *named.numbers.get(name)?;
        Some((number, named.counters[number as usize].1.clone()))
    }

    /// The counter of this name, from now on.
    pub fn ensure(&self, name: &Name) -> Result<(u32, Arc<Counter>), TooManyCounters> {
        if let Some(found) = self.find(name) {
            return Ok(found);
        }
        let mut named = self.named.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&number) = named.numbers.get(name) {
            return Ok((number, named.counters[number as usize].1.clone()));
        }
        if named.counters.len() >= self.counters_max {
            return Err(TooManyCounters);
        }
        let number = named.counters.len() as u32;
        let counter = Arc::new(Counter::default());
        named.numbers.insert(*name, number);
        named.counters.push((*name, counter.clone()));
        Ok((number, counter))
    }

    /// The counters from number `first` on, in the order of their numbers.
    pub fn since(&self, first: usize) -> Vec<(Name, Arc<Counter>)> {
        let named = self.named.read().unwrap_or_else(PoisonError::into_inner);
        named.counters.get(first..).unwrap_or_default().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_never_goes_down() {
        let counter = Counter::default();
        counter.raise_base(10);
        assert_eq!(counter.add(5), 15);
        counter.raise_base(3);
        assert_eq!((counter.total(), counter.counted()), (15, 5));
    }

    #[test]
    fn counters_are_numbered_in_order_up_to_their_limit() {
        let counters = Counters::new(2);
        let name = Name::new("a").expect("a name");
        assert_eq!(counters.find(&name).map(|found| found.0), None);
        assert_eq!(counters.ensure(&name).map(|found| found.0), Ok(1));
        assert_eq!(counters.ensure(&Name::ROOT).map(|found| found.0), Ok(0));
        let other = Name::new("b").expect("a name");
        assert_eq!(counters.ensure(&other).map(drop), Err(TooManyCounters));
        assert_eq!(counters.since(1).len(), 1);
    }
}
