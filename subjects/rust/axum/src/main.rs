//! The ping and hello endpoints on axum.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::RustlsConfig;
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
    /// The certificate of TLS; without it there is none.
    #[arg(long, requires = "key")]
    certificate: Option<PathBuf>,
    #[arg(long)]
    key: Option<PathBuf>,
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

async fn serve_tls(
    listener: TcpListener,
    app: Router,
    (certificate, key): (PathBuf, PathBuf),
) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    // The one provider that is compiled in: it cannot have been installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = RustlsConfig::from_pem_file(certificate, key).await?;
    let handle = Handle::new();
    let ending = handle.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        ending.graceful_shutdown(Some(Duration::from_secs(3)));
    });
    axum_server::from_tcp_rustls(listener.into_std()?, config)?
        .map(|acceptor| acceptor.acceptor(NoDelayAcceptor::new()))
        .handle(handle)
        .serve(app.into_make_service())
        .await
}

async fn serve(args: Args) -> std::io::Result<()> {
    let address = SocketAddr::new(args.host, args.port);
    let mut terminate = signal(SignalKind::terminate())?;
    let app = Router::new()
        .route("/ping", post(ping))
        .route("/hello", get(hello));
    if let Some(files) = args.certificate.zip(args.key) {
        return serve_tls(listen(address)?, app, files).await;
    }
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
        .block_on(serve(args))
}
