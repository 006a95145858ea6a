-- Functions of Lua 5.2 to 5.4 that LuaJIT lacks and that can be given as the manual of Lua 5.4 has them. What is there
-- already stays. Not given, because it would not be the same: math.type, math.maxinteger and math.mininteger (LuaJIT has
-- one kind of number), string.pack and its like, coroutine.close, warn.

local select, type, tonumber, error, tostring = select, type, tonumber, error, tostring
local floor = math.floor
local byte, char, find = string.byte, string.char, string.find
local concat, unpack = table.concat, unpack
local getmetatable = debug.getmetatable

if not table.pack then
  function table.pack(...)
    return { n = select("#", ...), ... }
  end
end

if not rawlen then
  function rawlen(value)
    local kind = type(value)
    if kind ~= "table" and kind ~= "string" then
      error("table or string expected", 2)
    end
    return #value
  end
end

if not table.unpack then
  -- LuaJIT's own looks at the fields that a table has itself; the other at what indexing gives.
  local function through_metatable(list, meta, first, last)
    first = first or 1
    if last == nil then
      last = meta.__len and meta.__len(list) or #list
    end
    local values = {}
    for place = first, last do
      values[place - first + 1] = list[place]
    end
    return unpack(values, 1, last - first + 1)
  end

  function table.unpack(list, first, last)
    local meta = getmetatable(list)
    if meta and (meta.__index or meta.__len) and type(list) ~= "string" then
      return through_metatable(list, meta, first, last)
    end
    return unpack(list, first, last)
  end
end

if not math.tointeger then
  function math.tointeger(...)
    local value = ...
    if type(value) == "string" then
      -- LuaJIT reads numbers of base two, which are none in Lua 5.4.
      value = not find(value, "^%s*[-+]?0[bB]") and tonumber(value) or nil
    elseif select("#", ...) == 0 then
      error("bad argument #1 to 'tointeger' (value expected)", 2)
    end
    if type(value) == "number" and floor(value) == value and value >= -2 ^ 63 and value < 2 ^ 63 then
      return value + 0
    end
    return nil
  end
end

if utf8 then
  return
end

-- In LuaJIT a byte of 0 ends a pattern; `%z` is how it is written there.
utf8 = { charpattern = "[%z\1-\x7F\xC2-\xFD][\x80-\xBF]*" }

local INVALID = "invalid UTF-8 code"
-- The least value that takes so many bytes.
local LEAST = { 0, 0x80, 0x800, 0x10000, 0x200000, 0x4000000 }

local function is_within(text, at)
  local value = byte(text, at)
  return value ~= nil and value >= 0x80 and value < 0xC0
end

--- The code point that begins at `at`, and where the next one does; nothing where there is none.
local function decode(text, at, lax)
  local first = byte(text, at)
  if not first or (first >= 0x80 and first < 0xC0) or first >= 0xFE then
    return nil
  elseif first < 0x80 then
    return first, at + 1
  end
  local length, lead = 2, 0x20
  while first % (2 * lead) >= lead do
    length, lead = length + 1, lead / 2
  end
  local code = first % lead
  for place = at + 1, at + length - 1 do
    if not is_within(text, place) then
      return nil
    end
    code = code * 64 + byte(text, place) % 64
  end
  if code < LEAST[length] then
    return nil
  elseif not lax and (code > 0x10FFFF or (code >= 0xD800 and code <= 0xDFFF)) then
    return nil
  end
  return code, at + length
end

local function encode(code)
  if code < 0x80 then
    return char(code)
  end
  local tail, room = "", 0x40
  repeat
    tail = char(0x80 + code % 64) .. tail
    code = floor(code / 64)
    room = room / 2
  until code < room
  return char(0x100 - 2 * room + code) .. tail
end

local function bad(place, name, what)
  error(("bad argument #%d to '%s' (%s)"):format(place, name, what), 3)
end

local function text_of(value, name)
  if type(value) == "number" then
    return tostring(value)
  elseif type(value) ~= "string" then
    error(("bad argument #1 to '%s' (string expected, got %s)"):format(name, value == nil and "no value" or type(value)), 3)
  end
  return value
end

--- A position counted from the end is one from the start; 0 where that would be before it.
local function from_start(at, length)
  if at >= 0 then
    return at
  end
  return -at > length and 0 or length + at + 1
end

function utf8.char(...)
  local parts = {}
  for place = 1, select("#", ...) do
    local code = tonumber((select(place, ...)))
    if not code or floor(code) ~= code then
      bad(place, "char", "number has no integer representation")
    elseif code < 0 or code > 0x7FFFFFFF then
      bad(place, "char", "value out of range")
    end
    parts[place] = encode(code)
  end
  return concat(parts)
end

function utf8.codepoint(text, first, last, lax)
  text = text_of(text, "codepoint")
  first = from_start(first or 1, #text)
  last = from_start(last or first, #text)
  if first < 1 then
    bad(2, "codepoint", "out of bounds")
  elseif last > #text then
    bad(3, "codepoint", "out of bounds")
  end
  local codes, count = {}, 0
  while first <= last do
    local code, behind = decode(text, first, lax)
    if not code then
      error(INVALID, 2)
    end
    count = count + 1
    codes[count], first = code, behind
  end
  return unpack(codes, 1, count)
end

function utf8.len(text, first, last, lax)
  text = text_of(text, "len")
  first = from_start(first or 1, #text)
  last = from_start(last or -1, #text)
  if first < 1 or first > #text + 1 then
    bad(2, "len", "initial position out of bounds")
  elseif last > #text then
    bad(3, "len", "final position out of bounds")
  end
  local count = 0
  while first <= last do
    local code, behind = decode(text, first, lax)
    if not code then
      return nil, first
    end
    count, first = count + 1, behind
  end
  return count
end

function utf8.offset(text, count, at)
  text = text_of(text, "offset")
  at = from_start(at or (count >= 0 and 1 or #text + 1), #text)
  if at < 1 or at > #text + 1 then
    bad(3, "offset", "position out of bounds")
  end
  if count == 0 then
    while at > 1 and is_within(text, at) do
      at = at - 1
    end
    return at
  elseif is_within(text, at) then
    error("initial position is a continuation byte", 2)
  end
  while count < 0 and at > 1 do
    repeat
      at = at - 1
    until at == 1 or not is_within(text, at)
    count = count + 1
  end
  if count > 0 then
    count = count - 1
    while count > 0 and at <= #text do
      repeat
        at = at + 1
      until not is_within(text, at)
      count = count - 1
    end
  end
  return count == 0 and at or nil
end

local function stepper(lax)
  return function(text, at)
    text = text_of(text, "for iterator")
    at = at + 1
    while at > 1 and is_within(text, at) do
      at = at + 1
    end
    if at > #text then
      return nil
    end
    local code, behind = decode(text, at, lax)
    if not code or is_within(text, behind) then
      error(INVALID, 2)
    end
    return at, code
  end
end

local strict, lenient = stepper(false), stepper(true)

function utf8.codes(text, lax)
  text = text_of(text, "codes")
  if is_within(text, 1) then
    bad(1, "codes", INVALID)
  end
  return lax and lenient or strict, text, 0
end
