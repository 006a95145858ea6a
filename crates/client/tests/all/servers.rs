//! The client against servers that others wrote: nginx, Node, Go and Python; and against
//! one that sends every byte on its own. Over real sockets.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use prony_client::{Client, Settings};
use prony_engine::{Config, DriverChoice, run};
use prony_http::Method;
use prony_testkit::need;

/// How long a server may take until it listens.
const READY_TIME: Duration = Duration::from_secs(60);

/// A server in a process of its own, which ends with this.
struct Process {
    child: Child,
    folder: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn folder(name: &str) -> PathBuf {
    let name = format!("prony-client-{}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    folder
}

/// Starts a server that prints its port.
fn start(command: &mut Command, folder: PathBuf) -> (Process, SocketAddr) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut process = Process {
        child: child.expect("it starts"),
        folder,
    };
    let out = process.child.stdout.take().expect("its output");
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).expect("its port");
    let port = line.trim().parse().expect("a port");
    (process, SocketAddr::from(([127, 0, 0, 1], port)))
}

/// What each server has to do well; `echoes`: it gives a POST's body back.
fn check(address: SocketAddr, echoes: bool) {
    let kinds = [
        (DriverChoice::Auto, 1),
        (DriverChoice::Epoll, 1),
        (DriverChoice::Auto, 4),
    ];
    for (driver, pipelining_max) in kinds {
        let config = Config {
            driver,
            ..Config::default()
        };
        run(&config, async |handle| {
            let settings = Settings {
                connections_per_host_max: 10,
                pipelining_max,
                ..Settings::default()
            };
            let client = Client::new(&handle, settings);
            let url = format!("http://{address}/hello");
            let answer = client.get(&url).send().await.expect("an answer");
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.text().await.expect("a body"), "hello");
            let answer = client.request(Method::Head, &url).send().await;
            assert_eq!(
                answer.expect("an answer").text().await.expect("no body"),
                ""
            );
            let large = vec![b'x'; 100_000];
            let pieces = large.chunks(7_000).map(|piece| Ok(piece.to_vec()));
            let pieces: Vec<_> = pieces.collect();
            let posts = [
                client.post(&url).body(large.clone()),
                client.post(&url).body_stream(pieces.into_iter(), None),
            ];
            for post in posts {
                let answer = post.send().await.expect("an answer");
                let body = answer.bytes().await.expect("a body");
                assert!(body == if echoes { &large[..] } else { &b"hello"[..] });
            }
            let mut all = client.all((0..200).map(|_| client.get(&url)), 20);
            while let Some((_, answer)) = all.next().await {
                let answer = answer.expect("an answer");
                assert_eq!(answer.text().await.expect("a body"), "hello");
            }
            let counts = client.counts();
            assert_eq!((counts.answered, counts.failed), (204, 0), "{counts:?}");
            // Kept connections are few; a server may close some of its own accord.
            assert!(counts.connected <= 20, "{counts:?}");
        })
        .expect("the loop runs");
    }
}

const PYTHON: &str = "
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *words): pass
    def answer(self, body):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD': self.wfile.write(body)
    def do_GET(self): self.answer(b'hello')
    do_HEAD = do_GET
    def do_POST(self):
        body = b''
        if self.headers.get('Transfer-Encoding') == 'chunked':
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else: body = self.rfile.read(int(self.headers['Content-Length']))
        self.answer(body)
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
";

#[test]
fn python_answers() {
    let Some(python) = need("python3") else {
        return;
    };
    let mut command = Command::new(python);
    let (_process, address) = start(command.args(["-c", PYTHON]), folder("python"));
    check(address, true);
}

const NODE: &str = "
const server = require('http').createServer((request, response) => {
  const pieces = [];
  request.on('data', piece => pieces.push(piece));
  request.on('end', () => response.end(
    { GET: 'hello', POST: Buffer.concat(pieces) }[request.method]));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
";

#[test]
fn node_answers() {
    let Some(node) = need("node") else { return };
    let mut command = Command::new(node);
    let (_process, address) = start(command.args(["-e", NODE]), folder("node"));
    check(address, true);
}

const GO: &str = r#"package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" {
			io.WriteString(w, "hello")
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})))
}
"#;

#[test]
fn go_answers() {
    let Some(go) = need("go") else { return };
    let folder = folder("go");
    let (source, program) = (folder.join("main.go"), folder.join("server"));
    fs::write(&source, GO).expect("a file");
    let built = Command::new(go)
        .arg("build")
        .arg("-o")
        .args([&program, &source])
        .status();
    assert!(built.expect("go runs").success());
    let (_process, address) = start(&mut Command::new(&program), folder);
    check(address, true);
}

fn nginx_configuration(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    let temps = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};"))
        .concat();
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log stderr;
         events {{ worker_connections 100; }}
         http {{ access_log off; {temps}
             server {{ listen 127.0.0.1:{port}; location / {{ return 200 \"hello\"; }} }} }}"
    )
}

#[test]
fn nginx_answers() {
    let Some(nginx) = need("nginx") else { return };
    let folder = folder("nginx");
    // nginx takes no port of the system's choice.
    let address = SocketAddr::from(([127, 0, 0, 1], prony_testkit::free_port()));
    let file = folder.join("nginx.conf");
    fs::write(&file, nginx_configuration(&folder, address.port())).expect("a file");
    let mut command = Command::new(nginx);
    command.arg("-p").arg(&folder).arg("-c").arg(&file);
    let child = command.stderr(Stdio::null()).spawn().expect("it starts");
    let _process = Process { child, folder };
    let end = Instant::now() + READY_TIME;
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < end, "nginx does not listen");
        thread::yield_now();
    }
    check(address, false);
}

/// Answers each request on a connection with these bytes, one system call for each.
fn byte_by_byte(listener: &TcpListener, answer: &[u8], connections: usize) {
    for _ in 0..connections {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_nodelay(true).expect("an option");
        let mut received = Vec::new();
        let mut room = [0; 1];
        while stream.read(&mut room).is_ok_and(|count| count > 0) {
            received.push(room[0]);
            if received.ends_with(b"\r\n\r\n") {
                received.clear();
                for byte in answer {
                    stream.write_all(&[*byte]).expect("it is read");
                }
            }
        }
    }
}

#[test]
fn a_server_that_sends_every_byte_on_its_own() {
    let answer = b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n\
        transfer-encoding: chunked\r\n\r\n5\r\nevery\r\n5; x=y\r\n byte\r\n0\r\nsum: 10\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("its address"));
    let server = thread::spawn(move || byte_by_byte(&listener, answer, 2));
    for driver in [DriverChoice::Auto, DriverChoice::Epoll] {
        let config = Config {
            driver,
            ..Config::default()
        };
        run(&config, async |handle| {
            let client = Client::new(&handle, Settings::default());
            for _ in 0..20 {
                let mut answer = client.get(&url).send().await.expect("an answer");
                let mut body = Vec::new();
                while let Some(piece) = answer.chunk().await.expect("a body") {
                    body.extend_from_slice(piece);
                }
                assert_eq!((answer.status(), &body[..]), (200, &b"every byte"[..]));
                let trailers = answer.trailers().expect("trailers");
                assert_eq!(trailers.get("sum"), Some(&b"10"[..]));
            }
            assert_eq!(client.counts().connected, 1);
        })
        .expect("the loop runs");
    }
    server.join().expect("the server's thread");
}
