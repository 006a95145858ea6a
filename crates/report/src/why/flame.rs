//! Flame graphs, by the crate inferno. The same stacks give the same bytes.

use inferno::flamegraph::color::{BackgroundColor, Color, MultiPalette};
use inferno::flamegraph::{Options, Palette, from_lines};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Width in pixels: what fits on a page and still has names in it.
const WIDTH: usize = 1200;
/// Share of the width, in percent, below which a frame is left out: it could not be seen.
const FRAME_MIN: f64 = 0.1;

/// The picture of one cell; empty where the stacks are none.
pub(super) fn svg(cell: &str, folded: &str) -> String {
    let mut options = Options::default();
    options.title = cell.to_owned();
    options.colors = Palette::Multi(MultiPalette::Java);
    options.bgcolors = Some(BackgroundColor::Flat(Color {
        r: 255,
        g: 255,
        b: 255,
    }));
    // Colours by name, not by chance; and no script, since a picture in a page runs none.
    options.hash = true;
    options.deterministic = true;
    options.no_javascript = true;
    options.image_width = Some(WIDTH);
    options.min_width = FRAME_MIN;
    let mut written = Vec::new();
    match from_lines(&mut options, folded.lines(), &mut written) {
        Ok(()) => still(&String::from_utf8_lossy(&written)),
        // Stacks without a sample: there is nothing to draw.
        Err(_) => String::new(),
    }
}

/// Without what only a script would bring to life: its settings, which are written without it, too, and what is clicked on.
fn still(svg: &str) -> String {
    let parts = [
        ("<script", "</script>"),
        ("<text id=\"search\"", "</text>"),
        ("<text id=\"unzoom\"", "</text>"),
    ];
    parts.iter().fold(svg.to_owned(), |svg, (start, end)| {
        let Some((before, rest)) = svg.split_once(start) else {
            return svg;
        };
        let after = rest.split_once(end).map_or("", |(_, after)| after);
        format!("{before}{after}")
    })
}

/// What may stand in an address as it is, within a quoted attribute.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b' ')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'=')
    .remove(b'(')
    .remove(b')')
    .remove(b',');

/// A picture as the address of itself, for a page that needs nothing else.
pub(super) fn address(svg: &str) -> String {
    format!("data:image/svg+xml,{}", utf8_percent_encode(svg, KEPT))
}
