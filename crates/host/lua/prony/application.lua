--- An application: routes, what happens around their handlers, templates and pages, as one
--- value that a host can call.
--- Not for: how paths are matched (prony.router), what requests and answers are
--- (prony.request, prony.response).

local errors = require("prony.errors")
local native = require("prony.native")
local Request = require("prony.request")
local responses = require("prony.response")
local Router = require("prony.router")
local url = require("prony.url")

local Response = responses.Response
local unpack = table.unpack or unpack

local Application = {}
Application.__index = Application

--- Routes with a common prefix and hooks of their own.
local Group = {}
Group.__index = Group

local methods = { "get", "post", "put", "patch", "delete" }

--- The directory of the file in which the application is made: of the innermost caller
--- that is a file, as a tail call leaves no trace of the function that made it.
local function directory_of_caller()
  local level = 3
  while true do
    local info = debug.getinfo(level, "S")
    if not info then
      return "."
    elseif info.source:sub(1, 1) == "@" then
      return info.source:match("^@(.*)/[^/]*$") or "."
    end
    level = level + 1
  end
end

local function joined(root, path)
  return path:sub(1, 1) == "/" and path or (root .. "/" .. path)
end

local policies = { redirect = true, strict = true, both = true }

--- `options`: root (the directory of the file that calls this), templates ("templates"),
--- slashes ("redirect", "strict" or "both"), converters.
function Application.new(options)
  options = options or {}
  local slashes = options.slashes or "redirect"
  if not policies[slashes] then
    error("application: slashes is \"redirect\", \"strict\" or \"both\", not `" .. tostring(slashes) .. "`", 3)
  end
  local self = setmetatable({
    root = options.root or directory_of_caller(),
    slashes = slashes,
    router = Router.new(options.converters),
    hooks = { before = {}, after = {} },
    error_handlers = {},
    wrappers = {},
  }, Application)
  self.templates = native.templates(joined(self.root, options.templates or "templates"), native.development)
  self:global("url_for", function(...)
    return self:url_for(...)
  end)
  self:global("static_url", function(name)
    return self:static_url(name)
  end)
  self.inner = function(environ, start_response)
    return self:answer(environ, start_response)
  end
  return self
end

function Application:__call(environ, start_response)
  return self.inner(environ, start_response)
end

-- Routes ------------------------------------------------------------------------------

local function as_options(options)
  if type(options) == "string" then
    return { name = options }
  end
  return options or {}
end

local function add(app, group, path, handler, options, names)
  if type(handler) ~= "function" then
    error("route `" .. tostring(path) .. "`: the handler has to be a function, not " .. type(handler), 3)
  end
  options = as_options(options)
  local name = options.name
  if name and group and group.name then
    name = group.name .. "." .. name
  end
  return app.router:add({
    path = (group and group.prefix or "") .. path,
    methods = options.methods or names,
    handler = handler,
    name = name,
    group = group,
  })
end

--- Adds a route: `handler(request, …parameters)`. `options`: name, methods ({"GET"}); or
--- the name alone.
function Application:route(path, handler, options)
  return add(self, nil, path, handler, options, { "GET" })
end

function Group:route(path, handler, options)
  return add(self.app, self, path, handler, options, { "GET" })
end

for _, method in ipairs(methods) do
  local names = { method:upper() }
  Application[method] = function(self, path, handler, options)
    return add(self, nil, path, handler, options, names)
  end
  Group[method] = function(self, path, handler, options)
    return add(self.app, self, path, handler, options, names)
  end
end

local function group_of(app, parent, prefix, options)
  if prefix:sub(1, 1) ~= "/" or prefix:sub(-1) == "/" then
    error("group `" .. prefix .. "`: a prefix begins with a slash and ends with none", 3)
  end
  local name = as_options(options).name
  if name and parent and parent.name then
    name = parent.name .. "." .. name
  end
  return setmetatable({
    app = app,
    parent = parent,
    prefix = (parent and parent.prefix or "") .. prefix,
    name = name or (parent and parent.name),
    hooks = { before = {}, after = {} },
  }, Group)
end

--- Routes below a prefix. `options`: name (put before the names of its routes, with a dot).
function Application:group(prefix, options)
  return group_of(self, nil, prefix, options)
end

function Group:group(prefix, options)
  return group_of(self.app, self, prefix, options)
end

--- The path of a named route, with the prefix that the host serves this application under:
--- `url_for("post", 2024, "title")` or `url_for("post", {year = 2024, slug = "title"})`.
function Application:url_for(name, ...)
  return (self.script_name or "") .. self.router:url_for(name, ...)
end

--- The path of a static file, as `prony host --static` serves it.
function Application:static_url(name)
  return (native.static_url or "/static") .. "/" .. url.encode_path((name:gsub("^/+", "")))
end

-- Around handlers ---------------------------------------------------------------------

--- `hook(request)` before each handler; what it returns, if anything, is the answer.
function Application:before(hook)
  table.insert(self.hooks.before, hook)
end
Group.before = Application.before

--- `hook(request, response)` after each; may change the answer or return another.
function Application:after(hook)
  table.insert(self.hooks.after, hook)
end
Group.after = Application.after

--- `handler(request, error)` answers in place of the page for this status. For 500 the
--- error is the text with its traceback.
function Application:error(status, handler)
  self.error_handlers[status] = handler
end

--- Puts a WSGI application around this one: `wrapper(inner)` returns the outer one. The
--- last that was put around is the outermost.
function Application:wrap(wrapper)
  self.inner = wrapper(self.inner)
end

-- Templates and pages -----------------------------------------------------------------

--- A value or function that every template sees.
function Application:global(name, value)
  self.templates:global(name, value)
end

--- A filter for templates: `{{ value | name }}`.
function Application:filter(name, filter)
  self.templates:filter(name, filter)
end

--- The text of a template, which other templates take as it is.
function Application:template(name, context)
  return self.templates:render(name, context or {})
end

--- An answer from a template.
function Application:render(name, context, status)
  return responses.html(self:template(name, context), status)
end

--- Serves a directory of Markdown files: see prony.pages.
function Application:pages(directory, options)
  return require("prony.pages").add(self, joined(self.root, directory), options or {})
end

--- Settings from `config.toml` beside the application: see prony.config.
function Application:config(defaults, options)
  options = options or {}
  return require("prony.config").load(joined(self.root, options.file or "config.toml"), defaults, options)
end

-- A request's way ---------------------------------------------------------------------

--- What a handler returned, as an answer.
local function as_response(value, route)
  if Response.is(value) then
    return value
  end
  if type(value) == "string" or native.is_safe(value) then
    return responses.html(value)
  end
  error("the handler of " .. route.path .. " returned " .. type(value) .. ", not a response or a string", 0)
end

local function run_before(hooks, request)
  for _, hook in ipairs(hooks) do
    local answer = hook(request)
    if answer ~= nil then
      return answer
    end
  end
end

local function run_after(hooks, request, response)
  for _, hook in ipairs(hooks) do
    local other = hook(request, response)
    if Response.is(other) and other ~= response then
      other:replace(response)
    end
    response = other or response
  end
  return response
end

--- The groups of a route, the outermost first.
local function groups_of(route)
  if not route.groups then
    route.groups = {}
    local group = route.group
    while group do
      table.insert(route.groups, 1, group)
      group = group.parent
    end
  end
  return route.groups
end

local function run_route(route, request, values)
  local groups, answer = groups_of(route), nil
  for _, group in ipairs(groups) do
    answer = run_before(group.hooks.before, request)
    if answer ~= nil then
      break
    end
  end
  if answer == nil then
    answer = route.handler(request, unpack(values, 1, #route.parameters))
  end
  local response = as_response(answer, route)
  for at = #groups, 1, -1 do
    response = run_after(groups[at].hooks.after, request, response)
  end
  return response
end

local function allow_of(allowed)
  allowed.OPTIONS = true
  local names = {}
  for name in pairs(allowed) do
    names[#names + 1] = name
  end
  table.sort(names)
  return table.concat(names, ", ")
end

--- The same path with a slash at its end, or without.
local function other_slash(path)
  if path == "/" then
    return nil
  end
  return path:sub(-1) == "/" and path:sub(1, -2) or path .. "/"
end

--- Where the request should have gone. One slash at its beginning: two would be another host.
local function moved(request, path)
  local query = request.environ.QUERY_STRING
  local location = request.script_name .. "/" .. url.encode_path((path:gsub("^/+", "")))
  if query and query ~= "" then
    location = location .. "?" .. query
  end
  return responses.redirect(location, 308)
end

local function find(app, request)
  local route, found = app.router:find(request.method, request.path)
  if route or found then
    return route, found
  end
  local other = app.slashes ~= "strict" and other_slash(request.path)
  if other then
    route, found = app.router:find(request.method, other)
    if route and app.slashes == "redirect" then
      return nil, nil, moved(request, other)
    end
  end
  return route, found
end

local function dispatch(app, request)
  local route, found, redirect = find(app, request)
  if redirect then
    return redirect
  elseif not route and not found then
    errors.abort(404)
  elseif not route and request.method == "OPTIONS" then
    return responses.empty(204):header("Allow", allow_of(found))
  elseif not route then
    errors.abort(405, nil, { Allow = allow_of(found) })
  end
  request.route = route
  for number, parameter in ipairs(route.parameters) do
    request.params[parameter.name] = found[number]
  end
  return run_route(route, request, found)
end

local function escape(text)
  return (text:gsub("[&<>\"']", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }))
end

--- The page for an error that the application answers in no way of its own.
local function plain_page(status, message)
  local reason = Response.reason(status)
  local title = status .. " " .. reason
  return responses.html(
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>' .. title .. "</title><h1>" .. title
      .. "</h1>" .. (message and ("<p>" .. escape(message) .. "</p>") or "") .. "</html>\n",
    status
  )
end

local function answer_error(app, request, thrown)
  local handler = app.error_handlers[thrown.status]
  local response = handler and handler(request, thrown)
  if response == nil then
    -- A fault's message is its traceback, which is nobody's business but the author's.
    response = plain_page(thrown.status, errors.is_http(thrown) and thrown.message or nil)
  else
    if not Response.is(response) then
      response = responses.html(response)
    end
    if response.status == 200 then
      response.status = thrown.status
    end
  end
  for name, value in pairs(thrown.headers or {}) do
    response:header(name, value)
  end
  return response
end

--- Faults keep their traceback, which is gone once the error was caught.
local function with_traceback(thrown)
  if errors.is_http(thrown) then
    return thrown
  end
  return { fault = thrown, traceback = debug.traceback(tostring(thrown), 2) }
end

local function attempt(app, request)
  local answer = run_before(app.hooks.before, request)
  if answer ~= nil then
    return as_response(answer, { path = request.path })
  end
  return dispatch(app, request)
end

local function guarded(action, app, request, argument)
  local fine, result = xpcall(action, with_traceback, app, request, argument)
  if fine then
    return result
  end
  if errors.is_http(result) then
    return answer_error(app, request, result)
  end
  -- Where memory is exhausted, Lua may have no room for the table that `with_traceback` makes.
  if type(result) ~= "table" or errors.is_memory(result.fault) then
    error(type(result) == "table" and result.fault or result, 0)
  end
  local handler = app.error_handlers[500]
  if not handler then
    -- The host shows it: in the log, and in development to the client.
    error(result.traceback, 0)
  end
  request.environ["wsgi.errors"]:write(result.traceback .. "\n")
  return answer_error(app, request, { status = 500, message = result.traceback })
end

local function finish(app, request, response)
  return run_after(app.hooks.after, request, response)
end

--- Answers one request: what `__call` does without the wrappers.
function Application:answer(environ, start_response)
  local request = Request.new(environ)
  self.script_name = request.script_name
  local response = guarded(attempt, self, request)
  if self.hooks.after[1] then
    local before = response
    response = guarded(finish, self, request, before)
    if response ~= before then
      response:replace(before)
    end
  end
  return response:send(start_response, request.method == "HEAD")
end

return Application
