# A concordance of made-up text: regular expressions, hashes of arrays, strings, sorting.
use strict;
use warnings;
my $seed = 31;
sub below { $seed = ($seed * 1103515245 + 12345) % 2147483648; return int($seed / 65536) % $_[0]; }
my @parts = qw(ba re ti mo nu ska lin dor pel gra ven tos);
my @words = map { join "", map { $parts[below(12)] } 0 .. 1 + below(3) } 1 .. 3000;
my $text = "";
for my $line (1 .. 12000) { $text .= join(" ", map { $words[below(3000)] } 0 .. 4 + below(10)) . (below(5) ? ",\n" : ".\n"); }
for my $round (1 .. 2) {
  my (%places, %pairs, %records);
  my $number = 0;
  for my $sentence (split /\.\n/, $text) {
    my @found = $sentence =~ /(\w+)/g;
    for my $i (0 .. $#found) {
      push @{ $places{ $found[$i] } }, [$number, $i];
      $pairs{"$found[$i-1] $found[$i]"}++ if $i > 0;
    }
    $records{$number++} = { length => scalar @found, first => $found[0], last => $found[-1], text => substr($sentence, 0, 60) };
  }
  my @often = sort { scalar(@{ $places{$b} }) <=> scalar(@{ $places{$a} }) || $a cmp $b } keys %places;
  my @pairs = sort { $pairs{$b} <=> $pairs{$a} || $a cmp $b } keys %pairs;
  my $page = join "\n", map { my $w = $_; sprintf "%-20s %s", $w, join ",", map { "$_->[0]:$_->[1]" } @{ $places{$w} } } @often;
  $page =~ s/(\d+):(\d+)/$2\@$1/g;
  die "short" if length($page) < 1000 || @pairs < 1000 || keys(%records) < 100;
}
