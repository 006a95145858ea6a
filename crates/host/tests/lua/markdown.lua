--- Markdown: what is supported, and that nothing of a stranger's runs.

local prony = require("prony")
local test = require("prony.test")

local function html_of(text, options)
  return tostring((prony.markdown(text, options)))
end

test("tables, footnotes, fences, lists of tasks, strikethrough", function()
  test.contains(html_of("|a|b|\n|-|-:|\n|1|2|"), "<table>")
  test.contains(html_of("x[^1]\n\n[^1]: note"), "footnote")
  test.contains(html_of("```lua\na < b\n```"), '<code class="language-lua">a &lt; b')
  test.contains(html_of("- [x] done"), 'type="checkbox"')
  test.contains(html_of("~~gone~~"), "<del>gone</del>")
end)

test("headings have ids of their own, and are listed", function()
  local html, headings = prony.markdown("# A `b` <c>\n## Ünder_score 2!\n## Ünder_score 2!\n## x {#own}")
  test.equal(headings, {
    { level = 1, id = "a-b-c", text = "A b <c>" },
    { level = 2, id = "ünder_score-2", text = "Ünder_score 2!" },
    { level = 2, id = "ünder_score-2-1", text = "Ünder_score 2!" },
    { level = 2, id = "own", text = "x" },
  })
  test.contains(html, '<h2 id="own">x</h2>')
end)

test("raw HTML is text, unless asked for", function()
  local text = "<script>alert(1)</script>\n\na <b onclick=x>c</b>"
  test.lacks(html_of(text), "<script")
  test.lacks(html_of(text), "<b")
  test.contains(html_of(text, { html = true }), "<script>")
end)

test("links run nothing", function()
  for _, link in ipairs({ "javascript:alert(1)", "JavaScript:alert(1)", "java\tscript:alert(1)", "data:text/html,x",
    "vbscript:x", "&#106;avascript:alert(1)", "javascript&colon;alert(1)" }) do
    for _, text in ipairs({ "[a](<" .. link .. ">)", "![a](<" .. link .. ">)", "[a]\n\n[a]: <" .. link .. ">" }) do
      local html = html_of(text):lower()
      test.truthy(not html:find('["\'][^"\']*script%s*:') and not html:find('="data:'), text .. " gave " .. html)
    end
  end
  for _, link in ipairs({ "https://x.y/z:1", "/a:b", "a.html#x:y", "mailto:a@b.c", "?a:b" }) do
    test.contains(html_of("[a](" .. link .. ")"), 'href="' .. link .. '"')
  end
end)

test("attributes of headings are ids only", function()
  test.lacks(html_of("# a {onclick=alert(1) #b}"), "onclick")
end)

test("no text makes a tag that Markdown has not", function()
  math.randomseed(9)
  local parts = { "<", ">", "script", "[", "](", ")", "`", "*", "_", "|", "\n", "#", "- ", "javascript:", "&lt;", '"', "!", "{", "}", "=", " onx=" }
  local known = {}
  for name in ("p h1 h2 h3 h4 h5 h6 em strong code pre ul ol li a img table thead tbody tr th td hr br del blockquote input sup div"):gmatch("%S+") do
    known[name] = true
  end
  for _ = 1, 5000 do
    local text = {}
    for at = 1, math.random(20) do
      text[at] = parts[math.random(#parts)]
    end
    local html = html_of(table.concat(text))
    for tag, rest in html:gmatch("</?([%w]+)([^>]*)>") do
      test.truthy(known[tag], tag .. " in " .. html)
      test.truthy(not rest:gsub('"[^"]*"', ""):find("onx"), html)
      test.lacks(rest:lower(), '="javascript:')
    end
  end
end)
