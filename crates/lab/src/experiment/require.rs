//! `require`: what cells must come to, in the words of `prony load --require`.

use prony_base::typed::requirement::LoadRequirement;

use toml::Spanned;

use super::fields::Fields;
use super::words::short;

/// Reads the list; empty where nothing is required. `no_steps`: why none of it can name a step, where it cannot.
pub fn read(table: &Fields<'_>, no_steps: Option<(&str, &str)>) -> Vec<LoadRequirement> {
    let p = table.problems;
    let texts: Vec<Spanned<String>> = table.value("require");
    let mut list = Vec::with_capacity(texts.len());
    for text in texts {
        let requirement = match text.get_ref().parse::<LoadRequirement>() {
            Ok(requirement) => requirement,
            Err(why) => {
                p.note(text.span(), why);
                continue;
            }
        };
        match (&requirement.step, no_steps) {
            (Some(step), Some((why, help))) => {
                let message = format!("`{}` is taken for a step: {why}", short(step));
                p.advise(text.span(), message, help);
            }
            _ if list.contains(&requirement) => {
                let message = "this is required here twice";
                p.note(text.span(), message);
            }
            _ => list.push(requirement),
        }
    }
    list
}
