--- A request, as a handler sees it: what `environ` holds, taken apart when it is asked for.
--- Not for: answering (prony.response).

local cookies = require("prony.cookies")
local errors = require("prony.errors")
local json = require("prony.json")
local multipart = require("prony.multipart")
local url = require("prony.url")

local Request = {}
Request.__index = Request

--- `method`, `path` (decoded, below the application), `script_name`, `environ`, `params`
--- (parameters of the route by name) and `route` are fields; all else is asked for.
function Request.new(environ)
  return setmetatable({
    environ = environ,
    method = environ.REQUEST_METHOD,
    path = environ.PATH_INFO ~= "" and environ.PATH_INFO or "/",
    script_name = environ.SCRIPT_NAME or "",
    params = {},
  }, Request)
end

--- The value of a header, or nil.
function Request:header(name)
  local key = name:upper():gsub("%-", "_")
  if key == "CONTENT_TYPE" or key == "CONTENT_LENGTH" then
    local value = self.environ[key]
    return value ~= "" and value or nil
  end
  return self.environ["HTTP_" .. key]
end

--- The value of `Content-Type` in small letters, without its parameters.
function Request:content_type()
  local value = self:header("Content-Type") or ""
  return value:match("^%s*([^;%s]*)"):lower()
end

--- The whole body; read once, then kept.
function Request:body()
  if not self.read then
    local input = self.environ["wsgi.input"]
    self.read = input and input:read("*a") or ""
  end
  return self.read
end

local function queries(self)
  if not self.query_fields then
    local fields, reason = url.parse_query(self.environ.QUERY_STRING or "")
    if not fields then
      errors.abort(400, "The query has " .. reason .. ".")
    end
    self.query_fields = fields
  end
  return self.query_fields
end

--- The first value of a field of the query; `default` (nil) when there is none.
--- Without a name: all fields, as a table of lists.
function Request:query(name, default)
  if name == nil then
    return queries(self)
  end
  local list = queries(self)[name]
  if list then
    return list[1]
  end
  return default
end

--- All values of a field of the query, as a list.
function Request:queries(name)
  return queries(self)[name] or {}
end

local function sort_parts(parts)
  local fields, files = {}, {}
  for _, part in ipairs(parts) do
    local into = part.filename and files or fields
    into[part.name] = into[part.name] or {}
    table.insert(into[part.name], part.filename and part or part.content)
  end
  return fields, files
end

local function read_form(self)
  if self.form_fields then
    return
  end
  local kind, fields, reason = self:content_type(), {}, nil
  self.form_files = {}
  if kind == "application/x-www-form-urlencoded" then
    fields, reason = url.parse_query(self:body())
  elseif kind == "multipart/form-data" then
    local boundary = multipart.boundary(self:header("Content-Type"))
    if not boundary then
      errors.abort(400, "The form names no boundary.")
    end
    fields, reason = multipart.parse(self:body(), boundary)
    if fields then
      fields, self.form_files = sort_parts(fields)
    end
  end
  if not fields then
    errors.abort(400, "The form cannot be read: " .. reason .. ".")
  end
  self.form_fields = fields
end

--- The first value of a field of the form; `default` (nil) when there is none, also when
--- the request brings no form. Without a name: all fields, as a table of lists.
function Request:form(name, default)
  read_form(self)
  if name == nil then
    return self.form_fields
  end
  local list = self.form_fields[name]
  if list then
    return list[1]
  end
  return default
end

--- All values of a field of the form, as a list.
function Request:forms(name)
  read_form(self)
  return self.form_fields[name] or {}
end

--- The file that a form brings in this field: `{name, filename, content_type, content}`,
--- or nil. The filename is what the client says: never a path to write to.
function Request:file(name)
  return self:files(name)[1]
end

--- All files of a field, as a list.
function Request:files(name)
  read_form(self)
  return self.form_files[name] or {}
end

--- The body as JSON. A body that is none ends the request with 400, one that says it is
--- something else with 415.
function Request:json()
  local kind = self:content_type()
  if not (kind == "application/json" or kind:match("^application/.+%+json$")) then
    errors.abort(415, "This takes application/json.")
  end
  local value, reason = json.decode(self:body())
  if reason then
    errors.abort(400, "The body is no JSON: " .. reason .. ".")
  end
  return value
end

--- The value of a cookie, or nil. Without a name: all of them.
function Request:cookie(name)
  if not self.cookies then
    self.cookies = cookies.parse(self.environ.HTTP_COOKIE)
  end
  if name == nil then
    return self.cookies
  end
  return self.cookies[name]
end

--- The scheme and host that the client used, such as `http://example.org:8080`.
function Request:origin()
  local environ = self.environ
  local host = environ.HTTP_HOST or (environ.SERVER_NAME .. ":" .. environ.SERVER_PORT)
  return environ["wsgi.url_scheme"] .. "://" .. host
end

return Request
