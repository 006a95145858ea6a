//! `prony serve --services`: the server put together from services, on both drivers.

use std::io::Write as _;
use std::net::TcpStream;

use prony_testkit::{ask, read_answer};

use crate::server::{Server, drivers, prony};

fn ping(body: &str) -> String {
    let length = body.len();
    format!("POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[test]
fn it_answers_what_the_application_knows() {
    for driver in drivers() {
        for threads in ["1", "3"] {
            let server = Server::start_on(driver, &["--services", "--threads", threads]);
            let mut stream = server.connect();
            for (body, status, answer) in [
                ("{\"sequence\":0}", 200, "{\"sequence\":0}"),
                (
                    " { \"a\" : [ { } ] , \"sequence\" : 7 } ",
                    200,
                    "{\"sequence\":7}",
                ),
                (
                    "{\"sequence\":1.5}",
                    400,
                    "invalid type: floating point `1.5`, expected u64 at line 1 column 15\n",
                ),
                ("", 400, "EOF while parsing a value at line 1 column 0\n"),
            ] {
                let said = ask(&mut stream, &ping(body), false);
                assert_eq!(
                    (said.status, said.text().as_ref()),
                    (status, answer),
                    "{body}"
                );
            }
            let unknown = ask(&mut stream, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", false);
            assert_eq!(unknown.status, 404);
        }
    }
}

#[test]
fn what_was_accepted_is_answered_when_its_services_stop() {
    for driver in drivers() {
        for threads in ["1", "2"] {
            let mut server = Server::start_on(driver, &["--services=on", "--threads", threads]);
            let mut late: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
            for stream in &mut late {
                stream
                    .write_all(ping("{\"sequence\":5}").as_bytes())
                    .expect("sent");
            }
            server.signal_term();
            for stream in &mut late {
                assert_eq!(read_answer(stream, false).text(), "{\"sequence\":5}");
            }
            assert_eq!(server.wait(), Some(0));
        }
    }
}

#[test]
fn the_option_takes_two_words() {
    let said = prony(&["serve", "--services", "maybe"])
        .output()
        .expect("prony starts");
    assert_eq!(said.status.code(), Some(2));
}
