//! The ping service on port 8080 until Enter is pressed:
//! `cargo run -p prony-ping --example ping`, then
//! `curl -d '{"sequence":1}' http://127.0.0.1:8080/ping`.

use prony_engine::{Config, ListenOptions};
use prony_http::Source;
use prony_ping::{Fixed, Level, serve};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    prony_engine::run(&Config::default(), |handle| async move {
        let address = "127.0.0.1:8080".parse()?;
        let listener = handle.listen(address, &ListenOptions::default())?;
        let settings = Fixed {
            level: Level::Info,
            ..Fixed::default()
        };
        let stop = async {
            // Where standard input cannot be waited for, it serves until it is killed.
            if handle.readable(std::io::stdin()).await.is_err() {
                std::future::pending().await
            }
        };
        let served = serve(&handle, settings, Source::Listener(listener), stop, |_| {}).await;
        served.map_err(|failure| failure.to_string().into())
    })?
}
