package plan_test

import (
	"strings"
	"testing"
)

// clonedFor2 has a clone of f for 2.
const clonedFor2 = `
volatile long sink;
static __attribute__((noinline)) int f(unsigned long a, unsigned char n)
{
	sink = a * n;
	return a ^ 7;
}
int g(unsigned long a) { return f(a, 2) + f(a + 1, 2); }
int main(void) { return g(1) & 1; }
`

// TestPassedOther: GCC 16 loses the 2 of "f(1, -1, 2, n)" in a clone of f for 2, and writes what f makes of it, 0, as what it is in the whole clone, as of f1 in the generated program of seed
// 420017, at -O3. The calls say what they pass. The note is made so in what GCC 12 writes, where it is right.
func TestPassedOther(t *testing.T) {
	text := assembled(t, "gcc-12", "a.c", clonedFor2, "-dA")
	const note = "\t.byte\t0x2\t# DW_AT_const_value"
	if strings.Count(text, note) != 1 {
		t.Fatal("there is another note")
	}
	for number, sure := range map[string]bool{"0x2": true, "0": false} {
		other := strings.Replace(text, note, strings.Replace(note, "0x2", number, 1), 1)
		isSure(t, number, built(t, "gcc-12", "-O2", map[string]string{"a.s": other}), "f n", 1, sure)
	}
}

// TestPassedNoNumber: GCC 12 writes the 1 that f4 of the generated program of seed 510003 makes of any truth value as what it is in a whole clone, at -Os, though a call passes what is in a
// register. A call is made to say so here.
func TestPassedNoNumber(t *testing.T) {
	text := assembled(t, "gcc-12", "a.c", clonedFor2, "-dA")
	const number = "\t.uleb128 0x1\t# DW_AT_call_value\n\t.byte\t0x32\t# DW_OP_lit2\n"
	if !strings.Contains(text, number) {
		t.Fatal("no call says what it passes")
	}
	other := strings.Replace(text, number, strings.Replace(number, "0x32", "0x55", 1), 1) // %rdi
	isSure(t, "a call", built(t, "gcc-12", "-O2", map[string]string{"a.s": other}), "f n", 1, false)
}
