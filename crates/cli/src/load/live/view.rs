//! The content of the live screen, as a picture of characters of any size.
//!
//! From 60 columns on all figures have a line of their own; below, fewer. Whatever does not fit is left out from below, the heat map first.

use std::collections::VecDeque;

use prony_base::{Nanos, PerSecond};
use prony_load::{LoadInterval, LoadSpec, pace};
use prony_record::{LatencyNs, Pace};
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

use crate::load::summary::{bytes, format_latency};

/// Seconds that are kept: more than a screen has columns.
const SECONDS_MAX: usize = 512;
/// Fields of the heat map for each power of ten of latency.
const EACH_DECADE: usize = 6;
/// Fields of the heat map, from a microsecond up to a hundred seconds.
const FIELDS: usize = 8 * EACH_DECADE;
/// Columns on the left of the heat map, for its labels.
const LABELS: u16 = 8;
/// From empty to full. Also told apart without colours.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
/// Heights of the line of rates.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A second that is over.
struct ShownSecond {
    rate: f64,
    errors: u64,
    fields: [u64; FIELDS],
}

/// The run so far.
pub struct LiveView {
    url: String,
    pace_text: String,
    connections: u32,
    /// Requests a second, where a key can change them.
    rate: Option<f64>,
    length: Option<Nanos>,
    /// From the start of the window; `None` before.
    elapsed: Option<Nanos>,
    connected: bool,
    completed: u64,
    failed: u64,
    seconds: VecDeque<ShownSecond>,
    /// Of the last second.
    latency: LatencyNs,
    lateness: LatencyNs,
    received_per_s: f64,
    errors: u64,
    ended: u64,
    connections_open: u64,
    outstanding: u64,
    waiting: u64,
}

impl LiveView {
    /// Before anything happened.
    pub fn new(spec: &LoadSpec) -> LiveView {
        LiveView {
            url: spec.target.url.clone(),
            pace_text: pace::described(&spec.pace).unwrap_or_else(|| "closed loop".to_owned()),
            connections: spec.connections,
            rate: match spec.pace {
                Pace::Constant { rate_per_s } | Pace::Poisson { rate_per_s } => Some(rate_per_s),
                _ => None,
            },
            length: None,
            elapsed: None,
            connected: false,
            completed: 0,
            failed: 0,
            seconds: VecDeque::new(),
            latency: LatencyNs::default(),
            lateness: LatencyNs::default(),
            received_per_s: 0.0,
            errors: 0,
            ended: 0,
            connections_open: 0,
            outstanding: 0,
            waiting: 0,
        }
    }

    /// All connections were tried; the window has this length, if any.
    pub fn begin(&mut self, length: Option<Nanos>) {
        self.connected = true;
        self.length = length;
    }

    /// How far the run is.
    pub fn progress(&mut self, elapsed: Option<Nanos>, completed: u64, failed: u64) {
        (self.elapsed, self.completed, self.failed) = (elapsed, completed, failed);
    }

    /// Multiplies the rate; returns the new one where there is one.
    pub fn change_rate(&mut self, factor: f64) -> Option<f64> {
        self.rate = self.rate.map(|rate| rate * factor);
        self.rate
    }

    /// A second is over.
    pub fn second(&mut self, interval: &LoadInterval) {
        let length = interval.end - interval.start;
        if length == Nanos::ZERO {
            return;
        }
        let mut fields = [0; FIELDS];
        for (ns, count) in interval.latency.histogram().counts {
            fields[field(ns)] += count;
        }
        self.seconds.push_back(ShownSecond {
            rate: PerSecond::of(interval.completed, length).0,
            errors: interval.errors,
            fields,
        });
        if self.seconds.len() > SECONDS_MAX {
            self.seconds.pop_front();
        }
        self.latency = interval.latency.summary();
        self.lateness = interval.lateness.summary();
        self.received_per_s = PerSecond::of(interval.received_bytes, length).0;
        (self.errors, self.ended) = (interval.total.errors(), interval.total.ended());
        self.connections_open = interval.total.connections_open;
        (self.outstanding, self.waiting) = (interval.total.outstanding, interval.total.waiting);
    }

    /// Draws all of it.
    pub fn draw(&self, to: &mut Buffer) {
        let area = to.area;
        if area.width == 0 || area.height == 0 {
            return;
        }
        let wide = area.width >= 60;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut row = 0;
        let mut line = |text: &str, style: Style| {
            if row < area.height {
                to.set_stringn(0, row, text, area.width.into(), style);
            }
            row += 1;
        };
        line(&self.title(), bold);
        line(&self.time(area.width), Style::new());
        line("", Style::new());
        for text in if wide {
            self.figures()
        } else {
            self.few_figures()
        } {
            line(&text, Style::new());
        }
        if self.errors > 0 || self.failed > 0 {
            line(
                &self.error_line(),
                Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            );
        }
        line("", Style::new());
        // The last line has the keys.
        if row + 2 < area.height {
            self.draw_rates(to, row);
            self.draw_heat(to, row + 1, area.height - 1);
        }
        if area.height > 1 {
            let dim = Style::new().add_modifier(Modifier::DIM);
            to.set_stringn(0, area.height - 1, self.keys(), area.width.into(), dim);
        }
    }

    fn title(&self) -> String {
        let printed = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let url: String = self.url.chars().map(printed).collect();
        format!("prony load {url}")
    }

    fn time(&self, width: u16) -> String {
        let words = match (self.connected, self.elapsed, self.length) {
            (false, ..) => return format!("connecting ({} connections)", self.connections),
            (true, None, _) => return format!("warming up, {}", self.pace_text),
            (true, Some(elapsed), Some(length)) => {
                let elapsed = elapsed.min(length);
                format!(
                    "{:.0} s of {:.0} s",
                    elapsed.as_secs_f64().floor(),
                    length.as_secs_f64()
                )
            }
            (true, Some(elapsed), None) => format!("{:.0} s", elapsed.as_secs_f64().floor()),
        };
        let rate_text = match self.rate {
            Some(rate) => format!("{rate:.1} requests/s asked for"),
            None => self.pace_text.clone(),
        };
        match width >= 60 {
            true => format!("{words}, {rate_text}"),
            false => words,
        }
    }

    fn rate_now(&self) -> f64 {
        self.seconds.back().map_or(0.0, |second| second.rate)
    }

    fn figures(&self) -> Vec<String> {
        let of = &self.latency;
        let [p50, p90, p99, p99_9, max] =
            [of.p50, of.p90, of.p99, of.p99_9, of.max].map(format_latency);
        vec![
            format!(
                "requests/s  {:>10.1}   completed {}   received {}/s",
                self.rate_now(),
                self.completed,
                bytes(self.received_per_s)
            ),
            format!(
                "latency     p50 {p50:<8} p90 {p90:<8} p99 {p99:<8} p99.9 {p99_9:<8} max {max}"
            ),
            format!(
                "connections {} of {} open   outstanding {}   waiting {}",
                self.connections_open, self.connections, self.outstanding, self.waiting
            ),
            format!(
                "generator   sent late p50 {:<8} p99 {}",
                format_latency(self.lateness.p50),
                format_latency(self.lateness.p99)
            ),
        ]
    }

    fn few_figures(&self) -> Vec<String> {
        let of = &self.latency;
        vec![
            format!(
                "{:.0} requests/s, {} in all",
                self.rate_now(),
                self.completed
            ),
            format!(
                "p50 {}  p99 {}",
                format_latency(of.p50),
                format_latency(of.p99)
            ),
            format!(
                "max {}  late {}",
                format_latency(of.max),
                format_latency(self.lateness.p99)
            ),
            format!(
                "{}/{} open, {} waiting",
                self.connections_open, self.connections, self.waiting
            ),
        ]
    }

    fn error_line(&self) -> String {
        let errors = self.errors.max(self.failed);
        let share = errors as f64 / (self.ended.max(errors).max(1)) as f64 * 100.0;
        format!("errors      {errors} ({share:.2} %)")
    }

    fn keys(&self) -> &'static str {
        match self.rate {
            Some(_) => "q end   + rate 10 % up   - rate down",
            None => "q end",
        }
    }

    /// The seconds that fit into so many columns, the newest last.
    fn shown_seconds(&self, columns: usize) -> impl Iterator<Item = &ShownSecond> {
        self.seconds
            .iter()
            .skip(self.seconds.len().saturating_sub(columns))
    }

    /// Where each of these seconds begins, and how many columns it takes: a run of few seconds fills the screen's width.
    fn places(&self, columns: usize) -> impl Iterator<Item = (u16, usize, &ShownSecond)> {
        let planned = self
            .length
            .map_or(0, |length| length.0.div_ceil(1_000_000_000) as usize);
        let seconds = planned.max(self.seconds.len());
        let each = columns.checked_div(seconds).map_or(1, |each| each.max(1));
        let numbered = self.shown_seconds(columns).enumerate();
        numbered.map(move |(at, second)| (LABELS + (at * each) as u16, each, second))
    }

    /// A line with a bar for each second, as high as its rate; red where there were errors.
    fn draw_rates(&self, to: &mut Buffer, row: u16) {
        let columns = usize::from(to.area.width.saturating_sub(LABELS));
        let highest = self
            .shown_seconds(columns)
            .map(|of| of.rate)
            .fold(1e-9, f64::max);
        to.set_stringn(
            0,
            row,
            "rate",
            LABELS.into(),
            Style::new().add_modifier(Modifier::DIM),
        );
        for (x, each, second) in self.places(columns) {
            let part = (second.rate / highest * HEIGHTS.len() as f64).ceil() as usize;
            let bar = HEIGHTS[part.clamp(1, HEIGHTS.len()) - 1];
            let colour = if second.errors > 0 {
                Color::Red
            } else {
                Color::Cyan
            };
            to.set_string(
                x,
                row,
                bar.to_string().repeat(each),
                Style::new().fg(colour),
            );
        }
    }

    /// A column for each second, a row for a range of latency, from `top` to above `bottom`; the slowest is at the top.
    fn draw_heat(&self, to: &mut Buffer, top: u16, bottom: u16) {
        let columns = usize::from(to.area.width.saturating_sub(LABELS));
        let rows = usize::from(bottom.saturating_sub(top));
        let used = |at: &usize| self.shown_seconds(columns).any(|of| of.fields[*at] > 0);
        let (Some(low), Some(high)) = ((0..FIELDS).find(used), (0..FIELDS).rfind(used)) else {
            return;
        };
        if rows == 0 {
            return;
        }
        // Several fields are one row where there is no room for all.
        let each = (high - low + 1).div_ceil(rows);
        let count = (high - low + 1).div_ceil(each);
        let sum = |of: &ShownSecond, at: usize| {
            let from = low + at * each;
            of.fields[from..(from + each).min(FIELDS)]
                .iter()
                .sum::<u64>()
        };
        let all = (0..count).flat_map(|at| self.shown_seconds(columns).map(move |of| sum(of, at)));
        let fullest = all.max().unwrap_or(1).max(2) as f64;
        for at in 0..count {
            let y = top + (count - 1 - at) as u16;
            let label = format_latency(lower(low + at * each));
            let dim = Style::new().add_modifier(Modifier::DIM);
            to.set_stringn(0, y, format!("{label:>7}"), LABELS.into(), dim);
            for (x, each, second) in self.places(columns) {
                let requests = sum(second, at);
                if requests > 0 {
                    // By the logarithm, so that a few slow ones are seen beside thousands of fast ones.
                    let part = (requests as f64).ln() / fullest.ln();
                    let shade = (part * SHADES.len() as f64) as usize;
                    let shade = SHADES[shade.min(SHADES.len() - 1)];
                    let shade = shade.to_string().repeat(each);
                    to.set_string(x, y, shade, Style::new().fg(Color::Blue));
                }
            }
        }
    }
}

/// The field of a latency.
fn field(ns: u64) -> usize {
    let decades = (ns.max(1_000) as f64 / 1e3).log10();
    ((decades * EACH_DECADE as f64) as usize).min(FIELDS - 1)
}

/// The lower end of a field.
fn lower(field: usize) -> u64 {
    (1e3 * 10_f64.powf(field as f64 / EACH_DECADE as f64)) as u64
}

#[cfg(test)]
mod tests {
    use prony_record::LoadTarget;
    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;

    use super::*;

    fn view(pace: Pace) -> LiveView {
        let spec = LoadSpec {
            target: LoadTarget {
                url: "http://127.0.0.1:8080/\u{1b}[31mhello".to_owned(),
                address: String::new(),
            },
            connections: 20,
            threads: 1,
            pace,
            ..LoadSpec::default()
        };
        LiveView::new(&spec)
    }

    fn busy(view: &mut LiveView, seconds: u64) {
        view.begin(Some(Nanos::from_secs(30)));
        for number in 0..seconds {
            let mut interval = LoadInterval {
                number,
                start: Nanos::from_secs(number),
                end: Nanos::from_secs(number + 1),
                completed: 1_000 + number * 10,
                errors: u64::from(number == 3),
                ..LoadInterval::default()
            };
            for us in 100..1_000 {
                interval.latency.record(Nanos::from_micros(us));
            }
            interval.latency.record(Nanos::from_millis(50));
            interval.lateness.record(Nanos::from_micros(7));
            interval.total.connections_open = 20;
            interval.total.counts.completed = 1_000 * (number + 1);
            interval.total.counts.failed.reset = u64::from(number >= 3);
            view.second(&interval);
            view.progress(Some(interval.end), interval.total.counts.completed, 0);
        }
    }

    fn drawn(view: &LiveView, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
        terminal
            .draw(|frame| view.draw(frame.buffer_mut()))
            .expect("memory");
        let buffer = terminal.backend().buffer();
        let row = |y| {
            (0..width)
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
        };
        (0..height).map(|y| row(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn a_screen_of_80_columns_shows_everything() {
        let mut view = view(Pace::Constant {
            rate_per_s: 1_000.0,
        });
        busy(&mut view, 12);
        insta::assert_snapshot!(drawn(&view, 80, 24).join("\n"));
    }

    #[test]
    fn a_screen_of_40_columns_shows_less_and_one_of_200_more_seconds() {
        let mut view = view(Pace::default());
        busy(&mut view, 150);
        let narrow = drawn(&view, 40, 16);
        assert!(narrow[3].contains("2490 requests/s"), "{narrow:?}");
        assert!(narrow.iter().all(|line| line.chars().count() <= 40));
        assert_eq!(narrow[15], "q end");
        let wide = drawn(&view, 200, 50);
        let rates = wide
            .iter()
            .find(|line| line.starts_with("rate"))
            .expect("a line of rates");
        assert_eq!(rates.chars().count(), usize::from(LABELS) + 150);
        assert!(
            wide.iter().any(|line| line.contains("errors      1 (")),
            "{wide:?}"
        );
    }

    #[test]
    fn a_screen_of_any_size_is_drawn_and_what_has_not_begun_says_so() {
        let mut view = view(Pace::Poisson { rate_per_s: 5.0 });
        assert_eq!(drawn(&view, 80, 24)[1], "connecting (20 connections)");
        view.begin(None);
        assert!(drawn(&view, 80, 24)[1].starts_with("warming up, 5 requests/s"));
        assert!(!drawn(&view, 80, 24).concat().contains('\u{1b}'));
        busy(&mut view, 600);
        for width in [0, 1, 2, 7, 8, 9, 40, 59, 60, 61, 200, 400] {
            for height in [0, 1, 2, 3, 8, 9, 10, 11, 12, 30] {
                drawn(&view, width, height);
            }
        }
        assert_eq!(view.change_rate(2.0), Some(10.0));
        assert!(drawn(&view, 80, 24)[1].contains("10.0 requests/s asked for"));
    }

    #[test]
    fn each_latency_has_the_field_that_its_label_says() {
        for ns in [0, 999, 1_000, 50_000, 1_000_000, 3_000_000_000, u64::MAX] {
            let at = field(ns);
            assert!(lower(at) <= ns.max(1_000), "{ns}");
            assert!(at == FIELDS - 1 || ns < lower(at + 1) + 1_000, "{ns}");
        }
    }
}
