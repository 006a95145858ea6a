//! Colours of pictures for readers that know no CSS variables, such as those that turn SVG into PDF.

/// How a line of `templates` begins that gives colours their names, and one that does for dark screens.
const NAMED: &str = ".plot, :root {";
const DARK: &str = "@media (prefers-color-scheme: dark) {";

/// The rules with each `var(--name)` replaced by what its name stands for, and all of them once more for dark screens.
pub fn without_variables(css: &str) -> String {
    let palette = |is_dark: bool| {
        let named = css
            .lines()
            .filter(move |line| line.contains(NAMED) && line.starts_with(DARK) == is_dark);
        let declared = named.flat_map(|line| line.split("--").skip(1));
        declared.filter_map(|declared| declared.split([';', '}']).next()?.split_once(": "))
    };
    let rules: Vec<&str> = css.lines().filter(|line| !line.contains(NAMED)).collect();
    let coloured = |is_dark| {
        palette(is_dark).fold(rules.join("\n"), |rules, (name, colour)| {
            rules.replace(&format!("var(--{name})"), colour.trim())
        })
    };
    format!("{}\n{DARK}\n{}\n}}\n", coloured(false), coloured(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_their_own_were_black_where_variables_are_not_known() {
        let css = include_str!("templates/plot.css");
        let plain = without_variables(css);
        assert!(!plain.contains("var("), "{plain}");
        assert!(plain.contains(".plot .ground { fill: #ffffff; }"));
        let (_, dark) = plain.split_once(DARK).expect("both");
        assert!(dark.contains(".plot .ground { fill: #12161b; }"));
    }
}
