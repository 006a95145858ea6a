//! For the fuzz target `json`, whose corpus a test replays.

use prony_wire::json::{Text, from_slice, message, to_vec};

message! {
    #[derive(Debug, PartialEq)]
    struct Leaf<'a> {
        name: Text<'a>,
        on: Option<bool>,
    }

    #[derive(Debug, PartialEq)]
    struct Tree<'a> {
        id: u64,
        shift: Option<i64>,
        share: Option<f64>,
        leaves: Option<Vec<Leaf<'a>>>,
    }
}

/// Any bytes as a message: what is read is the same again after it was written, and
/// each part of what is written is an error.
pub fn json(data: &[u8]) {
    let Ok(read) = from_slice::<Tree<'_>>(data) else {
        return;
    };
    let written = to_vec(&read);
    assert_eq!(from_slice::<Tree<'_>>(&written).as_ref(), Ok(&read));
    for end in 0..written.len() {
        assert!(from_slice::<Tree<'_>>(&written[..end]).is_err());
    }
}
