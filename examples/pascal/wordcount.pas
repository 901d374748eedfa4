{ The ten commonest words of some files, and what counting them took.

    fpc -Fu../../bindings/pascal -Fi../../bindings/pascal -Fl../../build wordcount.pas
    LD_LIBRARY_PATH=../../build ./wordcount ../../docs/*.md }
program wordcount;

{$MODE DELPHI}

uses
  Hummock, cthreads, SysUtils, Classes;

var
  Words: TStringList;

procedure CountWord(const Word: String);
var
  Index: Integer;
begin
  if Word = '' then Exit;
  if not Words.Find(Word, Index) then Index := Words.Add(Word);
  Words.Objects[Index] := TObject(PtrInt(Words.Objects[Index]) + 1);
end;

procedure CountFile(const Name: String);
var
  Lines: TStringList;
  Line, Word: String;
  Letter: Char;
begin
  Lines := TStringList.Create;
  try
    Lines.LoadFromFile(Name);
    for Line in Lines do
    begin
      Word := '';
      for Letter in LowerCase(Line) + ' ' do
        if Letter in ['a' .. 'z'] then
          Word := Word + Letter
        else
        begin
          CountWord(Word);
          Word := '';
        end;
    end;
  finally
    Lines.Free;
  end;
end;

function CommonestFirst(List: TStringList; Left, Right: Integer): Integer;
begin
  Result := PtrInt(List.Objects[Right]) - PtrInt(List.Objects[Left]);
  if Result = 0 then Result := CompareStr(List[Left], List[Right]);
end;

var
  Index: Integer;
  Stats: THummockStats;
begin
  Words := TStringList.Create;
  Words.CaseSensitive := True;
  Words.UseLocale := False;
  Words.Sorted := True;
  for Index := 1 to ParamCount do CountFile(ParamStr(Index));
  Words.Sorted := False;
  Words.CustomSort(CommonestFirst);
  for Index := 0 to 9 do
    if Index < Words.Count then WriteLn(PtrInt(Words.Objects[Index]), ' ', Words[Index]);
  HummockGetStats(Stats);
  WriteLn(StdErr, Words.Count, ' words; ', Stats.Live div 1024, ' KiB in use, ', Stats.Peak div 1024, ' KiB at most');
  Words.Free;
end.
