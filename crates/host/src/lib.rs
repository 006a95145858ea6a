//! Web applications in Lua (LuaJIT) on Prony's server, over the WSGI convention as it
//! reads in Lua: `app(environ, start_response)` returns an iterator or a table of strings.
//!
//! Not for: worker processes, static files, the access log (`prony-hosting`).

mod load;

use mlua::{Lua, Value};
use prony_hosting::{LoadError, Post};
use prony_http::{Handler, Request, Response};
use serde::{Deserialize, Serialize};

/// Settings that only this host has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// Bytes that the Lua state of one worker may use.
    pub memory_max: u64,
}

/// An application, loaded.
pub struct Application {
    lua: Lua,
    app: Value,
}

/// Loads `module:app`.
///
/// # Errors
/// The module is not found or fails, or has no such function; with file and line.
pub fn load(post: &Post) -> Result<Application, LoadError> {
    let name = load::Name::parse(&post.settings.application)?;
    // SAFETY: an application may load C modules and use the FFI, as in any Lua: it is
    // trusted with the process.
    let lua = unsafe { Lua::unsafe_new() };
    load::set_path(&lua, post).map_err(|error| LoadError(error.to_string()))?;
    let app = load::find(&lua, name)?;
    Ok(Application { lua, app })
}

impl Application {
    fn call(&self, request: &Request<'_>) -> mlua::Result<Vec<u8>> {
        let environ = self.lua.create_table()?;
        environ.set("REQUEST_METHOD", request.method().name())?;
        environ.set("SCRIPT_NAME", "")?;
        environ.set("PATH_INFO", request.path())?;
        environ.set("QUERY_STRING", request.query())?;
        let run: mlua::Function = self
            .lua
            .load(
                "local app, environ = ... local result, state, control = app(environ, function() end)
                if type(result) == 'table' then return table.concat(result) end
                local out = {}
                for a, b in result, state, control do out[#out + 1] = type(a) == 'string' and a or b end
                return table.concat(out)",
            )
            .into_function()?;
        let body: mlua::LuaString = run.call((self.app.clone(), environ))?;
        Ok(body.as_bytes().to_vec())
    }
}

impl Handler for Application {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        match self.call(request) {
            Ok(body) => response.send(200, [], &body),
            Err(error) => response.text(500, &format!("{}\n", load::message(&error))),
        }
    }
}
