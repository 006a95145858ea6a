//! The templates of documents and pages, and what fills them in.
//!
//! All text that a user or a subject wrote is escaped here, by what a template's name ends with (`escape`).

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior, context};

use crate::plots::Picture;
use crate::{escape, style};

/// The templates. They are part of the program: that they are sound is for its tests to show.
pub fn templates() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build();
    environment.set_syntax(syntax.expect("a sound syntax"));
    escape::install(&mut environment);
    for (name, source) in [
        ("document.md", include_str!("templates/document.md")),
        ("appendix.md", include_str!("templates/appendix.md")),
        ("section.md", include_str!("templates/section.md")),
        ("footnotes.md", include_str!("templates/footnotes.md")),
        ("ranking.md", include_str!("templates/ranking.md")),
        ("method.txt", include_str!("templates/method.txt")),
        ("limits.txt", include_str!("templates/limits.txt")),
        ("page.html", include_str!("templates/page.html")),
        ("head.html", include_str!("templates/head.html")),
        ("site.html", include_str!("templates/site.html")),
        ("load.html", include_str!("templates/load.html")),
        ("plot.svg", include_str!("templates/plot.svg")),
        ("junit.xml", include_str!("templates/junit.xml")),
    ] {
        environment
            .add_template(name, source)
            .expect("a sound template");
    }
    environment
}

/// Fills one of [`templates`] in.
pub fn fill(environment: &Environment<'_>, name: &str, values: Value) -> String {
    let template = environment
        .get_template(name)
        .expect("a template of this program");
    template
        .render(values)
        .expect("a template that fits the view")
}

/// The paragraphs of a template of prose, each in a line.
pub fn paragraphs(name: &str, values: Value) -> Vec<String> {
    let text = fill(&templates(), name, values);
    let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let paragraphs = text.split("\n\n").map(words);
    paragraphs.filter(|words| !words.is_empty()).collect()
}

/// Text that goes through as it is.
pub fn safe(text: impl Into<String>) -> Value {
    Value::from_safe_string(text.into())
}

/// A picture within a page, or `alone`.
pub fn svg(environment: &Environment<'_>, picture: &Picture, alone: bool) -> String {
    let style = safe(match alone {
        true => style::without_variables(include_str!("templates/plot.css")),
        false => String::new(),
    });
    fill(
        environment,
        "plot.svg",
        context! { p => Value::from(Serde(picture)), alone, style },
    )
}
