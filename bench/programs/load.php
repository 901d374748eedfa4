<?php
// Renders pages of a made-up shop: arrays, objects, templates, sorting, JSON, regular expressions.
mt_srand(37);
class Article {
    public array $tags = [];
    public function __construct(public int $id, public string $name, public float $price) {}
    public function row(): string {
        return sprintf('<li data-id="%d">%s: %.2f (%s)</li>', $this->id, htmlspecialchars($this->name), $this->price, implode(', ', $this->tags));
    }
}
function word(): string {
    $word = '';
    for ($i = mt_rand(2, 5); $i > 0; --$i) $word .= ['ka', 'to', 'mi', 're', 'su', '<b>', 'on'][mt_rand(0, 6)];
    return $word;
}
$articles = [];
for ($i = 0; $i < 40000; ++$i) {
    $article = new Article($i, word() . ' ' . word(), mt_rand(100, 99999) / 100);
    for ($j = mt_rand(0, 4); $j > 0; --$j) $article->tags[] = word();
    $articles[] = $article;
}
$bytes = 0;
for ($page = 0; $page < 6; ++$page) {
    usort($articles, fn($a, $b) => [$a->price * ($page % 2 ? 1 : -1), $a->id] <=> [$b->price * ($page % 2 ? 1 : -1), $b->id]);
    $rows = array_map(fn($article) => $article->row(), array_slice($articles, $page * 5000, 10000));
    $html = preg_replace_callback('/data-id="(\d+)"/', fn($m) => 'id="a' . dechex((int)$m[1]) . '"', implode("\n", $rows));
    $tags = [];
    foreach ($articles as $article) foreach ($article->tags as $tag) $tags[$tag][] = $article->id;
    ksort($tags);
    $bytes += strlen($html) + strlen(json_encode(['page' => $page, 'tags' => $tags]));
    $back = json_decode(json_encode($tags), true);
    if (count($back) !== count($tags)) exit(1);
}
exit($bytes > 1000000 ? 0 : 1);
