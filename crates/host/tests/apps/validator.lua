--- What a host has to keep to, looked at from between it and an application: as
--- `wsgiref.validate` does for Python, and as docs/host-interface.md has it.

local validator = { found = {}, open = 0 }

local strings = {
  "REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "REQUEST_URI", "SERVER_NAME", "SERVER_PORT",
  "SERVER_PROTOCOL", "REMOTE_ADDR", "REMOTE_PORT", "wsgi.url_scheme",
}

local function expect(truth, what)
  if not truth then
    table.insert(validator.found, what)
  end
end

local function check_environ(environ)
  expect(type(environ) == "table" and getmetatable(environ) == nil, "environ is a plain table")
  for _, key in ipairs(strings) do
    expect(type(environ[key]) == "string", key .. " is a string")
  end
  for key, value in pairs(environ) do
    expect(type(key) == "string", "keys are strings")
    if not key:find("^wsgi%.") then
      expect(type(value) == "string", key .. " is a string")
      expect(key:find("^[A-Z][^a-z]*$"), key .. " has no small letters")
    end
  end
  expect(environ.REQUEST_METHOD ~= "", "there is a method")
  expect(environ.SCRIPT_NAME == "", "SCRIPT_NAME is empty")
  expect(environ.PATH_INFO:sub(1, 1) == "/", "PATH_INFO begins with a slash")
  expect(environ.SERVER_NAME ~= "" and tonumber(environ.SERVER_PORT), "the server has name and port")
  expect(environ.HTTP_CONTENT_TYPE == nil and environ.HTTP_CONTENT_LENGTH == nil, "their keys have no HTTP_")
  expect(environ.CONTENT_LENGTH == nil or environ.CONTENT_LENGTH:find("^%d+$"), "CONTENT_LENGTH is a number")
  local version = environ["wsgi.version"]
  expect(type(version) == "table" and version[1] == 1 and version[2] == 0, "wsgi.version is {1, 0}")
  for _, key in ipairs({ "wsgi.multithread", "wsgi.multiprocess", "wsgi.run_once" }) do
    expect(type(environ[key]) == "boolean", key .. " is true or false")
  end
  for _, method in ipairs({ "read", "readline", "readlines", "lines" }) do
    expect(environ["wsgi.input"][method], "wsgi.input has " .. method)
  end
  for _, method in ipairs({ "write", "writelines", "flush" }) do
    expect(environ["wsgi.errors"][method], "wsgi.errors has " .. method)
  end
end

--- The application, with a look at what the host gives it and does with its body.
function validator.around(app)
  return function(...)
    expect(select("#", ...) == 2, "an application is given two arguments")
    local environ, start_response = ...
    check_environ(environ)
    expect(type(start_response) == "function", "start_response is a function")
    local result, state, first = app(environ, function(...)
      local write = start_response(...)
      expect(type(write) == "function", "start_response returns write")
      return write
    end)
    local is_list = type(result) == "table" and not (getmetatable(result) or {}).__call
    if type(result) == "string" then
      return result
    end
    local closed, ended = false, false
    validator.open = validator.open + 1
    local function close()
      expect(not closed, "close is called once")
      closed = true
      validator.open = validator.open - 1
      if type(result) == "table" and result.close then
        result:close()
      end
    end
    if is_list then
      local copy = { (table.unpack or unpack)(result) }
      copy.close = close
      return copy
    end
    return setmetatable({ close = close }, {
      __call = function(_, ...)
        expect(not closed, "no piece is asked for after close")
        expect(not ended, "no piece is asked for after the end")
        local one, two = result(...)
        ended = one == nil
        return one, two
      end,
    }), state, first
  end
end

return validator
