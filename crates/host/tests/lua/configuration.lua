--- Settings: defaults, the file above them, the environment above that; errors with places.

local config = require("prony.config")
local test = require("prony.test")

local function load(text, defaults, environment)
  local file = os.tmpname()
  local handle = assert(io.open(file, "w"))
  handle:write(text)
  handle:close()
  local fine, result = pcall(config.load, file, defaults, {
    getenv = function(name) return (environment or {})[name] end,
  })
  os.remove(file)
  if not fine then
    error((tostring(result):gsub(file:gsub("%p", "%%%0"), "FILE")), 0)
  end
  return result
end

local defaults = { title = "T", port = 80, debug = false, hosts = { "a" }, database = { path = "x", pool = { size = 4 } } }

test("the environment is above the file, the file above the defaults", function()
  local found = load('title = "F"\nport = 0x10\n[database.pool]\nsize = 5', defaults, {
    PRONY_APP_TITLE = "E", PRONY_APP_DATABASE_PATH = "y", PRONY_APP_DEBUG = "true", PRONY_APP_HOSTS = "b, c",
  })
  test.equal(found, { title = "E", port = 16, debug = true, hosts = { "b", "c" }, database = { path = "y", pool = { size = 5 } } })
end)

test("what the file says to the host is none of the application's settings", function()
  local settings = { a = 1 }
  test.equal(load('a = 2\n[host]\nlua = "5.4"', settings), { a = 2 })
  test.fails(function() load('[host]\nlua = "5.4"\nname = "x"', settings) end, "FILE:1: there is no setting `host`")
  local own = { host = { name = "", lua = "" } }
  test.equal(load('[host]\nlua = "5.4"\nname = "x"', own), { host = { name = "x", lua = "5.4" } })
  test.equal(load('[host]\nlua = "5.4"\nname = "x"', { host = { name = "" } }), { host = { name = "x" } })
  test.equal(load('host = "example.org"', { host = "" }), { host = "example.org" })
end)

test("no file is no error", function()
  test.equal(config.load("/nowhere/config.toml", { a = 1 }, { getenv = function() end }), { a = 1 })
end)

test("errors name file, line and what would be right", function()
  local function fails(text, said, environment)
    test.fails(function() load(text, defaults, environment) end, said)
  end
  fails("\n\ntitel = 1", "FILE:3: there is no setting `titel`; known are database, debug, hosts, port, title")
  fails("\nport = \"80\"", "FILE:2: `port` has to be a number, not a string")
  fails("[database]\npath = 1", "FILE:2: `database.path` has to be a string, not a number")
  fails("database = 1", "FILE:1: `database` is a section: write [database]")
  fails("a = 1\nb = = 2", "FILE:2: ")
  fails("", "PRONY_APP_PORT=x has to be a number", { PRONY_APP_PORT = "x" })
  fails("", "PRONY_APP_DEBUG=maybe has to be a boolean", { PRONY_APP_DEBUG = "maybe" })
  fails("port = 99999999999999999999", "FILE:1: ")
end)

test("a required setting may come from either, and is missed by name", function()
  local needed = { key = config.required("string"), section = { n = config.required("number") } }
  test.equal(load('key = "k"\n[section]\nn = 1', needed), { key = "k", section = { n = 1 } })
  test.equal(load('key = "k"', needed, { PRONY_APP_SECTION_N = "2" }).section.n, 2)
  test.fails(function() load("[section]\nn = 1", needed) end, "the setting `key` is missing; write it there, or set PRONY_APP_KEY")
end)
