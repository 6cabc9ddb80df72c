/* SPDX-License-Identifier: MIT */
/*
 * What the toy kernel does by instructions of one processor. Other processors do it
 * by what compilers have for all, or with no instruction at all.
 */
#if defined(__x86_64__) || defined(__i386__)
#define atomic_add(v, by) asm volatile("lock addl %1, %0" : "+m"(v) : "ir"(by) : "memory")
#define atomic_dec_and_test(v, zero) asm volatile("lock decl %0; sete %1" : "+m"(v), "=qm"(zero) : : "memory")
#define port_input(v, port) asm volatile("inl %w1, %0" : "=a"(v) : "d"(port))
#define cpu_halt() asm volatile("hlt")
#else
#define atomic_add(v, by) __atomic_fetch_add(&(v), by, __ATOMIC_SEQ_CST)
#define atomic_dec_and_test(v, zero) ((zero) = __atomic_sub_fetch(&(v), 1, __ATOMIC_SEQ_CST) == 0)
#define port_input(v, port) asm volatile("" : "=r"(v) : "r"(port))
#define cpu_halt() asm volatile("")
#endif
