/* Leaves a process behind that makes a file before it ends. Static, so that it says
 * nothing to the command. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **argument)
{
    if (count != 2)
        return 2;
    if (fork() == 0) {
        setsid();
        for (int descriptor = 0; descriptor < 3; descriptor++)
            close(descriptor);
        struct timespec time = {.tv_nsec = 400000000};
        nanosleep(&time, NULL);
        fclose(fopen(argument[1], "w"));
    }
    return 0;
}
