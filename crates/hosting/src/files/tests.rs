//! Files through the real server, on the wire.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use prony_engine::{Config, ListenOptions};
use prony_http::{Handler, Server, ServerOptions, Source};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const DEADLINE: Duration = Duration::from_secs(20);
const BIG: usize = 32 << 20;

struct Only(Files);

impl Handler for Only {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match self.0.serves(request.path()) {
            true => self.0.answer(request, response).await,
            false => response.text(404, "the application\n"),
        }
    }
}

/// A server of files, which ends with this.
struct Site {
    yard: TempDir,
    address: SocketAddr,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(!matches!(ended, Some(Err(_))) || std::thread::panicking());
    }
}

impl Site {
    /// Files of `root/` in a fresh yard, below `/static`.
    fn new() -> Site {
        let yard = tempfile::tempdir().unwrap();
        let root = yard.path().join("root");
        fs::create_dir(&root).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (tell, told) = mpsc::channel();
        let serving = std::thread::spawn(move || {
            let served = prony_engine::run(&Config::default(), |handle| async move {
                let options = ListenOptions::default();
                let any = "127.0.0.1:0".parse().unwrap();
                let listener = handle.listen(any, &options).unwrap();
                tell.send(listener.local_addr()).unwrap();
                let mut files = Files::open(&root, "/static").unwrap();
                // Nobody can make a file old: here all are old enough to be kept.
                files.cache = Cache::new(0);
                let server = Server::new(&handle, ServerOptions::default(), Only(files));
                let stop = handle.clone();
                let stop = async move {
                    let _ = stop.readable(&stopped).await;
                };
                server.run(Source::Listener(listener), stop).await;
            });
            served.unwrap();
        });
        Site {
            yard,
            address: told.recv_timeout(DEADLINE).unwrap(),
            stop: Some(stop),
            thread: Some(serving),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.yard.path().join("root").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Has `change` done until the file's time of change is another: where clocks of file
    /// systems tick every few milliseconds, two changes can have the same.
    fn change(&self, name: &str, change: impl Fn()) {
        let changed = || {
            let about = fs::metadata(self.path(name)).unwrap();
            (about.ctime(), about.ctime_nsec(), about.ino())
        };
        let before = changed();
        let due = Instant::now() + DEADLINE;
        while changed() == before {
            assert!(Instant::now() < due, "the file's clock stands");
            change();
        }
    }

    /// Sends a request, and yields the stream before anything was read of the answer.
    fn send(&self, method: &str, target: &str, headers: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let request =
            format!("{method} {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    fn ask(&self, method: &str, target: &str, headers: &str) -> Answer {
        Answer::read(&mut self.send(method, target, headers))
    }

    fn get(&self, target: &str, headers: &str) -> Answer {
        self.ask("GET", target, headers)
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn read(stream: &mut BufReader<TcpStream>) -> Answer {
        let mut answer = Answer::head(stream);
        stream.read_to_end(&mut answer.body).unwrap();
        answer
    }

    fn head(stream: &mut BufReader<TcpStream>) -> Answer {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let headers = lines[1..].iter().map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_lowercase(), value.to_owned())
        });
        Answer {
            status: lines[0][9..12].parse().unwrap(),
            headers: headers.collect(),
            body: Vec::new(),
        }
    }

    fn get(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }
}

/// Bytes that tell where they are.
fn counted(length: usize) -> Vec<u8> {
    (0..length as u64 / 8).flat_map(u64::to_be_bytes).collect()
}

#[test]
fn a_file_is_sent_with_its_type_and_validators_and_head_is_the_same_without() {
    let site = Site::new();
    site.write("css/main.css", "a{}");
    site.write("large", counted(1 << 20));
    for (target, bytes, kind) in [
        ("/static/css/main.css", 3, "text/css; charset=utf-8"),
        ("/static/large", 1 << 20, "application/octet-stream"),
    ] {
        let got = site.get(target, "");
        assert_eq!((got.status, got.body.len()), (200, bytes), "{target}");
        assert_eq!(got.get("content-type"), kind);
        assert_eq!(got.get("content-length"), bytes.to_string());
        assert_eq!(got.get("accept-ranges"), "bytes");
        assert_eq!(got.get("vary"), "");
        assert!(got.get("etag").starts_with('"'), "{got:?}");
        assert!(got.get("last-modified").ends_with(" GMT"), "{got:?}");
        let head = site.ask("HEAD", target, "");
        let but_date = |answer: &Answer| {
            let mut headers = answer.headers.clone();
            headers.retain(|(name, _)| name != "date");
            headers
        };
        assert_eq!(but_date(&head), but_date(&got));
        assert_eq!((head.status, head.body.len()), (200, 0));
    }
    assert_eq!(site.get("/static/large", "").body, counted(1 << 20));
    let refused = site.ask("DELETE", "/static/css/main.css", "");
    assert_eq!((refused.status, refused.get("allow")), (405, "GET, HEAD"));
    assert_eq!(site.get("/staticfile", "").text(), "the application\n");
}

#[test]
fn no_path_reaches_what_is_outside_or_hidden_or_no_file() {
    let site = Site::new();
    site.write("a/f", "INSIDE");
    site.write(".git/config", "HIDDEN");
    site.write("secret/f", "UNREADABLE");
    fs::write(site.yard.path().join("f"), "OUTSIDE").unwrap();
    symlink("../f", site.path("out")).unwrap();
    symlink("..", site.path("up")).unwrap();
    symlink("/etc", site.path("etc")).unwrap();
    symlink("a", site.path("in")).unwrap();
    symlink("nowhere", site.path("broken")).unwrap();
    let fifo = site.path("pipe");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, fifo, kind, mode, 0).unwrap();
    for (path, status) in [
        ("/a/f", 200),
        ("/in/f", 200),
        ("/a/%66", 200),
        ("/../f", 404),
        ("/a/../../f", 404),
        ("/%2e%2e/f", 404),
        ("/a/..%2f..%2ff", 404),
        ("/%252e%252e/f", 404),
        ("/a/%2e%2e/a/f", 404),
        ("/out", 404),
        ("/up/f", 404),
        ("/up/root/a/f", 404),
        ("/etc/hostname", 404),
        ("/broken", 404),
        ("//etc/hostname", 404),
        ("/a//f", 404),
        ("/a/./f", 404),
        ("/a/f%00", 404),
        ("/a/f/", 404),
        ("/a/f%00.css", 404),
        ("/.git/config", 404),
        ("/%2egit/config", 404),
        ("/pipe", 404),
        ("/a/f%", 400),
        ("/a/f%4", 400),
        ("/a/f%gg", 400),
        ("/a", 301),
        ("/a/", 404),
        ("/nothing", 404),
        ("/\\..\\f", 404),
    ] {
        let answer = site.get(&format!("/static{path}"), "");
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!(status == 200, answer.text() == "INSIDE", "{path}");
    }
    let long = format!("/static/{}", "a".repeat(5000));
    assert_eq!(site.get(&long, "").status, 404);
    let whole = format!("http://{}/static/a/f", site.address);
    assert_eq!(site.get(&whole, "").text(), "INSIDE");
    fs::set_permissions(site.path("secret/f"), fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(site.path("secret/f")).is_err() {
        assert_eq!(site.get("/static/secret/f", "").status, 403);
    }
}

#[test]
fn a_directory_is_its_index_behind_a_slash() {
    let site = Site::new();
    site.write("index.html", "top");
    site.write("a b/index.html", "below");
    fs::create_dir_all(site.path("odd/index.html")).unwrap();
    for (path, place) in [
        ("/static", "/static/"),
        ("/static/a%20b", "/static/a%20b/"),
        ("/static/a%20b?x=1", "/static/a%20b/?x=1"),
    ] {
        let answer = site.get(path, "");
        assert_eq!((answer.status, answer.get("location")), (301, place));
    }
    for (path, text) in [
        ("/static/", "top"),
        ("/static/?x", "top"),
        ("/static/a%20b/", "below"),
    ] {
        let answer = site.get(path, "");
        assert_eq!((answer.status, answer.text()), (200, text));
        assert_eq!(answer.get("content-type"), "text/html; charset=utf-8");
    }
    assert_eq!(site.get("/static/odd/", "").status, 404);
}

#[test]
fn conditions_and_ranges_hold_for_small_and_large_files() {
    let site = Site::new();
    for length in [800, 200_000] {
        site.write("f", counted(length));
        let whole = site.get("/static/f", "");
        let (etag, modified) = (whole.get("etag"), whole.get("last-modified"));
        for (headers, status) in [
            (format!("if-none-match: {etag}\r\n"), 304),
            (format!("if-none-match: W/{etag}\r\n"), 304),
            ("if-none-match: \"x\"\r\n".to_owned(), 200),
            (format!("if-modified-since: {modified}\r\n"), 304),
            (format!("if-match: {etag}\r\n"), 200),
            ("if-match: \"x\"\r\n".to_owned(), 412),
            (format!("if-unmodified-since: {modified}\r\n"), 200),
            (
                "if-unmodified-since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".to_owned(),
                412,
            ),
            ("range: bytes=0-3,8-9\r\n".to_owned(), 200),
            (format!("range: bytes=8-15\r\nif-range: {etag}\r\n"), 206),
            ("range: bytes=8-15\r\nif-range: \"x\"\r\n".to_owned(), 200),
        ] {
            let answer = site.get("/static/f", &headers);
            assert_eq!(answer.status, status, "{headers}");
            if matches!(status, 200 | 206 | 304 | 412) {
                assert_eq!(answer.get("etag"), etag, "{headers}");
            }
            if status == 304 {
                assert!(answer.body.is_empty() && answer.get("content-length").is_empty());
            }
        }
        let end = length - 1;
        for (range, first, last) in [
            ("0-0".to_owned(), 0, 0),
            ("8-15".to_owned(), 8, 15),
            ("100-".to_owned(), 100, end),
            ("-8".to_owned(), length - 8, end),
            (format!("0-{length}"), 0, end),
        ] {
            let answer = site.get("/static/f", &format!("range: bytes={range}\r\n"));
            assert_eq!(answer.status, 206, "{range}");
            let said = format!("bytes {first}-{last}/{length}");
            assert_eq!(answer.get("content-range"), said);
            assert_eq!(answer.body, counted(length)[first..=last], "{range}");
        }
        let answer = site.get("/static/f", &format!("range: bytes={length}-\r\n"));
        assert_eq!(answer.status, 416);
        assert_eq!(answer.get("content-range"), format!("bytes */{length}"));
        let head = site.ask("HEAD", "/static/f", "range: bytes=0-3\r\n");
        assert_eq!(
            (head.status, head.get("content-length")),
            (200, &*length.to_string())
        );
    }
}

#[test]
fn a_compressed_form_goes_to_who_takes_it_unless_it_is_older() {
    let site = Site::new();
    site.write("x.css", "the file as it is, which is the longest");
    site.write("x.css.gz", "as gzip, shorter");
    site.write("x.css.br", "as brotli");
    let plain = site.get("/static/x.css", "");
    assert_eq!(plain.text(), "the file as it is, which is the longest");
    assert_eq!(plain.get("vary"), "accept-encoding");
    assert_eq!(plain.get("content-encoding"), "");
    let gzip = site.get("/static/x.css", "accept-encoding: gzip\r\n");
    assert_eq!(gzip.text(), "as gzip, shorter");
    assert_eq!(gzip.get("content-encoding"), "gzip");
    assert_eq!(gzip.get("content-type"), "text/css; charset=utf-8");
    assert_eq!(gzip.get("vary"), "accept-encoding");
    assert_ne!(gzip.get("etag"), plain.get("etag"));
    let brotli = site.get("/static/x.css", "accept-encoding: gzip, br\r\n");
    assert_eq!(brotli.get("content-encoding"), "br");
    let known = format!(
        "accept-encoding: gzip\r\nif-none-match: {}\r\n",
        gzip.get("etag")
    );
    assert_eq!(site.get("/static/x.css", &known).status, 304);
    let other = format!(
        "accept-encoding: gzip\r\nif-none-match: {}\r\n",
        plain.get("etag")
    );
    assert_eq!(site.get("/static/x.css", &other).status, 200);
    let part = site.get(
        "/static/x.css",
        "accept-encoding: gzip\r\nrange: bytes=3-6\r\n",
    );
    assert_eq!((part.status, part.text()), (206, "gzip"));
    let itself = site.get("/static/x.css.gz", "");
    assert_eq!(itself.get("content-type"), "application/gzip");
    assert_eq!(itself.get("content-encoding"), "");

    site.change("x.css.gz", || site.write("x.css.gz", "as gzip, again"));
    let again = site.get("/static/x.css", "accept-encoding: gzip\r\n");
    assert_eq!(again.text(), "as gzip, again");
    let old = SystemTime::now() - Duration::from_secs(60);
    let gz = File::options()
        .write(true)
        .open(site.path("x.css.gz"))
        .unwrap();
    gz.set_modified(old).unwrap();
    let stale = site.get("/static/x.css", "accept-encoding: gzip\r\n");
    assert_eq!(stale.text(), plain.text());
    fs::remove_file(site.path("x.css.br")).unwrap();
    let gone = site.get("/static/x.css", "accept-encoding: br\r\n");
    assert_eq!(gone.text(), plain.text());

    let none = site.get("/static/x.css", "accept-encoding: identity;q=0\r\n");
    assert_eq!((none.status, none.get("vary")), (406, "accept-encoding"));
}

#[test]
fn what_is_sent_is_never_stale() {
    let site = Site::new();
    let old = SystemTime::now() - Duration::from_secs(3600);
    let set_back = |name| {
        let file = File::options().write(true).open(site.path(name)).unwrap();
        file.set_modified(old).unwrap();
    };
    for length in [10, 100_000] {
        site.write("f", vec![b'0'; length]);
        let mut tags = Vec::new();
        for round in 0..20_u8 {
            let content = vec![b'a' + round; length];
            match round % 3 {
                0 => site.change("f", || site.write("f", &content)),
                // The same size and time of modification, in place.
                1 => site.change("f", || {
                    site.write("f", &content);
                    set_back("f");
                }),
                _ => site.change("f", || {
                    site.write("new", &content);
                    fs::rename(site.path("new"), site.path("f")).unwrap();
                }),
            }
            for _ in 0..3 {
                let answer = site.get("/static/f", "");
                assert!(answer.body == content, "round {round}");
                tags.push(answer.get("etag").to_owned());
            }
        }
        fs::remove_file(site.path("f")).unwrap();
        assert_eq!(site.get("/static/f", "").status, 404);
        tags.dedup();
        assert!(tags.len() > 13, "{tags:?}");
    }
}

#[test]
fn a_file_that_is_cut_short_while_it_is_sent_ends_the_connection() {
    let site = Site::new();
    site.write("f", counted(BIG));
    let mut stream = site.send("GET", "/static/f", "");
    let head = Answer::head(&mut stream);
    assert_eq!(head.get("content-length"), BIG.to_string());
    let file = File::options().write(true).open(site.path("f")).unwrap();
    file.set_len(1 << 20).unwrap();
    let mut body = Vec::new();
    let ended = stream.read_to_end(&mut body);
    assert!(body.len() < BIG, "{ended:?}");
    // Of what was cut off the kernel may have sent zeros: it does not copy what it sends.
    let left = body.len().min(1 << 20);
    assert!(body[..left] == counted(BIG)[..left]);
    assert_eq!(site.get("/static/f", "").body.len(), 1 << 20, "goes on");
}

#[test]
fn a_file_that_is_replaced_while_it_is_sent_is_sent_as_it_was() {
    let site = Site::new();
    site.write("f", counted(BIG));
    let mut stream = site.send("GET", "/static/f", "");
    let _ = Answer::head(&mut stream);
    site.write("new", "new");
    fs::rename(site.path("new"), site.path("f")).unwrap();
    let mut body = Vec::new();
    stream.read_to_end(&mut body).unwrap();
    assert!(body == counted(BIG));
    assert_eq!(site.get("/static/f", "").text(), "new");
}

#[test]
fn clients_that_do_not_read_hold_up_nobody() {
    let site = Site::new();
    site.write("f", counted(BIG));
    site.write("small", "small");
    let slow: Vec<_> = (0..50).map(|_| site.send("GET", "/static/f", "")).collect();
    for _ in 0..100 {
        assert_eq!(site.get("/static/small", "").text(), "small");
    }
    let mut last = slow.into_iter().next_back().unwrap();
    assert!(
        Answer::read(&mut last).body == counted(BIG),
        "is sent in the end"
    );
}

#[test]
fn a_file_being_written_is_sent_in_one_of_its_states() {
    let site = Site::new();
    site.write("f", [0; 4096]);
    let file = File::options().write(true).open(site.path("f")).unwrap();
    for state in 1..200_u8 {
        site.change("f", || file.write_all_at(&[state; 4096], 0).unwrap());
        let answer = site.get("/static/f", "");
        assert!(answer.body == [state; 4096], "{state}");
    }
}

fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "a", "f", "..", ".", "%2e", "%2E%2e", "%2f", "%5c", "\\", "%00", "%25", "%252e", "in",
        "out", "up", "etc", "hostname", "root", "%", "?", "//", "../../f", "static", ";", "%c0%af",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn no_soup_of_a_path_leads_out() {
    let site = Site::new();
    site.write("a/f", "INSIDE");
    site.write("f", "INSIDE");
    fs::write(site.yard.path().join("f"), "OUTSIDE").unwrap();
    fs::create_dir(site.yard.path().join("a")).unwrap();
    fs::write(site.yard.path().join("a/f"), "OUTSIDE").unwrap();
    symlink("../f", site.path("out")).unwrap();
    symlink("..", site.path("up")).unwrap();
    symlink("/etc", site.path("etc")).unwrap();
    symlink("a", site.path("in")).unwrap();
    let config = ProptestConfig::with_cases(prony_testkit::seeds(500, 20_000) as u32);
    proptest!(config, |(path in soup())| {
        let answer = site.get(&format!("/static/{path}"), "");
        match answer.status {
            200 => prop_assert_eq!(answer.text(), "INSIDE"),
            status => prop_assert!([301, 400, 404].contains(&status), "{}", status),
        }
    });
}
