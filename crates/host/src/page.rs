//! What a client is shown when an application fails: in development what went wrong and
//! the way to where, else that it failed.

/// The page of development.
pub(crate) fn trouble(method: &str, target: &str, text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>The application failed</title>\n<style>\n\
         body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }\n\
         h1 { font-size: 1.3rem } pre { background: #f4f4f4; padding: 1rem; overflow: auto; tab-size: 4 }\n\
         .what { color: #a00; white-space: pre-wrap; font-weight: 600 }\n\
         @media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } \
         pre { background: #262626 } .what { color: #f88 } }\n\
         </style>\n</head>\n<body>\n<h1>",
    );
    escape(method, &mut page);
    page.push(' ');
    escape(target, &mut page);
    page.push_str(" failed</h1>\n<p class=\"what\">");
    escape(first, &mut page);
    page.push_str("</p>\n");
    if !rest.is_empty() {
        page.push_str("<pre>");
        escape(rest, &mut page);
        page.push_str("</pre>\n");
    }
    page.push_str(
        "<p>Shown because the host runs with <code>--development</code>.</p>\n</body>\n</html>\n",
    );
    page
}

fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_request_becomes_markup() {
        let page = trouble("GET", "/<script>'\"&", "a.lua:1: <b>\nstack & traceback");
        assert!(page.contains("GET /&lt;script&gt;&#39;&quot;&amp; failed"));
        assert!(page.contains("a.lua:1: &lt;b&gt;</p>\n<pre>stack &amp; traceback</pre>"));
        assert!(!page.contains("<script>") && !page.contains("<b>"));
    }
}
