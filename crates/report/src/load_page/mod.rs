//! One load as a page: what it came to, and latency, rate and errors over its time. It needs nothing but itself.
//!
//! [`LoadSeries`] takes the seconds of the load as they end, and keeps it small: of a long load several seconds are one column.

mod pictures;
mod series;

use minijinja::context;
use minijinja::value::Value;
use prony_record::{Histogram, RequirementOutcome};

use crate::templates::{fill, safe, svg, templates};

pub use series::{LoadColumn, LoadSeries};

/// What a page shows.
#[derive(Clone, Debug, Default)]
pub struct LoadPage {
    /// What was driven.
    pub title: String,
    /// What the load was, a line each.
    pub lines: Vec<String>,
    /// Figures with their names.
    pub facts: Vec<(String, String)>,
    /// What came of what was required.
    pub requirements: Vec<RequirementOutcome>,
    /// The load over its time.
    pub series: LoadSeries,
    /// Latencies of all requests that ended.
    pub histogram: Histogram,
    /// Requests of which the latency never ended.
    pub infinite: u64,
    /// What was printed.
    pub summary: String,
    /// Name and version of the generator.
    pub generator: String,
}

/// The page.
pub fn load_page(page: &LoadPage) -> String {
    let environment = templates();
    let pictures = pictures::all(page);
    let drawn = pictures.iter().map(|picture| {
        context! {
            title => picture.title.clone(),
            svg => safe(svg(&environment, picture, false)),
        }
    });
    let drawn: Vec<Value> = drawn.collect();
    let required = page.requirements.iter().map(|of| {
        let word = match (of.held, of.sure) {
            (true, Some(false)) => "held, not surely",
            (true, _) => "held",
            (false, Some(false)) => "missed, not surely",
            (false, _) => "missed",
        };
        let class = if of.held { "held" } else { "invalid" };
        context! { word, class, sentence => of.sentence.clone() }
    });
    let required: Vec<Value> = required.collect();
    let style = safe(format!(
        "{}{}{}{}",
        include_str!("../templates/base.css"),
        include_str!("../templates/page.css"),
        include_str!("../templates/plot.css"),
        include_str!("../templates/load.css")
    ));
    fill(
        &environment,
        "load.html",
        context! {
            style, drawn, required,
            title => page.title.clone(),
            lines => page.lines.clone(),
            facts => page.facts.clone(),
            summary => page.summary.lines().map(str::to_owned).collect::<Vec<_>>(),
            generator => page.generator.clone(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> LoadPage {
        busy_but(&[])
    }

    /// In these seconds nothing ended.
    fn busy_but(silent: &[u64]) -> LoadPage {
        let mut page = LoadPage {
            title: "Load on http://x/<script>alert(1)</script>".to_owned(),
            lines: vec!["2 threads and 10 connections".to_owned()],
            facts: vec![("Requests/s".to_owned(), "1,000 & more".to_owned())],
            summary: "  Latency <b>\n  and more".to_owned(),
            ..LoadPage::default()
        };
        for second in 0..30_u64 {
            let at = |ms: u64| (ms * 1_000_000, 100 + second);
            let mut latency = Histogram {
                counts: vec![at(1), at(2), at(5), (50_000_000 + second * 1_000_000, 3)],
                ..Histogram::default()
            };
            if silent.contains(&second) {
                latency = Histogram::default();
            }
            page.series.push(LoadColumn {
                start_ns: second * 1_000_000_000,
                end_ns: (second + 1) * 1_000_000_000,
                completed: 300 + second,
                errors: u64::from(second == 7) * 5,
                latency,
                infinite: 0,
            });
        }
        page.histogram = page.series.merged(1)[0].latency.clone();
        page
    }

    #[test]
    fn a_page_shows_all_pictures_and_escapes_what_it_shows() {
        let text = load_page(&busy());
        assert_eq!(text.matches("<svg").count(), 5);
        assert!(
            !text.contains("<script>") && !text.contains("<b>"),
            "not escaped"
        );
        assert!(text.contains("<pre>  Latency &lt;b&gt;\n  and more\n</pre>"));
        assert!(text.contains("&lt;script&gt;") && text.contains("1,000 &amp; more"));
        for link in ["http-equiv", "src=", "url(", "@import", "href=\"http"] {
            assert!(
                !text.contains(link),
                "{link}: it would need more than itself"
            );
        }
    }

    #[test]
    fn a_load_of_which_nothing_was_answered_has_a_page_without_pictures() {
        let text = load_page(&LoadPage::default());
        assert_eq!(text.matches("<svg").count(), 0);
        assert!(text.contains("Nothing was answered"));
    }

    #[test]
    fn a_second_that_stands_alone_is_a_dot_and_no_other_is() {
        let dots = |silent: &[u64]| {
            let text = load_page(&busy_but(silent));
            text.matches("<circle r=\"2.2\"/>").count()
        };
        assert_eq!(
            (dots(&[]), dots(&[5])),
            (0, 0),
            "each has another beside it"
        );
        for silent in [&[1][..], &[5, 7], &[28]] {
            assert_eq!(dots(silent), 4, "one on each curve: {silent:?}");
        }
    }
}
