package main

var sink int64

// trace add: main.add a b
// trace add%return: main.add%return $retval
//
//go:noinline
func add(a, b int32) int32 {
	return a*3 + b
}

// trace addIn: main.addIn a b
func addIn(a, b int64) int64 {
	sink = a
	return a ^ b
}

// trace narrow: main.narrow yes c s us b r
//
//go:noinline
func narrow(yes bool, c int8, s int16, us uint16, b byte, r rune) int64 {
	x := int64(c) + int64(s)*int64(us) - int64(b)
	if yes {
		return x + int64(r) + sink
	}
	return x
}

// trace narrowIn: main.narrowIn yes c s us b r
func narrowIn(yes bool, c int8, s int16, us uint16, b byte, r rune) int64 {
	sink = int64(s)
	if yes {
		return int64(c) + int64(r)
	}
	return int64(us) - int64(b)
}

// More than the nine registers for numbers.
// trace many: main.many a b c d e f g h i j k l
//
//go:noinline
func many(a int64, b int32, c uint64, d int16, e int64, f uint32, g int64, h int8, i int64, j int64, k int32, l uint8) int64 {
	return a + int64(b)*int64(c) - int64(d) ^ e + int64(f) ^ g*int64(h) - i*j + int64(k) - int64(l)
}

// trace floats: main.floats d n f k
//
//go:noinline
func floats(d float64, n int, f float32, k int64) float64 {
	return d*float64(f) + float64(n) - float64(k)
}

// trace down: main.down n step
func down(n, step uint32) uint32 {
	r := uint32(0)
	for n > 0 {
		n--
		r = r*3 + step
		sink = int64(r)
		step += n
	}
	return r
}

// trace downOut: main.downOut n step
// trace downOut%return: main.downOut%return $retval
//
//go:noinline
func downOut(n, step uint32) uint32 {
	r := uint32(1)
	for ; n > 0; n-- {
		r = r*5 + step
		sink = int64(r)
		step ^= n
	}
	return r
}

// trace modeOf: main.modeOf mode x
func modeOf(mode int, x int64) int64 {
	sink = x
	if mode == 5 {
		return x * 7
	}
	return x
}

// trace factorial: main.factorial n
// trace factorial%return: main.factorial%return $retval
//
//go:noinline
func factorial(n uint64) uint64 {
	if n < 2 {
		return 1
	}
	return n * factorial(n-1)
}

// trace visit: main.visit v i
func visit(v int64, i int) {
	sink = v + int64(i)
}

// trace visitAll: main.visitAll n
//
//go:noinline
func visitAll(items []int64, n int) {
	for i, v := range items[:n] {
		visit(v, i)
	}
}

// trace sumAll: main.sumAll first count=rest.len
//
//go:noinline
func sumAll(first int64, rest ...int64) int64 {
	for _, v := range rest {
		first += v
	}
	return first
}

// trace outer: main.outer a b
func outer(a, b int64) int64 { return middle(a*2, b) + inner(a, 4) }

// trace middle: main.middle a b
func middle(a, b int64) int64 { return inner(b, a+1) * 3 }

// trace inner: main.inner a b
func inner(a, b int64) int64 {
	sink = a
	return a - b
}

func numbers() {
	a, b := int32(random()), int32(random())
	x, y := random(), random()

	open()
	run("add", "a", u(a), "b", u(b))
	start()
	keep(add(hide(a), hide(b)))
	stop()
	run("add%return", "retval", u(a*3+b))

	open()
	run("addIn", "a", u(x), "b", u(y))
	start()
	keep(addIn(hide(x), hide(y)))
	stop()

	open()
	run("addIn", "a", u(7), "b", u(y))
	start()
	keep(addIn(7, hide(y)))
	stop()

	open()
	run("modeOf", "mode", u(5), "x", u(x))
	start()
	keep(modeOf(5, hide(x)))
	stop()

	for _, label := range []string{"narrow", "narrowIn"} {
		open()
		run(label, "yes", flag(x&2 != 0), "c", u(int8(x)), "s", u(int16(y)), "us", u(uint16(x)), "b", u(byte(y)), "r", u(rune(y&0xfff)))
		start()
		p, q := hide(x), hide(y)
		if label == "narrow" {
			keep(narrow(p&2 != 0, int8(p), int16(q), uint16(p), byte(q), rune(q&0xfff)))
		} else {
			keep(narrowIn(p&2 != 0, int8(p), int16(q), uint16(p), byte(q), rune(q&0xfff)))
		}
		stop()
	}

	open()
	run("many", "a", u(x), "b", u(b), "c", u(y), "d", u(int16(x)), "e", u(y), "f", u(uint32(a)), "g", u(x+1), "h", u(int8(y)), "i", u(x), "j", u(y+2), "k", u(a), "l", u(uint8(x)))
	start()
	p, q := hide(x), hide(y)
	keep(many(p, hide(b), uint64(q), int16(p), q, uint32(hide(a)), p+1, int8(q), p, q+2, a, uint8(p)))
	stop()

	open()
	run("floats", "n", u(int(a)), "k", u(x))
	start()
	keep(floats(2.5, hide(int(a)), 1.25, hide(x)))
	stop()

	open()
	run("outer", "a", u(x), "b", u(y))
	run("middle", "a", u(x*2), "b", u(y))
	run("inner", "a", u(y), "b", u(x*2+1))
	run("inner", "a", u(x), "b", u(4))
	start()
	keep(outer(hide(x), hide(y)))
	stop()
}

func loops() {
	n, step := uint32(random())%4, uint32(random())
	items := []int64{random(), random(), random(), random(), random()}
	count := 2 + int(uint64(random())%4)

	open()
	run("down", "n", u(n), "step", u(step))
	start()
	keep(down(hide(n), hide(step)))
	stop()

	open()
	run("down", "n", u(3), "step", u(step))
	start()
	keep(down(3, hide(step)))
	stop()

	open()
	run("downOut", "n", u(n), "step", u(step))
	start()
	r := downOut(hide(n), hide(step))
	stop()
	run("downOut%return", "retval", u(r))

	open()
	run("visitAll", "n", u(count))
	for i := 0; i < count; i++ {
		run("visit", "v", u(items[i]), "i", u(i))
	}
	start()
	visitAll(items, hide(count))
	stop()

	open()
	for i := n + 1; i > 0; i-- {
		run("factorial", "n", u(i))
	}
	start()
	keep(factorial(hide(uint64(n + 1))))
	stop()
	product := uint64(1)
	for i := uint64(1); i <= uint64(n+1); i++ {
		product *= i
		run("factorial%return", "retval", product)
	}

	open()
	run("sumAll", "first", u(step), "count", u(3))
	start()
	keep(sumAll(int64(hide(step)), items[:3]...))
	stop()
}
