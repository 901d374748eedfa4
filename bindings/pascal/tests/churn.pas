{ String churn: each thread keeps 1,000 strings and replaces, lengthens and cuts them at random. Prints the
  CPU nanoseconds of one operation. Usage: churn THREADS LENGTH OPERATIONS-A-THREAD
  -dCMEM builds it on the C library's malloc. }
program churn;

{$MODE DELPHI}

uses
  {$IFDEF CMEM} cmem {$ELSE} Hummock {$ENDIF}, cthreads, SysUtils;

{ CPU microseconds of all threads. }
function clock: PtrInt; cdecl; external 'c';

const
  Slots = 1000;

var
  Longest, Operations: Integer;
  Failed: LongInt = 0;
  Handles: array of TThreadID;

type
  TSlots = array [0 .. Slots - 1] of AnsiString;

function Next(var State: QWord): Cardinal; inline;
begin
  State := State xor (State shl 13);
  State := State xor (State shr 7);
  State := State xor (State shl 17);
  Result := State shr 32;
end;

procedure Mark(var Text: AnsiString; Slot: Integer);
begin
  if Text = '' then Exit;
  Text[1] := AnsiChar(Slot and 255);
  Text[Length(Text)] := AnsiChar(Slot and 255);
end;

procedure CheckMark(const Text: AnsiString; Slot: Integer);
begin
  if (Text <> '') and ((Text[1] <> AnsiChar(Slot and 255)) or (Text[Length(Text)] <> AnsiChar(Slot and 255))) then
    InterlockedIncrement(Failed);
end;

function Run(Argument: Pointer): PtrInt;
var
  Strings: ^TSlots;
  State: QWord;
  Index, Slot: Integer;
begin
  State := PtrUInt(Argument) * 2654435761 + 88172645463325252;
  New(Strings);
  for Index := 1 to Operations do
  begin
    Slot := Next(State) mod Slots;
    CheckMark(Strings^[Slot], Slot);
    case Next(State) and 7 of
      0: Strings^[Slot] := '';
      1: if Strings^[Slot] <> '' then SetLength(Strings^[Slot], Next(State) mod Cardinal(Length(Strings^[Slot])));
      2: if Length(Strings^[Slot]) < Longest then Strings^[Slot] := Strings^[Slot] + 'and a little more';
    else
      Strings^[Slot] := '';
      SetLength(Strings^[Slot], 1 + Next(State) mod Cardinal(Longest));
    end;
    Mark(Strings^[Slot], Slot);
  end;
  Dispose(Strings);
  Result := 0;
end;

var
  Threads, Index: Integer;
begin
  Threads := StrToInt(ParamStr(1));
  Longest := StrToInt(ParamStr(2));
  Operations := StrToInt(ParamStr(3));
  SetLength(Handles, Threads + 1);
  for Index := 1 to Threads do Handles[Index] := BeginThread(Run, Pointer(PtrUInt(Index)));
  for Index := 1 to Threads do WaitForThreadTerminate(Handles[Index], 0);
  if Failed <> 0 then
  begin
    WriteLn(StdErr, 'churn: ', Failed, ' strings did not hold what was written');
    Halt(1);
  end;
  WriteLn((clock * 1000.0 / Operations / Threads):0:1);
end.
