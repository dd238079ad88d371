/* `loads LIBRARY stall|work`: opens plugin.c's library and calls it. */
#include "common.h"
#include <dlfcn.h>

int main(int count, char **argument)
{
    if (count != 3)
        return 96;
    if (strcmp(argument[2], "stall") == 0) {
        void *library = dlopen(argument[1], RTLD_NOW | RTLD_LOCAL);
        void (*stall)(void) = (void (*)(void))dlsym(library, "plugin_stall");
        stall();
        sleep_for_ever();
    }
    for (int i = 0; i < 20; i++) {
        void *library = dlopen(argument[1], RTLD_NOW | RTLD_LOCAL);
        void (*work)(void) = (void (*)(void))dlsym(library, "plugin_work");
        work();
        must(dlclose(library));
    }
    puts("closed twenty times");
    return 0;
}
