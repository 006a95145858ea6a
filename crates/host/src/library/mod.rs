//! The functions that Rust gives to the framework in Lua: the module `prony.native` (templates,
//! Markdown, JSON, TOML, looking at files), and the framework's own modules, which are
//! part of the program, so that `require("prony")` needs no installation.
//!
//! Not for: calling applications (the bridge does), nor what can be said in Lua as well:
//! routes, requests, forms and the test client are `crates/host/lua`.

mod files;
mod json;
mod markdown;
mod script;
mod templates;
mod toml;
mod values;

use std::path::PathBuf;

use mlua::{Lua, Table};
use prony_hosting::{Post, Settings};
use serde::{Deserialize, Serialize};

pub use script::{Script, run};

/// The framework's modules by name.
const MODULES: &[(&str, &str)] = &[
    ("prony", include_str!("../../lua/prony/init.lua")),
    (
        "prony.application",
        include_str!("../../lua/prony/application.lua"),
    ),
    ("prony.client", include_str!("../../lua/prony/client.lua")),
    ("prony.config", include_str!("../../lua/prony/config.lua")),
    ("prony.cookies", include_str!("../../lua/prony/cookies.lua")),
    ("prony.errors", include_str!("../../lua/prony/errors.lua")),
    ("prony.json", include_str!("../../lua/prony/json.lua")),
    (
        "prony.multipart",
        include_str!("../../lua/prony/multipart.lua"),
    ),
    ("prony.pages", include_str!("../../lua/prony/pages.lua")),
    (
        "prony.patterns",
        include_str!("../../lua/prony/patterns.lua"),
    ),
    ("prony.request", include_str!("../../lua/prony/request.lua")),
    (
        "prony.response",
        include_str!("../../lua/prony/response.lua"),
    ),
    ("prony.router", include_str!("../../lua/prony/router.lua")),
    ("prony.test", include_str!("../../lua/prony/test.lua")),
    ("prony.text", include_str!("../../lua/prony/text.lua")),
    ("prony.url", include_str!("../../lua/prony/url.lua")),
];

/// The facts about the host that an application may know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Errors are shown to clients, and templates are read again when they change.
    pub development: bool,
    /// The directory of static files, and the path below which they are served.
    pub static_files: Option<(PathBuf, String)>,
}

impl From<&Settings> for Surroundings {
    fn from(settings: &Settings) -> Surroundings {
        Surroundings {
            development: settings.development,
            static_files: settings.static_files.clone(),
        }
    }
}

impl From<&Post> for Surroundings {
    fn from(post: &Post) -> Surroundings {
        Surroundings::from(&*post.settings)
    }
}

/// Functions of Lua 5.2 to 5.4 that LuaJIT is given.
const NEWER: &str = include_str!("../../lua/newer.lua");

/// Makes `require("prony")` work in this state: nothing of that is compiled before it is required. LuaJIT is given what
/// newer versions of Lua have and it can have, too.
///
/// # Errors
/// Memory is exhausted, or the state has no `package`.
pub fn install(lua: &Lua, around: &Surroundings) -> mlua::Result<()> {
    if cfg!(feature = "luajit") {
        lua.load(NEWER).set_name("=prony/newer").exec()?;
    }
    let preload: Table = lua.globals().get::<Table>("package")?.get("preload")?;
    for (name, text) in MODULES {
        let loader = lua.create_function(move |lua, _: mlua::MultiValue| {
            let file = format!("=prony/{}", name.trim_start_matches("prony."));
            lua.load(*text).set_name(file).call::<mlua::Value>(*name)
        })?;
        preload.set(*name, loader)?;
    }
    let around = around.clone();
    preload.set(
        "prony.native",
        lua.create_function(move |lua, _: mlua::MultiValue| native(lua, &around))?,
    )
}

fn native(lua: &Lua, around: &Surroundings) -> mlua::Result<Table> {
    let module = lua.create_table()?;
    module.set("development", around.development)?;
    if let Some((dir, url)) = &around.static_files {
        module.set("static_dir", dir.to_string_lossy())?;
        module.set("static_url", url.as_str())?;
    }
    files::register(lua, &module)?;
    json::register(lua, &module)?;
    markdown::register(lua, &module)?;
    templates::register(lua, &module)?;
    toml::register(lua, &module)?;
    Ok(module)
}
