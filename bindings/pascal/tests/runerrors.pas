{ Errors without SysUtils end the program with a runtime error. Usage: runerrors memory|pointer|realloc|twice }
program runerrors;

{$MODE DELPHI}

uses
  Hummock;

var
  StaticData: array [0 .. 63] of Integer;
  Block: Pointer;
  Round: Integer;
begin
  if ParamStr(1) = 'memory' then GetMem(Block, PtrUInt(1) shl 60);
  if ParamStr(1) = 'pointer' then FreeMem(@StaticData);
  Block := @StaticData;
  if ParamStr(1) = 'realloc' then ReAllocMem(Block, 100);
  if ParamStr(1) <> 'twice' then Halt(1);
  GetMem(Block, 100);
  FreeMem(Block);
  FreeMem(Block);
  for Round := 1 to 1000 do GetMem(Block, 100);
end.
