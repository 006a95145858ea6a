//! For the fuzz target `json`, whose corpus a test replays.

use prony_wire::json::{Value, from_slice, message, to_vec};

message! {
    #[derive(Debug, PartialEq)]
    struct Leaf {
        name: String,
        on: Option<bool>,
    }

    #[derive(Debug, PartialEq)]
    struct Tree {
        id: u64,
        shift: Option<i64>,
        share: Option<f64>,
        leaves: Option<Vec<Leaf>>,
    }

    /// All of it is read straight where it stands as it is written.
    #[derive(Debug, PartialEq)]
    struct Name {
        id: u64,
        name: String,
    }
}

/// Any bytes as a message: what is read is the same again after it was written, and
/// each part of what is written is an error.
pub fn json(data: &[u8]) {
    check::<Tree>(data);
    check::<Name>(data);
    // What is read straight is what serde_json reads.
    let theirs: Option<Name> = std::str::from_utf8(data)
        .ok()
        .filter(|text| !text.trim_ascii_start().starts_with('['))
        .and_then(|text| serde_json::from_str(text).ok());
    assert_eq!(from_slice::<Name>(data).ok(), theirs);
}

fn check<T: Value + std::fmt::Debug + PartialEq>(data: &[u8]) {
    let Ok(read) = from_slice::<T>(data) else {
        return;
    };
    let written = to_vec(&read);
    assert_eq!(from_slice::<T>(&written).ok().as_ref(), Some(&read));
    for end in 0..written.len() {
        assert!(from_slice::<T>(&written[..end]).is_err());
    }
}
