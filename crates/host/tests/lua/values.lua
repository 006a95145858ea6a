--- JSON: values there and back, and what is none.

local json = require("prony.json")
local test = require("prony.test")

test("values survive, also empty arrays and nulls", function()
  for _, text in ipairs({ '{}', '[]', '[[],{}]', '{"a":[1,2.5,"x",true,null]}', '"\\u0000ä"', '-7', '1e300' }) do
    local value = json.decode(text)
    test.equal(json.encode(json.decode(json.encode(value))), json.encode(value), text)
  end
  test.equal(json.encode(json.decode('{"a":[],"b":{},"c":null}')), '{"a":[],"b":{},"c":null}')
  test.equal(json.encode({}), "{}")
  test.equal(json.encode(json.array({})), "[]")
  test.equal(json.encode({ 1, 2, 3 }), "[1,2,3]")
  test.equal(json.encode({ a = json.null }), '{"a":null}')
end)

test("what is no JSON is said with its place", function()
  local value, reason = json.decode("{\n  \"a\": }")
  test.equal(value, nil)
  test.contains(reason, "line 2")
  test.equal((select(2, json.decode(("["):rep(100000)))) ~= nil, true)
end)

test("what cannot be JSON is an error", function()
  test.fails(function() json.encode({ print }) end, "function")
  local circle = {}
  circle.a = circle
  test.fails(function() json.encode(circle) end, "nested deeper")
end)

test("bytes that are no text are paths, and shown as what they are in pages", function()
  local native = require("prony.native")
  test.equal(native.inside("/\255", "a\255"), nil)
  test.equal(native.modified("/\255"), nil)
  test.fails(function() native.files("/\255") end, "No such file")
  local html = tostring((native.markdown("a \255 b")))
  test.equal(html, "<p>a \239\191\189 b</p>\n")
  test.equal(tostring(native.safe("\255")), "\239\191\189")
  test.equal(native.safe("<b>") .. "\255", "<b>\239\191\189")
  local name = os.tmpname()
  local odd = name .. "\255"
  assert(os.rename(name, odd))
  test.equal(native.inside("/tmp", odd:match("[^/]+$")), odd)
  os.remove(odd)
end)
