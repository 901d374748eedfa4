"""GDB commands that look into Hummock's heap, in a live process or a core file:

  hummock heap          what the heap holds, in one table
  hummock classes       slabs and blocks of each size class
  hummock block ADDR    what stands at an address

They read memory alone and call nothing in the process. They need the library's debug information: that of a
build, or the file that is installed in .debug beside the library.
"""

import struct

import gdb

KINDS = ("free", "slab", "own_slab", "interior", "large", "huge", "guarded", "cached")
SHARED, DIRECT = 1, 2  # of owners: pages/slab_header.h
LINK_CHECK = 14  # where in a free block the secret's lower half stands, on little-endian machines
LEAST_LINKED = 16  # blocks smaller than this have their marks elsewhere


def fail(what):
    raise gdb.GdbError("hummock: " + what)


def value_of(name):
    try:
        return gdb.parse_and_eval(name)
    except gdb.error:
        fail(f"there is no {name}: no Hummock in this process, or its debug information is missing")


def address_of(value):
    return int(value.address)


def read(address, size):
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except gdb.MemoryError:
        fail(f"{size} bytes at {address:#x} cannot be read")


class Header:
    """A slot's header, read as the debug information says it is laid out."""

    layout = None

    def __init__(self, address, data):
        self.address = address
        for name, (offset, size) in self.fields().items():
            setattr(self, name, int.from_bytes(data[offset:offset + size], "little"))

    @classmethod
    def fields(cls):
        if cls.layout is None:
            try:
                kind = gdb.lookup_type("hummock::SlabHeader")
            except gdb.error:
                fail("the type of slab headers is unknown: the library's debug information is missing")
            wanted = ("owner", "next", "start", "carved", "live", "kind", "size_class", "back", "bytes", "slots",
                      "capacity", "free_bound")
            cls.layout = {f.name: (f.bitpos // 8, f.type.sizeof) for f in kind.fields() if f.name in wanted}
            cls.size = kind.sizeof
        return cls.layout

    def kind_name(self):
        return KINDS[self.kind] if self.kind < len(KINDS) else "unknown"


class Heap:
    def __init__(self):
        dummy = value_of("hummock::pages::region_map")["dummy"]
        Header.fields()
        self.slots = dummy.type.range()[1] + 1
        self.slot_shift = (dummy.type.sizeof - 1).bit_length()  # the headers of a region fill a slot
        self.region_shift = self.slot_shift + (self.slots - 1).bit_length()
        table = value_of("hummock::slab::kTable")["row"]
        self.block_sizes = [int(table[i]["block_size"]) for i in range(table.type.range()[1] + 1)]
        self.secret = int(value_of("hummock::slab::secret_word")["value"])
        self.regions = self.find_regions()

    def find_regions(self):
        region_map = value_of("hummock::pages::region_map")
        distances = region_map["distance"]
        dummy = address_of(region_map["dummy"])
        count = distances.type.range()[1] + 1
        found = struct.unpack(f"<{count}q", read(address_of(distances), 8 * count))
        return sorted(dummy + distance for distance in found if distance != 0)

    def header(self, address):
        return Header(address, read(address, Header.size))

    def headers(self, region):
        """(slot's address, header) of every slot but the first, which holds the headers."""
        data = read(region, self.slots * Header.size)
        for slot in range(1, self.slots):
            at = slot * Header.size
            yield region + (slot << self.slot_shift), Header(region + at, data[at:at + Header.size])

    def spans(self):
        for region in self.regions:
            for slot, header in self.headers(region):
                if header.kind_name() in ("slab", "own_slab", "large", "guarded"):
                    yield slot, header

    def mappings(self):
        """Blocks with a mapping of their own."""
        header = int(value_of("'hummock::pages::(anonymous namespace)::all'")["head_"])
        next_at = next(f.bitpos // 8 for f in gdb.lookup_type("hummock::SlabHeader").fields()
                       if f.name is None or f.name == "")
        while header != 0:
            yield self.header(header)
            header = int.from_bytes(read(header + next_at, 8), "little")

    def span_at(self, region, slot, address):
        """The header of what the slot is a part of: inside a large block the slots' own say nothing."""
        own = header = self.header(region + slot * Header.size)
        if header.kind_name() == "interior":
            return self.header(region + (slot - header.back) * Header.size)
        while header.kind_name() == "free" and slot > 1:
            slot -= 1
            header = self.header(region + slot * Header.size)
        is_inside = header.kind_name() == "large" and header.start <= address < header.start + header.bytes
        return header if is_inside else own

    def find(self, address):
        """(start of the region or block, header) of what the address stands in; the header None: a region's own
        headers."""
        region = address >> self.region_shift << self.region_shift
        if region in self.regions:
            slot = (address - region) >> self.slot_shift
            if slot == 0:
                return region, None
            return region, self.span_at(region, slot, address)
        for header in self.mappings():
            if header.start <= address < header.start + header.bytes:
                return header.start, header
        return None, None


def short(size):
    for unit in ("", "K", "M", "G"):
        if size < 1024 or unit == "G":
            return f"{size:.1f}{unit}" if unit and size != int(size) else f"{int(size)}{unit}"
        size /= 1024


def owner_text(header):
    if header.owner == 0:
        return "nobody's"
    if header.owner == SHARED:
        return "shared"
    return f"of heap {header.owner & ~DIRECT:#x}"


class Command(gdb.Command):
    def __init__(self, name):
        super().__init__("hummock " + name, gdb.COMMAND_DATA)


class HeapCommand(Command):
    """What Hummock's heap holds: regions, slabs, large blocks."""

    def __init__(self):
        super().__init__("heap")

    def invoke(self, argument, from_tty):
        heap = Heap()
        rows = {"slabs": [0, 0, 0], "slabs of first-class heaps": [0, 0, 0], "large blocks": [0, 0, 0],
                "blocks with mappings": [0, 0, 0], "guarded blocks": [0, 0, 0]}
        for _, header in heap.spans():
            if header.kind_name() == "large":
                add = "large blocks", 1, header.bytes, header.bytes
            elif header.kind_name() == "guarded":
                add = "guarded blocks", 1, header.bytes, (header.bytes + 4095) // 4096 * 4096
            else:
                own = header.kind_name() == "own_slab"
                size = heap.block_sizes[header.size_class]
                add = ("slabs of first-class heaps" if own else "slabs"), header.live, header.live * size, header.bytes
            for i, value in enumerate(add[1:]):
                rows[add[0]][i] += value
        for header in heap.mappings():
            for i, value in enumerate((1, header.bytes, header.bytes)):
                rows["blocks with mappings"][i] += value
        print(f"{len(heap.regions)} region{'s' * (len(heap.regions) != 1)} of {short(1 << heap.region_shift)}")
        print(f"{'':28}{'blocks':>10}{'bytes':>10}{'held':>10}")
        for name, (blocks, size, held) in rows.items():
            print(f"{name:28}{blocks:>10}{short(size):>10}{short(held):>10}")
        print("blocks include those that rest in threads' caches")


class ClassesCommand(Command):
    """Slabs and blocks of each size class."""

    def __init__(self):
        super().__init__("classes")

    def invoke(self, argument, from_tty):
        heap = Heap()
        classes = {}
        for _, header in heap.spans():
            if header.kind_name() not in ("large", "guarded"):
                row = classes.setdefault(header.size_class, [0, 0, 0])
                row[0] += 1
                row[1] += header.live
                row[2] += header.bytes
        print(f"{'block':>8}{'slabs':>10}{'blocks':>10}{'bytes':>10}{'held':>10}")
        for number in sorted(classes, key=lambda c: heap.block_sizes[c]):
            slabs, live, held = classes[number]
            size = heap.block_sizes[number]
            print(f"{size:>8}{slabs:>10}{live:>10}{short(live * size):>10}{short(held):>10}")


class BlockCommand(Command):
    """What stands at an address: hummock block ADDR."""

    def __init__(self):
        super().__init__("block")

    def invoke(self, argument, from_tty):
        if not argument:
            fail("block: name an address")
        address = int(gdb.parse_and_eval(argument)) & (1 << 64) - 1
        heap = Heap()
        slot, header = heap.find(address)
        if slot is None:
            print(f"{address:#x} is not Hummock's")
        elif header is None:
            print(f"{address:#x} stands in the headers of the region at {slot:#x}")
        elif header.kind_name() == "guarded" and not header.start <= address < header.start + header.bytes:
            print(f"{address:#x} stands beside a guarded block of {header.bytes} bytes at {header.start:#x}")
        elif header.kind_name() in ("large", "huge", "guarded"):
            print(f"{address:#x} is {address - header.start} bytes into a live block of {header.bytes} bytes at "
                  f"{header.start:#x}, {header.kind_name()}")
        elif header.kind_name() in ("slab", "own_slab"):
            self.in_slab(heap, address, header)
        else:
            print(f"{address:#x} stands in free memory of the region at "
                  f"{address >> heap.region_shift << heap.region_shift:#x}")

    @staticmethod
    def in_slab(heap, address, header):
        size = heap.block_sizes[header.size_class]
        index = (address - header.start) // size
        start = header.start + index * size
        if address < header.start or index >= header.carved:
            print(f"{address:#x} stands in a slab of blocks of {size} bytes, where no block was handed out yet")
            return
        if size < LEAST_LINKED:
            state = "live or free"
        else:
            mark = int.from_bytes(read(start + LINK_CHECK, 2), "little")
            state = "free" if mark == heap.secret & 0xffff else "live"
        print(f"{address:#x} is {address - start} bytes into a {state} block of {size} bytes at {start:#x}")
        print(f"block {index} of {header.carved} in the slab at {header.start:#x}, {header.live} in use, "
              f"{owner_text(header)}")


class Prefix(gdb.Command):
    """Look into Hummock's heap: heap, classes, block ADDR."""

    def __init__(self):
        super().__init__("hummock", gdb.COMMAND_DATA, prefix=True)


Prefix()
HeapCommand()
ClassesCommand()
BlockCommand()
