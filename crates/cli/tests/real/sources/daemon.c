/* What daemons do: close every descriptor, fork twice, leave the session; and
 * what sandboxes do: forget the environment, forbid new privileges. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t daemon_lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&daemon_lock);
		pthread_mutex_unlock(&daemon_lock);
	}
	return argument;
}

static void all(void)
{
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void close_all(int from)
{
	for (int fd = from; fd < 256; fd++)
		close(fd);
}

int main(void)
{
	printf("first free descriptor %d\n", open("/dev/null", O_RDONLY));
	fflush(stdout);
	close_all(3);
	all();
	pid_t child = fork();
	if (child == 0) {
		setsid();
		if (fork() != 0)
			_exit(0);
		umask(0);
		clearenv();
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		close_all(0);
		open("/dev/null", O_RDWR);
		dup(0);
		dup(0);
		all();
		int fd = open("made", O_WRONLY | O_CREAT, 0600);
		if (write(fd, "daemon\n", 7) == 7)
			rename("made", "daemon.txt");
		_exit(3);
	}
	waitpid(child, NULL, 0);
	all();
	for (int i = 0; i < 10000 && access("daemon.txt", F_OK) != 0; i++)
		usleep(1000);
	FILE *file = fopen("daemon.txt", "r");
	char line[16] = "";
	if (file && fgets(line, sizeof line, file))
		printf("%s", line);
	puts("done");
	return 11;
}
