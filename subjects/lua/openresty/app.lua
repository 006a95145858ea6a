--- What is answered at three paths: `/`, `/hello`, and `/mixed`, where one request in a hundred is slow.

local ffi = require("ffi")

ffi.cdef([[
int poll(void *files, unsigned long count, int timeout_ms);
]])

local SLOW_MS = 100

local app = {}

local function text(body)
    local method = ngx.req.get_method()
    if method ~= "GET" and method ~= "HEAD" then
        ngx.header.allow = "GET, HEAD"
        return ngx.exit(ngx.HTTP_NOT_ALLOWED)
    end
    ngx.header.content_type = "text/plain"
    ngx.header.content_length = #body
    ngx.print(body)
end

local mixed = 0

--- Blocks in every hundredth request of this process. Where it begins is drawn from the process id, so that workers,
-- whose ids follow one another, are not slow at the same time. (`ngx.sleep` would hold up nobody else.)
local function sometimes_slow()
    mixed = mixed + 1
    if (mixed + 37 * ngx.worker.pid()) % 100 == 0 then
        ffi.C.poll(nil, 0, SLOW_MS)
    end
end

function app.root()
    text("hello world")
end

function app.hello()
    text("Hello, World!")
end

function app.mixed()
    sometimes_slow()
    text("hello world")
end

return app
