"""Signal sets as ``/proc/<pid>/status`` prints them."""

# Signals 32 and 33 are the C library's own (signal(7)): no call of it lets a program change them,
# so whoever started the tests may hand them down ignored, and nothing between can mend it.
OF_THE_C_LIBRARY = 1 << 31 | 1 << 32


def signals_of(mask: str) -> set[int]:
    """The signal numbers of a hexadecimal mask, without those only the C library may touch."""
    bits = int(mask, 16) & ~OF_THE_C_LIBRARY
    return {number for number in range(1, 65) if bits >> (number - 1) & 1}
