//! From values to places on an axis, with its ticks.

use crate::figure::INFINITE;
use crate::numbers::FigureUnit;

/// Steps of a linear axis at the most, before its ends are made round.
const STEPS_MAX: f64 = 4.5;
/// Highest over lowest value up to which a logarithmic axis has ticks between the powers of ten, too.
const LABELLED: f64 = 200.0;

/// An axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// What it is of; empty: its labels say it.
    pub title: String,
    /// The value at its beginning.
    pub low: f64,
    /// The value at its end.
    pub high: f64,
    /// Whether equal distances are equal ratios.
    pub is_logarithmic: bool,
    /// Values with their labels.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From below `low` to above `high` in steps that are round where they are shown: in decimal or, of bytes, in binary.
    pub fn linear((low, high): (f64, f64), unit: FigureUnit) -> Axis {
        let span = (high - low).max(high * 0.1);
        let span = Some(span).filter(|span| span.is_finite() && *span > 0.0);
        let least = span.unwrap_or(1.0) / STEPS_MAX;
        let power = libm::pow(10.0, libm::floor(libm::log10(least)));
        let decimal = [1.0, 2.0, 2.5, 5.0].map(|part| part * power);
        let decimal = decimal.into_iter().find(|step| *step >= least);
        let step = match unit.is_binary() {
            true => libm::exp2(libm::ceil(libm::log2(least))),
            false => decimal.unwrap_or(10.0 * power),
        };
        let first = libm::floor(low / step);
        let last = libm::ceil(high / step).clamp(first + 1.0, first + 2.0 * STEPS_MAX);
        let ticks = (0..=(last - first) as u32).map(|at| (first + f64::from(at)) * step);
        Axis::with(ticks.collect(), false, unit)
    }

    /// From zero to above all of these.
    pub fn from_zero(values: impl Iterator<Item = f64>, unit: FigureUnit) -> Axis {
        let ended = values.filter(|value| *value < INFINITE);
        Axis::linear((0.0, ended.fold(0.0, f64::max)), unit)
    }

    /// From below to above all of these that are positive and finite, by powers of ten or, of few, by 1, 2 and 5 times these.
    pub fn logarithmic(values: impl Iterator<Item = f64>, unit: FigureUnit) -> Axis {
        let ended = values.filter(|value| *value > 0.0 && *value < INFINITE);
        let ends = ended.map(|value| (value, value));
        let ends = ends.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)));
        let (low, high) = ends.unwrap_or((1.0, 1.0));
        let parts: &[f64] = match high / low < LABELLED {
            true => &[1.0, 2.0, 5.0],
            false => &[1.0],
        };
        let exponent = |value: f64| libm::floor(libm::log10(value.clamp(1e-3, 1e19))) as i32;
        let decades = (exponent(low)..=exponent(high) + 1).map(|at| libm::pow(10.0, at.into()));
        let all = decades.flat_map(|decade| parts.iter().map(move |part| part * decade));
        let all: Vec<f64> = all.collect();
        let first = all.iter().rposition(|tick| *tick <= low).unwrap_or(0);
        let last = (first + 1..all.len()).find(|at| all[*at] >= high);
        let ticks = &all[first..=last.unwrap_or(all.len() - 1)];
        Axis::with(ticks.to_vec(), true, unit)
    }

    fn with(ticks: Vec<f64>, is_logarithmic: bool, unit: FigureUnit) -> Axis {
        let label = |tick: f64| match tick == 0.0 {
            true => (tick, "0".to_owned()),
            false => (tick, short(&unit.text(tick))),
        };
        Axis {
            title: String::new(),
            low: ticks.first().copied().unwrap_or(0.0),
            high: ticks.last().copied().unwrap_or(1.0),
            is_logarithmic,
            ticks: ticks.into_iter().map(label).collect(),
        }
    }

    /// The same with a title.
    pub fn titled(self, title: &str) -> Axis {
        let title = title.to_owned();
        Axis { title, ..self }
    }

    /// How far along it a value is: 0 at its beginning or before, 1 at its end or beyond.
    pub fn part(&self, value: f64) -> f64 {
        let scale = |value: f64| match self.is_logarithmic {
            true => libm::log10(value.max(1e-300)),
            false => value,
        };
        let part = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low));
        if part.is_nan() {
            0.0
        } else {
            part.clamp(0.0, 1.0)
        }
    }

    /// In which of so many equal parts of a logarithmic axis a value is.
    pub fn bin(&self, value: f64, bins: usize) -> usize {
        ((self.part(value) * bins as f64) as usize).min(bins - 1)
    }

    /// Where such a part begins and ends.
    pub fn ends_of_bin(&self, bin: usize, bins: usize) -> (f64, f64) {
        let ratio = self.high / self.low;
        let edge = |bin: usize| self.low * libm::pow(ratio, bin as f64 / bins as f64);
        (edge(bin), edge(bin + 1))
    }
}

/// A round number without the digits that only a measured one needs.
fn short(number: &str) -> String {
    let (digits, unit) = number.split_at(number.find(' ').unwrap_or(number.len()));
    let is_whole = !digits.contains('.') || digits.contains('e');
    let kept = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{}{unit}", if is_whole { digits } else { kept })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::{MIB, RATE};

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| &**label).collect()
    }

    #[test]
    fn ticks_of_bytes_were_round_in_decimal() {
        let axis = Axis::linear((0.0, 5.7e9), MIB);
        assert_eq!(labels(&axis), ["0", "2048", "4096", "6144"]);
        let axis = Axis::from_zero([5_700.0].into_iter(), RATE);
        assert_eq!(labels(&axis), ["0", "2 k", "4 k", "6 k"]);
        let axis = Axis::linear((10_100.0, 10_900.0), RATE);
        assert_eq!(
            labels(&axis),
            ["10 k", "10.2 k", "10.5 k", "10.8 k", "11 k"]
        );
    }

    #[test]
    fn an_axis_holds_what_it_is_of_and_what_is_beyond_is_at_its_ends() {
        let axis = Axis::logarithmic([30.0, 700.0, INFINITE, 0.0].into_iter(), RATE);
        assert_eq!(labels(&axis), ["20", "50", "100", "200", "500", "1 k"]);
        assert_eq!(
            [1.0, 20.0, 1e3, INFINITE].map(|of| axis.part(of)),
            [0.0, 0.0, 1.0, 1.0]
        );
        let (from, to) = axis.ends_of_bin(axis.bin(700.0, 10), 10);
        assert!(from <= 700.0 && 700.0 <= to);
        let axis = Axis::logarithmic([2.0, 9e6].into_iter(), RATE);
        assert_eq!(
            labels(&axis),
            ["1", "10", "100", "1 k", "10 k", "100 k", "1 M", "10 M"]
        );
        for none in [
            Axis::logarithmic([].into_iter(), RATE),
            Axis::from_zero([0.0].into_iter(), RATE),
        ] {
            assert!(none.high > none.low, "{none:?}");
        }
    }
}
