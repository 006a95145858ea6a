--- What happens around handlers: statuses, hooks, errors, slashes, answers, the client.

local prony = require("prony")
local test = require("prony.test")

local function app_with(options)
  return prony.application(options)
end

test("a string is an HTML page with its length", function()
  local app = app_with()
  app:get("/", function() return "<p>hello" end)
  local answer = prony.client(app):get("/")
  test.equal(answer.status, 200)
  test.equal(answer.body, "<p>hello")
  test.equal(answer:header("content-type"), "text/html; charset=utf-8")
  test.equal(answer:header("content-length"), "8")
end)

test("parameters come in their order and by name", function()
  local app = app_with()
  app:get("/{year:integer}/{slug}", function(request, year, slug)
    return prony.json({ year = year + 1, slug = slug, named = request.params.year })
  end)
  test.equal(prony.client(app):get("/2024/a%20b"):json(), { year = 2025, slug = "a b", named = 2024 })
end)

test("no such page is 404, another method 405 with Allow, OPTIONS tells", function()
  local app = app_with()
  app:get("/a", function() return "" end)
  app:post("/a", function() return "" end)
  local client = prony.client(app)
  test.equal(client:get("/b").status, 404)
  local answer = client:delete("/a")
  test.equal(answer.status, 405)
  test.equal(answer:header("Allow"), "GET, HEAD, OPTIONS, POST")
  answer = client:options("/a")
  test.equal({ answer.status, answer:header("Allow") }, { 204, "GET, HEAD, OPTIONS, POST" })
end)

test("HEAD is GET without the body and with its length", function()
  local app = app_with()
  app:get("/", function(request) return request.method .. "hello" end)
  local answer = prony.client(app):head("/")
  test.equal({ answer.status, answer.body, answer:header("Content-Length") }, { 200, "", "9" })
end)

test("a slash too many or too few redirects, keeps the query, and never to another host", function()
  local app = app_with()
  app:get("/a/", function() return "a" end)
  app:get("/b", function() return "b" end)
  local client = prony.client(app)
  local answer = client:get("/a?x=1")
  test.equal({ answer.status, answer:header("Location") }, { 308, "/a/?x=1" })
  test.equal(client:get("/b/?x=1", { follow = true }).body, "b")
  app:get("/{rest:path}/", function() return "c" end)
  test.equal(client:get("//evil.example/x"):header("Location"), "/evil.example/x/")
  test.equal(client:get("/\\evil.example"):header("Location"), "/%5Cevil.example/")
  test.equal(client:get("/%0d%0aX: y"):header("Location"), "/%0D%0AX:%20y/")
end)

test("slashes can be strict, or both", function()
  local strict, both = app_with({ slashes = "strict" }), app_with({ slashes = "both" })
  for _, app in ipairs({ strict, both }) do
    app:get("/a/", function() return "a" end)
  end
  test.equal(prony.client(strict):get("/a").status, 404)
  test.equal(prony.client(both):get("/a").body, "a")
  test.fails(function() app_with({ slashes = "none" }) end, "slashes")
end)

test("hooks: the first answer wins, after hooks see all, groups have their own", function()
  local app, order = app_with(), {}
  app:before(function(request)
    order[#order + 1] = "app"
    if request:query("stop") then return "stopped" end
  end)
  app:after(function(_, response) response:header("X-After", "1") end)
  local group = app:group("/g", "g")
  group:before(function() order[#order + 1] = "group" end)
  group:get("/x", function() return "x" end, "x")
  app:get("/y", function() return "y" end)
  local client = prony.client(app)
  test.equal(client:get("/g/x").body, "x")
  test.equal(order, { "app", "group" })
  client:get("/y")
  test.equal(order, { "app", "group", "app" })
  local answer = client:get("/g/x?stop=1")
  test.equal({ answer.body, answer:header("X-After") }, { "stopped", "1" })
  test.equal(client:get("/none"):header("X-After"), "1")
  test.equal(app:url_for("g.x"), "/g/x")
end)

test("a group in a group has both prefixes, names and hooks", function()
  local app, order = app_with(), {}
  local outer = app:group("/a", "a")
  local inner = outer:group("/b", "b")
  outer:before(function() order[#order + 1] = "outer" end)
  inner:before(function() order[#order + 1] = "inner" end)
  inner:get("/c", function() return "c" end, "c")
  test.equal(app:url_for("a.b.c"), "/a/b/c")
  test.equal(prony.client(app):get("/a/b/c").body, "c")
  test.equal(order, { "outer", "inner" })
end)

test("abort ends a request from anywhere, and its message is text", function()
  local app = app_with()
  app:get("/", function() prony.abort(403, "<script>no</script>") end)
  local answer = prony.client(app):get("/")
  test.equal(answer.status, 403)
  test.contains(answer.body, "&lt;script&gt;")
  test.lacks(answer.body, "<script>")
end)

test("an error handler answers with the error's status", function()
  local app = app_with()
  app:error(404, function(request) return "nothing at " .. #request.path end)
  app:error(500, function(_, fault) return prony.text("sorry" .. (fault.message:find("stack traceback") and "!" or "")) end)
  app:get("/fault", function() error("broken") end)
  local client = prony.client(app)
  test.equal({ client:get("/x").status, client:get("/x").body }, { 404, "nothing at 2" })
  local answer = client:get("/fault")
  test.equal({ answer.status, answer.body }, { 500, "sorry!" })
  test.contains(answer.errors, "application.lua")
  test.contains(answer.errors, "broken")
end)

test("a fault that nobody answers reaches the host with file, line and traceback", function()
  local app = app_with()
  app:get("/", function() error("broken") end)
  local text = test.fails(function() prony.client(app):get("/") end, "broken")
  test.contains(text, "application.lua:")
  test.contains(text, "stack traceback")
end)

test("a handler that returns nothing is named", function()
  local app = app_with()
  app:get("/here", function() end)
  test.fails(function() prony.client(app):get("/here") end, "the handler of /here returned nil")
end)

test("wrappers are WSGI applications around, the last outermost", function()
  local app = app_with()
  app:get("/", function(request) return request.environ.seen end)
  for _, mark in ipairs({ "a", "b" }) do
    app:wrap(function(inner)
      return function(environ, start_response)
        environ.seen = (environ.seen or "") .. mark
        return inner(environ, start_response)
      end
    end)
  end
  test.equal(prony.client(app):get("/").body, "ba")
end)

test("streams give their pieces, and files their bytes", function()
  local app = app_with()
  app:get("/stream", function()
    local n = 0
    return prony.stream(function()
      n = n + 1
      return n <= 3 and tostring(n) or nil
    end)
  end)
  local here = app.root
  app:get("/file/{name:path}", function(_, name)
    return prony.file(here, name, { download = "a \"b\".lua" }) or prony.abort(404)
  end)
  local client = prony.client(app)
  test.equal(client:get("/stream").body, "123")
  test.equal(client:head("/stream").body, "")
  local answer = client:get("/file/application.lua")
  test.contains(answer.body, "streams give their pieces")
  test.equal(answer:header("Content-Length"), tostring(#answer.body))
  test.equal(answer:header("Content-Disposition"), "attachment; filename=\"a _b_.lua\"; filename*=UTF-8''a%20%22b%22.lua")
  for _, way_out in ipairs({ "../framework.rs", "%2e%2e/framework.rs", "%2Fetc/passwd", "a%00", "." }) do
    test.equal(client:get("/file/" .. way_out).status, 404, way_out)
  end
end)

test("headers are set, added, refused with a line's end", function()
  local response = prony.text("x")
  response:header("X-A", "1"):header("x-a", "2"):add_header("X-B", 3):add_header("X-B", 4)
  test.equal(response:header("X-A"), "2")
  test.equal(#response.headers, 4)
  test.fails(function() response:header("X-A", "a\r\nSet-Cookie: b=1") end, "cannot be a header")
  test.fails(function() response:header("X A", "a") end, "cannot be a header")
  test.fails(function() prony.text("x", 42.5) end, "status")
end)

test("cookies are kept by the client, given back and deleted", function()
  local app = app_with()
  app:get("/set", function() return prony.empty():cookie("name", "a; b=\"c\"", { max_age = 60, secure = true }) end)
  app:get("/show", function(request) return request:cookie("name") or "none" end)
  app:get("/delete", function() return prony.empty():delete_cookie("name") end)
  local client = prony.client(app)
  test.equal(client:get("/set"):header("Set-Cookie"),
    "name=a%3B%20b%3D%22c%22; Path=/; Max-Age=60; Secure; HttpOnly; SameSite=Lax")
  test.equal(client:get("/show").body, "a; b=\"c\"")
  client:get("/delete")
  test.equal(client:get("/show").body, "none")
  test.fails(function() prony.text(""):cookie("a b", "") end, "no name")
  test.fails(function() prony.text(""):cookie("a", "", { path = "/; Domain=x" }) end, "semicolon")
end)

test("redirects are followed with GET after 303, with the same method after 308, not for ever", function()
  local app = app_with()
  app:post("/a", function() return prony.redirect("/b") end)
  app:get("/b", function(request) return request.method end)
  app:post("/c", function() return prony.redirect("/d", 308) end)
  app:post("/d", function(request) return request:form("x") end)
  app:get("/circle", function() return prony.redirect("circle") end)
  local client = prony.client(app)
  test.equal(client:post("/a", { follow = true }).body, "GET")
  test.equal(client:post("/c", { follow = true, form = { x = "kept" } }).body, "kept")
  test.fails(function() client:get("/circle", { follow = true }) end, "redirects")
end)

test("an application below a prefix builds its URLs with it", function()
  local app = app_with()
  app:get("/", function() return app:url_for("other") end)
  app:get("/other/", function() return "" end, "other")
  local client = prony.client(app)
  test.equal(client:get("/", { script_name = "/site" }).body, "/site/other/")
  test.equal(client:get("/other", { script_name = "/site" }):header("Location"), "/site/other/")
  test.equal(client:get("/").body, "/other/")
end)

test("statuses without a body have none", function()
  local app = app_with()
  app:get("/", function() return prony.text("x", 204) end)
  local answer = prony.client(app):get("/")
  test.equal({ answer.status, answer.body, answer:header("Content-Length") }, { 204, "" })
end)

test("a fault's traceback is not shown by an error handler that gives nothing", function()
  local app = app_with()
  local told
  app:error(500, function(_, thrown) told = thrown.message end)
  app:get("/", function() error("the secret place") end)
  app:get("/no", function() prony.abort(500, "said <so>") end)
  local answer = prony.client(app):get("/")
  test.equal(answer.status, 500)
  test.lacks(answer.body, "secret")
  test.contains(told, "application.lua:")
  test.contains(told, "stack traceback:")
  test.contains(answer.errors, "the secret place\nstack traceback:")
  test.contains(prony.client(app):get("/no").body, "said &lt;so&gt;")
end)

test("memory exhausted is raised to the host, whoever would answer it", function()
  local app = app_with()
  app:error(500, function() return "answered" end)
  app:get("/lua", function() error("not enough memory", 0) end)
  app:get("/other", function() error("it has not enough memory", 0) end)
  local client = prony.client(app)
  test.equal(test.fails(function() client:get("/lua") end, "not enough memory"), "not enough memory")
  test.equal(client:get("/other").body, "answered")
end)

--- A body in pieces that counts its ends.
local function body_of(counts, ...)
  local left = { ... }
  return setmetatable({ close = function() counts.closed = counts.closed + 1 end }, {
    __call = function() return table.remove(left, 1) end,
  })
end

test("bodies that are not sent are closed, those that are used go on", function()
  local app, counts = app_with(), { closed = 0 }
  app:get("/{what}", function(request, what)
    return prony.response(what == "304" and 304 or 200, "text/plain", body_of(counts, "a", "b"))
  end)
  app:after(function(request, response)
    if request.path == "/fault" then
      error("after")
    elseif request.path == "/text" then
      return prony.text("in its place")
    elseif request.path == "/around" then
      local inner = response.body
      return prony.stream(function()
        local piece = inner()
        return piece and piece:upper()
      end)
    elseif request.path == "/same" then
      return prony.response(200, "text/x", response.body)
    end
  end)
  app:error(500, function() return "fault" end)
  local client = prony.client(app)
  for path, body in pairs({
    ["/304"] = "",
    ["/fault"] = "fault",
    ["/text"] = "in its place",
    ["/around"] = "AB",
    ["/same"] = "ab",
    ["/plain"] = "ab",
  }) do
    counts.closed = 0
    test.equal(client:get(path).body, body, path)
    test.equal(counts.closed, 1, path)
  end
  counts.closed = 0
  client:head("/plain")
  test.equal(counts.closed, 1)
end)
