//! `prony reproduce`: a bundle's experiment, from its own sources, on this machine.
//!
//! ```text
//! bundle ──> folder of its own ──> commands listed, allowed? ──> run ──> claims of both
//! ```
//!
//! A bundle may come from a stranger, and its commands can do whatever the user can: nothing of it is run before the user says so,
//! and what it builds goes to a cache of its own, as a build made from a stranger's files must not be taken for one of ours.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Parser as _;
use prony_base::Untrusted;
use prony_lab::experiment::Experiment;
use prony_lab::subject::{self, Subject};
use prony_record::{Plan, Source, layout};
use prony_report::reproduced::{CameTo, reproduced};

use super::pack::{Manifest, RUN, SOURCE};
use super::words::ReproduceWords;
use crate::cause::CannotWrite;
use crate::diagnoses;
use crate::home::Home;
use crate::paths::file_name;
use crate::run as experiment_run;
use crate::run::words::RunWords;
use crate::words::{Command, Words};
use crate::{Ending, Streams, report};

/// Folder of the bundle's records.
const ORIGINAL: &str = "original";
/// Folder of its builds.
const CACHE: &str = "cache";

/// Runs `prony reproduce`.
pub fn run(words: &ReproduceWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let packed = super::for_a_while(&words.bundle, SOURCE)?;
    let manifest = &packed.manifest;
    writeln!(
        streams.err,
        "{}: {}, sha256:{}",
        words.bundle.display(),
        manifest.title,
        packed.digest
    )?;
    if manifest.experiment.is_empty() || &*manifest.sources == "not packed" {
        bail!(
            "{}: holds records alone, which `prony verify` and `prony report` read; to be reproduced it needs experiment and sources",
            words.bundle.display()
        );
    }
    if !words.run_foreign_commands {
        let (_, subjects) = read(manifest, &packed.dir)?;
        return refused(words, &subjects, streams);
    }
    let out = match &words.out {
        Some(out) => out.clone(),
        None => {
            let name = file_name(&words.bundle.with_extension(""));
            experiment_run::next_free(Path::new("runs"), &format!("reproduced-{name}"))?
        }
    };
    let source = out.join(SOURCE);
    super::unpack(&words.bundle, RUN, &out.join(ORIGINAL))?;
    super::unpack(&words.bundle, SOURCE, &source)?;
    let (original, _) = report::read(&out.join(ORIGINAL))?;
    let source = fs::canonicalize(&source).with_context(CannotWrite::at(&source))?;
    read(manifest, &source)?;
    writeln!(
        streams.err,
        "  unpacked to {}; sources: {}",
        out.display(),
        manifest.sources
    )?;
    let run_words = run_words(words, manifest, &original.plan, &source, &out)?;
    // What is asked for is what became of the claims; the documents lie in the run directory.
    let ending = experiment_run::run_quietly(&run_words, streams)?;
    tell(words, &original, &out, ending, streams)
}

/// Reports on the claims, once the run in `out` has ended as `ending`.
fn tell(
    words: &ReproduceWords,
    original: &prony_report::Run,
    out: &Path,
    ending: Ending,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    let dir = out.join(RUN);
    // One that misses what its experiment requires was measured, too.
    let is_measured = matches!(ending, Ending::Done | Ending::Invalid | Ending::Failed);
    if !is_measured || !dir.join(layout::PLAN).exists() {
        return Ok(ending);
    }
    let (again, _) = report::read(&dir)?;
    let came_of_it = reproduced(original, &again);
    if words.json {
        writeln!(
            streams.out,
            "{}",
            serde_json::to_string_pretty(&came_of_it)?
        )?;
    } else {
        let (sentence, tables) = (came_of_it.sentence(), came_of_it.tables());
        let document = dir.join(layout::DOCUMENT);
        writeln!(
            streams.out,
            "{sentence}\n\n{tables}\n\n{}",
            document.display()
        )?;
    }
    Ok(match came_of_it.count(CameTo::Contradicted) {
        0 => ending,
        _ => Ending::Failed,
    })
}

/// The experiment and the subjects, all of which lie in the unpacked folder.
fn read(manifest: &Manifest, source: &Path) -> anyhow::Result<(Experiment, Vec<Subject>)> {
    let path = experiment(manifest, source)?;
    let read = Experiment::load(&path).map_err(|wrong| vec![wrong]);
    let read = read.and_then(|mut experiment| experiment.read_sources(false).map(|()| experiment));
    let experiment = read.map_err(diagnoses::error)?;
    let subjects = subject::load_all(&experiment, &source.join("subjects"));
    let subjects = subjects.map_err(diagnoses::error)?;
    let canonical = fs::canonicalize(source)?;
    for subject in &subjects {
        let folder = subject.folder().map(fs::canonicalize).transpose()?;
        if folder.is_some_and(|folder| !folder.starts_with(&canonical)) {
            bail!(
                "the bundle's subject `{}` lies outside of the bundle, by a path that leads there",
                subject.id
            );
        }
    }
    Ok((experiment, subjects))
}

fn experiment(manifest: &Manifest, source: &Path) -> anyhow::Result<PathBuf> {
    let path: &str = &manifest.experiment;
    // Of the bundle's own files, whose paths were checked.
    let mut listed = manifest.files.iter().filter(|file| file.path == path);
    let name = listed
        .next()
        .and_then(|_| path.strip_prefix(SOURCE)?.strip_prefix('/'));
    let name = name.context("the bundle's experiment does not lie among its sources")?;
    Ok(source.join(name))
}

/// Says what would be run, and that it is not.
fn refused(
    words: &ReproduceWords,
    subjects: &[Subject],
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    writeln!(streams.out, "commands that the bundle brings:")?;
    for subject in subjects {
        writeln!(streams.out, "  {}", Untrusted(&subject.id))?;
        for (what, command) in commands(subject) {
            writeln!(streams.out, "    {what}: {}", Untrusted(command))?;
        }
    }
    writeln!(
        streams.err,
        "prony: nothing was run: they can do whatever you can; if you trust them: prony reproduce {} --run-foreign-commands",
        words.bundle.display()
    )?;
    Ok(Ending::Usage)
}

/// The commands of a subject, each with what it is for.
fn commands(subject: &Subject) -> Vec<(&'static str, String)> {
    let joined = |argv: &[String]| argv.join(" ");
    let build = subject.build.as_ref().map(|build| build.cmd.clone());
    let program = subject.program.as_ref();
    let program = program.map(|program| joined(&program.cmd));
    let mut all = vec![
        ("build", build.unwrap_or_default()),
        ("version", subject.version.clone()),
        ("start", joined(&subject.start)),
        ("program", program.unwrap_or_default()),
    ];
    if let Some(client) = &subject.client {
        all.extend([
            ("client", joined(&client.program.cmd)),
            ("translate", joined(&client.translate)),
        ]);
    }
    if let Source::Url { url } = &subject.source {
        all.push(("load goes to", url.clone()));
    }
    for repository in &subject.repositories {
        all.push((
            "fetched",
            format!("{} at {}", repository.git, repository.revision),
        ));
    }
    all.retain(|(_, command)| !command.is_empty());
    all
}

/// The words of the bundle's run, with its experiment as it was unpacked, and what is asked for here.
fn run_words(
    words: &ReproduceWords,
    manifest: &Manifest,
    plan: &Plan,
    source: &Path,
    out: &Path,
) -> anyhow::Result<RunWords> {
    let typed = std::iter::once("prony").chain(plan.command.iter().map(String::as_str));
    let parsed = Words::try_parse_from(typed).map(|words| words.command);
    let Ok(Command::Run(was)) = parsed else {
        bail!(
            "the bundle's plan was not made by words of `prony run` that this Prony knows: {:?}",
            plan.command
        );
    };
    if let Some(revised) = was.revision.first() {
        bail!(
            "the run took {}, and a bundle has no repository with other revisions: run it where the repository is, with {}",
            Untrusted(revised.to_string()),
            Untrusted(plan.command.join(" "))
        );
    }
    let home = Home::find(&mut std::io::sink())?;
    let quick = was.quick || words.quick;
    Ok(RunWords {
        experiment: experiment(manifest, source)?,
        quick,
        blocks: words.blocks.or(was.blocks),
        duration: words.duration.or(was.duration),
        warmup: was.warmup,
        only: was.only,
        visits: was.visits,
        cores: words.cores.clone().or(was.cores),
        seed: was.seed,
        out: Some(out.join(RUN)),
        home: Some(Home::at(
            source.join("subjects"),
            out.join(CACHE),
            home.prony,
        )),
        ..RunWords::new(PathBuf::new())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::pack::Listed;

    #[test]
    fn any_file_of_the_machine_was_read_as_the_experiment() {
        let path_of = |path: &str| {
            let file = Listed {
                path: "source/e/x.toml".to_owned(),
                ..Listed::default()
            };
            let manifest = Manifest {
                experiment: path.into(),
                files: vec![file],
                ..Manifest::default()
            };
            experiment(&manifest, Path::new("/s"))
        };
        assert_eq!(
            path_of("source/e/x.toml").unwrap(),
            Path::new("/s/e/x.toml")
        );
        for path in [
            "source//etc/passwd",
            "source/../x",
            "source/e/y.toml",
            "x",
            "",
        ] {
            let error = path_of(path).unwrap_err().to_string();
            assert!(error.contains("does not lie among its sources"), "{path}");
        }
    }
}
