--- Answers: what a handler returns, and how it becomes what WSGI wants.
--- Not for: which answer is given when (prony.application).

local cookies = require("prony.cookies")
local json = require("prony.json")
local native = require("prony.native")
local url = require("prony.url")

local Response = {}
Response.__index = Response

local reasons = {
  [200] = "OK", [201] = "Created", [202] = "Accepted", [204] = "No Content", [205] = "Reset Content",
  [206] = "Partial Content", [300] = "Multiple Choices", [301] = "Moved Permanently", [302] = "Found",
  [303] = "See Other", [304] = "Not Modified", [307] = "Temporary Redirect", [308] = "Permanent Redirect",
  [400] = "Bad Request", [401] = "Unauthorized", [402] = "Payment Required", [403] = "Forbidden",
  [404] = "Not Found", [405] = "Method Not Allowed", [406] = "Not Acceptable", [408] = "Request Timeout",
  [409] = "Conflict", [410] = "Gone", [411] = "Length Required", [412] = "Precondition Failed",
  [413] = "Content Too Large", [414] = "URI Too Long", [415] = "Unsupported Media Type",
  [416] = "Range Not Satisfiable", [417] = "Expectation Failed", [418] = "I'm a Teapot",
  [421] = "Misdirected Request", [422] = "Unprocessable Content", [423] = "Locked",
  [425] = "Too Early", [426] = "Upgrade Required", [428] = "Precondition Required",
  [429] = "Too Many Requests", [431] = "Request Header Fields Too Large",
  [451] = "Unavailable For Legal Reasons", [500] = "Internal Server Error", [501] = "Not Implemented",
  [502] = "Bad Gateway", [503] = "Service Unavailable", [504] = "Gateway Timeout",
}

--- The words for a status.
function Response.reason(status)
  return reasons[status] or "Unknown"
end

--- `body`: a string, or a function that yields strings until nil.
function Response.new(status, content_type, body, headers)
  if type(status) ~= "number" or status < 200 or status > 999 or status % 1 ~= 0 then
    error("a response needs a status from 200 to 999, not `" .. tostring(status) .. "`", 2)
  end
  local self = setmetatable({ status = status, headers = {}, body = body }, Response)
  if content_type then
    self:header("Content-Type", content_type)
  end
  for name, value in pairs(headers or {}) do
    self:header(name, value)
  end
  return self
end

function Response.is(value)
  return getmetatable(value) == Response
end

--- Sets a header in place of those with its name; with nil it is taken away. Without a
--- second argument: its value.
function Response:header(name, ...)
  local wanted = name:lower()
  if select("#", ...) == 0 then
    for _, pair in ipairs(self.headers) do
      if pair[1]:lower() == wanted then
        return pair[2]
      end
    end
    return nil
  end
  for at = #self.headers, 1, -1 do
    if self.headers[at][1]:lower() == wanted then
      table.remove(self.headers, at)
    end
  end
  local value = ...
  if value ~= nil then
    self:add_header(name, value)
  end
  return self
end

--- Adds a header beside those with its name.
function Response:add_header(name, value)
  value = tostring(value)
  if not name:match("^[%w!#$%%&'*+%-.^_`|~]+$") or value:find("[\r\n%z]") then
    error("`" .. name .. ": " .. value .. "` cannot be a header", 3)
  end
  self.headers[#self.headers + 1] = { name, value }
  return self
end

--- Sets a cookie. `options`: path, domain, max_age, expires, secure, http_only, same_site.
function Response:cookie(name, value, options)
  return self:add_header("Set-Cookie", cookies.build(name, value, options))
end

--- Makes the client forget a cookie; path and domain have to be those it was set with.
function Response:delete_cookie(name, options)
  options = options or {}
  return self:cookie(name, "", {
    path = options.path,
    domain = options.domain,
    max_age = 0,
    expires = "Thu, 01 Jan 1970 00:00:00 GMT",
  })
end

local function close(body)
  if type(body) == "table" and body.close then
    body:close()
  end
end

--- Closes what is not going to be sent: for whoever drops an answer.
function Response:close()
  if self.closed then
    return
  end
  self.closed = true
  close(self.body)
  for _, other in ipairs(self.replaced or {}) do
    other:close()
  end
end

--- Takes the place of another answer, which is closed with this one. At once if this is
--- whole: pieces may be made of the other's.
function Response:replace(other)
  if other.body == self.body then
    return
  elseif type(self.body) == "string" then
    other:close()
    return
  end
  self.replaced = self.replaced or {}
  table.insert(self.replaced, other)
end

--- The body of an answer that took others' places.
local function closing(response)
  return setmetatable({
    close = function()
      response:close()
    end,
  }, {
    __call = function(_, ...)
      return response.body(...)
    end,
  })
end

local function without_body(status)
  return status == 204 or status == 304
end

--- Gives the answer over WSGI. `head`: the request was HEAD, so that only the length tells
--- of the body.
function Response:send(start_response, head)
  local body = self.body
  if without_body(self.status) then
    self:header("Content-Type", nil)
    self:close()
    body = ""
  elseif type(body) == "string" and not self:header("Content-Length") then
    self:header("Content-Length", #body)
  end
  start_response(self.status .. " " .. Response.reason(self.status), self.headers)
  if type(body) == "string" then
    return { head and "" or body }
  end
  if head then
    self:close()
    return { "" }
  end
  return self.replaced and closing(self) or body
end

-- What handlers call -----------------------------------------------------------------

local responses = { Response = Response }

function responses.text(text, status)
  return Response.new(status or 200, "text/plain; charset=utf-8", tostring(text))
end

function responses.html(html, status)
  return Response.new(status or 200, "text/html; charset=utf-8", tostring(html))
end

function responses.json(value, status)
  return Response.new(status or 200, "application/json", json.encode(value))
end

--- An answer with a status and nothing else.
function responses.empty(status)
  return Response.new(status or 204, nil, "")
end

--- Leads elsewhere; 303 unless another status is given, so that a form is not sent twice.
function responses.redirect(location, status)
  return Response.new(status or 303, nil, "", { Location = location })
end

--- Sends what a function yields, piece by piece, until it gives nil.
function responses.stream(body, content_type, status)
  if type(body) ~= "function" then
    error("stream: give a function that returns the next piece, and nil at the end", 2)
  end
  return Response.new(status or 200, content_type or "text/plain; charset=utf-8", body)
end

local types = {
  css = "text/css; charset=utf-8", csv = "text/csv; charset=utf-8", gif = "image/gif", gz = "application/gzip",
  htm = "text/html; charset=utf-8", html = "text/html; charset=utf-8", ico = "image/x-icon",
  jpeg = "image/jpeg", jpg = "image/jpeg", js = "text/javascript; charset=utf-8", json = "application/json",
  md = "text/markdown; charset=utf-8", pdf = "application/pdf", png = "image/png", svg = "image/svg+xml",
  txt = "text/plain; charset=utf-8", wasm = "application/wasm", webp = "image/webp", woff2 = "font/woff2",
  xml = "application/xml", zip = "application/zip",
}

--- Reads a file in pieces; closed at its end, and when the answer ends before.
local function pieces(file)
  local reader = {}
  function reader:close()
    if io.type(file) == "file" then
      file:close()
    end
  end
  return setmetatable(reader, {
    __call = function()
      if io.type(file) ~= "file" then
        return nil
      end
      local piece = file:read(65536)
      if not piece then
        file:close()
      end
      return piece
    end,
  })
end

--- Sends the file `name` below `directory`: nil if there is none, or if the name leads out
--- of the directory. `options.download`: the name under which the client saves it, or true
--- for its own.
function responses.file(directory, name, options)
  options = options or {}
  local path = native.inside(directory, name)
  local file = path and io.open(path, "rb")
  if not file then
    return nil
  end
  local kind = options.content_type or types[(path:match("%.(%w+)$") or ""):lower()]
  local length = file:seek("end")
  file:seek("set")
  local response = Response.new(200, kind or "application/octet-stream", pieces(file), { ["Content-Length"] = length })
  if options.download then
    responses.attachment(response, options.download == true and path:match("[^/]+$") or options.download)
  end
  return response
end

--- Makes of an answer one that the client saves under this name.
function responses.attachment(response, filename)
  local plain = filename:gsub('[%c"\\]', "_"):gsub("[\128-\255]", "_")
  local full = filename ~= plain and ("; filename*=UTF-8''" .. url.encode(filename)) or ""
  return response:header("Content-Disposition", 'attachment; filename="' .. plain .. '"' .. full)
end

return responses
