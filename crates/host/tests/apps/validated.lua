--- An application of every kind of body, with the validator around it. `/hex` writes the
--- environ in letters that no value can be taken for, `/found` what the validator found.

local validator = require("validator")

local function hex(text)
  return (text:gsub(".", function(letter)
    return ("%02x"):format(letter:byte())
  end))
end

local pages = {}

function pages.hex(environ)
  local lines = {}
  for key, value in pairs(environ) do
    if type(value) == "string" then
      lines[#lines + 1] = hex(key) .. "=" .. hex(value) .. "\n"
    end
  end
  lines[#lines + 1] = "=" .. hex(environ["wsgi.input"]:read())
  return lines
end

function pages.list()
  return { "a", "b" }
end

function pages.text()
  return "ab"
end

function pages.pairs()
  return ipairs({ "a", "b" })
end

function pages.wrap()
  return coroutine.wrap(function()
    coroutine.yield("a")
    coroutine.yield("")
    coroutine.yield("b")
  end)
end

function pages.broken()
  return function()
    error("no piece")
  end
end

local function app(environ, start_response)
  local page = pages[environ.HTTP_X_PAGE]
  start_response("200 OK", { { "Content-Type", "text/plain" } })
  return page(environ)
end

local validated = validator.around(app)

return {
  app = function(environ, start_response)
    if environ.HTTP_X_PAGE == "found" then
      start_response(200)
      return table.concat(validator.found, "\n") .. validator.open
    end
    return validated(environ, start_response)
  end,
}
