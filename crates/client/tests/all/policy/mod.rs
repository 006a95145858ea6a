//! A server that redirects, sets cookies, encodes, is busy and tells what it was asked; and
//! the worlds in which a client asks it: simulated ones, and both real drivers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::Nanos;
use prony_client::resolve::{Override, ResolveSettings};
use prony_client::{Client, Error, Settings};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, DriverChoice, Handle, ListenOptions, run};
use prony_http::{Handler, Header, Request, Response, Server, ServerOptions, Source};

/// 2024-05-01, as the clients' time of day.
pub const UNIX_SECONDS: u64 = 1_714_521_600;

/// What the server was asked, one line each: method, host, path, credentials, body.
pub type Log = Rc<RefCell<Vec<String>>>;

struct App {
    log: Log,
    /// How often each path was asked.
    asked: RefCell<HashMap<String, u32>>,
}

fn text_of(value: Option<&[u8]>) -> String {
    value.map_or_else(
        || "-".to_owned(),
        |value| String::from_utf8_lossy(value).into_owned(),
    )
}

/// What is encoded: long enough for several pieces.
pub fn long_text() -> Vec<u8> {
    (0..20_000_u32)
        .flat_map(|line| format!("{line}: {}\n", line.wrapping_mul(line)).into_bytes())
        .collect()
}

/// `bytes` in a coding.
pub fn encoded(coding: &str, bytes: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(bytes).expect("memory");
            encoder.finish().expect("memory")
        }
        "deflate" => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(bytes).expect("memory");
            encoder.finish().expect("memory")
        }
        "br" => {
            let mut out = Vec::new();
            brotli::CompressorWriter::new(&mut out, 4096, 3, 20)
                .write_all(bytes)
                .expect("memory");
            out
        }
        "zstd" => {
            let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
            let length = zstd_safe::compress(&mut out[..], bytes, 3).expect("there is room");
            out.truncate(length);
            out
        }
        other => panic!("no coding {other}"),
    }
}

impl App {
    fn note(&self, request: &Request<'_>) {
        let headers = request.headers();
        let get = |name| text_of(headers.get(name));
        let host = get("host");
        self.log.borrow_mut().push(format!(
            "{} {} {} auth={} cookie={} type={} body={}",
            request.method(),
            host.split(':').next().unwrap_or_default(),
            request.target(),
            get("authorization"),
            get("cookie"),
            get("content-type").split(';').next().unwrap_or_default(),
            request.body().len(),
        ));
    }

    /// `/to?302,http://b/` redirects so.
    fn redirect(&self, query: &str, response: &mut Response) {
        let (status, location) = query.split_once(',').unwrap_or(("302", query));
        let status: u16 = status.parse().expect("a status");
        let header = Header::new("location", location.as_bytes());
        response.send(status, [header], b"elsewhere");
    }

    /// `/coded/gzip,br` encodes in turn.
    async fn coded(&self, codings: &str, response: &mut Response) {
        let mut bytes = long_text();
        for coding in codings.split(',') {
            bytes = encoded(coding, &bytes);
        }
        let header = Header::new("content-encoding", codings.as_bytes());
        // In pieces, so that codings and pieces do not end together.
        let mut body = response.stream(200, [header], None);
        for piece in bytes.chunks(9_973) {
            if body.write(piece).await.is_err() {
                return;
            }
        }
        let _ = body.finish().await;
    }

    /// `/spoilt/cut` and others: gzip that is none.
    fn spoilt(&self, how: &str, response: &mut Response) {
        let whole = encoded("gzip", &long_text());
        let (coding, body) = match how {
            "cut" => ("gzip", whole[..whole.len() / 2].to_vec()),
            "garbage" => ("gzip", b"<html>no gzip at all</html>".to_vec()),
            "trailing" => ("gzip", [whole, b"garbage".to_vec()].concat()),
            "bomb" => ("gzip", encoded("gzip", &vec![0; 4 << 20])),
            "empty" => ("gzip", Vec::new()),
            _ => ("compress", whole),
        };
        let header = Header::new("content-encoding", coding.as_bytes());
        response.send(200, [header], &body);
    }

    /// `/busy/503/2/0`: answers so twice, with this Retry-After, and then well.
    fn busy(&self, path: &str, what: &str, response: &mut Response) {
        let mut parts = what.splitn(3, '/');
        let mut part = || parts.next().unwrap_or_default();
        let (status, times, retry_after) = (part(), part(), part());
        let mut asked = self.asked.borrow_mut();
        let count = asked.entry(path.to_owned()).or_default();
        *count += 1;
        if *count > times.parse().unwrap_or(0) {
            return response.send(200, [], count.to_string().as_bytes());
        }
        let header = Header::new("retry-after", retry_after.as_bytes());
        response.send(status.parse().unwrap_or(503), [header], b"not now");
    }
}

impl Handler for App {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        self.note(request);
        let path = request.path();
        let (kind, rest) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
        let cookie = request.headers().get("cookie");
        match kind {
            "to" => self.redirect(request.query(), response),
            "hops" => match rest.parse::<u32>() {
                Ok(left @ 1..) => self.redirect(&format!("302,/hops/{}", left - 1), response),
                _ => response.send(200, [], b"there"),
            },
            "loop" => self.redirect(&format!("302,/loop/{rest}x", rest = &rest[1..]), response),
            "coded" => self.coded(rest, response).await,
            "spoilt" => self.spoilt(rest, response),
            "busy" => self.busy(path, rest, response),
            "set" => {
                let lines = request.query().split('&');
                let header = |line: &'_ str| line.replace('+', " ");
                let lines: Vec<String> = lines.map(header).collect();
                let headers = lines
                    .iter()
                    .map(|line| Header::new("set-cookie", line.as_bytes()));
                response.send(200, headers, b"set");
            }
            "login" if cookie.is_none() => {
                let headers = [
                    Header::new("set-cookie", b"session=1; Path=/; HttpOnly"),
                    Header::new("location", b"/login"),
                ];
                response.send(302, headers, b"");
            }
            "echo" => response.send(200, [], request.body()),
            "parts" => {
                let kind = request.headers().get("content-type").unwrap_or_default();
                response.send(200, [Header::new("x-type", kind)], request.body());
            }
            _ => response.send(200, [], text_of(cookie).as_bytes()),
        }
    }
}

/// Where a test is.
#[derive(Clone)]
pub struct Place {
    /// The port at which the server listens for every name.
    pub port: u16,
    pub log: Log,
}

impl Place {
    /// Settings with which every name leads to the server.
    pub fn settings(&self, address: SocketAddr) -> Settings {
        let every = Override {
            host: "*".to_owned(),
            port: None,
            addresses: vec![address.ip()],
        };
        Settings {
            resolve: ResolveSettings {
                overrides: vec![every],
                ..ResolveSettings::default()
            },
            seed: Some(1),
            unix_nanos: || UNIX_SECONDS * 1_000_000_000,
            timeout: Nanos::from_secs(300),
            ..Settings::default()
        }
    }

    pub fn url(&self, host: &str, path: &str) -> String {
        match self.port {
            80 => format!("http://{host}{path}"),
            port => format!("http://{host}:{port}{path}"),
        }
    }

    /// What the server was asked since the last call.
    pub fn seen(&self) -> Vec<String> {
        self.log.take()
    }
}

/// Status and body of a GET.
pub async fn get(client: &Client, url: &str) -> Result<(u16, Vec<u8>), Error> {
    let answer = client.get(url).send().await?;
    Ok((answer.status(), answer.bytes().await?))
}

async fn serve(handle: Handle, address: SocketAddr, log: Log, port: Rc<Cell<u16>>) {
    let listener = handle.listen(address, &ListenOptions::default());
    let listener = listener.expect("a free port");
    port.set(listener.local_addr().port());
    let app = App {
        log,
        asked: RefCell::default(),
    };
    let options = ServerOptions {
        unix_nanos: || UNIX_SECONDS * 1_000_000_000,
        ..ServerOptions::default()
    };
    let server = Server::new(&handle, options, app);
    server
        .run(Source::Listener(listener), std::future::pending())
        .await;
}

/// Plays `work` in simulated worlds of several seeds and over real sockets, with settings
/// that `adapt` may change.
pub fn everywhere<F: Future<Output = ()> + 'static>(
    adapt: impl Fn(&mut Settings) + 'static,
    work: impl Fn(Place, Client) -> F + 'static,
) {
    let (adapt, work) = (Rc::new(adapt), Rc::new(work));
    for seed in 0..4 {
        simulated(seed, adapt.clone(), work.clone());
    }
    for driver in [DriverChoice::Auto, DriverChoice::Epoll] {
        let config = Config {
            driver,
            ..Config::default()
        };
        let (adapt, work) = (adapt.clone(), work.clone());
        let ran = run(&config, move |handle| async move {
            let any: SocketAddr = ([127, 0, 0, 1], 0).into();
            let (log, port) = (Log::default(), Rc::new(Cell::new(0)));
            let serving = serve(handle.clone(), any, log.clone(), port.clone());
            let serving = handle.spawn(serving);
            handle.yield_now().await;
            let place = Place {
                port: port.get(),
                log,
            };
            let mut settings = place.settings(any);
            adapt(&mut settings);
            let client = Client::new(&handle, settings);
            let limit = Nanos::from_secs(60);
            let done = handle.timeout(limit, work(place, client)).await;
            done.expect("in time");
            drop(serving);
        });
        ran.expect("the loop runs");
    }
}

fn simulated<A: Fn(&mut Settings) + 'static, W, F>(seed: u64, adapt: Rc<A>, work: Rc<W>)
where
    W: Fn(Place, Client) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    let mut world = World::new(seed, SimOptions::default());
    let address: SocketAddr = ([10, 0, 0, 1], 80).into();
    let (log, port) = (Log::default(), Rc::new(Cell::new(0)));
    let theirs = log.clone();
    let _server = world.spawn_loop(&Config::default(), move |handle| async move {
        let limit = Nanos::from_secs(36_000);
        let serving = serve(handle.clone(), address, theirs, port);
        let _ = handle.timeout(limit, serving).await;
    });
    let client = world.spawn_loop(&Config::default(), move |handle| async move {
        // Until the server listens.
        handle.sleep(Nanos::from_millis(1)).await;
        let place = Place { port: 80, log };
        let mut settings = place.settings(address);
        adapt(&mut settings);
        let client = Client::new(&handle, settings);
        work(place, client).await;
    });
    world.run(Nanos::from_secs(72_000)).expect("nothing hangs");
    client.take().expect("it is done");
}
