-- What wrk knows at its end, as one line of JSON for translate.py. A script with nothing but `done` leaves
-- wrk's requests as they are: it is neither asked for a request nor shown an answer.
--
-- wrk 4 "corrects" its latencies at the end: for each one longer than twice the usual interval it adds made-up
-- shorter ones, as if requests had been due at a constant rate. In a closed loop none were due, and the mean then says
-- that more requests were under way than there are connections. The correction adds each value v, e lower at each step
-- while above e, so it is taken out exactly by subtracting from the count at v (> e) the one at v + e.

local ffi = require("ffi")
ffi.cdef [[ typedef struct { uint64_t count, limit, min, max; uint64_t data[1]; } prony_wrk_stats; ]]

-- Values in us and how many of each, rising, as they were measured.
local function measured(latency, interval)
  local stats = ffi.cast("prony_wrk_stats **", latency)[0]
  local max, values = tonumber(stats.max), {}
  if max ~= latency.max or max >= tonumber(stats.limit) then return values end
  for value = tonumber(stats.min), max do
    local count = tonumber(stats.data[value])
    if interval and value > interval and value + interval <= max then
      count = count - tonumber(stats.data[value + interval])
    end
    if count ~= 0 then values[#values + 1] = { value, count } end
  end
  return values
end

local function total(values)
  local sum = 0
  for _, entry in ipairs(values) do sum = sum + entry[2] end
  return sum
end

local function percentile(values, count, p)
  local rank, seen = math.max(1, math.ceil(count * p / 100)), 0
  for _, entry in ipairs(values) do
    seen = seen + entry[2]
    if seen >= rank then return entry[1] end
  end
  return 0
end

-- The same values as an object, in ns; nil if there is nothing.
local function described(values)
  local count, sum, squares = total(values), 0, 0
  if count == 0 then return nil end
  for _, entry in ipairs(values) do sum = sum + entry[1] * entry[2] end
  local mean = sum / count
  for _, entry in ipairs(values) do squares = squares + (entry[1] - mean) ^ 2 * entry[2] end
  local fields = {
    string.format('"count":%d,"min":%d,"max":%d', count, values[1][1] * 1000, values[#values][1] * 1000),
    string.format('"mean":%.3f,"stdev":%.3f', mean * 1000, math.sqrt(squares / count) * 1000),
  }
  for name, p in pairs({ p50 = 50, p75 = 75, p90 = 90, p99 = 99, p99_9 = 99.9, p99_99 = 99.99 }) do
    fields[#fields + 1] = string.format('"%s":%d', name, percentile(values, count, p) * 1000)
  end
  return "{" .. table.concat(fields, ",") .. "}"
end

function done(summary, latency, requests)
  local errors = summary.errors
  local each = math.floor(summary.requests / tonumber(os.getenv("CONNECTIONS")))
  local values = measured(latency, each > 0 and math.floor(summary.duration / each) or nil)
  -- Latencies above the time-out of 2 s are counted and not recorded. If the sum is another, this wrk keeps its
  -- latencies or corrects them in another way than is undone here: then none are told.
  local known = total(values) == summary.requests - errors.timeout
  print(string.format(
    '{"wrk":{"duration_us":%d,"requests":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,"latency":%s}}',
    summary.duration, summary.requests, summary.bytes, errors.connect, errors.read, errors.write, errors.status,
    errors.timeout, known and described(values) or "null"))
end
