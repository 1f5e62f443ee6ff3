-- Has wrk send the plays or lookups of an audience, and print what it measured as a line of JSON.
-- Arguments: play, plays or lookup; videos; viewers of each; plays in one request
local requests, sent = {}, 0

local function message(method, path, body)
  return method .. ' ' .. path .. ' HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n' ..
    'Content-Length: ' .. #body .. '\r\n\r\n' .. body
end

-- All requests are made before the first is sent: making them would take longer than sending.
function init(args)
  local kind, videos, viewers, size = args[1], tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
  local function video(k) return string.format('%d', 10000000 + k % videos) end
  local function viewer(k) return string.format('u%d', 1000000000 + k % videos * viewers + math.floor(k / videos)) end
  local total = kind == 'lookup' and videos or videos * viewers
  for first = 0, total - 1, size do
    local request
    if kind == 'lookup' then
      request = message('GET', '/v1/videos/' .. video(first) .. '/viewers', '')
    elseif kind == 'play' then
      request = message('POST', '/v1/videos/' .. video(first) .. '/play', '{"viewer_id":"' .. viewer(first) .. '"}')
    else
      local plays = {}
      for k = first, math.min(first + size, total) - 1 do
        plays[#plays + 1] = '{"video_id":"' .. video(k) .. '","viewer_id":"' .. viewer(k) .. '"}'
      end
      request = message('POST', '/v1/plays', '{"plays":[' .. table.concat(plays, ',') .. ']}')
    end
    requests[#requests + 1] = request
  end
end

function request()
  sent = sent % #requests + 1
  return requests[sent]
end

-- Times are in microseconds.
function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"duration":%d,"refused":%d,"failed":%d,"p50":%d,"p99":%d,"p999":%d}\n',
    summary.requests, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
