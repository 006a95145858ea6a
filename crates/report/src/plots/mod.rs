//! Pictures: elements with their places, computed here and written out by a template.
//!
//! There are two: a row for each of several subjects ([`rows`]), and a [`Plane`] with curves, which the first is drawn on, too. What kinds of
//! work draw, they give as values. Not for: which pictures there are.

mod axis;
pub mod cells;
mod plane;
pub mod rows;

use serde::Serialize;

use crate::figures::CellFigures;

pub use axis::Axis;
pub use plane::{Plane, SPAN};

/// Which picture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Plot {
    /// Requests a second, with range or interval.
    Rate,
    /// Latency percentiles on a logarithmic axis.
    Latency,
    /// CPU time a request of both sides.
    Cpu,
}

impl Plot {
    /// All of them, in the order of the page.
    pub const ALL: [Plot; 3] = [Plot::Rate, Plot::Latency, Plot::Cpu];
}

/// Classes of curves and of their dots; a further one begins again.
pub const SERIES: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// The class of the curve number `at`.
pub fn series(at: usize) -> &'static str {
    SERIES[at % SERIES.len()]
}

/// A picture, laid out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Picture {
    /// Unique in the document.
    pub id: String,
    /// What it shows, for the heading and for readers who hear it.
    pub title: String,
    /// The figures in words.
    pub description: String,
    /// Size in its own units.
    pub width: f64,
    /// Size in its own units.
    pub height: f64,
    /// In the order in which they cover each other.
    pub elements: Vec<Element>,
}

/// Right and down from the upper left corner, each with one decimal: enough, and short.
type Coordinates = [String; 2];

fn place((x, y): (f64, f64)) -> Coordinates {
    [x, y].map(|of| format!("{of:.1}"))
}

/// A part of a picture, with its class for the style.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Element {
    Line {
        class: String,
        from: Coordinates,
        to: Coordinates,
    },
    Bar {
        class: String,
        corner: Coordinates,
        size: Coordinates,
        tip: Tip,
    },
    Dot {
        class: String,
        shape: &'static str,
        place: Coordinates,
        tip: Tip,
    },
    Text {
        class: String,
        anchor: &'static str,
        place: Coordinates,
        text: String,
    },
}

/// What an element stands for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tip {
    /// In words.
    pub words: String,
    /// The cell of its figure.
    pub cell: String,
    /// The figure's path: within the cell, or from the top of `summary.json` where it begins with `/`.
    pub figure: String,
    /// The figure.
    pub value: Option<f64>,
}

impl Tip {
    /// Of no figure.
    pub fn words(words: String) -> Tip {
        let tip = Tip::default();
        Tip { words, ..tip }
    }

    /// Of a figure of a cell, by its path within it.
    pub fn figure(cell: &CellFigures, figure: impl Into<String>, value: f64, words: String) -> Tip {
        Tip {
            words,
            cell: cell.cell.clone(),
            figure: figure.into(),
            value: Some(value),
        }
    }
}

impl Picture {
    fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let (class, from, to) = (class.to_owned(), place(from), place(to));
        self.elements.push(Element::Line { class, from, to });
    }

    fn dot(&mut self, at: (f64, f64), shape: &'static str, class: &str, tip: Tip) {
        self.elements.push(Element::Dot {
            class: class.to_owned(),
            shape,
            place: place(at),
            tip,
        });
    }

    fn text(&mut self, at: (f64, f64), anchor: &'static str, class: &str, text: String) {
        self.elements.push(Element::Text {
            class: class.to_owned(),
            anchor,
            place: place(at),
            text,
        });
    }

    /// Whether it shows a figure.
    pub fn has_marks(&self) -> bool {
        self.elements.iter().any(|of| {
            matches!(of, Element::Bar { tip, .. } | Element::Dot { tip, .. } if tip.value.is_some())
        })
    }
}
