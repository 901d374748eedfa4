{ Strings made by one thread and freed by another; then threads that begin and end. Prints how many threads
  still have a heap, and the most memory held, in MiB. }
program handoff;

{$MODE DELPHI}

uses
  Hummock, cthreads, SysUtils;

const
  Pairs = 4;
  Slots = 256;
  Strings = 100000;
  ShortThreads = 1000;

type
  TRing = record
    Slot: array [0 .. Slots - 1] of AnsiString;
    Guard: TRTLCriticalSection;
    Written, Taken: Integer;
  end;

var
  Rings: array [1 .. Pairs] of TRing;
  Handles: array of TThreadID;
  Failed: LongInt = 0;

function Produce(Argument: Pointer): PtrInt;
var
  Text: AnsiString;
  Index: Integer;
  Put: Boolean;
begin
  for Index := 0 to Strings - 1 do
  begin
    Text := '';
    SetLength(Text, 5 + Index mod 3000);
    Text[1] := AnsiChar(Index and 127);
    Text[Length(Text)] := AnsiChar(Index and 127);
    repeat
      with Rings[PtrUInt(Argument)] do
      begin
        EnterCriticalSection(Guard);
        Put := Written - Taken < Slots;
        if Put then
        begin
          Slot[Written mod Slots] := Text;
          Text := '';
          Inc(Written);
        end;
        LeaveCriticalSection(Guard);
      end;
      if not Put then ThreadSwitch;
    until Put;
  end;
  Result := 0;
end;

function Consume(Argument: Pointer): PtrInt;
var
  Text: AnsiString;
  Index: Integer;
begin
  Index := 0;
  while Index < Strings do
    with Rings[PtrUInt(Argument)] do
    begin
      EnterCriticalSection(Guard);
      Text := '';
      if Taken < Written then
      begin
        Text := Slot[Taken mod Slots];
        Slot[Taken mod Slots] := '';
        Inc(Taken);
      end;
      LeaveCriticalSection(Guard);
      if Text = '' then
      begin
        ThreadSwitch;
        Continue;
      end;
      if (Length(Text) <> 5 + Index mod 3000) or (Text[Length(Text)] <> AnsiChar(Index and 127)) then
        InterlockedIncrement(Failed);
      Inc(Index);
    end;
  Result := 0;
end;

function Short(Argument: Pointer): PtrInt;
var
  Text: AnsiString;
begin
  Text := IntToStr(PtrInt(Argument));
  SetLength(Text, 50000);
  Result := 0;
end;

var
  Index: Integer;
  Stats: THummockStats;
begin
  SetLength(Handles, 2 * Pairs + 1);
  for Index := 1 to Pairs do
  begin
    InitCriticalSection(Rings[Index].Guard);
    Handles[Index] := BeginThread(Produce, Pointer(PtrUInt(Index)));
    Handles[Pairs + Index] := BeginThread(Consume, Pointer(PtrUInt(Index)));
  end;
  for Index := 1 to 2 * Pairs do WaitForThreadTerminate(Handles[Index], 0);
  for Index := 1 to ShortThreads do WaitForThreadTerminate(BeginThread(Short, Pointer(PtrUInt(Index))), 0);
  if Failed <> 0 then
  begin
    WriteLn(Failed, ' strings came out wrong');
    Halt(1);
  end;
  HummockGetStats(Stats);
  WriteLn(Stats.Threads, ' ', Stats.Peak shr 20);
end.
