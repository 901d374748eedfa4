{ Allocates before the program begins. }
unit early;

{$MODE DELPHI}

interface

var
  Text: AnsiString;

implementation

initialization
  SetLength(Text, 1000);
end.
