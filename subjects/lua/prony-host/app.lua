--- An application that answers three paths: `/`, `/hello`, and `/mixed`, where one request in a hundred is slow.

local ffi = require("ffi")

ffi.cdef([[
int getpid(void);
int poll(void *files, unsigned long count, int timeout_ms);
]])

local SLOW_MS = 100

local function answer(environ, start_response, status, body, allow)
    start_response(status, {
        { "Content-Type", "text/plain" },
        { "Content-Length", tostring(#body) },
        allow,
    })
    if environ.REQUEST_METHOD == "HEAD" then
        return {}
    end
    return { body }
end

local mixed = 0

--- Blocks in every hundredth request of this process. Where it begins is drawn from the process id, so that workers,
-- whose ids follow one another, are not slow at the same time.
local function sometimes_slow()
    mixed = mixed + 1
    if (mixed + 37 * ffi.C.getpid()) % 100 == 0 then
        ffi.C.poll(nil, 0, SLOW_MS)
    end
end

local pages = { ["/"] = "hello world", ["/hello"] = "Hello, World!", ["/mixed"] = "hello world" }

local function app(environ, start_response)
    local body = pages[environ.PATH_INFO]
    if not body then
        return answer(environ, start_response, "404 Not Found", "no such page\n")
    end
    local method = environ.REQUEST_METHOD
    if method ~= "GET" and method ~= "HEAD" then
        return answer(environ, start_response, "405 Method Not Allowed", "GET or HEAD\n", { "Allow", "GET, HEAD" })
    end
    if environ.PATH_INFO == "/mixed" then
        sometimes_slow()
    end
    return answer(environ, start_response, "200 OK", body)
end

return { app = app }
