-- Wireshark's dissector of DFCP as docs/protocol.md specifies it (sections 2 and 3). contrib/wireshark/README.md says how to use it.

local fontis = Proto("fontis", "Fontis DFCP")
local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local opener = dofile(folder .. "aes128gcm.lua")

local VERSION = 0x464e0002
local SYN, SYNACK, NEGOTIATION, RESET, UNKNOWN_KEY, COOKIE, PROVED_SYN, SEALED = 1, 2, 3, 4, 5, 6, 7, 0x40
local TYPES = {
    [SYN] = "SYN", [SYNACK] = "SYNACK", [NEGOTIATION] = "VERSION NEGOTIATION", [RESET] = "RESET",
    [UNKNOWN_KEY] = "UNKNOWN KEY", [COOKIE] = "COOKIE", [PROVED_SYN] = "SYN with a cookie", [SEALED] = "sealed",
}
local FRAMES = {
    [0] = "PADDING", "PING", "CONFIRM", "FEEDBACK", "BLOCKS", "OPEN", "DONE", "ABANDON", "FIN", "FINACK", "CLOSE",
    "CHALLENGE", "RESPONSE", "LIMIT", "TOKEN", "PATH CLOSED", "SPARE", [SEALED] = "SYMBOLS",
}

local f = {
    type = ProtoField.uint8("fontis.type", "Type", base.HEX, TYPES),
    path = ProtoField.uint8("fontis.path", "Path"),
    version = ProtoField.uint32("fontis.version", "Version", base.HEX),
    source = ProtoField.bytes("fontis.source", "Source id"),
    destination = ProtoField.bytes("fontis.destination", "Destination id"),
    length = ProtoField.uint16("fontis.noise.length", "Length of the Noise message"),
    noise = ProtoField.bytes("fontis.noise", "Noise message"),
    token = ProtoField.bytes("fontis.token", "Token"),
    low = ProtoField.uint32("fontis.number.low", "Low 32 bits of the packet number"),
    number = ProtoField.uint64("fontis.number", "Packet number"),
    sealed = ProtoField.bytes("fontis.sealed", "Ciphertext"),
    tag = ProtoField.bytes("fontis.tag", "Tag"),
    frame = ProtoField.uint8("fontis.frame", "Frame", base.HEX, FRAMES),
    flags = ProtoField.uint8("fontis.symbols.flags", "Flags", base.HEX),
    data = ProtoField.bytes("fontis.symbols.data", "Symbols"),
    code_id = ProtoField.uint8("fontis.open.code", "Code id"),
    label = ProtoField.bytes("fontis.open.label", "Label"),
    reason = ProtoField.string("fontis.close.reason", "Reason"),
    challenge = ProtoField.bytes("fontis.challenge", "Token"),
    cookie = ProtoField.bytes("fontis.cookie", "Cookie"),
    padding = ProtoField.uint16("fontis.padding", "Length"),
    feedback_path = ProtoField.uint8("fontis.feedback.path", "Path"),
    closed_path = ProtoField.uint8("fontis.closed.path", "Path"),
}
local NUMBERS = {
    channel = "Channel", code = "Code", sequence = "Sequence", block = "Block", esi = "ESI", count = "Count",
    block_length = "Block length", symbols_length = "Length of the symbols", object_size = "Object size",
    block_size = "Block size", symbol_size = "Symbol size", largest = "Largest", received_at = "Received at, µs",
    delay = "Delay, µs", packets = "Packets", bytes = "Bytes", ce = "CE", run = "Run", below = "Below",
    before = "Before, µs", floor = "Floor", limit = "Limit − floor", rate = "Rate + 1, bit/s", step = "Step", value = "Value",
}
for name, label in pairs(NUMBERS) do
    f[name] = ProtoField.uint64("fontis." .. name, label)
end
local every = {}
for _, field in pairs(f) do every[#every + 1] = field end
fontis.fields = every

local undecodable = ProtoExpert.new("fontis.undecodable", "Undecodable", expert.group.MALFORMED, expert.severity.ERROR)
local no_key = ProtoExpert.new("fontis.nokey", "No key for this packet in the key log", expert.group.DECRYPTION,
    expert.severity.NOTE)
local wrong_tag = ProtoExpert.new("fontis.tag.wrong", "The tag is wrong: a packet that was changed, forged, or sealed with another key",
    expert.group.CHECKSUM, expert.severity.ERROR)
fontis.experts = { undecodable, no_key, wrong_tag }
fontis.prefs.keylog = Pref.string("Key log", "", "The file that fontis --keylog wrote; else what FONTIS_KEYLOG names")

-- By connection id, in hexadecimal: what opens packets to it by path and generation of keys, and the highest packet number seen by path.
local keys, keys_size, highest, numbers, known = {}, -1, {}, {}, {}

local function opener_of(hex)
    return opener((hex:gsub("..", function(pair) return string.char(tonumber(pair, 16)) end)))
end

-- Where the key of a generation stands among those of its connection id.
local function place(path, generation)
    return path == 0 and generation or path .. " " .. generation
end

local function read_keys()
    local name = fontis.prefs.keylog
    if name == "" then name = os.getenv("FONTIS_KEYLOG") or "" end
    local file = name ~= "" and io.open(name, "r")
    if not file then return end
    if file:seek("end") ~= keys_size then
        keys_size = file:seek("cur")
        file:seek("set")
        for line in file:lines() do
            local initiator, responder, first, second = line:match("^FONTIS_1 (%x+) (%x+) (%x+) (%x+)$")
            if second and #first == 32 and #second == 32 then
                keys[responder], keys[initiator] = { [0] = opener_of(first) }, { [0] = opener_of(second) }
            end
            local id, generation, key = line:match("^FONTIS_1_NEXT (%x+) (%d+) (%x+)$")
            if key and #key == 32 and keys[id] then keys[id][tonumber(generation)] = opener_of(key) end
            local to, path, age, secret = line:match("^FONTIS_1_PATH (%x+) (%d+) (%d+) (%x+)$")
            if secret and #secret == 32 and keys[to] then keys[to][place(tonumber(path), tonumber(age))] = opener_of(secret) end
        end
    end
    file:close()
end

local function opener_for(id, path, generation)
    local at = place(path, generation)
    if not keys[id] or not keys[id][at] then read_keys() end
    return keys[id] and keys[id][at]
end

function fontis.init()
    keys, keys_size, highest, numbers, known = {}, -1, {}, {}, {}
end

-- The packet number nearest to one above the highest seen whose low 32 bits are these (section 2.2).
local function expand(low, way, frame)
    local at = way .. " " .. frame
    if not numbers[at] then
        local expected = (highest[way] or -1) + 1
        local number = expected - expected % 2^32 + low
        if number + 2^31 < expected then
            number = number + 2^32
        elseif number > expected + 2^31 and number >= 2^32 then
            number = number - 2^32
        end
        numbers[at] = number
    end
    return numbers[at]
end

-- What could be opened and cannot does not count: its number may be anything.
local function saw(number, way)
    highest[way] = math.max(highest[way] or 0, number)
end

-- Reads a packet's fields into a tree; what is cut short ends in an error of ours.
local Reader = {}
Reader.__index = Reader

function Reader:take(length)
    if self.at + length > self.tvb:len() then error("cut short", 0) end
    local range = self.tvb:range(self.at, length)
    self.at = self.at + length
    return range
end

function Reader:byte(field)
    local range = self:take(1)
    self.tree:add(field, range)
    return range:uint()
end

function Reader:varint(field, shift)
    local length = 2 ^ math.floor(self.tvb:range(self.at < self.tvb:len() and self.at or error("cut short", 0), 1):uint() / 64)
    length = math.floor(length)
    local range = self:take(length)
    local high, low = 0, 0
    if length == 8 then
        high, low = range:range(0, 4):uint() % 2^30, range:range(4, 4):uint()
    else
        low = range:uint() % 2 ^ (8 * length - 2)
    end
    high, low = math.floor(high), math.floor(low)
    if field then self.tree:add(field, range, UInt64.new(low, high)) end
    return high * 2^32 + low
end

local function symbols(r, flags)
    local function has(flag) return math.floor(flags / flag) % 2 == 1 end
    local channel, block, esi = r:varint(f.channel), r:varint(f.block), r:varint(f.esi)
    local count = has(0x20) and r:varint(f.count) or 1
    if has(0x02) then
        r:varint(f.block_length)
        if has(0x10) then r:varint(f.sequence) end
    end
    local length = has(0x01) and r:varint(f.symbols_length) or r.tvb:len() - r.at
    r.tree:add(f.data, r:take(math.floor(length)))
    return string.format(" %d/%d/%d×%d", channel, block, esi, count)
end

local READ = {
    [0x00] = function(r)
        local range = r:take(2)
        r.tree:add(f.padding, range)
        r:take(range:uint())
    end,
    [0x03] = function(r)
        r:byte(f.feedback_path)
        for _, name in ipairs({ "largest", "received_at", "delay", "packets", "bytes", "ce" }) do r:varint(f[name]) end
        for _ = 1, r:varint(f.count) do r:varint(f.run) end
        for _ = 1, r:varint(f.count) do r:varint(f.below) r:varint(f.before) end
    end,
    [0x04] = function(r)
        r:varint(f.channel) r:varint(f.sequence) r:varint(f.floor) r:varint(f.limit)
        for _ = 1, r:varint(f.count) do r:varint(f.step) r:varint(f.value) end
    end,
    [0x05] = function(r)
        r:varint(f.channel) r:varint(f.object_size) r:varint(f.block_size) r:varint(f.symbol_size)
        r:byte(f.code_id)
        r.tree:add(f.label, r:take(math.floor(r:varint())))
    end,
    [0x06] = function(r) r:varint(f.channel) end,
    [0x07] = function(r) r:varint(f.channel) r:varint(f.code) r:varint(f.sequence) end,
    [0x0a] = function(r)
        r:varint(f.code)
        r.tree:add(f.reason, r:take(r:take(1):uint()))
    end,
    [0x0b] = function(r) r.tree:add(f.challenge, r:take(8)) end,
    [0x0c] = function(r) r.tree:add(f.challenge, r:take(8)) end,
    [0x0d] = function(r) r:varint(f.sequence) r:varint(f.rate) end,
    [0x0e] = function(r) r.tree:add(f.challenge, r:take(math.floor(r:varint()))) end,
    [0x0f] = function(r) r:byte(f.closed_path) end,
    [0x10] = function() end,
}

local function frames(tvb, tree, names)
    local at = 0
    while at < tvb:len() do
        local kind = tvb:range(at, 1):uint()
        local shown = kind >= 0x40 and kind < 0x80 and SEALED or kind
        local name = FRAMES[shown] or error(string.format("no frame of type 0x%02x", kind), 0)
        local branch = tree:add(f.frame, tvb:range(at, 1), shown)
        local r = setmetatable({ tvb = tvb, at = at + 1, tree = branch }, Reader)
        if shown == SEALED then
            branch:add(f.flags, tvb:range(at, 1), kind % 64)
            name = name .. symbols(r, kind % 64)
        elseif READ[kind] then
            READ[kind](r)
        end
        branch:set_len(r.at - at)
        names[#names + 1] = name
        at = r.at
    end
end

local function sealed(tvb, pinfo, tree)
    local path, id = tvb:range(0, 1):uint() % 64, tvb:range(1, 8):bytes():tohex(true)
    tree:add(f.path, tvb:range(0, 1), path)
    tree:add(f.destination, tvb:range(1, 8))
    tree:add(f.low, tvb:range(9, 4))
    local way = id .. path
    local number = expand(tvb:range(9, 4):uint(), way, pinfo.number)
    local high, low = math.floor(number / 2^32), math.floor(number % 2^32)
    tree:add(f.number, tvb:range(9, 4), UInt64.new(low, high)):set_generated()
    local length = tvb:len() - 29
    tree:add(f.sealed, tvb:range(13, length))
    tree:add(f.tag, tvb:range(13 + length, 16))
    local info, open = string.format("%s %.0f", id:sub(1, 8), number), opener_for(id, path, math.floor(number / 2^22))
    if not open then
        if not keys[id] then saw(number, way) end
        tree:add_proto_expert_info(no_key)
        return info
    end
    if tvb:reported_len() > tvb:len() then
        saw(number, way)
        tree:add_proto_expert_info(undecodable, "Captured in part: its tag is missing")
        return info .. ": [captured in part]"
    end
    local plain = open(path, high, low, tvb:raw(0, 13), tvb:raw(13, length), tvb:raw(13 + length, 16))
    if not plain then
        tree:add_proto_expert_info(wrong_tag)
        return info .. ": [wrong tag]"
    end
    saw(number, way)
    local names = {}
    local ok, why = pcall(frames, ByteArray.new(plain, true):tvb("Decrypted frames"), tree, names)
    if not ok then
        tree:add_proto_expert_info(undecodable, "Undecodable: " .. tostring(why))
        names[#names + 1] = "[undecodable]"
    end
    return info .. ": " .. table.concat(names, ", ")
end

-- The type's bytes at least; nil for a type that there is not.
local LEAST = { [SYN] = 1200, [SYNACK] = 11, [NEGOTIATION] = 10, [RESET] = 25, [UNKNOWN_KEY] = 9, [COOKIE] = 25,
    [PROVED_SYN] = 1217, [SEALED] = 29 }

local function kind_of(tvb)
    if tvb:len() == 0 then return nil end
    local kind = tvb:range(0, 1):uint()
    if kind >= 0x40 and kind < 0x80 then kind = SEALED end
    return LEAST[kind] and tvb:len() >= LEAST[kind] and kind or nil
end

local function noise(tvb, at, tree)
    local length = tvb:range(at, 2):uint()
    tree:add(f.length, tvb:range(at, 2))
    if at + 2 + length > tvb:len() then
        tree:add_proto_expert_info(undecodable, "The Noise message is cut short")
    elseif length > 0 then
        tree:add(f.noise, tvb:range(at + 2, length))
    end
end

function fontis.dissector(tvb, pinfo, root)
    local kind = kind_of(tvb)
    if not kind then return 0 end
    pinfo.cols.protocol = "DFCP"
    local tree = root:add(fontis, tvb:range())
    tree:add(f.type, tvb:range(0, 1), kind)
    local info = TYPES[kind]
    if kind == SYN then
        tree:add(f.version, tvb:range(1, 4))
        tree:add(f.source, tvb:range(5, 8))
        known[tvb:range(5, 8):bytes():tohex(true)] = true
        noise(tvb, 13, tree)
    elseif kind == PROVED_SYN then
        tree:add(f.cookie, tvb:range(1, 16))
        tree:add(f.version, tvb:range(18, 4))
        tree:add(f.source, tvb:range(22, 8))
        noise(tvb, 30, tree)
    elseif kind == SEALED then
        info = sealed(tvb, pinfo, tree)
    else
        tree:add(f.destination, tvb:range(1, 8))
        if kind == SYNACK then
            noise(tvb, 9, tree)
        elseif kind == RESET then
            tree:add(f.token, tvb:range(9, 16))
        elseif kind == COOKIE then
            tree:add(f.cookie, tvb:range(9, 16))
        elseif kind == NEGOTIATION then
            local count = math.min(tvb:range(9, 1):uint(), math.floor((tvb:len() - 10) / 4))
            for i = 0, count - 1 do tree:add(f.version, tvb:range(10 + 4 * i, 4)) end
        end
    end
    pinfo.cols.info = info
    return tvb:len()
end

-- A SYN begins a conversation that is ours; so does a packet to an id that a SYN or the key log named.
local function is_ours(tvb)
    local kind = kind_of(tvb)
    if not kind then return false end
    if kind == SYN then return tvb:range(1, 4):uint() == VERSION end
    if kind == PROVED_SYN then return tvb:range(17, 1):uint() == SYN and tvb:range(18, 4):uint() == VERSION end
    local id = tvb:range(1, 8):bytes():tohex(true)
    return known[id] or opener_for(id, 0, 0) ~= nil
end

fontis:register_heuristic("udp", function(tvb, pinfo, root)
    if not is_ours(tvb) then return false end
    pinfo.conversation = fontis
    fontis.dissector(tvb, pinfo, root)
    return true
end)
DissectorTable.get("udp.port"):add_for_decode_as(fontis)
