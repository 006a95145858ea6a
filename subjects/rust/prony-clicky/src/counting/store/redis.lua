-- Keeps a batch of clicks, once, and answers with the totals.
--
-- KEYS: the root counter, a hash of the others, a hash of floors, the epoch, the number of
--       this instance's last batch
-- ARGV: the run id of this server, the epoch that the instance knows, a name for a new one,
--       the batch's number, how many floors follow or -1; floors as pairs of name and total;
--       clicks as pairs of name and number
--
-- An epoch is a time in which the server has forgotten nothing: it ends when the server is
-- started anew, is another one, or is emptied. The answer begins with "again" when the
-- instance must tell its floors first, else with "before" when the batch was kept earlier,
-- or "now"; then come the epoch and the totals.
--
-- Redis takes nothing back when a script fails half way, so everything is read, and found to
-- be what it should be, before anything is written.

local function total(name)
  if name == '' then
    return redis.call('GET', KEYS[1])
  end
  return redis.call('HGET', KEYS[2], name)
end

local function raise(name, by)
  if name == '' then
    redis.call('INCRBY', KEYS[1], by)
  else
    redis.call('HINCRBY', KEYS[2], name, by)
  end
end

local floors = tonumber(ARGV[5])
local first_click = 6 + 2 * math.max(floors, 0)
for i = 6, #ARGV, 2 do
  local there = total(ARGV[i])
  -- Beyond 2^63 the server would refuse to add, in the midst of the batch.
  if there and (not string.match(there, '^%d+$') or #there > 19
      or (#there == 19 and there > '9000000000000000000')) then
    return redis.error_reply('NOTACOUNT what is kept for "' .. ARGV[i] .. '" is no count')
  end
end
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
local last = redis.call('GET', KEYS[5])
local epoch = redis.call('GET', KEYS[4])
local is_new = not epoch or string.sub(epoch, 1, #ARGV[1]) ~= ARGV[1]
if floors < 0 and (is_new or epoch ~= ARGV[2]) then
  return {'again'}
end

-- What the server has at the beginning of an epoch may be old. It is from here that the
-- floors raise it.
if is_new then
  epoch = ARGV[3]
  redis.call('SET', KEYS[4], epoch)
  redis.call('DEL', KEYS[3])
  local root = total('')
  if root then
    redis.call('HSET', KEYS[3], '', root)
  end
  local others = redis.call('HGETALL', KEYS[2])
  for i = 1, #others, 2 do
    redis.call('HSET', KEYS[3], others[i], others[i + 1])
  end
end

-- A floor is a total that an instance saw in an earlier epoch. The highest one is right: it has all that
-- was kept until then. Clicks that were added here since stay on top of it.
for i = 6, first_click - 1, 2 do
  local name, floor = ARGV[i], tonumber(ARGV[i + 1])
  local base = tonumber(redis.call('HGET', KEYS[3], name) or '0')
  if floor > base then
    raise(name, string.format('%.0f', floor - base))
    redis.call('HSET', KEYS[3], name, ARGV[i + 1])
  end
end

local answer = {'now', epoch}
if last and tonumber(last) >= tonumber(ARGV[4]) then
  answer[1] = 'before'
elseif first_click < #ARGV then
  for i = first_click, #ARGV, 2 do
    raise(ARGV[i], ARGV[i + 1])
  end
  redis.call('SET', KEYS[5], ARGV[4], 'EX', 86400)
end
for i = first_click, #ARGV, 2 do
  answer[#answer + 1] = total(ARGV[i]) or '0'
end
return answer
