//! Lists in sentences, and what a document says of each kind of subject whatever came out.

/// Names in a sentence before it says how many more there are.
const NAMES_MAX: usize = 20;
/// The same in an answer, which is read at a glance.
const FEW: usize = 3;

/// `a, b and c`, or `a, b and 7 more`.
pub fn listed(names: &[String]) -> String {
    up_to(names, NAMES_MAX)
}

/// The same with three names at the most.
pub fn few(names: &[String]) -> String {
    up_to(names, FEW)
}

fn up_to(names: &[String], most: usize) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        // `and 1 more` would take the room of its name.
        _ if names.len() > most + 1 => {
            let shown = names[..most].join(", ");
            format!("{shown} and {} more", names.len() - most)
        }
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// With a capital letter.
pub fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.collect::<String>() + chars.as_str()
}

/// The digits of a hash that are shown.
pub fn digits(hash: &str) -> &str {
    &hash[..hash.floor_char_boundary(12)]
}

/// The paragraphs of `templates/kinds.md` under a name.
pub fn paragraphs(name: &str) -> Vec<String> {
    let mut parts = include_str!("templates/kinds.md").split("\n## ");
    let own = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
    let own = own.expect("a name of the template");
    let lines = own.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// The only one of them.
pub fn paragraph(name: &str) -> String {
    paragraphs(name).concat()
}
