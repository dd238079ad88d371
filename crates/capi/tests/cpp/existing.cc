// The same in C++.
#include "../c/existing.c"
