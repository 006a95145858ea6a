//! `--only`: which cells a word selects. Pure.

/// Whether `pattern` selects a cell `id` of `subject`: as a part of either, or as
/// the whole of either where it holds `*` (any text) or `?` (one character).
/// Case does not count.
pub fn selects(pattern: &str, subject: &str, id: &str) -> bool {
    let pattern = pattern.to_lowercase();
    let matches = |text: &str| {
        let text = text.to_lowercase();
        if pattern.contains(['*', '?']) {
            glob(&chars(&pattern), &chars(&text))
        } else {
            text.contains(&pattern)
        }
    };
    matches(subject) || matches(id)
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

/// Whether all of `text` matches; linear but for backing up to the last `*`.
fn glob(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(&c) if c == '?' || c == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => match star {
                Some((star_at, from)) => {
                    star = Some((star_at, from + 1));
                    at = star_at + 1;
                    in_text = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_and_globs_select() {
        let on = |pattern: &str| selects(pattern, "rust/axum", "rust/axum ping c=400");
        for yes in [
            "axum",
            "AXUM",
            "rust",
            "c=400",
            "rust/*",
            "*c=400",
            "rust/a?um",
            "*",
            "ping c",
        ] {
            assert!(on(yes), "{yes}");
        }
        for no in ["go/*", "c=2", "a?um", "*ping", "axum*x"] {
            assert!(!on(no), "{no}");
        }
    }

    proptest! {
        #[test]
        fn a_text_selects_itself_and_a_star_selects_all(text in "[a-z/ =0-9]{0,20}", pattern in "[a-b*?]{0,12}") {
            let text = chars(&text);
            prop_assert!(glob(&text, &text));
            prop_assert!(glob(&['*'], &text));
            let stars = chars(&pattern.replace('?', "*"));
            prop_assert!(!glob(&chars(&pattern), &text) || glob(&stars, &text));
        }
    }
}
