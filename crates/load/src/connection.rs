//! Opens connections and reopens those that are gone; what they receive goes to the worker.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::{ConnectOptions, Handle, Stream, Task};

use crate::failure::Failure;
use crate::recorder::Recorder;
use crate::thread_spec::ThreadSpec;
use crate::worker::Worker;

/// First pause after a failed attempt to connect; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// Longest pause between two attempts to connect.
const PAUSE_MAX: Nanos = Nanos::from_millis(100);

/// Opens one connection and records the result.
pub async fn open(
    handle: &Handle,
    address: SocketAddr,
    options: &ConnectOptions,
    timeout: Nanos,
    recorder: &RefCell<Recorder>,
) -> Result<Stream, Failure> {
    let began = handle.now();
    let connecting = handle.connect_with(address, options);
    let opened = match handle.timeout(timeout, connecting).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(Failure::from(&error)),
        Err(_elapsed) => Err(Failure::Timeout),
    };
    let mut recorder = recorder.borrow_mut();
    match &opened {
        Ok(_) => recorder.connected(handle.now().since(began)),
        Err(failure) => recorder.connect_failed(*failure),
    }
    opened
}

/// Opens the connections of a thread, a limited number at a time. A failed one is `None`; the recorder has its
/// failure, and how long each took.
pub async fn connect_all(
    handle: &Handle,
    thread_spec: &ThreadSpec,
    recorder: &Rc<RefCell<Recorder>>,
) -> Vec<Option<Stream>> {
    let next = Rc::new(Cell::new(0));
    let mut none = Vec::new();
    none.resize_with(thread_spec.connections, || None);
    let opened = Rc::new(RefCell::new(none));
    let lanes: Vec<Task<()>> = (0..thread_spec.connecting_max.min(thread_spec.connections))
        .map(|_| {
            let (handle, recorder) = (handle.clone(), Rc::clone(recorder));
            let (next, opened) = (Rc::clone(&next), Rc::clone(&opened));
            let thread_spec = thread_spec.clone();
            handle.clone().spawn(async move {
                while next.get() < thread_spec.connections {
                    let index = next.replace(next.get() + 1);
                    let (address, timeout) =
                        (thread_spec.address(index), thread_spec.first_timeout);
                    let options = thread_spec.connect_options(index);
                    let stream = open(&handle, address, &options, timeout, &recorder).await;
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

/// Keeps connection `index` open and passes what it receives to the worker, until no connection is wanted.
pub async fn drive(worker: Rc<Worker>, index: usize, mut stream: Option<Stream>) {
    let mut pause = PAUSE_MIN;
    let handle = worker.handle.clone();
    loop {
        if let Some(open) = stream.take() {
            let open = Rc::new(open);
            worker.connected(index, &open);
            while worker.received(index, open.recv().await) {}
            worker.disconnected(index);
            continue;
        }
        if !worker.wants_connections(handle.now()) {
            worker.retired(index);
            return;
        }
        let (thread_spec, recorder) = (&worker.thread_spec, &worker.recorder);
        let options = thread_spec.connect_options(index);
        match open(
            &handle,
            thread_spec.address(index),
            &options,
            thread_spec.timeout,
            recorder,
        )
        .await
        {
            Ok(opened) => {
                stream = Some(opened);
                pause = PAUSE_MIN;
            }
            Err(_counted) => {
                handle.sleep(pause).await;
                pause = PAUSE_MAX.min(pause * 2);
            }
        }
    }
}
