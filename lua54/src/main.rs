//! The workers of `prony host` with Lua 5.4, and `prony lua` with it. Started by the program `prony`, which has checked
//! all that it passes on.
#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;

use prony_host::library::Script;
use prony_hosting::{Ended, Settings};

const USAGE: &str =
    "this program is started by `prony host --lua 5.4` and `prony lua --lua 5.4`, not by hand";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["--version"] => {
            println!("prony-lua54 {}", prony_hosting::VERSION);
            ExitCode::SUCCESS
        }
        ["worker"] => ExitCode::from(prony_hosting::work(prony_host::load)),
        ["alone", settings] => end(alone(settings)),
        ["script", script] => end(run(script)),
        _ => end(Err(USAGE.to_owned())),
    }
}

/// The exit codes of `prony`.
fn end(how: Result<u8, String>) -> ExitCode {
    how.map_or_else(
        |why| {
            eprintln!("prony: {why}");
            ExitCode::from(2)
        },
        ExitCode::from,
    )
}

fn alone(settings: &str) -> Result<u8, String> {
    let settings: Settings = serde_json::from_str(settings).map_err(unreadable)?;
    match prony_hosting::alone(settings, prony_host::load, &mut io::stdout()) {
        Ok(Ended::Gracefully) => Ok(0),
        Ok(Ended::AtOnce) => Ok(130),
        Err(error) => Err(error.to_string()),
    }
}

fn run(script: &str) -> Result<u8, String> {
    let script: Script = serde_json::from_str(script).map_err(unreadable)?;
    Ok(u8::from(prony_host::library::run(&script)? > 0))
}

fn unreadable(error: serde_json::Error) -> String {
    format!("{USAGE}: {error}")
}
