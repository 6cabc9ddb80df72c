package truth

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Program is a generated program in C. Compiled with -DRECORD it records what each run of its functions is given;
// without, it is traced.
type Program struct {
	Seed        uint64
	Source      string
	Definitions []Definition
}

// randomFunctions is how many functions a program has, and randomRuns how many runs a call from main may make, at most.
const (
	randomFunctions = 14
	randomRuns      = 150
)

// Random returns the program of a seed: functions that are inlined or not, that assign their parameters, loop, branch, return
// early and call each other. The memory that arguments are read from does not change while they run, since compilers move
// stores. Nothing in it is undefined with -fwrapv.
func Random(seed uint64) *Program {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 1)), p: &Program{Seed: seed}}
	g.line("#include \"truth.h\"")
	g.line("#include <stdbool.h>")
	g.line("#ifdef RECORD\n#define RUN(label) truth_run(label)\n#define IS(name, v) truth_int(name, (uint64_t)(v))\n#else\n#define RUN(label) ((void)0)\n#define IS(name, v) ((void)0)\n#endif")
	g.line("enum color { RED, GREEN = 3, BLUE = 70000 };")
	g.line("struct node { long value; int small; unsigned char bytes[8]; struct node *next; };")
	g.line("struct pair { int x; long y; };")
	g.line("struct half { short a, b; };")
	g.line("static struct node nodes[8];")
	g.line("static volatile long sink;")
	for n := range randomFunctions {
		g.function(n)
	}
	g.main()
	g.p.Source = g.out.String()
	return g.p
}

// randomType is a type of parameters and variables.
type randomType struct {
	decl  string
	reads []string // what is recorded of a parameter, with %s for it
	whole bool     // it is a number
}

var randomTypes = []randomType{
	{"int", []string{"%s"}, true}, {"long", []string{"%s"}, true}, {"unsigned", []string{"%s"}, true}, {"unsigned long", []string{"%s"}, true},
	{"short", []string{"%s"}, true}, {"unsigned char", []string{"%s"}, true}, {"signed char", []string{"%s"}, true}, {"unsigned short", []string{"%s"}, true},
	{"bool", []string{"%s"}, true}, {"enum color", []string{"%s"}, true},
	{"const struct node *", []string{"%s->value", "%s->small", "%s->bytes[3]"}, false}, {"const struct node *", []string{"%s->small", "%s->next->value"}, false},
	{"struct pair", []string{"%s.x", "%s.y"}, false}, {"struct half", []string{"%s.a", "%s.b"}, false},
}

type variable struct {
	name string
	kind randomType
}

type madeFunction struct {
	name   string
	params []variable
	runs   int // that one run makes, itself included, at most
}

// generator writes a program.
type generator struct {
	rng   *rand.Rand
	p     *Program
	out   strings.Builder
	funs  []madeFunction
	scope []variable
	depth int // of statements
	turns int // of the loops around
	runs  int // of the function that is written
	names int
}

func (g *generator) line(format string, args ...any) {
	fmt.Fprintf(&g.out, "%s%s\n", strings.Repeat("\t", g.depth), fmt.Sprintf(format, args...))
}

func (g *generator) of(choices ...string) string { return choices[g.rng.IntN(len(choices))] }

// function writes function n, which calls those before it.
func (g *generator) function(n int) {
	f := madeFunction{name: fmt.Sprintf("f%d", n), runs: 1}
	var params, asked []string
	for i := range 1 + g.rng.IntN(4) {
		v := variable{fmt.Sprintf("p%d", i), randomTypes[g.rng.IntN(len(randomTypes))]}
		f.params = append(f.params, v)
		params = append(params, v.kind.decl+" "+v.name)
	}
	g.scope, g.turns, g.runs, g.names = append([]variable(nil), f.params...), 1, 1, 0
	how := g.of("static inline", "static inline", "static", "static inline __attribute__((always_inline))", "static __attribute__((noinline))", "__attribute__((noinline))")
	g.line("%s %s %s(%s)\n{", how, g.of("long", "int", "unsigned", "unsigned char"), f.name, strings.Join(params, ", "))
	g.depth++
	g.line("RUN(%q);", f.name)
	for _, v := range f.params {
		for i, r := range v.kind.reads {
			name := v.name
			if !v.kind.whole {
				name = fmt.Sprintf("%s_%d", v.name, i)
			}
			what := fmt.Sprintf(r, v.name)
			g.line("IS(%q, %s);", name, what)
			if asked = append(asked, name+"="+what); what == name {
				asked[len(asked)-1] = name
			}
		}
	}
	for range 2 + g.rng.IntN(5) {
		g.statement()
	}
	g.line("return %s;", g.expr(2))
	g.depth--
	g.line("}")
	f.runs = g.runs
	g.funs = append(g.funs, f)
	g.p.Definitions = append(g.p.Definitions, Definition{Label: f.name, Text: f.name + " " + strings.Join(asked, " ")})
}

// number returns a number in scope, or a constant.
func (g *generator) number() string {
	v := g.scope[g.rng.IntN(len(g.scope))]
	switch v.kind.decl {
	case "const struct node *":
		return v.name + g.of("->value", "->small", "->bytes[1]", "->next->small")
	case "struct pair":
		return v.name + g.of(".x", ".y")
	case "struct half":
		return v.name + g.of(".a", ".b")
	}
	return v.name
}

// without returns an expression that does not have a variable.
func (g *generator) without(name string, depth int) string {
	scope := g.scope
	g.scope = slices.DeleteFunc(slices.Clone(scope), func(v variable) bool { return v.name == name })
	if len(g.scope) == 0 {
		g.scope = scope
		return "sink"
	}
	e := g.expr(depth)
	g.scope = scope
	return e
}

// operator returns an assignment. A parameter keeps something of what it was given: code that drops it before it is read
// is not what people write, and compilers do not say what it was.
func (g *generator) operator(to string) string {
	if strings.HasPrefix(to, "p") {
		for _, v := range g.scope {
			if v.name == to && v.kind.decl == "bool" {
				return "^="
			}
		}
		return g.of("+=", "^=", "-=", "+=", "*=", "|=", "&=")
	}
	return g.of("=", "+=", "^=", "-=")
}

func (g *generator) expr(depth int) string {
	if depth == 0 || g.rng.IntN(4) == 0 {
		if g.rng.IntN(3) == 0 {
			return g.of("0", "1", "2", "-1", "7", "100", "0x10001", "-3000", "70000l")
		}
		return g.number()
	}
	a := g.expr(depth - 1)
	switch g.rng.IntN(12) {
	case 0:
		return fmt.Sprintf("%s(%s)", g.of("-", "~", "!"), a)
	case 1:
		return fmt.Sprintf("(%s)(%s)", g.of("int", "unsigned char", "short", "unsigned long", "bool"), a)
	case 2:
		return fmt.Sprintf("((unsigned long)(%s) %s %d)", a, g.of(">>", "<<", "/", "%"), 1+g.rng.IntN(9))
	case 3:
		return fmt.Sprintf("(%s ? %s : %s)", a, g.expr(depth-1), g.expr(depth-1))
	case 4:
		return fmt.Sprintf("nodes[(%s) & 7].value", a)
	}
	return fmt.Sprintf("(%s %s %s)", a, g.of("+", "-", "*", "&", "|", "^", "<", "==", "+", "-"), g.expr(depth-1))
}

// target returns a number in scope that can be assigned, or a new local.
func (g *generator) target() string {
	for range 4 {
		if v := g.scope[g.rng.IntN(len(g.scope))]; v.kind.whole && !strings.HasPrefix(v.name, "i") {
			return v.name
		}
	}
	name := fmt.Sprintf("v%d", g.names)
	g.names++
	k := randomTypes[g.rng.IntN(5)]
	g.line("%s %s = %s;", k.decl, name, g.expr(1))
	g.scope = append(g.scope, variable{name, k})
	return name
}

// block writes statements in braces, with what is before and after these; what they declare is not in scope after them.
func (g *generator) block(head string, n int, tail string) {
	g.line("%s {", head)
	g.depth++
	scope := len(g.scope)
	for range n {
		g.statement()
	}
	g.scope = g.scope[:scope]
	g.depth--
	g.line("}%s", tail)
}

func (g *generator) statement() {
	few := 1 + g.rng.IntN(2)
	switch n := g.rng.IntN(16); {
	case g.depth > 3 || n < 4:
		to := g.target()
		if strings.HasPrefix(to, "p") && g.rng.IntN(3) == 0 {
			g.line("%s %s %d;", to, g.of("<<=", ">>="), 1+g.rng.IntN(3))
			break
		}
		g.line("%s %s %s;", to, g.operator(to), g.without(to, 2))
	case n < 6:
		g.line("sink = %s;", g.expr(2))
	case n == 6:
		g.block(fmt.Sprintf("if (%s)", g.expr(2)), few, "")
		if g.rng.IntN(2) == 0 {
			g.block("else", few, "")
		}
	case n == 7:
		g.line("if (%s)\n%sreturn %s;", g.expr(2), strings.Repeat("\t", g.depth+1), g.expr(1))
	case n < 10 && g.turns < 20:
		turns := 1 + g.rng.IntN(4)
		name := fmt.Sprintf("i%d", g.names)
		g.names++
		count := fmt.Sprintf("(int)(%s) & %d", g.expr(1), 1<<(g.rng.IntN(2)+1)-1)
		if g.rng.IntN(3) == 0 {
			count = fmt.Sprint(turns)
		}
		g.turns *= 4
		switch g.rng.IntN(3) {
		case 0:
			g.line("int %s = %s;", name, count)
			g.block(fmt.Sprintf("while (%s-- > 0)", name), few, "")
		case 1:
			g.scope = append(g.scope, variable{name, randomTypes[0]})
			g.block(fmt.Sprintf("for (int %s = 0; %s < (%s); %s++)", name, name, strings.ReplaceAll(count, name, "3"), name), few, "")
			g.scope = g.scope[:len(g.scope)-1]
		default:
			g.line("int %s = %s;", name, count)
			g.block("do", few, fmt.Sprintf(" while (%s-- > 0);", name))
		}
		g.turns /= 4
	case n == 10:
		g.line("switch ((%s) & 3) {", g.expr(1))
		for i := range 3 {
			g.line("case %d:", i)
			g.depth++
			scope := len(g.scope)
			g.line("{")
			g.statement()
			g.line("}")
			g.scope = g.scope[:scope]
			if g.rng.IntN(3) > 0 {
				g.line("break;")
			}
			g.depth--
		}
		g.line("}")
	default:
		g.call()
	}
}

// call writes a call of a function before, if its runs are not too many.
func (g *generator) call() {
	if len(g.funs) == 0 {
		return
	}
	f := &g.funs[g.rng.IntN(len(g.funs))]
	if g.runs+g.turns*f.runs > randomRuns {
		return
	}
	g.runs += g.turns * f.runs
	to := g.target()
	scope := g.scope
	g.scope = slices.DeleteFunc(slices.Clone(scope), func(v variable) bool { return v.name == to })
	if len(g.scope) == 0 {
		g.scope = scope
	}
	args := g.arguments(f)
	g.scope = scope
	g.line("%s %s %s(%s);", to, g.operator(to), f.name, args)
}

func (g *generator) arguments(f *madeFunction) string {
	var args []string
	for _, p := range f.params {
		arg := g.expr(2)
		if !p.kind.whole {
			arg = fmt.Sprintf("&nodes[(%s) & 7]", g.expr(1))
			for _, v := range g.scope {
				if v.kind.decl == p.kind.decl && g.rng.IntN(2) == 0 {
					arg = v.name
				}
			}
			if strings.HasPrefix(arg, "&") && strings.HasPrefix(p.kind.decl, "struct") {
				arg = fmt.Sprintf("(%s){%s, %s}", p.kind.decl, g.expr(1), g.expr(1))
			}
		}
		args = append(args, arg)
	}
	return strings.Join(args, ", ")
}

// main writes calls of all functions, those that others call included.
func (g *generator) main() {
	g.line("int main(void)\n{")
	g.depth++
	g.line("for (int i = 0; i < 8; i++) {")
	g.line("\tnodes[i] = (struct node){truth_random(), (int)truth_random(), {1, 2, 250, (unsigned char)i, 128}, &nodes[(i * 3 + 1) & 7]};")
	g.line("}")
	g.line("for (int round = 0; round < 8; round++) {")
	g.depth++
	for i := range g.funs {
		f := &g.funs[i]
		g.line("{")
		g.depth++
		var args []string
		g.line("long r;")
		for j, p := range f.params {
			name := fmt.Sprintf("a%d", j)
			switch p.kind.decl {
			case "const struct node *":
				g.line("%s %s = &nodes[truth_random() & 7];", p.kind.decl, name)
			case "struct pair", "struct half":
				g.line("%s %s = {truth_random(), truth_random()};", p.kind.decl, name)
				g.line("KEEPMEM(%s);", name)
				args = append(args, name)
				continue
			default:
				g.line("%s %s = truth_random()%s;", p.kind.decl, name, g.of("", " & 15", " & 3"))
			}
			g.line("HIDE(%s);", name)
			args = append(args, name)
		}
		g.line("truth_open();")
		g.line("truth_start();")
		for j, p := range f.params {
			if strings.HasPrefix(p.kind.decl, "struct ") {
				g.line("__asm__ volatile(\"\" : \"+m\"(a%d));", j)
			} else {
				g.line("HIDE(a%d);", j)
			}
		}
		g.line("r = %s(%s);", f.name, strings.Join(args, ", "))
		g.line("KEEP(r);")
		g.line("truth_stop();")
		g.depth--
		g.line("}")
	}
	g.depth--
	g.line("}")
	g.line("#ifdef RECORD\n\ttruth_print();\n#endif")
	g.line("return 0;")
	g.depth--
	g.line("}")
}
