-- AES-128 in counter mode (FIPS 197, NIST SP 800-38A), as GCM encrypts with it (SP 800-38D, section 6.5).
-- Written out because Wireshark lends Lua no ciphers before GcryptCipher, which many installed versions lack.

local native = load([[return {
    xor = function(a, b, c, d, e) return a ~ b ~ (c or 0) ~ (d or 0) ~ (e or 0) end,
    byte = function(word, shift) return word >> shift & 255 end,
}]])
local xor, byte
if native then -- Lua 5.3 and later
    local operators = native()
    xor, byte = operators.xor, operators.byte
else
    xor = bit32.bxor
    byte = function(word, shift) return bit32.extract(word, shift, 8) end
end

local SBOX = {}
local TABLES = { {}, {}, {}, {} }

local function double(value)
    value = value * 2
    return value < 256 and value or xor(value, 0x11b)
end

local function make_tables()
    -- Powers of the generator 3 and their logarithms give inverses.
    local power, log, value = {}, {}, 1
    for exponent = 0, 254 do
        power[exponent], log[value] = value, exponent
        value = xor(value, double(value))
    end
    for x = 0, 255 do
        local inverse = x == 0 and 0 or power[(255 - log[x]) % 255]
        local s, turned = inverse, inverse
        for _ = 1, 4 do
            turned = turned * 2 % 256 + math.floor(turned / 128)
            s = xor(s, turned)
        end
        s = xor(s, 0x63)
        SBOX[x] = s
        local two = double(s)
        local column = { two, s, s, xor(two, s) }
        for row = 0, 3 do
            local word = 0
            for i = 0, 3 do word = word * 256 + column[(i - row) % 4 + 1] end
            TABLES[row + 1][x] = word
        end
    end
end
make_tables()
local T0, T1, T2, T3 = TABLES[1], TABLES[2], TABLES[3], TABLES[4]

local function substitute(a, b, c, d)
    return ((SBOX[byte(a, 24)] * 256 + SBOX[byte(b, 16)]) * 256 + SBOX[byte(c, 8)]) * 256 + SBOX[byte(d, 0)]
end

local function word_at(text, at)
    local a, b, c, d = text:byte(at, at + 3)
    return ((a * 256 + b) * 256 + c) * 256 + d
end

local function expand(key)
    local words, constant = {}, 1
    for i = 0, 3 do words[i] = word_at(key, 4 * i + 1) end
    for i = 4, 43 do
        local word = words[i - 1]
        if i % 4 == 0 then
            word = word % 0x1000000 * 256 + byte(word, 24)
            word = xor(substitute(word, word, word, word), constant * 0x1000000)
            constant = double(constant)
        end
        words[i] = xor(words[i - 4], word)
    end
    return words
end

local function encrypt(keys, a, b, c, d)
    a, b, c, d = xor(a, keys[0]), xor(b, keys[1]), xor(c, keys[2]), xor(d, keys[3])
    for i = 4, 36, 4 do
        a, b, c, d =
            xor(T0[byte(a, 24)], T1[byte(b, 16)], T2[byte(c, 8)], T3[byte(d, 0)], keys[i]),
            xor(T0[byte(b, 24)], T1[byte(c, 16)], T2[byte(d, 8)], T3[byte(a, 0)], keys[i + 1]),
            xor(T0[byte(c, 24)], T1[byte(d, 16)], T2[byte(a, 8)], T3[byte(b, 0)], keys[i + 2]),
            xor(T0[byte(d, 24)], T1[byte(a, 16)], T2[byte(b, 8)], T3[byte(c, 0)], keys[i + 3])
    end
    return xor(substitute(a, b, c, d), keys[40]), xor(substitute(b, c, d, a), keys[41]),
        xor(substitute(c, d, a, b), keys[42]), xor(substitute(d, a, b, c), keys[43])
end

-- Decrypts what AES-128-GCM encrypted under `key` (16 bytes) with the nonce of three 32-bit words. The tag is not checked.
local function decrypt(key, n0, n1, n2, text)
    local keys, out, length = expand(key), {}, #text
    local padded = text .. ("\0"):rep(-length % 16)
    for at = 1, length, 16 do
        local words = { encrypt(keys, n0, n1, n2, math.floor(at / 16) + 2) }
        for i = 1, 4 do
            local word = xor(words[i], word_at(padded, at + 4 * i - 4))
            out[#out + 1] = string.char(byte(word, 24), byte(word, 16), byte(word, 8), byte(word, 0))
        end
    end
    return table.concat(out):sub(1, length)
end

return decrypt
