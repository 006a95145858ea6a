//! The server, of HTTP/1.1 and HTTP/2, and the client: wire on engine.
//!
//! For: serving requests with a [`Handler`] on one loop ([`Server`]), and sending requests
//! from one (`client::Client`).
//! Not for: routing, files, or threads: a server of several threads is one
//! [`Server`] on each thread's loop, with [`distribute`] on one of them.
//!
//! Its central types: [`Handler`], [`Server`], and `client::Client`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use prony_engine::{Config, ListenOptions};
//! use prony_http::client::{Client, Settings};
//! use prony_http::{Handler, Header, Request, Response, Server, ServerOptions, Source};
//!
//! struct Hello;
//!
//! impl Handler for Hello {
//!     async fn handle(&self, request: &Request<'_>, response: &mut Response) {
//!         match request.path() {
//!             "/hello" => response.send(200, [Header::new("content-type", b"text/plain")], b"Hello!"),
//!             _ => response.text(404, "no such page\n"),
//!         }
//!     }
//! }
//!
//! let answer = prony_engine::run(&Config::default(), |handle| async move {
//!     let listener = handle.listen("127.0.0.1:0".parse().unwrap(), &ListenOptions::default())?;
//!     let address = listener.local_addr();
//!     let server = Server::new(&handle, ServerOptions::default(), Hello);
//!     let counters = Arc::clone(server.counters());
//!     let _serving = handle.spawn(server.run(Source::Listener(listener), std::future::pending()));
//!     let client = Client::new(&handle, Settings::default());
//!     let answer = client.get(&format!("http://{address}/hello")).send().await?.bytes().await?;
//!     assert_eq!(counters.totals().answered, 1);
//!     Ok::<_, Box<dyn std::error::Error>>(answer)
//! })?;
//! assert_eq!(answer?, b"Hello!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Central types
//! - [`Server`]: accepts connections on one loop and calls a handler for each request.
//! - [`Handler`]: the application: one method from a [`Request`] to a [`Response`].
//! - [`client::Client`]: a pool of connections over which requests are sent; its guide is the page of [`client`].
//!
//! # Inside
//! A request of the client goes one way: built, then through the policies (redirects, retries, cookies), then to the pool,
//! which takes an idle connection or makes one (names, proxy, TLS), then over HTTP/1.1 or HTTP/2, and back as a response. Policies are
//! values in and out. TLS is rustls fed by the transport, HTTP/2 the crate h2 on the engine's loop; [`client::blocking`] is the
//! same for programs without a loop.
//!
//! # Invariants
//! - A request answered in steady state allocates nothing.
//! - Each request ends in exactly one count.
//! - A body is sent again whole or not at all; credentials never leave their origin; certificates go unverified only if asked for by name.
#![forbid(unsafe_code)]

mod budget;
#[cfg(feature = "client")]
pub mod client;
mod counters;
mod options;
mod request;
mod response;
mod server;
mod wait;

pub use budget::Budget;
pub use counters::{Count, Counters, Totals};
pub use options::{BODY_MEMORY_BYTES, ServerOptions};
pub use prony_wire::{Header, Headers, Method, OwnedHeaders, Range, Status, Version};
pub use request::Request;
pub use response::{BodyWriter, Interruption, Response};
pub use server::{
    AcceptTarget, CloseEvents, Handler, Server, ShutdownHandle, Source, Stopping, distribute,
};
