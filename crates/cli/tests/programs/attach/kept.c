/* A thread that is to come back to where it began to wait, of which little is to be seen: one line
 * "ready", one with the thread's number when it has read a byte and the thread waits, and with the next
 * byte the thread gets what it waits for. `kept above`: the thread handles a signal, on a stack that lies
 * above the frames of the wait. `kept probed`: a uretprobe has taken the address that the wait returns
 * to; the line is "refused" where none can be had. Ends with its input, with status 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static sem_t given;
static int handlers_pipe[2];
static _Atomic pid_t number;
static atomic_int handled;

static void handles(int signal) {
	char byte;
	(void)signal;
	handled = 1;
	while (read(handlers_pipe[0], &byte, 1) != 1)
		;
}

static void *waits(void *unused) {
	char other[65536];
	stack_t stack = { .ss_sp = other, .ss_size = sizeof other };
	sigaltstack(&stack, NULL);
	number = gettid();
	while (sem_wait(&given) != 0)
		;
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	return unused;
}

static int sleeps(pid_t tid) {
	char path[64], text[16] = "";
	FILE *file;
	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (!fgets(text, sizeof text, file))
		text[0] = 0;
	fclose(file);
	return atoi(text) == SYS_futex;
}

/* Has the kernel note each return from this function of the C library, in this process. */
static int probes(const char *name) {
	uintptr_t function = (uintptr_t)dlsym(RTLD_DEFAULT, name);
	struct perf_event_attr wanted = { .size = sizeof wanted, .config = 1 };
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	char line[4096], path[4096];
	unsigned long start, end, offset;
	if (!file || fscanf(file, "%u", &wanted.type) != 1)
		return 0;
	fclose(file);
	file = fopen("/proc/self/maps", "r");
	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &start, &end, &offset, path) != 4
		    || function < start || function >= end)
			continue;
		wanted.uprobe_path = (uintptr_t)path;
		wanted.probe_offset = function - start + offset;
		break;
	}
	if (file)
		fclose(file);
	return syscall(SYS_perf_event_open, &wanted, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0;
}

int main(int count, char **words) {
	struct sigaction action = { .sa_handler = handles, .sa_flags = SA_ONSTACK | SA_RESTART };
	int above = count > 1 && strcmp(words[1], "above") == 0;
	int refused = !above && !probes("sem_wait");
	pthread_t thread;
	char byte;
	sem_init(&given, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	if (pipe(handlers_pipe) != 0)
		return 3;
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		return 0;
	pthread_create(&thread, NULL, waits, NULL);
	while (!(number && sleeps(number)))
		usleep(1000);
	if (above)
		pthread_kill(thread, SIGUSR1);
	while (above && !handled)
		usleep(1000);
	printf(refused ? "refused\n" : "%d\n", number);
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		return 3;
	if (above && write(handlers_pipe[1], "", 1) != 1)
		return 3;
	sem_post(&given);
	pthread_join(thread, NULL);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
