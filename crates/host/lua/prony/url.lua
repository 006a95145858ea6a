--- Percent encoding, query strings and forms of one line.
--- Not for: which URLs an application has (prony.router).

local url = {}

--- Fields that a query or a form may have; more are refused.
url.fields_max = 1000

local function byte_of(hex)
  return string.char(tonumber(hex, 16))
end

local function hex_of(letter)
  return string.format("%%%02X", letter:byte())
end

--- Decodes percent escapes; a percent sign that begins none stays as it is.
function url.decode(text)
  return (text:gsub("%%(%x%x)", byte_of))
end

--- Encodes all but the letters that RFC 3986 reserves for no purpose.
function url.encode(text)
  return (tostring(text):gsub("[^%w%-%._~]", hex_of))
end

--- Encodes a path: the same, but slashes stay, and what browsers leave alone in paths.
function url.encode_path(path)
  return (path:gsub("[^%w%-%._~/:@!$&'()*+,;=]", hex_of))
end

--- A value of a form: a space is a plus sign there.
local function decode_field(text)
  return url.decode((text:gsub("%+", " ")))
end

--- Reads `a=1&b=2` into the table of lists `{a = {"1"}, b = {"2"}}`.
--- Gives nil and the reason when there are too many fields.
function url.parse_query(text, most)
  most = most or url.fields_max
  local fields, count = {}, 0
  for field in text:gmatch("[^&]+") do
    count = count + 1
    if count > most then
      return nil, "more than " .. most .. " fields"
    end
    local name, value = field:match("^([^=]*)=(.*)$")
    name, value = decode_field(name or field), decode_field(value or "")
    local list = fields[name]
    if list then
      list[#list + 1] = value
    else
      fields[name] = { value }
    end
  end
  return fields
end

local function sorted_names(fields)
  local names = {}
  for name in pairs(fields) do
    names[#names + 1] = name
  end
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return names
end

--- The query or form for a table of values or lists of values; fields in the order of
--- their names, so that equal tables give equal strings.
function url.build_query(fields)
  local parts = {}
  for _, name in ipairs(sorted_names(fields)) do
    local values = fields[name]
    if type(values) ~= "table" then
      values = { values }
    end
    for _, value in ipairs(values) do
      parts[#parts + 1] = url.encode(name) .. "=" .. url.encode(value)
    end
  end
  return table.concat(parts, "&")
end

return url
