//! A click counter on ntex: `GET /` answers the count, `POST /` adds 0 to 500 to it. A
//! keeper beside it brings the count to a file or to Redis from time to time and at the end.

mod count;
mod keeper;
mod settings;
mod store;

use std::io::Write as _;
use std::sync::Arc;

use env_logger::{Env, Target};
use ntex::SharedCfg;
use ntex::http::{HttpServiceConfig, Method};
use ntex::time::Seconds;
use ntex::util::Bytes;
use ntex::web::middleware::Logger;
use ntex::web::types::{PayloadConfig, State};
use ntex::web::{self, App, DefaultError, HttpResponse, HttpServer};
use ntex_cors::{Cors, CorsFactory};

use crate::count::Count;
use crate::keeper::Keeper;
use crate::settings::{Messages, Settings};

#[cfg(feature = "snmalloc")]
#[global_allocator]
static ALLOCATOR: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;

const CLICKS_MAX: u16 = 500;
/// A body above this is refused unread.
const BODY_BYTES_MAX: usize = 1024;

fn number(count: u64) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain; charset=utf-8")
        .body(count.to_string())
}

/// The same without asking for memory: a value of up to 30 bytes is kept in itself.
fn number_inline(count: u64) -> HttpResponse {
    let mut digits = [0; 20];
    let mut rest = &mut digits[..];
    // Twenty digits are enough for any.
    let _ = write!(rest, "{count}");
    let left = rest.len();
    HttpResponse::Ok()
        .content_type("text/plain; charset=utf-8")
        .body(Bytes::copy_from_slice(&digits[..digits.len() - left]))
}

async fn current(count: State<Arc<Count>>) -> HttpResponse {
    number(count.get())
}

async fn add(body: Bytes, count: State<Arc<Count>>, messages: State<Messages>) -> HttpResponse {
    let clicks = match messages.is_binary {
        true => binary_clicks(&body),
        false => clicks(&body),
    };
    let Some(clicks) = clicks else {
        return HttpResponse::BadRequest().finish();
    };
    match count.add(clicks) {
        Some(total) if messages.is_inline => number_inline(total),
        Some(total) => number(total),
        None => HttpResponse::ServiceUnavailable().finish(),
    }
}

/// One to three decimal digits, and nothing else: `parse` alone would take `+5`.
fn clicks(body: &[u8]) -> Option<u16> {
    if body.len() > 3 || !body.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let clicks = std::str::from_utf8(body).ok()?.parse().ok()?;
    (clicks <= CLICKS_MAX).then_some(clicks)
}

/// Two bytes, the higher one first.
fn binary_clicks(body: &[u8]) -> Option<u16> {
    let clicks = u16::from_be_bytes(body.try_into().ok()?);
    (clicks <= CLICKS_MAX).then_some(clicks)
}

/// Any origin and any field are what it allows unless told otherwise.
fn cors() -> CorsFactory<DefaultError> {
    Cors::new()
        .allowed_methods([Method::GET, Method::POST])
        .max_age(3600)
        .finish()
}

/// The logger puts its line together before it asks whether anybody wants it, and a middleware
/// cannot be left out, but it can be told what to leave alone.
fn logger(wanted: bool) -> Logger {
    if wanted {
        Logger::default()
    } else {
        Logger::default().exclude("/")
    }
}

fn start_log() {
    if std::env::var_os("CLICKY_NO_LOGGING").is_none() {
        env_logger::Builder::from_env(Env::default().default_filter_or("info"))
            .target(Target::Stdout)
            .init();
    }
}

#[ntex::main]
async fn main() -> anyhow::Result<()> {
    let settings = Settings::from_env()?;
    start_log();
    let count = Arc::new(Count::default());
    let keeper = Keeper::start(&settings, count.clone())?;
    let access_log = log::log_enabled!(target: "ntex::web::middleware::logger", log::Level::Info);
    let http = HttpServiceConfig::new()
        .set_keepalive(settings.keep_alive)
        // The default of 5 s is short for a crowd of connections that all arrive at once.
        .set_client_timeout(Seconds(60));

    let served = count.clone();
    HttpServer::new(async move || {
        App::new()
            .state(served.clone())
            .state(settings.messages)
            .state(PayloadConfig::new(BODY_BYTES_MAX))
            .middleware(logger(access_log))
            .middleware(cors())
            .service(
                web::resource("/")
                    .route(web::get().to(current))
                    .route(web::head().to(current))
                    .route(web::post().to(add)),
            )
    })
    .workers(settings.workers)
    .backlog(65_535)
    .config(SharedCfg::new("clicky").add(http))
    .shutdown_timeout(Seconds(2))
    .bind(&settings.address)?
    .run()
    .await?;

    keeper.finish(count.close())
}
