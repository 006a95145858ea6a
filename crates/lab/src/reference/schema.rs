//! The keys as a JSON Schema, by which editors complete and check a file.

use serde_json::{Map, Value, json};

use super::{KeyEntry, KeyFile, KeyTable, ValueForm, plain};
use crate::experiment::words::{ITEMS_MAX, LINE_BYTES_MAX};

/// The schema of a file, by draft 7, which editors of TOML know. It has each key and the form of its value, and knows neither which
/// keys go together nor what is right of texts.
pub fn schema(file: KeyFile) -> Value {
    let mut schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#" });
    if let Some((table, path, _)) = file.table("") {
        schema["title"] = file.titles().0.replace('`', "").into();
        table_schema(file, table, path, &mut schema);
    }
    schema
}

/// Adds what is right of a table at `path`.
fn table_schema(file: KeyFile, table: &KeyTable, path: &str, schema: &mut Value) {
    let mut keys: Map<String, Value> = table.key.iter().map(key_schema).collect();
    let mut others = match table.others {
        true => form_schema(&ValueForm::Word),
        false => false.into(),
    };
    for name in file.tables_in(path) {
        let inner = [path, name].join(".");
        let Some((table, path, _)) = file.table(inner.trim_start_matches('.')) else {
            continue;
        };
        let mut schema = json!({});
        table_schema(file, table, path, &mut schema);
        if table.several {
            schema = json!({ "type": "array", "maxItems": ITEMS_MAX, "items": schema });
        }
        // A table of any names, or a value that may be a table, too.
        let schema = match (name, keys.remove(name)) {
            ("NAME", _) => {
                others = schema;
                continue;
            }
            (_, Some(value)) => json!({ "anyOf": [value, schema] }),
            (_, None) => schema,
        };
        keys.insert(name.to_owned(), schema);
    }
    for (older, name) in &table.older {
        let value = keys.get(name).cloned();
        keys.insert(older.clone(), value.unwrap_or_default());
    }
    schema["type"] = "object".into();
    schema["description"] = plain(&table.text).into();
    schema["properties"] = keys.into();
    schema["additionalProperties"] = others;
}

fn key_schema(key: &KeyEntry) -> (String, Value) {
    let mut schema = form_schema(&key.value);
    let about = format!("{}\n\nValue: {}. {}.", key.text, key.form(), key.without());
    schema["description"] = plain(&about).into();
    (key.name.clone(), schema)
}

fn form_schema(form: &ValueForm) -> Value {
    let any_of = |forms: Vec<Value>| json!({ "anyOf": forms });
    let list = |form| json!({ "type": "array", "maxItems": ITEMS_MAX, "items": form });
    match form {
        ValueForm::Text | ValueForm::Name => json!({ "type": "string" }),
        ValueForm::Line => json!({ "type": "string", "maxLength": LINE_BYTES_MAX }),
        ValueForm::Path => json!({ "type": "string", "pattern": "^/" }),
        ValueForm::Word => json!({ "type": ["string", "integer", "boolean"] }),
        ValueForm::Command => any_of(vec![
            form_schema(&ValueForm::Text),
            list(form_schema(&ValueForm::Text)),
        ]),
        ValueForm::Rate => json!({ "type": ["number", "string"], "exclusiveMinimum": 0 }),
        ValueForm::Number => json!({ "type": "number", "minimum": 0 }),
        ValueForm::Any => json!({}),
        ValueForm::Truth => json!({ "type": "boolean" }),
        ValueForm::Exactly(truth) => json!({ "const": truth }),
        ValueForm::Whole(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        ValueForm::Length(..) => {
            json!({ "type": "string", "pattern": "^[0-9.]+(ns|us|µs|ms|s|m|h)$" })
        }
        ValueForm::Words(words) => json!({ "enum": words }),
        ValueForm::List(form) => list(form_schema(form)),
        ValueForm::OneOrMore(form) => any_of(vec![form_schema(form), list(form_schema(form))]),
        ValueForm::Map(form) => {
            json!({ "type": "object", "additionalProperties": form_schema(form) })
        }
        ValueForm::AnyOf(forms) => any_of(forms.iter().map(form_schema).collect()),
    }
}
