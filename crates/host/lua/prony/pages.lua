--- Pages from Markdown files: each file below a directory is a page at its path without
--- `.md`; `index.md` is its directory's. Links between files lead to their pages, so that
--- the same text reads well in an editor and on the site.
--- Not for: Markdown from elsewhere (prony.markdown).
---
--- A file may begin with front matter, `name: value` lines between two lines of `---`:
---
---     ---
---     title: Routes
---     order: 2
---     ---

local native = require("prony.native")
local responses = require("prony.response")

local pages = {}

local function read(file)
  local handle, reason = io.open(file, "r")
  if not handle then
    error(reason, 0)
  end
  local text = handle:read("*a")
  handle:close()
  return (text:gsub("\r\n", "\n"))
end

local words = { ["true"] = true, ["false"] = false }

local function value_of(text)
  if words[text] ~= nil then
    return words[text]
  end
  local quoted = text:match('^"(.*)"$') or text:match("^'(.*)'$")
  return quoted or tonumber(text) or text
end

--- The front matter, the Markdown after it, and the line on which that begins.
function pages.parse(text, file)
  local fields = {}
  if not text:match("^%-%-%-\n") then
    return fields, text, 1
  end
  local line, at = 1, 5
  while true do
    local content, after = text:match("^([^\n]*)\n?()", at)
    line = line + 1
    if at > #text then
      error(file .. ":1: the front matter has no end: a line of ---", 0)
    end
    at = after
    if content:match("^%-%-%-%s*$") then
      return fields, text:sub(at), line + 1
    end
    if content:match("%S") and not content:match("^%s*#") then
      local name, value = content:match("^([%a_][%w_]*):%s*(.-)%s*$")
      if not name then
        error(file .. ":" .. line .. ": front matter is lines of `name: value`", 0)
      end
      fields[name] = value_of(value)
    end
  end
end

--- The path of a link, from the directory of the file that has it: `../a.md` and the like.
local function resolve(from, target)
  local steps = {}
  for step in (from:match("^(.*/)") or ""):gmatch("[^/]+") do
    steps[#steps + 1] = step
  end
  for step in target:gmatch("[^/]+") do
    if step == ".." then
      steps[#steps] = nil
    elseif step ~= "." then
      steps[#steps + 1] = step
    end
  end
  return table.concat(steps, "/")
end

--- Turns links to Markdown files into links to their pages.
local function linker(site, page)
  return function(target, line)
    local path, rest = target:match("^([^?#:]*%.md)([?#]?.*)$")
    if not path or path:sub(1, 1) == "/" then
      return target
    end
    local other = site.by_file[resolve(page.source, path)]
    if not other then
      error(page.file .. ":" .. line .. ": the link to " .. target .. " leads to no page", 0)
    end
    return site.app.router:url_for(other.route) .. rest
  end
end

local function load_page(site, page)
  local fields, text, line = pages.parse(read(page.file), page.file)
  for name, value in pairs(fields) do
    page[name] = value
  end
  page.text, page.line = text, line
end

local function render_page(site, page)
  page.html, page.headings = native.markdown(page.text, {
    html = site.html,
    link = linker(site, page),
    line = page.line,
  })
  local first = page.headings[1]
  page.title = page.title or (first and first.text) or page.path
end

--- `index.md` is its directory.
local function path_of(source)
  return (source:gsub("%.md$", ""):gsub("^index$", ""):gsub("/index$", ""))
end

local function compare(a, b)
  local first, second = a.order or math.huge, b.order or math.huge
  if first ~= second then
    return first < second
  end
  return a.source < b.source
end

--- What a list of pages says of each.
local function entry(page)
  local entry = {}
  for name, value in pairs(page) do
    if type(value) ~= "table" and name ~= "html" and name ~= "text" then
      entry[name] = value
    end
  end
  return entry
end

local function handler(site, page)
  return function()
    if native.development then
      load_page(site, page)
      render_page(site, page)
      page.constant = nil
    end
    page.constant = page.constant or native.constant({
      page = { title = page.title, path = page.path, url = page.url, html = page.html, headings = page.headings,
        fields = entry(page) },
      pages = site.entries,
      previous = page.previous and entry(page.previous),
      next = page.next and entry(page.next),
    })
    return responses.html(site.app:template(page.template or site.template, page.constant))
  end
end

local function find_pages(site, directory)
  for _, source in ipairs(native.files(directory)) do
    if source:match("%.md$") then
      local path = path_of(source)
      local page = { source = source, file = directory .. "/" .. source, path = path }
      page.route = site.name .. ":" .. (path == "" and "index" or path)
      site.by_file[source] = page
      table.insert(site.list, page)
    end
  end
  if not site.list[1] then
    error("pages: " .. directory .. " has no Markdown files", 4)
  end
end

--- Adds the pages of a directory as routes, named `page:` and their path (`page:index` for
--- the first). `options`: template ("page.html"), prefix ("/"), name ("page"), html (raw
--- HTML passes; false). Each template is given `page`, `pages` (in the order of `order` in
--- the front matter, then of the names), `previous` and `next`. Returns the list.
function pages.add(app, directory, options)
  local prefix = (options.prefix or "/"):gsub("/$", "")
  local site = {
    app = app,
    list = {},
    by_file = {},
    name = options.name or "page",
    template = options.template or "page.html",
    html = options.html or false,
  }
  find_pages(site, directory)
  for _, page in ipairs(site.list) do
    load_page(site, page)
    local path = prefix .. "/" .. page.path
    app:get((path:gsub("[{}]", "")), handler(site, page), page.route)
    page.url = app.router:url_for(page.route)
  end
  table.sort(site.list, compare)
  site.entries = {}
  for at, page in ipairs(site.list) do
    render_page(site, page)
    page.previous, page.next = site.list[at - 1], site.list[at + 1]
  end
  for at, page in ipairs(site.list) do
    site.entries[at] = entry(page)
  end
  return site.list
end

return pages
