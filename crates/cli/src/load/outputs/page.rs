//! The page of a load.

use prony_base::{Nanos, PerSecond};
use prony_load::LoadInterval;
use prony_report::load_page::{LoadColumn, LoadPage, LoadSeries, load_page};

use super::output::{FinishedLoad, LinesFile, LoadOutput};
use crate::load::summary;

/// A page, of which the seconds are kept until the end.
pub struct Page {
    file: LinesFile,
    series: LoadSeries,
}

impl Page {
    /// For `file`.
    pub fn new(file: LinesFile) -> Page {
        let series = LoadSeries::default();
        Page { file, series }
    }
}

impl LoadOutput for Page {
    fn interval(&mut self, interval: &LoadInterval) -> anyhow::Result<()> {
        self.series.push(LoadColumn {
            start_ns: interval.start.0,
            end_ns: interval.end.0,
            completed: interval.completed,
            errors: interval.errors,
            latency: interval.latency.histogram(),
            infinite: interval.latency.summary().infinite,
        });
        Ok(())
    }

    fn finish(&mut self, of: &FinishedLoad<'_>) -> anyhow::Result<()> {
        let (report, latency) = (&of.outcome.report, &of.outcome.report.latency_ns);
        let heading = summary::heading(of.spec);
        let summary = format!("{heading}{}", summary::text(of.outcome, true));
        let bytes = PerSecond::of(report.received_bytes, Nanos(report.window_ns));
        let errors = prony_findings::measure::errors(report);
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let mut lines: Vec<String> = heading.lines().map(|line| line.trim().to_owned()).collect();
        lines.extend(of.stopped.or(of.script_failed).map(str::to_owned));
        let page = LoadPage {
            title: format!("Load on {}", of.spec.target.url),
            lines,
            facts: vec![
                fact("requests/s", format!("{:.1}", report.rate_per_s)),
                fact("requests", report.completed.to_string()),
                fact("errors", errors.to_string()),
                fact("p50", summary::format_latency(latency.p50)),
                fact("p99", summary::format_latency(latency.p99)),
                fact("p99.9", summary::format_latency(latency.p99_9)),
                fact("max", summary::format_latency(latency.max)),
                fact("received", format!("{}/s", summary::bytes(bytes.0))),
            ],
            requirements: of.requirements.to_vec(),
            series: std::mem::take(&mut self.series),
            histogram: of.outcome.histogram.clone(),
            infinite: latency.infinite,
            summary,
            generator: report.generator.clone(),
        };
        self.file.write(&load_page(&page))
    }
}
