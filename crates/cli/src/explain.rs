//! `prony explain`: the page of a finding, or the list of all; or a key of an experiment, a `subject.toml` or a scenario, or the schema of one.

use clap::Args;
use prony_findings::Code;
use prony_lab::reference::{self, KeyFile};

use crate::{Ending, Streams};

/// `prony explain`
#[derive(Debug, Args)]
pub struct ExplainWords {
    /// The code of a finding, such as P003, or a key of an experiment, a subject.toml or a scenario, such as run.blocks or
    /// blocks; without one, all codes are listed
    pub code: Option<String>,
    /// Prints the JSON Schema of a file that people write: experiment, subject or scenario
    #[arg(long, value_name = "FILE", conflicts_with = "code")]
    pub schema: Option<KeyFile>,
}

/// Runs `prony explain`.
pub fn run(words: &ExplainWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    if let Some(file) = words.schema {
        writeln!(streams.out, "{:#}", reference::schema(file))?;
        return Ok(Ending::Done);
    }
    let Some(code) = &words.code else {
        for code in Code::ALL {
            writeln!(streams.out, "{}  {}", code.as_str(), code.title())?;
        }
        return Ok(Ending::Done);
    };
    let keys = reference::find(code);
    if !keys.is_empty() {
        let entries: Vec<String> = keys.iter().map(ToString::to_string).collect();
        write!(streams.out, "{}", entries.join("\n"))?;
        return Ok(Ending::Done);
    }
    match code.to_ascii_uppercase().parse::<Code>() {
        Ok(code) => {
            write!(streams.out, "{}", code.page())?;
            Ok(Ending::Done)
        }
        Err(_) => {
            let (first, last) = (Code::ALL.first(), Code::ALL.last());
            let [first, last] = [first, last].map(|code| code.map_or("", |code| code.as_str()));
            writeln!(
                streams.err,
                "prony: neither a finding ({first} to {last}) nor a key of an experiment is called `{code}`; \
                 `prony explain` lists the findings, `prony docs experiment-reference` the keys"
            )?;
            Ok(Ending::Usage)
        }
    }
}
