//! A server that does rounds of arithmetic for each answer, and so many percent more of its time as it is told.

use axum::Router;
use axum::routing::get;
use clap::Parser;
use tokio::net::TcpListener;

const BASE: u64 = 5_000;
/// About one percent of what an answer takes, found by timing two numbers of rounds.
const PERCENT: u64 = 81;

#[derive(Parser)]
struct Args {
    #[arg(long)]
    port: u16,
    /// By so many percent.
    #[arg(long, default_value_t = 0)]
    slower: u64,
}

/// Rounds of xorshift, each waiting for the one before.
fn rounds(count: u64, mut seed: u64) -> u64 {
    for _ in 0..count {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    seed
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let count = BASE + args.slower * PERCENT;
    let hello = async move || {
        let seed = std::hint::black_box(88_172_645_463_325_252);
        std::hint::black_box(rounds(count, seed));
        "Hello, World!"
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", args.port)).await?;
            axum::serve(listener, Router::new().route("/hello", get(hello))).await
        })
}
