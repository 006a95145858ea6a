//! A click counter on actix-web: `GET /` answers the count, `POST /` adds 0 to 500 to it. A
//! keeper beside it brings the count to a file or to Redis from time to time and at the end.

mod count;
mod keeper;
mod settings;
mod store;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use actix_cors::Cors;
use actix_web::http::header::ContentType;
use actix_web::middleware::{Condition, Logger};
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer};
use env_logger::{Env, Target};

use crate::count::Count;
use crate::keeper::Keeper;
use crate::settings::Settings;

#[cfg(feature = "snmalloc")]
#[global_allocator]
static ALLOCATOR: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;

/// The counter, for requests that are handed none.
static GLOBAL: LazyLock<Arc<Count>> = LazyLock::new(Arc::default);

const CLICKS_MAX: u16 = 500;
/// A body above this is refused unread, with 413.
const BODY_BYTES_MAX: usize = 1024;

fn number(count: u64) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(ContentType::plaintext())
        .body(count.to_string())
}

async fn current(count: Data<Count>) -> HttpResponse {
    number(count.get())
}

async fn add(body: Bytes, count: Data<Count>) -> HttpResponse {
    added(&body, &count)
}

async fn add_globally(body: Bytes) -> HttpResponse {
    added(&body, &GLOBAL)
}

fn added(body: &[u8], count: &Count) -> HttpResponse {
    let Some(clicks) = clicks(body) else {
        return HttpResponse::BadRequest().finish();
    };
    match count.add(clicks) {
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

fn cors() -> Cors {
    Cors::default()
        .allow_any_origin()
        .allowed_methods(["GET", "POST"])
        .allow_any_header()
        .max_age(3600)
}

fn start_log() {
    if std::env::var_os("CLICKY_NO_LOGGING").is_none() {
        env_logger::Builder::from_env(Env::default().default_filter_or("info"))
            .target(Target::Stdout)
            .init();
    }
}

#[actix_web::main]
async fn main() -> anyhow::Result<()> {
    let settings = Settings::from_env()?;
    start_log();
    let count = Data::from(GLOBAL.clone());
    let keeper = Keeper::start(&settings, count.clone().into_inner())?;
    // The logger puts its line together before it asks whether anybody wants it.
    let access_log = log::log_enabled!(target: "actix_web::middleware::logger", log::Level::Info);

    let served = count.clone();
    HttpServer::new(move || {
        let post = match settings.is_global {
            true => web::post().to(add_globally),
            false => web::post().to(add),
        };
        App::new()
            .app_data(served.clone())
            .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
            .wrap(cors())
            .wrap(Condition::new(access_log, Logger::default()))
            .service(
                web::resource("/")
                    .route(web::get().to(current))
                    .route(web::head().to(current))
                    .route(post),
            )
    })
    .workers(settings.workers)
    .backlog(65_535)
    .keep_alive(settings.keep_alive)
    // The default of 5 s is short for a crowd of connections that all arrive at once.
    .client_request_timeout(Duration::from_secs(60))
    .shutdown_timeout(2)
    .bind(&settings.address)?
    .run()
    .await?;

    keeper.finish(count.close())
}
