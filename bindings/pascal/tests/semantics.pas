{ Every function of the memory manager, as the run-time library's manual has it. }
program semantics;

{$MODE DELPHI}

uses
  Hummock, cthreads, SysUtils;

type
  TBytes = array [0 .. MaxInt - 1] of Byte;
  PBytes = ^TBytes;

var
  Failures: Integer = 0;
  StaticData: array [0 .. 63] of Integer;

function errno_location: PInteger; cdecl; external name '__errno_location';

procedure Check(Holds: Boolean; const What: String);
begin
  if Holds then Exit;
  WriteLn('FAILED: ', What);
  Inc(Failures);
end;

function IsAligned(Block: Pointer): Boolean;
begin
  Result := PtrUInt(Block) and 15 = 0;
end;

function IsFilled(Block: PBytes; Count: PtrUInt; Value: Byte): Boolean;
var
  Index: PtrUInt;
begin
  Result := True;
  for Index := 1 to Count do if Block^[Index - 1] <> Value then Exit(False);
end;

procedure CheckGetMem;
const
  Sizes: array [0 .. 8] of PtrUInt = (0, 1, 16, 17, 100, 1024, 20000, 100000, 40000000);
var
  Size: PtrUInt;
  Block, Other: Pointer;
begin
  for Size in Sizes do
  begin
    Block := GetMem(Size);
    Other := GetMem(Size);
    Check((Block <> nil) and (Block <> Other), 'GetMem gives blocks of their own');
    Check(IsAligned(Block), 'GetMem aligns to 16');
    Check(MemSize(Block) >= Size, 'MemSize is at least what was asked');
    FillChar(Block^, MemSize(Block), $5A);
    Check(IsFilled(Block, MemSize(Block), $5A), 'all of MemSize can be used');
    FreeMem(Other);
    FreeMem(Block);
  end;
  Check(FreeMem(nil) = 0, 'FreeMem(nil) does nothing');
  Check(MemSize(nil) = 0, 'MemSize(nil) is 0');
end;

procedure CheckAllocMem;
const
  Sizes: array [0 .. 4] of PtrUInt = (0, 7, 500, 30000, 3000000);
var
  Size: PtrUInt;
  Block: Pointer;
  Round: Integer;
begin
  for Size in Sizes do
    for Round := 1 to 3 do
    begin
      Block := AllocMem(Size);
      Check(IsFilled(Block, MemSize(Block), 0), 'AllocMem clears the whole block');
      FillChar(Block^, MemSize(Block), $FF);
      FreeMem(Block);
    end;
end;

procedure CheckReAllocMem;
const
  Sizes: array [0 .. 8] of PtrUInt = (20, 1000, 70000, 3000000, 40000000, 20000, 100, 8, 1);
var
  Block: Pointer;
  Size, Least, Before: PtrUInt;
begin
  Block := nil;
  Check((ReAllocMem(Block, 10) = Block) and (Block <> nil), 'ReAllocMem of nil allocates');
  FillChar(Block^, 10, 1);
  Before := 10;
  for Size in Sizes do
  begin
    Check(ReAllocMem(Block, Size) = Block, 'ReAllocMem gives what it leaves in the variable');
    Least := Before;
    if Size < Least then Least := Size;
    Check(IsFilled(Block, Least, 1), 'ReAllocMem keeps the contents');
    FillChar(Block^, Size, 1);
    Before := Size;
  end;
  Check(MemSize(Block) <= 16, 'ReAllocMem shrinks');
  Check((ReAllocMem(Block, 0) = nil) and (Block = nil), 'ReAllocMem to 0 frees');
  Check(ReAllocMem(Block, 0) = nil, 'ReAllocMem of nil to 0 does nothing');
end;

procedure CheckFreeMemSize;
var
  Block: Pointer;
  Refused: Boolean;
begin
  GetMem(Block, 100);
  FreeMem(Block, 100);
  GetMem(Block, 100);
  FreeMem(Block, 0);
  Check(MemSize(Block) >= 100, 'a size of 0 frees nothing');
  Refused := False;
  try
    FreeMem(Block, 5000);
  except
    on EInvalidPointer do Refused := True;
  end;
  Check(Refused, 'a size above the block''s own is an error');
  FreeMem(Block);
end;

procedure CheckSetLength;
var
  Text, Copied: AnsiString;
  Wide: UnicodeString;
  Numbers: array of Integer;
  Index: Integer;
begin
  Text := '';
  for Index := 1 to 20000 do Text := Text + AnsiChar(Index and 127);
  Copied := Text;
  SetLength(Text, 100000);
  SetLength(Text, 300);
  UniqueString(Text);
  Check((Length(Text) = 300) and (Copy(Copied, 1, 300) = Text), 'strings keep what they held');
  Check(MemSize(Pointer(PAnsiChar(Text) - 24)) < 2000, 'a cut string gives memory back');
  SetLength(Numbers, 10);
  for Index := 0 to 9 do Numbers[Index] := Index;
  SetLength(Numbers, 200000);
  SetLength(Numbers, 10);
  for Index := 0 to 9 do Check(Numbers[Index] = Index, 'arrays keep what they held');
  Wide := UnicodeString(Copied);
  Check(Length(Wide) = 20000, 'wide strings');
end;

procedure CheckOutOfMemory;
var
  Block, Old: Pointer;
  Raised: Integer;
  Text: AnsiString;
  Huge: PtrUInt;
begin
  Raised := 0;
  Huge := PtrUInt(1) shl 60;
  try GetMem(Block, Huge); except on EOutOfMemory do Inc(Raised); end;
  try Block := AllocMem(Huge); except on EOutOfMemory do Inc(Raised); end;
  GetMem(Block, 100);
  FillChar(Block^, 100, 7);
  Old := Block;
  try ReAllocMem(Block, Huge); except on EOutOfMemory do Inc(Raised); end;
  Check((Block = Old) and IsFilled(Block, 100, 7), 'a block that could not grow stays as it was');
  try SetLength(Text, PtrInt(Huge)); except on EOutOfMemory do Inc(Raised); end;
  Check(Raised = 4, 'out of memory raises EOutOfMemory');
  ReturnNilIfGrowHeapFails := True;
  Check(GetMem(Huge) = nil, 'GetMem gives nil when the program wants it');
  Check(AllocMem(Huge) = nil, 'AllocMem gives nil when the program wants it');
  Check((ReAllocMem(Block, Huge) = nil) and (Block = nil), 'ReAllocMem gives nil when the program wants it');
  ReturnNilIfGrowHeapFails := False;
end;

function Refuses(Block: Pointer): Boolean;
begin
  Result := False;
  try FreeMem(Block); except on EInvalidPointer do Result := True; end;
end;

procedure CheckBadPointers;
var
  Local: Integer;
  Block: PByte;
begin
  Check(Refuses(@StaticData), 'FreeMem of static data raises EInvalidPointer');
  Check(Refuses(@Local), 'FreeMem of the stack raises EInvalidPointer');
  GetMem(Block, 300000);
  Check(Refuses(Block + 16), 'FreeMem into a large block raises EInvalidPointer');
  FreeMem(Block);
  Check(Refuses(Block), 'FreeMem of a large block freed before raises EInvalidPointer');
  GetMem(Block, 100);
  try
    MemSize(Block + 8);
    Check(False, 'MemSize into a block raises EInvalidPointer');
  except
    on EInvalidPointer do;
  end;
  FreeMem(Block);
end;

procedure CheckErrno;
var
  Blocks: array [1 .. 200] of Pointer;
  Index: Integer;
begin
  errno_location^ := 77;
  for Index := 1 to 200 do Blocks[Index] := GetMem(Index * Index * 50);
  for Index := 1 to 200 do ReAllocMem(Blocks[Index], Index * 3000);
  for Index := 1 to 200 do FreeMem(Blocks[Index]);
  Check(errno_location^ = 77, 'errno is kept');
end;

procedure CheckStatus;
var
  Block: Pointer;
  Before, Now: THeapStatus;
  FPCBefore, FPCNow: TFPCHeapStatus;
  Stats: THummockStats;
begin
  Before := GetHeapStatus;
  FPCBefore := GetFPCHeapStatus;
  GetMem(Block, 10000000);
  Now := GetHeapStatus;
  FPCNow := GetFPCHeapStatus;
  Check(Now.TotalAllocated >= Before.TotalAllocated + 10000000, 'GetHeapStatus counts what is in use');
  Check(Now.TotalCommitted >= Now.TotalAllocated, 'what is in use is committed');
  Check(Now.TotalAddrSpace >= Now.TotalCommitted, 'what is committed is address space');
  Check(Now.TotalFree = Now.TotalCommitted - Now.TotalAllocated, 'the rest of what is committed is free');
  Check(Now.FreeSmall + Now.FreeBig = Now.TotalFree, 'free is small or big');
  Check(FPCNow.CurrHeapUsed >= FPCBefore.CurrHeapUsed + 10000000, 'GetFPCHeapStatus counts what is in use');
  Check(FPCNow.CurrHeapFree = FPCNow.CurrHeapSize - FPCNow.CurrHeapUsed, 'size is used and free');
  Check(FPCNow.MaxHeapUsed >= FPCNow.CurrHeapUsed, 'the most is not below what is');
  FreeMem(Block);
  Check(GetFPCHeapStatus.CurrHeapUsed < FPCNow.CurrHeapUsed, 'what is freed is not in use');
  HummockGetStats(Stats);
  Check(Stats.Classes = HummockClassCount, 'the unit knows all size classes');
  Check((Stats.PerClass[1].BlockSize = 16) and (Stats.Threads >= 1), 'HummockGetStats');
end;

{ The address space is lazily backed, so 5 GiB can be had on any machine without touching it. }
procedure CheckSaturation;
var
  Block: Pointer;
begin
  GetMem(Block, PtrUInt(5) shl 30);
  Check(GetHeapStatus.TotalAllocated = High(Cardinal), 'figures above 32 bits saturate');
  Check(GetFPCHeapStatus.CurrHeapUsed > PtrUInt(5) shl 30, 'and are whole in GetFPCHeapStatus');
  FreeMem(Block);
end;

function CountBlock(Context, Block: Pointer; Size: NativeUInt): Integer; cdecl;
begin
  if Block = PPointer(Context)^ then PPointer(Context)^ := Pointer(Size);
  Result := 1;
end;

var
  Told: NativeUInt;

procedure NoteBlock(Context, Block: Pointer; Size: NativeUInt); cdecl;
begin
  if Size >= 1 shl 21 then Told := Told + Size;
end;

procedure NoteFree(Context, Block: Pointer); cdecl;
begin
  if Block = PPointer(Context)^ then Told := Told + 1;
end;

var
  Hooked: Pointer;
  Hooks: THummockHooks = (Size: SizeOf(THummockHooks); Context: @Hooked; Allocated: @NoteBlock; Resized: nil;
    Released: @NoteFree; Mapped: nil);

procedure CheckHooks;
begin
  Check(HummockSetHooks(@Hooks) = 0, 'HummockSetHooks');
  GetMem(Hooked, 1 shl 21);
  FreeMem(Hooked);
  Check(HummockSetHooks(nil) = 0, 'hooks can be taken away');
  Check(Told = 1 shl 21 + 1, 'hooks are told of blocks that come and go');
  GetMem(Hooked, 1 shl 21);
  FreeMem(Hooked);
  Check(Told = 1 shl 21 + 1, 'and not any more');
end;

procedure CheckProfile;
const
  Path = 'hummock-profile.heap';
var
  Block: Pointer;
  Lines: Text;
  Line: AnsiString;
begin
  Check(HummockProfileWrite(Path) <> 0, 'there is no profile yet');
  Check(HummockProfileStart(1) = 0, 'HummockProfileStart');
  GetMem(Block, 1 shl 22);
  Check(HummockProfileStop = 0, 'HummockProfileStop');
  Check(HummockProfileWrite(Path) = 0, 'HummockProfileWrite');
  FreeMem(Block);
  Assign(Lines, Path);
  Reset(Lines);
  ReadLn(Lines, Line);
  Close(Lines);
  Erase(Lines);
  Check(Pos('heap profile: ', Line) = 1, 'what is written is a heap profile');
end;

procedure CheckObserve;
var
  Block, Seen: Pointer;
  Bytes, Blocks: UInt64;
  Json: AnsiString;
begin
  Json := HummockGetJson;
  Check((Json[1] = '{') and (Json[Length(Json)] = '}') and (Pos('"totals":{', Json) > 0), 'HummockGetJson');
  Check(HummockTag(4711) = 0, 'a thread begins without a tag');
  GetMem(Block, 1 shl 20);
  Check(HummockTag(0) = 4711, 'HummockTag gives the tag before');
  Check(HummockTagTotal(4711, Bytes, Blocks) and (Bytes >= 1 shl 20) and (Blocks >= 1), 'HummockTagTotal');
  Check(not HummockTagTotal(4712, Bytes, Blocks), 'a tag that nobody had');
  Check(HummockUtilisation(Block) = 100, 'HummockUtilisation');
  Check(HummockUtilisation(@StaticData) = -1, 'HummockUtilisation of no block');
  Seen := Block;
  Check(HummockWalk(CountBlock, @Seen) = 0, 'HummockWalk');
  Check(NativeUInt(Seen) = MemSize(Block), 'a walk tells of a block and its size');
  FreeMem(Block);
end;

begin
  Check(HummockInstalled and IsMemoryManagerSet, 'installed');
  Check(HummockSetOption('decay_ms', '500') = 0, 'options can be set');
  CheckGetMem;
  CheckAllocMem;
  CheckReAllocMem;
  CheckFreeMemSize;
  CheckSetLength;
  CheckOutOfMemory;
  CheckBadPointers;
  CheckErrno;
  CheckStatus;
  CheckSaturation;
  CheckHooks;
  CheckProfile;
  CheckObserve;
  if Failures <> 0 then Halt(1);
  WriteLn('all hold');
end.
