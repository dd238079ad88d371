/* An instruction that puts its own address, or the next one's, into %0: nothing else in a function has it. */
#ifdef __aarch64__
#define HERE "adr %0, ."
#else
#define HERE "lea 0(%%rip), %0"
#endif
