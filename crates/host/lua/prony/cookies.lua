--- Cookies: the `Cookie` header read, `Set-Cookie` written.
--- Not for: keeping them (prony.client does that for tests).

local text = require("prony.text")
local url = require("prony.url")

local cookies = {}

--- Cookies that are read from one request; the others are passed over.
cookies.count_max = 300

--- The cookies of a request; of several with a name the first counts, which browsers make
--- the most specific one.
function cookies.parse(header)
  local found, count = {}, 0
  for part in (header or ""):gmatch("[^;]+") do
    local name, value = part:match("^%s*([^=%s]+)%s*=(.*)$")
    if name and found[name] == nil then
      count = count + 1
      if count > cookies.count_max then
        break
      end
      found[name] = url.decode((text.trim(value):gsub('^"(.*)"$', "%1")))
    end
  end
  return found
end

local function attribute(options, name)
  local value = options[name]
  if value ~= nil and tostring(value):find("[;%c]") then
    error("cookie: `" .. name .. "` cannot hold a semicolon or control character", 4)
  end
  return value
end

--- The value of a `Set-Cookie` header. `options`: path ("/"), domain, max_age (seconds),
--- expires, secure, http_only (true unless false is said), same_site ("Lax").
function cookies.build(name, value, options)
  options = options or {}
  if not name:match("^[%w!#$%%&'*+%-.^_`|~]+$") then
    error("cookie: `" .. name .. "` is no name for one", 3)
  end
  local parts = { name .. "=" .. url.encode(value), "Path=" .. (attribute(options, "path") or "/") }
  local function add(part)
    parts[#parts + 1] = part
  end
  local domain, expires = attribute(options, "domain"), attribute(options, "expires")
  if domain then
    add("Domain=" .. domain)
  end
  if options.max_age then
    add(string.format("Max-Age=%d", options.max_age))
  end
  if expires then
    add("Expires=" .. expires)
  end
  if options.secure then
    add("Secure")
  end
  if options.http_only ~= false then
    add("HttpOnly")
  end
  add("SameSite=" .. (attribute(options, "same_site") or "Lax"))
  return table.concat(parts, "; ")
end

return cookies
