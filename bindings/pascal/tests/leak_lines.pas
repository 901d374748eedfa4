{ Leaves blocks behind on purpose, each from a line of its own. }
program leak_lines;

{$MODE DELPHI}

uses
  Hummock, SysUtils;

var
  Index: Integer;
  Lost: Pointer;
  Some: TObject;
  Text: AnsiString;

procedure Lose(Size: Integer);
begin
  GetMem(Lost, Size); { lost }
end;

procedure Grow;
begin
  Lost := AllocMem(1000);
  ReAllocMem(Lost, 3000); { grown }
end;

procedure Keep;
var
  Freed: Pointer;
begin
  Freed := GetMem(2000);
  Lost := AllocMem(1000); { kept }
  FreeMem(Freed);
end;

begin
  for Index := 1 to 4 do Lose(25); { lose here }
  Some := TObject.Create; { an object }
  Some := nil;
  Grow; { grow here }
  Keep; { keep here }
  SetLength(Text, 300); { a string }
  Pointer(Text) := nil;
end.
