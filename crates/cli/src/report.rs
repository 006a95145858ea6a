//! `prony report`: the documents of a run directory, rendered from its records.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use anyhow::Context as _;
use prony_findings::{Records, Verdict, findings, verdict};
use prony_lab::experiment::Experiment;
use prony_lab::store::{self, StoreError, Stored};
use prony_lab::{subject, sums};
use prony_record::{Histogram, Trial, layout};
use prony_report::{Export, Plot, Run};

use crate::cause::CannotWrite;
use crate::home::Home;
use crate::run::colour;
use crate::words::{ExportWord, Picture, ReportWords};
use crate::{Ending, Streams};

/// What was rendered.
pub struct Rendering {
    /// The figures for programs.
    pub summary_json: String,
    /// The answer in words.
    pub answer: String,
    verdict: Verdict,
}

impl Rendering {
    /// The answer, and where the documents are.
    pub fn say(&self, dir: &Path, streams: &mut Streams<'_>) -> anyhow::Result<()> {
        writeln!(streams.out, "{}", self.answer)?;
        for name in [layout::DOCUMENT, layout::PAGE] {
            writeln!(streams.out, "{}", dir.join(name).display())?;
        }
        Ok(())
    }

    /// How a command ends whose answer rests on these records.
    pub fn ending(&self) -> Ending {
        if self.verdict == Verdict::Invalid {
            Ending::Invalid
        } else {
            Ending::Done
        }
    }
}

/// Runs `prony report`.
pub fn run(words: &ReportWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    if let Some(picture) = words.plot {
        let (run, _) = read(&words.dir)?;
        streams
            .out
            .write_all(prony_report::plot_svg(&run, plot(picture)).as_bytes())?;
        return Ok(Ending::Done);
    }
    if let Some(format) = words.export {
        let (run, verdict) = read(&words.dir)?;
        let text = prony_report::export(&run, export(format));
        streams.out.write_all(text.as_bytes())?;
        return Ok(match verdict {
            Verdict::Invalid => Ending::Invalid,
            _ => Ending::Done,
        });
    }
    if let Some(file) = &words.experiment
        && !republish(&words.dir, file, streams)?
    {
        return Ok(Ending::Usage);
    }
    let rendering = render_into(&words.dir)?;
    if words.json {
        streams.out.write_all(rendering.summary_json.as_bytes())?;
    } else {
        rendering.say(&words.dir, streams)?;
    }
    Ok(rendering.ending())
}

/// Puts the claims of an experiment in the place of those of the run in `dir`. `false`: the file cannot be used, which has
/// been said.
fn republish(dir: &Path, file: &Path, streams: &mut Streams<'_>) -> anyhow::Result<bool> {
    let mut plan = store::read(dir)?.plan;
    let home = Home::find()?;
    let read = Experiment::load(file).map_err(|wrong| vec![wrong]);
    let read = read
        .and_then(|experiment| subject::load_all(&experiment, &home.subjects).map(|_| experiment));
    let experiment = match read {
        Ok(experiment) => experiment,
        Err(wrong) => {
            for wrong in wrong {
                write!(streams.err, "{}", wrong.render(colour()))?;
            }
            return Ok(false);
        }
    };
    if experiment.sha256 != plan.experiment_sha256 {
        writeln!(
            streams.err,
            "{}: measures something else than the run in {} did: claims on cells that it has not are not run",
            file.display(),
            dir.display()
        )?;
    }
    prony_lab::plan::republish(&mut plan, &experiment);
    store::republish(dir, plan.published)?;
    Ok(true)
}

fn export(format: ExportWord) -> Export {
    match format {
        ExportWord::Long => Export::Long,
        ExportWord::Benchstat => Export::Benchstat,
        ExportWord::Junit => Export::Junit,
    }
}

fn plot(picture: Picture) -> Plot {
    match picture {
        Picture::Rate => Plot::Rate,
        Picture::Latency => Plot::Latency,
        Picture::Cpu => Plot::Cpu,
    }
}

/// The records of the run in `dir`, and what they are worth.
pub fn read(dir: &Path) -> anyhow::Result<(Run, Verdict)> {
    let mut stored = store::read(dir)?;
    if let Some(claims) = store::published(dir)? {
        stored.plan.published = claims;
    }
    let histograms = histograms(&stored)?;
    let profiles = profiles(&stored)?;
    let verdict = verdict(&findings(&Records::new(&stored.plan, &stored.trials)));
    let run = Run {
        plan: stored.plan,
        environment: stored.environment,
        trials: stored.trials,
        histograms,
        profiles,
    };
    Ok((run, verdict))
}

/// The histograms of all trials by their names. Of thousands of trials reading these takes longer than all else, so that
/// it is shared out over the processors.
fn histograms(stored: &Stored) -> anyhow::Result<BTreeMap<String, Histogram>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let read = |trials: &[Trial]| -> Result<Vec<(String, Histogram)>, StoreError> {
        let mut found = Vec::new();
        for trial in trials {
            if let (Some(name), Some(histogram)) = (&trial.histogram, stored.histogram(trial)?) {
                found.push((name.clone(), histogram));
            }
        }
        Ok(found)
    };
    let shares = stored
        .trials
        .chunks(stored.trials.len().div_ceil(threads).max(1));
    thread::scope(|scope| {
        let readers: Vec<_> = shares.map(|share| scope.spawn(|| read(share))).collect();
        let mut all = BTreeMap::new();
        for reader in readers {
            let found = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
            all.extend(found?);
        }
        Ok(all)
    })
}

/// The folded stacks of all profiles by their names.
fn profiles(stored: &Stored) -> Result<BTreeMap<String, String>, StoreError> {
    let mut all = BTreeMap::new();
    for trial in &stored.trials {
        if let Some((name, folded)) = stored.folded(trial)? {
            all.insert(name, folded);
        }
    }
    Ok(all)
}

/// Which Prony renders.
pub fn renderer() -> String {
    let commit = match env!("PRONY_COMMIT") {
        "" => String::new(),
        commit => format!(" ({commit})"),
    };
    format!("rendered by prony {}{commit}", env!("CARGO_PKG_VERSION"))
}

/// What is rendered into a run directory: name, and text.
pub fn files(rendered: &prony_report::Rendered) -> Vec<(&str, &str)> {
    let files = [
        (layout::DOCUMENT, &rendered.document_md),
        (layout::APPENDIX, &rendered.appendix_md),
        (layout::PAGE, &rendered.index_html),
        (layout::SUMMARY, &rendered.summary_json),
        (layout::TABLE, &rendered.summary_csv),
    ];
    let files = files.map(|(name, text)| (name, text.as_str()));
    let pictures = rendered.pictures.iter();
    let pictures = pictures.map(|(name, text)| (name.as_str(), text.as_str()));
    files.into_iter().chain(pictures).collect()
}

/// Reads the run in `dir` and writes its documents beside the records.
pub fn render_into(dir: &Path) -> anyhow::Result<Rendering> {
    let (run, verdict) = read(dir)?;
    let rendered = prony_report::render(&run);
    let folder = dir.join(layout::PICTURES);
    fs::create_dir_all(&folder).with_context(CannotWrite::at(&folder))?;
    let mut names = Vec::new();
    for (name, text) in files(&rendered) {
        let path = dir.join(name);
        fs::write(&path, text).with_context(CannotWrite::at(&path))?;
        names.push(name.to_owned());
    }
    sums::write(dir, layout::DOCUMENTS_SUMS, &renderer(), &names)?;
    Ok(Rendering {
        summary_json: rendered.summary_json,
        answer: rendered.answer_txt,
        verdict,
    })
}
