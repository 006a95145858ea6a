//! What stands around every page: head, search, navigation.
//!
//! Not for: the order of the pages ([`super::nav`]).

use std::fmt::Write as _;

use super::Pages;
use super::links::{page_path, relative};

/// The style of all pages, beside the colours that they share with documents.
const STYLE: &str = concat!(
    include_str!("../templates/plot.css"),
    include_str!("../templates/site.css")
);

/// Chapters of a page that are so few that their parts are listed, too.
const CHAPTERS_FEW: usize = 2;

/// Text in HTML.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The style sheet.
pub fn style() -> &'static str {
    STYLE
}

/// A whole page: `at`, its path in the site; `source`, the page of the repository that it is made of, if any.
pub fn page(pages: &Pages<'_>, at: &str, source: Option<&str>, title: &str, body: &str) -> String {
    let to = |path: &str| escaped(&relative(at, path));
    let edit = source.map_or_else(String::new, |path| format!("Made from {}. ", escaped(path)));
    format!(
        "<!doctype html>\n<html lang=\"en\" data-base=\"{base}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"stylesheet\" href=\"{style}\">\n\
         <script defer src=\"{script}\"></script>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the text</a>\n\
         <header><a class=\"home\" href=\"{home}\">Prony</a>\n\
         <label class=\"menu\" for=\"menu\">Menu</label>\n\
         <input type=\"search\" id=\"query\" placeholder=\"Search\" aria-label=\"Search\" autocomplete=\"off\">\n\
         </header>\n<div id=\"found\" aria-live=\"polite\" hidden></div>\n\
         <div class=\"frame\"><input type=\"checkbox\" id=\"menu\" aria-label=\"Show the menu\">\n\
         <nav aria-label=\"Pages\">\n{nav}</nav>\n\
         <main id=\"main\">\n{body}</main></div>\n\
         <footer>{edit}Prony {version}. These pages need nothing but themselves.</footer>\n</body>\n</html>\n",
        base = to(""),
        title = escaped(title),
        style = to("site.css"),
        script = to("site.js"),
        home = to("index.html"),
        nav = nav(pages, at, source),
        version = escaped(pages.version),
    )
}

fn nav(pages: &Pages<'_>, at: &str, source: Option<&str>) -> String {
    let mut nav = String::new();
    for group in &pages.groups {
        let is_here = group.pages.iter().any(|path| Some(path.as_str()) == source);
        let open = if is_here || !group.is_long {
            " open"
        } else {
            ""
        };
        // Writing to a text cannot fail.
        let _ = writeln!(
            nav,
            "<details{open}><summary>{}</summary>\n<ul>",
            escaped(group.title)
        );
        for path in &group.pages {
            let _ = writeln!(
                nav,
                "{}",
                item(pages, at, path, Some(path.as_str()) == source)
            );
        }
        nav.push_str("</ul></details>\n");
    }
    if !pages.api.is_empty() {
        nav.push_str("<details><summary>Interface of the crates</summary>\n<ul>\n");
        for name in pages.api {
            let to = relative(at, &format!("api/{name}/index.html"));
            let _ = writeln!(
                nav,
                "<li><a href=\"{}\">{}</a></li>",
                escaped(&to),
                escaped(name)
            );
        }
        nav.push_str("</ul></details>\n");
    }
    nav
}

/// A page in the navigation; the one that is shown has its chapters below it.
fn item(pages: &Pages<'_>, at: &str, path: &str, is_here: bool) -> String {
    let Some(page) = pages.outlines.get(path) else {
        return String::new();
    };
    let to = escaped(&relative(at, &page_path(path)));
    let title = escaped(&page.title);
    if !is_here {
        return format!("<li><a href=\"{to}\">{title}</a></li>");
    }
    let mut item = format!("<li><a href=\"{to}\" aria-current=\"page\">{title}</a>");
    // The parts of few long chapters are what a reader looks for.
    let few = page
        .headings
        .iter()
        .filter(|heading| heading.level == 2)
        .count()
        <= CHAPTERS_FEW;
    let deepest = if few { 3 } else { 2 };
    let chapters = page
        .headings
        .iter()
        .filter(|heading| (2..=deepest).contains(&heading.level));
    let mut chapters = chapters.peekable();
    if chapters.peek().is_some() {
        item.push_str("\n<ul>\n");
        for heading in chapters {
            let (id, text, level) = (escaped(&heading.id), escaped(&heading.text), heading.level);
            let _ = writeln!(
                item,
                "<li class=\"l{level}\"><a href=\"#{id}\">{text}</a></li>"
            );
        }
        item.push_str("</ul>");
    }
    item + "</li>"
}

/// The first page: every group with its pages and what each is about.
pub fn home(pages: &Pages<'_>) -> String {
    let lead = pages
        .outlines
        .get("README.md")
        .map_or("", |readme| readme.lead.as_str());
    let mut body = format!("<h1>Prony</h1>\n<p class=\"lead\">{}</p>\n", escaped(lead));
    for group in &pages.groups {
        let _ = writeln!(body, "<section><h2>{}</h2>", escaped(group.title));
        body.push_str(&list(
            pages,
            "index.html",
            group.pages.iter().map(String::as_str),
        ));
        body.push_str("</section>\n");
    }
    page(pages, "index.html", None, "Prony", &body)
}

/// The pages with their first sentences.
pub fn list<'p>(pages: &Pages<'_>, at: &str, paths: impl Iterator<Item = &'p str>) -> String {
    let mut list = String::from("<dl>\n");
    for path in paths {
        let Some(page) = pages.outlines.get(path) else {
            continue;
        };
        let to = escaped(&relative(at, &page_path(path)));
        let (title, lead) = (escaped(&page.title), escaped(&page.lead));
        let _ = writeln!(list, "<dt><a href=\"{to}\">{title}</a></dt><dd>{lead}</dd>");
    }
    list + "</dl>\n"
}
