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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_first_stands_first() {
        assert_eq!(distinct([3, 1, 3, 2, 1]), [3, 1, 2]);
        let mut groups = Vec::new();
        for (key, value) in [("b", 1), ("a", 2), ("b", 3)] {
            push_under(&mut groups, key, value);
        }
        assert_eq!(groups, [("b", vec![1, 3]), ("a", vec![2])]);
        assert_eq!(most(["aa", "bbb", "ccc"], |of| of.len()), Some("bbb"));
        assert_eq!(most([""; 0], |of| of.len()), None);
    }
}
