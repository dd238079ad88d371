/* OpenMP: a team of threads with the runtime's own locks. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
	long sum = 0;
	omp_lock_t lock;
	omp_init_lock(&lock);
#pragma omp parallel for num_threads(4)
	for (int i = 0; i < 20000; i++) {
		omp_set_lock(&lock);
		sum += i;
		omp_unset_lock(&lock);
	}
#pragma omp parallel num_threads(4)
	{
#pragma omp critical
		sum++;
#pragma omp barrier
	}
	printf("%ld\n", sum);
	return 2;
}
