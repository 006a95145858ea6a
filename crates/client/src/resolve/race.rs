//! Connecting to the first of several addresses that answers ("happy eyeballs", RFC 8305).
//! Not for: what is connected, which the caller's own function does.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use prony_base::Nanos;
use prony_engine::{Handle, Sleep};

/// Addresses by turns of both families, beginning with that of the first, each once
/// (RFC 8305, section 4).
pub fn interleave(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut seen: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        if !seen.contains(&address) {
            seen.push(address);
        }
    }
    let Some(first) = seen.first().copied() else {
        return seen;
    };
    let (same, other): (Vec<_>, Vec<_>) = seen
        .into_iter()
        .partition(|address| address.is_ipv6() == first.is_ipv6());
    let (mut same, mut other) = (same.into_iter(), other.into_iter());
    let mut ordered = Vec::new();
    loop {
        let turn = [same.next(), other.next()];
        if turn == [None, None] {
            return ordered;
        }
        ordered.extend(turn.into_iter().flatten());
    }
}

/// Calls `connect` for one address after the other: for the next when `delay` has passed,
/// or at once when an attempt fails. The first that succeeds is the result, with its
/// address, and the others are dropped.
///
/// # Errors
/// Each address and what it failed with, in the order of `addresses`; none where that was
/// empty.
pub async fn race<T, F: Future<Output = io::Result<T>>>(
    handle: &Handle,
    addresses: &[SocketAddr],
    delay: Nanos,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<(T, SocketAddr), Vec<(SocketAddr, io::Error)>> {
    if let [only] = *addresses {
        // Nothing to race against, so nothing to allocate.
        return match connect(only).await {
            Ok(made) => Ok((made, only)),
            Err(error) => Err(vec![(only, error)]),
        };
    }
    let mut race = Race {
        handle,
        addresses,
        delay,
        connect,
        begun: 0,
        running: Vec::new(),
        failed: Vec::new(),
        timer: None,
    };
    poll_fn(|cx| race.poll(cx)).await
}

struct Race<'a, C, F> {
    handle: &'a Handle,
    addresses: &'a [SocketAddr],
    delay: Nanos,
    connect: C,
    begun: usize,
    /// With the place of the address.
    running: Vec<(usize, Pin<Box<F>>)>,
    failed: Vec<(usize, io::Error)>,
    /// Until the next attempt.
    timer: Option<Pin<Box<Sleep>>>,
}

type Raced<T> = Result<(T, SocketAddr), Vec<(SocketAddr, io::Error)>>;

impl<T, C: Fn(SocketAddr) -> F, F: Future<Output = io::Result<T>>> Race<'_, C, F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Raced<T>> {
        loop {
            let failed = self.failed.len();
            if let Some(won) = self.poll_running(cx) {
                return Poll::Ready(Ok(won));
            }
            let has_failed = self.failed.len() > failed;
            let is_due = match &mut self.timer {
                Some(timer) => timer.as_mut().poll(cx).is_ready(),
                None => self.running.is_empty(),
            };
            if !(has_failed || is_due) || !self.begin() {
                break;
            }
        }
        match self.running.is_empty() {
            true => Poll::Ready(Err(self.failures())),
            false => Poll::Pending,
        }
    }

    fn poll_running(&mut self, cx: &mut Context<'_>) -> Option<(T, SocketAddr)> {
        let mut at = 0;
        while let Some((place, attempt)) = self.running.get_mut(at) {
            let place = *place;
            match attempt.as_mut().poll(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(Ok(made)) => return Some((made, self.addresses[place])),
                Poll::Ready(Err(error)) => {
                    drop(self.running.remove(at));
                    self.failed.push((place, error));
                }
            }
        }
        None
    }

    /// The next attempt; false when there is none.
    fn begin(&mut self) -> bool {
        self.timer = None;
        let Some(&address) = self.addresses.get(self.begun) else {
            return false;
        };
        let attempt = Box::pin((self.connect)(address));
        self.running.push((self.begun, attempt));
        self.begun += 1;
        if self.begun < self.addresses.len() {
            self.timer = Some(Box::pin(self.handle.sleep(self.delay)));
        }
        true
    }

    fn failures(&mut self) -> Vec<(SocketAddr, io::Error)> {
        let mut failed = std::mem::take(&mut self.failed);
        failed.sort_by_key(|&(place, _)| place);
        failed
            .into_iter()
            .map(|(place, error)| (self.addresses[place], error))
            .collect()
    }
}
