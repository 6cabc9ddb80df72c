// The state of a processor of amd64.

#include <cpuid.h>

enum { XSIZE = 8192 };
// x87, SSE, AVX, AVX-512 and PKRU (Intel SDM volume 1, 13.1). Tiles are not compared: their 8 KiB, which are saved also where a
// program may not use them, have no room here.
#define STATES 0x2e7

uint64_t init_general[16], out_general[16], out_flags, host_sp, host_fs, out_fs, at;
char init_x[XSIZE] __attribute__((aligned(64))), out_x[XSIZE] __attribute__((aligned(64)));
static int has_fs;

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
"	jmp *at(%rip)\n"
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

static void run(void)
{
	at = target;
	enter();
	restore_fs();
	memcpy(now->general, out_general, sizeof out_general);
	now->flags = out_flags;
	now->others = out_fs - host_fs;
	now->extended = hash_extended(out_x, XSIZE);
}

static void handled(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	__asm__ volatile("pushq $2; popfq" : : : "cc", "memory");
	restore_fs();
	static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	for (int i = 0; i < 16; i++)
		now->general[i] = c->uc_mcontext.gregs[order[i]];
	now->flags = c->uc_mcontext.gregs[REG_EFL];
	now->others = out_fs - host_fs;
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
}

// component returns where a component of the state is: processors without MPX have the masks of AVX-512 and what follows elsewhere.
static char *component(unsigned number)
{
	unsigned size = 0, offset = 0, c = 0, d = 0;
	__get_cpuid_count(0xd, number, &size, &offset, &c, &d);
	return init_x + offset;
}

static void begin(void)
{
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
			((uint32_t *)component(2))[i] = 8 * i;
	if ((supported & 0xe0) == 0xe0) {
		for (int i = 0; i < 8; i++)
			((uint64_t *)component(5))[i] = 0x5555555555555555 >> i;
		for (int i = 0; i < 128; i++)
			((uint32_t *)component(6))[i] = 4 * i + 1;
		for (int i = 0; i < 256; i++)
			((uint32_t *)component(7))[i] = 2 * i;
	}
}
