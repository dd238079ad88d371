/* One thread, which is to be borrowed in a system call or while it computes: it fills registers with values of
 * its own before, and looks afterwards whether they are the same.
 *
 * `calls KIND MILLIS`: one line "ready", then one with the time in nanoseconds (CLOCK_MONOTONIC) at which the
 * call begins. When it has ended, and there is a byte of input: its answer or the error with a minus, the time at
 * which it ended, how many signals were handled, and the number of registers that are not as they were. `calls
 * computes`, `long` and `section` go on until there is input, and then write how often they have come round in
 * place of the answer. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Vectors, and general registers. */
struct values {
	unsigned char vectors[32][16];
	uint64_t general[32];
};

/* What is called, or no function and how often to count. */
struct task {
	long (*call)(long, ...);
	long number;
	long words[5];
};

/* Fills registers, does the task, and stores the registers. Returns what the call has returned. */
long keeping(const struct values *before, struct values *after, const struct task *task);

#if defined(__x86_64__)
#define VECTORS 16
#define KEPT 5
#define ALL 9
__asm__(".text\n.globl keeping\n.type keeping, @function\nkeeping:\n"
	".cfi_startproc\nendbr64\n"
	"push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
	"mov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
	"push %rbx\n.cfi_offset %rbx, -24\npush %r12\n.cfi_offset %r12, -32\n"
	"push %r13\n.cfi_offset %r13, -40\npush %r14\n.cfi_offset %r14, -48\n"
	"push %r15\n.cfi_offset %r15, -56\npush %rsi\n"
#define LOAD(n) "movups 16*" #n "(%rdi), %xmm" #n "\n"
#define STORE(n) "movups %xmm" #n ", 16*" #n "(%rsi)\n"
	LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7)
	LOAD(8) LOAD(9) LOAD(10) LOAD(11) LOAD(12) LOAD(13) LOAD(14) LOAD(15)
	"mov 512(%rdi), %rbx\nmov 520(%rdi), %r12\nmov 528(%rdi), %r13\n"
	"mov 536(%rdi), %r14\nmov 544(%rdi), %r15\n"
	"mov (%rdx), %rax\ntest %rax, %rax\njz 1f\n"
	"mov %rdx, %r10\nmov 8(%r10), %rdi\nmov 16(%r10), %rsi\nmov 24(%r10), %rdx\n"
	"mov 32(%r10), %rcx\nmov 40(%r10), %r8\nmov 48(%r10), %r9\n"
	"call *%rax\njmp 3f\n"
	"1:\nmov 8(%rdx), %rcx\n"
	"mov 552(%rdi), %r8\nmov 560(%rdi), %r9\nmov 568(%rdi), %r10\nmov 576(%rdi), %r11\n"
	"2:\ndec %rcx\njnz 2b\n"
	"mov -48(%rbp), %rsi\n"
	"mov %r8, 552(%rsi)\nmov %r9, 560(%rsi)\nmov %r10, 568(%rsi)\nmov %r11, 576(%rsi)\n"
	"xor %eax, %eax\n"
	"3:\nmov -48(%rbp), %rsi\n"
	STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7)
	STORE(8) STORE(9) STORE(10) STORE(11) STORE(12) STORE(13) STORE(14) STORE(15)
	"mov %rbx, 512(%rsi)\nmov %r12, 520(%rsi)\nmov %r13, 528(%rsi)\n"
	"mov %r14, 536(%rsi)\nmov %r15, 544(%rsi)\n"
	"mov -8(%rbp), %rbx\nmov -16(%rbp), %r12\nmov -24(%rbp), %r13\n"
	"mov -32(%rbp), %r14\nmov -40(%rbp), %r15\n"
	"leave\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n.size keeping, . - keeping\n");

/* Long vectors are a matter of the other processor. */
static int long_vectors(void) {
	return 0;
}

static long differing_long(const struct task *task) {
	(void)task;
	return 0;
}

/* Counts in a restartable section, and returns 1 when it has come to its end, -1 when the kernel did not know any
 * more that it was in one, and 0 when it had to begin anew. */
static long section(void *place, long count) {
	long done = 0;
	__asm__ volatile(
		".pushsection __rseq_cs, \"aw\"\n.balign 32\n9: .long 0, 0\n"
		".quad 1f, 3f - 1f, 4f\n.popsection\n"
		".pushsection .text.aborts, \"ax\"\n.byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n"
		"4: xor %[done], %[done]\njmp 5f\n.popsection\n"
		"lea 9b(%%rip), %%rax\nmov %%rax, 8(%[place])\n"
		"1:\n2: dec %[count]\njnz 2b\n"
		"mov $1, %[done]\ncmp %%rax, 8(%[place])\nje 3f\nmov $-1, %[done]\n"
		"3:\n5:\n"
		: [count] "+r"(count), [done] "+r"(done) : [place] "r"(place) : "rax", "memory", "cc");
	return done;
}
#else
#define VECTORS 32
#define KEPT 8
#define ALL 23
__asm__(".text\n.globl keeping\n.type keeping, %function\nkeeping:\n"
	".cfi_startproc\nhint #34\n"
	"stp x29, x30, [sp, #-176]!\n.cfi_def_cfa_offset 176\n.cfi_offset x29, -176\n.cfi_offset x30, -168\n"
	"mov x29, sp\n"
#define PAIR(a, b, at, off) "stp " #a ", " #b ", [sp, #" #at "]\n.cfi_offset " #a ", " #off "\n"
	PAIR(x19, x20, 16, -160) ".cfi_offset x20, -152\n" PAIR(x21, x22, 32, -144) ".cfi_offset x22, -136\n"
	PAIR(x23, x24, 48, -128) ".cfi_offset x24, -120\n" PAIR(x25, x26, 64, -112) ".cfi_offset x26, -104\n"
	PAIR(x27, x28, 80, -96) ".cfi_offset x28, -88\n"
	"stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
	"mov x19, x1\nmov x20, x2\n"
#define LOAD(a, b) "ldp q" #a ", q" #b ", [x0, #16*" #a "]\n"
#define STORE(a, b) "stp q" #a ", q" #b ", [x19, #16*" #a "]\n"
	LOAD(0, 1) LOAD(2, 3) LOAD(4, 5) LOAD(6, 7) LOAD(8, 9) LOAD(10, 11) LOAD(12, 13) LOAD(14, 15)
	LOAD(16, 17) LOAD(18, 19) LOAD(20, 21) LOAD(22, 23) LOAD(24, 25) LOAD(26, 27) LOAD(28, 29)
	LOAD(30, 31)
	"add x9, x0, #512\n"
	"ldp x21, x22, [x9]\nldp x23, x24, [x9, #16]\nldp x25, x26, [x9, #32]\nldp x27, x28, [x9, #48]\n"
	"ldr x16, [x20]\ncbz x16, 1f\n"
	"ldp x0, x1, [x20, #8]\nldp x2, x3, [x20, #24]\nldp x4, x5, [x20, #40]\n"
	"blr x16\nb 3f\n"
	"1:\nldr x0, [x20, #8]\n"
	"ldp x1, x2, [x9, #64]\nldp x3, x4, [x9, #80]\nldp x5, x6, [x9, #96]\nldp x7, x8, [x9, #112]\n"
	"ldp x10, x11, [x9, #128]\nldp x12, x13, [x9, #144]\nldp x14, x15, [x9, #160]\nldr x17, [x9, #176]\n"
	"2:\nsubs x0, x0, #1\nb.ne 2b\n"
	"add x9, x19, #512\n"
	"stp x1, x2, [x9, #64]\nstp x3, x4, [x9, #80]\nstp x5, x6, [x9, #96]\nstp x7, x8, [x9, #112]\n"
	"stp x10, x11, [x9, #128]\nstp x12, x13, [x9, #144]\nstp x14, x15, [x9, #160]\nstr x17, [x9, #176]\n"
	"3:\n"
	STORE(0, 1) STORE(2, 3) STORE(4, 5) STORE(6, 7) STORE(8, 9) STORE(10, 11) STORE(12, 13)
	STORE(14, 15) STORE(16, 17) STORE(18, 19) STORE(20, 21) STORE(22, 23) STORE(24, 25)
	STORE(26, 27) STORE(28, 29) STORE(30, 31)
	"add x9, x19, #512\n"
	"stp x21, x22, [x9]\nstp x23, x24, [x9, #16]\nstp x25, x26, [x9, #32]\nstp x27, x28, [x9, #48]\n"
	"ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
	"ldp x19, x20, [sp, #16]\nldp x21, x22, [sp, #32]\nldp x23, x24, [sp, #48]\nldp x25, x26, [sp, #64]\n"
	"ldp x27, x28, [sp, #80]\nldp x29, x30, [sp], #176\n.cfi_def_cfa_offset 0\n"
	".cfi_restore x29\n.cfi_restore x30\n.cfi_restore x19\n.cfi_restore x20\n.cfi_restore x21\n"
	".cfi_restore x22\n.cfi_restore x23\n.cfi_restore x24\n.cfi_restore x25\n.cfi_restore x26\n"
	".cfi_restore x27\n.cfi_restore x28\n"
	"ret\n.cfi_endproc\n.size keeping, . - keeping\n");

/* Fills the long vectors and their predicates, counts, and stores them: 32 of 256 bytes at most, and 17 of 32. */
void keeping_long(const void *before, void *after, long count);
__asm__(".text\n.arch_extension sve\n.globl keeping_long\n.type keeping_long, %function\nkeeping_long:\n"
	".cfi_startproc\nhint #34\n"
	"stp x29, x30, [sp, #-80]!\n.cfi_def_cfa_offset 80\n.cfi_offset x29, -80\n.cfi_offset x30, -72\n"
	"stp d8, d9, [sp, #16]\nstp d10, d11, [sp, #32]\nstp d12, d13, [sp, #48]\nstp d14, d15, [sp, #64]\n"
	"mov x3, x0\nmov x4, x1\nadd x5, x0, #8192\nadd x6, x1, #8192\n"
	"ldr p0, [x5]\nwrffr p0.b\n"
#define Z(op, n) op " z" #n ", [x3]\nadd x3, x3, #256\n"
#define P(op, n) "add x5, x5, #32\n" op " p" #n ", [x5]\n"
#define ALL_Z(op) Z(op, 0) Z(op, 1) Z(op, 2) Z(op, 3) Z(op, 4) Z(op, 5) Z(op, 6) Z(op, 7) Z(op, 8) \
	Z(op, 9) Z(op, 10) Z(op, 11) Z(op, 12) Z(op, 13) Z(op, 14) Z(op, 15) Z(op, 16) Z(op, 17) \
	Z(op, 18) Z(op, 19) Z(op, 20) Z(op, 21) Z(op, 22) Z(op, 23) Z(op, 24) Z(op, 25) Z(op, 26) \
	Z(op, 27) Z(op, 28) Z(op, 29) Z(op, 30) Z(op, 31)
#define ALL_P(op) P(op, 0) P(op, 1) P(op, 2) P(op, 3) P(op, 4) P(op, 5) P(op, 6) P(op, 7) P(op, 8) \
	P(op, 9) P(op, 10) P(op, 11) P(op, 12) P(op, 13) P(op, 14) P(op, 15)
	ALL_Z("ldr") ALL_P("ldr")
	"2:\nsubs x2, x2, #1\nb.ne 2b\n"
	"mov x3, x4\nmov x5, x6\n"
	ALL_Z("str") ALL_P("str")
	"rdffr p0.b\nstr p0, [x6]\n"
	"ldp d8, d9, [sp, #16]\nldp d10, d11, [sp, #32]\nldp d12, d13, [sp, #48]\nldp d14, d15, [sp, #64]\n"
	"ldp x29, x30, [sp], #80\n.cfi_def_cfa_offset 0\n.cfi_restore x29\n.cfi_restore x30\n"
	"ret\n.cfi_endproc\n.size keeping_long, . - keeping_long\n");

static int long_vectors(void) {
	return (getauxval(AT_HWCAP) & 1 << 22) != 0;
}

static long differing_long(const struct task *task) {
	static unsigned char before[32 * 256 + 17 * 32], after[sizeof before];
	long differ = 0;
	for (size_t i = 0; i < sizeof before; i++)
		before[i] = (unsigned char)(i * 7 + i / 256 + 3);
	/* The first of the faults has all bits up to one, and none behind. */
	memset(before + 8192, 0, 32);
	memset(before + 8192, 255, 2);
	memcpy(after, before, sizeof after);
	keeping_long(before, after, task->number);
	for (size_t i = 0; i < sizeof before; i++)
		differ += before[i] != after[i];
	return differ;
}

static long section(void *place, long count) {
	long done = 0;
	__asm__ volatile(
		".pushsection __rseq_cs, \"aw\"\n.balign 32\n9: .long 0, 0\n"
		".quad 1f, 3f - 1f, 4f\n.popsection\n"
		"adrp x9, 9b\nadd x9, x9, :lo12:9b\nstr x9, [%[place], #8]\n"
		"1:\n2: subs %[count], %[count], #1\nb.ne 2b\n"
		"mov %[done], #1\nldr x10, [%[place], #8]\ncmp x9, x10\nb.eq 3f\nmov %[done], #-1\n"
		"3:\nb 5f\n"
		".inst 0xd428bc00\n4: mov %[done], #0\n5:\n"
		: [count] "+r"(count), [done] "+r"(done) : [place] "r"(place) : "x9", "x10", "memory", "cc");
	return done;
}
#endif

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static sig_atomic_t handled;

static void handles(int number) {
	(void)number;
	handled++;
}

static long now(void) {
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void say(long number) {
	printf("%ld\n", number);
	fflush(stdout);
}

/* A call that a killed command has interrupted fails, which is no input. */
static int has_input(void) {
	struct pollfd input = { .fd = 0, .events = POLLIN };
	return poll(&input, 1, 0) > 0;
}

static struct values before, after;

static long differing(int general) {
	long differ = memcmp(before.vectors, after.vectors, VECTORS * 16) != 0;
	for (int i = 0; i < general; i++)
		differ += before.general[i] != after.general[i];
	return differ;
}

int main(int count, char **words) {
	const char *kind = count > 1 ? words[1] : "";
	long millis = count > 2 ? atol(words[2]) : 0, answer = 0, differ = 0, end;
	struct sigaction action = { .sa_handler = handles };
	struct timespec time = { millis / 1000, millis % 1000 * 1000000 };
	struct epoll_event event;
	struct task task = { .call = syscall };
	uint32_t word = 0;
	uint64_t none = 0;
	char byte = 0;
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 32; i++) {
		before.general[i] = 0x0123456789abcdef * (i + 1);
		for (int j = 0; j < 16; j++)
			before.vectors[i][j] = (unsigned char)(i * 16 + j + 1);
	}
	/* What is not stored counts as the same. */
	memcpy(&after, &before, sizeof after);
	puts("ready");
	long start = now();
#define CALL(...) { long all[6] = { __VA_ARGS__ }; task.number = all[0]; \
	memcpy(task.words, all + 1, sizeof task.words); }
	if (strcmp(kind, "read") == 0) {
		CALL(SYS_read, 0, (long)&byte, 1)
	} else if (strcmp(kind, "nanosleep") == 0) {
		CALL(SYS_nanosleep, (long)&time, (long)&time)
	} else if (strcmp(kind, "clock_nanosleep") == 0) {
		CALL(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&time, (long)&time)
	} else if (strcmp(kind, "until") == 0) {
		end = start + millis * 1000000;
		time = (struct timespec){ end / 1000000000, end % 1000000000 };
		CALL(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&time)
	} else if (strcmp(kind, "futex") == 0) {
		CALL(SYS_futex, (long)&word, 128 /* FUTEX_WAIT_PRIVATE */, 0, (long)&time)
	} else if (strcmp(kind, "ppoll") == 0) {
		CALL(SYS_ppoll, 0, 0, (long)&time, 0)
	} else if (strcmp(kind, "epoll") == 0) {
		CALL(SYS_epoll_pwait, epoll_create1(0), (long)&event, 1, -1, 0)
	} else if (strcmp(kind, "sigsuspend") == 0) {
		/* The signal comes while the call waits, and never else. */
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_BLOCK, &set, NULL);
		CALL(SYS_rt_sigsuspend, (long)&none, 8)
	} else if (strcmp(kind, "pause") == 0) {
		CALL(SYS_ppoll, 0, 0, 0, 0)
	} else {
		task.call = NULL;
		task.number = 300000;
	}
	say(start);
	if (task.call) {
		answer = keeping(&before, &after, &task);
		answer = answer < 0 ? -errno : answer;
		differ = differing(KEPT);
	} else if (strcmp(kind, "section") == 0) {
		void *place = (char *)__builtin_thread_pointer() + (&__rseq_offset ? __rseq_offset : 0);
		long lost = 0;
		int known = &__rseq_size && __rseq_size != 0;
		while (!has_input()) {
			if (!known)
				continue;
			long done = section(place, 200000);
			answer += done == 1;
			lost += done < 0;
			/* It can be borrowed outside of it alone. */
			keeping(&before, &after, &task);
		}
		differ = lost;
	} else {
		int is_long = strcmp(kind, "long") == 0 && long_vectors();
		while (!has_input()) {
			answer++;
			if (is_long) {
				differ += differing_long(&task);
				continue;
			}
			keeping(&before, &after, &task);
			differ += differing(ALL);
		}
	}
	end = now();
	if (strcmp(kind, "sigsuspend") == 0) {
		sigset_t set;
		sigprocmask(SIG_BLOCK, NULL, &set);
		differ += !sigismember(&set, SIGUSR1);
	}
	/* The process stays for the command. */
	if (task.call && read(0, &byte, 1) != 1)
		return 3;
	say(answer);
	say(end);
	say(handled);
	say(differ);
	return 0;
}
