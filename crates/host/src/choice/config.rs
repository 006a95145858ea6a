//! `[host]` of the `config.toml` beside an application: what it says to its host, and not to itself.

use std::fs;
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::{Choice, Version, Why};

/// The Lua that a file asks for; None where there is no file, or it does not say.
///
/// # Errors
/// It is no TOML, or asks for a Lua that there is not; with file and line.
pub(super) fn read(file: &Path) -> Result<Option<Choice>, String> {
    let Ok(text) = fs::read_to_string(file) else {
        return Ok(None);
    };
    let at = |span: Range<usize>| {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}:{line}", file.display())
    };
    let table = DeTable::parse(&text).map_err(|error| {
        let place = at(error.span().unwrap_or_default());
        format!("{place}: {}", error.message())
    })?;
    let host = table.get_ref().get("host").map(|host| host.get_ref());
    let Some(DeValue::Table(host)) = host else {
        return Ok(None);
    };
    let Some(lua) = host.get("lua") else {
        return Ok(None);
    };
    let place = at(lua.span());
    let asked = "`host.lua` has to be \"jit\" or \"5.4\"";
    let DeValue::String(name) = lua.get_ref() else {
        return Err(format!("{place}: {asked}, in quotes"));
    };
    match Version::parse(name) {
        Some(version) => Ok(Some(Choice {
            version,
            why: Why::Configured(place),
        })),
        None => Err(format!("{place}: {asked}, not {name:?}")),
    }
}
