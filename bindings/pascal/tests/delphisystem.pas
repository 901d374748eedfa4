{ Stands for what Delphi's System unit declares, so that Free Pascal compiles, and runs, the unit's branch
  for Delphi: a TMemoryManagerEx serves as this program's memory manager. }
unit DelphiSystem;

{$MODE DELPHI}

interface

type
  TMemoryManagerEx = record
    GetMem: function(Size: NativeInt): Pointer;
    FreeMem: function(Block: Pointer): Integer;
    ReallocMem: function(Block: Pointer; Size: NativeInt): Pointer;
    AllocMem: function(Size: NativeInt): Pointer;
    RegisterExpectedMemoryLeak: function(Block: Pointer): Boolean;
    UnregisterExpectedMemoryLeak: function(Block: Pointer): Boolean;
    Reserved: array [0 .. 15] of Pointer;
  end;

procedure SetMemoryManager(const Manager: TMemoryManagerEx);

implementation

const
  OutOfMemory = 203;
  BadPointer = 204;

var
  Ex: TMemoryManagerEx;

function hummock_usable_size(Block: Pointer): PtrUInt; cdecl; external name 'hummock_usable_size';
procedure HandleError(Number: LongInt); external name 'FPC_HANDLEERROR';

function Get(Size: PtrUInt): Pointer;
begin
  Result := Ex.GetMem(Size);
  if Result = nil then HandleError(OutOfMemory);
end;

function Zeroed(Size: PtrUInt): Pointer;
begin
  Result := Ex.AllocMem(Size);
  if Result = nil then HandleError(OutOfMemory);
end;

function Free(Block: Pointer): PtrUInt;
begin
  if (Block <> nil) and (Ex.FreeMem(Block) <> 0) then HandleError(BadPointer);
  Result := 0;
end;

function FreeSized(Block: Pointer; Size: PtrUInt): PtrUInt;
begin
  Result := Free(Block);
end;

function Resize(var Block: Pointer; Size: PtrUInt): Pointer;
begin
  if (Size = 0) or (Block = nil) then
  begin
    Free(Block);
    if Size = 0 then Block := nil else Block := Get(Size);
    Exit(Block);
  end;
  Result := Ex.ReallocMem(Block, Size);
  if Result = nil then HandleError(OutOfMemory);
  Block := Result;
end;

function SizeOfBlock(Block: Pointer): PtrUInt;
begin
  Result := hummock_usable_size(Block);
end;

procedure SetMemoryManager(const Manager: TMemoryManagerEx);
var
  Own: TMemoryManager;
begin
  Ex := Manager;
  GetMemoryManager(Own);
  Own.GetMem := Get;
  Own.FreeMem := Free;
  Own.FreeMemSize := FreeSized;
  Own.AllocMem := Zeroed;
  Own.ReAllocMem := Resize;
  Own.MemSize := SizeOfBlock;
  System.SetMemoryManager(Own);
end;

end.
