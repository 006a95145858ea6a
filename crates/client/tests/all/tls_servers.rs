//! The client against other people's servers under TLS: nginx, Node, Go,
//! Python and nghttpd.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::secure::{Authority, Valid};
use prony_client::{Client, HttpVersion, Settings, Version};
use prony_engine::{Config, run};
use prony_testkit::need;

const READY_WITHIN: Duration = Duration::from_secs(60);

/// A folder of its own, gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("prony-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a file");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server's process, gone with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server that prints its port when it listens.
fn printing(command: &mut Command) -> (Server, u16) {
    let child = command.stdout(Stdio::piped()).stdin(Stdio::null());
    let mut server = Server(child.spawn().expect("it starts"));
    let out = server.0.stdout.take().expect("piped");
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).expect("a line");
    let port = line.trim().parse();
    (server, port.unwrap_or_else(|_| panic!("no port: {line:?}")))
}

fn pattern() -> Vec<u8> {
    (0..1_000_000)
        .map(|place: usize| (place % 251) as u8)
        .collect()
}

/// An authority, and its certificate for 127.0.0.1 with its key as files.
fn identity(folder: &Folder) -> (Authority, String, String) {
    let authority = Authority::new("an authority");
    let identity = authority.sign("127.0.0.1", Valid::Now);
    let certificate = folder.write("cert.pem", identity.certificate.pem());
    let key = folder.write("key.pem", identity.key.serialize_pem());
    folder.write("large", pattern());
    folder.write("hello", "hello");
    (authority, certificate, key)
}

/// Asks for everything in each version that the server speaks.
fn ask(authority: &Authority, port: u16, versions: &[(HttpVersion, Version)]) {
    for &(wanted, spoken) in versions {
        let settings = Settings {
            version: wanted,
            tls: authority.trusted(),
            ..Settings::default()
        };
        run(&Config::default(), |handle| async move {
            let client = Client::new(&handle, settings);
            let root = format!("https://127.0.0.1:{port}");
            for _ in 0..3 {
                let answer = client.get(&format!("{root}/large")).send().await;
                let answer = answer.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!((answer.status(), answer.version()), (200, spoken));
                assert!(answer.bytes().await.expect("a body") == pattern());
            }
            let asked = (0..50).map(|_| client.get(&format!("{root}/hello")));
            let mut all = client.all(asked, 20);
            while let Some((_, answer)) = all.next().await {
                let answer = answer.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(answer.text().await.expect("a body"), "hello");
            }
            let answer = client.head(&format!("{root}/large")).send().await;
            let answer = answer.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(answer.content_length(), Some(1_000_000));
            assert!(answer.bytes().await.expect("nothing").is_empty());
            let counts = client.counts();
            assert_eq!((counts.answered, counts.failed), (54, 0), "{counts:?}");
            if spoken == Version::Http2 {
                assert_eq!(counts.connected, 1, "{counts:?}");
            }
        })
        .expect("the loop runs");
    }
}

const BOTH: [(HttpVersion, Version); 3] = [
    (HttpVersion::Auto, Version::Http2),
    (HttpVersion::Http2, Version::Http2),
    (HttpVersion::Http11, Version::Http11),
];

#[test]
fn nginx() {
    let Some(program) = need("nginx") else { return };
    let folder = Folder::new("nginx");
    let (authority, certificate, key) = identity(&folder);
    let address = free_address();
    let root = folder.0.display();
    let user = match Path::new("/proc/self").metadata() {
        // Files in a folder of root's are for root alone.
        Ok(owner) if std::os::unix::fs::MetadataExt::uid(&owner) == 0 => "user root;",
        _ => "",
    };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|name| format!("{name}_temp_path {root}/{name};"));
    let temporary = temporary.join(" ");
    let config = format!(
        "daemon off; master_process off; {user} pid {root}/pid; error_log {root}/error.log;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; {temporary}\n\
           server {{ listen {address} ssl http2; root {root};\n\
             ssl_certificate {certificate}; ssl_certificate_key {key}; }} }}\n"
    );
    let config = folder.write("nginx.conf", config);
    let mut command = Command::new(program);
    command.args(["-c", &config, "-p", &root.to_string()]);
    let _server = Server(command.stderr(Stdio::null()).spawn().expect("it starts"));
    await_port(address);
    ask(&authority, address.port(), &BOTH);
}

#[test]
fn nghttpd() {
    let Some(program) = need("nghttpd") else {
        return;
    };
    let folder = Folder::new("nghttpd");
    let (authority, certificate, key) = identity(&folder);
    let address = free_address();
    let mut command = Command::new(program);
    command.args(["--address", "127.0.0.1", "--htdocs"]);
    command.arg(&folder.0).arg(address.port().to_string());
    command.args([key, certificate]);
    let _server = Server(command.stdout(Stdio::null()).spawn().expect("it starts"));
    await_port(address);
    // It speaks nothing else.
    ask(&authority, address.port(), &BOTH[..2]);
}

/// For servers that must be told their port.
fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], prony_testkit::free_port()))
}

fn await_port(address: SocketAddr) {
    let begun = Instant::now();
    while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
        assert!(begun.elapsed() < READY_WITHIN, "nobody listens");
        std::thread::yield_now();
    }
}

#[test]
fn node() {
    let Some(program) = need("node") else { return };
    let folder = Folder::new("node");
    let (authority, certificate, key) = identity(&folder);
    let script = format!(
        "const fs = require('fs');\n\
         const files = {{'/hello': 'hello', '/large': fs.readFileSync('{0}/large')}};\n\
         const options = {{allowHTTP1: true, key: fs.readFileSync('{key}'),\n\
           cert: fs.readFileSync('{certificate}')}};\n\
         const server = require('http2').createSecureServer(options, (ask, answer) => {{\n\
           const body = files[ask.url];\n\
           answer.writeHead(200, {{'content-length': body.length}});\n\
           answer.end(ask.method === 'HEAD' ? undefined : body);\n\
         }});\n\
         server.listen(0, '127.0.0.1', () => console.log(server.address().port));\n",
        folder.0.display()
    );
    let script = folder.write("server.js", script);
    let (_server, port) = printing(Command::new(program).arg(script));
    ask(&authority, port, &BOTH);
}

#[test]
fn go() {
    let Some(program) = need("go") else { return };
    let folder = Folder::new("go");
    let (authority, certificate, key) = identity(&folder);
    let source = format!(
        "package main\n\
         import (\"fmt\"; \"net\"; \"net/http\")\n\
         func main() {{\n\
           listener, err := net.Listen(\"tcp\", \"127.0.0.1:0\")\n\
           if err != nil {{ panic(err) }}\n\
           fmt.Println(listener.Addr().(*net.TCPAddr).Port)\n\
           files := http.FileServer(http.Dir(\"{}\"))\n\
           panic(http.ServeTLS(listener, files, \"{certificate}\", \"{key}\"))\n\
         }}\n",
        folder.0.display()
    );
    let source = folder.write("main.go", source);
    let binary = folder.0.join("server");
    let built = Command::new(program)
        .args(["build", "-o"])
        .arg(&binary)
        .arg(&source)
        .env("GO111MODULE", "off")
        .status();
    assert!(built.expect("go runs").success());
    let (_server, port) = printing(&mut Command::new(binary));
    ask(&authority, port, &BOTH);
}

#[test]
fn python() {
    let Some(program) = need("python3") else {
        return;
    };
    let folder = Folder::new("python");
    let (authority, certificate, key) = identity(&folder);
    let script = format!(
        "import functools, http.server, ssl\n\
         class Handler(http.server.SimpleHTTPRequestHandler):\n    \
             protocol_version = 'HTTP/1.1'\n    \
             def log_message(self, *rest): pass\n\
         handler = functools.partial(Handler, directory='{}')\n\
         server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n\
         context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
         context.load_cert_chain('{certificate}', '{key}')\n\
         server.socket = context.wrap_socket(server.socket, server_side=True)\n\
         print(server.server_address[1], flush=True)\n\
         server.serve_forever()\n",
        folder.0.display()
    );
    let script = folder.write("server.py", script);
    let (_server, port) = printing(Command::new(program).arg(script));
    let old = [
        (HttpVersion::Auto, Version::Http11),
        (HttpVersion::Http11, Version::Http11),
    ];
    ask(&authority, port, &old);
}
