-- SPDX-License-Identifier: MIT
--
-- Wireshark's dissector of what two kxfer nodes say to each other (kmod/base/wire.h): private data
-- of connections, requests and answers, eager messages. For Wireshark 4.0 and later, and tshark.
--
-- Install: copy to ~/.local/lib/wireshark/plugins/. Without that: wireshark -X lua_script:kxfer.lua
-- Filters: kxfer, kxfer.type == 3, kxfer.status != 0, kxfer.name == "inbox", kxfer.cm.reason.
--
-- A message is recognized by its header and by the length that its type has. A message longer than
-- the path MTU is in several packets; the first is decoded as far as it goes.

local proto = Proto("kxfer", "kxfer")

local HEADER = 16
local SLOTS = 16
local CONTENT = 48
local KEY = 16
local LIST_ENTRY = 136
local MAGIC = 0x6b786672
-- rdma_cm puts its own header before the private data of a request. Wireshark takes it off if the
-- service ID is one of rdma_cm.
local RDMA_CM_HEADER = 36

local types = {
	[1] = "HELLO",
	[2] = "PING",
	[3] = "GRANT",
	[4] = "KEYS",
	[5] = "RELEASE",
	[6] = "INFO",
	[7] = "LIST",
	[8] = "REVOKE",
	[9] = "CONTENT",
	[10] = "NOTIFY",
	[11] = "SEND",
	[12] = "OFFER",
	[13] = "FETCHED",
	[14] = "TAKE_BACK",
	[15] = "CREDITS",
	[16] = "RESUME",
}

local statuses = {
	[0] = "OK",
	[1] = "NO_ENTRY",
	[2] = "NO_ACCESS",
	[3] = "NO_MEMORY",
	[4] = "QUOTA",
	[5] = "REVOKED",
	[6] = "BUSY",
	[7] = "INVALID",
	[8] = "DEVICE",
	[9] = "UNSUPPORTED",
}

local reasons = {
	[0] = "NONE",
	[1] = "MAGIC",
	[2] = "VERSION",
	[3] = "PORT",
	[4] = "COOKIE",
	[5] = "LIMIT",
	[6] = "RESOURCES",
	[7] = "CLOSING",
	[8] = "ADDRESS",
	[9] = "KEY",
}

local kinds = {
	[0] = "CONTROL",
	[1] = "DATA",
}

local features = {
	{ "LONG", 1 },
	{ "KEY", 2 },
	{ "FIRST_KEYS", 4 },
	{ "EAGER", 8 },
	{ "WAIT", 16 },
	{ "RESUME", 32 },
	{ "VIA", 64 },
}

local rights = {
	{ "READ", 1 },
	{ "WRITE", 2 },
	{ "ATOMIC", 4 },
	{ "SEND", 8 },
}

local send_flags = {
	{ "IMM", 1 },
	{ "CREDIT", 2 },
	{ "WAIT", 4 },
}

local f = {
	type = ProtoField.uint8("kxfer.type", "Type", base.DEC, types, 0x7f),
	answer = ProtoField.bool("kxfer.answer", "Answer", 8, nil, 0x80),
	slot = ProtoField.uint8("kxfer.slot", "Slot"),
	status = ProtoField.uint16("kxfer.status", "Status", base.DEC, statuses),
	length = ProtoField.uint16("kxfer.length", "Length of the payload"),
	sequence = ProtoField.uint64("kxfer.sequence", "Sequence"),
	name = ProtoField.stringz("kxfer.name", "Export"),
	uid = ProtoField.uint32("kxfer.uid", "uid"),
	gid = ProtoField.uint32("kxfer.gid", "gid"),
	rights = ProtoField.uint32("kxfer.rights", "Rights", base.HEX),
	word = ProtoField.uint64("kxfer.word", "Word of the sender", base.HEX),
	grant = ProtoField.uint64("kxfer.grant", "Grant"),
	exposure = ProtoField.uint64("kxfer.exposure", "Exposure"),
	bytes = ProtoField.uint64("kxfer.bytes", "Bytes"),
	nr = ProtoField.uint32("kxfer.nr", "Number of entries"),
	first = ProtoField.uint32("kxfer.first", "First entry"),
	addr = ProtoField.uint64("kxfer.addr", "Address", base.HEX),
	rkey = ProtoField.uint32("kxfer.rkey", "rkey", base.HEX),
	key_length = ProtoField.uint32("kxfer.key_length", "Length"),
	generation = ProtoField.uint64("kxfer.generation", "Generation"),
	sha256 = ProtoField.bytes("kxfer.sha256", "SHA-256"),
	cookie = ProtoField.uint64("kxfer.cookie", "Cookie", base.HEX),
	node = ProtoField.uint64("kxfer.node", "Node", base.HEX),
	export = ProtoField.uint64("kxfer.export", "Number of the export"),
	sent = ProtoField.uint32("kxfer.sent", "Messages that took a credit"),
	credits = ProtoField.uint32("kxfer.credits", "Credits"),
	flags = ProtoField.uint32("kxfer.flags", "Flags", base.HEX),
	immediate = ProtoField.uint32("kxfer.immediate", "Immediate", base.HEX),
	offer = ProtoField.uint32("kxfer.offer", "Offer"),
	outcome = ProtoField.uint32("kxfer.outcome", "Outcome", base.DEC, statuses),
	cursor = ProtoField.uint64("kxfer.cursor", "Cursor"),
	proof = ProtoField.bytes("kxfer.proof", "Proof of the key"),
	epoch = ProtoField.uint64("kxfer.epoch", "Epoch"),
	link_cookie = ProtoField.bytes("kxfer.link_cookie", "Cookie of the link"),
	data = ProtoField.bytes("kxfer.data", "Message"),
	magic = ProtoField.uint32("kxfer.cm.magic", "Magic", base.HEX),
	version_min = ProtoField.uint16("kxfer.cm.version_min", "Oldest version"),
	version_max = ProtoField.uint16("kxfer.cm.version_max", "Newest version"),
	version = ProtoField.uint16("kxfer.cm.version", "Version"),
	kind = ProtoField.uint8("kxfer.cm.kind", "Kind", base.DEC, kinds),
	lane = ProtoField.uint8("kxfer.cm.lane", "Lane"),
	lanes = ProtoField.uint16("kxfer.cm.lanes", "Data lanes"),
	features = ProtoField.uint32("kxfer.cm.features", "Features", base.HEX),
	nonce = ProtoField.bytes("kxfer.cm.nonce", "Nonce"),
	reason = ProtoField.uint16("kxfer.cm.reason", "Refused for", base.DEC, reasons),
	eager = ProtoField.bool("kxfer.eager", "Eager message"),
}

-- A field of its own for each bit.
local function bits_of(prefix, list)
	local fields = {}
	for _, bit_ in ipairs(list) do
		local field = ProtoField.bool(prefix .. "." .. bit_[1]:lower(), bit_[1], 32, nil, bit_[2])
		fields[#fields + 1] = field
		f[prefix .. bit_[1]] = field
	end
	return fields
end
local right_bits = bits_of("kxfer.rights", rights)
local flag_bits = bits_of("kxfer.flags", send_flags)
local feature_bits = bits_of("kxfer.cm.features", features)

local all = {}
for _, field in pairs(f) do all[#all + 1] = field end
proto.fields = all

local opcode_field = Field.new("infiniband.bth.opcode")
local qp_field = Field.new("infiniband.bth.destqp")
local immediate_field = Field.new("infiniband.immdt")
local SEND_ONLY_IMMEDIATE = 5

local function add_bits(tree, field, bits, b)
	local t = tree:add(field, b)
	for _, one in ipairs(bits) do t:add(one, b) end
end

local function add_content(b, t)
	t:add(f.generation, b(0, 8))
	t:add(f.bytes, b(8, 8))
	t:add(f.sha256, b(16, 32))
end

local function add_keys(b, t)
	t:add(f.nr, b(0, 4))
	for at = 8, b:len() - KEY, KEY do
		local key = t:add(proto, b(at, KEY), "Key")
		key:add(f.addr, b(at, 8))
		key:add(f.rkey, b(at + 8, 4))
		key:add(f.key_length, b(at + 12, 4))
	end
end

-- By type: the lengths that a payload may have, and what is in it. A function may return what to
-- show in the list of packets.
local function exactly(...)
	local lengths = { ... }
	return function(n)
		for _, length in ipairs(lengths) do if n == length then return true end end
		return false
	end
end

local function entries(head, size) -- after a fixed part
	return function(n) return n >= head and (n - head) % size == 0 end
end

local function grant_only(b, t) t:add(f.grant, b(0, 8)) end

local request = {
	[1] = { exactly(0, 32), function(b, t) if b:len() == 32 then t:add(f.proof, b) end end },
	[2] = { exactly(0) },
	[3] = { exactly(88), function(b, t)
		t:add(f.name, b(0, 64))
		t:add(f.uid, b(64, 4))
		t:add(f.gid, b(68, 4))
		add_bits(t, f.rights, right_bits, b(72, 4))
		t:add(f.word, b(80, 8))
		return b(0, 64):stringz()
	end },
	[4] = { exactly(16), function(b, t)
		t:add(f.exposure, b(0, 8))
		t:add(f.first, b(8, 4))
	end },
	[5] = { exactly(8, 16), function(b, t)
		t:add(f.grant, b(0, 8))
		if b:len() == 16 then t:add(f.sent, b(8, 4)) end
	end },
	[6] = { exactly(8), grant_only },
	[7] = { exactly(16), function(b, t)
		t:add(f.cursor, b(0, 8))
		t:add(f.uid, b(8, 4))
		t:add(f.gid, b(12, 4))
	end },
	[8] = { exactly(8), function(b, t) t:add(f.exposure, b(0, 8)) end },
	[9] = { exactly(8 + CONTENT), function(b, t)
		t:add(f.exposure, b(0, 8))
		add_content(b(8, CONTENT), t)
	end },
	[10] = { exactly(16), function(b, t)
		t:add(f.grant, b(0, 8))
		t:add(f.cookie, b(8, 8))
	end },
	[11] = { entries(16, 1), function(b, t)
		t:add(f.grant, b(0, 8))
		add_bits(t, f.flags, flag_bits, b(8, 4))
		t:add(f.immediate, b(12, 4))
		if b:len() > 16 then t:add(f.data, b(16)) end
	end },
	[12] = { exactly(40), function(b, t)
		t:add(f.grant, b(0, 8))
		t:add(f.addr, b(8, 8))
		t:add(f.rkey, b(16, 4))
		t:add(f.key_length, b(20, 4))
		add_bits(t, f.flags, flag_bits, b(24, 4))
		t:add(f.immediate, b(28, 4))
		t:add(f.offer, b(32, 4))
		return "of " .. b(20, 4):uint() .. " bytes"
	end },
	[13] = { exactly(8), function(b, t)
		t:add(f.offer, b(0, 4))
		t:add(f.outcome, b(4, 4))
		return statuses[b(4, 4):uint()]
	end },
	[14] = { exactly(8), function(b, t) t:add(f.offer, b(0, 4)) end },
	[15] = { exactly(8), grant_only },
	[16] = { exactly(24), function(b, t)
		t:add(f.epoch, b(0, 8))
		t:add(f.link_cookie, b(8, 16))
		return "of epoch " .. tostring(b(0, 8):uint64())
	end },
}

local answer = {
	[1] = { exactly(16, 48), function(b, t)
		t:add(f.addr, b(0, 8))
		t:add(f.rkey, b(8, 4))
		if b:len() == 48 then t:add(f.proof, b(16, 32)) end
	end },
	[3] = { function(n) return n == 88 or n >= 96 and (n - 96) % KEY == 0 end, function(b, t)
		t:add(f.grant, b(0, 8))
		t:add(f.exposure, b(8, 8))
		t:add(f.bytes, b(16, 8))
		add_bits(t, f.rights, right_bits, b(24, 4))
		t:add(f.nr, b(28, 4))
		t:add(f.cookie, b(32, 8))
		add_content(b(40, CONTENT), t)
		if b:len() > 88 then add_keys(b(88), t) end
		return "as " .. tostring(b(0, 8):uint64())
	end },
	[4] = { entries(8, KEY), add_keys },
	[6] = { exactly(16 + CONTENT, 32 + CONTENT), function(b, t)
		t:add(f.bytes, b(0, 8))
		t:add(f.cookie, b(8, 8))
		add_content(b(16, CONTENT), t)
		if b:len() > 64 then
			t:add(f.node, b(64, 8))
			t:add(f.export, b(72, 8))
		end
	end },
	[7] = { entries(8, LIST_ENTRY), function(b, t)
		t:add(f.nr, b(0, 4))
		for at = 8, b:len() - LIST_ENTRY, LIST_ENTRY do
			local entry = t:add(proto, b(at, LIST_ENTRY), b(at + 8, 64):stringz())
			entry:add(f.cursor, b(at, 8))
			entry:add(f.name, b(at + 8, 64))
			entry:add(f.bytes, b(at + 72, 8))
			add_bits(entry, f.rights, right_bits, b(at + 80, 4))
			add_content(b(at + 88, CONTENT), entry)
		end
	end },
	[15] = { exactly(8), function(b, t)
		t:add(f.credits, b(0, 4))
		return tostring(b(0, 4):uint())
	end },
}
local nothing = { exactly(0) }

-- QPs that have taken a message with a header: one with immediate data alone is eager there.
local known = {}

local function place_of(pinfo)
	local qp = qp_field()
	return qp and tostring(pinfo.dst) .. "/" .. tostring(qp.value)
end

local function is_whole(b, length)
	local rest = b:len() - length - HEADER
	return rest >= 0 and rest < 8 -- padding, and an ICRC if it was left
end

-- What the header's type and length say the payload is; nil: not a message of kxfer.
local function body_of(b)
	if b:len() < HEADER then return nil end
	local type_, is_answer = bit.band(b(0, 1):uint(), 0x7f), b(0, 1):uint() >= 0x80
	local status, length = b(2, 2):uint(), b(4, 2):uint()
	if not types[type_] or not statuses[status] or b(1, 1):uint() >= SLOTS or b(6, 2):uint() ~= 0 then
		return nil
	end
	if not is_answer and status ~= 0 then return nil end
	local body = is_answer and (status == 0 and answer[type_] or nothing) or request[type_]
	if not body[1](length) then return nil end
	return body, type_, is_answer, status, length
end

local function show(pinfo, tree, b, what)
	pinfo.cols.protocol = "kxfer"
	pinfo.cols.info = what
	tree:append_text(", " .. what)
end

local function eager(b, pinfo, tree)
	local opcode, immediate, place = opcode_field(), immediate_field(), place_of(pinfo)
	if not opcode or opcode.value ~= SEND_ONLY_IMMEDIATE or not immediate or not known[place] then
		return false
	end
	local t = tree:add(proto, b())
	t:add(f.eager, true):set_generated()
	t:add(f.data, b())
	local id = immediate.range and immediate.range:uint() or tonumber(tostring(immediate.value), 16)
	show(pinfo, t, b, "eager message to grant " .. tostring(id))
	return true
end

local function message(b, pinfo, tree)
	local body, type_, is_answer, status, length = body_of(b)
	if not body or not (is_whole(b, length) or b:len() >= 256 and b:len() < HEADER + length) then
		return eager(b, pinfo, tree)
	end
	local place = place_of(pinfo)
	if place then known[place] = true end
	local t = tree:add(proto, b(0, math.min(HEADER + length, b:len())))
	t:add(f.answer, b(0, 1))
	t:add(f.type, b(0, 1))
	t:add(f.slot, b(1, 1))
	t:add(f.status, b(2, 2))
	t:add(f.length, b(4, 2))
	t:add(f.sequence, b(8, 8))
	local words
	if body[2] and length > 0 and is_whole(b, length) then words = body[2](b(HEADER, length), t) end
	local what = types[type_] .. (is_answer and " answer " .. statuses[status] or " request")
	if words then what = what .. " " .. words end
	show(pinfo, t, b, what .. ", slot " .. b(1, 1):uint())
	return true
end

local function hello(b, t)
	t:add(f.version_min, b(4, 2))
	t:add(f.version_max, b(6, 2))
	t:add(f.kind, b(8, 1))
	t:add(f.lane, b(9, 1))
	t:add(f.lanes, b(10, 2))
	add_bits(t, f.features, feature_bits, b(12, 4))
	t:add(f.link_cookie, b(16, 16))
	t:add(f.epoch, b(32, 8))
	local lane = b(8, 1):uint() == 0 and "control" or "lane " .. b(9, 1):uint()
	return "hello, " .. lane .. ", epoch " .. tostring(b(32, 8):uint64())
end

local function welcome(b, t)
	t:add(f.version, b(4, 2))
	t:add(f.lanes, b(6, 2))
	add_bits(t, f.features, feature_bits, b(8, 4))
	local keyed = bit.band(b(8, 4):uint(), 2) ~= 0 and b:len() >= 28
	if keyed then t:add(f.nonce, b(12, 16)) end
	return keyed and "welcome with a key" or "welcome"
end

local function refusal(b, t)
	t:add(f.reason, b(4, 2))
	t:add(f.version_min, b(6, 2))
	t:add(f.version_max, b(8, 2))
	return "refusal " .. (reasons[b(4, 2):uint()] or "?")
end

-- The attribute of a MAD of the communication manager says what its private data is.
local attribute_field = Field.new("infiniband.mad.attributeid")
local REQUEST = 16
local REJECT = 18

local function private(b, pinfo, tree)
	local at
	for _, place in ipairs({ 0, RDMA_CM_HEADER }) do
		if b:len() >= place + 12 and b(place, 4):uint() == MAGIC then at = place break end
	end
	if not at then return false end
	local t = tree:add(proto, b(at), "kxfer connection")
	t:add(f.magic, b(at, 4))
	local attribute = attribute_field()
	local parse = welcome
	if at == RDMA_CM_HEADER or attribute and attribute.value == REQUEST then
		parse = hello
	elseif attribute and attribute.value == REJECT then
		parse = refusal
	end
	local what = parse(b(at):tvb(), t)
	t:append_text(", " .. what)
	pinfo.cols.protocol = "kxfer"
	pinfo.cols.info:append(" kxfer " .. what)
	return true
end

function proto.init() known = {} end
function proto.dissector(b, pinfo, tree) return message(b, pinfo, tree) and b:len() or 0 end

proto:register_heuristic("infiniband.payload", message)
proto:register_heuristic("iwarp_ddp_rdmap", message)
proto:register_heuristic("infiniband.mad.cm.private", private)
