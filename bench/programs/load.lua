-- A small interpreter's work: tokens, trees, closures and strings of a made-up language, run many times.
local seed = 29
local function below(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed // 65536 % n
end

local function expression(depth)
  if depth == 0 then return below(4) == 0 and "x" or tostring(below(100)) end
  return "(" .. expression(depth - 1) .. " " .. ({ "+", "-", "*" })[below(3) + 1] .. " " .. expression(depth - 1 - below(2) * (depth > 1 and 1 or 0)) .. ")"
end

local function tokens(text)
  local list = {}
  for token in text:gmatch("[%(%)%+%-%*]|%w+|[%(%)%+%-%*x%d]+") do list[#list + 1] = token end
  return list
end

local function parse(text, at)
  if text:sub(at, at) ~= "(" then
    local word = text:match("^%w+", at)
    return { kind = word == "x" and "name" or "number", value = tonumber(word) }, at + #word
  end
  local left, right
  left, at = parse(text, at + 1)
  local operator = text:sub(at + 1, at + 1)
  right, at = parse(text, at + 3)
  return { kind = "call", operator = operator, left = left, right = right }, at + 1
end

local function compile(tree)
  if tree.kind == "number" then return function() return tree.value end end
  if tree.kind == "name" then return function(x) return x end end
  local left, right = compile(tree.left), compile(tree.right)
  if tree.operator == "+" then return function(x) return (left(x) + right(x)) % 1000003 end end
  if tree.operator == "-" then return function(x) return (left(x) - right(x)) % 1000003 end end
  return function(x) return (left(x) * right(x)) % 1000003 end
end

local results, live = {}, {}
for round = 1, 4000 do
  local text = expression(7)
  local tree = parse(text, 1)
  local run = compile(tree)
  live[round % 40 + 1] = { text = text, tree = tree, run = run, tokens = tokens(text) }
  for x = 1, 20 do results[#results + 1] = "f(" .. x .. ") = " .. run(x) end
end
table.sort(results)
assert(#table.concat(results, "\n") > 100000)
