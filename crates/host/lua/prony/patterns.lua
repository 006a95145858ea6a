--- String patterns as Lua 5.4 has them, for applications that ask for them: `find`, `match`, `gmatch` and `gsub`.
--- `patterns.install()` puts them in the place of LuaJIT's, in the table `string` and so in `("…"):gsub(…)`, too.
--- Not for: Lua 5.4, where they are the string library's own.
---
--- What differs, by the manual of 5.4: an empty match right behind another match is none; a `%` in a replacement stands
--- before a digit or another `%`; `gmatch` takes a position, and `^` is no anchor in it; a search that would begin behind
--- the end finds nothing; a byte of 0 in a pattern is one as any other.

local string, table = string, table
local patterns = {}

if not rawget(_G, "jit") then
  for _, name in ipairs({ "find", "match", "gmatch", "gsub" }) do
    patterns[name] = string[name]
  end
  function patterns.install() end
  return patterns
end

local find, match, sub, byte = string.find, string.match, string.sub, string.byte
local concat, select, tonumber, tostring, type, error = table.concat, select, tonumber, tostring, type, error

local function text(value, place, name)
  local kind = type(value)
  if kind == "string" then
    return value
  elseif kind == "number" then
    return tostring(value)
  end
  error(("bad argument #%d to '%s' (string expected, got %s)"):format(place, name, value == nil and "no value" or kind), 3)
end

--- A byte of 0, which ends a pattern of LuaJIT's, as LuaJIT writes it; from it to another in a set, both of them.
local function with_zeros(pattern)
  if not find(pattern, "\0", 1, true) then
    return pattern
  end
  local out, at, in_set = {}, 1, false
  while at <= #pattern do
    local letter, behind = sub(pattern, at, at), sub(pattern, at + 1, at + 1)
    if letter == "%" then
      letter = behind == "\0" and "%z" or letter .. behind
      at = at + 1
    elseif letter == "\0" and in_set and behind == "-" and sub(pattern, at + 2, at + 2) ~= "]" then
      letter, at = "%z\1-", at + 1
    elseif letter == "\0" then
      letter = "%z"
    elseif letter == "[" and not in_set then
      in_set = true
      -- A bracket that comes first is one of the set.
      local first = match(pattern, "^%^?%]?", at + 1)
      letter, at = letter .. first, at + #first
    elseif letter == "]" then
      in_set = false
    end
    out[#out + 1] = letter
    at = at + 1
  end
  return concat(out)
end

local function is_behind(subject, init)
  return init ~= nil and tonumber(init) ~= nil and tonumber(init) > #subject + 1
end

function patterns.find(subject, pattern, init, plain)
  subject = text(subject, 1, "find")
  if is_behind(subject, init) then
    return nil
  end
  return find(subject, plain and pattern or with_zeros(text(pattern, 2, "find")), init, plain)
end

function patterns.match(subject, pattern, init)
  subject = text(subject, 1, "match")
  if is_behind(subject, init) then
    return nil
  end
  return match(subject, with_zeros(text(pattern, 2, "match")), init)
end

--- The captures of a match from `find`'s results; the whole where there are none.
local function captured(subject, first, last, ...)
  if select("#", ...) == 0 then
    return sub(subject, first, last)
  end
  return ...
end

function patterns.gmatch(subject, pattern, init)
  subject, pattern = text(subject, 1, "gmatch"), with_zeros(text(pattern, 2, "gmatch"))
  if byte(pattern) == 94 then
    pattern = "%" .. pattern
  end
  local at, behind = init or 1, nil
  if at < 0 then
    at = math.max(#subject + at + 1, 1)
  elseif at == 0 then
    at = 1
  end
  local function step(first, last, ...)
    if not first then
      at = #subject + 2
      return nil
    elseif last < first and first == behind then
      at = at + 1
      if at > #subject + 1 then
        return nil
      end
      return step(find(subject, pattern, at))
    end
    at, behind = last + 1, last + 1
    return captured(subject, first, last, ...)
  end
  return function()
    if at > #subject + 1 then
      return nil
    end
    return step(find(subject, pattern, at))
  end
end

--- The parts of a replacement: texts, and the numbers of captures.
local function parse(replacement)
  local parts, from = {}, 1
  while true do
    local at = find(replacement, "%", from, true)
    if not at then
      parts[#parts + 1] = sub(replacement, from)
      return parts
    end
    parts[#parts + 1] = sub(replacement, from, at - 1)
    local what = sub(replacement, at + 1, at + 1)
    if what == "%" then
      parts[#parts + 1] = "%"
    elseif find(what, "^%d$") then
      parts[#parts + 1] = tonumber(what)
    else
      error("invalid use of '%' in replacement string", 3)
    end
    from = at + 2
  end
end

local function fill(parts, subject, first, last, ...)
  local out = {}
  for place = 1, #parts do
    local part = parts[place]
    if part == 0 or (part == 1 and select("#", ...) == 0) then
      part = sub(subject, first, last)
    elseif type(part) == "number" then
      if part > select("#", ...) then
        error(("invalid capture index %%%d in replacement string"):format(part), 3)
      end
      part = tostring((select(part, ...)))
    end
    out[place] = part
  end
  return concat(out)
end

local function value_of(kind, with, subject, first, last, ...)
  if kind == "string" then
    return fill(with, subject, first, last, ...)
  end
  local value
  if kind == "table" then
    value = with[(captured(subject, first, last, ...))]
  else
    value = with(captured(subject, first, last, ...))
  end
  if not value then
    return sub(subject, first, last)
  elseif type(value) ~= "string" and type(value) ~= "number" then
    error(("invalid replacement value (a %s)"):format(type(value)), 3)
  end
  return value
end

function patterns.gsub(subject, pattern, replacement, most)
  subject, pattern = text(subject, 1, "gsub"), with_zeros(text(pattern, 2, "gsub"))
  local kind = type(replacement)
  if kind == "number" or kind == "string" then
    kind, replacement = "string", parse(tostring(replacement))
  elseif kind ~= "table" and kind ~= "function" then
    error(("bad argument #3 to 'gsub' (string/function/table expected, got %s)"):format(replacement == nil and "nil" or kind), 2)
  end
  local is_anchored = byte(pattern) == 94
  local out, count, at, copied, behind = {}, 0, 1, 1, nil
  most = most or #subject + 1
  local function take(first, last, ...)
    if not first then
      return false
    elseif last < first and first == behind then
      at = at + 1
      return at <= #subject + 1
    end
    count = count + 1
    out[#out + 1] = sub(subject, copied, first - 1)
    out[#out + 1] = value_of(kind, replacement, subject, first, last, ...)
    at, copied, behind = last + 1, last + 1, last + 1
    return true
  end
  while count < most and take(find(subject, pattern, at)) and not is_anchored do
  end
  out[#out + 1] = sub(subject, copied)
  return concat(out), count
end

--- Puts them in the place of the string library's own, for all code in this state.
function patterns.install()
  for _, name in ipairs({ "find", "match", "gmatch", "gsub" }) do
    string[name] = patterns[name]
  end
end

return patterns
