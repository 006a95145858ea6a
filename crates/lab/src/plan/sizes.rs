//! Lists of the sizes of cells. Pure.

/// Of the sizes that are `asked` for those that a quick run keeps, or the first; all where it says nothing of them.
pub fn quick_ones<T: Copy + PartialEq>(asked: &[T], kept: Option<&Vec<T>>) -> Vec<T> {
    let Some(kept) = kept else {
        return asked.to_vec();
    };
    let few: Vec<T> = asked
        .iter()
        .copied()
        .filter(|one| kept.contains(one))
        .collect();
    match few.is_empty() {
        true => asked.iter().copied().take(1).collect(),
        false => few,
    }
}

/// The different values, in order.
pub fn once<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut different = Vec::new();
    for value in values {
        if !different.contains(&value) {
            different.push(value);
        }
    }
    different
}
