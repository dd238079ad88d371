/* A library to load into the command: it ends the command before the call number DIES_AT of those by
 * which it changes another process, or counts them: at its end it writes the number to DIES_COUNT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

static atomic_int calls;

static void count(void) {
	const char *at = getenv("DIES_AT");
	if (atomic_fetch_add(&calls, 1) + 1 == (at ? atoi(at) : 0)) {
		kill(getpid(), SIGKILL);
		for (;;)
			pause();
	}
}

__attribute__((destructor)) static void tells(void) {
	const char *name = getenv("DIES_COUNT");
	FILE *file = name ? fopen(name, "w") : NULL;
	if (file) {
		fprintf(file, "%d", calls);
		fclose(file);
	}
}

long ptrace(enum __ptrace_request request, ...) {
	long (*real)(int, pid_t, void *, void *) = dlsym(RTLD_NEXT, "ptrace");
	va_list list;
	pid_t pid;
	void *address, *data;
	va_start(list, request);
	pid = va_arg(list, pid_t);
	address = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	count();
	return real(request, pid, address, data);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
	ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
	count();
	return real(file, bytes, size, at);
}
