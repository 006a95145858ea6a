//! A picture with two axes: values in, places out. Below it stands a line for each curve, so that no name covers another or a curve.

use super::{Axis, Element, Picture, Tip, place};
use crate::escape::shortened;

/// Width of every picture.
const WIDTH: f64 = 640.0;
/// Where the axes begin, below the key.
const TOP: f64 = 30.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 618.0;
/// Width of the axes.
pub const SPAN: f64 = RIGHT - LEFT;
/// From one line below the axes to the next.
const LINE: f64 = 19.0;
/// Width of a character.
const CHAR: f64 = 7.0;
/// Characters of a name below the axes.
const NAME_CHARS: usize = 40;

/// The picture in the making.
pub struct Plane {
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    picture: Picture,
    edges: (f64, f64),
    bottom: f64,
    /// Where the next word of the key stands.
    key: f64,
    words: Vec<String>,
}

impl Plane {
    /// The axes with their lines and labels, so high.
    pub fn new(title: &str, height: f64, x: Axis, y: Axis) -> Plane {
        Plane::within((LEFT, RIGHT), title, height, x, y)
    }

    /// The same from one edge to the other.
    pub(super) fn within(edges: (f64, f64), title: &str, height: f64, x: Axis, y: Axis) -> Plane {
        let bottom = TOP + height;
        let mut picture = Picture {
            title: title.to_owned(),
            width: WIDTH,
            height: bottom + 28.0,
            ..Picture::default()
        };
        let (left, right) = edges;
        let mut free = f64::NEG_INFINITY;
        for (value, label) in x.ticks.iter().filter(|(value, _)| *value <= x.high) {
            let at = left + x.part(*value) * (right - left);
            picture.line((at, TOP), (at, bottom), "grid");
            // A label has its room, or none.
            let half = CHAR / 2.0 * label.chars().count() as f64 + 3.0;
            if at - half >= free {
                free = at + half;
                picture.text((at, bottom + 17.0), "middle", "tick", label.clone());
            }
        }
        for (value, label) in &y.ticks {
            let at = bottom - y.part(*value) * height;
            picture.line((left, at), (right, at), "grid");
            picture.text((left - 6.0, at + 4.5), "end", "tick", label.clone());
        }
        if !x.title.is_empty() {
            let middle = f64::midpoint(left, right);
            picture.text((middle, bottom + 34.0), "middle", "key", x.title.clone());
            picture.height += 14.0;
        }
        Plane {
            x,
            y,
            picture,
            edges,
            bottom,
            key: left + 5.0,
            words: Vec::new(),
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (left, right) = self.edges;
        (
            left + self.x.part(x) * (right - left),
            self.bottom - self.y.part(y) * (self.bottom - TOP),
        )
    }

    /// A line between two points.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let (from, to) = (self.place(from), self.place(to));
        self.picture.line(from, to, class);
    }

    /// A line through points; a single one is a bead. `None` breaks it.
    pub fn curve(&mut self, points: &[Option<(f64, f64)>], class: &str) {
        for part in points.split(Option::is_none) {
            if let [Some(alone)] = part {
                self.dot(*alone, "bead", class, Tip::default());
            }
            for pair in part.windows(2) {
                if let [Some(from), Some(to)] = pair {
                    self.line(*from, *to, class);
                }
            }
        }
    }

    /// A bar between two corners, of which the first is the lower left one.
    pub fn bar(&mut self, from: (f64, f64), to: (f64, f64), class: &str, tip: Tip) {
        let ((left, bottom), (right, top)) = (self.place(from), self.place(to));
        self.picture.elements.push(Element::Bar {
            class: class.to_owned(),
            corner: place((left, top)),
            size: place((right - left, bottom - top)),
            tip,
        });
    }

    /// A shape at a point.
    pub fn dot(&mut self, at: (f64, f64), shape: &'static str, class: &str, tip: Tip) {
        let at = self.place(at);
        self.picture.dot(at, shape, class, tip);
    }

    /// Words that stand so far right of and below a point.
    pub(super) fn text(
        &mut self,
        at: (f64, f64),
        (right, below): (f64, f64),
        look: (&'static str, &str),
        text: String,
    ) {
        let (x, y) = self.place(at);
        self.picture
            .text((x + right, y + below), look.0, look.1, text);
    }

    /// Words in the place of what there is nothing of.
    pub fn absent(&mut self, words: &str) {
        let middle = f64::midpoint(self.edges.0, self.edges.1);
        let at = (middle, f64::midpoint(TOP, self.bottom));
        self.picture.text(at, "middle", "absent", words.to_owned());
    }

    /// What a shape, or a `line`, stands for: above the axes, one behind the other.
    pub fn key(&mut self, shape: &'static str, class: &str, word: &str) {
        let x = self.key;
        let width = if shape == "line" { 16.0 } else { 0.0 };
        match shape {
            "line" => self.picture.line((x, 13.0), (x + width, 13.0), class),
            _ => self.picture.dot((x, 13.0), shape, class, Tip::default()),
        }
        let text = (x + width + 9.0, 17.5);
        self.picture.text(text, "start", "key", word.to_owned());
        self.key += match word {
            "" => 8.0,
            word => width + 24.0 + CHAR * word.chars().count() as f64,
        };
    }

    /// A line below the axes: a curve's name and what it comes to.
    pub fn legend(&mut self, class: &str, name: &str, value: String) {
        let y = self.picture.height + LINE / 2.0;
        let (left, right) = self.edges;
        self.picture.dot((left, y), "circle", class, Tip::default());
        let shown = shortened(name, NAME_CHARS);
        self.picture
            .text((left + 10.0, y + 4.5), "start", "name", shown);
        self.describe(format!("{name} {value}"));
        self.picture.text((right, y + 4.5), "end", "value", value);
        self.picture.height += LINE;
    }

    /// Adds to the picture in words.
    pub fn describe(&mut self, words: String) {
        self.words.push(words);
    }

    /// The picture.
    pub fn done(self) -> Picture {
        let description = self.words.join("; ");
        Picture {
            description,
            ..self.picture
        }
    }
}
