//! The ping and hello endpoints on axum.

use std::net::{IpAddr, SocketAddr};

use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use clap::Parser;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
struct Args {
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    #[arg(long)]
    port: u16,
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

#[derive(Deserialize, Serialize)]
struct Ping {
    sequence: u64,
}

// Whatever is wrong with the body is the client's fault; axum tells 400, 415 and 422 apart.
async fn ping(body: Result<Json<Ping>, JsonRejection>) -> Result<Json<Ping>, (StatusCode, String)> {
    body.map_err(|rejection| (StatusCode::BAD_REQUEST, rejection.body_text()))
}

async fn hello() -> &'static str {
    "Hello, World!"
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(65_535)
}

async fn serve(address: SocketAddr) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let app = Router::new()
        .route("/ping", post(ping))
        .route("/hello", get(hello));
    let listener = listen(address)?.tap_io(|stream| {
        // A socket without TCP_NODELAY is slower, and still right.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.threads)
        .enable_all()
        .build()?
        .block_on(serve(SocketAddr::new(args.host, args.port)))
}
