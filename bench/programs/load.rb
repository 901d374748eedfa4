# Parses made-up log lines, counts, sorts, renders and searches: strings, hashes, arrays, objects, symbols.
Entry = Struct.new(:host, :path, :status, :bytes, :words)
random = Random.new(23)
hosts = Array.new(200) { |i| "host#{i}.example.org" }
lines = Array.new(150_000) do |i|
  "#{hosts[random.rand(200)]} GET /page/#{random.rand(3000)}?q=#{random.rand(1 << 30).to_s(36)} #{[200, 200, 304, 404][random.rand(4)]} #{random.rand(90_000)} w#{i % 77} x#{i % 13}"
end
entries = lines.map do |line|
  host, _, path, status, bytes, *words = line.split(" ")
  Entry.new(host, path, status.to_i, bytes.to_i, words.map(&:to_sym))
end
2.times do
  by_host = entries.group_by(&:host)
  report = by_host.map { |host, group| [host, group.sum(&:bytes), group.map(&:path).uniq.size, group.map { |e| e.words.join("+") }.tally] }
  text = report.sort_by { |row| -row[1] }.map { |host, bytes, pages, words| "#{host.ljust(24)} #{bytes.to_s.rjust(12)} #{pages} #{words.sort_by(&:last).last(3)}" }.join("\n")
  raise "short" if text.size < 1000
  found = lines.grep(/q=[a-f]+[0-9]+ 404/) { |line| line.gsub(/[aeiou]/) { |v| v.upcase } }
  raise "none" if found.empty?
end
