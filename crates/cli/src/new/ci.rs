//! A job of CI that measures a change and what it is based on in turns, on one machine, in one run.
//!
//! What two jobs measured on two machines says nothing of a change. Each step is a few lines of a shell, which a test
//! runs as they are.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use prony_base::typed::share;
use prony_lab::experiment::{Experiment, Origin};

use super::files::Files;
use crate::lines::quoted;

/// `prony new ci`
#[derive(Debug, Args)]
#[command(
    after_help = "Writes .github/workflows/prony.yml, or .gitlab-ci-prony.yml for GitLab. The job builds the change \
     and its base, measures both in turns (about seven minutes), comments the answer and the table on the pull \
     request, and fails if a figure is worse by more than --fail-on with 95 % confidence. The last line of the \
     comment is the smallest difference that it would have found in 80 % of cases.\n\nA runner that has no prony \
     installs it from the repository that PRONY_GIT names, at the head of the file."
)]
pub struct CiWords {
    /// Whose CI
    pub host: CiHost,
    /// Command that builds the server, in the root of the repository
    #[arg(
        long,
        value_name = "CMD",
        default_value = "cargo build --release --locked"
    )]
    pub build: String,
    /// Command that starts it, in the root of the repository
    #[arg(
        long,
        value_name = "CMD",
        default_value = "./target/release/server --port {port}"
    )]
    pub cmd: String,
    /// Path to request
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub path: String,
    /// Fail if a figure is worse by more than this with 95 % confidence
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share::parse_positive)]
    pub fail_on: f64,
    /// Repository that prony is installed from where the runner has none
    #[arg(long, value_name = "URL")]
    pub prony_git: Option<String>,
}

/// Whose CI.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum CiHost {
    /// GitHub Actions
    Github,
    /// GitLab CI
    Gitlab,
}

/// The files of `prony new ci`.
pub fn files(words: &CiWords) -> anyhow::Result<Files> {
    for (flag, text) in [
        ("--build", &words.build),
        ("--cmd", &words.cmd),
        ("--path", &words.path),
    ] {
        if let Some(odd) = text
            .chars()
            .find(|c| "'\"`$\\".contains(*c) || c.is_control())
        {
            bail!(
                "{flag} holds {odd:?}, which a shell in a file of CI would take apart: put it into a script, and name that"
            );
        }
    }
    check(words)?;
    let (path, template) = match words.host {
        CiHost::Github => (
            ".github/workflows/prony.yml",
            include_str!("templates/github.yml.txt"),
        ),
        CiHost::Gitlab => (
            ".gitlab-ci-prony.yml",
            include_str!("templates/gitlab.yml.txt"),
        ),
    };
    let git = words.prony_git.as_deref().unwrap_or_default();
    let values = [
        ("@BUILD@", quoted(&words.build)),
        ("@SERVER@", quoted(&words.cmd)),
        ("@PATH@", quoted(&words.path)),
        ("@FAIL_ON@", quoted(&format!("{}%", words.fail_on * 100.0))),
        ("@PRONY_GIT@", quoted(git)),
    ];
    let filled = values
        .iter()
        .fold(template.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        });
    let mut next = Vec::new();
    if git.is_empty() {
        next.push(format!(
            "name Prony's repository in {path} (PRONY_GIT), or have prony on the runner"
        ));
    }
    next.push(match words.host {
        CiHost::Github => format!("git add {path}; the job runs on the next pull request"),
        CiHost::Gitlab => format!("add it to .gitlab-ci.yml: include: {{ local: {path} }}"),
    });
    Ok(Files {
        files: vec![(PathBuf::from(path), filled, false)],
        next,
    })
}

/// Checks that an experiment takes the command and the path.
fn check(words: &CiWords) -> anyhow::Result<()> {
    let (cmd, path) = (quoted(&words.cmd), quoted(&words.path));
    let text = format!(
        "title = \"check\"\n[[subject]]\ncmd = {cmd}\n[[workload]]\nrequest = {{ path = {path} }}\n"
    );
    match Experiment::parse(&text, &Origin::new("check", "/")) {
        Ok(_) => Ok(()),
        Err(wrong) => bail!("the server could not be measured:\n{wrong}"),
    }
}
