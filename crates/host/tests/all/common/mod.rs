//! An application served on a real socket, and a client that talks to it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use clap::Parser;
use prony_engine::{Config, ListenOptions, mailbox};
use prony_host::LuaLimits;
use prony_hosting::{LoadError, Post, Settings, Words};
use prony_http::{Server, ServerOptions, Source};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    words: Words,
}

/// The repository: this program is built from two packages in it, one for each Lua.
pub fn root() -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = above.find(|dir| dir.join("crates/host").is_dir());
    root.expect("a package of the repository").to_owned()
}

/// A directory with an application, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, text: &str) -> Folder {
        let dir = std::env::temp_dir().join(format!("prony-host-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("site.lua"), text).expect("a file");
        Folder(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Loads `application` from the module `site` of this text, and lets `client` talk to it.
pub fn serve_as<R: Send + 'static>(
    name: &str,
    text: &str,
    application: &str,
    client: impl FnOnce(SocketAddr) -> R + Send + 'static,
) -> Result<R, LoadError> {
    let folder = Folder::new(name, text);
    let dir = folder.0.to_str().expect("a path of text").to_owned();
    let line = [
        "serve",
        application,
        "0",
        "--workers",
        "0",
        "--development",
        "--path",
        &dir,
    ];
    let own = serde_json::to_value(LuaLimits {
        memory_max: 64 << 20,
    })
    .expect("settings");
    let settings = Line::parse_from(line).words.resolve(own).expect("settings");
    let answered = prony_engine::run(&Config::default(), |handle| async move {
        let listener = handle
            .listen(settings.address, &ListenOptions::default())
            .expect("a port");
        let address = listener.local_addr();
        let post = Post {
            handle: handle.clone(),
            settings: Rc::new(Settings {
                address,
                ..settings
            }),
            number: 0,
        };
        let application = prony_host::load(&post)?;
        let server = Server::new(&handle, ServerOptions::default(), application);
        let _serving = handle.spawn(server.run(Source::Listener(listener), std::future::pending()));
        let (sender, mut received) = mailbox(1);
        let asking = thread::spawn(move || {
            let _ = sender.send(client(address));
        });
        let answer = received.recv().await;
        if let Err(panic) = asking.join() {
            std::panic::resume_unwind(panic);
        }
        Ok(answer.expect("the client's result"))
    });
    answered.expect("an event loop")
}

pub fn serve<R: Send + 'static>(
    name: &str,
    text: &str,
    client: impl FnOnce(SocketAddr) -> R + Send + 'static,
) -> R {
    serve_as(name, text, "site:app", client).unwrap_or_else(|error| panic!("{error}"))
}

/// Sends these bytes in writes of so many, and reads until the end; None after a reset.
pub fn talk(address: SocketAddr, request: &[u8], write: usize) -> Option<String> {
    talk_in(address, &request.chunks(write).collect::<Vec<_>>())
}

/// Sends these bytes, each part in a write of its own, and reads as [`talk`] does.
pub fn talk_in(address: SocketAddr, parts: &[&[u8]]) -> Option<String> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a limit");
    for part in parts {
        stream.write_all(part).expect("the server reads");
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

pub fn get(address: SocketAddr, path: &str) -> Option<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    talk(address, request.as_bytes(), usize::MAX)
}

pub fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}
