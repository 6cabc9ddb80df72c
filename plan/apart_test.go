package plan_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestApart: what GCC without markers puts ahead of a body, or computes for it in the loops of others, or in its own for others, may begin no run.
func TestApart(t *testing.T) {
	for _, tt := range []struct {
		name           string
		sources        map[string]string
		definition     string
		compilers      []string
		probes, marked int
	}{
		{"an addition that is put together with one of the caller's", map[string]string{"a.c": `
static unsigned packed(unsigned m, int e)
{
	unsigned r;
	r = m;
	r |= (unsigned)(e + 128) << 24;
	return r;
}
__attribute__((noipa)) unsigned add(unsigned a, unsigned b)
{
	unsigned ma, mb, delta;
	int ea, eb;
	if (a < b) {
		unsigned c = a;
		a = b;
		b = c;
	}
	if (!b)
		return a;
	ma = (a & 0xffffff) | 0x1000000;
	ea = (int)(a >> 24) - 128;
	mb = (b & 0xffffff) | 0x1000000;
	eb = (int)(b >> 24) - 128;
	delta = ea - eb;
	mb = delta < 32 ? mb >> delta : 0;
	if (!mb)
		return a;
	ma += mb;
	if (ma & 0x2000000) {
		if (ea == 127)
			return ~0u;
		ea++;
		ma >>= 1;
	}
	ma &= 0xffffff;
	return packed(ma, ea);
}
int main(void) { return (add(0x80000001, 0x80000001) ^ add(0x81000000, 0x7f000005)) & 1; }
`}, "packed", []string{"gcc-11 -O2 -gno-statement-frontiers -gno-variable-location-views", "gcc-12 -O2 -gno-statement-frontiers -gno-variable-location-views"}, 2, 1},
		{"what loops behind a body begin with", map[string]string{"a.c": `
#include <ctype.h>
struct parser { const char *p; int len, line; const char *start, *end; int first, kind, eof, quote, comment; struct { int ch, line; } missing; };
struct object { int n; const void *type; int count; void **all; };
extern void *element(const char *s, int n);
extern void append(struct object *o, void *e);
static void init(struct parser *p, const char *s, int len, int line)
{
	p->p = s;
	p->len = len;
	p->start = 0;
	p->end = 0;
	p->first = 0;
	p->kind = 0;
	p->eof = 0;
	p->quote = 0;
	p->line = line;
	p->comment = 1;
	p->missing.ch = ' ';
	p->missing.line = line;
}
static __attribute__((noinline)) int brace(struct parser *p)
{
	int level = 1;
	p->p++;
	p->len--;
	while (p->len) {
		switch (*p->p) {
		case '\\':
			if (p->len > 1) {
				if (*++p->p == '\n')
					p->line++;
				p->len--;
			}
			break;
		case '{':
			level++;
			break;
		case '}':
			if (--level == 0) {
				p->end = p->p - 1;
				p->p++;
				p->len--;
				return 0;
			}
			break;
		case '\n':
			p->line++;
			break;
		}
		p->p++;
		p->len--;
	}
	p->missing.ch = '{';
	p->missing.line = p->first;
	p->end = p->p - 1;
	return 1;
}
static int separator(struct parser *p)
{
	p->start = p->p;
	p->first = p->line;
	while (isspace((unsigned char)*p->p)) {
		if (*p->p == '\n')
			p->line++;
		p->p++;
		p->len--;
	}
	p->end = p->p - 1;
	p->kind = 1;
	return 0;
}
static int quoted(struct parser *p)
{
	p->p++;
	p->len--;
	p->start = p->p;
	p->first = p->line;
	p->kind = 2;
	while (p->len) {
		switch (*p->p) {
		case '\\':
			p->kind = 3;
			if (--p->len == 0) {
				p->end = p->p;
				return 0;
			}
			p->p++;
			break;
		case '\n':
			p->line++;
			break;
		case '"':
			p->end = p->p - 1;
			p->p++;
			p->len--;
			return 0;
		}
		p->p++;
		p->len--;
	}
	p->end = p->p - 1;
	return 0;
}
static int plain(struct parser *p)
{
	p->start = p->p;
	p->first = p->line;
	p->kind = 2;
	while (p->len) {
		if (isspace((unsigned char)*p->p)) {
			p->end = p->p - 1;
			return 0;
		}
		if (*p->p == '\\') {
			if (--p->len == 0) {
				p->end = p->p;
				return 0;
			}
			p->kind = 3;
			p->p++;
		}
		p->p++;
		p->len--;
	}
	p->end = p->p - 1;
	return 0;
}
static int next(struct parser *p)
{
	if (isspace((unsigned char)*p->p))
		return separator(p);
	switch (*p->p) {
	case '"':
		return quoted(p);
	case '{':
		p->start = p->p + 1;
		p->first = p->line;
		p->kind = 2;
		return brace(p);
	default:
		if (p->len)
			return plain(p);
		break;
	}
	p->start = p->end = p->p;
	p->first = p->line;
	p->kind = 4;
	p->eof = 1;
	return 0;
}
__attribute__((noinline)) int list(struct object *o, const char *s, int n, int line)
{
	struct parser p;
	o->count = 0;
	o->all = 0;
	if (n) {
		init(&p, s, n, line);
		while (!p.eof) {
			next(&p);
			if (p.kind != 2 && p.kind != 3)
				continue;
			append(o, element(p.start, p.end - p.start + 1));
		}
	}
	return 0;
}
int main(void)
{
	struct object o;
	list(&o, "a bc \"d e\" {f} g", 16, 1);
	list(&o, "h", 1, 2);
	return o.count & 1;
}
`, "b.c": `
struct parser { const char *p; int len, line; const char *start, *end; int first, kind, eof; };
struct object { int n; const void *type; int count; void **all; };
void *element(const char *s, int n) { return (void *)(s + n); }
void append(struct object *o, void *e) { o->count++; }
`}, "init", []string{"gcc-11 -O2 -gno-statement-frontiers -gno-variable-location-views"}, 3, 2},
		{"a load that the body's own loop shares with what follows", map[string]string{"a.cc": `
struct Out {
	int depth, n;
	virtual void space(int depth);
	virtual void put(char c) { n += c; }
	virtual void write(const char *s, long size);
	void write(const char *s) { write(s, __builtin_strlen(s)); }
	__attribute__((noipa)) void end(bool compact)
	{
		--depth;
		if (n < 0) {
			write("/>");
		} else {
			if (!compact) {
				put('\n');
				space(depth);
			}
			write("</");
			write(">");
		}
	}
};
void Out::space(int depth)
{
	for (int i = 0; i < depth; ++i) {
		write("    ");
	}
}
int main()
{
	Out o;
	o.n = 1;
	o.depth = 4;
	o.end(false);
	o.end(true);
	o.end(false);
	return o.n & 1;
}
`, "b.cc": `
struct Out {
	int depth, n;
	virtual void space(int depth);
	virtual void put(char c) { n += c; }
	virtual void write(const char *s, long size);
	void write(const char *s) { write(s, __builtin_strlen(s)); }
	__attribute__((noipa)) void end(bool compact)
	{
		--depth;
		if (n < 0) {
			write("/>");
		} else {
			if (!compact) {
				put('\n');
				space(depth);
			}
			write("</");
			write(">");
		}
	}
};
void Out::write(const char *s, long size) { n += *s + size; }
`}, "*space", []string{"g++-11 -O2 -gno-statement-frontiers -gno-variable-location-views", "g++-12 -O2 -gno-statement-frontiers -gno-variable-location-views"}, 3, 1},
		{"a load that a loop before the body shares with it", map[string]string{"a.cc": `
template <class T, int SIZE> struct Array {
	T *all;
	T some[SIZE];
	int room, n;
	Array() : all(some), room(SIZE), n(0) {}
	~Array()
	{
		if (all != some) {
			delete [] all;
		}
	}
	bool empty() const { return n == 0; }
	T pop()
	{
		--n;
		return all[n];
	}
	void push(T t) { all[n++] = t; }
};
struct Base {
	virtual ~Base() {}
	virtual void clear() = 0;
};
struct Block { char bytes[64]; };
struct Pool : Base {
	Pool() : root(0), now(0), all(0), most(0) {}
	~Pool() { Pool::clear(); }
	void clear()
	{
		while (!blocks.empty()) {
			Block *last = blocks.pop();
			delete last;
		}
		root = 0;
		now = 0;
		all = 0;
		most = 0;
	}
	Array<Block *, 10> blocks;
	void *root;
	int now, all, most;
};
__attribute__((noipa)) void fill(Pool &p, int n)
{
	for (int i = 0; i < n; i++)
		p.blocks.push(new Block);
}
__attribute__((noipa)) void use(int n)
{
	Pool p;
	fill(p, n);
}
int main()
{
	use(0);
	use(3);
	use(5);
}
`}, "*~Array", []string{"g++-12 -O2 -gno-statement-frontiers -gno-variable-location-views"}, 3, 2},
		{"the rest of a body behind what ends the frame", map[string]string{"a.c": `
static int ind, data[64];
__attribute__((noipa)) void out(int c) { data[ind++ & 63] = c; }
__attribute__((noipa)) void rest(int op, int r, long sym, int c, int got) { data[ind++ & 63] = op + r + sym + c + got; }
__attribute__((noipa)) void rex(int wide, int r, int r2, int b) { data[ind++ & 63] = wide + r + r2 + b; }
struct value { int r, type; long sym; int c; };
static void small(int op, int r, long sym, int c) { rest(op, r, sym, c, 0); }
static void large(int opcode, int op, int r, long sym, int c)
{
	int got = (op & 16) && !(sym & 4);
	rex(1, r, op, opcode);
	rest(op, r, sym, c, got);
}
__attribute__((noipa)) void store(int r, struct value *v)
{
	int op = 0, fr = v->r & 63, type = v->type, c = v->c, wide = 0;
	if (type == 1) {
		out(0x66);
		rex(0, 0, r, 0);
		out(0x7e0f);
		r = r & 7;
	} else if (type == 2) {
		out(0x66);
		rex(0, 0, r, 0);
		out(0xd60f);
		r = r & 7;
	} else if (type == 3) {
		rex(0, 0, r, 0);
		out(0xc0d9);
		out(0xdb);
		r = 7;
	} else if (type == 4) {
		op = 0x88;
	} else {
		op = 0x89;
		wide = type & 64;
	}
	if (wide) {
		if (fr == 48 || fr == 50 || (v->r & 512))
			large(op, r, v->r, v->sym, c);
		else if (fr != r)
			rex(1, fr, r, op + (r & 7) * 8);
	} else {
		if (op)
			rex(0, v->r, r, op);
		if (fr == 48 || fr == 50 || (v->r & 512))
			small(r, v->r, v->sym, c);
		else if (fr != r)
			out(0xc0 + fr + r * 8);
	}
}
int main(void)
{
	struct value v = {50, 0, 3, 8}, w = {50, 64, 3, 8}, x = {50, 1, 4, 2};
	store(1, &v);
	store(2, &w);
	store(3, &x);
	store(17, &w);
	return data[3] & 1;
}
`}, "small", []string{"gcc-11 -O2 -gno-statement-frontiers -gno-variable-location-views", "gcc-12 -O2 -gno-statement-frontiers -gno-variable-location-views"}, 2, 2},
	} {
		for _, compiler := range tt.compilers {
			t.Run(tt.name+" "+compiler, func(t *testing.T) {
				cc, options, _ := strings.Cut(compiler, " ")
				hasWays(t, plantest.New(t, built(t, cc, options, tt.sources), tt.definition, plan.Options{}), tt.probes, tt.marked)
			})
		}
	}
}
