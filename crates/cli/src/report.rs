//! `prony report`: the documents of a run directory, rendered from its records.

pub mod words;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, anyhow, bail};
use prony_base::counted;
use prony_findings::{Records, Verdict, findings, verdict};
use prony_lab::experiment::Experiment;
use prony_lab::store::{self, StoreError, Stored};
use prony_lab::sums::{self, State};
use prony_lab::{folder, subject};
use prony_record::{Histogram, Trial, layout};
use prony_report::required::CellRequirement;
use prony_report::{Rendered, Run};

use crate::bundle::{self, pack::RUN};
use crate::cause::CannotWrite;
use crate::diagnoses;
use crate::home::Home;
use crate::run::code;
use crate::{Ending, Streams};
use words::ReportWords;

/// Bytes of `analysis.md` that are read at the most.
const ANALYSIS_BYTES_MAX: u64 = 256 << 10;

/// A rendered run.
pub struct Rendering {
    /// The figures for programs.
    summary_json: String,
    /// The answer in words.
    answer: String,
    verdict: Verdict,
    /// The requirements that do not hold, a sentence each.
    missed: Vec<String>,
}

impl Rendering {
    fn new(rendered: Rendered, verdict: Verdict) -> Rendering {
        let missed = rendered.required.iter().filter(|of| !of.outcome.held);
        Rendering {
            missed: missed.map(CellRequirement::sentence).collect(),
            summary_json: rendered.summary_json,
            answer: rendered.answer_txt,
            verdict,
        }
    }

    /// Prints the figures as JSON, or else the answer and the paths of the documents, where they are in `dir`; then what is
    /// required and does not hold.
    pub fn print(
        &self,
        is_json: bool,
        dir: Option<&Path>,
        streams: &mut Streams<'_>,
    ) -> anyhow::Result<()> {
        match (is_json, dir) {
            (true, _) => write!(streams.out, "{}", self.summary_json)?,
            (false, None) => writeln!(streams.out, "{}", self.answer)?,
            (false, Some(dir)) => {
                let [document, page] = [layout::DOCUMENT, layout::PAGE].map(|name| dir.join(name));
                let (document, page) = (document.display(), page.display());
                writeln!(streams.out, "{}\n{document}\n{page}", self.answer)?;
            }
        }
        for missed in &self.missed {
            writeln!(streams.err, "prony: {missed}")?;
        }
        Ok(())
    }

    /// How a command ends whose answer rests on these records.
    pub fn ending(&self) -> Ending {
        ending(self.verdict, self.missed.is_empty())
    }
}

fn ending(verdict: Verdict, are_met: bool) -> Ending {
    match verdict {
        Verdict::Invalid => Ending::Invalid,
        _ => Ending::failed_if(!are_met),
    }
}

/// Runs `prony report`.
pub fn run(words: &ReportWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let ending = reported(words, streams)?;
    for dir in &words.dirs {
        say_changed(dir, streams)?;
    }
    Ok(ending)
}

fn reported(words: &ReportWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let [given] = &words.dirs[..] else {
        return of_several(words, streams);
    };
    let packed = folder::inside(given, bundle::BESIDE)?;
    if packed.is_file() && !given.join(layout::PLAN).exists() {
        return beside((&packed, given), words, streams);
    }
    match (bundle::is_bundle(given), &words.out) {
        (false, None) => of_dir(words, given, streams),
        (false, Some(_)) => bail!(
            "{}: not a bundle: --out is for bundles and for several runs, and the documents of a run directory are rendered into it",
            given.display()
        ),
        (true, None) if words.plot.is_none() && words.export.is_none() => bail!(
            "{}: say where its documents are to be rendered: --out DIR",
            given.display()
        ),
        (true, None) => {
            let unpacked = bundle::for_a_while(given, RUN)?;
            of_dir(words, &unpacked.dir, streams)
        }
        (true, Some(out)) => {
            bundle::unpack(given, RUN, out)?;
            of_dir(words, out, streams)
        }
    }
}

/// Warns of records that were changed after their run ended; they are rendered all the same.
fn say_changed(dir: &Path, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    if !dir.join(layout::PLAN).exists() {
        return Ok(());
    }
    let changed = || -> Result<usize, StoreError> {
        let sums = sums::read(dir, layout::RECORDS_SUMS)?.unwrap_or_default();
        let states = sums.states(dir)?.into_iter();
        Ok(states.filter(|(_, state)| *state != State::Same).count())
    };
    let place = dir.display();
    match changed() {
        Ok(0) => {}
        Ok(count) => writeln!(
            streams.err,
            "prony: {place}: its records were changed after the run ended ({}): `prony verify {place}` names each",
            counted(count, "file")
        )?,
        Err(error) => writeln!(streams.err, "prony: {error}")?,
    }
    Ok(())
}

/// Several runs of one experiment as one: the answer, and with `--out` the documents. Those of each run stay as they are.
fn of_several(words: &ReportWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    if words.experiment.is_some() {
        bail!("--experiment is for one run, in whose directory its claims are kept");
    }
    let read_any = |dir: &PathBuf| -> anyhow::Result<Run> {
        if bundle::is_bundle(dir) {
            return Ok(read(&bundle::for_a_while(dir, RUN)?.dir)?.0);
        }
        let packed = folder::inside(dir, bundle::BESIDE)?;
        let is_beside = packed.is_file() && !dir.join(layout::PLAN).exists();
        let unpacked = is_beside.then(|| bundle::for_a_while(&packed, RUN));
        let unpacked = unpacked.transpose()?;
        Ok(read(unpacked.as_ref().map_or(dir, |of| &of.dir))?.0)
    };
    let runs = words.dirs.iter().map(read_any);
    let run = prony_report::joined(runs.collect::<anyhow::Result<_>>()?);
    let run = run.map_err(|(number, why)| anyhow!("{} {why}", words.dirs[number].display()))?;
    let verdict = verdict(&findings(&Records::new(&run.plan, &run.trials)));
    if let Some(ending) = printed(words, &run, verdict, streams)? {
        return Ok(ending);
    }
    let rendering = match &words.out {
        Some(out) => {
            bundle::empty_folder(out)?;
            written(out, &run, verdict)?
        }
        None => Rendering::new(prony_report::render(&run), verdict),
    };
    rendering.print(words.json, words.out.as_deref(), streams)?;
    Ok(rendering.ending())
}

/// Renders the documents again that lie in a folder beside their records, and no others; where there are none yet, the document, its
/// appendix and its pictures.
fn beside(
    (packed, given): (&Path, &Path),
    words: &ReportWords,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    let unpacked = bundle::for_a_while(packed, RUN)?;
    if words.json || words.plot.is_some() || words.export.is_some() {
        return of_dir(words, &unpacked.dir, streams);
    }
    if words.out.is_some() {
        bail!(
            "{}: its documents are rendered where they lie, without --out",
            given.display()
        );
    }
    let (run, verdict) = read_beside(&unpacked.dir, given)?;
    let rendered = prony_report::render(&run);
    let files = files(&rendered);
    let pictures = folder::inside(given, layout::PICTURES)?;
    let is_first = !files.iter().any(|(name, _)| given.join(name).exists());
    if is_first {
        fs::create_dir_all(&pictures).with_context(CannotWrite::at(&pictures))?;
    }
    // A picture that is not rendered any more would be of nothing.
    for name in folder::listed(given, layout::PICTURES, ".svg")? {
        if !files.iter().any(|(file, _)| *file == name) {
            let path = given.join(name);
            fs::remove_file(&path).with_context(CannotWrite::at(&path))?;
        }
    }
    let mut sums = format!("# {}\n", renderer());
    for (name, text) in &files {
        sums.push_str(&format!("{}  {name}\n", code::digest(text.as_bytes())));
        let is_picture = name.starts_with(layout::PICTURES) && pictures.is_dir();
        let is_text = is_first && [layout::DOCUMENT, layout::APPENDIX].contains(&&**name);
        if is_picture || is_text || given.join(name).exists() {
            folder::write(given, name, text.as_bytes(), false)?;
        }
    }
    if given.join(layout::DOCUMENTS_SUMS).exists() {
        folder::write(given, layout::DOCUMENTS_SUMS, sums.as_bytes(), false)?;
    }
    writeln!(streams.out, "{}\n{}", rendered.answer_txt, given.display())?;
    let are_met = rendered.required.iter().all(|of| of.outcome.held);
    Ok(ending(verdict, are_met))
}

fn of_dir(words: &ReportWords, dir: &Path, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    if words.plot.is_some() || words.export.is_some() {
        let (run, verdict) = read(dir)?;
        if let Some(ending) = printed(words, &run, verdict, streams)? {
            return Ok(ending);
        }
    }
    if let Some(file) = &words.experiment
        && !republish(dir, file, streams)?
    {
        return Ok(Ending::Usage);
    }
    let rendering = render_into(dir)?;
    rendering.print(words.json, Some(dir), streams)?;
    Ok(rendering.ending())
}

/// Prints the picture or the export that is asked for; `None`: neither is.
fn printed(
    words: &ReportWords,
    run: &Run,
    verdict: Verdict,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Ending>> {
    if let Some(picture) = words.plot {
        let svg = prony_report::plot_svg(run, picture.plot());
        streams.out.write_all(svg.as_bytes())?;
        return Ok(Some(Ending::Done));
    }
    let Some(format) = words.export else {
        return Ok(None);
    };
    let text = prony_report::export(run, format.export());
    streams.out.write_all(text.as_bytes())?;
    let required = prony_report::required::planned(run);
    let are_met = required.iter().all(|of| of.outcome.held);
    Ok(Some(ending(verdict, are_met)))
}

/// Puts the claims of an experiment in the place of those of the run in `dir`. `false`: the file cannot be used, and why has been
/// printed.
fn republish(dir: &Path, file: &Path, streams: &mut Streams<'_>) -> anyhow::Result<bool> {
    let mut plan = store::read(dir)?.plan;
    let home = Home::find(streams.err)?;
    let found = home.experiment(file)?;
    let read = Experiment::load_as(&found.path, &found.shown).map_err(|wrong| vec![wrong]);
    let read = read
        .and_then(|experiment| subject::load_all(&experiment, &home.subjects).map(|_| experiment));
    let Some(experiment) = diagnoses::printed(read, streams)? else {
        return Ok(false);
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
        analysis: analysis(dir)?.unwrap_or_default(),
    };
    Ok((run, verdict))
}

/// The analysis that a person wrote of the run in `dir`, or of the one whose documents lie there, if there is one.
pub fn analysis(dir: &Path) -> anyhow::Result<Option<String>> {
    let path = folder::inside(dir, layout::ANALYSIS)?;
    let length = match fs::metadata(&path) {
        Ok(seen) => seen.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    if length > ANALYSIS_BYTES_MAX {
        bail!(
            "{}: {length} bytes, and an analysis has at most {ANALYSIS_BYTES_MAX}",
            path.display()
        );
    }
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(Some(text))
}

/// The run of the bundle beside the documents in `folder`, unpacked in `dir`. An analysis that lies in `folder` takes the place of
/// the bundle's own.
pub fn read_beside(dir: &Path, folder: &Path) -> anyhow::Result<(Run, Verdict)> {
    let (mut run, verdict) = read(dir)?;
    if let Some(analysis_md) = analysis(folder)? {
        run.analysis = analysis_md;
    }
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
    let version = version_and_commit(env!("CARGO_PKG_VERSION"), env!("PRONY_COMMIT"));
    format!("rendered by prony {version}")
}

/// `0.2.0 (0123abcd)`, or the version alone.
pub fn version_and_commit(version: &str, commit: &str) -> String {
    match commit {
        "" => version.to_owned(),
        commit => format!("{version} ({commit})"),
    }
}

/// The files that are rendered into a run directory: name and text.
pub fn files(rendered: &Rendered) -> Vec<(&str, &str)> {
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
    written(dir, &run, verdict)
}

/// Writes the documents of `run` into `dir`.
fn written(dir: &Path, run: &Run, verdict: Verdict) -> anyhow::Result<Rendering> {
    let rendered = prony_report::render(run);
    let pictures = folder::inside(dir, layout::PICTURES)?;
    fs::create_dir_all(&pictures).with_context(CannotWrite::at(&pictures))?;
    let mut names = Vec::new();
    for (name, text) in files(&rendered) {
        folder::write(dir, name, text.as_bytes(), false)?;
        names.push(name.to_owned());
    }
    sums::write(dir, layout::DOCUMENTS_SUMS, &renderer(), &names)?;
    Ok(Rendering::new(rendered, verdict))
}
