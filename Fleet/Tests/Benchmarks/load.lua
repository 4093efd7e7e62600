-- For wrk: sends each of the requests that a file has, once. They are separated by a line of "--".
--     wrk … -s load.lua URL -- FILE THREADS
-- Ends with one line of JSON.

local number = 0

function setup(thread)
  thread:set("own", number)
  number = number + 1
end

function init(arguments)
  requests, sent = {}, 0
  local file = assert(io.open(arguments[1], "rb"))
  local threads, index = tonumber(arguments[2]), 0
  for text in file:read("*a"):gmatch("(.-)\n%-%-\n") do
    if index % threads == own then requests[#requests + 1] = text end
    index = index + 1
  end
  file:close()
end

function request()
  sent = sent + 1
  -- A request that comes twice is refused, and so shows.
  return requests[sent] or requests[#requests]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"us":%d,"p50":%d,"p99":%d,"refused":%d,"lost":%d}\n', summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
