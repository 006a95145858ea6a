//! `require`: what cells must come to, in the words of `prony load --require`.

use prony_base::typed::requirement::LoadRequirement;

use super::fields::{Fields, Problems};
use super::words::short;
use crate::diagnosis::Diagnosis;

/// Reads the list; empty where nothing is required. `no_steps`: why none of it can name a step, where it cannot.
pub fn read(
    table: &mut Fields<'_, '_>,
    no_steps: Option<(&str, &str)>,
    p: &mut Problems,
) -> Vec<LoadRequirement> {
    let texts = table.texts("require", p).unwrap_or_default();
    let mut list = Vec::with_capacity(texts.len());
    for text in texts {
        let requirement = match text.get_ref().parse::<LoadRequirement>() {
            Ok(requirement) => requirement,
            Err(why) => {
                p.note(Diagnosis::new(text.span(), why));
                continue;
            }
        };
        match (&requirement.step, no_steps) {
            (Some(step), Some((why, help))) => {
                let message = format!("`{}` is taken for a step: {why}", short(step));
                p.note(Diagnosis::new(text.span(), message).help(help));
            }
            _ if list.contains(&requirement) => {
                let message = "this is required here twice";
                p.note(Diagnosis::new(text.span(), message));
            }
            _ => list.push(requirement),
        }
    }
    list
}
