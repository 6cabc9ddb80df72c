// Runs instructions that are given as bytes, each in a process of its own, from a known state, and records the state after it.
//
//	runner CODE RESULTS
//
// CODE is a file of slots of SLOT bytes, behind a header of that size: an instruction, and a jump to leave(). It is mapped from the file, so that uprobes can be in
// it. RESULTS gets one struct result a slot. An instruction runs ROUNDS times in its process: kernels may change a probe after its
// first hit. The last round counts.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>

enum { SLOT = 64, ROUNDS = 3, AREA = 8192 };
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define CODE_AT 0x50000000UL
#define DATA_AT 0x60000000UL
#define STACK_AT 0x60010000UL

struct result {
	uint64_t general[16]; // in the order of their codes
	uint64_t flags, others, extended, data, stack; // hashes of the last four
	uint64_t address;     // of a fault
	uint32_t signal, code;
	uint32_t status;      // of the process, if it did not get to its end
	uint32_t rounds;      // that it did
};

static sigjmp_buf back;
static struct result *now;
static char alternate[65536];
static uint64_t target;

static uint64_t hash(const char *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325, word;
	for (size_t i = 0; i < n; i += sizeof word) {
		memcpy(&word, p + i, sizeof word);
		h = (h ^ word) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	return h;
}

// What an architecture has: begin() once, run(code) to run an instruction and take what it left into *now, and handled(), first of
// all in a signal's handler, to take it from there.
#ifdef __aarch64__
#include "arm64.h"
#else
#include "amd64.h"
#endif

static void finish(void)
{
	now->data = hash((char *)DATA_AT, AREA);
	now->stack = hash((char *)STACK_AT, AREA);
	now->rounds++;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	handled(number, info, context);
	now->signal = number;
	now->code = info->si_code;
	finish();
	if (number == SIGALRM || number == SIGPROF)
		_exit(1); // an endless loop
	siglongjmp(back, 1);
}

static void run_one(char *code)
{
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < AREA / 4; i++) {
			((uint32_t *)DATA_AT)[i] = i % 7 == 3 ? 0x3f800000 + i : i & 0x3f; // small indices, and some floats
			((uint32_t *)STACK_AT)[i] = i * 0x9e3779b9;
		}
		now->signal = 0;
		now->address = 0;
		if (sigsetjmp(back, 1) == 0) {
			target = (uint64_t)code;
			run();
			now->code = 0;
			finish();
		}
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	int f = open(argv[1], O_RDONLY);
	struct stat st;
	if (f < 0 || fstat(f, &st) < 0)
		return 3;
	// Some instructions tell the number of the processor: it is the first one in each run.
	cpu_set_t all, one;
	CPU_ZERO(&one);
	for (int i = 0; sched_getaffinity(0, sizeof all, &all) == 0 && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			sched_setaffinity(0, sizeof one, &one);
			break;
		}
	size_t slots = st.st_size / SLOT - 1; // the first one is a header
	char *code = mmap((void *)CODE_AT, st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, f, 0);
	int g = open(argv[2], O_RDWR | O_CREAT, 0600);
	if (code == MAP_FAILED || g < 0 || ftruncate(g, slots * sizeof(struct result)) < 0)
		return 4;
	struct result *results = mmap(0, slots * sizeof(struct result), PROT_READ | PROT_WRITE, MAP_SHARED, g, 0);
	// 16 pages of each on either side of what is compared can be accessed too.
	if (results == MAP_FAILED || mmap((void *)(DATA_AT - 65536), 65536 * 3, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return 5;
	begin();
	stack_t alt = {.ss_sp = alternate, .ss_size = sizeof alternate};
	sigaltstack(&alt, 0);
	struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	int caught[] = {SIGSEGV, SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGALRM, SIGPROF};
	for (unsigned i = 0; i < sizeof caught / sizeof *caught; i++)
		sigaction(caught[i], &act, 0);
	for (size_t i = 0; i < slots; i++) {
		int pid = fork();
		if (pid < 0)
			return 6;
		now = &results[i];
		if (pid == 0) {
			struct itimerval limit = {.it_value.tv_usec = 200000};
			setitimer(ITIMER_PROF, &limit, 0); // of its own time: others may use the processor
			alarm(10);
			struct rlimit cpu = {1, 1}; // if it blocked that signal
			setrlimit(RLIMIT_CPU, &cpu);
			run_one(code + (i + 1) * SLOT);
			_exit(0);
		}
		int status;
		if (waitpid(pid, &status, 0) != pid)
			return 7;
		now->status = status;
	}
	return 0;
}
