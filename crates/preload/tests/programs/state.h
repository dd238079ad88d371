/* For programs that wait until another of their threads sleeps. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the thread with this `tid` is doing, as ps says it; 0: it is no more. */
static char state_of(int tid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    char *name = length > 0 ? strrchr(text, ')') : NULL;
    return name ? name[2] : 0;
}
