//! `prony explain`: the page of a finding, or the list of all.

use clap::Args;
use prony_findings::Code;

use crate::{Ending, Streams};

/// `prony explain`
#[derive(Debug, Args)]
pub struct ExplainWords {
    /// The code of a finding; without one, all codes are listed
    pub code: Option<String>,
}

/// Runs `prony explain`.
pub fn run(words: &ExplainWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let Some(code) = &words.code else {
        for code in Code::ALL {
            writeln!(streams.out, "{}  {}", code.as_str(), code.title())?;
        }
        return Ok(Ending::Done);
    };
    match code.to_ascii_uppercase().parse::<Code>() {
        Ok(code) => {
            write!(streams.out, "{}", code.page())?;
            Ok(Ending::Done)
        }
        Err(unknown) => {
            let first = Code::ALL.first().map_or("", |code| code.as_str());
            let last = Code::ALL.last().map_or("", |code| code.as_str());
            writeln!(
                streams.err,
                "prony: {unknown}; the codes are {first} to {last}, `prony explain` lists them"
            )?;
            Ok(Ending::Usage)
        }
    }
}
