-- issue: one flight: take numbers for many requests, each all or nothing, into one outbox entry.
-- KEYS[1] owner record          KEYS[2] outbox of the node
-- KEYS[3] list of the partition's idempotency records; their buckets have its key as prefix
-- KEYS[4..] counters; a request names them by their place in KEYS
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] incarnation
-- ARGV[4] node                  ARGV[5] flight number       ARGV[6] last confirmed flight
-- ARGV[7] digest of the flight  ARGV[8] '' or now, ms       ARGV[9] idempotency window, ms
-- ARGV[10] most idempotency records of the partition
-- ARGV[11] "whole": idempotency records hold the allocation itself | "place": where it is
-- ARGV[12] JSON of baskets, each what some requests take: [[{key, count, step, start?, max,
--   seen?}]]
-- ARGV[13] 35 bytes per request: place of its basket (2), 1: again + 2: asked + 4: once per
--   document (1), first half of the payload's digest (8), names of the caller's and of the
--   document's idempotency record (12 each; zeros if it has none)
-- ARGV[14] the requests' allocation records, one per line
-- Returns {"issued", echo, outcomes, idempotency records removed before their time}
--   | {"fenced", echo, epoch, reason} | {"barred", echo} | {"late", echo} | {"mismatch", echo}
--   | {"miscounted", echo}; an outcome is
--   values for what was taken now | {"nothing"} or what lib/repeated and lib/take return; values
--   are `counter id:first:last:step`, joined by commas
local owner_key, outbox_key, list_key = KEYS[1], KEYS[2], KEYS[3]
local echo, epoch, incarnation, node = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local flight, confirmed, digest = ARGV[5], ARGV[6], ARGV[7]
local now_ms, window_ms, records_max = clock(ARGV[8]), ARGV[9], tonumber(ARGV[10])

local baskets, marks = cjson.decode(ARGV[12]), ARGV[13]

local function key(place) return KEYS[place] end
local count, wrong = admitted(baskets, marks, key)
if wrong then return redis.error_reply('ERR issue: ' .. wrong) end

local refusal, executed, held = guard(
  echo, owner_key, outbox_key, epoch, incarnation, node, flight, confirmed, digest
)
if refusal then return refusal end
if executed then return {'issued', echo, completed(outbox_key, flight, count), '0'} end

local view = viewed(owner_key, list_key, epoch, now_ms, window_ms)
view.outboxes, view.texts = string.sub(outbox_key, 1, #outbox_key - #node), ARGV[14]

-- All requests are judged against working copies; nothing is written before the last is judged.
local counters, slots, noted = {}, view.slots, {}
local outcomes, taken, entry = {}, {}, {'epoch', epoch}
for i = 1, count do
  local basket, asks, payload, caller, document = marked(marks, i)
  local takes = baskets[basket]
  if not takes then return redis.error_reply('ERR issue: a request takes nothing') end
  local outcome, earlier = repeated(view, asks, payload, caller, document)
  if not outcome then
    local values
    outcome, values = take(counters, takes, epoch)
    if values then
      outcome = values
      taken[#taken + 1] = string.format('%d %s', i, values)
      earlier = {epoch = epoch, place = i, digest = payload, values = values}
      local slot = slots[document]
      if slot then slot.found, noted[#noted + 1] = earlier, slot end
    end
  elseif outcome[1] == 'ask' then
    outcome = cold(counters, takes, epoch) or outcome
  elseif outcome[1] == 'replayed' or outcome[1] == 'numbered' then
    -- A replay hands out a number, and so does a refusal that shows one: it goes into this node's
    -- outbox too (F2, F30).
    entry[#entry + 1] = decimal(i)
    entry[#entry + 1] = table.concat(outcome, ' ')
  end
  -- A replay found by the document still binds the caller's new key to its payload; the document's
  -- own record names its latest number and is not changed.
  local slot = earlier and slots[caller]
  if slot then slot.found, noted[#noted + 1] = earlier, slot end
  outcomes[i] = outcome
end

if #taken > 0 then
  local texts = view.texts
  -- A request that took nothing leaves an empty place: an outbox is as large as its contents.
  if #taken < count then texts = kept(view, outcomes) end
  for _, part in ipairs({'taken', table.concat(taken, '\n'), 'records', texts}) do
    entry[#entry + 1] = part
  end
end
-- First, because it alone can be refused (an id too small, no memory): then nothing is written.
if #entry > 2 then redis.call('XADD', outbox_key, flight .. '-0', unpack(entry)) end
for key, copy in pairs(counters) do
  if copy.value ~= copy.stored then
    local value = decimal(copy.value)
    redis.call('HSET', key, 'value', value, 'check', value)
  end
end
held = decimal(held + (#entry > 2 and 1 or 0))
redis.call('HSET', owner_key, 'f:' .. node, flight, 'd:' .. node, digest, 'n:' .. node, held)
dated(owner_key, view, now_ms, window_ms)
local whole = ARGV[11] == 'whole'
local shed = remember(owner_key, node, flight, view, noted, now_ms, window_ms, records_max, whole)
return {'issued', echo, outcomes, decimal(shed)}
