map(select(.price > 20) | . + {words: (.text | split(" ") | length), upper: (.name | ascii_upcase)})
| group_by(.kind)
| map({kind: .[0].kind, count: length, total: (map(.price) | add), longest: (max_by(.words) | .upper),
       tags: (map(.tags[]) | group_by(.) | map({key: .[0], value: length}) | from_entries)})
