//! The server, of HTTP/1.1 and HTTP/2: wire on engine.
//!
//! For: serving requests with a [`Handler`] on one loop ([`Server`]).
//! Not for: sending requests (`prony-client`), routing, files, or threads: a server of several threads is one
//! [`Server`] on each thread's loop, with [`distribute`] on one of them.
//!
//! ```
//! use std::io::{Read as _, Write as _};
//! use std::net::TcpStream;
//!
//! use prony_engine::{Config, ListenOptions, mailbox};
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
//!     let (done, mut answered) = mailbox(1);
//!     std::thread::spawn(move || {
//!         let mut stream = TcpStream::connect(address)?;
//!         stream.write_all(b"GET /hello HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")?;
//!         let mut answer = String::new();
//!         stream.read_to_string(&mut answer)?;
//!         drop(done.send(answer));
//!         Ok::<(), std::io::Error>(())
//!     });
//!     let server = Server::new(&handle, ServerOptions::default(), Hello);
//!     let _serving = handle.spawn(server.run(Source::Listener(listener), std::future::pending()));
//!     Ok::<_, std::io::Error>(answered.recv().await)
//! })??;
//! assert!(answer.is_some_and(|answer| answer.ends_with("\r\n\r\nHello!")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Central types
//! - [`Server`]: accepts connections on one loop and calls a handler for each request.
//! - [`Handler`]: the application: one method from a [`Request`] to a [`Response`].
//!
//! # Invariants
//! - A request answered in steady state allocates nothing.
//! - Each request ends in exactly one count.
#![forbid(unsafe_code)]

mod budget;
mod counters;
#[doc(hidden)]
pub mod guide;
mod options;
mod request;
mod response;
mod server;

pub use budget::Budget;
pub use counters::{Count, Counters, Totals};
pub use options::{BODY_MEMORY_BYTES, ServerOptions};
pub use prony_wire::{Header, Headers, Method, OwnedHeaders, Range, Status, Version};
pub use request::Request;
pub use response::{BodyWriter, Interruption, Response};
pub use server::{
    AcceptTarget, CloseEvents, Handler, Server, ShutdownHandle, Source, Stopping, distribute,
};
