{ -dAFTER_CMEM, -dAFTER_BLOCKS, -dAFTER_THREADS: the unit comes too late, says so, and the program goes on
  without it. }
program late;

{$MODE DELPHI}

uses
  {$IFDEF AFTER_THREADS} cthreads, {$ENDIF} {$IFDEF AFTER_CMEM} cmem, {$ENDIF} {$IFDEF AFTER_BLOCKS} early, {$ENDIF} Hummock, SysUtils;

var
  Text: AnsiString;
begin
  Text := '';
  while Length(Text) < 100000 do Text := Text + IntToStr(Length(Text));
  WriteLn(HummockInstalled);
end.
