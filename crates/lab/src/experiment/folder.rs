//! An entry that can only be a folder: `[[peer]]`, `[[backing]]`, `[[front]]`. Pure.
//!
//! Not for: `[[subject]]`, which may be a command or an address as well ([`super::read`]).

use std::collections::BTreeMap;

use super::fields::Fields;
use super::keys::check_placeholders;
use super::types::{From, SubjectEntry};

/// Reads one. `refusal`: why it cannot be a `cmd` or `url`, and what to write instead; `right`: placeholders of its arguments and
/// environment.
pub fn read(table: &Fields<'_>, refusal: (&str, &str), right: &[&str]) -> Option<SubjectEntry> {
    table.refuse(&["cmd", "url"], refusal.0, refusal.1);
    let reference = match table.has("cmd") || table.has("url") {
        true => None,
        false => table.get("ref"),
    };
    let (name, args, env) = (table.get("name"), table.value("args"), table.value("env"));
    check_placeholders(table, "args", &args, right);
    check_placeholders(table, "env", BTreeMap::values(&env), right);
    Some(SubjectEntry {
        place: table.span.clone(),
        from: From::Ref(reference?),
        name,
        args,
        env,
        ..SubjectEntry::default()
    })
}
