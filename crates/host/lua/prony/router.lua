--- Routes: paths with parameters and methods, found by a request's path, and built from a
--- route's name.
--- Not for: what happens around a handler (prony.application).
---
--- A path such as `/posts/{year:integer}/{slug}` has parameters in braces, each with a
--- converter (`string` if none is named). Paths are compared as they are in PATH_INFO,
--- which is decoded: a slash that was encoded is a slash, and no `string` holds one.

local url = require("prony.url")

local Router = {}
Router.__index = Router

--- Longer paths fit no route with parameters. With this, and with what `check_cost` allows in
--- a route, no path takes long to compare, whoever made it up: steps grow with its length,
--- and where a segment holds two parameters with the square of it, at most half a million.
Router.path_bytes_max = 4096
--- The same for routes with two parameters in a segment.
Router.shared_path_bytes_max = 1024

--- How a parameter looks (`pattern`, without captures), what the handler is given
--- (`parse`; nil says that this is not one), and how it is written (`format`; nil likewise).
local converters = {
  string = {
    pattern = "[^/]+",
    format = function(value)
      value = tostring(value)
      return value ~= "" and not value:find("/", 1, true) and value or nil
    end,
  },
  integer = {
    pattern = "%-?%d+",
    parse = function(text)
      local number = tonumber(text)
      -- From here on a number in Lua no longer holds every integer.
      return number and math.abs(number) < 2 ^ 53 and number or nil
    end,
    format = function(value)
      local number = tonumber(value)
      if number and number % 1 == 0 and math.abs(number) < 2 ^ 53 then
        return string.format("%d", number)
      end
    end,
  },
  number = {
    -- One run, which ends where it ends: `%d+%.?%d*` could divide figures in many ways.
    pattern = "%-?%d[%d.]*",
    parse = tonumber,
    format = function(value)
      local text = tonumber(value) and tostring(tonumber(value))
      return text and text:match("^%-?%d+%.?%d*$")
    end,
  },
  path = {
    pattern = ".+",
    format = function(value)
      value = tostring(value)
      return value ~= "" and value or nil
    end,
  },
  uuid = {
    pattern = ("%x"):rep(8) .. ("%-" .. ("%x"):rep(4)):rep(3) .. "%-" .. ("%x"):rep(12),
    parse = string.lower,
    format = function(value)
      value = tostring(value):lower()
      return value:match("^%x+%-%x+%-%x+%-%x+%-%x+$") and #value == 36 and value or nil
    end,
  },
}

--- `own`: converters of the application, beside the ones that are there.
function Router.new(own)
  local known = setmetatable({}, { __index = converters })
  for name, converter in pairs(own or {}) do
    if type(converter.pattern) ~= "string" or converter.pattern:find("%f[%%(]%(") then
      error("converter `" .. name .. "`: `pattern` has to be a Lua pattern without captures", 2)
    end
    known[name] = converter
  end
  return setmetatable({ converters = known, routes = {}, static = {}, dynamic = {}, names = {} }, Router)
end

local function escape(text)
  return (text:gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0"))
end

--- Each parameter that could end anywhere multiplies the ways in which a path is tried.
--- Gives the length of path up to which the rest is cheap.
local function check_cost(path, parameters)
  local anywhere, shared = 0, 0
  for _, parameter in ipairs(parameters) do
    anywhere = anywhere + (parameter.kind == "path" and 1 or 0)
  end
  if anywhere > 1 then
    error("route `" .. path .. "`: only one parameter can be a `path`", 5)
  end
  for segment in path:gmatch("[^/]+") do
    local _, count = segment:gsub("{", "")
    if count > 2 then
      error("route `" .. path .. "`: between two slashes there can be two parameters, not " .. count, 5)
    end
    shared = shared + (count == 2 and 1 or 0)
  end
  if shared > 1 then
    error("route `" .. path .. "`: two parameters can be between two slashes only once", 5)
  elseif shared + anywhere > 1 then
    error("route `" .. path .. "`: beside a `path` no two parameters can be between two slashes", 5)
  end
  return shared > 0 and Router.shared_path_bytes_max or Router.path_bytes_max
end

--- Takes a path apart: a Lua pattern, and its parameters.
local function compile(self, path)
  if path:sub(1, 1) ~= "/" then
    error("route `" .. path .. "`: a path begins with a slash", 4)
  end
  local pattern, parameters, literals, taken, at = "^", {}, {}, {}, 1
  while true do
    local from, to, inside = path:find("{([^{}]*)}", at)
    local literal = path:sub(at, (from or 0) - 1)
    if literal:find("[{}]") then
      error("route `" .. path .. "`: a brace without its partner", 4)
    end
    literals[#literals + 1] = literal
    pattern = pattern .. escape(literal)
    if not from then
      return pattern .. "$", parameters, literals, check_cost(path, parameters)
    end
    local name, kind = inside:match("^([%a_][%w_]*):?([%w_]*)$")
    if not name or inside:sub(-1) == ":" then
      error("route `" .. path .. "`: `{" .. inside .. "}` is not {name} or {name:converter}", 4)
    end
    kind = kind == "" and "string" or kind
    local converter = self.converters[kind]
    if not converter then
      error("route `" .. path .. "`: there is no converter `" .. kind .. "`", 4)
    end
    if taken[name] then
      error("route `" .. path .. "`: two parameters are named `" .. name .. "`", 4)
    end
    taken[name] = true
    parameters[#parameters + 1] = { name = name, kind = kind, converter = converter }
    pattern = pattern .. "(" .. converter.pattern .. ")"
    at = to + 1
  end
end

--- Adds a route: `{path, methods, handler, name, …}`. What else is in it is the caller's.
function Router:add(route)
  local pattern, parameters, literals, path_bytes_max = compile(self, route.path)
  route.parameters, route.literals, route.path_bytes_max = parameters, literals, path_bytes_max
  route.allows = {}
  for _, method in ipairs(route.methods) do
    route.allows[method] = true
  end
  if route.allows.GET then
    route.allows.HEAD = true
  end
  if route.name then
    local other = self.names[route.name]
    if other then
      error("two routes are named `" .. route.name .. "`: " .. other.path .. " and " .. route.path, 3)
    end
    self.names[route.name] = route
  end
  self.routes[#self.routes + 1] = route
  if #parameters == 0 then
    local list = self.static[route.path] or {}
    self.static[route.path] = list
    list[#list + 1] = route
  else
    route.pattern = pattern
    self.dynamic[#self.dynamic + 1] = route
  end
  return route
end

local function converted(route, found)
  local values = {}
  for number, parameter in ipairs(route.parameters) do
    local text = found[number]
    local parse = parameter.converter.parse
    local value = text
    if parse then
      value = parse(text)
      if value == nil then
        return nil
      end
    end
    values[number] = value
  end
  return values
end

local function note(allowed, route)
  allowed = allowed or {}
  for method in pairs(route.allows) do
    allowed[method] = true
  end
  return allowed
end

--- The route for a method and path, and the values of its parameters in their order.
--- Without one: nil, and the methods that the path has (nil when there is no such path).
--- Routes without parameters come first, then the others in the order they were added.
function Router:find(method, path)
  local allowed
  for _, route in ipairs(self.static[path] or {}) do
    if route.allows[method] then
      return route, {}
    end
    allowed = note(allowed, route)
  end
  for _, route in ipairs(#path <= Router.path_bytes_max and self.dynamic or {}) do
    local found = #path <= route.path_bytes_max and { path:match(route.pattern) } or {}
    if found[1] then
      local values = converted(route, found)
      if values and route.allows[method] then
        return route, values
      elseif values then
        allowed = note(allowed, route)
      end
    end
  end
  return nil, allowed
end

--- The values of a call `url_for(name, a, b)` or `url_for(name, {year = a, slug = b})`;
--- what is in the table beside parameters becomes the query.
local function arguments_of(route, first, ...)
  if type(first) ~= "table" then
    local values = { first, ... }
    local count = select("#", first, ...)
    if first == nil and count == 1 then
      count = 0
    end
    return values, count, nil
  end
  local values, query, used = {}, {}, {}
  for number, parameter in ipairs(route.parameters) do
    values[number] = first[parameter.name]
    used[parameter.name] = true
  end
  for name, value in pairs(first) do
    if not used[name] then
      query[name] = value
    end
  end
  return values, #route.parameters, next(query) and query
end

--- The path of the route with this name, encoded. Raises an error that says which
--- parameter is missing or cannot stand there.
function Router:url_for(name, ...)
  local route = self.names[name]
  if not route then
    error("url_for: no route is named `" .. tostring(name) .. "`", 2)
  end
  local values, count, query = arguments_of(route, ...)
  if count > #route.parameters then
    error("url_for: `" .. name .. "` has " .. #route.parameters .. " parameters, not " .. count, 2)
  end
  local parts = { url.encode_path(route.literals[1]) }
  for number, parameter in ipairs(route.parameters) do
    local value = values[number]
    if value == nil then
      error("url_for: `" .. name .. "` needs the parameter `" .. parameter.name .. "`", 2)
    end
    local format = parameter.converter.format or tostring
    local text = format(value)
    if not text then
      error("url_for: `" .. tostring(value) .. "` is no " .. parameter.kind .. " for the parameter `" .. parameter.name .. "` of `" .. name .. "`", 2)
    end
    parts[#parts + 1] = url.encode_path(text)
    parts[#parts + 1] = url.encode_path(route.literals[number + 1])
  end
  local path = table.concat(parts)
  return query and (path .. "?" .. url.build_query(query)) or path
end

return Router
