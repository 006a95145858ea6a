--- Queries, forms and files: what was built is read again, and what is malformed is said.

local json = require("prony.json")
local multipart = require("prony.multipart")
local prony = require("prony")
local test = require("prony.test")
local url = require("prony.url")

math.randomseed(7)

local function bytes(most)
  local out = {}
  for at = 1, math.random(0, most) do
    out[at] = string.char(math.random() < 0.2 and ("&=+%;-\r\n"):byte(math.random(8)) or math.random(0, 255))
  end
  return table.concat(out)
end

test("any fields survive being built and read", function()
  for _ = 1, 2000 do
    local fields = {}
    for _ = 1, math.random(0, 5) do
      local list = {}
      for at = 1, math.random(3) do
        list[at] = bytes(10)
      end
      fields[bytes(6)] = list
    end
    test.equal(url.parse_query(url.build_query(fields)), fields)
  end
end)

test("decode never fails, and undoes encode", function()
  for _ = 1, 2000 do
    local text = bytes(20)
    test.equal(url.decode(url.encode(text)), text)
    test.truthy(#url.decode(text) <= #text)
  end
  test.equal(url.decode("%zz%4%41%"), "%zz%4A%")
end)

test("queries as they are written: plus signs, empty names, no values", function()
  test.equal(url.parse_query("a=1&a=2&b&=c&&d=x+y%2B"), { a = { "1", "2" }, b = { "" }, [""] = { "c" }, d = { "x y+" } })
  local fields, reason = url.parse_query(("a&"):rep(1001))
  test.equal({ fields, reason }, { nil, "more than 1000 fields" })
end)

--- Other ways in which the same form may be written.
local function parse_anyhow(body, boundary)
  local plain = multipart.parse(body, boundary)
  test.equal(multipart.parse("preamble\r\n" .. body .. "epilogue", boundary), plain)
  test.equal(multipart.parse((body:gsub("\r\n$", "")), boundary), plain)
  return plain
end

test("any parts survive being built and read, whatever is in them", function()
  for _ = 1, 1500 do
    local parts = {}
    for at = 1, math.random(4) do
      local is_file = math.random() < 0.5
      parts[at] = {
        name = "n" .. math.random(3),
        filename = is_file and "f.bin" or nil,
        content_type = is_file and "application/x-y" or nil,
        content = bytes(40) .. (math.random() < 0.3 and "\r\n--" or "") .. bytes(5),
      }
    end
    local body, content_type = multipart.build(parts, "b")
    test.equal(parse_anyhow(body, multipart.boundary(content_type)), parts)
  end
end)

test("a form cut off anywhere is an error or fewer bytes, never a fault", function()
  local body = multipart.build({ { name = "a", content = "1" }, { name = "f", filename = "x", content = "22" } }, "b")
  for cut = 0, #body - 5 do
    local parts, reason = multipart.parse(body:sub(1, cut), "b0")
    test.truthy(parts == nil and type(reason) == "string", "cut at " .. cut)
  end
end)

test("random bytes are never a fault", function()
  for _ = 1, 3000 do
    multipart.parse("--b\r\n" .. bytes(60) .. "\r\n--b--", "b")
    multipart.boundary(bytes(40))
    prony.markdown((bytes(40):gsub("[\128-\255]", "x")))
  end
end)

test("boundaries are read from headers of every kind", function()
  test.equal(multipart.boundary("multipart/form-data; boundary=abc"), "abc")
  test.equal(multipart.boundary('multipart/form-data; charset=utf-8; Boundary="a;b \\"c"; x=1'), 'a;b "c')
  test.equal(multipart.boundary("multipart/form-data"), nil)
  test.equal(multipart.boundary("multipart/form-data; boundary=" .. ("x"):rep(71)), nil)
end)

test("too many parts and too long a head are refused", function()
  local parts = {}
  for at = 1, 1001 do
    parts[at] = { name = "a", content = "" }
  end
  local body = multipart.build(parts, "b")
  test.equal({ multipart.parse(body, "b0") }, { nil, "more than 1000 parts" })
  local long = "--b\r\nContent-Disposition: form-data; name=\"" .. ("x"):rep(9000) .. "\"\r\n\r\n\r\n--b--"
  local _, reason = multipart.parse(long, "b")
  test.contains(reason, "8192")
end)

local function form_app()
  local app = prony.application()
  app:post("/", function(request)
    local file = request:file("f")
    return prony.json({
      a = request:form("a"),
      all = json.array(request:forms("a")),
      missing = request:form("none", "default"),
      file = file and { file.filename, file.content_type, file.content } or nil,
    })
  end)
  app:post("/json", function(request) return prony.json(request:json()) end)
  app:get("/q", function(request)
    return prony.json({ request:query("a", "none"), #request:queries("a"), request:query("b", "none") })
  end)
  return app
end

test("handlers see fields, lists, files and defaults", function()
  local client = prony.client(form_app())
  test.equal(client:post("/", { form = { a = { "1", "2" } } }):json(), { a = "1", all = { "1", "2" }, missing = "default" })
  local files = { f = { filename = "ä \"b\".txt", content = "\0\r\n--", content_type = "text/x" } }
  local found = client:post("/", { form = { a = "ü" }, files = files }):json()
  test.equal(found.a, "ü")
  test.equal(found.file, { "ä %22b%22.txt", "text/x", "\0\r\n--" })
  test.equal(client:post("/", { body = "x", content_type = "text/plain" }):json().a, nil)
  test.equal(client:get("/q?a=1&a=2"):json(), { "1", 2, "none" })
  test.equal(client:get("/q", { query = { a = "x y&" } }):json()[1], "x y&")
end)

test("malformed forms and JSON end with 400, another kind with 415", function()
  local client = prony.client(form_app())
  test.equal(client:post("/", { body = ("a&"):rep(2000), content_type = "application/x-www-form-urlencoded" }).status, 400)
  test.equal(client:post("/", { body = "x", content_type = "multipart/form-data" }).status, 400)
  test.equal(client:post("/", { body = "x", content_type = "multipart/form-data; boundary=b" }).status, 400)
  test.equal(client:post("/json", { body = "{", content_type = "application/json" }).status, 400)
  test.equal(client:post("/json", { body = "{}", content_type = "text/plain" }).status, 415)
  test.equal(client:post("/json", { json = { a = { 1, 2 }, b = json.array() } }):json(), { a = { 1, 2 }, b = {} })
  test.equal(client:get("/q?" .. ("a&"):rep(2000)).status, 400)
end)

test("white space without end in cookies and in headers of parts is passed over in one go", function()
  -- A pattern that tries each space as the last would never come to the end of these.
  local spaces = (" "):rep(4000000)
  local cookies = require("prony.cookies")
  test.equal(cookies.parse("a=x" .. spaces .. "y; b = 2" .. spaces .. "; c=" .. spaces), {
    a = "x" .. spaces .. "y",
    b = "2",
    c = "",
  })
  local multipart = require("prony.multipart")
  local part = "--b\r\nContent-Disposition: form-data; name=a\r\nX: x" .. (" "):rep(8000) .. "y\r\n\r\n1\r\n"
  test.equal(#multipart.parse(part:rep(1000) .. "--b--", "b"), 1000)
  local text = require("prony.text")
  test.equal(text.trim(spaces), "")
  test.equal(text.trim(spaces .. "a" .. spaces .. "b" .. spaces), "a" .. spaces .. "b")
end)
