// The state of a processor of arm64. SVE has no room here.

// x0 to x30, the stack pointer, NZCV, FPCR, FPSR, and then v0 to v31.
uint64_t init_general[36], out_general[36], host_sp, host_tp;
char init_v[512] __attribute__((aligned(16))), out_v[512] __attribute__((aligned(16)));

void enter(void), leave(void);
#define PAIRS(op, base) \
	"	" op " x2, x3, [" base ", #16]\n " op " x4, x5, [" base ", #32]\n " op " x6, x7, [" base ", #48]\n " op " x8, x9, [" base ", #64]\n" \
	"	" op " x10, x11, [" base ", #80]\n " op " x12, x13, [" base ", #96]\n " op " x14, x15, [" base ", #112]\n " op " x16, x17, [" base ", #128]\n" \
	"	" op " x18, x19, [" base ", #144]\n " op " x20, x21, [" base ", #160]\n " op " x22, x23, [" base ", #176]\n " op " x24, x25, [" base ", #192]\n" \
	"	" op " x26, x27, [" base ", #208]\n " op " x28, x29, [" base ", #224]\n"
#define VECTORS(op, base) \
	"	" op " q0, q1, [" base ", #0]\n " op " q2, q3, [" base ", #32]\n " op " q4, q5, [" base ", #64]\n " op " q6, q7, [" base ", #96]\n" \
	"	" op " q8, q9, [" base ", #128]\n " op " q10, q11, [" base ", #160]\n " op " q12, q13, [" base ", #192]\n " op " q14, q15, [" base ", #224]\n" \
	"	" op " q16, q17, [" base ", #256]\n " op " q18, q19, [" base ", #288]\n " op " q20, q21, [" base ", #320]\n " op " q22, q23, [" base ", #352]\n" \
	"	" op " q24, q25, [" base ", #384]\n " op " q26, q27, [" base ", #416]\n " op " q28, q29, [" base ", #448]\n " op " q30, q31, [" base ", #480]\n"
#define KEPT(op) \
	"	" op " x19, x20, [sp, #0]\n " op " x21, x22, [sp, #16]\n " op " x23, x24, [sp, #32]\n " op " x25, x26, [sp, #48]\n " op " x27, x28, [sp, #64]\n " op " x29, x30, [sp, #80]\n" \
	"	" op " d8, d9, [sp, #96]\n " op " d10, d11, [sp, #112]\n " op " d12, d13, [sp, #128]\n " op " d14, d15, [sp, #144]\n"
#define ADDRESS(reg, name) "	adrp " reg ", " name "\n add " reg ", " reg ", :lo12:" name "\n"
__asm__(
".text\n.globl enter\nenter:\n"
"	sub sp, sp, #160\n"
KEPT("stp")
ADDRESS("x0", "host_sp")
"	mov x1, sp\n str x1, [x0]\n"
ADDRESS("x0", "init_v")
VECTORS("ldp", "x0")
ADDRESS("x0", "init_general")
"	ldr x1, [x0, #256]\n msr nzcv, x1\n ldr x1, [x0, #264]\n msr fpcr, x1\n ldr x1, [x0, #272]\n msr fpsr, x1\n"
"	ldr x1, [x0, #248]\n mov sp, x1\n"
PAIRS("ldp", "x0")
"	ldr x30, [x0, #240]\n"
"	ldp x0, x1, [x0]\n"
"	br x30\n" // to the slot
// The number of the thread keeps x0 for a while.
".globl leave\nleave:\n"
"	msr tpidr_el0, x0\n"
ADDRESS("x0", "out_general")
"	str x1, [x0, #8]\n"
PAIRS("stp", "x0")
"	str x30, [x0, #240]\n"
"	mrs x1, tpidr_el0\n str x1, [x0]\n mov x1, sp\n str x1, [x0, #248]\n"
"	mrs x1, nzcv\n str x1, [x0, #256]\n mrs x1, fpcr\n str x1, [x0, #264]\n mrs x1, fpsr\n str x1, [x0, #272]\n"
ADDRESS("x0", "out_v")
VECTORS("stp", "x0")
ADDRESS("x0", "host_tp")
"	ldr x1, [x0]\n msr tpidr_el0, x1\n msr fpcr, xzr\n"
ADDRESS("x0", "host_sp")
"	ldr x1, [x0]\n mov sp, x1\n"
KEPT("ldp")
"	add sp, sp, #160\n ret\n");

static void take(const uint64_t *general, uint64_t sp)
{
	memcpy(now->general, general, sizeof now->general);
	uint64_t more[16];
	memcpy(more, general + 16, 15 * sizeof *more);
	more[15] = sp;
	now->others = hash((char *)more, sizeof more);
}

static void run(void)
{
	init_general[30] = target;
	enter();
	take(out_general, out_general[31]);
	now->flags = out_general[32];
	now->extended = hash(out_v, sizeof out_v) ^ out_general[33] ^ out_general[34] << 32;
}

static void handled(int number, siginfo_t *info, void *context)
{
	__asm__ volatile("msr tpidr_el0, %0\n msr fpcr, xzr" : : "r"(host_tp) : "memory");
	ucontext_t *c = context;
	mcontext_t *m = &c->uc_mcontext;
	take((uint64_t *)m->regs, m->sp);
	now->flags = m->pstate & 0xf0000000;
	// Where the code is counts, as an offset from the slots.
	now->address = (number == SIGSEGV || number == SIGBUS ? (uint64_t)info->si_addr : 0) ^ m->pc << 1;
	struct fpsimd_context *v = (struct fpsimd_context *)m->__reserved; // the kernel writes it first
	if (v->head.magic == FPSIMD_MAGIC)
		now->extended = hash((char *)v->vregs, sizeof v->vregs) ^ v->fpcr ^ (uint64_t)v->fpsr << 32;
}

static void begin(void)
{
	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(host_tp));
	// x1 and x2 are no addresses, and x30 is that of the slot.
	for (int i = 0; i < 31; i++)
		init_general[i] = DATA_AT + 0x800 + 0x100 * i;
	init_general[1] = 0x1122334455667788;
	init_general[2] = 5;
	init_general[31] = STACK_AT + AREA / 2;
	init_general[32] = 0x20000000; // C
	for (int i = 0; i < 128; i++)
		((uint32_t *)init_v)[i] = i % 5 == 2 ? 0x3f800000 + i : 4 * i;
}
