// The same text in C++, where the calls are overloads.
#include "../c/migrate.c"
