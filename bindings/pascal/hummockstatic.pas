{ The unit Hummock with libhummock.a in the program. A unit of its own, so that none compiled for the shared
  library can be taken in its place. }
{$DEFINE HUMMOCK_STATIC}
{$DEFINE HUMMOCK_UNIT_STATIC}
{$I hummock.pas}
