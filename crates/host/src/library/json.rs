//! JSON between Lua and text.
//!
//! An empty table is an object, unless it came from an array of JSON or was made by
//! `json.array`; `json.null` is null, where Lua's nil would leave the field out.

use mlua::{Error, Lua, LuaSerdeExt, Table, Value};

/// Deepest nesting that is read or written.
const DEPTH_MAX: usize = 100;

pub(super) fn register(lua: &Lua, module: &Table) -> mlua::Result<()> {
    let json = lua.create_table()?;
    json.set("null", lua.null())?;
    json.set("encode", lua.create_function(encode)?)?;
    json.set("decode", lua.create_function(decode)?)?;
    json.set(
        "array",
        lua.create_function(|lua, items: Option<Table>| {
            let items = match items {
                Some(items) => items,
                None => lua.create_table()?,
            };
            items.set_metatable(Some(lua.array_metatable()))?;
            Ok(items)
        })?,
    )?;
    module.set("json", json)
}

fn encode(lua: &Lua, (value, pretty): (Value, Option<bool>)) -> mlua::Result<String> {
    check(&value, 0)?;
    let value: serde_json::Value = lua.from_value(value)?;
    let text = match pretty {
        Some(true) => serde_json::to_string_pretty(&value),
        _ => serde_json::to_string(&value),
    };
    text.map_err(|error| Error::runtime(format!("json: {error}")))
}

/// Serde would go down as deep as the tables go; the stack is not endless.
fn check(value: &Value, depth: usize) -> mlua::Result<()> {
    let Value::Table(table) = value else {
        return Ok(());
    };
    if depth >= DEPTH_MAX {
        return Err(Error::runtime(format!(
            "json: tables are nested deeper than {DEPTH_MAX}, or one contains itself"
        )));
    }
    table.for_each(|_: Value, inner: Value| check(&inner, depth + 1))
}

fn decode(lua: &Lua, text: mlua::LuaString) -> mlua::Result<(Value, Option<String>)> {
    match serde_json::from_slice::<serde_json::Value>(&text.as_bytes()) {
        Ok(value) => Ok((lua.to_value(&value)?, None)),
        Err(error) => Ok((Value::Nil, Some(error.to_string()))),
    }
}
