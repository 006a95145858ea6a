--- Templates: escaping whatever is put in, components, functions of Lua, errors with places.

local native = require("prony.native")
local prony = require("prony")
local test = require("prony.test")

math.randomseed(8)

local function directory(files)
  local dir = os.tmpname()
  os.remove(dir)
  assert(os.execute("mkdir -p " .. dir .. "/components"))
  for name, text in pairs(files) do
    local file = assert(io.open(dir .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  return dir
end

local function with(files, action)
  local dir = directory(files)
  local fine, reason = pcall(action, dir, native.templates(dir))
  os.execute("rm -rf " .. dir)
  if not fine then
    error(reason, 0)
  end
end

test("no data is markup, wherever it comes from", function()
  local letters = { "<", ">", "&", '"', "'", "script", "/", " ", "{{", "}}", "{%", "%}", "a", "\0", "ä" }
  local files = {
    ["page.html"] = '<p title="{{ a }}">{{ a }}{{ table.b }}{{ f() }}{{ a | id }}{{ show(a) }}{% for x in list %}{{ x }}{% endfor %}',
    ["components/show.html"] = "{% macro show(text) %}{{ text }}{% endmacro %}",
  }
  with(files, function(_, templates)
    templates:filter("id", function(text) return text end)
    for _ = 1, 500 do
      local parts = {}
      for at = 1, math.random(12) do
        parts[at] = letters[math.random(#letters)]
      end
      local data = table.concat(parts)
      local html = tostring(templates:render("page.html", {
        a = data, table = { b = data }, list = { data, data }, f = function() return data end,
      }))
      local inside = html:gsub('^<p title="(.-)">', "%1")
      test.truthy(not inside:find("[<>\"']"), "markup in " .. html)
      local escaped = data:gsub("[&<>\"'/]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
        ["'"] = "&#x27;", ["/"] = "&#x2f;" })
      test.equal(html, '<p title="' .. escaped .. '">' .. escaped:rep(7))
    end
  end)
end)

test("data is never a template", function()
  with({ ["a.html"] = "{{ x }}" }, function(_, templates)
    test.equal(tostring(templates:render("a.html", { x = "{{ 7 * 7 }}{% raw %}" })), "{{ 7 * 7 }}{% raw %}")
  end)
end)

test("what is said to be safe passes, also through functions and components", function()
  local files = {
    ["a.html"] = "{{ x }}{{ bold(y) }}{% call box() %}<i>{{ y }}</i>{% endcall %}{{ same(x) }}",
    ["components/box.html"] = "{% macro box() %}<b>{{ caller() }}</b>{% endmacro %}",
  }
  with(files, function(_, templates)
    templates:global("bold", function(text) return prony.safe("<b>" .. text .. "</b>") end)
    templates:global("same", function(value) return value end)
    test.equal(tostring(templates:render("a.html", { x = prony.safe("<p>"), y = "&" })),
      "<p><b>&</b><b><i>&amp;</i></b><p>")
  end)
end)

test("components need no import, use each other and may be in templates that extend", function()
  local files = {
    ["base.html"] = "<{% block content %}{% endblock %}>{{ icon('z') }}",
    ["page.html"] = "{% extends 'base.html' %}\n{% block content %}{{ card('a') }}{% endblock %}",
    ["components/card.html"] = "{% macro card(title) %}[{{ icon(title) }}]{% endmacro %}",
    ["components/icon.html"] = "{%- macro icon(name) -%}({{ name }}){%- endmacro -%}",
  }
  with(files, function(_, templates)
    test.equal(tostring(templates:render("page.html", {})), "<[(a)]>(z)")
  end)
end)

test("two components with a name, and files in a circle, are named", function()
  with({
    ["a.html"] = "",
    ["components/a.html"] = "{% macro x() %}{% endmacro %}",
    ["components/b.html"] = "{% macro x() %}{% endmacro %}",
  }, function(_, templates)
    test.fails(function() templates:render("a.html", {}) end, "`x` is defined in components/a.html and in components/b.html")
  end)
  with({
    ["a.html"] = "",
    ["components/a.html"] = "{% macro x() %}{{ y() }}{% endmacro %}",
    ["components/b.html"] = "{% macro y() %}{{ x() }}{% endmacro %}",
  }, function(_, templates)
    test.fails(function() templates:render("a.html", {}) end, "components/a.html and components/b.html use each other")
  end)
end)

test("errors have file and line, the innermost first", function()
  local files = {
    ["undefined.html"] = "{{ card(1) }}\n\n{{ nobody }}",
    ["syntax.html"] = "\n{% if %}",
    ["outer.html"] = "\n\n{% include 'undefined.html' %}",
    ["lua.html"] = "\n{{ broken() }}",
    ["broken_card.html"] = "\n{{ bad() }}",
    ["components/card.html"] = "{% macro card(x) %}{% endmacro %}\n\n{% macro bad() %}\n{{ nothing }}{% endmacro %}",
  }
  with(files, function(dir, templates)
    local function render(name, context)
      return function() return templates:render(name, context or {}) end
    end
    test.fails(render("undefined.html"), dir .. "/undefined.html:3: undefined value")
    test.fails(render("syntax.html"), dir .. "/syntax.html:2: syntax error")
    local text = test.fails(render("outer.html"), dir .. "/undefined.html:3: undefined value")
    test.contains(text, "used in " .. dir .. "/outer.html:3")
    test.fails(render("none.html"), "there is no file " .. dir .. "/none.html")
    text = test.fails(render("lua.html", { broken = function() error("it broke") end }), "it broke")
    test.contains(text, dir .. "/lua.html:2")
    test.contains(text, "templates.lua:")
    test.fails(render("broken_card.html"), dir .. "/components/card.html:4")
    test.fails(render("../secret"), "../secret")
    test.fails(render("undefined.html", { x = coroutine.create(print) }), "thread")
  end)
end)

test("a function of a rendering that is over cannot be called", function()
  with({ ["a.html"] = "{{ f() }}" }, function(_, templates)
    local constant = prony.constant({ f = function() return "x" end })
    test.fails(function() templates:render("a.html", constant) end, "is over")
  end)
end)

test("tables are lists or maps, numbers look as they are, arguments by name are a table", function()
  with({ ["a.html"] = "{{ list | length }} {{ n }} {{ f }} {{ map.a.b }} {{ show(1, b=2) }} {% if nothing %}{% else %}no{% endif %}" },
    function(_, templates)
      templates:global("show", function(a, named) return a .. ":" .. named.b end)
      local html = templates:render("a.html", { list = { 1, 2, 3 }, n = 10, f = 0.5, map = { a = { b = "c" } } })
      test.equal(tostring(html), "3 10 0.5 c 1:2 no")
    end)
end)

test("a table that contains itself is refused", function()
  with({ ["a.html"] = "" }, function(_, templates)
    local circle = {}
    circle.x = circle
    test.fails(function() templates:render("a.html", circle) end, "nested deeper")
  end)
end)

test("in development a changed template is read again, else it is kept", function()
  local dir = directory({ ["a.html"] = "1" })
  local fresh, kept = native.templates(dir, true), native.templates(dir, false)
  test.equal({ tostring(fresh:render("a.html", {})), tostring(kept:render("a.html", {})) }, { "1", "1" })
  local file = assert(io.open(dir .. "/a.html", "w"))
  file:write("2")
  file:close()
  test.equal({ tostring(fresh:render("a.html", {})), tostring(kept:render("a.html", {})) }, { "2", "1" })
  os.execute("rm -rf " .. dir)
end)

test("an application gives its templates url_for and static_url", function()
  local dir = directory({ ["a.html"] = "{{ url_for('post', year=2024, q='x') }} {{ url_for('post', 1) }} {{ static_url('a b.css') }} {{ title }}" })
  local app = prony.application({ templates = dir })
  app:global("title", "T")
  app:get("/{year:integer}", function() return app:render("a.html", {}, 201) end, "post")
  local answer = prony.client(app):get("/7")
  os.execute("rm -rf " .. dir)
  test.equal({ answer.status, answer.body }, { 201, "&#x2f;2024?q=x &#x2f;1 &#x2f;files&#x2f;a%20b.css T" })
end)
