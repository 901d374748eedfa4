// What the real programs are given to do.
#pragma once

constexpr char kPython[] = R"py(
import json
import random

def words(random, count):
    return ["".join(random.choices("abcdefghijklmnop", k=random.randint(3, 12))) for _ in range(count)]

def main():
    source = random.Random(1)
    index = {}
    for number, word in enumerate(words(source, 40000)):
        index.setdefault(word[:3], []).append((word, number))
    lines = [" ".join(word for word, _ in sorted(group)) for _, group in sorted(index.items())]
    records = [{"id": i, "name": line[:20], "tags": line.split()[:6], "at": [i, i / 3]} for i, line in enumerate(lines)]
    text = json.dumps(records)
    for _ in range(4):
        records = json.loads(text)
        totals = {}
        for record in records:
            for tag in record["tags"]:
                totals[tag] = totals.get(tag, 0) + record["id"]
    assert len(totals) > 1000

main()
)py";

constexpr char kLua[] = R"lua(
local seed = 1
local function below(n) seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n + 1 end
local live = {}
for i = 1, 60000 do
  local slot = below(10000)
  local item = { id = i, name = "item " .. i, parts = { i, i + 1, i + 2 } }
  item.get = function() return item.id + slot end
  live[slot] = item
end
local names = {}
for _, item in pairs(live) do names[#names + 1] = item.name .. ":" .. item.get() end
table.sort(names)
assert(#table.concat(names, ",") > 100000)
)lua";

constexpr char kSql[] = R"sql(
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, kind INTEGER, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
  INSERT INTO item SELECT i, 'item ' || (i * 7919 % 40000), i * 31 % 97, i * 17 % 1000 / 10.0 FROM n;
CREATE INDEX item_name ON item(name);
CREATE INDEX item_kind ON item(kind, price);
CREATE TABLE sale AS SELECT id * 13 % 40000 + 1 AS item, id % 50 AS amount FROM item;
SELECT kind, count(*), sum(amount * price) FROM sale JOIN item ON item.id = sale.item GROUP BY kind ORDER BY 3;
SELECT name, group_concat(kind) FROM item GROUP BY name HAVING count(*) > 1;
SELECT a.name FROM item a JOIN item b ON b.name = 'item ' || a.id WHERE a.kind < 20 ORDER BY b.price, a.name DESC;
UPDATE item SET name = upper(name) || '!' WHERE kind % 3 = 0;
DELETE FROM item WHERE kind % 5 = 0;
SELECT count(DISTINCT name) FROM item;
)sql";

constexpr char kCpp[] = R"cpp(
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

  template <int N>
  struct Node {
    std::variant<int, std::string, std::vector<int>> value;
    std::map<std::string, std::shared_ptr<Node<N - 1>>> children;
    std::size_t count() const {
      std::size_t sum = value.index();
      for (const auto& [name, child] : children) sum += name.size() + child->count();
      return sum;
    }
  };
  template <>
  struct Node<0> {
    std::size_t count() const { return 1; }
  };

  template <class... Part>
  std::string joined(const Part&... part) {
    std::string text;
    ((text += part, text += ','), ...);
    return text;
  }

  std::size_t everything() {
    Node<24> root;
    root.children[joined("a", std::string("b"), "c")] = std::make_shared<Node<23>>();
    std::unordered_map<std::string, std::function<std::size_t(const Node<24>&)>> table;
    table["count"] = [](const Node<24>& node) { return node.count(); };
    std::vector<std::pair<std::string, std::size_t>> all;
    for (const auto& [name, function] : table) all.emplace_back(name, function(root));
    std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
    std::stable_sort(all.begin(), all.end());
    return all.front().second;
  }
)cpp";
