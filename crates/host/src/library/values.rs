//! Values of Lua as values of templates, and back.
//!
//! Tables are copied: a template sees the fields that a table has itself, no deeper than
//! [`DEPTH_MAX`]. What many pages show is converted once (`native.constant`). Functions of
//! Lua stay in the thread that made them; a template holds their number ([`Callable`]),
//! because its values may be sent between threads and Lua's may not.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{Kwargs, Object, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use mlua::{Function, IntoLua, Lua, MultiValue, Table, UserData, UserDataMethods, WeakLua};

/// Deepest nesting of tables that a template is given.
const DEPTH_MAX: usize = 32;

thread_local! {
    static FUNCTIONS: RefCell<Functions> = RefCell::new(Functions::default());
}

/// Functions that templates of this thread can call.
#[derive(Default)]
struct Functions {
    /// Those of an environment: they stay.
    lasting: Vec<(WeakLua, Function)>,
    /// Those of the renderings that are going on, the inner ones last.
    passing: Vec<(WeakLua, Function)>,
    /// How many there have been of the latter: the last one's number.
    passed: u64,
    /// The numbers of `passing`.
    numbers: Vec<u64>,
}

/// HTML that needs no escaping: what a template takes as it is.
#[derive(Clone, Debug)]
pub(super) struct Safe(pub String);

impl UserData for Safe {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method("__tostring", |_, safe, ()| Ok(safe.0.clone()));
        methods.add_meta_method("__len", |_, safe, ()| Ok(safe.0.len()));
        methods.add_meta_function(
            "__concat",
            |_, (left, right): (mlua::Value, mlua::Value)| {
                Ok(format!("{}{}", lossy(&left)?, lossy(&right)?))
            },
        );
    }
}

fn lossy(value: &mlua::Value) -> mlua::Result<String> {
    match value {
        mlua::Value::String(text) => Ok(text.to_string_lossy()),
        other => other.to_string(),
    }
}

/// A value that was converted before.
#[derive(Clone, Debug)]
pub(super) struct Constant(pub Value);

impl UserData for Constant {}

/// A function of Lua, callable from a template in the thread that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callable {
    number: u64,
    lasting: bool,
}

impl Callable {
    /// One that stays for as long as the thread does.
    pub(super) fn lasting(lua: &Lua, function: Function) -> Callable {
        FUNCTIONS.with_borrow_mut(|functions| {
            functions.lasting.push((lua.weak(), function));
            Callable {
                number: functions.lasting.len() as u64 - 1,
                lasting: true,
            }
        })
    }

    fn passing(lua: &Lua, function: Function) -> Callable {
        FUNCTIONS.with_borrow_mut(|functions| {
            functions.passed += 1;
            functions.passing.push((lua.weak(), function));
            functions.numbers.push(functions.passed);
            Callable {
                number: functions.passed,
                lasting: false,
            }
        })
    }

    pub(super) fn invoke(self, arguments: &[Value]) -> Result<Value, Error> {
        let found = FUNCTIONS.with_borrow(|functions| {
            if self.lasting {
                return functions.lasting.get(self.number as usize).cloned();
            }
            let at = functions.numbers.binary_search(&self.number).ok()?;
            functions.passing.get(at).cloned()
        });
        let Some((Some(lua), function)) =
            found.map(|(lua, function)| (lua.try_upgrade(), function))
        else {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "this function was given to a rendering that is over, or in a table that was converted \
                 once: make it a global of its own",
            ));
        };
        let mut passed = MultiValue::new();
        for argument in arguments {
            passed.push_back(to_lua(&lua, argument).map_err(from_lua_error)?);
        }
        let result = function
            .call::<mlua::Value>(passed)
            .map_err(from_lua_error)?;
        from_lua(&lua, &result, 0).map_err(from_lua_error)
    }
}

impl fmt::Display for Callable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function")
    }
}

impl Object for Callable {
    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
        self.invoke(arguments)
    }
}

/// While it lives, functions in what a rendering is given can be called.
pub(super) struct Rendering {
    outer: usize,
}

impl Rendering {
    pub(super) fn begin() -> Rendering {
        Rendering {
            outer: FUNCTIONS.with_borrow(|functions| functions.passing.len()),
        }
    }
}

impl Drop for Rendering {
    fn drop(&mut self) {
        // Dropped outside of the borrow: a function's end could run a finalizer.
        let ended = FUNCTIONS.with_borrow_mut(|functions| {
            functions.numbers.truncate(self.outer);
            functions.passing.split_off(self.outer)
        });
        drop(ended);
    }
}

/// Lua's memory was exhausted in what a template called: the host has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not enough memory")
    }
}

impl std::error::Error for Exhausted {}

fn from_lua_error(error: mlua::Error) -> Error {
    let cause = match &error {
        mlua::Error::CallbackError { cause, .. } => cause,
        other => other,
    };
    if matches!(cause, mlua::Error::MemoryError(_)) {
        let exhausted = Error::new(ErrorKind::InvalidOperation, Exhausted.to_string());
        return exhausted.with_source(Exhausted);
    }
    let text = cause.to_string();
    let lines = text.lines().take_while(|line| *line != "stack traceback:");
    Error::new(
        ErrorKind::InvalidOperation,
        lines.collect::<Vec<_>>().join("\n"),
    )
}

/// A template's value for one of Lua.
pub(super) fn from_lua(lua: &Lua, value: &mlua::Value, depth: usize) -> mlua::Result<Value> {
    Ok(match value {
        mlua::Value::Nil => Value::UNDEFINED,
        mlua::Value::Boolean(truth) => Value::from(*truth),
        mlua::Value::Integer(number) => Value::from(*number),
        // Lua has one kind of number: what is whole is shown as such.
        mlua::Value::Number(number) if number.fract() == 0.0 && number.abs() < 2f64.powi(53) => {
            Value::from(*number as i64)
        }
        mlua::Value::Number(number) => Value::from(*number),
        mlua::Value::String(text) => Value::from(text.to_string_lossy()),
        mlua::Value::Function(function) => {
            Value::from_object(Callable::passing(lua, function.clone()))
        }
        mlua::Value::Table(table) => from_table(lua, table, depth)?,
        mlua::Value::UserData(data) => {
            if let Ok(safe) = data.borrow::<Safe>() {
                Value::from_safe_string(safe.0.clone())
            } else if let Ok(constant) = data.borrow::<Constant>() {
                constant.0.clone()
            } else {
                return Err(no_such("userdata"));
            }
        }
        mlua::Value::LightUserData(pointer) if pointer.0.is_null() => Value::from(()),
        other => return Err(no_such(other.type_name())),
    })
}

fn no_such(kind: &str) -> mlua::Error {
    mlua::Error::runtime(format!("a template cannot be given a value of type {kind}"))
}

/// A list if its keys are 1 to n (also none), else a map.
fn from_table(lua: &Lua, table: &Table, depth: usize) -> mlua::Result<Value> {
    if depth >= DEPTH_MAX {
        return Err(mlua::Error::runtime(format!(
            "a template is given tables nested deeper than {DEPTH_MAX}, or one that contains itself"
        )));
    }
    let length = table.raw_len();
    let mut items = Vec::with_capacity(length);
    let mut fields = Vec::new();
    // Keys 1 to n come in this order from the part of a table that is an array.
    table.for_each(|key: mlua::Value, value: mlua::Value| {
        let value = from_lua(lua, &value, depth + 1)?;
        let in_turn = key.as_usize() == Some(items.len() + 1);
        match in_turn && fields.is_empty() {
            true => items.push(value),
            false => fields.push((from_lua(lua, &key, DEPTH_MAX)?, value)),
        }
        Ok(())
    })?;
    if fields.is_empty() {
        return Ok(Value::from(items));
    }
    let numbered = items.into_iter().enumerate();
    let numbered = numbered.map(|(at, value)| (Value::from(at + 1), value));
    Ok(Value::from_pairs(numbered.chain(fields)))
}

/// A value of Lua for one of a template. Arguments by name become a table at the end.
fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<mlua::Value> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(mlua::Value::Nil),
        ValueKind::Bool => value.is_true().into_lua(lua),
        ValueKind::Number => match value.as_i64() {
            Some(number) => number.into_lua(lua),
            None => f64::try_from(value.clone())
                .map_err(mlua::Error::external)?
                .into_lua(lua),
        },
        ValueKind::String if value.is_safe() => Safe(value.to_string()).into_lua(lua),
        ValueKind::String => lua
            .create_string(value.as_str().unwrap_or_default())?
            .into_lua(lua),
        ValueKind::Bytes => lua
            .create_string(value.as_bytes().unwrap_or_default())?
            .into_lua(lua),
        ValueKind::Seq | ValueKind::Iterable => {
            let list = lua.create_table()?;
            for item in value.try_iter().map_err(mlua::Error::external)? {
                list.push(to_lua(lua, &item)?)?;
            }
            list.into_lua(lua)
        }
        ValueKind::Map => to_table(lua, value)?.into_lua(lua),
        // Such as a macro: Lua can only hand it back.
        _ => Constant(value.clone()).into_lua(lua),
    }
}

fn to_table(lua: &Lua, value: &Value) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    if value.is_kwargs() {
        let named = Kwargs::try_from(value.clone()).map_err(mlua::Error::external)?;
        for name in named.args() {
            let inner: Value = named.get(name).map_err(mlua::Error::external)?;
            table.set(name, to_lua(lua, &inner)?)?;
        }
        return Ok(table);
    }
    for key in value.try_iter().map_err(mlua::Error::external)? {
        let inner = value.get_item(&key).map_err(mlua::Error::external)?;
        table.set(to_lua(lua, &key)?, to_lua(lua, &inner)?)?;
    }
    Ok(table)
}
