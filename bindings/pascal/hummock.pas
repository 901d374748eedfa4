{ Hummock as the memory manager of a Pascal program.

  Name it first in the program's uses clause, before cthreads too:

      uses Hummock, cthreads, SysUtils ...;

  Everything the program allocates from then on (strings, arrays, objects, GetMem, New) is Hummock's.
  The unit HummockStatic is the same with libhummock.a in the program, instead of libhummock.so.
  Defines: HUMMOCK_LEAKS   as the environment's HUMMOCKPAS_LEAKS=1: at the end a summary of leaks, with -gl by line
           HUMMOCK_STATIC  makes this unit HummockStatic's equal
  Free Pascal takes a unit that it compiled before whatever is defined now: with -B it looks again.
  Free Pascal 3.2 on Linux. The branch for Delphi is compiled in the tests with declarations that stand
  for Delphi's; with Delphi itself it was not tried. }
{$IFDEF HUMMOCK_UNIT_STATIC}
unit HummockStatic;
{$ELSE}
unit Hummock;
{$ENDIF}

{$IFDEF FPC}
  {$MODE DELPHI}
  {$IFNDEF HUMMOCK_AS_DELPHI} {$DEFINE HUMMOCK_FPC} {$ENDIF}
{$ENDIF}
{$OVERFLOWCHECKS OFF} {$RANGECHECKS OFF} {$IOCHECKS OFF}

interface

{$IFDEF HUMMOCK_AS_DELPHI}
uses DelphiSystem;
{$ENDIF}

const
  HummockClassCount = 82;

type
  { As hummock_class_stats_t and hummock_stats_t in hummock.h, which says what each figure is. }
  THummockClassStats = record
    BlockSize, Slabs, LiveBlocks: NativeUInt;
  end;
  THummockStats = record
    Size, Live, Committed, Dirty, Resident, Mapped, Peak, Metadata: NativeUInt;
    Threads, Heaps, LargeBlocks, LargeBytes, Purged, Classes: NativeUInt;
    PerClass: array [0 .. HummockClassCount - 1] of THummockClassStats;
  end;

{ True when the program's memory is Hummock's; False when it could not be installed (a message said why). }
function HummockInstalled: Boolean;

{ '1.0.0'. }
function HummockVersion: PAnsiChar;

{ Fills Stats; the cost is one step a slab. It counts what C libraries took from Hummock's malloc, too. }
procedure HummockGetStats(out Stats: THummockStats);

{ All figures as JSON, as `hummock stats --json` prints them. }
function HummockGetJson: AnsiString;

{ What the calling thread allocates from now on is for Tag; the one before is returned. }
function HummockTag(Tag: Cardinal): Cardinal;
{ What threads with the tag have drawn from slabs so far; False: no thread had it. }
function HummockTagTotal(Tag: Cardinal; out Bytes, Blocks: UInt64): Boolean;

type
  { Of a live block; 0 ends the walk. }
  THummockVisit = function(Context, Block: Pointer; Size: NativeUInt): Integer; cdecl;

{ Calls Visit for each live block, also for those of C libraries on Hummock's malloc. 0, or an error of errno.h. }
function HummockWalk(Visit: THummockVisit; Context: Pointer): Integer;

{ How much of the block's slab is in use, in percent; 100 where it would gain nothing to move it; -1: no block. }
function HummockUtilisation(Block: Pointer): Integer;

type
  { What a tool wants to be told of, as hummock_hooks_t in hummock/observe.h, which says what each call may do; a
    member may be nil. Any thread calls them, in the middle of its GetMem or FreeMem. }
  THummockHooks = record
    Size: NativeUInt; { SizeOf(THummockHooks) }
    Context: Pointer;
    Allocated: procedure(Context, Block: Pointer; Size: NativeUInt); cdecl;
    Resized: procedure(Context, Block: Pointer; Size: NativeUInt; Before: Pointer); cdecl;
    Released: procedure(Context, Block: Pointer); cdecl;
    Mapped: procedure(Context: Pointer; What: PAnsiChar; Address: Pointer; Bytes: NativeUInt); cdecl;
  end;
  PHummockHooks = ^THummockHooks;

{ Installs hooks for the whole process, or takes them away (nil). Hooks must be a global variable that stays as it is.
  0, or an error of errno.h. }
function HummockSetHooks(Hooks: PHummockHooks): Integer;

{ Samples one block in Bytes bytes from now on, with its stack; 0: as the option profile says, 1: every block. `hummock
  profile` does the same from outside. Each returns 0, or an error of errno.h. }
function HummockProfileStart(Bytes: NativeUInt): Integer;
function HummockProfileStop: Integer;
{ Writes what was sampled to a file that pprof reads. }
function HummockProfileWrite(Path: PAnsiChar): Integer;

{ Gives free memory back to the system, all but about Keep bytes; True when there was some. }
function HummockTrim(Keep: NativeUInt): Boolean;

{ An option by name, as 'decay_ms' to '100'; 0, or an error of errno.h. }
function HummockSetOption(Name, Value: PAnsiChar): Integer;

{ The block will stay to the end of the program on purpose: the leak summary leaves it out. False when no
  summary was asked for, or there is no such block. }
function HummockExpectLeak(Block: Pointer): Boolean;
function HummockUnexpectLeak(Block: Pointer): Boolean;

implementation

{ ---- The library ---------------------------------------------------------------------------------- }

{$IFDEF HUMMOCK_FPC}
  {$IFDEF HUMMOCK_STATIC} {$LINKLIB libhummock.a} {$LINKLIB gcc} {$ELSE} {$LINKLIB hummock} {$ENDIF}
  {$LINKLIB c}
{$ELSE}
const
  HummockLibrary = 'libhummock.so.1';
  CLibrary = 'libc.so.6';
{$ENDIF}

function hummock_malloc(Size: NativeUInt): Pointer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_malloc';
function hummock_malloc_zero(Size: NativeUInt): Pointer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_malloc_zero';
function hummock_realloc(Block: Pointer; Size: NativeUInt): Pointer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_realloc';
procedure hummock_free(Block: Pointer); cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_free';
function hummock_usable_size(Block: Pointer): NativeUInt; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_usable_size';
function hummock_profile_start(Bytes: NativeUInt): Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_profile_start';
function hummock_profile_stop: Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_profile_stop';
function hummock_profile_write(Path: PAnsiChar): Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_profile_write';
function hummock_trim(Keep: NativeUInt): Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_trim';
function hummock_stats(var Stats: THummockStats): Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_stats';
type
  THummockTagStats = record
    Size: NativeUInt;
    Bytes, Blocks: UInt64;
  end;

function hummock_stats_json(Text: PAnsiChar; Room: NativeUInt): NativeUInt; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_stats_json';
function hummock_tag(Tag: Cardinal): Cardinal; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_tag';
function hummock_tag_stats(Tag: Cardinal; var Stats: THummockTagStats): Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_tag_stats';
function hummock_heap_walk(Heap: Pointer; Visit: THummockVisit; Context: Pointer): Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_heap_walk';
function hummock_slab_utilisation(Block: Pointer): Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_slab_utilisation';
function hummock_set_hooks(Hooks: PHummockHooks): Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_set_hooks';
function hummock_version: PAnsiChar; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_version';
function hummock_option_set(Name, Value: PAnsiChar): Integer; cdecl;
  external {$IFNDEF HUMMOCK_FPC} HummockLibrary {$ENDIF} name 'hummock_option_set';
{$IFDEF HUMMOCK_FPC}
type
  TBadPointerHandler = procedure(Message: PAnsiChar); cdecl;

function hummock_on_bad_pointer(Handler: TBadPointerHandler): Integer; cdecl;
  external name 'hummock_on_bad_pointer';
{$ENDIF}

function c_getenv(Name: PAnsiChar): PAnsiChar; cdecl;
  external {$IFNDEF HUMMOCK_FPC} CLibrary {$ENDIF} name 'getenv';
function c_strlen(Text: PAnsiChar): NativeUInt; cdecl;
  external {$IFNDEF HUMMOCK_FPC} CLibrary {$ENDIF} name 'strlen';
function c_write(Handle: Integer; Text: Pointer; Length: NativeUInt): NativeInt; cdecl;
  external {$IFNDEF HUMMOCK_FPC} CLibrary {$ENDIF} name 'write';

procedure Say(Text: PAnsiChar);
begin
  c_write(2, Text, c_strlen(Text));
end;

{ ---- What both managers share --------------------------------------------------------------------- }

var
  Installed: Boolean = False;

function HummockInstalled: Boolean;
begin
  Result := Installed;
end;

function HummockVersion: PAnsiChar;
begin
  Result := hummock_version;
end;

procedure HummockGetStats(out Stats: THummockStats);
begin
  Stats.Size := SizeOf(Stats);
  hummock_stats(Stats);
  { A newer library may have more than there is room for here. }
  if Stats.Classes > HummockClassCount then Stats.Classes := HummockClassCount;
end;

function HummockGetJson: AnsiString;
var
  Length: NativeUInt;
begin
  SetLength(Result, hummock_stats_json(nil, 0) + 16384);  { there may be more a moment later }
  Length := hummock_stats_json(PAnsiChar(Result), System.Length(Result));
  if Length < NativeUInt(System.Length(Result)) then SetLength(Result, Length);
end;

function HummockTag(Tag: Cardinal): Cardinal;
begin
  Result := hummock_tag(Tag);
end;

function HummockTagTotal(Tag: Cardinal; out Bytes, Blocks: UInt64): Boolean;
var
  Stats: THummockTagStats;
begin
  Stats.Size := SizeOf(Stats);
  Stats.Bytes := 0;
  Stats.Blocks := 0;
  Result := hummock_tag_stats(Tag, Stats) = 0;
  Bytes := Stats.Bytes;
  Blocks := Stats.Blocks;
end;

function HummockWalk(Visit: THummockVisit; Context: Pointer): Integer;
begin
  Result := hummock_heap_walk(nil, Visit, Context);
end;

function HummockUtilisation(Block: Pointer): Integer;
begin
  Result := hummock_slab_utilisation(Block);
end;

function HummockSetHooks(Hooks: PHummockHooks): Integer;
begin
  Result := hummock_set_hooks(Hooks);
end;

function HummockProfileStart(Bytes: NativeUInt): Integer;
begin
  Result := hummock_profile_start(Bytes);
end;

function HummockProfileStop: Integer;
begin
  Result := hummock_profile_stop;
end;

function HummockProfileWrite(Path: PAnsiChar): Integer;
begin
  Result := hummock_profile_write(Path);
end;

function HummockTrim(Keep: NativeUInt): Boolean;
begin
  Result := hummock_trim(Keep) <> 0;
end;

function HummockSetOption(Name, Value: PAnsiChar): Integer;
begin
  Result := hummock_option_set(Name, Value);
end;

{ ---- Leaks ---------------------------------------------------------------------------------------- }

{$I hummock_leaks.inc}

{$IFDEF HUMMOCK_FPC}
  {$I hummock_fpc.inc}
{$ELSE}
  {$I hummock_delphi.inc}
{$ENDIF}

initialization
  Install;

finalization
  { The manager stays: other units' blocks may be freed after this. }
  if CountsLeaks then ReportLeaks;
end.
