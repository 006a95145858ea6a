//! The reference server: known answers, by which clients and load generators are checked. What it answers is in `app.rs`.
//!
//! A server of [`reference()`] is one [`LoopServer`] for each thread; [`serve_on_loops`](crate::serve_on_loops) runs them.

mod app;
mod payload;
mod stall;

use std::future::Future;
use std::io;
use std::sync::Arc;

use prony_engine::{Handle, Receiver, Sender, mailbox};
use prony_http::{Counters, Server, ServerOptions, Source};

use crate::loops::LoopServer;
use app::{App, Board};

pub use app::ENDPOINTS;
pub use payload::Payload;

/// Orders to stall on their way to one loop; more are refused.
const ORDERS_MAX: usize = 64;

/// The reference server on one loop.
pub struct ReferenceServer {
    options: ServerOptions,
    board: Arc<Board>,
    /// To every loop of the server.
    senders: Vec<Sender<stall::Order>>,
    orders: Receiver<stall::Order>,
    payload: Option<Arc<Payload>>,
}

/// A server on so many threads, each with these `options`, which has `payload` at `/testpayload`.
pub fn reference(
    threads: u32,
    options: &ServerOptions,
    payload: Option<Payload>,
) -> Vec<ReferenceServer> {
    let board = Arc::new(Board::default());
    let payload = payload.map(Arc::new);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| mailbox(ORDERS_MAX)).unzip();
    let server = |orders| ReferenceServer {
        options: options.clone(),
        board: Arc::clone(&board),
        senders: senders.clone(),
        orders,
        payload: payload.clone(),
    };
    receivers.into_iter().map(server).collect()
}

impl LoopServer for ReferenceServer {
    async fn serve(
        self,
        handle: &Handle,
        source: Source,
        stop: impl Future<Output = ()>,
        started: impl FnOnce(Arc<Counters>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        handle
            .spawn(stall::obey(handle.clone(), self.orders))
            .detach();
        // A loop that has no descriptor for the file says so when it is asked for it.
        let payload = self.payload.map(|payload| payload.for_loop());
        let app = App::new(Arc::clone(&self.board), self.senders, payload);
        let counts = app.counts();
        let server = Server::new(handle, self.options, app);
        self.board.add(Arc::clone(server.counters()), counts);
        started(Arc::clone(server.counters()))?;
        server.run(source, stop).await;
        Ok(())
    }
}
