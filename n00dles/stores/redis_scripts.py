"""The steps that the server takes whole, in Lua: nothing of one is seen before the rest, also after a kill.

No script reads a value: texts are compared and moved as they are, since a number that passes through Lua comes back as
a double. All keys of a script share a hash tag, so that each script runs on one node of a cluster.

Keys of a run: the run (a hash), its lease (a hash), and for each status an index (a sorted set of names, by the time
of the last save).
"""

from __future__ import annotations

from hashlib import sha1

__all__ = ["ACQUIRE", "CLAIM", "CREATE", "DELETE", "FIND", "RELEASE", "RENEW", "SAVE", "TAKES_WRITES", "Script"]


class Script:
    """A script, and the name under which a server keeps it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha = sha1(text.encode()).hexdigest()  # noqa: S324 - the name that the server gives it


# Does nothing, but a server that takes no writes, a replica for example, refuses it before it runs, since it might
# write. One whose memory is full runs it.
TAKES_WRITES = Script("#!lua flags=allow-oom\nreturn 1")

# In a script, ARGV[n] onwards are pairs of field and value.
_PUT = """
for i = first, #ARGV, 2 do
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
"""

# Runs lie in an index by when they were saved, by the clock of the server: those of its clients do not agree.
_SCORE = """
local time = redis.call('TIME')
local score = time[1] + time[2] / 1000000
"""

# KEYS: run, index of its status, the other indexes. ARGV: name, the head, then pairs, of which one is the head.
# Returns 'created', 'there', or 'damaged' (it is in an index, or has a key, and no head). A creation that is sent again
# finds its own head.
CREATE = Script(
    """
local head = redis.call('HGET', KEYS[1], 'head')
if head then
    return head == ARGV[2] and 'created' or 'there'
end
if redis.call('EXISTS', KEYS[1]) == 1 then
    return 'damaged'
end
for i = 2, #KEYS do
    if redis.call('ZSCORE', KEYS[i], ARGV[1]) then
        return 'damaged'
    end
end
local first = 3
"""
    + _PUT
    + _SCORE
    + """
redis.call('ZADD', KEYS[2], score, ARGV[1])
return 'created'
"""
)

# KEYS: run, index of its status now, and of its status before if that is another. ARGV: name, the head that this save
# continues, its own head, then pairs. Returns nothing, or the head that is in the way ('' for none). A save that is
# sent again finds its own head. Nearly every save has one pair, which goes in one command with the head; of several
# each has its own command, since Lua cannot unpack thousands.
SAVE = Script(
    """
local head = redis.call('HGET', KEYS[1], 'head')
if head == ARGV[3] then
    return false
end
if head ~= ARGV[2] then
    return head or ''
end
local first = 4
if #ARGV == 5 then
    redis.call('HSET', KEYS[1], ARGV[4], ARGV[5], 'head', ARGV[3])
else
"""
    + _PUT
    + """
    redis.call('HSET', KEYS[1], 'head', ARGV[3])
end
"""
    + _SCORE
    + """
redis.call('ZADD', KEYS[2], score, ARGV[1])
if KEYS[3] then
    redis.call('ZREM', KEYS[3], ARGV[1])
end
return false
"""
)

# KEYS: index. ARGV: seconds. Returns the names of the runs that were last saved longer ago.
OLDER = Script(
    """
local time = redis.call('TIME')
local limit = time[1] + time[2] / 1000000 - ARGV[1]
return redis.call('ZRANGE', KEYS[1], '-inf', string.format('(%.6f', limit), 'BYSCORE')
"""
)

# KEYS: run, indexes. ARGV: name. Returns 1 if the run is in an index and has no key.
FIND = Script(
    """
if redis.call('EXISTS', KEYS[1]) == 1 then
    return 0
end
for i = 2, #KEYS do
    if redis.call('ZSCORE', KEYS[i], ARGV[1]) then
        return 1
    end
end
return 0
"""
)

# KEYS: run, lease, indexes. ARGV: name, and the head that must be there, or '' for whatever is.
DELETE = Script(
    """
if ARGV[2] ~= '' and redis.call('HGET', KEYS[1], 'head') ~= ARGV[2] then
    return 0
end
redis.call('DEL', KEYS[1], KEYS[2])
for i = 3, #KEYS do
    redis.call('ZREM', KEYS[i], ARGV[1])
end
return 1
"""
)

# A lease is kept for a while after its end, so that its holder may renew it as long as nobody else has had the run.
# Times are milliseconds of the server's clock, and stay exact in a double.
_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

# KEYS: lease. ARGV: token, its length, how long it is kept after that, the lease, and a token whose holder is dead, or
# ''. Returns nothing, or the lease that is in the way and how long it still lasts.
_ACQUIRE = (
    _NOW
    + """
local held = redis.call('HMGET', KEYS[1], 'token', 'until', 'lease')
if held[1] and held[1] ~= ARGV[1] and held[1] ~= ARGV[5] and tonumber(held[2]) > now then
    return {held[3], string.format('%.0f', tonumber(held[2]) - now)}
end
local last = now + ARGV[2]
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'lease', ARGV[4], 'until', string.format('%.0f', last))
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last + ARGV[3]))
return false
"""
)

ACQUIRE = Script(_ACQUIRE)

# The same for a run that still is as it was found. KEYS: lease, run. ARGV: as above, and the head that was found.
# Returns nothing, or what is in the way ('' for another head).
CLAIM = Script(
    """
if redis.call('HGET', KEYS[2], 'head') ~= ARGV[6] then
    return ''
end
"""
    + _ACQUIRE
)

# KEYS: lease. ARGV: token, its length, how long it is kept after that. Returns nothing, or what is held instead ('' for
# nothing).
RENEW = Script(
    """
local held = redis.call('HMGET', KEYS[1], 'token', 'lease')
if held[1] ~= ARGV[1] then
    return held[2] or ''
end
"""
    + _NOW
    + """
local last = now + ARGV[2]
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', last))
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last + ARGV[3]))
return false
"""
)

# KEYS: lease. ARGV: token.
RELEASE = Script(
    """
if redis.call('HGET', KEYS[1], 'token') == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
"""
)
