//! Lists that keep the order in which things were first seen.

/// Puts a value behind the others, unless it is one of them.
pub fn push_new<T: PartialEq>(seen: &mut Vec<T>, value: T) {
    if !seen.contains(&value) {
        seen.push(value);
    }
}

/// The distinct ones of these values.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    let values = values.into_iter();
    values.for_each(|value| push_new(&mut seen, value));
    seen
}

/// Puts a value behind the others of its key.
pub fn push_under<K: PartialEq, V>(groups: &mut Vec<(K, Vec<V>)>, key: K, value: V) {
    match groups.iter_mut().find(|(known, _)| *known == key) {
        Some((_, values)) => values.push(value),
        None => groups.push((key, vec![value])),
    }
}

/// The one with the most, the first of equals.
pub fn most<T>(all: impl IntoIterator<Item = T>, count: impl Fn(&T) -> usize) -> Option<T> {
    let all = all.into_iter();
    all.reduce(|best, other| match count(&other) > count(&best) {
        true => other,
        false => best,
    })
}
