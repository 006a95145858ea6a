--- Functions of Lua 5.4, as its manual has them: LuaJIT is given them, Lua 5.4 has them itself. Where the two may differ
--- only in how a number is written, numbers are compared.

local test = require("prony.test")
local patterns = require("prony.patterns")

test("table.pack counts what it is given, also nil", function()
  local packed = table.pack("a", nil, "c", nil)
  test.equal(packed.n, 4)
  test.equal(packed[1] .. packed[3], "ac")
  test.equal(table.pack().n, 0)
end)

test("table.unpack gives list[i] to list[j], also through a metatable", function()
  local function joined(...)
    local parts = {}
    for place = 1, select("#", ...) do
      parts[place] = tostring((select(place, ...)))
    end
    return table.concat(parts, " ")
  end
  test.equal(joined(table.unpack({ 1, 2, 3 })), "1 2 3")
  test.equal(joined(table.unpack({ 1, 2, 3 }, 2)), "2 3")
  test.equal(joined(table.unpack({ 1, 2, 3 }, -1, 1)), "nil nil 1")
  test.equal(joined(table.unpack({ 1, nil, 3 }, 1, 3)), "1 nil 3")
  test.equal(select("#", table.unpack({}, 1, 0)), 0)
  test.equal(select("#", table.unpack({}, 3, 1)), 0)
  local doubled = setmetatable({}, {
    __index = function(_, place)
      return "v" .. place
    end,
    __len = function()
      return 3
    end,
  })
  test.equal(joined(table.unpack(doubled)), "v1 v2 v3")
  test.equal(joined(table.unpack(doubled, 2, 4)), "v2 v3 v4")
  test.fails(function() table.unpack({}, 1, 1e8) end, "too many results to unpack")
  test.equal((pcall(table.unpack)), false)
end)

test("rawlen looks past metatables", function()
  local odd = setmetatable({ 1, 2 }, { __len = function() return 9 end })
  test.equal(rawlen(odd), 2)
  test.equal(rawlen("abc"), 3)
  test.fails(function() rawlen(7) end, "table or string expected")
end)

test("math.tointeger", function()
  for _, case in ipairs({ { 3, 3 }, { 3.0, 3 }, { -0.0, 0 }, { "42", 42 }, { " 0x10 ", 16 }, { "3.0", 3 }, { -2 ^ 63, -2 ^ 63 } }) do
    test.equal(math.tointeger(case[1]) == case[2], true, tostring(case[1]))
  end
  for _, other in ipairs({ 3.5, 2 ^ 63, 1 / 0, -1 / 0, 0 / 0, "x", "3.5", "", "inf", "nan", "0b11", {}, true, print }) do
    test.equal(math.tointeger(other), nil, tostring(other))
  end
  test.equal(math.tointeger(nil), nil)
  test.fails(function() math.tointeger() end, "value expected")
end)

test("utf8.char and utf8.codepoint are each other's reverse up to 2^31", function()
  test.equal(utf8.char(), "")
  test.equal(utf8.char(72, 228, 8364, 128512), "H\195\164\226\130\172\240\159\152\128")
  for _, code in ipairs({ 0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF, 0x1FFFFF, 0x200000, 0x3FFFFFF, 0x4000000, 0x7FFFFFFF }) do
    test.equal(utf8.codepoint(utf8.char(code), 1, 1, true) == code, true, tostring(code))
  end
  test.fails(function() utf8.char(-1) end, "value out of range")
  test.fails(function() utf8.char(2 ^ 31) end, "value out of range")
  test.fails(function() utf8.char(1.5) end, "no integer representation")
  local a, b = utf8.codepoint("\195\164\226\130\172", 1, -1)
  test.equal(a == 228 and b == 8364, true)
  test.equal(select("#", utf8.codepoint("abc", 3, 2)), 0)
  test.fails(function() utf8.codepoint("abc", 0) end, "out of bounds")
  test.fails(function() utf8.codepoint("abc", 1, 4) end, "out of bounds")
  test.fails(function() utf8.codepoint("\195\164", 2) end, "invalid UTF-8 code")
end)

test("utf8.len counts characters, and says where a byte is none", function()
  test.equal(utf8.len(""), 0)
  test.equal(utf8.len("H\195\164\226\130\172") == 3, true)
  test.equal(utf8.len("H\195\164\226\130\172", 4) == 1, true)
  test.equal(utf8.len("abc", 4) == 0 and utf8.len("abc", -2) == 2 and utf8.len("abc", 2, 2) == 1, true)
  for text, place in pairs({
    ["a\255"] = 2,
    ["\192\128"] = 1,
    ["\224\128\128"] = 1,
    ["\237\160\128"] = 1,
    ["\244\144\128\128"] = 1,
    ["ab\226\130"] = 3,
    ["\128"] = 1,
    ["\195("] = 1,
    ["\254\128\128\128\128\128\128"] = 1,
  }) do
    local count, at = utf8.len(text)
    test.equal(count, nil, text)
    test.equal(at == place, true, text)
  end
  test.equal(utf8.len("\237\160\128", 1, -1, true) == 1 and utf8.len("\244\144\128\128", 1, -1, true) == 1, true)
  test.fails(function() utf8.len("abc", 5) end, "initial position out of bounds")
  test.fails(function() utf8.len("abc", 1, 4) end, "final position out of bounds")
  test.fails(function() utf8.len() end, "string expected")
end)

test("utf8.offset finds where characters begin", function()
  local text = "a\195\164\226\130\172z"
  for _, case in ipairs({ { 1, 1 }, { 2, 2 }, { 3, 4 }, { 4, 7 }, { 5, 8 }, { -1, 7 }, { -2, 4 }, { -4, 1 } }) do
    test.equal(utf8.offset(text, case[1]) == case[2], true, tostring(case[1]))
  end
  test.equal(utf8.offset(text, 6), nil)
  test.equal(utf8.offset(text, -5), nil)
  test.equal(utf8.offset(text, 0, 5) == 4 and utf8.offset(text, 0) == 1 and utf8.offset(text, 0, 8) == 8, true)
  test.equal(utf8.offset(text, 2, 4) == 7, true)
  test.fails(function() utf8.offset(text, 1, 3) end, "continuation byte")
  test.fails(function() utf8.offset(text, 1, 10) end, "position out of bounds")
end)

test("utf8.codes and utf8.charpattern go through a text", function()
  local seen = {}
  for at, code in utf8.codes("a\195\164\226\130\172") do
    seen[#seen + 1] = ("%d:%d"):format(at, code)
  end
  test.equal(table.concat(seen, " "), "1:97 2:228 4:8364")
  local parts = {}
  for part in ("a\195\164\226\130\172\0"):gmatch(utf8.charpattern) do
    parts[#parts + 1] = #part
  end
  test.equal(table.concat(parts, " "), "1 2 3 1")
  for _, text in ipairs({ "\128", "a\255", "\195", "a\195\164\164", "\237\160\128" }) do
    test.fails(function()
      for _ in utf8.codes(text) do
      end
    end, "invalid UTF-8 code")
  end
  local count = 0
  for _ in utf8.codes("\237\160\128", true) do
    count = count + 1
  end
  test.equal(count, 1)
end)

test("what would not be the same is not given", function()
  if rawget(_G, "jit") then
    test.equal(math.type, nil)
    test.equal(math.maxinteger, nil)
    test.equal(string.pack, nil)
    test.equal(coroutine.close, nil)
  else
    test.equal(math.type(1), "integer")
  end
end)

local function gathered(...)
  local parts = {}
  for one, two in patterns.gmatch(...) do
    parts[#parts + 1] = tostring(one) .. (two and "=" .. tostring(two) or "")
  end
  return table.concat(parts, "|")
end

test("gsub: an empty match right behind another is none", function()
  for _, case in ipairs({
    { "abc", "%w*", "x", "x", 1 },
    { "hello world", "%w*", "<%0>", "<hello> <world>", 2 },
    { "abc", "", "-", "-a-b-c-", 4 },
    { "", "", "-", "-", 1 },
    { "a,b,,c", ",*", ";", ";a;b;c;", 4 },
    { "abc", "b*", "-", "-a-c-", 3 },
    { "abc", "^%w", "%0%0", "aabc", 1 },
    { "abc", "^x*", "-", "-abc", 1 },
    { "k=v", "(%w)=(%w)", "%2=%1 100%%", "v=k 100%", 1 },
    { "abc", "%w", "%1", "abc", 3 },
    { "abc", "()b", "%1", "a2c", 1 },
  }) do
    local text, count = patterns.gsub(case[1], case[2], case[3])
    test.equal(text, case[4], case[1] .. " " .. case[2])
    test.equal(count == case[5], true, case[1] .. " " .. case[2])
  end
  test.equal((patterns.gsub("aaa", "a", "b", 2)), "bba")
  test.equal((patterns.gsub("aaa", "a", "b", 0)), "aaa")
  test.equal((patterns.gsub("$name is $age", "%$(%w+)", { name = "Lua", age = 30 })), "Lua is 30")
  test.equal((patterns.gsub("abc", "%w", function(letter) return letter == "b" and "B" or nil end)), "aBc")
  test.equal((patterns.gsub("abc", "b", function() return false end)), "abc")
  test.fails(function() patterns.gsub("abc", "b", "%x") end, "invalid use of '%'")
  test.fails(function() patterns.gsub("abc", "b", "%2") end, "invalid capture index %2")
  test.fails(function() patterns.gsub("abc", "b", function() return {} end) end, "invalid replacement value (a table)")
  test.fails(function() patterns.gsub("abc", "b") end, "string/function/table expected")
end)

test("gmatch: a position, no anchor, and no empty match behind another", function()
  test.equal(gathered("one two", "%a+"), "one|two")
  test.equal(gathered("one two", "%a+", 2), "ne|two")
  test.equal(gathered("one two", "%a+", -3), "two")
  test.equal(gathered("one two", "%a+", 20), "")
  test.equal(gathered("abc", "%w*"), "abc")
  test.equal(gathered("a b", "%w*"), "a|b")
  test.equal(gathered("a=1, b=2", "(%w+)=(%w+)"), "a=1|b=2")
  test.equal(gathered("^a^b", "^%w"), "^a|^b")
  test.equal(gathered("", ".*"), "")
  test.equal(#gathered("ab", "()") > 0, true)
end)

test("find and match begin at the end, and not behind it", function()
  test.equal(patterns.find("abc", "", 10), nil)
  test.equal(patterns.find("abc", "", 4) == 4, true)
  test.equal(patterns.match("abc", "", 5), nil)
  test.equal(patterns.match("abc", "", 4), "")
  test.equal(patterns.match("key=v", "(%w+)=(%w+)"), "key")
  test.equal(patterns.find("a.c", ".", 2, true) == 2, true)
end)

test("a byte of 0 in a pattern is one as any other", function()
  test.equal(patterns.find("a\0b", "\0b") == 2, true)
  test.equal((patterns.gsub("a\0b\1c", "[\0-\1]", "-")), "a-b-c")
  test.equal((patterns.gsub("a\0b", "[^\0]", "-")), "-\0-")
  test.equal((patterns.gsub("a\0]", "[]\0]", "-")), "a--")
  test.equal((patterns.gsub("a\0-", "[\0-]", "+")), "a++")
  test.equal(patterns.match("x\0\0y", "x(\0-)y"), "\0\0")
  test.equal(gathered("a\0b", "[^%\0]"), "a|b")
end)

test("installed, they are those of all strings", function()
  local before = { string.find, string.match, string.gmatch, string.gsub }
  patterns.install()
  local text = ("abc"):gsub("%w*", "x")
  string.find, string.match, string.gmatch, string.gsub = before[1], before[2], before[3], before[4]
  test.equal(text, "x")
end)
