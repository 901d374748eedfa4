{ Under a limit of address space: takes strings until memory ends, gives some back, goes on. Ten times. }
program exhaust;

{$MODE DELPHI}

uses
  Hummock, cthreads, SysUtils;

var
  Strings: array of AnsiString;
  Round, Count: Integer;

procedure Fill;
begin
  Count := 0;
  SetLength(Strings, 100000);
  while Count < Length(Strings) do
  begin
    SetLength(Strings[Count], 10000 + Count mod 100000);
    Inc(Count);
  end;
end;

begin
  for Round := 1 to 10 do
  begin
    try
      Fill;
      WriteLn('memory did not end');
      Halt(1);
    except
      on EOutOfMemory do;
    end;
    if Count < 100 then
    begin
      WriteLn('only ', Count, ' strings in round ', Round);
      Halt(1);
    end;
    SetLength(Strings, 0);
  end;
  WriteLn('all hold');
end.
