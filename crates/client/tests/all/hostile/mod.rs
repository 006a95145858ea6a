//! A server that does one thing wrong, on a thread of its own and over plain sockets, so that
//! nothing of the code that is tested can hide it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a thread waits for what a client that hangs would never send.
const PATIENCE: Duration = Duration::from_secs(60);

/// What it does with each connection, in this order; then it closes.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Reads one request's head.
    Read,
    /// Sends this.
    Send(&'static [u8]),
    /// Sends this again and again, until the client has had enough.
    SendForEver(&'static [u8]),
    /// Ends its side, and reads until the client ends its own.
    HalfClose,
    /// Does nothing, until the client closes.
    Stall,
    /// Closes with a request unread, which is a reset.
    Reset,
}

/// Listens until it is dropped.
pub struct Hostile {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    /// Begins to play `script` for each connection.
    pub fn new(script: &'static [Act]) -> Hostile {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let is_over = Arc::new(AtomicBool::new(false));
        let theirs = is_over.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if theirs.load(Ordering::Acquire) {
                    return;
                }
                // A client that has gone makes any step fail, and that is its right.
                let _ = stream.and_then(|stream| play(stream, script));
            }
        });
        Hostile {
            address,
            is_over,
            thread: Some(thread),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}/it", self.address)
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // It waits for a connection: here is the last.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

fn play(mut stream: TcpStream, script: &[Act]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    for act in script {
        match act {
            Act::Read => read_head(&mut stream)?,
            Act::Send(bytes) => stream.write_all(bytes)?,
            Act::SendForEver(bytes) => loop {
                stream.write_all(bytes)?;
            },
            Act::HalfClose => {
                stream.shutdown(Shutdown::Write)?;
                read_to_end(&mut stream)?;
            }
            Act::Stall => read_to_end(&mut stream)?,
            Act::Reset => {
                // Once the request is there, closing without having read it is a reset.
                stream.peek(&mut [0])?;
                return Ok(());
            }
        }
    }
    Ok(())
}

fn read_head(stream: &mut TcpStream) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ => head.push(byte[0]),
        }
    }
    Ok(())
}

fn read_to_end(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut some = [0; 4_096];
    while stream.read(&mut some)? > 0 {}
    Ok(())
}
