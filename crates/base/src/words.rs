//! English as messages need it.

/// A noun after a number: `trial` after 1, `trials` after any other; `entry` becomes `entries`.
pub fn plural(count: impl TryInto<u64>, one: &str) -> String {
    // A number that does not fit is not 1.
    if count.try_into().is_ok_and(|count: u64| count == 1) {
        return one.to_owned();
    }
    match one.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{one}s"),
    }
}

/// The number with its noun: `1 trial`, `36 trials`.
pub fn counted(count: impl TryInto<u64> + Copy + std::fmt::Display, one: &str) -> String {
    format!("{count} {}", plural(count, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_s_and_every_other_number_has() {
        let said = [0_u32, 1, 2].map(|count| counted(count, "trial"));
        assert_eq!(said, ["0 trials", "1 trial", "2 trials"]);
        assert_eq!(counted(2_usize, "entry"), "2 entries");
        assert_eq!(counted(1_u64, "entry"), "1 entry");
        assert_eq!(counted(3_i32, "day"), "3 days");
    }
}
