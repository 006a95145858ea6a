//! The smallest server of static files: `files DIR [PORT]`, until it is killed.

use std::path::Path;

use prony_engine::{Config, ListenOptions};
use prony_hosting::files::Files;
use prony_http::{Handler, Request, Response, Server, ServerOptions, Source};

struct Site(Files);

impl Handler for Site {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match self.0.serves(request.path()) {
            true => self.0.answer(request, response).await,
            false => response.text(404, "nothing but /static/ is here\n"),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let dir = words.next().ok_or("usage: files DIR [PORT]")?;
    let port = words.next().unwrap_or("0".to_owned());
    prony_engine::run(&Config::default(), |handle| async move {
        let address = format!("127.0.0.1:{port}").parse()?;
        let listener = handle.listen(address, &ListenOptions::default())?;
        println!("listening on http://{}/static/", listener.local_addr());
        let files = Files::open(Path::new(&dir), "/static")?;
        let server = Server::new(&handle, ServerOptions::default(), Site(files));
        server
            .run(Source::Listener(listener), std::future::pending())
            .await;
        Ok(())
    })?
}
