// The same in C++.
#include "../c/foreign.c"
