--- Routes against a model that takes paths apart in another way, and back from values.

local Router = require("prony.router")
local test = require("prony.test")
local url = require("prony.url")

math.randomseed(6)

local function pick(list)
  return list[math.random(#list)]
end

local function split(path)
  local steps = {}
  for step in (path:sub(2) .. "/"):gmatch("([^/]*)/") do
    steps[#steps + 1] = step
  end
  return steps
end

--- Whether the steps of a path fit those of a route: by backtracking over `path`.
local function fits(pattern, path, p, s)
  p, s = p or 1, s or 1
  if p > #pattern then
    return s > #path
  end
  local kind = pattern[p]:match("^{%w+:?(%w*)}$")
  if kind == "path" then
    for last = #path, s, -1 do
      local taken = table.concat(path, "/", s, last)
      if taken ~= "" and fits(pattern, path, p + 1, last + 1) then
        return true
      end
    end
    return false
  end
  local step = path[s]
  if not step then
    return false
  end
  local fine = step == pattern[p]
  if kind == "" then
    fine = step ~= ""
  elseif kind == "integer" then
    fine = step:find("^%-?%d+$") ~= nil
  end
  return fine and fits(pattern, path, p + 1, s + 1)
end

test("the same route is found as by a model, in 20,000 random cases", function()
  local words = { "a", "b", "a-b", "a.b", "%d", "1", "-7", "", "A" }
  local params = { "{x}", "{y:integer}", "{z:path}" }
  local found_count = 0
  for case = 1, 2000 do
    local router, patterns = Router.new(), {}
    for _ = 1, math.random(6) do
      local steps, used = {}, {}
      for _ = 1, math.random(4) do
        local step = math.random() < 0.4 and pick(params) or pick(words)
        if not used[step] or not step:find("{") then
          steps[#steps + 1], used[step] = step, true
        end
      end
      local path = "/" .. table.concat(steps, "/")
      router:add({ path = path, methods = { pick({ "GET", "POST" }) }, handler = print })
      patterns[#patterns + 1] = split(path)
    end
    for _ = 1, 10 do
      local steps = {}
      for _ = 1, math.random(5) do
        steps[#steps + 1] = pick(words)
      end
      local path, method = "/" .. table.concat(steps, "/"), pick({ "GET", "POST", "HEAD" })
      -- Those without parameters come first.
      local wanted, known
      for _, dynamic in ipairs({ false, true }) do
        for at, route in ipairs(router.routes) do
          if (#route.parameters > 0) == dynamic and fits(patterns[at], split(path)) then
            known = true
            if not wanted and route.allows[method] then
              wanted = route
            end
          end
        end
      end
      local route, rest = router:find(method, path)
      test.equal(route and route.path, wanted and wanted.path, case .. " " .. method .. " " .. path)
      test.equal(route ~= nil or rest ~= nil, known == true, "known " .. path)
      found_count = found_count + (route and 1 or 0)
    end
  end
  test.truthy(found_count > 1000, "enough cases with a route")
end)

test("what url_for writes is found again with the same values, for any bytes", function()
  local router = Router.new()
  router:add({ path = "/p q/{a}/{n:integer}.html/{rest:path}", methods = { "GET" }, name = "r" })
  for _ = 1, 2000 do
    local function bytes(lowest)
      local out = {}
      for at = 1, math.random(8) do
        out[at] = string.char(math.random(lowest, 255))
      end
      return table.concat(out)
    end
    local a, n, rest = bytes(1):gsub("/", "_"), math.random(-1000, 1000), bytes(0):gsub("^/", "_")
    local path = router:url_for("r", a, n, rest)
    test.truthy(path:match("^[%w%-%._~/:@!$&'()*+,;=%%]+$"), "only letters of a path: " .. path)
    local route, values = router:find("GET", url.decode(path))
    test.truthy(route, path)
    test.equal(values, { a, n, rest })
  end
end)

test("url_for names what is missing or wrong", function()
  local router = Router.new()
  router:add({ path = "/u/{id:integer}/{slug}", methods = { "GET" }, name = "u" })
  test.equal(router:url_for("u", { id = 3, slug = "x", page = 2, q = "a b" }), "/u/3/x?page=2&q=a%20b")
  test.fails(function() router:url_for("v") end, "no route is named `v`")
  test.fails(function() router:url_for("u", 3) end, "needs the parameter `slug`")
  test.fails(function() router:url_for("u", 3, "x", 4) end, "has 2 parameters, not 3")
  test.fails(function() router:url_for("u", 3.5, "x") end, "`3.5` is no integer")
  test.fails(function() router:url_for("u", 3, "a/b") end, "`a/b` is no string")
  test.fails(function() router:url_for("u", 3, "") end, "is no string")
end)

test("an encoded slash is a slash: a string never holds one, a path does", function()
  local router = Router.new()
  router:add({ path = "/s/{a}", methods = { "GET" } })
  test.equal({ router:find("GET", url.decode("/s/a%2Fb")) }, {})
  router:add({ path = "/s/{a:path}", methods = { "GET" } })
  local _, values = router:find("GET", url.decode("/s/..%2fb"))
  test.equal(values, { "../b" })
end)

test("converters: numbers that do not fit are none, uuids, and one's own", function()
  local router = Router.new({
    hex = {
      pattern = "%x+",
      parse = function(text) return tonumber(text, 16) end,
      format = function(value) return string.format("%x", value) end,
    },
  })
  router:add({ path = "/i/{i:integer}", methods = { "GET" } })
  router:add({ path = "/n/{n:number}", methods = { "GET" } })
  router:add({ path = "/u/{u:uuid}", methods = { "GET" } })
  router:add({ path = "/h/{h:hex}", methods = { "GET" }, name = "h" })
  local function values(path)
    local route, found = router:find("GET", path)
    return route and found
  end
  test.equal(values("/i/9007199254740993"), nil)
  test.equal(values("/i/1e5"), nil)
  test.equal(values("/n/-1.5"), { -1.5 })
  test.equal(values("/u/123E4567-e89b-12d3-a456-426614174000"), { "123e4567-e89b-12d3-a456-426614174000" })
  test.equal(values("/u/123E4567-e89b-12d3-a456-42661417400"), nil)
  test.equal(values("/h/ff"), { 255 })
  test.equal(router:url_for("h", 255), "/h/ff")
end)

test("no path has many ways to be compared: longer ones and routes that multiply them are none", function()
  local router = Router.new()
  router:add({ path = "/two/{a}-{b}/x", methods = { "GET" } })
  router:add({ path = "/one/{a}", methods = { "GET" } })
  router:add({ path = "/n/{a:number}/{b:number}/{c:number}/{d:number}/x", methods = { "GET" } })
  local function fits(start, rest, length)
    local middle = length - #start - #rest
    return (router:find("GET", start .. ("-"):rep(middle) .. rest)) ~= nil
  end
  test.equal({ fits("/two/", "/x", 1024), fits("/two/", "/x", 1025) }, { true, false })
  test.equal({ fits("/one/", "", 4096), fits("/one/", "", 4097) }, { true, false })
  for _, path in ipairs({ "/{a}-{b}/{c}-{d}", "/{a}.{b}/{p:path}", "/{p:path}/{a}.{b}" }) do
    test.fails(function() router:add({ path = path, methods = { "GET" } }) end, "two parameters")
  end
  -- Figures divided in every way would be more steps than anybody waits for.
  test.equal((router:find("GET", "/n" .. ("/" .. ("1"):rep(1000)):rep(4))), nil)
end)

test("numbers are read as they are written, and none has two points", function()
  local router = Router.new()
  router:add({ path = "/n/{a:number}.html", methods = { "GET" } })
  for text, value in pairs({ ["1.5"] = 1.5, ["-07"] = -7, ["1."] = 1, ["1.2.3"] = false, ["1..2"] = false, ["."] = false }) do
    local _, values = router:find("GET", "/n/" .. text .. ".html")
    test.equal(values and values[1] or false, value, text)
  end
end)

test("routes that cannot be are refused where they are written", function()
  local router = Router.new()
  local function add(path, name)
    return function() router:add({ path = path, methods = { "GET" }, name = name }) end
  end
  test.fails(add("a"), "begins with a slash")
  test.fails(add("/{"), "without its partner")
  test.fails(add("/{a}/{a}"), "two parameters are named `a`")
  test.fails(add("/{a:none}"), "no converter `none`")
  test.fails(add("/{1a}"), "is not {name}")
  test.fails(add("/{a:}"), "is not {name}")
  test.fails(add("/{a:path}/{b:path}"), "only one parameter can be a `path`")
  test.fails(add("/{a}{b}{c}"), "two parameters, not 3")
  add("/x", "twice")()
  test.fails(add("/y", "twice"), "two routes are named `twice`: /x and /y")
end)
