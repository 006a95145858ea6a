--- The documentation of Prony's host, as a site that the host serves: pages from Markdown,
--- and a search. From the repository's root:
---
---     ./prony host --path examples --static examples/docs/static docs.app:app

local prony = require("prony")
local text = require("prony.text")

local app = prony.application()

local settings = app:config({
  title = "Prony's host",
  tagline = "Web applications in Lua and Python, on a server that keeps up.",
  excerpt = { letters = 160, results_max = 20 },
})

local pages = app:pages("content")

app:global("site", { title = settings.title, tagline = settings.tagline })

--- A page's text as it is read: without marks, and of links what they say.
local function plain(markdown)
  return (markdown:gsub("%[([^%]]*)%]%([^)]*%)", "%1"):gsub("[%s`#*|>]+", " "))
end

for _, page in ipairs(pages) do
  page.plain = plain(page.text)
end

--- What stands around the first place of the words, from word to word.
local function excerpt(page, at)
  local last = at + settings.excerpt.letters
  local before = page:sub(math.max(1, at - 60), at - 1)
  if at > 60 then
    before = before:match("%s(.*)$") or ""
  end
  local after = page:sub(at, last)
  if last < #page then
    after = after:match("^(.*)%s") or after
  end
  return (at > 60 and "… " or "") .. before .. after .. (last < #page and " …" or "")
end

local function search(words)
  local found = {}
  local wanted = words:lower()
  for _, page in ipairs(pages) do
    local at = page.plain:lower():find(wanted, 1, true)
    local in_title = page.title:lower():find(wanted, 1, true)
    if at or in_title then
      table.insert(found, { title = page.title, url = page.url, excerpt = excerpt(page.plain, at or 1), first = in_title and 0 or 1 })
    end
  end
  table.sort(found, function(a, b)
    if a.first ~= b.first then
      return a.first < b.first
    end
    return a.title < b.title
  end)
  for at = #found, settings.excerpt.results_max + 1, -1 do
    found[at] = nil
  end
  return found
end

app:get("/search", function(request)
  local words = text.trim(request:query("q", ""))
  return app:render("search.html", {
    words = words,
    results = words ~= "" and search(words) or {},
    pages = app.page_list,
  })
end, "search")

app:error(404, function(request)
  return app:render("missing.html", { path = request.path, pages = app.page_list })
end)

--- The list of pages, which each page shows, converted for templates once.
local entries = {}
for at, page in ipairs(pages) do
  entries[at] = { title = page.title, url = page.url, path = page.path }
end
app.page_list = prony.constant(entries)

return { app = app }
