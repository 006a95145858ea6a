-- What the bridge needs in Lua: the environ table, the request's body as an object that
-- is read, the error stream, and the handler that adds tracebacks to errors.
--
-- It is run once in each state, with what is the same for all requests, and returns what
-- the bridge calls.

local host = ...
local type, tostring, tonumber, select = type, tostring, tonumber, select
local find, gsub, sub = string.find, string.gsub, string.sub
local setmetatable, error, getinfo = setmetatable, error, debug.getinfo
local traceback = debug.traceback
local unpack = table.unpack or unpack

-- What a program prints is seen line by line, also where it goes to a pipe.
io.stdout:setvbuf("line")

-- wsgi.input: the body, whole. Reads as a file of Lua does; without a size, `read` gives
-- all the rest, as in Python.
local Input = {}
Input.__index = Input
Input.__name = "wsgi.input"

local function line(self, keep)
  local text, place = self.text, self.place
  if place > #text then
    return nil
  end
  local at = find(text, "\n", place, true)
  self.place = (at or #text) + 1
  if at and not keep then
    at = at - 1
  end
  return sub(text, place, at or #text)
end

local function rest(self)
  local place = self.place
  self.place = #self.text + 1
  return sub(self.text, place)
end

local function number(self)
  local first, last = find(self.text, "^%s*[+-]?%w[%w.]*", self.place)
  local value = first and tonumber(sub(self.text, first, last))
  if value then
    self.place = last + 1
  end
  return value
end

local function read(self, what)
  local kind = type(what)
  if kind == "number" then
    if what < 0 then
      return rest(self)
    end
    local place = self.place
    if place > #self.text and what > 0 then
      return nil
    end
    local text = sub(self.text, place, place + what - 1)
    self.place = place + #text
    return text
  elseif kind == "nil" then
    return rest(self)
  end
  local letter = kind == "string" and sub(what, 1, 1) == "*" and sub(what, 2, 2) or sub(tostring(what), 1, 1)
  if letter == "a" then
    return rest(self)
  elseif letter == "l" then
    return line(self)
  elseif letter == "L" then
    return line(self, true)
  elseif letter == "n" then
    return number(self)
  end
  error("wsgi.input: read takes a number of bytes, \"*a\", \"*l\", \"*L\" or \"*n\", not " .. tostring(what), 3)
end

function Input:read(...)
  local count = select("#", ...)
  if count < 2 then
    return (read(self, (...)))
  end
  local results = {}
  for place = 1, count do
    results[place] = read(self, (select(place, ...)))
    if results[place] == nil then
      break
    end
  end
  return unpack(results, 1, count)
end

function Input:readline(most)
  local from = self.place
  local text = line(self, true)
  if text and most and most >= 0 and #text > most then
    text = sub(text, 1, most)
    self.place = from + most
  end
  return text
end

function Input:readlines()
  local lines = {}
  local text = line(self, true)
  while text do
    lines[#lines + 1] = text
    text = line(self, true)
  end
  return lines
end

function Input:lines(what)
  if what == nil then
    return function()
      return line(self)
    end
  end
  return function()
    return (read(self, what))
  end
end

function Input:seek(whence, offset)
  local base = 0
  if whence == "end" then
    base = #self.text
  elseif whence == nil or whence == "cur" then
    base = self.place - 1
  elseif whence ~= "set" then
    return nil, "whence is \"set\", \"cur\" or \"end\""
  end
  local place = base + (offset or 0)
  if place < 0 then
    return nil, "before the start"
  end
  self.place = place + 1
  return place
end

function Input:close()
  self.place = #self.text + 1
  return true
end

local function input(text)
  return setmetatable({ text = text, place = 1 }, Input)
end

-- Most requests have no body: they share one that stays as it is.
local nothing = setmetatable({}, {
  __index = setmetatable({ text = "", place = 1 }, Input),
  __newindex = function() end,
  __name = "wsgi.input",
})

-- wsgi.errors: whole lines go to standard error, what is no whole line yet waits for its
-- end or for `flush`.
local Errors = {}
Errors.__index = Errors
local pending = ""

function Errors:write(...)
  for place = 1, select("#", ...) do
    pending = pending .. tostring((select(place, ...)))
  end
  local last = find(pending, "\n[^\n]*$")
  if last then
    io.stderr:write(sub(pending, 1, last))
    pending = sub(pending, last + 1)
  end
  return self
end

function Errors:writelines(lines)
  for place = 1, #lines do
    self:write(lines[place])
  end
end

function Errors:flush()
  if pending ~= "" then
    io.stderr:write(pending)
    pending = ""
  end
end

local errors = setmetatable({}, Errors)
local version = { 1, 0 }
local name, port, multiprocess = host.name, host.port, host.multiprocess

-- One constructor with all keys: LuaJIT copies it in one piece. There is room in it for
-- the headers that clients send mostly.
local function environ(method, path, query, uri, protocol, remote_addr, remote_port, body)
  return {
    REQUEST_METHOD = method,
    SCRIPT_NAME = "",
    PATH_INFO = path,
    QUERY_STRING = query,
    REQUEST_URI = uri,
    SERVER_NAME = name,
    SERVER_PORT = port,
    SERVER_PROTOCOL = protocol,
    REMOTE_ADDR = remote_addr,
    REMOTE_PORT = remote_port,
    ["wsgi.version"] = version,
    ["wsgi.url_scheme"] = "http",
    ["wsgi.input"] = body and input(body) or nothing,
    ["wsgi.errors"] = errors,
    ["wsgi.multithread"] = false,
    ["wsgi.multiprocess"] = multiprocess,
    ["wsgi.run_once"] = false,
  }
end

-- Makes text of whatever was thrown, with the way to where.
local function handler(problem)
  local text = problem
  if type(text) ~= "string" then
    local told, said = pcall(tostring, problem)
    text = told and type(said) == "string" and said or "an error without text"
    if type(problem) == "table" and sub(text, 1, 6) == "table:" then
      text = "(the error is a table without __tostring)"
    elseif problem == nil then
      text = "(the error is nil)"
    end
  end
  -- No tail call: the handler's own frame is what is left out. The last line would be
  -- the host's.
  local told = traceback(text, 2)
  return (gsub(told, "\n\t%[C%]: at 0x%x+$", ""))
end

-- Where a function was written.
local function place(app)
  local meta = type(app) ~= "function" and debug.getmetatable(app)
  local called = meta and meta.__call or app
  local info = type(called) == "function" and getinfo(called, "S")
  if not info or info.what == "C" then
    return "the application"
  end
  return info.short_src .. ":" .. info.linedefined
end

return environ, handler, place
