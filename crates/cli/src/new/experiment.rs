//! Experiments to start from.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use prony_base::typed::rate;
use prony_lab::experiment::{Experiment, Origin};
use prony_load::target;

use super::files::Files;
use crate::lines::quoted;

/// The server that stands where none is named: one that is there wherever Prony is.
const EXAMPLE: &str = "{prony} serve --port {port}";
/// A path that it answers.
const EXAMPLE_PATH: &str = "/hello";

/// `prony new experiment`
#[derive(Debug, Args)]
#[command(
    after_help = "Writes NAME.toml in this folder. The command of a server runs in the folder of that file, without a \
     shell; {port} stands for the port to listen on; a server that reads it from its environment is \
     'env PORT={port} ./server'. Without --url, --cmd and --compare, Prony's own server is \
     measured."
)]
pub struct ExperimentWords {
    /// Name of the file, without .toml
    #[arg(default_value = "my-server")]
    pub name: PathBuf,
    /// A server that already runs: http://127.0.0.1:8080/path
    #[arg(long, value_name = "URL", conflicts_with_all = ["cmd", "compare"])]
    pub url: Option<String>,
    /// The command that starts the server: './server --port {port}'
    #[arg(long, value_name = "CMD", conflicts_with = "compare")]
    pub cmd: Option<String>,
    /// Two servers to measure in turns; A is the baseline of B
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub compare: Vec<String>,
    /// Path to request [default: that of the URL, else /]
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
}

/// `prony new load`
#[derive(Debug, Args)]
#[command(
    after_help = "Writes NAME.toml in this folder: requests start by a schedule, whatever the answers do, like those \
     of many users, and latency counts from each scheduled start."
)]
pub struct LoadWords {
    /// Name of the file, without .toml
    #[arg(default_value = "my-load")]
    pub name: PathBuf,
    /// A server that already runs: http://127.0.0.1:8080/path
    #[arg(long, value_name = "URL", conflicts_with = "cmd")]
    pub url: Option<String>,
    /// The command that starts the server: './server --port {port}'
    #[arg(long, value_name = "CMD")]
    pub cmd: Option<String>,
    /// Path to request [default: that of the URL, else /]
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Requests a second: 1000, 2.5k; may be repeated
    #[arg(long, value_name = "N", default_value = "1000", value_parser = rate::parse)]
    pub rate: Vec<f64>,
}

/// The files of `prony new experiment`.
pub fn files(words: &ExperimentWords) -> anyhow::Result<Files> {
    let (subjects, path) = match &words.compare[..] {
        [a, b] => (
            format!(
                "[[subject]]\nname = \"A\"\n{}\n[[subject]]\nname = \"B\"\n{}",
                of_command(a),
                of_command(b)
            ),
            words.path.clone().unwrap_or_else(|| "/".to_owned()),
        ),
        _ => one(
            words.url.as_deref(),
            words.cmd.as_deref(),
            words.path.as_deref(),
        )?,
    };
    let compares = !words.compare.is_empty();
    let (title, question) = match compares {
        true => ("A and B", "How does B differ from A?"),
        false => ("My server", "How fast is it?"),
    };
    let reference = match compares {
        true => {
            "reference = \"A\"       # what ratios refer to; it is measured a second time, as a check (A/A)\n"
        }
        false => "",
    };
    let body = format!(
        "title = \"{title}\"\nquestion = \"{question}\"\n\n\
         [run]\n\
         blocks = 10           # interleaved rounds; from 6 on there are intervals, more are narrower\n\
         duration = \"3s\"       # the measured window of each trial\n\
         warmup = \"500ms\"      # before it\n{reference}\n\
         [run.quick]           # what --quick changes\n\
         blocks = 2\nduration = \"500ms\"\nwarmup = \"100ms\"\n\n\
         # The command runs in the folder of this file, without a shell. Prony chooses {{port}} and waits\n\
         # until it accepts. `args`, `env`, `ready`, `stop`: `prony docs experiments`.\n\
         {subjects}\n\
         [[workload]]\n\
         request = {{ path = {} }}   # also method, headers, body\n\
         expect = {{ status = 200 }}    # also content_type, body: a wrong answer is no answer\n\
         connections = [50]           # a cell each: [1, 50, 400]\n",
        quoted(&path)
    );
    let more = "# prony run FILE --budget 10m       the narrowest intervals in ten minutes";
    experiment_file(&words.name, &body, more)
}

/// The files of `prony new load`.
pub fn load(words: &LoadWords) -> anyhow::Result<Files> {
    let (subject, path) = one(
        words.url.as_deref(),
        words.cmd.as_deref(),
        words.path.as_deref(),
    )?;
    let rates: Vec<String> = words.rate.iter().map(f64::to_string).collect();
    let path = quoted(&path);
    let body = format!(
        "title = \"Latency at a rate\"\nquestion = \"How long do requests take that come by a schedule?\"\n\n\
         [run]\n\
         blocks = 6            # interleaved rounds; from 6 on there are intervals\n\
         duration = \"10s\"      # the measured window of each trial; a tail needs many requests\n\
         warmup = \"1s\"\n\n\
         [run.quick]           # what --quick changes\n\
         blocks = 1\nduration = \"1s\"\nwarmup = \"200ms\"\n\n\
         # The command runs in the folder of this file, without a shell. Prony chooses {{port}} and waits\n\
         # until it accepts.\n\
         {subject}\n\
         [[workload]]\n\
         request = {{ path = {path} }}\n\
         expect = {{ status = 200 }}\n\
         connections = [100]          # requests that may be outstanding; one for which none is idle waits\n\
         # Requests a second, a cell each; at random times, independent of each other. Latency counts from when\n\
         # a request was to start.\n\
         arrival = {{ rate = [{}], process = \"poisson\" }}\n\n\
         # The highest rate at which an objective is kept, looked for in each trial (some 36 steps):\n\
         # [[workload]]\n\
         # name = \"capacity\"\n\
         # request = {{ path = {path} }}\n\
         # connections = [100]\n\
         # find_max = \"p99<10ms\"\n",
        rates.join(", ")
    );
    let more = "# prony load -R 1000 -c 100 -d 10s URL   the same once, of a server that runs, without a document";
    experiment_file(&words.name, &body, more)
}

/// One `[[subject]]`, and the path that is asked for.
fn one(
    url: Option<&str>,
    cmd: Option<&str>,
    path: Option<&str>,
) -> anyhow::Result<(String, String)> {
    let or = |other: &str| path.unwrap_or(other).to_owned();
    Ok(match (url, cmd) {
        (Some(url), _) => {
            let target = target::read(url)?;
            let base = quoted(&target.origin());
            let subject = format!(
                "[[subject]]\nname = \"mine\"\nurl = {base}   # it runs already; Prony neither starts nor pins it\n"
            );
            (subject, or(&target.path))
        }
        (None, Some(cmd)) => (
            format!("[[subject]]\nname = \"mine\"\n{}", of_command(cmd)),
            or("/"),
        ),
        (None, None) => {
            let subject = format!(
                "# Put the command of your server in place of this one.\n[[subject]]\nname = \"mine\"\n{}",
                of_command(EXAMPLE)
            );
            (subject, or(EXAMPLE_PATH))
        }
    })
}

fn of_command(cmd: &str) -> String {
    format!("cmd = {}\n", quoted(cmd))
}

/// The file, if an experiment can be read of it.
fn experiment_file(name: &Path, body: &str, more: &str) -> anyhow::Result<Files> {
    let path = match name.extension() {
        Some(extension) if extension == "toml" => name.to_owned(),
        _ => {
            let mut named = name.as_os_str().to_owned();
            named.push(".toml");
            PathBuf::from(named)
        }
    };
    if name.file_name().is_none() || name.as_os_str().to_string_lossy().ends_with('/') {
        bail!("`{}` is not a valid file name", name.display());
    }
    let shown = path.display();
    let text = format!(
        "# prony run {shown} --quick     a look, in seconds\n# prony run {shown}             with intervals\n{}\n\
         # All that can stand here: `prony docs experiments`\n\n{body}",
        more.replace("FILE", &shown.to_string())
    );
    // A command that an experiment refuses is refused here, with the same words.
    if let Err(wrong) = Experiment::parse(&text, &Origin::new(shown.to_string(), "/")) {
        bail!("the experiment would not be one:\n{wrong}");
    }
    Ok(Files {
        next: vec![format!("prony run {shown} --quick")],
        files: vec![(path, text, false)],
    })
}
