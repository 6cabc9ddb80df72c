/* Functions with switches that compilers turn into jump tables, and indirect jumps that lead
   elsewhere. No headers: it is compiled for a foreign architecture too. */
#define CASE(n) case n: return f##n(a, b);
#define HOLD(n) __attribute__((noinline)) static int f##n(int a, int b) { __asm__ volatile("" : "+r"(a)); return a * (n + 3) + b; }
HOLD(0) HOLD(1) HOLD(2) HOLD(3) HOLD(4) HOLD(5) HOLD(6) HOLD(7) HOLD(8) HOLD(9)
extern int more(int), stop(int) __attribute__((noreturn));
volatile int sink;

int plain(int x, int a, int b) { switch (x) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) } return -1; }
int unsigned_x(unsigned x, int a, int b) { switch (x) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(8) CASE(9) } return a; }
int wide(long x, int a, int b) { switch (x) { CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) } return b; }
int byte(unsigned char x, int a, int b) { switch (x) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(9) default: return more(x); } }
int masked(int x, int a, int b) { switch (x & 7) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) } return 0; }
int flipped(int x, int a, int b) { switch ((x & 7) ^ 5) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) } return 0; }
int shifted(unsigned x, int a, int b) { switch (x >> 29) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) } return 0; }
int negative(int x, int a, int b) {
	switch (x) {
	case -4: return f1(a, b);
	case -3: return f2(b, a);
	case -2: return f3(a, a);
	case -1: return f4(b, b);
	case 0: return f5(a, b);
	case 1: return f6(b, a);
	case 3: return f7(a, 1);
	}
	return more(a);
}
struct node { int pad; short kind; char sub; struct node *next; };
int field(struct node *n, int a, int b) { switch (n->kind) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(7) } return n->pad; }
int loop(struct node *n) {
	int sum = 0;
	for (; n; n = n->next) {
		switch (n->kind) {
		case 10: sum += more(1); break;
		case 11: sum -= more(sum); break;
		case 12: sum *= n->pad; break;
		case 13: sum ^= more(n->pad); break;
		case 14: sum |= 12; break;
		case 15: sum = more(sum) / 3; break;
		case 17: return sum;
		default: sum++;
		}
		sink = sum;
	}
	return sum;
}
int nested(const char *p, int n) {
	int sum = 0;
	for (int i = 0; i < n; i++) {
		switch (p[i]) {
		case 'a': sum += more(sum); break;
		case 'b': sum += more(3); break;
		case 'c': sum -= more(7); break;
		case 'd':
			switch (p[++i] - '0') {
			case 0: sum = more(sum); break;
			case 1: sum = more(1); break;
			case 2: sum = more(2) + sum; break;
			case 3: sum = more(4) * sum; break;
			case 4: sum = sum / 3; break;
			case 5: sum -= 40; break;
			case 6: stop(sum);
			}
			break;
		case 'e': stop(4);
		case 'f': return sum;
		case 'g': sum <<= 3; break;
		case 'h': sum = more(sum + 1); break;
		default: stop(sum);
		}
	}
	return sum;
}
int after(int x, int y) {
	int r;
	switch (x) {
	case 0: r = more(1); break;
	case 1: r = more(2) + 2; break;
	case 2: r = more(3) * 3; break;
	case 3: r = more(4) - 4; break;
	case 4: r = more(5) ^ 5; break;
	case 5: r = more(6) | 6; break;
	default: stop(x);
	}
	sink = r;
	switch (y) {
	case 20: return more(r);
	case 21: return more(1) + r;
	case 22: return more(2) + r;
	case 23: return more(3) - r;
	case 24: return more(4) * r;
	case 26: return more(5) | r;
	}
	return r;
}
int checked(unsigned x, int a, int b) {
	if (x > 9)
		return -1;
	sink = a;
	more(b);
	switch (x) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) }
	return 3;
}
int open_end(unsigned x, int a, int b) {
	switch (x) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) default: __builtin_unreachable(); }
}
int open_mask(unsigned x, int a, int b) {
	switch (x & 15) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) default: __builtin_unreachable(); }
}
int big(int x) {
	int s = sink;
	switch (x) {
#define BIG(n) case n: s += more(s * (n + 1)); sink = s ^ n * 77; break;
#define TEN(n) BIG(n) BIG(n + 1) BIG(n + 2) BIG(n + 3) BIG(n + 4) BIG(n + 5) BIG(n + 6) BIG(n + 7) BIG(n + 8) BIG(n + 9)
	TEN(0) TEN(10) TEN(20) TEN(30) TEN(40) TEN(50) TEN(60) TEN(70) TEN(80) TEN(90)
	}
	return s;
}
int (*const calls[])(int, int) = {f0, f1, f2, f3};
int tail(unsigned x, int a) { return x < 4 ? calls[x](a, a) : 0; }
int hook(int (*f)(int)) { return f(4); }
int computed(const unsigned char *p) {
	static const void *const at[] = {&&zero, &&one, &&two, &&three};
	int s = 0;
	goto *at[*p & 3];
zero: s += more(s); p++; goto *at[*p & 3];
one: s -= more(7); p++; goto *at[*p & 3];
two: s ^= more(1) * s; p++; goto *at[*p & 3];
three: return s;
}
void sparse(int x) {
	switch (x) {
	case 1: more(1); break;
	case 2: more(22); break;
	case 3: more(333); break;
	case 4: more(3); break;
	case 5: more(4444); break;
	case 6: more(55555); break;
	case 100: more(10); break;
	case 101: more(11); break;
	case 102: more(12); break;
	case 103: more(17); break;
	case 104: more(18); break;
	case 105: more(19); break;
	case 9000: more(9); break;
	case 90000: more(8); break;
	}
}
