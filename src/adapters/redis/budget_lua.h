// What the store does, in its own language and in one piece, so that no other gateway comes
// between: the windows are moved on by the store's clock, dead gateways' reservations are counted
// as spent, and then one of three things is done for all windows of a request or for none.
// tests/end_to_end/gateway_budget_test.py runs this text against a real server.
//
// A window is a hash: step (the newest), spent (sum of s<slot>), reserved (sum of t<id>), x<id>
// ("tokens:step" of a reservation whose gateway did not renew it). Beside it a sorted set says when
// each t<id> runs out, and when each x<id> is no longer of any use.
#pragma once

#include <string_view>

namespace fullstop::adapters::redis {

inline constexpr std::string_view kBudgetLua = R"lua(
-- KEYS: for each window its hash and its sorted set.
-- ARGV: what (reserve, settle, renew), id, tokens reserved, lease in ms, tokens used, "add" or "skip" (settle of an unknown id),
--       then for each window its length in ms and its limit.
local STEPS = 60
local what, id = ARGV[1], ARGV[2]
local tokens, lease, used = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function slot(step) return 's' .. (step % STEPS) end

local function spend(w, step, amount)
    if amount == 0 then return end
    w.spent = w.spent + amount
    redis.call('HINCRBY', w.hash, slot(step), amount)
end

local function move_on(w)
    local to = math.max(w.newest, math.floor(now / w.step))
    for step = math.max(w.newest + 1, to - STEPS + 1), to do
        local old = redis.call('HGET', w.hash, slot(step))
        if old then
            w.spent = w.spent - tonumber(old)
            redis.call('HDEL', w.hash, slot(step))
        end
    end
    w.newest = to
end

-- At most so many in one go: those that are left still count as reserved.
local function expire(w)
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', w.leases, '-inf', now, 'LIMIT', 0, 200)) do
        redis.call('ZREM', w.leases, member)
        if string.sub(member, 1, 1) == 'x' then
            redis.call('HDEL', w.hash, member)
        else
            local held = tonumber(redis.call('HGET', w.hash, 't' .. member) or 0)
            redis.call('HDEL', w.hash, 't' .. member)
            w.reserved = w.reserved - held
            spend(w, w.newest, held)
            redis.call('HSET', w.hash, 'x' .. member, held .. ':' .. w.newest)
            redis.call('ZADD', w.leases, now + w.length, 'x' .. member)
        end
    end
end

local function open(i)
    local w = {hash = KEYS[2 * i - 1], leases = KEYS[2 * i], length = tonumber(ARGV[5 + 2 * i]), limit = tonumber(ARGV[6 + 2 * i])}
    w.step = math.max(1, math.floor(w.length / STEPS))
    local known = redis.call('HMGET', w.hash, 'step', 'spent', 'reserved')
    w.newest = tonumber(known[1] or math.floor(now / w.step))
    w.spent, w.reserved = tonumber(known[2] or 0), tonumber(known[3] or 0)
    move_on(w)
    expire(w)
    return w
end

-- How long until the tokens fit if nothing else starts; -1: never.
local function wait_of(w)
    local room = w.limit - w.reserved - w.spent
    if room >= tokens then return 0 end
    if tokens > w.limit then return -1 end
    for ahead = 1, STEPS do
        room = room + tonumber(redis.call('HGET', w.hash, slot(w.newest + ahead)) or 0)
        if room >= tokens then return math.max(1, w.step * (w.newest + ahead) - now) end
    end
    return w.length
end

local function hold(w)
    redis.call('HSET', w.hash, 't' .. id, tokens)
    redis.call('ZADD', w.leases, now + lease, id)
    w.reserved = w.reserved + tokens
end

local function settle(w)
    local held = redis.call('HGET', w.hash, 't' .. id)
    local lost = redis.call('HGET', w.hash, 'x' .. id)
    if held then
        redis.call('HDEL', w.hash, 't' .. id)
        redis.call('ZREM', w.leases, id)
        w.reserved = w.reserved - tonumber(held)
        spend(w, w.newest, used)
    elseif lost then
        local counted, step = string.match(lost, '^(%d+):(%d+)$')
        redis.call('HDEL', w.hash, 'x' .. id)
        redis.call('ZREM', w.leases, 'x' .. id)
        if tonumber(step) > w.newest - STEPS then spend(w, tonumber(step), used - tonumber(counted)) end
    elseif ARGV[6] == 'add' then
        spend(w, w.newest, used)
    end
end

local function renew(w)
    if redis.call('HEXISTS', w.hash, 't' .. id) == 1 then
        redis.call('ZADD', w.leases, now + lease, id)
    elseif redis.call('HEXISTS', w.hash, 'x' .. id) == 0 then
        hold(w)  -- the store has lost its memory
    end
end

local windows, reply = {}, {1}
for i = 1, #KEYS / 2 do windows[i] = open(i) end

if what == 'reserve' then
    -- Asked again after a lost reply, it is granted already.
    if redis.call('HEXISTS', windows[1].hash, 't' .. id) == 0 then
        local longest = 0
        for i, w in ipairs(windows) do
            local wait = wait_of(w)
            if wait ~= 0 and longest ~= -1 and (wait == -1 or wait > longest) then
                longest = wait
                reply = {0, i, math.max(0, w.limit - w.reserved - w.spent), wait}
            end
        end
        if reply[1] == 1 then
            for _, w in ipairs(windows) do hold(w) end
        end
    end
elseif what == 'settle' then
    for _, w in ipairs(windows) do settle(w) end
elseif what == 'renew' then
    for _, w in ipairs(windows) do renew(w) end
else
    return redis.error_reply('ERR unknown budget operation')
end

for _, w in ipairs(windows) do
    redis.call('HSET', w.hash, 'step', w.newest, 'spent', w.spent, 'reserved', w.reserved)
    redis.call('PEXPIRE', w.hash, w.length + 2 * lease)
    redis.call('PEXPIRE', w.leases, w.length + 2 * lease)
end
return reply
)lua";

}  // namespace fullstop::adapters::redis
