//! Lists of the sizes of cells. Pure.

/// The sizes of `all` that a quick run keeps, or the first; all where it says nothing of them.
pub fn quick_ones<T: Copy + PartialEq>(all: &[T], quick: Option<&Vec<T>>) -> Vec<T> {
    let Some(quick) = quick else {
        return all.to_vec();
    };
    let few: Vec<T> = all
        .iter()
        .copied()
        .filter(|one| quick.contains(one))
        .collect();
    match few.is_empty() {
        true => all.iter().copied().take(1).collect(),
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
