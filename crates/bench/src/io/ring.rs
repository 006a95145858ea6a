//! A task for each connection on the engine's loop over io_uring, which hands out received
//! bytes in buffers of a pool that all connections share.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::panic::resume_unwind;
use std::pin::pin;
use std::rc::Rc;

use prony_base::{Instant, Nanos, clock};
use prony_engine::{Config, DriverChoice, Handle, JoinOutcome, LoopStats, Stream, Task};

use super::done::Downloads;
use super::order::{IoError, IoOrder};
use super::transfer::Transfer;

/// How long a turn of the loop waits for more connections to have something to throw away: each
/// call then throws away more.
const DISCARD_WAIT: Nanos = Nanos::from_millis(1);

/// The state that all download tasks share.
struct TaskContext {
    order: IoOrder,
    request: Vec<u8>,
    transfers: RefCell<Vec<Transfer>>,
    /// Whether turns wait for more.
    waits: Cell<bool>,
}

/// Downloads over all connections.
pub fn run(order: &IoOrder, request: &[u8]) -> Result<Downloads, IoError> {
    let config = Config {
        driver: DriverChoice::Ring,
        recv_buffer_bytes: order.buffer_bytes as u32,
        recv_buffers: order.ring_buffers,
        receive: order.receive,
        connections_hint: order.connections,
        // What is unread when a download fails is of no use to anybody.
        linger: Nanos::ZERO,
        spin: order.spin,
        ..Config::default()
    };
    let shared = Rc::new(TaskContext {
        order: order.clone(),
        request: request.to_vec(),
        transfers: RefCell::default(),
        waits: Cell::new(false),
    });
    let downloads = shared.clone();
    let stats = prony_engine::run(&config, |handle| all(handle, downloads))?;
    let mut done = Downloads {
        transfers: shared.transfers.take(),
        ..Downloads::default()
    };
    done.calls.add("enter_calls", stats.enters);
    done.calls.add("completions", stats.completions);
    done.calls.add("pool_exhausted", stats.pool_exhausted);
    Ok(done)
}

async fn all(handle: Handle, shared: Rc<TaskContext>) -> LoopStats {
    let mut tasks = Vec::with_capacity(shared.order.connections as usize);
    for number in 0..shared.order.connections as usize {
        let begin = clock::monotonic();
        let mut transfer = Transfer::new(shared.order.payload_bytes);
        let task = handle.spawn(download(handle.clone(), shared.clone(), number));
        transfer.marks.setup = clock::monotonic().since(begin);
        shared.transfers.borrow_mut().push(transfer);
        tasks.push(task);
    }
    let ids: Vec<_> = tasks.iter().map(Task::id).collect();
    let watching = handle.spawn(watch(handle.clone(), shared.clone(), ids));
    for mut task in tasks {
        match poll_fn(|cx| task.poll_outcome(cx)).await {
            // Cancelled where it took too long.
            JoinOutcome::Value(()) | JoinOutcome::Cancelled => {}
            // Its download would look like one that did not fail.
            JoinOutcome::Panicked(payload) => resume_unwind(payload),
        }
    }
    drop(watching);
    handle.stats()
}

/// Ends downloads of which nothing has been heard for too long, which it looks for a few
/// times in that time.
async fn watch(handle: Handle, shared: Rc<TaskContext>, ids: Vec<prony_engine::TaskId>) {
    let timeout = shared.order.timeout;
    loop {
        handle.sleep(Nanos((timeout.0 / 4).max(1_000_000))).await;
        let now = clock::monotonic();
        for (number, &id) in ids.iter().enumerate() {
            let transfer = &mut shared.transfers.borrow_mut()[number];
            if !transfer.is_over() {
                transfer.check(now, timeout);
                if transfer.is_over() {
                    handle.cancel(id);
                }
            }
        }
    }
}

async fn download(handle: Handle, shared: Rc<TaskContext>, number: usize) {
    if let Err(cause) = ask_and_receive(&handle, &shared, number).await {
        shared.transfers.borrow_mut()[number].broke(cause);
    }
}

async fn ask_and_receive(handle: &Handle, shared: &TaskContext, number: usize) -> io::Result<()> {
    let stream = connect(handle, shared, number).await?;
    shared.transfers.borrow_mut()[number].connected();
    stream.post(shared.request.clone())?;
    shared.transfers.borrow_mut()[number].request_sent();
    receive(handle, &stream, shared, number).await
}

/// Connects; the first look at the future makes the socket, and is timed as that.
async fn connect(handle: &Handle, shared: &TaskContext, number: usize) -> io::Result<Stream> {
    let mut connecting = pin!(handle.connect(shared.order.address));
    let mut is_first = true;
    poll_fn(|cx| {
        let begin = clock::monotonic();
        let polled = connecting.as_mut().poll(cx);
        if is_first {
            let marks = &mut shared.transfers.borrow_mut()[number].marks;
            marks.connecting = clock::monotonic();
            marks.socket = marks.connecting.since(begin);
            is_first = false;
        }
        polled
    })
    .await
}

async fn receive(
    handle: &Handle,
    stream: &Stream,
    shared: &TaskContext,
    number: usize,
) -> io::Result<()> {
    loop {
        let discardable = {
            let transfer = &shared.transfers.borrow()[number];
            if transfer.is_over() {
                return Ok(());
            }
            transfer.discardable().filter(|_| shared.order.discard)
        };
        match discardable {
            Some(most) => {
                if !shared.waits.replace(true) {
                    handle.set_coalescing(shared.order.connections, DISCARD_WAIT);
                }
                let count = stream.discard(most).await?;
                shared.transfers.borrow_mut()[number].discarded(count);
            }
            None => {
                let bytes = stream.recv().await?;
                let transfer = &mut shared.transfers.borrow_mut()[number];
                // As the other strategies, which read the clock when the send has returned.
                if transfer.marks.first == Instant::ZERO
                    && let Some(submitted) = stream.submitted()
                {
                    transfer.set_request_sent(submitted.to);
                }
                transfer.received_at(&bytes, bytes.arrival().reaped);
            }
        }
    }
}
