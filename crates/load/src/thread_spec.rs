//! What one thread is to do, and what the threads of a run share.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use prony_base::Nanos;
use prony_engine::{ConnectOptions, Handle, Stream, Task};
use prony_record::Timestamps;

use crate::connection;
use crate::recorder::Recorder;

/// What the threads of a run share.
#[derive(Debug, Default)]
pub struct Shared {
    /// The run is to end now.
    pub stop: AtomicBool,
    /// Requests completed in the window so far.
    pub completed: AtomicU64,
    /// Requests and connects failed in the window so far.
    pub failed: AtomicU64,
    /// Bits of the rate that an open pace is to have from now on; 0: as it is.
    pub rate: AtomicU64,
}

/// What one thread is to do.
#[derive(Clone, Debug)]
pub struct Share {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Threads of the run.
    pub threads: u32,
    /// Its connections.
    pub connections: usize,
    /// Requests that it may send.
    pub requests_max: u64,
    /// Number of its first connection among those of the run.
    pub first: usize,
    /// Where to: connection `n` of the run goes to address `n` modulo their number; at
    /// least one.
    pub addresses: Vec<SocketAddr>,
    /// Time-out of a request.
    pub timeout: Nanos,
    /// Time-out of the first attempt to connect: not longer than the run is worth.
    pub first_timeout: Nanos,
    /// Connections that it opens at the same time.
    pub connecting_max: usize,
    /// Status codes that are expected; empty: 200 to 399.
    pub expected_status: Vec<u16>,
    /// Arrivals that may wait.
    pub queue_max: usize,
    /// Who says when bytes arrived.
    pub timestamps: Timestamps,
    /// Requests whose times are kept.
    pub trace_max: usize,
}

impl Share {
    /// Where connection `index` of this thread goes, always the same.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.addresses[(self.first + index) % self.addresses.len()]
    }

    /// How connection `index` of this thread is opened.
    pub fn connect_options(&self, index: usize) -> ConnectOptions {
        ConnectOptions {
            timestamps: match self.timestamps {
                Timestamps::User => false,
                Timestamps::Probe => index == 0,
                Timestamps::Kernel => true,
            },
            ..ConnectOptions::default()
        }
    }
}

/// Opens the connections of `share`, some at a time. A
/// failed one is `None`; its failure and all lengths are in the recorder.
pub async fn connect_all(
    handle: &Handle,
    share: &Share,
    recorder: &Rc<RefCell<Recorder>>,
) -> Vec<Option<Stream>> {
    let next = Rc::new(Cell::new(0));
    let mut none = Vec::new();
    none.resize_with(share.connections, || None);
    let opened = Rc::new(RefCell::new(none));
    let lanes: Vec<Task<()>> = (0..share.connecting_max.min(share.connections))
        .map(|_| {
            let (handle, recorder) = (handle.clone(), Rc::clone(recorder));
            let (next, opened) = (Rc::clone(&next), Rc::clone(&opened));
            let share = share.clone();
            handle.clone().spawn(async move {
                while next.get() < share.connections {
                    let index = next.replace(next.get() + 1);
                    let (address, timeout) = (share.address(index), share.first_timeout);
                    let options = share.connect_options(index);
                    let stream =
                        connection::open(&handle, address, &options, timeout, &recorder).await;
                    opened.borrow_mut()[index] = stream.ok();
                }
            })
        })
        .collect();
    for lane in lanes {
        lane.await;
    }
    opened.take()
}
