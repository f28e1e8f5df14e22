-- SPDX-License-Identifier: Apache-2.0
--
-- This is the Wireshark dissector for xdpfab, version 1 of docs/wire-format.md. To install it, copy
-- it into the folder "Personal Lua Plugins", which Wireshark shows under Help, About, Folders. To
-- use it once:
--
--     tshark -X lua_script:tools/wireshark/xdpfab.lua -r FILE -Y xdpfab
--
-- Useful filters: xdpfab.stream is the number of a session, counted from its hello or first frame;
-- xdpfab.error selects refusals, with their reasons; xdpfab.checksum.bad selects damaged frames.

local bits = bit or bit32
local band, bxor, rshift = bits.band, bits.bxor, bits.rshift

local ETHERTYPE, UDP_PORT, HEADER, MIN_FRAME = 0x88b5, 34997, 34, 46

local types = { "hello", "hello-ack", "request", "response", "ack", "nak", "reset", "probe", "tickets" }
local verbs = {
  [0x01] = "atomic", [0x02] = "fetch", [0x03] = "compare", [0x04] = "waiting compare", [0x10] = "read", [0x11] = "write",
  [0x12] = "write with a signal", [0x20] = "send", [0x21] = "tagged send", [0x22] = "part", [0x23] = "call",
  [0x31] = "tagged atomic", [0x32] = "tagged fetch", [0x33] = "tagged compare", [0x40] = "lookup", [0x41] = "list", [0x50] = "notice",
}
local ops = { [0] = "min", "max", "sum", "prod", "lor", "land", "bor", "band", "lxor", "bxor", "read", "write",
  "cswap", "cswap_ne", "cswap_le", "cswap_lt", "cswap_ge", "cswap_gt", "mswap", "diff",
  [32] = "sum_at_most", [33] = "diff_at_least", [34] = "sum_sat", [35] = "diff_sat", [36] = "msum" }
local datatypes = { [0] = "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float", "double",
  "float_complex", "double_complex", "long_double", "long_double_complex", "int128", "uint128", "float16", "bfloat16",
  "float8_e4m3", "float8_e5m2" }
local sizes = { [0] = 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16, 32, 16, 16, 2, 2, 1, 1 }
local statuses = { "no such key", "no access", "out of bounds", "misaligned", "unsupported", "bad count", "not found",
  "not executed", "stale incarnation", "no room" }
local hello_statuses = { [0] = "accepted", "cookie challenge", "no such endpoint", "full", "version not supported",
  "shutting down", "outdated", "key wanted", "key not wanted", "wrong key", "connection request waits",
  "connection accepted", "connection rejected" }
local reset_reasons = { "unknown session", "closed", "shutting down", "out of window" }
local ticket_kinds = { "ask", "cancel", "taken", "parked", "ran", "late", "cancelled", "closed", "full", "gone" }
local options = { "class", "proof", "connection", "resident" }

local xdpfab = Proto("xdpfab", "xdpfab remote atomics")

local f = {}
local function field(name, kind, label, ...)
  f[name] = ProtoField[kind]("xdpfab." .. name, label, ...)
end
field("version", "uint8", "Version", base.DEC)
field("type", "uint8", "Type", base.DEC, types)
field("flags", "uint8", "Flags", base.HEX)
field("flags.retx", "bool", "Sent before", 8, nil, 0x02)
field("flags.busy", "bool", "Next request waits", 8, nil, 0x10)
field("session", "uint32", "Session", base.HEX)
field("session.lane", "uint8", "Lane", base.DEC)
field("session.queue", "uint8", "Queue", base.DEC)
field("session.index", "uint16", "Index", base.DEC)
field("epoch", "uint32", "Epoch", base.HEX)
field("psn", "uint32", "PSN", base.DEC)
field("ack", "uint32", "Ack", base.DEC)
field("sack", "uint64", "Sack", base.HEX)
field("rider.session", "uint32", "Rider's session", base.HEX)
field("rider.psn", "uint32", "Rider's PSN", base.DEC)
field("credit", "uint16", "Credit", base.DEC)
field("ops", "uint8", "Operations", base.DEC)
field("lane", "uint8", "Sender's lane", base.DEC)
field("checksum", "uint32", "Checksum", base.HEX)
field("checksum.bad", "bool", "Checksum is wrong")
field("padding", "bytes", "Padding")
field("stream", "uint32", "Session number", base.DEC)
field("request_in", "framenum", "Request in", base.NONE, frametype.REQUEST)
field("response_in", "framenum", "Answer in", base.NONE, frametype.RESPONSE)
field("time", "relative_time", "Time since the request")
field("again", "framenum", "First sent in", base.NONE, frametype.RETRANS_PREV)
field("error", "string", "Error")
-- hello, hello-ack, reset
field("nonce", "uint64", "Nonce", base.HEX)
field("own_session", "uint32", "Sender's session", base.HEX)
field("endpoint", "uint16", "Endpoint", base.DEC)
field("hello_status", "uint16", "Status", base.DEC, hello_statuses)
field("max_frame", "uint16", "Largest frame", base.DEC)
field("window", "uint16", "Window", base.DEC)
field("keep", "uint16", "Keep, seconds", base.DEC)
field("features", "uint32", "Features", base.HEX)
field("cookie", "bytes", "Cookie")
field("former_session", "uint32", "Former session", base.HEX)
field("former_epoch", "uint32", "Former epoch", base.HEX)
field("former_psn", "uint32", "Former PSN", base.DEC)
field("origin", "uint64", "Origin", base.HEX)
field("life", "uint64", "Life", base.HEX)
field("serial", "uint32", "Serial", base.DEC)
field("lost", "uint32", "Answers lost", base.DEC)
field("option", "uint8", "Option", base.DEC, options)
field("option.data", "bytes", "Value")
field("remainder", "bytes", "Remainder")
field("reset_session", "uint32", "Target's session", base.HEX)
field("reset_psn", "uint32", "First PSN that never runs", base.DEC)
field("reset_reason", "uint32", "Reason", base.DEC, reset_reasons)
-- records
field("record", "bytes", "Record")
field("verb", "uint8", "Verb", base.HEX, verbs)
field("op", "uint8", "Operation", base.DEC, ops)
field("datatype", "uint8", "Datatype", base.DEC, datatypes)
field("record_flags", "uint8", "Flags", base.HEX)
field("key", "uint64", "Key", base.HEX)
field("incarnation", "uint32", "Incarnation", base.HEX)
field("run", "uint32", "Operations of the run", base.DEC)
field("offset", "uint64", "Offset", base.HEX)
field("count", "uint32", "Elements", base.DEC)
field("total", "uint32", "Elements to the end of the array", base.DEC)
field("most", "uint32", "Bytes of the reply that there is room for", base.DEC)
field("operand", "bytes", "Operand")
field("compare", "bytes", "Compare operand")
-- operations that wait
field("limit", "uint32", "Limit, microseconds", base.DEC)
field("ticket", "bytes", "Ticket")
field("ticket.psn", "uint32", "PSN of the request", base.DEC)
field("ticket.kind", "uint8", "Kind", base.DEC, ticket_kinds)
field("ticket.index", "uint8", "Record", base.DEC)
field("ticket.value", "uint64", "Value before", base.HEX)
-- the signal of a write
field("signal", "bytes", "Signal")
field("signal.key", "uint64", "Key", base.HEX)
field("signal.offset", "uint64", "Offset", base.HEX)
field("signal.operand", "uint64", "Operand", base.HEX)
field("signal.incarnation", "uint32", "Incarnation", base.HEX)
field("signal.op", "uint8", "Operation", base.DEC, ops)
field("signal.datatype", "uint8", "Datatype", base.DEC, datatypes)
-- messages
field("source", "uint16", "Source endpoint", base.DEC)
field("length", "uint64", "Length", base.DEC)
field("tag", "uint64", "Tag", base.HEX)
field("data", "uint64", "Remote CQ data", base.HEX)
field("part", "bytes", "Bytes of the message")
field("covers", "uint32", "Records of the operation", base.DEC)
field("name", "string", "Name")
field("ordinal", "uint32", "Ordinal", base.DEC)
-- responses
field("status", "uint8", "Status", base.DEC, statuses)
field("status.index", "uint8", "Index of the operation", base.DEC)
field("values", "bytes", "Values")

local list = {}
for _, x in pairs(f) do list[#list + 1] = x end
xdpfab.fields = list

local bad_checksum = ProtoExpert.new("xdpfab.expert.checksum", "The checksum is wrong", expert.group.CHECKSUM,
  expert.severity.ERROR)
local malformed = ProtoExpert.new("xdpfab.expert.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local refused = ProtoExpert.new("xdpfab.expert.refused", "Refused", expert.group.RESPONSE_CODE, expert.severity.WARN)
local again = ProtoExpert.new("xdpfab.expert.again", "Sent before", expert.group.SEQUENCE, expert.severity.NOTE)
xdpfab.experts = { bad_checksum, malformed, refused, again }

-- CRC32C, by a table for each byte.
local crc = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do
    if band(c, 1) == 1 then c = bxor(rshift(c, 1), 0x82f63b78) else c = rshift(c, 1) end
  end
  crc[i] = c
end

-- checksum is that of a frame of n bytes, whose own field, at 30, counts as zero.
local function checksum(tvb, n)
  local raw, c = tvb:raw(0, n), -1
  for i = 1, n do
    local x = raw:byte(i)
    if i > 30 and i <= 34 then x = 0 end
    c = bxor(rshift(c, 8), crc[band(bxor(c, x), 255)])
  end
  return bits.bnot(c) % 2 ^ 32
end

-- Sessions, found again in each pass over the file: streams by epoch, requests by stream and
-- psn. A hello has no epoch yet: its nonce leads from the answer to it.
local streams, by_epoch, by_nonce, requests
function xdpfab.init()
  streams, by_epoch, by_nonce, requests = 0, {}, {}, {}
end

local function new_stream()
  streams = streams + 1
  return streams - 1
end

local function stream_of(epoch, nonce)
  if nonce and by_nonce[nonce] == nil then by_nonce[nonce] = new_stream() end
  if epoch == 0 then return nonce and by_nonce[nonce] end
  if by_epoch[epoch] == nil then by_epoch[epoch] = nonce and by_nonce[nonce] or new_stream() end
  return by_epoch[epoch]
end

-- At is the state of one frame while it is dissected. Its methods take fields one after the
-- other; one that does not lie in the frame is an error, which ends the frame.
local At = {}
At.__index = At

function At:fail(text)
  self.tree:add(f.error, text):set_generated()
  self.tree:add_proto_expert_info(malformed, "Malformed: " .. text)
  error({ malformed = text }, 0)
end

function At:take(n, what)
  if self.pos + n > self.last then self:fail("truncated: no room for " .. what) end
  local r = self.tvb(self.pos, n)
  self.pos = self.pos + n
  return r
end

function At:le(tree, name, n)
  local r = self:take(n, name)
  tree:add_le(f[name], r)
  return n == 8 and r:le_uint64() or r:le_uint()
end

local function pad4(n) return n + (4 - n % 4) % 4 end

function At:bytes(tree, name, n)
  local r = self:take(pad4(n), name)
  if n > 0 then tree:add(f[name], r(0, n)) end
end

function At:refuse(tree, range, text)
  self.tree:add(f.error, text):set_generated()
  tree:add_proto_expert_info(refused, "Refused: " .. text)
  self.notes[#self.notes + 1] = text
end

-- operands takes what a verb carries of n bytes each.
function At:operands(t, verb, op, n)
  if op ~= 10 then self:bytes(t, "operand", n) end
  if verb == 0x03 or verb == 0x33 then self:bytes(t, "compare", n) end
end

local function flag(x, bit) return band(x, bit) ~= 0 end

-- each takes a run: many operations on one element each.
function At:each(t, verb, op, size, flags)
  local n = self:le(t, "run", 4)
  if n < 2 or n > 255 then self:fail("a run of " .. n .. " operations") end
  local shared = flag(flags, 0x20)
  if shared then self:operands(t, verb, op, size) end
  for _ = 1, n do
    self:le(t, "offset", 4)
    if not shared then self:operands(t, verb, op, size) end
  end
  return n
end

-- signal takes what a write with a signal has behind its operand, and returns what it does.
function At:signal(record)
  local t = record:add(f.signal, self.tvb(self.pos, math.min(32, self.last - self.pos)))
  self:le(t, "signal.key", 8)
  self:le(t, "signal.offset", 8)
  self:le(t, "signal.operand", 8)
  self:le(t, "signal.incarnation", 4)
  local op, datatype = self:le(t, "signal.op", 1), self:le(t, "signal.datatype", 1)
  self:take(2, "reserved bytes")
  local text = (ops[op] or "op " .. op) .. " " .. (datatypes[datatype] or "datatype " .. datatype)
  t:set_text("Signal: " .. text)
  return text
end

-- array takes an atomic, a read or a write.
function At:array(t, verb)
  local op = self:le(t, "op", 1)
  local datatype = self:le(t, "datatype", 1)
  local flags = self:le(t, "record_flags", 1)
  local size = sizes[datatype]
  if not size then self:fail("bad datatype " .. datatype) end
  local name = (ops[op] or "op " .. op) .. " " .. datatypes[datatype]
  if verb >= 0x10 then name = "" end
  if flag(flags, 0x01) then self:le(t, "key", 8) end
  if flag(flags, 0x40) then self:le(t, "incarnation", 4) end
  if flag(flags, 0x10) then return self:each(t, verb, op, size, flags), name end
  self:le(t, "offset", flag(flags, 0x02) and 8 or 4)
  local count = 1
  if flag(flags, 0x04) then count = self:le(t, "count", 4) end
  if flag(flags, 0x08) then self:le(t, "total", 4) end
  self:operands(t, verb, op, count * size)
  name = name .. (count ~= 1 and "[" .. count .. "]" or "")
  if verb == 0x12 then name = (name ~= "" and name .. ", " or "") .. self:signal(t) end
  return 1, name
end

-- message takes the beginning of a message, or a part of one.
function At:message(t, verb)
  local flags = self:le(t, "record_flags", 1)
  self:le(t, "source", 2)
  local r = self:take(4, "part")
  local part = r:le_uint()
  if verb == 0x22 then
    self:le(t, "offset", 8)
  else
    self:le(t, "length", 8)
    if verb == 0x21 then self:le(t, "tag", 8) end
    if flag(flags, 0x01) then self:le(t, "data", 8) end
  end
  if part > self.last - self.pos then self:fail("truncated: a part of " .. part .. " bytes") end
  self:bytes(t, "part", part)
  return 1, part .. " bytes"
end

-- call takes a request for a function.
function At:call(t)
  self:take(1, "reserved bytes")
  self:le(t, "source", 2)
  local r = self:take(4, "part")
  local length = r:le_uint()
  self:le(t, "most", 4)
  if length > self.last - self.pos then self:fail("truncated: a request of " .. length .. " bytes") end
  self:bytes(t, "part", length)
  return 1, "of " .. length .. " bytes"
end

function At:tagged_atomic(t, verb)
  local flags = self:le(t, "record_flags", 1)
  self:le(t, "source", 2)
  local op = self:le(t, "op", 1)
  local datatype = self:le(t, "datatype", 1)
  self:take(2, "reserved bytes")
  self:le(t, "offset", 8)
  self:le(t, "tag", 8)
  local count = self:le(t, "count", 4)
  if flag(flags, 0x01) then self:le(t, "data", 8) end
  if not sizes[datatype] then self:fail("bad datatype " .. datatype) end
  self:operands(t, verb, op, count * sizes[datatype])
  return 1, (ops[op] or "op " .. op) .. " " .. datatypes[datatype]
end

function At:lookup(t)
  local n = self:le(t, "length", 1)
  self:take(2, "reserved bytes")
  local r = self:take(pad4(n), "name")
  if n == 0 or n > 64 then self:fail("a name of " .. n .. " bytes") end
  t:add(f.name, r(0, n))
  return 1, '"' .. r(0, n):string() .. '"'
end

function At:list(t)
  self:take(3, "reserved bytes")
  return 1, "entry " .. self:le(t, "ordinal", 4)
end

function At:notice(t)
  self:le(t, "record_flags", 1)
  self:le(t, "source", 2)
  self:le(t, "covers", 4)
  self:le(t, "data", 8)
  self:le(t, "length", 8)
  return 1, ""
end

-- wait takes a waiting compare.
function At:wait(t)
  local op = self:le(t, "op", 1)
  local datatype = self:le(t, "datatype", 1)
  self:take(1, "reserved byte")
  local size = sizes[datatype]
  if not size or size > 8 then self:fail("bad datatype " .. datatype) end
  self:le(t, "limit", 4)
  self:le(t, "key", 8)
  self:le(t, "offset", 8)
  t:add(f.operand, self:take(8, "operand")(0, size))
  t:add(f.compare, self:take(8, "compare operand")(0, size))
  self:le(t, "incarnation", 4)
  return 1, (ops[op] or "op " .. op) .. " " .. datatypes[datatype]
end

-- tickets takes what is asked or told of operations that wait.
function At:tickets()
  repeat
    local t = self.tree:add(f.ticket, self.tvb(self.pos, 0))
    self:le(t, "ticket.psn", 4)
    local kind = self:le(t, "ticket.kind", 1)
    self:le(t, "ticket.index", 1)
    self:take(2, "reserved bytes")
    self:le(t, "ticket.value", 8)
    t:set_len(16)
    if not ticket_kinds[kind] then self:fail("kind of ticket " .. kind) end
    if #self.notes < 4 then self.notes[#self.notes + 1] = ticket_kinds[kind] end
  until self.pos >= self.last
end

local takers = { [0x01] = At.array, [0x02] = At.array, [0x03] = At.array, [0x04] = At.wait, [0x10] = At.array,
  [0x11] = At.array, [0x12] = At.array, [0x20] = At.message, [0x21] = At.message, [0x22] = At.message, [0x23] = At.call,
  [0x31] = At.tagged_atomic, [0x32] = At.tagged_atomic, [0x33] = At.tagged_atomic, [0x40] = At.lookup, [0x41] = At.list, [0x50] = At.notice }

-- request takes the records of a request.
function At:request(ops_left)
  while ops_left > 0 do
    local begins = self.pos
    local t = self.tree:add(f.record, self.tvb(begins, 0))
    local verb = self:le(t, "verb", 1)
    local take = takers[verb]
    if not take then self:fail(string.format("bad or reserved verb 0x%02x", verb)) end
    local n, what = take(self, t, verb)
    local text = verbs[verb] .. (what ~= "" and " " .. what or "") .. (n > 1 and ", a run of " .. n or "")
    t:set_text("Record: " .. text)
    t:set_len(self.pos - begins)
    if #self.notes < 4 then self.notes[#self.notes + 1] = text end
    if n > ops_left then self:fail("more operations than the header says") end
    ops_left = ops_left - n
  end
end

-- response takes the statuses of a response. Its values are as long as the request says.
function At:response(flags, n)
  if flag(flags, 0x01) then
    local count = self:take(2, "statuses"):le_uint()
    if count == 0 or count > n then self:fail(count .. " statuses of " .. n .. " operations") end
    local begins = self.pos
    for _ = 1, count do
      local r = self:take(2, "status")
      local t = self.tree:add(f.status, r(1, 1))
      t:add(f["status.index"], r(0, 1))
      local s = r(1, 1):uint()
      self:refuse(t, r, statuses[s] or "status " .. s)
    end
    self:take(pad4(2 + 2 * count) - 2 - 2 * count, "padding")
  end
  if self.pos < self.last then self.tree:add(f.values, self.tvb(self.pos, self.last - self.pos)) end
  self.pos = self.last
end

-- hello takes a hello, or a hello-ack, and what follows.
function At:hello(is_ack)
  local t = self.tree
  local nonce = tostring(self:le(t, "nonce", 8))
  local begins = self.pos
  self:le(t, "own_session", 4)
  local status = 0
  if is_ack then
    local r = self:take(2, "status")
    local item = t:add_le(f.hello_status, r)
    status = r:le_uint()
    local name = hello_statuses[status] or "status " .. status
    if status > 1 and status ~= 10 and status ~= 11 then self:refuse(item, r, name) else self.notes[1] = name end
  else
    self.notes[1] = "endpoint " .. self:le(t, "endpoint", 2)
  end
  self:le(t, "max_frame", 2)
  self:le(t, "window", 2)
  self:le(t, "keep", 2)
  local features = self:le(t, "features", 4)
  t:add(f.cookie, self:take(16, "cookie"))
  self:le(t, "former_session", 4)
  self:le(t, "former_epoch", 4)
  self:le(t, "former_psn", 4)
  self:le(t, is_ack and "life" or "origin", 8)
  self:le(t, is_ack and "lost" or "serial", 4)
  if flag(features, 0x20) then
    if features >= 2 ^ 31 then self:take(4, "more features") end
    while self.pos < self.last do
      local kind = self:take(1, "option")
      local item = t:add(f.option, kind)
      local n = self:take(1, "length of an option"):uint()
      item:add(f["option.data"], self:take(n, "option"))
    end
  elseif self.pos < self.last then
    t:add(f.remainder, self.tvb(self.pos, self.last - self.pos))
    self.pos = self.last
  end
  return nonce, begins
end

function At:reset()
  self:le(self.tree, "reset_session", 4)
  self:le(self.tree, "reset_psn", 4)
  local r = self:take(4, "reason")
  local item = self.tree:add_le(f.reset_reason, r)
  self:refuse(item, r, reset_reasons[r:le_uint()] or "reason " .. r:le_uint())
end

-- header takes the header into a tree of its own.
local function header(tvb, tree, h)
  tree:add(f.version, tvb(0, 1), h.version)
  tree:add(f.type, tvb(0, 1), h.type)
  local flags = tree:add(f.flags, tvb(1, 1))
  flags:add(f["flags.retx"], tvb(1, 1))
  if h.type >= 4 then flags:add(f["flags.busy"], tvb(1, 1)) end
  local s = tree:add_le(f.session, tvb(2, 4))
  s:add(f["session.lane"], tvb(2, 4), rshift(h.session, 26))
  s:add(f["session.queue"], tvb(2, 4), band(rshift(h.session, 20), 63))
  s:add(f["session.index"], tvb(2, 4), band(rshift(h.session, 6), 16383))
  tree:add_le(f.epoch, tvb(6, 4))
  tree:add_le(f.psn, tvb(10, 4))
  tree:add_le(f.ack, tvb(14, 4))
  if h.type == 3 and flag(h.flags, 0x20) then
    tree:add_le(f["rider.session"], tvb(18, 4))
    tree:add_le(f["rider.psn"], tvb(22, 4))
  else
    tree:add_le(f.sack, tvb(18, 8))
  end
  tree:add_le(f.credit, tvb(26, 2))
  tree:add(f.ops, tvb(28, 1))
  tree:add(f.lane, tvb(29, 1))
end

-- verify compares the checksum.
local function verify(tvb, tree, n)
  local item = tree:add_le(f.checksum, tvb(30, 4))
  local want = checksum(tvb, n)
  if want == tvb(30, 4):le_uint() then
    tree:add(f["checksum.bad"], tvb(30, 4), false):set_generated()
    return true
  end
  tree:add(f["checksum.bad"], tvb(30, 4), true):set_generated()
  tree:add(f.error, "bad checksum"):set_generated()
  item:add_proto_expert_info(bad_checksum, string.format("Wrong checksum: want 0x%08x", want))
  return false
end

-- follow joins a frame to its session, and an answer to its request.
local function follow(tvb, pinfo, tree, h, nonce)
  local stream = stream_of(h.epoch, nonce)
  if stream == nil then return end
  tree:add(f.stream, stream):set_generated()
  if h.type ~= 3 and h.type ~= 4 and h.type ~= 5 then return end
  local function key(psn) return stream .. "/" .. psn end
  local r = requests[key(h.psn)]
  if h.type == 3 then
    if r == nil then
      r = { frame = pinfo.number, time = pinfo.abs_ts }
      requests[key(h.psn)] = r
    elseif r.frame ~= pinfo.number then
      tree:add(f.again, r.frame):set_generated()
      tree:add_proto_expert_info(again, "The request was sent before")
    end
    if r.answer then tree:add(f.response_in, r.answer):set_generated() end
    return
  end
  -- an ack is about all requests from psn to ack, a response about one
  local last = h.type == 5 and h.ack or h.psn
  local span = (last - h.psn) % 2 ^ 32
  if span >= 64 then return end -- an empty run
  for i = 0, span do
    local x = requests[key((h.psn + i) % 2 ^ 32)]
    if x and x.frame < pinfo.number then
      x.answer = x.answer or pinfo.number
      tree:add(f.request_in, x.frame):set_generated()
      if x.answer == pinfo.number then
        local took = pinfo.abs_ts - x.time
        tree:add(f.time, NSTime.new(math.floor(took), math.floor((took % 1) * 1e9 + 0.5))):set_generated()
      end
    end
  end
end

function xdpfab.dissector(tvb, pinfo, root)
  local n = tvb:len()
  if n < HEADER then return 0 end
  pinfo.cols.protocol = "xdpfab"
  local h = { version = rshift(tvb(0, 1):uint(), 4), type = band(tvb(0, 1):uint(), 15), flags = tvb(1, 1):uint(),
    session = tvb(2, 4):le_uint(), epoch = tvb(6, 4):le_uint(), psn = tvb(10, 4):le_uint(),
    ack = tvb(14, 4):le_uint(), ops = tvb(28, 1):uint() }
  local tree = root:add(xdpfab, tvb())
  header(tvb, tree, h)
  local name = types[h.type] or "type " .. h.type
  local at = setmetatable({ tvb = tvb, pos = HEADER, last = n, tree = tree, notes = {} }, At)
  local sound = verify(tvb, tree, n)
  local nonce
  local function payload()
    if h.version ~= 1 then at:fail("version " .. h.version) end
    if types[h.type] == nil then at:fail("type " .. h.type) end
    if h.type == 3 then
      if flag(h.flags, 0x40) then
        local trailer = tvb(n - 2, 2):le_uint()
        if HEADER + trailer > n - 2 then at:fail("padding: records of " .. trailer .. " bytes") end
        at.last = HEADER + trailer
      end
      at:request(h.ops)
    elseif h.type == 9 then
      at:tickets()
    elseif h.type == 4 then
      at:response(h.flags, h.ops)
    elseif h.type <= 2 then
      nonce = at:hello(h.type == 2)
    elseif h.type == 7 then
      at:reset()
    end
  end
  if sound then
    local ok, why = pcall(payload)
    if not ok then
      if type(why) ~= "table" then error(why, 0) end
      at.notes[#at.notes + 1] = "malformed: " .. why.malformed
    elseif at.pos < n then
      tree:add(f.padding, tvb(at.pos, n - at.pos))
    end
    follow(tvb, pinfo, tree, h, nonce)
  else
    at.notes[1] = "bad checksum"
  end
  local info = name
  if h.type >= 3 and h.type <= 6 then info = info .. " psn " .. h.psn end
  if h.type == 5 and h.ack ~= h.psn then info = info .. "…" .. h.ack end
  if h.ops > 0 and h.type == 3 then info = info .. ", " .. h.ops .. (h.ops == 1 and " operation" or " operations") end
  if #at.notes > 0 then info = info .. ": " .. table.concat(at.notes, "; ") end
  if flag(h.flags, 0x02) then info = info .. " [again]" end
  pinfo.cols.info = info
  tree:append_text(", " .. info)
  return n
end

DissectorTable.get("ethertype"):add(ETHERTYPE, xdpfab)
DissectorTable.get("udp.port"):add(UDP_PORT, xdpfab)
