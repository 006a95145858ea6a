//! A copy of the subjects and experiments that come with Prony.

use std::path::PathBuf;

use clap::Args;
use prony_base::counted;

use crate::embedded;
use crate::lines::wrapped;
use crate::{Ending, Streams};

/// `prony new subjects`
#[derive(Debug, Args)]
#[command(
    after_help = "Writes DIR/subjects and DIR/experiments, as they were when this program was built. Called in DIR or \
     below it, Prony uses them in place of its own; elsewhere with PRONY_HOME=DIR. Subjects that are built from Prony's \
     own sources need a checkout of these."
)]
pub struct SubjectsWords {
    /// Folder that they are written to
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
}

/// Writes all of them, or nothing where one of the two folders is there.
pub fn write_all(words: &SubjectsWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let files = embedded::files()?;
    let folders = ["subjects", "experiments"].map(|name| words.dir.join(name));
    super::refuse_any(folders.iter().map(PathBuf::as_path))?;
    for file in &files {
        super::write(&words.dir.join(&file.path), &file.bytes, file.is_program)?;
    }
    let [subjects, experiments] = folders.map(|folder| folder.display().to_string());
    let all = counted(files.len(), "file");
    writeln!(streams.out, "wrote {all}: {subjects}, {experiments}")?;
    let next = match words.dir.as_os_str() == "." {
        true => "prony list subjects".to_owned(),
        false => format!("PRONY_HOME={} prony list subjects", words.dir.display()),
    };
    writeln!(streams.out, "{}", wrapped("next: ", 6, &next))?;
    Ok(Ending::Done)
}
