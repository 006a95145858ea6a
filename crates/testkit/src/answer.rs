//! Requests over plain sockets, written out by the test, and their answers.
//!
//! Not for: bodies in chunks, which a test reads as the bytes that they are.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

/// An answer, as it came.
#[derive(Clone, Debug)]
pub struct RawAnswer {
    /// Its status.
    pub status: u16,
    /// Its header lines, the names as they came.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// The value of the first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self.headers.iter().find(|(its_name, _)| its_name == name);
        line.map(|(_, value)| value.as_str())
    }

    /// Its body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends `request` and reads the answer; `is_head`: which has no body.
///
/// # Panics
/// Where the connection fails, or what comes is no answer with a known length.
pub fn ask(stream: &mut TcpStream, request: &str, is_head: bool) -> RawAnswer {
    stream.write_all(request.as_bytes()).expect("sent");
    read_answer(stream, is_head)
}

/// Sends `request` and reads the answer; None if the connection is closed without
/// one byte of it.
///
/// # Panics
/// Where what comes is no answer with a known length.
pub fn try_ask(stream: &mut TcpStream, request: &str) -> Option<RawAnswer> {
    stream.write_all(request.as_bytes()).ok()?;
    loop {
        match stream.peek(&mut [0]) {
            Ok(0) => return None,
            Ok(_) => return Some(read_answer(stream, false)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads a head and not one byte more.
///
/// # Panics
/// Where the connection fails, or what comes is no head.
pub fn read_head(stream: &mut TcpStream) -> RawAnswer {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        // Unlike `read`, this goes on where a signal interrupts it.
        if let Err(error) = stream.read_exact(&mut byte) {
            panic!("{error} after \"{}\"", head.escape_ascii());
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next().and_then(|line| line.get(9..12)?.parse().ok());
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").expect("a header line");
        (name.to_owned(), value.to_owned())
    });
    RawAnswer {
        status: status.expect("a status"),
        headers: headers.collect(),
        body: Vec::new(),
    }
}

/// Reads an answer with a known length.
///
/// # Panics
/// Where the connection fails, or what comes is no answer with a known length.
pub fn read_answer(stream: &mut TcpStream, is_head: bool) -> RawAnswer {
    let mut answer = read_head(stream);
    if !is_head && !matches!(answer.status, 204 | 304) {
        let length = answer.header("content-length").expect("a length");
        answer.body = vec![0; length.parse().expect("a number")];
        stream.read_exact(&mut answer.body).expect("the body");
    }
    answer
}

/// Everything until the end of the stream.
///
/// # Panics
/// Where the stream does not end in order.
pub fn rest(stream: &mut TcpStream) -> String {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("an orderly end");
    String::from_utf8_lossy(&rest).into_owned()
}
