/* An instruction that puts the address of the next one into %0: nothing else in a function has it. */
#ifdef __aarch64__
#define HERE "adr %0, . + 4"
#else
#define HERE "lea 0(%%rip), %0"
#endif
