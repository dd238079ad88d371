/* Debug information that is made to be read for ever; prints addresses, then sleeps. */
#include <stdio.h>
#include <unistd.h>

long typedefs[8], itself[8], arrays[8], endless[8], nothing[8];

__asm__(".section .debug_abbrev,\"\",@progbits\n"
        /* A unit; a variable with a type and a place; a typedef; a structure; a member. */
        ".uleb128 1\n .uleb128 0x11\n .byte 1\n .uleb128 0x13\n .uleb128 0x05\n .byte 0, 0\n"
        ".uleb128 2\n .uleb128 0x34\n .byte 0\n .uleb128 0x49\n .uleb128 0x13\n"
        " .uleb128 0x02\n .uleb128 0x18\n .byte 0, 0\n"
        ".uleb128 3\n .uleb128 0x16\n .byte 0\n .uleb128 0x49\n .uleb128 0x13\n .byte 0, 0\n"
        ".uleb128 4\n .uleb128 0x13\n .byte 1\n .uleb128 0x0b\n .uleb128 0x07\n .byte 0, 0\n"
        ".uleb128 5\n .uleb128 0x0d\n .byte 0\n .uleb128 0x03\n .uleb128 0x08\n"
        " .uleb128 0x49\n .uleb128 0x13\n .uleb128 0x38\n .uleb128 0x07\n .byte 0, 0\n"
        /* An array; how many elements it has; a type by its size. */
        ".uleb128 6\n .uleb128 0x01\n .byte 1\n .uleb128 0x49\n .uleb128 0x13\n .byte 0, 0\n"
        ".uleb128 7\n .uleb128 0x21\n .byte 0\n .uleb128 0x37\n .uleb128 0x07\n .byte 0, 0\n"
        ".uleb128 8\n .uleb128 0x24\n .byte 0\n .uleb128 0x0b\n .uleb128 0x07\n .byte 0, 0\n"
        ".byte 0\n"
        ".section .debug_info,\"\",@progbits\n"
        ".Lunit: .long .Lend - .Lversion\n"
        ".Lversion: .short 4\n .long .debug_abbrev\n .byte 8\n"
        ".uleb128 1\n .short 0x0c\n"
        ".macro variable name, type\n"
        " .uleb128 2\n .long \\type - .Lunit\n .uleb128 9\n .byte 3\n .quad \\name\n"
        ".endm\n"
        ".macro member name, type, at\n"
        " .uleb128 5\n .asciz \"\\name\"\n .long \\type - .Lunit\n .quad \\at\n"
        ".endm\n"
        "variable typedefs, .Lone\n"
        "variable itself, .Litself\n"
        "variable arrays, .Larrays\n"
        "variable endless, .Lendless\n"
        "variable nothing, .Lend + 0x1000\n"
        ".Lone: .uleb128 3\n .long .Lother - .Lunit\n"
        ".Lother: .uleb128 3\n .long .Lone - .Lunit\n"
        ".Litself: .uleb128 4\n .quad 64\n"
        "member a, .Litself, 0\n member b, .Litself, 8\n member c, .Litself, 16\n"
        "member d, .Lhuge, 0x1000000000000000\n member e, .Lhuge, -8\n"
        ".byte 0\n"
        ".Lhuge: .uleb128 8\n .quad 0x1000000000000000\n"
        ".Larrays: .uleb128 6\n .long .Lhuge - .Lunit\n"
        ".rept 3\n .uleb128 7\n .quad 0x1000000000000000\n .endr\n .byte 0\n"
        /* Its last element is itself, and nothing ends it. */
        ".Lendless: .uleb128 6\n .long .Lendless - .Lunit\n"
        ".rept 100000\n .uleb128 7\n .quad 1\n .endr\n"
        ".Lend: .text\n");

int main(void)
{
    printf("typedefs %p\nitself %p\narrays %p\n", (void *)&typedefs[1], (void *)&itself[1],
           (void *)&arrays[1]);
    printf("endless %p\nnothing %p\n", (void *)&endless[1], (void *)&nothing[1]);
    printf("ready\n");
    fflush(stdout);
    pause();
    return 0;
}
