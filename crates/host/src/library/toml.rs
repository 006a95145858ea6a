//! TOML for configuration: values, and the line on which each stands, so that a complaint
//! about one can name its place.
//!
//! Not for: what the settings of an application are (`config.lua`).

use mlua::{Error, IntoLua, Lua, Table, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) fn register(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set("toml", lua.create_function(read)?)
}

/// `native.toml(text, file)`: the values as a table, and the lines as another, whose keys
/// are paths such as `database.port`.
fn read(lua: &Lua, (text, file): (String, String)) -> mlua::Result<(Table, Table)> {
    let table = DeTable::parse(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(&text, span.start));
        Error::runtime(format!("{file}:{line}: {}", error.message()))
    })?;
    let lines = lua.create_table()?;
    let reader = Reader {
        lua,
        text: &text,
        file: &file,
        lines,
    };
    let values = reader.table(table.get_ref(), "")?;
    Ok((values, reader.lines))
}

fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

struct Reader<'a> {
    lua: &'a Lua,
    text: &'a str,
    file: &'a str,
    lines: Table,
}

impl Reader<'_> {
    fn table(&self, table: &DeTable<'_>, path: &str) -> mlua::Result<Table> {
        let found = self.lua.create_table()?;
        for (key, value) in table {
            let name: &str = key.get_ref();
            let path = match path {
                "" => name.to_owned(),
                _ => format!("{path}.{name}"),
            };
            let line = line_of(self.text, key.span().start);
            self.lines.set(path.as_str(), line)?;
            found.set(name, self.value(value, &path)?)?;
        }
        Ok(found)
    }

    fn value(&self, value: &Spanned<DeValue<'_>>, path: &str) -> mlua::Result<Value> {
        let wrong = |what: &str| {
            let line = line_of(self.text, value.span().start);
            Error::runtime(format!("{}:{line}: {path}: {what}", self.file))
        };
        match value.get_ref() {
            DeValue::String(text) => text.as_ref().into_lua(self.lua),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| wrong("this number is too large"))?
                .into_lua(self.lua),
            DeValue::Float(number) => number
                .as_str()
                .parse::<f64>()
                .map_err(|_| wrong("no number"))?
                .into_lua(self.lua),
            DeValue::Boolean(truth) => truth.into_lua(self.lua),
            DeValue::Datetime(time) => time.to_string().into_lua(self.lua),
            DeValue::Table(table) => self.table(table, path)?.into_lua(self.lua),
            DeValue::Array(items) => {
                let list = self.lua.create_table()?;
                for (number, item) in items.iter().enumerate() {
                    list.push(self.value(item, &format!("{path}[{}]", number + 1))?)?;
                }
                list.into_lua(self.lua)
            }
        }
    }
}
