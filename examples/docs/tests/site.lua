--- The site's tests: every page answers, and every link and anchor in it leads somewhere.
--- From the repository's root: ./prony lua --path examples examples/docs/tests/site.lua

local app = require("docs.app").app
local prony = require("prony")
local test = require("prony.test")

local client = prony.client(app)

local function unescaped(text)
  return (text:gsub("&#x2f;", "/"):gsub("&#x27;", "'"):gsub("&quot;", '"'):gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&amp;", "&"))
end

local function is_static(path)
  local name = path:match("^/static/(.+)$")
  if not name then
    return false
  end
  local file = io.open(app.root .. "/static/" .. name, "r")
  return file ~= nil and file:close()
end

--- The site, page by page from the first.
local function visit()
  local pages, queue = {}, { "/" }
  while queue[1] do
    local path = table.remove(queue)
    if not pages[path] then
      local answer = client:get(path)
      test.equal(answer.status, 200, path)
      pages[path] = { body = answer.body, links = {}, ids = {} }
      for id in answer.body:gmatch('%sid="([^"]*)"') do
        test.truthy(not pages[path].ids[id], "an id of its own for " .. id .. " in " .. path)
        pages[path].ids[unescaped(id)] = true
      end
      for link in answer.body:gmatch('%s[hs]r[ec]f?="([^"]*)"') do
        link = unescaped(link)
        table.insert(pages[path].links, link)
        local target = link:match("^(/[^#?]*)")
        if target and not is_static(target) then
          queue[#queue + 1] = target
        end
      end
    end
  end
  return pages
end

test("every link within the site leads to a page, every anchor to a place", function()
  local pages, links, anchors = visit(), 0, 0
  for path, page in pairs(pages) do
    for _, link in ipairs(page.links) do
      links = links + 1
      local target, anchor = link:match("^([^#]*)#?(.*)$")
      if anchor ~= "" and not target:find("^%a+:") then
        anchors = anchors + 1
        local there = pages[target == "" and path or target]
        test.truthy(there and there.ids[anchor], link .. " in " .. path .. " leads to a place")
      end
    end
  end
  test.truthy(links > 150 and anchors > 30, "enough links were seen: " .. links .. " and " .. anchors)
end)

test("every file of the folder is a page", function()
  local pages, count = visit(), 0
  for _, page in ipairs(require("prony.native").files(app.root .. "/content")) do
    count = count + 1
    local path = "/" .. page:gsub("%.md$", ""):gsub("^index$", "")
    test.truthy(pages[path], path .. " is reached from the first page")
  end
  test.truthy(count >= 12)
end)

test("pages have one first heading, a title, and mark where one is", function()
  for path, page in pairs(visit()) do
    local _, headings = page.body:gsub("<h1", "")
    test.equal(headings, 1, path)
    test.truthy(page.body:match("<title>[^<]+</title>"), path)
    if path ~= "/search" then
      test.contains(page.body, 'aria-current="page"')
    end
  end
end)

test("nothing is fetched from elsewhere, and nothing needs a script", function()
  for path, page in pairs(visit()) do
    test.lacks(page.body, "<script")
    test.truthy(not page.body:find('src="%a+:'), path)
    test.truthy(not page.body:find('<link[^>]*href="%a+:'), path)
  end
end)

test("the search finds, shows what was asked, and escapes it", function()
  local answer = client:get("/search", { query = { q = "Markdown" } })
  test.contains(answer.body, "Pages of Markdown")
  answer = client:get("/search", { query = { q = "\"><script>alert(1)</script>" } })
  test.equal(answer.status, 200)
  test.lacks(answer.body, "<script>")
  test.contains(answer.body, "0 pages have")
  test.equal(client:get("/search").status, 200)
  for _, letter in ipairs({ "%", "[", "ä", "\255" }) do
    test.equal(client:get("/search", { query = { q = letter } }).status, 200)
  end
end)

test("a page that is not there says so in the site's own look", function()
  local answer = client:get("/none/<b>")
  test.equal(answer.status, 404)
  test.contains(answer.body, "site.css")
  test.lacks(answer.body, "<b>")
end)

test("the settings of the site may come from the environment's file", function()
  local settings = app:config({ title = "x", excerpt = { letters = 1 } })
  test.equal(settings.excerpt.letters, 180)
end)
