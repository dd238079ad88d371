/* The second library of returns.c. */
#define LIBRARY
#define GAMMA
#include "returns.c"
