-- Takes one permit. KEYS[1]: the count. ARGV: the kind, the permits, the window or period in ms, and of a sliding
-- window the segments, of a bucket the tokens of a period. Returns 1 if it was there, the permits left, and ms until
-- there are more.
-- The clock is that of Redis, so that all gateways have the same.
local key, kind, most, span = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if kind == 'fixed' then
  local used = tonumber(redis.call('GET', key) or '0')
  if used >= most then
    return {0, 0, redis.call('PTTL', key)}
  end
  used = redis.call('INCR', key)
  if used == 1 then
    redis.call('PEXPIRE', key, span)
  end
  return {1, most - used, redis.call('PTTL', key)}
end
local all = redis.call('HGETALL', key)
if kind == 'sliding' then
  local segments = tonumber(ARGV[4])
  local length = span / segments
  local current = math.floor(now / length)
  local used, oldest = 0, current
  for i = 1, #all, 2 do
    local segment = tonumber(all[i])
    if segment <= current - segments then
      redis.call('HDEL', key, all[i])
    else
      used = used + all[i + 1]
      oldest = math.min(oldest, segment)
    end
  end
  local passes = used < most
  if passes then
    redis.call('HINCRBY', key, current, 1)
    redis.call('PEXPIRE', key, math.ceil(span + length))
    used = used + 1
  end
  return {passes and 1 or 0, most - used, math.ceil((oldest + segments) * length - now)}
end
local left, filled = most, now
for i = 1, #all, 2 do
  if all[i] == 'left' then left = tonumber(all[i + 1]) else filled = tonumber(all[i + 1]) end
end
local each = tonumber(ARGV[4])
-- A clock that was set back adds nothing.
local periods = math.max(0, math.floor((now - filled) / span))
left = math.min(most, left + periods * each)
filled = filled + periods * span
if left >= most then
  filled = now
end
local passes = left >= 1
if passes then
  left = left - 1
  redis.call('HSET', key, 'left', left, 'filled', filled)
  redis.call('PEXPIRE', key, math.ceil(most / each) * span + span)
end
return {passes and 1 or 0, left, filled + span - now}
