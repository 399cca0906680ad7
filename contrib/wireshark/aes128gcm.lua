-- AES-128-GCM (FIPS 197, NIST SP 800-38D), as far as opening needs it.
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

-- A field element of 128 bits is four words, the coefficient of x^0 in the highest bit of the first (SP 800-38D, section 6.3).
local function times_x(a, b, c, d)
    local reduction = d % 2 * 0xe1000000
    return xor(math.floor(a / 2), reduction), math.floor(b / 2) + a % 2 * 0x80000000,
        math.floor(c / 2) + b % 2 * 0x80000000, math.floor(d / 2) + c % 2 * 0x80000000
end

-- By the byte that is shifted out at the end of an element times x^8: what it adds to the first word.
local REDUCTION = {}
for r = 0, 255 do
    local a, b, c, d = 0, 0, 0, r
    for _ = 1, 8 do a, b, c, d = times_x(a, b, c, d) end
    REDUCTION[r] = a
end

-- The products of an element with every byte, by word.
local function products(a, b, c, d)
    local p = { { [0] = 0 }, { [0] = 0 }, { [0] = 0 }, { [0] = 0 } }
    local bit = 128
    while bit >= 1 do
        p[1][bit], p[2][bit], p[3][bit], p[4][bit] = a, b, c, d
        a, b, c, d = times_x(a, b, c, d)
        bit = bit / 2
    end
    for value = 1, 255 do
        local lowest = 1
        while value % (2 * lowest) == 0 do lowest = 2 * lowest end
        for i = 1, 4 do p[i][value] = xor(p[i][value - lowest], p[i][lowest]) end
    end
    return p
end

local function ghash(p, text, a, b, c, d)
    local p1, p2, p3, p4 = p[1], p[2], p[3], p[4]
    local padded = text .. ("\0"):rep(-#text % 16)
    for at = 1, #padded, 16 do
        local words = { xor(a, word_at(padded, at)), xor(b, word_at(padded, at + 4)),
            xor(c, word_at(padded, at + 8)), xor(d, word_at(padded, at + 12)) }
        a, b, c, d = 0, 0, 0, 0
        for i = 4, 1, -1 do
            for shift = 0, 24, 8 do
                local value, over = byte(words[i], shift), d % 256
                a, b, c, d =
                    xor(math.floor(a / 256), REDUCTION[over], p1[value]),
                    xor(math.floor(b / 256) + a % 256 * 0x1000000, p2[value]),
                    xor(math.floor(c / 256) + b % 256 * 0x1000000, p3[value]),
                    xor(math.floor(d / 256) + c % 256 * 0x1000000, p4[value])
            end
        end
    end
    return a, b, c, d
end

local function text_of(...)
    local out = {}
    for i, word in ipairs({ ... }) do
        out[i] = string.char(byte(word, 24), byte(word, 16), byte(word, 8), byte(word, 0))
    end
    return table.concat(out)
end

local function counter_mode(words, n0, n1, n2, text)
    local out, padded = {}, text .. ("\0"):rep(-#text % 16)
    for at = 1, #text, 16 do
        local a, b, c, d = encrypt(words, n0, n1, n2, math.floor(at / 16) + 2)
        out[#out + 1] = text_of(xor(a, word_at(padded, at)), xor(b, word_at(padded, at + 4)),
            xor(c, word_at(padded, at + 8)), xor(d, word_at(padded, at + 12)))
    end
    return table.concat(out):sub(1, #text)
end

-- What opens packets that were sealed under `key` (16 bytes). Of a nonce of three 32-bit words, the associated data, the ciphertext
-- and the tag, it makes the plaintext; nil if the tag is not theirs.
return function(key)
    local words, hash_key -- made when first needed: a key log names many connections that a capture does not hold
    return function(n0, n1, n2, header, text, tag)
        words = words or expand(key)
        hash_key = hash_key or products(encrypt(words, 0, 0, 0, 0))
        local a, b, c, d = ghash(hash_key, header, 0, 0, 0, 0)
        a, b, c, d = ghash(hash_key, text, a, b, c, d)
        a, b, c, d = ghash(hash_key, text_of(0, 8 * #header, 0, 8 * #text), a, b, c, d)
        local w, x, y, z = encrypt(words, n0, n1, n2, 1)
        local is_theirs = text_of(xor(a, w), xor(b, x), xor(c, y), xor(d, z)) == tag
        return is_theirs and counter_mode(words, n0, n1, n2, text) or nil
    end
end
