--- Pages of Markdown: front matter, paths, links between them, order.

local pages = require("prony.pages")
local prony = require("prony")
local test = require("prony.test")

local function site(files, options)
  local dir = os.tmpname()
  os.remove(dir)
  assert(os.execute("mkdir -p " .. dir .. "/content/sub " .. dir .. "/templates"))
  for name, text in pairs(files) do
    local file = assert(io.open(dir .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  local app = prony.application({ root = dir })
  local fine, reason = pcall(app.pages, app, "content", options)
  return fine and app or nil, reason, function() os.execute("rm -rf " .. dir) end, dir
end

local template = "{{ page.title }}|{{ page.url }}|{% for p in pages %}{{ p.title }},{% endfor %}|"
  .. "{% if previous %}{{ previous.title }}{% endif %}|{% if next %}{{ next.title }}{% endif %}|{{ page.html }}"

test("files are pages in their order, with their neighbours and headings' titles", function()
  local app, reason, done = site({
    ["templates/page.html"] = template,
    ["content/index.md"] = "---\ntitle: Home\norder: 1\n---\nhi [b](sub/b.md#x) [out](https://x.md/a.md)",
    ["content/sub/b.md"] = "# Bee\n[home](../index.md) [self](b.md)",
    ["content/a.md"] = "---\norder: 2\n---\n# Ay",
  })
  test.truthy(app, reason)
  local client = prony.client(app)
  local slash = "&#x2f;"
  test.equal(client:get("/").body, "Home|" .. slash .. "|Home,Ay,Bee,||Ay|<p>hi <a href=\"/sub/b#x\">b</a> "
    .. '<a href="https://x.md/a.md">out</a></p>\n')
  local body = client:get("/sub/b").body
  test.contains(body, "Bee|" .. slash .. "sub" .. slash .. "b|Home,Ay,Bee,|Ay||")
  test.contains(body, '<a href="/">home</a> <a href="/sub/b">self</a>')
  test.equal(app:url_for("page:sub/b"), "/sub/b")
  done()
end)

test("a prefix and a name of one's own", function()
  local app, reason, done = site({ ["templates/page.html"] = "{{ page.url }}", ["content/index.md"] = "x", ["content/a.md"] = "x" },
    { prefix = "/docs/", name = "doc" })
  test.truthy(app, reason)
  test.equal({ app:url_for("doc:index"), app:url_for("doc:a") }, { "/docs/", "/docs/a" })
  test.equal(prony.client(app):get("/docs", { follow = true }).status, 200)
  done()
end)

test("a link that leads to no page is an error with file and line", function()
  local _, reason, done, dir = site({ ["content/a.md"] = "---\ntitle: x\n---\n\nsee [b](b.md)" })
  done()
  test.contains(reason, dir .. "/content/a.md:5: the link to b.md leads to no page")
end)

test("front matter: kinds of values, comments, and what is none", function()
  local fields, rest, line = pages.parse('---\na: 1\nb: true\n# c\nd: "x: y"\ne: plain: text \n---\nbody', "f")
  test.equal(fields, { a = 1, b = true, d = "x: y", e = "plain: text" })
  test.equal({ rest, line }, { "body", 8 })
  test.equal({ pages.parse("--- no\n", "f") }, { {}, "--- no\n", 1 })
  test.fails(function() pages.parse("---\nno colon\n---\n", "f.md") end, "f.md:2: front matter")
  test.fails(function() pages.parse("---\na: 1\n", "f.md") end, "f.md:1: the front matter has no end")
end)
