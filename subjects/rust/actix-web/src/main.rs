//! The ping and hello endpoints on actix-web.

use std::time::Duration;

use actix_web::error::InternalError;
use actix_web::http::header::ContentType;
use actix_web::{App, HttpResponse, HttpServer, Responder, web};
use clap::Parser;
use serde::{Deserialize, Serialize};

#[derive(Parser)]
struct Args {
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    #[arg(long)]
    port: u16,
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

#[derive(Deserialize, Serialize)]
struct Ping {
    sequence: u64,
}

async fn ping(ping: web::Json<Ping>) -> impl Responder {
    ping
}

async fn hello() -> impl Responder {
    HttpResponse::Ok()
        .content_type(ContentType::plaintext())
        .body("Hello, World!")
}

fn routes(config: &mut web::ServiceConfig) {
    // Whatever is wrong with the body is the client's fault, and a plain 400.
    let json = web::JsonConfig::default().error_handler(|error, _| {
        InternalError::from_response(error, HttpResponse::BadRequest().finish()).into()
    });
    config
        .app_data(json)
        .service(web::resource("/ping").route(web::post().to(ping)))
        .service(
            web::resource("/hello")
                .route(web::get().to(hello))
                .route(web::head().to(hello)),
        );
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let args = Args::parse();
    HttpServer::new(|| App::new().configure(routes))
        .workers(args.threads)
        .backlog(65_535)
        .keep_alive(Duration::from_secs(75))
        // The default of 5 s is short for a crowd of connections that all arrive at once.
        .client_request_timeout(Duration::from_secs(60))
        .shutdown_timeout(3)
        .bind((args.host, args.port))?
        .run()
        .await
}
