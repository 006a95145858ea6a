--- Prony's framework for web applications in Lua: `local prony = require("prony")`.
--- Its guide is docs/host.md; each module says what it is for.

local Application = require("prony.application")
local errors = require("prony.errors")
local native = require("prony.native")
local responses = require("prony.response")

local prony = {
  --- An application, callable by a host: see prony.application.
  application = Application.new,
  abort = errors.abort,

  text = responses.text,
  html = responses.html,
  json = responses.json,
  empty = responses.empty,
  redirect = responses.redirect,
  stream = responses.stream,
  file = responses.file,
  attachment = responses.attachment,
  response = responses.Response.new,

  --- HTML that templates take as it is. Never for what a client sent.
  safe = native.safe,
  --- A table that templates are given often, converted once.
  constant = native.constant,
  --- Markdown to HTML that is safe, and the list of its headings.
  markdown = native.markdown,
  --- Whether errors are shown to clients.
  development = native.development,
}

--- A client for tests: see prony.client.
function prony.client(app, options)
  return require("prony.client").new(app, options)
end

return prony
