// The same in C++.
#include "../c/refused.c"
