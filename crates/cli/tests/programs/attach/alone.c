/* Says "ready", and sleeps: to be linked with the C library inside. */
#include <stdio.h>
#include <unistd.h>

int main(void) {
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
