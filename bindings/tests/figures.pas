{ Holds a block for a tag, and prints the figures: as numbers, then as JSON. }
program figures;

uses
  Hummock;

var
  Block: Pointer;
  Stats: THummockStats;

begin
  HummockTag(4711);
  Block := GetMem(10000000);
  HummockTag(0);
  HummockGetStats(Stats);
  WriteLn(Stats.LargeBlocks, ' ', Stats.LargeBytes, ' ', Stats.Mapped, ' ', Stats.Purged);
  WriteLn(HummockGetJson);
  FreeMem(Block);
end.
