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

enum { SLOT = 64, ROUNDS = 3, AREA = 8192, XSIZE = 8192 };
// x87, SSE, AVX, AVX-512 and PKRU (Intel SDM volume 1, 13.1). Tiles are not compared: their 8 KiB, which are saved also where a
// program may not use them, have no room here.
#define STATES 0x2e7
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define CODE_AT 0x50000000UL
#define DATA_AT 0x60000000UL
#define STACK_AT 0x60010000UL

struct result {
	uint64_t general[16]; // in the order of their codes
	uint64_t flags, fs, extended, data, stack; // hashes of the last three
	uint64_t address;     // of a fault
	uint32_t signal, code;
	uint32_t status;      // of the process, if it did not get to its end
	uint32_t rounds;      // that it did
};

uint64_t init_general[16], out_general[16], out_flags, host_sp, host_fs, out_fs, target;
char init_x[XSIZE] __attribute__((aligned(64))), out_x[XSIZE] __attribute__((aligned(64)));
static int has_fs;
static sigjmp_buf back;
static struct result *now;
static char alternate[65536];

void enter(void), leave(void);
__asm__(
".text\n.globl enter\nenter:\n"
"	push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
"	mov %rsp, host_sp(%rip)\n"
"	mov $" TEXT(STATES) ", %eax\n xor %edx, %edx\n xrstor64 init_x(%rip)\n"
"	push $0x202\n popfq\n"
"	mov init_general(%rip), %rax\n"
"	mov init_general+8(%rip), %rcx\n mov init_general+16(%rip), %rdx\n mov init_general+24(%rip), %rbx\n mov init_general+32(%rip), %rsp\n"
"	mov init_general+40(%rip), %rbp\n mov init_general+48(%rip), %rsi\n mov init_general+56(%rip), %rdi\n mov init_general+64(%rip), %r8\n"
"	mov init_general+72(%rip), %r9\n mov init_general+80(%rip), %r10\n mov init_general+88(%rip), %r11\n mov init_general+96(%rip), %r12\n"
"	mov init_general+104(%rip), %r13\n mov init_general+112(%rip), %r14\n mov init_general+120(%rip), %r15\n"
"	jmp *target(%rip)\n"
".globl leave\nleave:\n"
"	mov %rax, out_general(%rip)\n"
"	mov %rcx, out_general+8(%rip)\n mov %rdx, out_general+16(%rip)\n mov %rbx, out_general+24(%rip)\n mov %rsp, out_general+32(%rip)\n"
"	mov %rbp, out_general+40(%rip)\n mov %rsi, out_general+48(%rip)\n mov %rdi, out_general+56(%rip)\n mov %r8, out_general+64(%rip)\n"
"	mov %r9, out_general+72(%rip)\n mov %r10, out_general+80(%rip)\n mov %r11, out_general+88(%rip)\n mov %r12, out_general+96(%rip)\n"
"	mov %r13, out_general+104(%rip)\n mov %r14, out_general+112(%rip)\n mov %r15, out_general+120(%rip)\n"
"	mov host_sp(%rip), %rsp\n"
"	pushfq\n popq out_flags(%rip)\n push $2\n popfq\n"
"	mov $" TEXT(STATES) ", %eax\n xor %edx, %edx\n xsave64 out_x(%rip)\n"
"	pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");

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

// The address of the last x87 instruction (bytes 8 to 15) is that of the copy which the kernel steps.
static uint64_t hash_extended(char *x, size_t n)
{
	memset(x + 8, 0, 8);
	memset(x + 464, 0, 48); // for software
	return hash(x, n);
}

static inline void restore_fs(void)
{
	if (has_fs) {
		__asm__ volatile("rdfsbase %0" : "=r"(out_fs));
		__asm__ volatile("wrfsbase %0" : : "r"(host_fs));
	}
}

static void finish(void)
{
	now->fs = out_fs - host_fs;
	now->data = hash((char *)DATA_AT, AREA);
	now->stack = hash((char *)STACK_AT, AREA);
	now->rounds++;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	__asm__ volatile("pushq $2; popfq" : : : "cc", "memory");
	restore_fs();
	static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	for (int i = 0; i < 16; i++)
		now->general[i] = c->uc_mcontext.gregs[order[i]];
	now->flags = c->uc_mcontext.gregs[REG_EFL];
	now->signal = number;
	now->code = info->si_code;
	// With a breakpoint the kernel sends its own SIGTRAP: where the code is counts, as an offset from the slots.
	now->address = (number == SIGSEGV || number == SIGBUS ? (uint64_t)info->si_addr : 0) ^ (uint64_t)c->uc_mcontext.gregs[REG_RIP] << 1;
	char *x = (char *)c->uc_mcontext.fpregs;
	uint32_t size = 512;
	if (x) {
		uint32_t magic, extended;
		memcpy(&magic, x + 464, 4);
		memcpy(&extended, x + 480, 4); // xstate_size
		if (magic == 0x46505853 && extended <= XSIZE)
			size = extended;
		now->extended = hash_extended(x, size);
	}
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
			enter();
			restore_fs();
			memcpy(now->general, out_general, sizeof out_general);
			now->flags = out_flags;
			now->code = 0;
			now->extended = hash_extended(out_x, XSIZE);
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
	// Some instructions tell the number of the processor.
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	size_t slots = st.st_size / SLOT - 1; // the first one is a header
	char *code = mmap((void *)CODE_AT, st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, f, 0);
	int g = open(argv[2], O_RDWR | O_CREAT, 0600);
	if (code == MAP_FAILED || g < 0 || ftruncate(g, slots * sizeof(struct result)) < 0)
		return 4;
	struct result *results = mmap(0, slots * sizeof(struct result), PROT_READ | PROT_WRITE, MAP_SHARED, g, 0);
	// 16 pages of each on either side of what is compared can be accessed too.
	if (results == MAP_FAILED || mmap((void *)(DATA_AT - 65536), 65536 * 3, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return 5;
	has_fs = getauxval(AT_HWCAP2) >> 1 & 1;
	if (has_fs)
		__asm__ volatile("rdfsbase %0" : "=r"(host_fs));
	// rcx counts, rax and rdx are no addresses, rsp is in the middle of the stack, the others are in the data.
	for (int i = 0; i < 16; i++)
		init_general[i] = DATA_AT + 0x800 + 0x280 * i;
	init_general[0] = 0x1122334455667788;
	init_general[1] = 5;
	init_general[2] = 0x42;
	init_general[4] = STACK_AT + AREA / 2;
	__asm__ volatile("xsave64 init_x(%%rip)" : : "a"(STATES), "d"(0) : "memory");
	uint64_t bits;
	memcpy(&bits, init_x + 512, 8);
	uint64_t supported;
	uint32_t lo, hi;
	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	supported = (uint64_t)hi << 32 | lo;
	bits |= supported & 0xe7;
	memcpy(init_x + 512, &bits, 8);
	init_x[2] = 0, init_x[3] = 0x20, init_x[4] = (char)0xf0; // four of the x87 registers, ST0 to ST3, are full
	for (int i = 0; i < 8; i++) {
		uint64_t mantissa = 0xc000000000000000 + i;
		uint16_t exponent = 0x3fff + i % 4;
		memcpy(init_x + 32 + 16 * i, &mantissa, 8);
		memcpy(init_x + 40 + 16 * i, &exponent, 2);
	}
	for (int i = 0; i < 64; i++)
		((uint32_t *)(init_x + 160))[i] = i % 5 == 2 ? 0x3f800000 + i : 4 * i; // XMM
	if (supported & 4)
		for (int i = 0; i < 64; i++)
			((uint32_t *)(init_x + 576))[i] = 8 * i;
	if ((supported & 0xe0) == 0xe0) {
		for (int i = 0; i < 8; i++)
			((uint64_t *)(init_x + 1088))[i] = 0x5555555555555555 >> i;
		for (int i = 0; i < 128; i++)
			((uint32_t *)(init_x + 1152))[i] = 4 * i + 1;
		for (int i = 0; i < 256; i++)
			((uint32_t *)(init_x + 1664))[i] = 2 * i;
	}
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
