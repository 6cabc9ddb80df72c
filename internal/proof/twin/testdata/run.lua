-- What Lua's own code does most: tables, texts, closures, coroutines, errors, the collector, a compiler.
local words = {}
for word in ("pack my box with five dozen liquor jugs"):gmatch("%a+") do
  words[#words + 1] = word:upper():rep(2, "-")
end
table.sort(words, function(a, b) return #a < #b or #a == #b and a < b end)
print(table.concat(words, " ", 2), select("#", table.unpack(words)))

local function hanoi(n, from, to, by)
  if n == 0 then return 0 end
  return hanoi(n - 1, from, by, to) + 1 + hanoi(n - 1, by, to, from)
end
print(hanoi(5, "a", "c", "b"), string.format("%05.2f|%-6s|%x|%q", 3.14159, "ab", 48879, "q\n"))

local vector = setmetatable({}, {
  __index = function(_, i) return i * i end,
  __len = function() return 7 end,
  __call = function(self, a, b) return self[a] + self[b] end,
})
local sum = 0
for i = 1, #vector do sum = sum + vector(i, i + 1) % 5 end
print(sum, 7 // 2, -7 % 3, 2 ^ 0.5, 1 << 10, math.tointeger(3.0), 10 / 4)

local steps = coroutine.wrap(function(first)
  for i = 1, 6 do first = first + coroutine.yield(first * i) end
  return "done"
end)
for i = 1, 7 do io.write(tostring(steps(i)), " ") end
print(pcall(error, { 1 }) and "?" or "failed", (select(2, pcall(load, nil))) ~= nil)

local made = assert(load("local x = ... ; for i = 1, 20 do x = x * 3 % 101 end return function() return x end"))
print(made(5)(), ("x=1, y=22"):gsub("(%w)=(%d+)", "%2:%1"), ("a,b,,c"):find(",,", 1, true))
for i = 1, 200 do words[i] = { i, tostring(i) } end
words = nil
collectgarbage()
print(utf8.char(228, 8364, 65):byte(1, -1), #string.pack("<i4z", 7, "seven"), string.unpack("<i4", "\7\0\0\0"))
