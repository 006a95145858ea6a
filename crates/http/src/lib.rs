//! The HTTP/1.1 server and the client: wire on engine.
//!
//! For: serving requests with a [`Handler`] on one loop ([`Server`]), and sending requests
//! from one (`client::Client`).
//! Not for: routing, files, TLS of servers, or threads: a server of several threads is one
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
