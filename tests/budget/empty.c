/* Functions of malloc's and free's shape that do nothing: one instruction each, their return. What a
 * loop costs with these, less the two returns, is what the loop and the calls cost. */
__asm__(
    ".text\n"
    ".globl empty_malloc\n"
    ".type empty_malloc, @function\n"
    "empty_malloc: ret\n"
    ".size empty_malloc, .-empty_malloc\n"
    ".globl empty_free\n"
    ".type empty_free, @function\n"
    "empty_free: ret\n"
    ".size empty_free, .-empty_free\n"
    ".section .note.GNU-stack,\"\",%progbits\n");
