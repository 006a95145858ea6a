--- A client for tests: it calls an application as a host does, without a socket, and gives
--- what came as a table. It keeps cookies, as browsers do.
--- Not for: requests to other servers.

local cookies = require("prony.cookies")
local json = require("prony.json")
local multipart = require("prony.multipart")
local url = require("prony.url")

local Client = {}
Client.__index = Client

--- Redirects that are followed before it is said that they lead in a circle.
local redirects_max = 10

local Answer = {}
Answer.__index = Answer

--- The first header with this name, or nil.
function Answer:header(name)
  for _, pair in ipairs(self.headers) do
    if pair[1]:lower() == name:lower() then
      return pair[2]
    end
  end
end

--- The body as JSON.
function Answer:json()
  local value, reason = json.decode(self.body)
  if reason then
    error("the body is no JSON (" .. reason .. "): " .. self.body:sub(1, 200), 2)
  end
  return value
end

--- `options.headers` go with every request; `options.cookies` are there from the start.
function Client.new(app, options)
  options = options or {}
  local kept = {}
  for name, value in pairs(options.cookies or {}) do
    kept[name] = value
  end
  return setmetatable({ app = app, headers = options.headers or {}, cookies = kept }, Client)
end

--- `wsgi.input` over a string.
local function input_of(body)
  local at = 1
  local input = {}
  local function take(to)
    local piece = body:sub(at, to)
    at = math.max(at, math.min(to, #body) + 1)
    return piece
  end
  function input:read(count)
    if type(count) == "string" and count:match("^%*?l") then
      local line = self:readline()
      return line and (line:gsub("\n$", ""))
    end
    return take(type(count) == "number" and count >= 0 and at + count - 1 or #body)
  end
  function input:readline()
    if at > #body then
      return nil
    end
    return take(body:find("\n", at, true) or #body)
  end
  function input:lines()
    return function()
      return self:read("*l")
    end
  end
  return input
end

--- `wsgi.errors`: kept, so that a test may look.
local function errors_of(kept)
  return {
    write = function(_, text)
      kept[#kept + 1] = text
    end,
    flush = function() end,
  }
end

local function environ_of(self, method, target, options, body, content_type, said)
  local path, query = target:match("^([^?#]*)%??([^#]*)")
  if options.query then
    query = query .. (query ~= "" and "&" or "") .. url.build_query(options.query)
  end
  local environ = {
    REQUEST_METHOD = method,
    SCRIPT_NAME = options.script_name or "",
    PATH_INFO = url.decode(path),
    QUERY_STRING = query,
    REQUEST_URI = target,
    SERVER_NAME = "127.0.0.1",
    SERVER_PORT = "80",
    SERVER_PROTOCOL = "HTTP/1.1",
    REMOTE_ADDR = "127.0.0.1",
    REMOTE_PORT = "1",
    HTTP_HOST = "127.0.0.1",
    CONTENT_TYPE = content_type,
    CONTENT_LENGTH = body ~= "" and tostring(#body) or nil,
    ["wsgi.version"] = { 1, 0 },
    ["wsgi.url_scheme"] = "http",
    ["wsgi.input"] = input_of(body),
    ["wsgi.errors"] = errors_of(said),
    ["wsgi.multithread"] = false,
    ["wsgi.multiprocess"] = false,
    ["wsgi.run_once"] = false,
  }
  for _, headers in ipairs({ self.headers, options.headers or {} }) do
    for name, value in pairs(headers) do
      local key = name:upper():gsub("%-", "_")
      key = (key == "CONTENT_TYPE" or key == "CONTENT_LENGTH") and key or "HTTP_" .. key
      environ[key] = tostring(value)
    end
  end
  local pairs_of = {}
  for name, value in pairs(self.cookies) do
    pairs_of[#pairs_of + 1] = name .. "=" .. url.encode(value)
  end
  table.sort(pairs_of)
  if pairs_of[1] then
    environ.HTTP_COOKIE = table.concat(pairs_of, "; ")
  end
  return environ
end

--- The parts of a form with files: `files` is `{field = {filename, content, content_type}}`.
local function parts_of(form, files)
  local parts = {}
  for name, values in pairs(form or {}) do
    for _, value in ipairs(type(values) == "table" and values or { values }) do
      parts[#parts + 1] = { name = name, content = tostring(value) }
    end
  end
  for name, file in pairs(files) do
    parts[#parts + 1] =
      { name = name, filename = file.filename, content = file.content, content_type = file.content_type }
  end
  return parts
end

local function body_of(options)
  if options.files then
    return multipart.build(parts_of(options.form, options.files))
  elseif options.form then
    return url.build_query(options.form), "application/x-www-form-urlencoded"
  elseif options.json ~= nil then
    return json.encode(options.json), "application/json"
  end
  return options.body or "", options.content_type
end

local function keep_cookies(self, headers)
  for _, pair in ipairs(headers) do
    if pair[1]:lower() == "set-cookie" then
      local name, value = pair[2]:match("^([^=]+)=([^;]*)")
      local gone = pair[2]:lower():find("max-age=0", 1, true)
      self.cookies[name] = not gone and cookies.parse(name .. "=" .. value)[name] or nil
    end
  end
end

--- All strings that the application gave, and an end to it.
local function collect(result, state, initial)
  local parts = {}
  local fine, reason = pcall(function()
    if type(result) == "string" then
      parts[1] = result
    elseif type(result) == "table" and not (getmetatable(result) or {}).__call then
      for _, part in ipairs(result) do
        parts[#parts + 1] = part
      end
    else
      for first, second in result, state, initial do
        parts[#parts + 1] = type(first) == "string" and first or second
      end
    end
  end)
  if type(result) == "table" and result.close then
    result:close()
  end
  if not fine then
    error(reason, 0)
  end
  return table.concat(parts)
end

local function once(self, method, target, options)
  local body, content_type = body_of(options)
  local said, status, headers = {}, nil, nil
  local environ = environ_of(self, method, target, options, body, content_type, said)
  local function start_response(given, list)
    status, headers = given, list
  end
  local text = collect(self.app(environ, start_response))
  if not status then
    error("the application did not call start_response", 3)
  end
  keep_cookies(self, headers)
  return setmetatable({
    status = tonumber(tostring(status):match("^%d+")),
    headers = headers,
    body = text,
    errors = table.concat(said),
    url = target,
    method = method,
  }, Answer)
end

local function next_request(answer, options)
  local location = answer:header("Location")
  local target = location:match("^%a+://[^/]*(.*)$") or location
  target = target == "" and "/" or target
  if target:sub(1, 1) ~= "/" then
    target = answer.url:match("^([^?#]*/)") .. target
  end
  local keeps = answer.status == 307 or answer.status == 308 or answer.method == "HEAD"
  if keeps then
    local again = {}
    for name, value in pairs(options) do
      again[name] = name ~= "query" and value or nil
    end
    return answer.method, target, again
  end
  return "GET", target, { headers = options.headers, script_name = options.script_name }
end

--- One request. `options`: query, headers, form, files, json, body and content_type,
--- follow (redirects), script_name. The answer has status, headers, body, errors (what was
--- written to `wsgi.errors`), history, and the methods `header(name)` and `json()`. An
--- error of the application that it does not answer itself is raised here.
function Client:request(method, target, options)
  options = options or {}
  local answer = once(self, method, target, options)
  local history = {}
  while options.follow and answer:header("Location") do
    history[#history + 1] = answer
    if #history > redirects_max then
      error("more than " .. redirects_max .. " redirects, the last to " .. answer:header("Location"), 2)
    end
    local follow = options.follow
    method, target, options = next_request(answer, options)
    options.follow = follow
    answer = once(self, method, target, options)
  end
  answer.history = history
  return answer
end

for _, method in ipairs({ "get", "head", "post", "put", "patch", "delete", "options" }) do
  Client[method] = function(self, target, options)
    return self:request(method:upper(), target, options)
  end
end

return Client
