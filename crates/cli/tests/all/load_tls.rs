//! `prony load https://…` against `prony serve --tls`, nginx, and servers that do it wrong; curl and openssl against
//! `prony serve --tls`.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::common::{Ended, PRONY, folder, free_port, text, wait_for_port};
use crate::server::drivers;

/// Who may do what with a file.
fn mode(file: &Path) -> u32 {
    let metadata = fs::metadata(file).expect("it is there");
    metadata.permissions().mode() & 0o777
}

/// `prony serve --tls`, killed when dropped.
struct SecureServer {
    process: Child,
    url: String,
    certificate: PathBuf,
    _key: PathBuf,
}

impl SecureServer {
    fn start(driver: &str, words: &[&str]) -> SecureServer {
        let mut process = Command::new(PRONY)
            .args(["serve", "--port", "0", "--tls"])
            .args(words)
            .env("PRONY_DRIVER", driver)
            .stdout(Stdio::piped())
            .spawn()
            .expect("prony starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let mut next = |before: &str| {
            let line = lines.next().expect("a line").expect("text");
            let rest = line.strip_prefix(before).map(str::to_owned);
            rest.unwrap_or_else(|| panic!("it said {line:?}"))
        };
        let (certificate, key): (PathBuf, PathBuf) =
            (next("certificate ").into(), next("key ").into());
        assert_eq!(mode(&key), 0o600);
        SecureServer {
            url: next("listening on "),
            process,
            certificate,
            _key: key,
        }
    }

    fn load(&self, words: &[&str]) -> Value {
        let certificate = self.certificate.to_str().expect("text");
        let output = load(&[&["--cacert", certificate], words].concat(), &self.url);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("a report")
    }
}

impl Drop for SecureServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = self.certificate.parent().map(fs::remove_dir_all);
    }
}

fn load(words: &[&str], url: &str) -> Output {
    Command::new(PRONY)
        .args(["load", "-t", "1", "-c", "8", "--json", "-"])
        .args(words)
        .arg(format!("{url}/hello"))
        .output()
        .expect("prony runs")
}

/// What `prony load` says where no connection can be opened.
fn refusal(words: &[&str], url: &str) -> String {
    let output = load(&[&["-n", "10"], words].concat(), url);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    text(&output.stderr)
}

/// Whether a program is there; a named skip where it is not.
fn has(program: &str, word: &str) -> bool {
    let found = Command::new(program).arg(word).output().is_ok();
    if !found {
        prony_testkit::skip(&format!("{program} is not installed"));
    }
    found
}

fn number(report: &Value, path: &str) -> u64 {
    let value = report.pointer(path).unwrap_or(&Value::Null);
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{path} in {report}"))
}

#[test]
fn every_request_over_tls_is_counted_with_its_handshakes() {
    for driver in drivers() {
        for (version, name) in [("1.2", "TLS 1.2"), ("1.3", "TLS 1.3")] {
            let server = SecureServer::start(driver, &["--tls-version", version]);
            let report = server.load(&["-n", "2000"]);
            assert_eq!(number(&report, "/completed"), 2_000);
            assert_eq!(report["tls"]["version"], name);
            assert_eq!(report["tls"]["protocol"], "http/1.1");
            let handshakes = (
                number(&report, "/tls/full"),
                number(&report, "/tls/resumed"),
            );
            assert_eq!(handshakes.0 + handshakes.1, 8, "{driver}");
            assert_eq!(number(&report, "/tls/handshake_ns/count"), 8);
        }
    }
}

#[test]
fn secrets_of_sessions_are_kept_for_who_captures() {
    let server = SecureServer::start("epoll", &[]);
    let dir = folder("keys");
    let keys = dir.join("keys.log");
    let run = |file: &Path| {
        Command::new(PRONY)
            .args([
                "load",
                "-t",
                "1",
                "-c",
                "8",
                "-n",
                "100",
                "--insecure",
                "--no-resumption",
            ])
            .arg(format!("{}/hello", server.url))
            .env("SSLKEYLOGFILE", file)
            .output()
            .expect("prony runs")
    };
    let output = run(&keys);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(mode(&keys), 0o600);
    let kept = fs::read_to_string(&keys).expect("the file");
    let sessions = kept
        .lines()
        .filter(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 "));
    assert_eq!(sessions.count(), 8, "{kept}");
    let nowhere = dir.join("none").join("keys.log");
    let refused = run(&nowhere);
    assert_eq!(refused.status.code(), Some(2));
    let why = text(&refused.stderr);
    assert!(
        why.contains("SSLKEYLOGFILE") && why.contains("none/keys.log"),
        "{why}"
    );
}

#[test]
fn a_connection_for_each_request_goes_on_from_earlier_sessions_unless_that_is_off() {
    let server = SecureServer::start("epoll", &[]);
    for version in ["1.2", "1.3"] {
        let words = ["-n", "100", "--no-keepalive", "--tls-version", version];
        let report = server.load(&words);
        assert_eq!(number(&report, "/completed"), 100);
        let opened = number(&report, "/connections_opened");
        let (full, resumed) = (
            number(&report, "/tls/full"),
            number(&report, "/tls/resumed"),
        );
        assert_eq!(full + resumed, opened);
        assert!(
            (100..=108).contains(&opened) && resumed >= 80,
            "{full} + {resumed}"
        );
        assert!(number(&report, "/tls/in_window") >= 90);
        let report = server.load(&[&words[..], &["--no-resumption"]].concat());
        assert_eq!(number(&report, "/tls/resumed"), 0);
    }
}

#[test]
fn a_certificate_is_trusted_by_name_alone() {
    let server = SecureServer::start("epoll", &[]);
    let said = refusal(&[], &server.url);
    assert!(
        said.contains("signed by itself") && said.contains("--cacert FILE"),
        "{said}"
    );
    let other = SecureServer::start("epoll", &[]);
    let certificate = other.certificate.to_str().expect("text");
    let said = refusal(&["--cacert", certificate], &server.url);
    assert!(said.contains("--cacert FILE"), "{said}");
    assert!(
        load(&["-n", "10", "--insecure"], &server.url)
            .status
            .success()
    );
    let url = server.url.replace("127.0.0.1", "a.test");
    let port = url.rsplit(':').next().expect("a port");
    let way = format!("a.test:{port}:127.0.0.1");
    let certificate = server.certificate.to_str().expect("text");
    let said = refusal(&["--cacert", certificate, "--resolve", &way], &url);
    assert!(said.contains("not for a.test, but for localhost"), "{said}");
    let url = url.replace("a.test", "localhost");
    let way = format!("localhost:{port}:127.0.0.1");
    let words = ["-n", "10", "--cacert", certificate, "--resolve", &way];
    assert!(load(&words, &url).status.success());
}

/// A server that answers the first bytes of each connection with these, and closes.
fn wrong_server(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("bound"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut first = [0; 2_048];
            let _ = stream.read(&mut first);
            let _ = stream.write_all(answer);
            cut(stream);
        }
    });
    url
}

/// Ends `stream` after what was written. Closed with bytes of the client unread, it would be reset instead.
fn cut(mut stream: TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = io::copy(&mut stream, &mut io::sink());
}

#[test]
fn servers_that_do_it_wrong_are_named() {
    let said = refusal(
        &["--insecure"],
        &wrong_server(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    );
    assert!(said.contains("use http://"), "{said}");
    let said = refusal(&["--insecure"], &wrong_server(b""));
    assert!(
        said.contains("closed the connection during the TLS handshake"),
        "{said}"
    );
    // A fatal alert: handshake_failure.
    let said = refusal(&["--insecure"], &wrong_server(&[21, 3, 3, 0, 2, 2, 40]));
    assert!(said.contains("handshake_failure"), "{said}");
    let server = SecureServer::start("epoll", &["--tls-version", "1.2"]);
    let said = refusal(&["--insecure", "--tls-version", "1.3"], &server.url);
    assert!(said.contains("protocol_version"), "{said}");
}

/// A way to `server` on which it is cut off after so many bytes of it.
fn cut_after(server: &SecureServer, bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("bound"));
    let address = server.url.trim_start_matches("https://").to_owned();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut server = TcpStream::connect(&address).expect("it listens");
            let mut hello = [0; 4_096];
            let count = client.read(&mut hello).unwrap_or_default();
            let _ = server.write_all(&hello[..count]);
            let mut flight = vec![0; bytes];
            let _ = server.read_exact(&mut flight);
            let _ = client.write_all(&flight);
            cut(client);
        }
    });
    url
}

#[test]
fn a_handshake_that_is_cut_is_named_wherever_that_is() {
    let server = SecureServer::start("epoll", &["--no-resumption"]);
    for bytes in [1, 4, 5, 6, 90, 127, 133, 200, 400, 600] {
        let said = refusal(&["--insecure"], &cut_after(&server, bytes));
        let is_named = said.contains("closed the connection during the TLS handshake");
        assert!(is_named, "after {bytes}: {said}");
    }
}

#[test]
fn words_of_tls_are_not_for_plain_http() {
    for words in [
        &["--insecure"][..],
        &["--no-resumption"],
        &["--tls-version", "1.3"],
    ] {
        let output = load(&[words, &["-n", "1"]].concat(), "http://127.0.0.1:9");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(words[0]));
    }
}

#[test]
fn other_clients_read_whole_answers_of_the_server() {
    if !has("curl", "--version") {
        return;
    }
    let server = SecureServer::start("epoll", &["--payload", "3MiB"]);
    let folder = folder("tls-curl");
    let mut bodies = Vec::new();
    for version in ["--tlsv1.3", "--tls-max=1.2"] {
        let file = folder.join("body");
        let status = Command::new("curl")
            .args(["-sS", "--fail", "--cacert"])
            .arg(&server.certificate)
            .args(version.split('='))
            .arg("-o")
            .arg(&file)
            .arg(format!("{}/testpayload", server.url))
            .status()
            .expect("curl runs");
        assert!(status.success());
        bodies.push(fs::read(&file).expect("a body"));
    }
    assert_eq!(bodies[0].len(), 3 << 20);
    assert!(bodies[0] == bodies[1]);
    fs::remove_dir_all(folder).expect("removed");
    if has("openssl", "version") {
        let address = server.url.trim_start_matches("https://");
        let output = Command::new("openssl")
            .args([
                "s_client",
                "-brief",
                "-verify_return_error",
                "-alpn",
                "http/1.1",
            ])
            .arg("-CAfile")
            .arg(&server.certificate)
            .args(["-connect", address])
            .stdin(Stdio::null())
            .output()
            .expect("openssl runs");
        let said = text(&output.stderr);
        assert!(
            said.contains("TLSv1.3") && said.contains("Verification: OK"),
            "{said}"
        );
    }
}

/// nginx with a certificate of `server`, which asks clients for that same one on its second port.
fn nginx(folder: &Path, server: &SecureServer) -> Option<(Ended, u16, u16)> {
    if !has("nginx", "-v") {
        return None;
    }
    let (port, asking) = (free_port(), free_port());
    let (certificate, key) = (server.certificate.display(), server._key.display());
    let at = folder.display();
    let config = format!(
        "daemon off; pid {at}/pid; error_log {at}/error.log; worker_processes 1;
        events {{ worker_connections 1000; }}
        http {{
          access_log {at}/access.log; client_body_temp_path {at}/a; proxy_temp_path {at}/b;
          fastcgi_temp_path {at}/c; uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;
          ssl_certificate {certificate}; ssl_certificate_key {key};
          keepalive_requests 1000000;
          server {{ listen 127.0.0.1:{port} ssl; location / {{ return 200 'Hello'; }} }}
          server {{ listen 127.0.0.1:{asking} ssl; ssl_verify_client on; ssl_client_certificate {certificate};
            location / {{ return 200 'Hello'; }} }}
        }}"
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, config).expect("written");
    let mut command = Command::new("nginx");
    command
        .arg("-c")
        .arg(&file)
        .arg("-e")
        .arg(folder.join("error.log"));
    let nginx = Ended::start(command.stderr(Stdio::null()));
    wait_for_port(port);
    wait_for_port(asking);
    Some((nginx, port, asking))
}

#[test]
fn nginx_counts_the_same_requests_and_sees_the_certificate_of_the_client() {
    let server = SecureServer::start("epoll", &[]);
    let folder = folder("tls-nginx");
    let Some((nginx, port, asking)) = nginx(&folder, &server) else {
        return;
    };
    let certificate = server.certificate.to_str().expect("text");
    let key = server._key.to_str().expect("text");
    for words in [
        &["--tls-version", "1.2"][..],
        &[],
        &["--requests-per-connection", "7"],
    ] {
        let words = [&["-n", "1000", "--cacert", certificate], words].concat();
        let output = load(&words, &format!("https://127.0.0.1:{port}"));
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(number(&report, "/completed"), 1_000, "{report}");
        assert!(output.status.success());
    }
    let url = format!("https://127.0.0.1:{asking}");
    let trusting = ["-n", "100", "--cacert", certificate];
    let none = load(&trusting, &url);
    assert_eq!(none.status.code(), Some(1), "statuses of 400");
    let shown = load(
        &[&trusting[..], &["--cert", certificate, "--key", key]].concat(),
        &url,
    );
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    drop(nginx);
    let log = fs::read_to_string(folder.join("access.log")).expect("a log");
    assert_eq!(log.lines().count(), 3_200);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn connections_come_from_the_addresses_they_are_told_to() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let seen = thread::spawn(move || {
        let mut seen = Vec::new();
        for _ in 0..8 {
            let (mut stream, peer) = listener.accept().expect("a connection");
            seen.push(peer.ip().to_string());
            thread::spawn(move || {
                let mut bytes = [0; 1_024];
                while matches!(stream.read(&mut bytes), Ok(1..)) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                }
            });
        }
        seen.sort();
        seen
    });
    let output = load(
        &["-n", "80", "--source", "127.0.0.2", "--source", "127.0.0.3"],
        &url,
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let expected = [["127.0.0.2"; 4], ["127.0.0.3"; 4]].concat();
    assert_eq!(seen.join().expect("seen"), expected);
}
