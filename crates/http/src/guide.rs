//! A server for the examples of the guide. Not for anything else.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;

use prony_engine::{Config, Handle, ListenOptions, run};

use crate::{Handler, Header, Request, Response, Server, ServerOptions, Source};

struct App;

impl Handler for App {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match request.path() {
            "/hello" => response.text(200, "hello"),
            "/old" => response.send(302, [Header::new("location", b"/hello")], b""),
            "/large" => response.send(200, [], &vec![b'x'; 1 << 20]),
            "/never" => std::future::pending().await,
            _ => response.send(200, [], request.body()),
        }
    }
}

/// Starts a server on a free port of this machine, which ends with the program, and
/// gives its address as `http://127.0.0.1:PORT`.
///
/// # Panics
/// When there is no free port, or no thread: examples have no caller to report it to.
pub fn server() -> String {
    let (say, hear) = mpsc::channel();
    thread::spawn(move || {
        run(&Config::default(), async move |handle: Handle| {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = handle.listen(any, &ListenOptions::default());
            let listener = listener.expect("a free port");
            // The calling thread waits for this.
            let _ = say.send(listener.local_addr());
            let server = Server::new(&handle, ServerOptions::default(), App);
            server
                .run(Source::Listener(listener), std::future::pending())
                .await;
        })
    });
    format!("http://{}", hear.recv().expect("a server"))
}
