-- What a script finds beside Lua's own library: the table `wrk`, threads, addresses, statistics.
local native, given = ...
-- Elsewhere a compiled loop could not be ended from outside.
if not given.compiles then jit.off() end
debug.getregistry = nil
local type, pairs, tostring, error, getinfo = type, pairs, tostring, error, debug.getinfo
local concat, length, proxy, meta_of = table.concat, string.len, newproxy, getmetatable

local wrk = { scheme = given.scheme, host = given.host, port = given.port, method = given.method, path = given.path,
    headers = given.headers, body = given.body }
_G.wrk, package.loaded.wrk = wrk, wrk
if given.is_quiet then
    io.stdout = io.stderr
    io.output(io.stderr)
    print = function(...)
        local parts = { ... }
        for at = 1, select("#", ...) do parts[at] = tostring(parts[at]) end
        io.stderr:write(concat(parts, "\t"), "\n")
    end
end
os.exit = function(code) native("exit", type(code) == "number" and code or 0) end

local texts = setmetatable({}, { __mode = "k" })
local function address(text)
    local made = proxy(true)
    meta_of(made).__tostring = function() return text end
    texts[made] = text
    return made
end

function wrk.lookup(host, service)
    local found = native("lookup", host, service)
    for at = 1, #found do found[at] = address(found[at]) end
    return found
end

function wrk.connect(to)
    return native("connect", texts[to] or error("an address of wrk.lookup is expected", 2))
end

wrk.addrs = given.addresses
for at = 1, #wrk.addrs do wrk.addrs[at] = address(wrk.addrs[at]) end

-- Thread `number`, for the state that sets threads up, or for the thread itself.
local function thread(number, is_own)
    local made = proxy(true)
    local meta, methods = meta_of(made), {}
    function methods.get(_, name)
        if is_own then return _G[name] end
        return native("get", number, name)
    end
    function methods.set(_, name, value)
        if is_own then _G[name] = value else native("set", number, name, value) end
    end
    function methods.stop() native("stop", number) end
    meta.__index = function(_, key)
        if key == "addr" then return address(native("address", number)) end
        return methods[key]
    end
    meta.__newindex = function(_, key, value)
        if key ~= "addr" then error("cannot set '" .. tostring(key) .. "' on a thread", 2) end
        native("move", number, texts[value] or error("an address of wrk.lookup is expected", 2))
    end
    return made
end

-- The header lines that were written last, and of what.
local names, values, count, block = {}, {}, -1, ""
local function written(value) return type(value) == "string" and value or tostring(value) end
local function lines(headers)
    local at, same = 0, true
    for name, value in pairs(headers) do
        at = at + 1
        if names[at] ~= name or values[at] ~= value then same = false break end
    end
    if same and at == count then return block end
    local parts = {}
    at = 0
    for name, value in pairs(headers) do
        at = at + 1
        names[at], values[at] = name, value
        parts[at] = written(name) .. ": " .. written(value) .. "\r\n"
    end
    count, block = at, concat(parts)
    return block
end

function wrk.format(method, path, headers, body)
    headers, body = headers or wrk.headers, body or wrk.body
    if not headers.Host then headers.Host = wrk.headers.Host end
    headers["Content-Length"] = body and length(body)
    return written(method or wrk.method) .. " " .. written(path or wrk.path) .. " HTTP/1.1\r\n" .. lines(headers) .. "\r\n" .. (body or "")
end

local function stats(figures)
    local at, counts, total = figures.values, figures.counts, 0
    for i = 1, #counts do total = total + counts[i] end
    local made = proxy(true)
    local meta = meta_of(made)
    local fields = { min = figures.min, max = figures.max, mean = figures.mean, stdev = figures.stdev }
    function fields.percentile(_, part)
        if type(part) ~= "number" then error("a percentile is a number", 2) end
        local rank, sum = math.floor(part / 100 * total + 1), 0
        for i = 1, #at do
            sum = sum + counts[i]
            if sum >= rank then return at[i] end
        end
        return at[#at] or 0
    end
    meta.__index = fields
    meta.__len = function() return #at end
    meta.__call = function(_, i) return at[i] or 0, counts[i] or 0 end
    return made
end

local own = {}
function own.setup(number) if type(setup) == "function" then setup(thread(number, false)) end end
function own.init(number, args)
    wrk.thread = thread(number, true)
    if not wrk.headers.Host then wrk.headers.Host = given.authority end
    local list = { [0] = given.url }
    for at = 1, #args do list[at] = args[at] end
    if type(init) == "function" then init(list) end
    local made = wrk.format()
    wrk.request = function() return made end
end
function own.has(name) return type(_G[name]) == "function" end
function own.wants(of)
    local info = getinfo(of, "u")
    return (info.isvararg or not info.nparams) and 3 or info.nparams
end
function own.request() return (request or wrk.request)() end
function own.delay() return delay() end
function own.done(summary, latency, requests)
    if type(done) == "function" then done(summary, stats(latency), stats(requests)) end
end
function own.handler(wrong)
    local text = type(wrong) == "string" and wrong or "it raised a " .. type(wrong)
    text = text:gsub("^prony:%d+: ", "")
    if text:find("^[^\n]-:%d+: ") then return text end
    for level = 2, 100 do
        local info = getinfo(level, "Sl")
        if not info then break end
        if info.currentline > 0 and info.source:sub(1, 1) == "@" then return info.short_src .. ":" .. info.currentline .. ": " .. text end
    end
    return text
end
return own
