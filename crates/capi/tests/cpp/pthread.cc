// The same in C++.
#include "../c/pthread.c"
