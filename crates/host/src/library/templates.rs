//! Templates, on `minijinja`: what is put into a page is escaped unless it was marked as
//! safe, whatever the template's name; a name that nobody defined is an error.
//!
//! Components are macros in files below `components/`. Any template may call them: the
//! loader puts the imports of those that it names before its text, on its first line, so
//! that lines are counted as the author counts them.
//!
//! Not for: which functions templates have (`application.lua` gives `url_for` and others).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minijinja::value::Rest;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use mlua::{Function, Lua, Table, UserData, UserDataMethods};

use super::values::{Callable, Constant, Exhausted, Rendering, Safe, from_lua};

/// Where components are, below the templates.
const COMPONENTS: &str = "components";

pub(super) fn register(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set(
        "templates",
        lua.create_function(|_, (dir, development): (String, Option<bool>)| {
            Ok(Templates::new(
                PathBuf::from(dir),
                development.unwrap_or(false),
            ))
        })?,
    )?;
    module.set(
        "safe",
        lua.create_function(|_, html: mlua::LuaString| Ok(Safe(html.to_string_lossy())))?,
    )?;
    module.set(
        "is_safe",
        lua.create_function(|_, value: mlua::Value| {
            Ok(value.as_userdata().is_some_and(|data| data.is::<Safe>()))
        })?,
    )?;
    module.set(
        "constant",
        lua.create_function(|lua, value: mlua::Value| {
            let _rendering = Rendering::begin();
            Ok(Constant(from_lua(lua, &value, 0)?))
        })?,
    )
}

/// The templates of one application.
struct Templates {
    environment: RefCell<Environment<'static>>,
    dir: PathBuf,
    development: bool,
}

impl Templates {
    fn new(dir: PathBuf, development: bool) -> Templates {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_debug(false);
        let templates = Templates {
            environment: RefCell::new(environment),
            dir,
            development,
        };
        templates.set_loader();
        templates
    }

    /// The loader remembers where components are; in development it is made anew for each
    /// page, so that files may come and go.
    fn set_loader(&self) {
        let loader = Arc::new(Loader::new(&self.dir));
        let mut environment = self.environment.borrow_mut();
        environment.clear_templates();
        environment.set_loader(move |name| loader.load(name));
    }

    fn render(&self, lua: &Lua, name: &str, context: &mlua::Value) -> mlua::Result<Safe> {
        // A page inside of a page, by way of a function, keeps what the outer one uses.
        if self.development && self.environment.try_borrow_mut().is_ok() {
            self.set_loader();
        }
        let _rendering = Rendering::begin();
        let context = from_lua(lua, context, 0)?;
        let environment = self.environment.borrow();
        let text = environment
            .get_template(name)
            .and_then(|template| template.render(context));
        text.map(Safe).map_err(|error| self.explain(&error))
    }

    fn render_text(&self, lua: &Lua, text: &str, context: &mlua::Value) -> mlua::Result<Safe> {
        let _rendering = Rendering::begin();
        let context = from_lua(lua, context, 0)?;
        let environment = self.environment.borrow();
        let text = environment.render_str(text, context);
        text.map(Safe).map_err(|error| self.explain(&error))
    }

    fn change(&self, change: impl FnOnce(&mut Environment<'static>)) -> mlua::Result<()> {
        match self.environment.try_borrow_mut() {
            Ok(mut environment) => {
                change(&mut environment);
                Ok(())
            }
            Err(_) => Err(mlua::Error::runtime(
                "functions and filters of templates are defined before a template is rendered, not by one",
            )),
        }
    }

    /// The place of the error in the innermost template, then where that was used.
    fn explain(&self, error: &Error) -> mlua::Error {
        let mut places = Vec::new();
        let mut detail = String::new();
        let mut next: Option<&dyn std::error::Error> = Some(error);
        while let Some(error) = next {
            match error.downcast_ref::<Error>() {
                Some(error) => {
                    places.extend(self.place(error));
                    detail = match error.detail() {
                        Some(detail) => format!("{}: {detail}", error.kind()),
                        None => error.kind().to_string(),
                    };
                }
                None if error.is::<Exhausted>() => {
                    return mlua::Error::MemoryError(error.to_string());
                }
                None => detail = error.to_string(),
            }
            next = error.source();
        }
        places.dedup();
        let innermost = places
            .pop()
            .map_or(String::new(), |place| format!("{place}: "));
        let outer = places
            .iter()
            .rev()
            .map(|place| format!("\n  used in {place}"));
        mlua::Error::runtime(format!("{innermost}{detail}{}", outer.collect::<String>()))
    }

    fn place(&self, error: &Error) -> Option<String> {
        let name = error.name()?;
        let line = error.line().unwrap_or(1);
        Some(match name {
            "<string>" => format!("template:{line}"),
            name => format!("{}:{line}", self.dir.join(name).display()),
        })
    }
}

impl UserData for Templates {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method(
            "render",
            |lua, this, (name, context): (String, mlua::Value)| this.render(lua, &name, &context),
        );
        methods.add_method(
            "render_text",
            |lua, this, (text, context): (mlua::LuaString, mlua::Value)| {
                this.render_text(lua, &text.to_string_lossy(), &context)
            },
        );
        methods.add_method(
            "global",
            |lua, this, (name, value): (String, mlua::Value)| {
                let _rendering = Rendering::begin();
                let value = match value {
                    mlua::Value::Function(function) => {
                        Value::from_object(Callable::lasting(lua, function))
                    }
                    other => from_lua(lua, &other, 0)?,
                };
                this.change(|environment| environment.add_global(name, value))
            },
        );
        methods.add_method(
            "filter",
            |lua, this, (name, function): (String, Function)| {
                let callable = Callable::lasting(lua, function);
                this.change(|environment| {
                    environment.add_filter(name, move |arguments: Rest<Value>| {
                        callable.invoke(&arguments)
                    });
                })
            },
        );
    }
}

/// Finds templates below a directory, and the components that they use.
struct Loader {
    dir: PathBuf,
    /// By the component's name, the template that defines it; or what is wrong with them.
    components: Result<BTreeMap<String, String>, String>,
}

impl Loader {
    fn new(dir: &Path) -> Loader {
        Loader {
            dir: dir.to_owned(),
            components: find_components(dir),
        }
    }

    fn load(&self, name: &str) -> Result<Option<String>, Error> {
        let wrong = |message: String| Error::new(ErrorKind::InvalidOperation, message);
        let steps = name.split('/');
        if steps
            .clone()
            .any(|step| step.is_empty() || step.starts_with('.'))
        {
            return Ok(None);
        }
        let path = self.dir.join(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::new(
                    ErrorKind::TemplateNotFound,
                    format!("there is no file {}", path.display()),
                ));
            }
            Err(error) => return Err(wrong(format!("{}: {error}", path.display()))),
        };
        let components = self
            .components
            .as_ref()
            .map_err(|message| wrong(message.clone()))?;
        let mut imports = String::new();
        for (component, file) in used(&text, components) {
            if file != name {
                imports.push_str(&format!("{{% from \"{file}\" import {component} %}}"));
            }
        }
        Ok(Some(imports + &text))
    }
}

/// The components that a text calls, with the templates that define them.
fn used<'a>(text: &str, known: &'a BTreeMap<String, String>) -> Vec<(&'a str, &'a str)> {
    let mut found = BTreeSet::new();
    for tag in tags(text) {
        for (at, _) in tag.match_indices('(') {
            let before = tag[..at].trim_end();
            let start = before
                .rfind(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .map_or(0, |at| {
                    at + before[at..].chars().next().map_or(1, char::len_utf8)
                });
            if let Some((name, file)) = known.get_key_value(&before[start..]) {
                found.insert((name.as_str(), file.as_str()));
            }
        }
    }
    found.into_iter().collect()
}

/// What stands between `{{` and `}}` and between `{%` and `%}`.
fn tags(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find('{')?;
            rest = &rest[at + 1..];
            let end = match rest.as_bytes().first() {
                Some(b'{') => "}}",
                Some(b'%') => "%}",
                _ => continue,
            };
            let tag = &rest[1..];
            let length = tag.find(end).unwrap_or(tag.len());
            rest = &tag[length..];
            return Some(&tag[..length]);
        }
    })
}

/// Which file defines which component; that each is defined once, and that no two files
/// need each other.
fn find_components(dir: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut texts = BTreeMap::new();
    let Ok(entries) = fs::read_dir(dir.join(COMPONENTS)) else {
        return Ok(BTreeMap::new());
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || !name.ends_with(".html") {
            continue;
        }
        let text = fs::read_to_string(entry.path())
            .map_err(|error| format!("{}: {error}", entry.path().display()))?;
        texts.insert(format!("{COMPONENTS}/{name}"), text);
    }
    let mut components: BTreeMap<String, String> = BTreeMap::new();
    for (file, text) in &texts {
        for component in defined(text) {
            if let Some(other) = components.insert(component.to_owned(), file.clone()) {
                return Err(format!(
                    "the component `{component}` is defined in {other} and in {file}"
                ));
            }
        }
    }
    let needs: BTreeMap<&str, BTreeSet<&str>> = texts
        .iter()
        .map(|(file, text)| {
            let others = used(text, &components).into_iter().map(|(_, other)| other);
            (
                file.as_str(),
                others.filter(|other| other != file).collect(),
            )
        })
        .collect();
    match in_circle(&needs) {
        Some(files) => Err(format!(
            "{files} use each other's components: put them into one file"
        )),
        None => Ok(components),
    }
}

/// The names of the macros in a text.
fn defined(text: &str) -> impl Iterator<Item = &str> {
    tags(text).filter_map(|tag| {
        let rest = tag.trim_start_matches(['-', '+']).trim_start();
        let rest = rest
            .strip_prefix("macro")?
            .strip_prefix(char::is_whitespace)?;
        rest.trim_start().split('(').next().map(str::trim_end)
    })
}

/// Files that cannot be ordered, because each needs another of them.
fn in_circle(needs: &BTreeMap<&str, BTreeSet<&str>>) -> Option<String> {
    let mut left = needs.clone();
    loop {
        let free: Vec<&str> = left
            .iter()
            .filter(|(_, needed)| !needed.iter().any(|other| left.contains_key(other)))
            .map(|(file, _)| *file)
            .collect();
        if free.is_empty() {
            break;
        }
        left.retain(|file, _| !free.contains(file));
    }
    let names: Vec<&str> = left.into_keys().collect();
    (!names.is_empty()).then(|| names.join(" and "))
}
