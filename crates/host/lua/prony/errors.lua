--- Answers that are thrown: `abort(404)` ends a request from wherever it is called.
--- Not for: faults of the application, which are Lua's ordinary errors.

local errors = {}

local HttpError = {}
HttpError.__index = HttpError

function HttpError:__tostring()
  return "HTTP " .. self.status .. (self.message and (": " .. self.message) or "")
end

--- Ends the request with this status. The message is shown to the client.
function errors.abort(status, message, headers)
  error(setmetatable({ status = status, message = message, headers = headers }, HttpError), 0)
end

function errors.is_http(value)
  return type(value) == "table" and getmetatable(value) == HttpError
end

--- Whether what was thrown says that memory was exhausted, in Lua or in a function of the
--- host's. It is the host's business: it replaces the worker.
function errors.is_memory(value)
  if type(value) == "userdata" then
    value = tostring(value):match("^[^\n]*")
    return value == "memory error: not enough memory"
  end
  return value == "not enough memory"
end

return errors
