//! A host whose application is made for tests: it answers, waits, sticks and falls, as the
//! path says. `hosting-rehearsal [OPTIONS] FILE:app PORT` starts it; that it loads
//! depends on what the file says.

use std::ffi::OsString;
use std::io::{stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use prony_base::Nanos;
use prony_engine::Handle;
use prony_hosting::{Ended, LoadError, Post, Words, alone, supervise, work};
use prony_http::{Handler, Request, Response};
use rustix::event::{Timespec, poll};

const WORKER: &str = "--worker";

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    words: Words,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(WORKER) {
        return ExitCode::from(work(load));
    }
    let ended = Typed::parse()
        .words
        .resolve(serde_json::Value::Null)
        .map_err(|wrong| wrong.to_string())
        .and_then(|settings| {
            let command = command();
            match settings.workers {
                0 => alone(settings, load, &mut stdout()),
                _ => supervise(settings, &command, &mut stdout(), &mut stderr()),
            }
            .map_err(|error| error.to_string())
        });
    match ended {
        Ok(Ended::Gracefully) => ExitCode::SUCCESS,
        Ok(Ended::AtOnce) => ExitCode::from(130),
        Err(why) => {
            eprintln!("rehearsal: {why}");
            ExitCode::from(2)
        }
    }
}

fn command() -> [OsString; 2] {
    let program = std::env::current_exe().expect("this program");
    [program.into(), WORKER.into()]
}

/// The application's text is its version; `fail`, `stick` and `abort` do so.
fn load(post: &Post) -> Result<Application, LoadError> {
    let name = &post.settings.application;
    let (file, _) = name.split_once(':').unwrap_or((name, ""));
    let file = post.settings.path[0].join(file);
    let version = std::fs::read_to_string(&file)
        .map_err(|error| LoadError(format!("{}: {error}", file.display())))?;
    match version.trim() {
        "fail" => Err(LoadError(format!("{}:1: it says `fail`", file.display()))),
        "stick" => stick(),
        "abort" => std::process::abort(),
        version => Ok(Application {
            handle: post.handle.clone(),
            go: post.settings.path[0].join("go"),
            version: version.to_owned(),
            number: post.number,
            driver: post.settings.driver.clone(),
            mixed: std::cell::RefCell::new(prony_base::random::Random::new(u64::from(post.number))),
        }),
    }
}

/// Holds up the whole worker for so many milliseconds.
fn block(length: u64) {
    let length = Timespec {
        tv_sec: (length / 1000) as i64,
        tv_nsec: (length % 1000 * 1_000_000) as i64,
    };
    let _ = poll(&mut [], Some(&length));
}

fn stick() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

struct Application {
    handle: Handle,
    go: PathBuf,
    version: String,
    number: u32,
    driver: String,
    mixed: std::cell::RefCell<prony_base::random::Random>,
}

impl Handler for Application {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match request.path() {
            "/" => response.text(200, "hello world"),
            "/who" => response.text(
                200,
                &format!("{} {} {}\n", self.number, std::process::id(), self.version),
            ),
            "/driver" => response.text(200, &self.driver),
            "/wait" => {
                let length: u64 = request.query().parse().unwrap_or(100);
                self.handle.sleep(Nanos::from_millis(length)).await;
                response.text(200, "waited\n");
            }
            // Until the test says so, by a file.
            "/until" => {
                while !self.go.exists() {
                    self.handle.sleep(Nanos::from_millis(1)).await;
                }
                response.text(200, "waited\n");
            }
            // As an application does that waits for a database: the whole worker waits.
            "/block" => {
                let length = request.query().parse().unwrap_or(100);
                block(length);
                response.text(200, "blocked\n");
            }
            "/mixed" => {
                if self.mixed.borrow_mut().chance(1, 100) {
                    block(100);
                }
                response.text(200, "hello world");
            }
            "/stick" => stick(),
            "/abort" => std::process::abort(),
            "/exit" => std::process::exit(3),
            _ => response.text(404, "no such page\n"),
        }
    }
}
