"""Prints what an interpreter says of its own bytecode, in the form of `opcodes/3.12.txt`.

A line with the version, and a line an instruction: its name, its number, the units of cache
behind it, its effect on the depth of the stack when it goes on, when it jumps, and the numbers of
its specialised forms. An effect is a number, with what is added for the argument behind it: `n`
the argument, `b` its lowest bit, `p` the bits set of its lowest four, `f` its bit 2, `s` whether
it is 3.
"""

import dis
import opcode
import sys
from dis import stack_effect

FORMS = {
    "n": lambda n: n,
    "b": lambda n: n & 1,
    "p": lambda n: bin(n & 15).count("1"),
    "f": lambda n: n >> 2 & 1,
    "s": lambda n: int(n == 3),
}


def effect(number, jump):
    if number not in WITH_ARGUMENT:
        return str(stack_effect(number, None, jump=jump))
    values = [stack_effect(number, argument, jump=jump) for argument in range(16)]
    base = values[0]
    if values == [base] * 16:
        return str(base)
    for name, form in FORMS.items():
        for factor in (-2, -1, 1, 2):
            if values == [base + factor * form(n) for n in range(16)]:
                return "%d%+d%s" % (base, factor, name)
    raise ValueError((number, values))


version = sys.version_info[:2]
WITH_ARGUMENT = {n for n in range(256) if n >= dis.HAVE_ARGUMENT}
if version >= (3, 13):
    WITH_ARGUMENT = set(dis.hasarg)
caches = getattr(opcode, "_inline_cache_entries", {})
every = getattr(dis, "_all_opmap", dis.opmap)
special = {}
for name, base in getattr(dis, "deoptmap", {}).items():
    special.setdefault(base, []).append(every[name])
print("# %d.%d" % version)
for name, number in sorted(dis.opmap.items(), key=lambda item: item[1]):
    if number > 255 or name.startswith("INSTRUMENTED") or name in ("<0>", "ENTER_EXECUTOR"):
        continue
    behind = caches.get(name, 0) if isinstance(caches, dict) else caches[number]
    others = ",".join(str(other) for other in sorted(special.get(name, [])))
    effects = [effect(number, False), effect(number, True)]
    # What starts a generator pushes the value that these leave or drop.
    effects = {"RETURN_GENERATOR": ["1", "1"], "GEN_START": ["0", "0"]}.get(name, effects)
    print(name, number, behind, *effects, others or "-")
