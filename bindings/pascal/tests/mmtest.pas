{ MMTest: ten times three million blocks of 20,000 bytes, each written once a page and cut to one byte.
  Prints the most memory the process had, in MiB. }
program mmtest;

{$MODE DELPHI}

uses
  Hummock, SysUtils;

const
  Blocks = 3000000;
  Rounds = 10;
  BlockSize = 20000;
  PageSize = 4096;

var
  List: array of PByte;
  Round, Index, Offset: Integer;

function PeakMiB: Integer;
var
  Status: TextFile;
  Line: String;
begin
  Result := -1;
  AssignFile(Status, '/proc/self/status');
  Reset(Status);
  while not Eof(Status) do
  begin
    ReadLn(Status, Line);
    if Copy(Line, 1, 6) = 'VmHWM:' then
      Result := StrToInt(Trim(StringReplace(Copy(Line, 7, MaxInt), 'kB', '', []))) div 1024;
  end;
  CloseFile(Status);
end;

begin
  SetLength(List, Blocks);
  for Round := 1 to Rounds do
  begin
    for Index := 0 to Blocks - 1 do
    begin
      GetMem(List[Index], BlockSize);
      Offset := 0;
      while Offset < BlockSize do
      begin
        List[Index][Offset] := Byte(Index);
        Inc(Offset, PageSize);
      end;
      ReAllocMem(List[Index], 1);
    end;
    for Index := 0 to Blocks - 1 do
    begin
      if List[Index]^ <> Byte(Index) then
      begin
        WriteLn('block ', Index, ' does not hold what was written');
        Halt(1);
      end;
      FreeMem(List[Index]);
    end;
  end;
  WriteLn(PeakMiB);
end.
