{ Errors without SysUtils end the program with a runtime error. Usage: runerrors memory|pointer|realloc }
program runerrors;

{$MODE DELPHI}

uses
  Hummock;

var
  StaticData: array [0 .. 63] of Integer;
  Block: Pointer;
begin
  if ParamStr(1) = 'memory' then GetMem(Block, PtrUInt(1) shl 60);
  if ParamStr(1) = 'pointer' then FreeMem(@StaticData);
  Block := @StaticData;
  if ParamStr(1) = 'realloc' then ReAllocMem(Block, 100);
end.
