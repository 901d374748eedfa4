{ Leaves blocks behind on purpose. }
program leaks;

{$MODE DELPHI}

uses
  Hummock, SysUtils;

var
  Index: Integer;
  Expected, Freed: Pointer;
begin
  for Index := 1 to 3 do GetMem(100);
  GetMem(200000);
  Expected := GetMem(500);
  HummockExpectLeak(Expected);
  Freed := GetMem(700);
  HummockExpectLeak(Freed);
  HummockUnexpectLeak(Freed);
  FreeMem(Freed);
end.
