"""The pool of 2 MiB pages that the system sets aside: changed for a test, and always put back."""
import contextlib
import os

FOLDER = "/sys/kernel/mm/hugepages/hugepages-2048kB/"


def read(name):
    with open(FOLDER + name, encoding="ascii") as file:
        return int(file.read())


def write(name, number):
    with open(FOLDER + name, "w", encoding="ascii") as file:
        file.write(str(number))


def can_change():
    return os.geteuid() == 0 and os.access(FOLDER + "nr_overcommit_hugepages", os.W_OK)


@contextlib.contextmanager
def pool(pages):
    """Just so many pages can be had, beside those that are set aside and free already."""
    before = read("nr_overcommit_hugepages")
    surplus = read("surplus_hugepages")
    write("nr_overcommit_hugepages", surplus + pages)
    try:
        if read("nr_overcommit_hugepages") != surplus + pages:
            raise PermissionError("the kernel did not take the new size of the pool")
        yield
    finally:
        write("nr_overcommit_hugepages", before)


def thp_mode():
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as file:
            return file.read().partition("[")[2].partition("]")[0]
    except OSError:
        return "none"
