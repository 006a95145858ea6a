//! The names of the files in a run directory.

/// The resolved experiment, one JSON object.
pub const PLAN: &str = "plan.json";
/// The machine, one JSON object.
pub const ENVIRONMENT: &str = "environment.json";
/// One trial a line, in the order in which they ended.
pub const TRIALS: &str = "trials.jsonl";
/// Claims of published documents that `prony report` was given after the run, in place of the plan's; rarely there.
pub const PUBLISHED: &str = "published.json";
/// What a person wrote of the run, in Markdown; its document contains it. Rarely there.
pub const ANALYSIS: &str = "analysis.md";
/// Folder of latency histograms, one JSON file a measured trial.
pub const HISTOGRAMS: &str = "histograms";
/// Folder of folded stacks, a text file for each profile trial.
pub const PROFILES: &str = "profiles";
/// Folder of what the processes of each trial printed.
pub const LOGS: &str = "logs";
/// Folder of the pilot that chose blocks and windows, a run directory of its own.
pub const PILOT: &str = "pilot";
/// Folder of the trials that chose the length of the warm-up, a run directory of its own.
pub const WARM_UP: &str = "warm-up";
/// The document in Markdown.
pub const DOCUMENT: &str = "document.md";
/// All that the document leaves out: every column, the evidence of findings, the machine, the method.
pub const APPENDIX: &str = "appendix.md";
/// Folder of the document's pictures, SVG.
pub const PICTURES: &str = "pictures";
/// The document as one offline page.
pub const PAGE: &str = "index.html";
/// The document's figures for programs, one JSON object.
pub const SUMMARY: &str = "summary.json";
/// The figures as comma-separated values, a row a cell.
pub const TABLE: &str = "summary.csv";
/// Digests of the records (plan, environment, trials, histograms) when the run ended, as `sha256sum` writes them.
pub const RECORDS_SUMS: &str = "records.sha256";
/// Digests of what was rendered of them, likewise; its first line says by which Prony.
pub const DOCUMENTS_SUMS: &str = "documents.sha256";
