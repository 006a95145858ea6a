//! One connection: opened, listened to, opened again when it is gone. What comes goes to the worker.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::{ConnectOptions, Handle, Stream};

use crate::failure::Failure;
use crate::recorder::Recorder;
use crate::worker::Worker;

/// First pause after a failed attempt to connect; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// Longest pause between two attempts to connect.
const PAUSE_MAX: Nanos = Nanos::from_millis(100);

/// Opens one connection and counts how that went.
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

/// Keeps connection `index` open and hands what comes on it to the worker, as long as it is of use.
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
            worker.left(index);
            return;
        }
        let (share, recorder) = (&worker.share, &worker.recorder);
        let options = share.connect_options(index);
        match open(
            &handle,
            share.address(index),
            &options,
            share.timeout,
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
