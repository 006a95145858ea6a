--- Tests: `test("name", function() … end)` runs at once and says how it went.
--- Not for: requests (prony.client).
---
---     local test = require("prony.test")
---     test("the front page answers", function()
---       test.equal(client:get("/").status, 200)
---     end)
---
--- `prony lua FILE` runs such a file, and ends with 1 when a test in it failed.

local test = { passed = 0, failures = {} }

local function show(value, depth)
  if type(value) == "string" then
    return string.format("%q", value)
  elseif type(value) ~= "table" or (depth or 0) > 4 then
    return tostring(value)
  end
  local parts = {}
  for key, inner in pairs(value) do
    parts[#parts + 1] = tostring(key) .. " = " .. show(inner, (depth or 0) + 1)
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function same(a, b)
  if a == b then
    return true
  elseif type(a) ~= "table" or type(b) ~= "table" then
    return false
  end
  for key, value in pairs(a) do
    if not same(value, b[key]) then
      return false
    end
  end
  for key in pairs(b) do
    if a[key] == nil then
      return false
    end
  end
  return true
end

--- Both are the same; tables by what is in them.
function test.equal(found, wanted, about)
  if not same(found, wanted) then
    error((about and (about .. ": ") or "") .. "found " .. show(found) .. ", wanted " .. show(wanted), 2)
  end
end

function test.truthy(value, about)
  if not value then
    error((about or "a true value") .. " was expected, found " .. show(value), 2)
  end
end

--- The text contains this, letter by letter.
function test.contains(text, part)
  if not tostring(text):find(part, 1, true) then
    error(show(part) .. " is not in " .. show(tostring(text):sub(1, 2000)), 2)
  end
end

function test.lacks(text, part)
  if tostring(text):find(part, 1, true) then
    error(show(part) .. " is in " .. show(tostring(text):sub(1, 2000)), 2)
  end
end

--- The function raises an error, whose text contains this. Returns the text.
function test.fails(action, part)
  local fine, thrown = pcall(action)
  if fine then
    error("an error with " .. show(part) .. " was expected", 2)
  end
  if not tostring(thrown):find(part, 1, true) then
    error("an error with " .. show(part) .. " was expected, found: " .. tostring(thrown), 2)
  end
  return tostring(thrown)
end

--- What the runner calls at the end: the number of failed tests.
function test.finish()
  print(test.passed .. " passed, " .. #test.failures .. " failed")
  return #test.failures
end

return setmetatable(test, {
  __call = function(_, name, action)
    local fine, reason = xpcall(action, function(thrown)
      return debug.traceback(tostring(thrown), 2)
    end)
    if fine then
      test.passed = test.passed + 1
      print("ok      " .. name)
    else
      table.insert(test.failures, name .. ": " .. reason)
      print("FAILED  " .. name .. "\n        " .. reason:gsub("\n", "\n        "))
    end
  end,
})
