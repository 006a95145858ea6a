--- Forms with files: `multipart/form-data` (RFC 7578), read from a body that is there
--- as a whole, and written for tests.
--- Not for: bodies larger than the host's `--body-max`, which never get here.

local text = require("prony.text")

local multipart = {}

--- Parts of a form; more are refused.
multipart.parts_max = 1000
--- Bytes of the headers of one part.
multipart.head_bytes_max = 8192

--- The value of a parameter in a header such as `form-data; name="a"; filename="b"`.
local function parameter(header, wanted)
  local at = header:find(";", 1, true)
  while at do
    local name, from = header:match("^%s*([^%s=;]+)%s*=%s*()", at + 1)
    if not name then
      return nil
    end
    local value, after
    if header:sub(from, from) == '"' then
      -- A quote ends at one that no backslash precedes.
      local to = from + 1
      while to <= #header and header:sub(to, to) ~= '"' do
        to = to + (header:sub(to, to) == "\\" and 2 or 1)
      end
      value, after = header:sub(from + 1, to - 1):gsub('\\(["\\])', "%1"), to + 1
    else
      value, after = header:match("^([^;%s]*)()", from)
    end
    if name:lower() == wanted then
      return value
    end
    at = header:find(";", after, true)
  end
end

--- The boundary in a `Content-Type`, or nil.
function multipart.boundary(content_type)
  local boundary = parameter(content_type, "boundary")
  if boundary and boundary ~= "" and #boundary <= 70 and not boundary:find("%c") then
    return boundary
  end
end

local function part_of(part)
  -- A part without headers begins with the empty line at once.
  local head, content = "", part:match("^\r\n(.*)$")
  if not content then
    local at = part:find("\r\n\r\n", 1, true)
    if not at then
      return nil, "a part has no empty line after its headers"
    end
    head, content = part:sub(1, at - 1), part:sub(at + 4)
  end
  if #head > multipart.head_bytes_max then
    return nil, "the headers of a part have more than " .. multipart.head_bytes_max .. " bytes"
  end
  local headers = {}
  for line in (head .. "\r\n"):gmatch("(.-)\r\n") do
    local name, value = line:match("^([^%s:]+):(.*)$")
    if name then
      headers[name:lower()] = text.trim(value)
    end
  end
  local disposition = headers["content-disposition"] or ""
  local name = parameter(disposition, "name")
  if not disposition:lower():match("^%s*form%-data") or not name then
    return nil, "a part has no name"
  end
  return {
    name = name,
    filename = parameter(disposition, "filename"),
    content_type = headers["content-type"],
    content = content,
  }
end

--- The parts of a body, in their order: `{name, filename, content_type, content}`.
--- Gives nil and the reason when it is malformed or has too many.
function multipart.parse(body, boundary)
  -- The first boundary need not follow a line's end; with one before it, it is as the others.
  body = "\r\n" .. body
  local delimiter = "\r\n--" .. boundary
  local at, after = body:find(delimiter, 1, true)
  if not at then
    return nil, "the boundary is not in the body"
  end
  local parts = {}
  while true do
    if body:sub(after + 1, after + 2) == "--" then
      return parts
    end
    local first = body:match("^[ \t]*\r\n()", after + 1)
    if not first then
      return nil, "a boundary is not followed by a line's end"
    end
    -- From the line's end on, so that a part that is wholly empty is one.
    local next_at, next_after = body:find(delimiter, first - 2, true)
    if not next_at then
      return nil, "the last boundary is missing"
    end
    if #parts >= multipart.parts_max then
      return nil, "more than " .. multipart.parts_max .. " parts"
    end
    local part, reason = part_of(body:sub(first, next_at - 1))
    if not part then
      return nil, reason
    end
    parts[#parts + 1] = part
    after = next_after
  end
end

--- A name in quotes, as browsers write it.
local function quoted(name)
  return '"' .. name:gsub("[\r\n\"]", { ["\r"] = "%0D", ["\n"] = "%0A", ['"'] = "%22" }) .. '"'
end

--- The body for a list of parts, and its `Content-Type`.
function multipart.build(parts, boundary)
  boundary = boundary or "--------------------------prony"
  local number = 0
  local function occurs()
    for _, part in ipairs(parts) do
      if part.content:find(boundary .. number, 1, true) then
        return true
      end
    end
  end
  while occurs() do
    number = number + 1
  end
  boundary = boundary .. number
  local out = {}
  for _, part in ipairs(parts) do
    out[#out + 1] = "--" .. boundary .. "\r\nContent-Disposition: form-data; name=" .. quoted(part.name)
    if part.filename then
      out[#out + 1] = "; filename=" .. quoted(part.filename)
    end
    if part.filename or part.content_type then
      out[#out + 1] = "\r\nContent-Type: " .. (part.content_type or "application/octet-stream")
    end
    out[#out + 1] = "\r\n\r\n" .. part.content .. "\r\n"
  end
  out[#out + 1] = "--" .. boundary .. "--\r\n"
  return table.concat(out), "multipart/form-data; boundary=" .. boundary
end

return multipart
