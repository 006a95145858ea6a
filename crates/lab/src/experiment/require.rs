//! `require`: what cells must come to, in the words of `prony load --require`.

use prony_base::typed::requirement::Requirement;

use super::fields::{Fields, Problems};
use crate::diagnosis::Diagnosis;

/// Reads the list; empty where nothing is required.
pub fn read(table: &mut Fields<'_, '_>, p: &mut Problems) -> Vec<Requirement> {
    let texts = table.texts("require", p).unwrap_or_default();
    let mut list = Vec::with_capacity(texts.len());
    for text in texts {
        match text.get_ref().parse::<Requirement>() {
            Ok(requirement) if list.contains(&requirement) => {
                let message = "this is required here twice";
                p.note(Diagnosis::new(text.span(), message));
            }
            Ok(requirement) => list.push(requirement),
            Err(why) => p.note(Diagnosis::new(text.span(), why)),
        }
    }
    list
}
