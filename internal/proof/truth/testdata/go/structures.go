package main

import "unsafe"

type point struct{ x, y int64 }

type small struct {
	a int32
	b int16
	c uint8
}

type large struct {
	a    [4]int64
	n    int32
	name string
}

type shape interface{ area(unit int64) int64 }

type square struct{ side int64 }

// trace area: main.*square*area side=s->side unit
//
//go:noinline
func (s *square) area(unit int64) int64 {
	return s.side * s.side * unit
}

// trace shift: main.*point*shift x=p->x y=p->y by
func (p *point) shift(by int64) int64 {
	p.x += by
	sink = p.x
	return p.y
}

// trace sum: main.*point*sum x=p.x y=p.y k
//
//go:noinline
func (p point) sum(k int64) int64 {
	return p.x ^ p.y*k
}

// trace pointIn: main.pointIn x=p.x y=p.y k
func pointIn(p point, k int64) int64 {
	sink = k
	return p.x - p.y
}

// trace smallOf: main.smallOf a=s.a b=s.b c=s.c k
//
//go:noinline
func smallOf(s small, k int32) int32 {
	return s.a*k + int32(s.b) - int32(s.c)
}

// trace smallIn: main.smallIn a=s.a b=s.b c=s.c k
func smallIn(s small, k int32) int32 {
	sink = int64(s.b)
	return s.a + k - int32(s.c)
}

// trace largeOf: main.largeOf a1=l.a[1] n=l.n length=l.name.len k
//
//go:noinline
func largeOf(l large, k int64) int64 {
	return l.a[1] + int64(l.n) + int64(len(l.name)) + k
}

// trace largeRef: main.largeRef a2=l->a[2] n=l->n length=l->name.len
func largeRef(l *large) int64 {
	sink = int64(l.n)
	return l.a[2]
}

// trace textOf: main.textOf length=t.len at=t.str k
//
//go:noinline
func textOf(t string, k int64) int64 {
	return int64(len(t)) ^ k
}

// trace textIn: main.textIn length=t.len k
func textIn(t string, k int64) int64 {
	sink = k
	return int64(len(t)) + int64(t[0])
}

// trace sliceOf: main.sliceOf first=s.array[0] length=s.len room=s.cap k
//
//go:noinline
func sliceOf(s []int64, k int64) int64 {
	for _, v := range s {
		k += v
	}
	return k
}

// trace sliceIn: main.sliceIn length=s.len k
func sliceIn(s []int64, k int64) int64 {
	sink = k
	return s[0] + int64(len(s))
}

// trace arrayOf: main.arrayOf first=a[0] third=a[2] k
//
//go:noinline
func arrayOf(a [4]int32, k int32) int32 {
	return a[0] + a[2]*k
}

// trace through: main.through v
func through(f func(int64) int64, v int64) int64 {
	sink = v
	return f(v)
}

// trace greater: main.greater* a b
//
//go:noinline
func greater[T int64 | int16](a, b T) T {
	if a > b {
		return a
	}
	return b
}

// trace greaterIn: main.least* a b
func least[T int64 | int16](a, b T) T {
	sink = int64(a)
	if a < b {
		return a
	}
	return b
}

// trace worker: main.worker v
func worker(v int64, done chan<- int64) {
	sink = v
	done <- v * 2
}

// trace called: main.called v k
//
//go:noinline
func called(v, k int64) int64 {
	return v + k
}

func structures() {
	k := random()
	p := &point{random(), random()}
	s := small{int32(random()), int16(random()), uint8(random())}
	l := &large{[4]int64{1, random(), random(), 4}, int32(random()), "a name"}
	var any shape = &square{random()}
	kept = p
	kept = l

	open()
	run("area", "side", u(any.(*square).side), "unit", u(k))
	start()
	keep(hide(any).area(hide(k)))
	stop()

	open()
	run("shift", "x", u(p.x), "y", u(p.y), "by", u(k))
	start()
	keep(hide(p).shift(hide(k)))
	stop()

	open()
	run("sum", "x", u(p.x), "y", u(p.y), "k", u(k))
	start()
	keep(hide(*p).sum(hide(k)))
	stop()

	open()
	run("pointIn", "x", u(p.x), "y", u(k), "k", u(k))
	start()
	keep(pointIn(point{hide(p.x), k}, hide(k)))
	stop()

	open()
	run("smallOf", "a", u(s.a), "b", u(s.b), "c", u(s.c), "k", u(int32(k)))
	start()
	keep(smallOf(hide(s), int32(hide(k))))
	stop()

	open()
	run("smallIn", "a", u(s.a), "b", u(s.b), "c", u(s.c), "k", u(int32(k)))
	start()
	keep(smallIn(hide(s), int32(hide(k))))
	stop()

	open()
	run("largeOf", "a1", u(l.a[1]), "n", u(l.n), "length", u(len(l.name)), "k", u(k))
	start()
	keep(largeOf(*hide(l), hide(k)))
	stop()

	open()
	run("largeRef", "a2", u(l.a[2]), "n", u(l.n), "length", u(len(l.name)))
	start()
	keep(largeRef(hide(l)))
	stop()

	text := "a text of the image"
	open()
	run("textOf", "length", u(len(text)), "at", u(uintptr(*(*unsafe.Pointer)(unsafe.Pointer(&text)))), "k", u(k))
	start()
	keep(textOf(hide(text), hide(k)))
	stop()

	open()
	run("textIn", "length", u(len(text)), "k", u(k))
	start()
	keep(textIn(text, hide(k)))
	stop()

	items := make([]int64, 3, 8)
	items[0] = k
	kept = items
	open()
	run("sliceOf", "first", u(k), "length", u(3), "room", u(8), "k", u(5))
	start()
	keep(sliceOf(hide(items), hide(int64(5))))
	stop()

	open()
	run("sliceIn", "length", u(2), "k", u(k))
	start()
	keep(sliceIn(hide(items)[1:], hide(k)))
	stop()

	array := [4]int32{int32(random()), 2, int32(random()), 4}
	open()
	run("arrayOf", "first", u(array[0]), "third", u(array[2]), "k", u(int32(k)))
	start()
	keep(arrayOf(array, int32(hide(k))))
	stop()
}

func generics() {
	x, y := random(), random()
	a, b := int16(random()), int16(random())

	open()
	run("greater", "a", u(x), "b", u(y))
	start()
	keep(greater(hide(x), hide(y)))
	stop()

	open()
	run("greater", "a", u(a), "b", u(b))
	start()
	keep(greater(hide(a), hide(b)))
	stop()

	open()
	run("greaterIn", "a", u(x), "b", u(y))
	start()
	keep(least(hide(x), hide(y)))
	stop()

	open()
	run("greaterIn", "a", u(a), "b", u(b))
	start()
	keep(least(hide(a), hide(b)))
	stop()

	open()
	run("through", "v", u(x))
	run("called", "v", u(x), "k", u(y))
	start()
	k := hide(y)
	keep(through(func(v int64) int64 { return called(v, k) }, hide(x)))
	stop()
}

func coroutines() {
	v, k := random(), random()
	done := make(chan int64)

	open()
	run("worker", "v", u(v))
	start()
	go worker(hide(v), done)
	keep(<-done)
	stop()

	iterators(v, k)
}
