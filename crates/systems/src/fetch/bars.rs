//! Bars on a terminal: one for each URL under way and one for all. Never on standard output.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bars of a run.
pub struct Bars {
    all: MultiProgress,
    sum: ProgressBar,
}

const OF_ONE: &str = "  {prefix:24!}  {bar:20}  {binary_bytes:>10} of {binary_total_bytes:10}  {binary_bytes_per_sec:>12}  {eta} left";
const OF_UNKNOWN: &str =
    "  {prefix:24!}  {spinner:20}  {binary_bytes:>10}  {binary_bytes_per_sec:>26}";
const OF_ALL: &str = "  {prefix:24!}  {binary_bytes:>32}  {binary_bytes_per_sec:>26}  {elapsed}";

impl Bars {
    /// Bars on `target`.
    ///
    /// # Errors
    /// A template that is none.
    pub fn new(target: ProgressDrawTarget) -> anyhow::Result<Bars> {
        let all = MultiProgress::with_draw_target(target);
        let sum = ProgressBar::no_length().with_style(ProgressStyle::with_template(OF_ALL)?);
        Ok(Bars {
            sum: all.add(sum),
            all,
        })
    }

    /// A bar for one more.
    pub fn add(&self) -> Bar {
        let bar = ProgressBar::no_length();
        Bar {
            bar: self.all.insert_before(&self.sum, bar),
            is_long: None,
        }
    }

    /// How far all are.
    pub fn tick(&self, ended: usize, count: usize, bytes: u64) {
        self.sum.set_prefix(format!("{ended} of {count} URLs"));
        self.sum.set_position(bytes);
    }

    /// Writes above the bars.
    pub fn above(&self, write: impl FnOnce()) {
        self.all.suspend(write);
    }

    /// Takes them off the terminal.
    pub fn clear(&self) {
        self.sum.finish_and_clear();
        // A terminal that went away has nothing to be cleared.
        let _ = self.all.clear();
    }
}

/// The bar of one URL.
pub struct Bar {
    bar: ProgressBar,
    /// Whether its style has a length; None: it has no style yet.
    is_long: Option<bool>,
}

impl Bar {
    /// How far it is.
    pub fn tick(&mut self, name: &str, bytes: u64, total: Option<u64>) {
        if self.is_long != Some(total.is_some()) {
            let template = if total.is_some() { OF_ONE } else { OF_UNKNOWN };
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
            // What an earlier run had left did not come at any rate.
            self.bar.set_position(bytes);
            self.bar.reset_eta();
            self.is_long = Some(total.is_some());
        }
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_prefix(name.to_owned());
        self.bar.set_position(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
