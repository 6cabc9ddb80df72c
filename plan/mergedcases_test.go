package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestMergedCases: LLVM merges equal cases of a switch of several instances of a function, and where the test of one instance is gone, its runs begin at cases. A run that has begun
// with the test of another goes on in the merged ones; in that which has no test before it on one path, and one on another, a hit need not be a run.
func TestMergedCases(t *testing.T) {
	const source = `
#include <stdlib.h>
struct addr { int kind; unsigned long number, step; void *regex; };
struct input { unsigned long line; };
struct cmd { struct addr *a1, *a2; int state; };
static int same, ends;
__attribute__((noinline)) int regex(void *r, int a, int b, int c, int d, int e) { asm volatile("" ::: "memory"); return same++ & 1; }
__attribute__((noinline)) _Bool eof(struct input *in) { asm volatile("" ::: "memory"); return ends++ & 1; }
static _Bool match(struct addr *addr, struct input *input)
{
	switch (addr->kind) {
	case 0: return 1;
	case 1: return regex(addr->regex, 1, 2, 0, 0, 0);
	case 2: return input->line >= addr->number && (input->line - addr->number) % addr->step == 0;
	case 3: case 4: return addr->number <= input->line;
	case 5: return eof(input);
	case 6: return addr->number == input->line;
	default: abort();
	}
	return 0;
}
static _Bool matches(struct cmd *cmd, struct input *input)
{
	if (!cmd->a1)
		return 1;
	if (cmd->state != 1) {
		if (!cmd->a2)
			return match(cmd->a1, input);
		if (cmd->a1->kind == 6) {
			if (cmd->state == 2 || input->line < cmd->a1->number)
				return 0;
		} else if (!match(cmd->a1, input))
			return 0;
		cmd->state = 1;
		switch (cmd->a2->kind) {
		case 1: return 1;
		case 6:
			if (input->line >= cmd->a2->number)
				cmd->state = 2;
			return input->line <= cmd->a2->number || match(cmd->a1, input);
		case 3: cmd->a2->number = input->line + cmd->a2->step; return 1;
		case 4: cmd->a2->number = input->line + cmd->a2->step - input->line % cmd->a2->step; return 1;
		default: break;
		}
	}
	if (cmd->a2->kind == 6) {
		if (input->line >= cmd->a2->number)
			cmd->state = 2;
		return input->line <= cmd->a2->number;
	}
	if (match(cmd->a2, input))
		cmd->state = 2;
	return 1;
}
__attribute__((noinline)) int all(struct cmd *c, int n, struct input *in)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		if (matches(&c[i], in) != (c[i].state == 7))
			sum += i;
	return sum;
}
int main(void)
{
	struct addr a = {1}, b = {5};
	struct cmd c[4] = {{&a}, {&b}, {&a, &b}};
	struct input in = {3};
	return all(c, 4, &in);
}
`
	for _, compiler := range []string{"clang-19", "clang-22"} {
		p := plantest.New(t, built(t, compiler, "-O3", map[string]string{"a.c": source}), "match", plan.Options{})
		begin := 0
		for i := range p.Sites {
			if !p.Sites[i].Way.Again {
				begin++
			}
		}
		if len(p.Sites) != 16 || begin != 10 {
			t.Errorf("%s: runs begin at %d of %d sites: %v", compiler, begin, len(p.Sites), p.Sites)
		}
	}
}
