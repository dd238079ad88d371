// What the files of cases have in common.
#pragma once
#include "families.hpp"
#include "truth.hpp"
#include <vector>

struct Case {
    const char *name;
    void (*begin)();
};

extern const std::vector<Case> cases;
extern const std::vector<Case> more;
extern const std::vector<Case> units;

// Says that `one` holds `a` and wants `b`, and `two` the other way round.
void crossing();
