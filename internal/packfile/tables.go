package packfile

import (
	"encoding/binary"
	"math"
	"runtime"
	"sort"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// maxText bounds a text, in bytes: names of C++ can be long.
const maxText = 1 << 20

// textReader reads the texts of one group after the other. Those of a group share their memory, which is not used again.
type textReader struct {
	all  []byte
	last []byte
	ends [groupSize]int
	out  [groupSize]string
}

// texts returns the texts of a group, until it is called again.
func (x *textReader) texts(f *File, part, g int) ([]string, error) {
	r, _, err := f.group(part, g)
	if err != nil {
		return nil, err
	}
	x.all, x.last = x.all[:0], x.last[:0]
	for i := range r.n {
		if x.last = r.nextText(x.last); r.Bad {
			return nil, r.check()
		}
		x.all = append(x.all, x.last...)
		x.ends[i] = len(x.all)
	}
	texts, begin := string(x.all), 0
	for i, end := range x.ends[:r.n] {
		x.out[i], begin = texts[begin:end], end
	}
	return x.out[:r.n], nil
}

// nextText reads a text after the one before it, whose memory it takes.
func (r *groupReader) nextText(last []byte) []byte {
	b := r.U8()
	same, more := uint64(b>>4), uint64(b&15)
	if more == 15 {
		same, more = r.ULEB(), r.ULEB()
	}
	if same > uint64(len(last)) || same+more > maxText || more > maxText {
		r.Fail()
		return nil
	}
	return append(last[:same], r.Bytes(more)...)
}

// first returns the first text of a group.
func (f *File) first(part, g int) (string, error) {
	r, _, err := f.group(part, g)
	if err != nil {
		return "", err
	}
	t := string(r.nextText(nil))
	return t, r.check()
}

// nameOf finds the number of a name, or -1.
func (f *File) nameOf(name string) (int, error) {
	var failed error
	wanted := prefix(name)
	g := sort.Search(groups(f.parts[partNames].N), func(i int) bool {
		_, begins, err := f.offset(partNames, i)
		if err == nil && uint32(begins) != wanted {
			return uint32(begins) > wanted
		}
		t := ""
		if err == nil {
			t, err = f.first(partNames, i)
		}
		if err != nil {
			failed = err
		}
		return err != nil || t > name
	}) - 1
	if failed != nil || g < 0 {
		return -1, failed
	}
	var x textReader
	all, err := x.texts(f, partNames, g)
	if err != nil {
		return -1, err
	}
	for i, t := range all {
		if t == name {
			return g*groupSize + i, nil
		}
	}
	return -1, nil
}

// nameID returns the number of a function's name.
func (f *File) nameID(fun int) (uint32, error) {
	p, bit := &f.parts[partFunNames], fun*f.width
	at := p.From + bit/8
	d, err := f.own.Bytes(at, min(at+8, p.To))
	if err != nil {
		return 0, err
	}
	have := uint64(0)
	if len(d) == 8 {
		have = binary.LittleEndian.Uint64(d)
	} else {
		have = bin.Uint(d, false)
	}
	v := uint32(have >> (bit % 8) & (1<<f.width - 1))
	if int(v) >= f.parts[partNames].N {
		return 0, f.own.Errorf(at, "a function has the name number %d of %d", v, f.parts[partNames].N)
	}
	return v, nil
}

// functionsOf returns for each function whether its name is one that picked selects.
func (f *File) functionsOf(picked func(name uint32) bool) ([]bool, error) {
	p := &f.parts[partFunNames]
	out := make([]bool, f.funs)
	names, mask := uint32(f.parts[partNames].N), uint64(1)<<f.width-1
	for fun := 0; fun < f.funs; fun++ {
		// Those that begin in a page are read there, but for the last ones, which may end in the next.
		first := fun * f.width / 8
		d, err := f.own.Page(p.From+first, p.To)
		if err != nil {
			return nil, err
		}
		for ; fun < f.funs; fun++ {
			bit := fun*f.width - 8*first
			if bit/8+8 > len(d) {
				break
			}
			v := uint32(binary.LittleEndian.Uint64(d[bit/8:]) >> (bit % 8) & mask)
			if v >= names {
				return nil, f.own.Errorf(p.From+first+bit/8, "a function has the name number %d of %d", v, names)
			}
			out[fun] = picked(v)
		}
		if fun < f.funs {
			v, err := f.nameID(fun)
			if err != nil {
				return nil, err
			}
			out[fun] = picked(v)
		}
	}
	return out, nil
}

// session caches what is read while one question is answered. One goroutine uses it at a time.
type session struct {
	f         *File
	functions *functions
	text      map[uint32]string
	abouts    map[int]*Function // without their parameters
	whole     map[int]*Function
	values    map[int]*Value
	params    map[int]Param
	tuples    map[int][]Value
	reading   valueReader
	walk      struct { // see blockReader
		block readBlock
		path  []level
	}
}

// session returns a session, which its end puts back: a question lists sites first, and then reads them.
func (f *File) session() *session {
	cache := f.cache.Load()
	for cache == nil {
		f.cache.CompareAndSwap(nil, &functions{groups: make([]atomic.Pointer[functionGroup], groups(f.funs))})
		cache = f.cache.Load()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.idle); n > 0 {
		s := f.idle[n-1]
		f.idle = f.idle[:n-1]
		s.functions = cache
		return s
	}
	return &session{
		f: f, functions: cache, text: make(map[uint32]string), abouts: make(map[int]*Function), whole: make(map[int]*Function), values: make(map[int]*Value),
		params: make(map[int]Param), tuples: make(map[int][]Value),
	}
}

// maxKept is how many times groupSize texts and values a session that is put back may have, and maxKeptFunctions how many groups of
// functions may be kept from one question to the next, which are up to 1.3 KB each: those of kmalloc, which is inlined into 1,600 functions
// of a kernel, are 2,200, and have 0.4 KB.
const maxKept, maxKeptFunctions = 1024, 2560

func (s *session) end() {
	if s.functions.count.Load() > maxKeptFunctions {
		s.f.cache.CompareAndSwap(s.functions, nil)
	}
	s.functions = nil
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if len(s.text) <= maxKept*groupSize && len(s.values) <= maxKept*groupSize && len(s.f.idle) < runtime.GOMAXPROCS(0) {
		s.f.idle = append(s.f.idle, s)
	}
}

// nameText is the number of a function's name among texts.
func (s *session) nameText(id int) (uint32, error) {
	n, err := s.f.nameID(id)
	return n<<1 | 1, err
}

// textOf returns a text by its number: of the names, if that is odd, or of the others.
func (s *session) textOf(n uint32) (string, error) {
	if t, known := s.text[n]; known {
		return t, nil
	}
	part, i := partTexts, int(n>>1)
	if n&1 != 0 {
		part = partNames
	}
	if i >= s.f.parts[part].N {
		return "", s.f.own.Errorf(s.f.parts[part].From, "number %d of %d %s is asked for", i, s.f.parts[part].N, Kind.Parts[part])
	}
	r, _, err := s.f.group(part, i/groupSize)
	if err != nil {
		return "", err
	}
	var last []byte
	for range i%groupSize + 1 {
		last = r.nextText(last)
	}
	if r.Bad {
		return "", r.check()
	}
	t := string(last)
	s.text[n] = t
	return t, nil
}

// record returns a reader at a record of a part whose records skip passes over.
func (s *session) record(part, i int, skip func(*groupReader)) (groupReader, error) {
	if i < 0 || i >= s.f.parts[part].N {
		return groupReader{}, s.f.own.Errorf(s.f.parts[part].From, "number %d of %d %s is asked for", i, s.f.parts[part].N, Kind.Parts[part])
	}
	r, _, err := s.f.group(part, i/groupSize)
	if err != nil {
		return r, err
	}
	for range i % groupSize {
		skip(&r)
	}
	return r, r.check()
}

// listRecord returns a reader at a list of numbers.
func (s *session) listRecord(part, i int) (groupReader, error) {
	return s.record(part, i, func(r *groupReader) { r.pass(r.count(1)) })
}

func readList(r *groupReader) []int {
	out := make([]int, r.count(1))
	for i := range out {
		out[i] = r.index(math.MaxInt32)
	}
	return out
}

// param returns a parameter.
func (s *session) param(i int) (Param, error) {
	if p, known := s.params[i]; known {
		return p, nil
	}
	r, err := s.record(partParams, i, func(r *groupReader) { r.ULEB(); r.ULEB() })
	if err != nil {
		return Param{}, err
	}
	name, typ := r.text(), r.index(math.MaxInt32)
	if err := r.check(); err != nil {
		return Param{}, err
	}
	t, err := s.f.u32(partTypes, typ)
	if err != nil {
		return Param{}, err
	}
	p := Param{Type: TypeID(t)}
	if p.Name, err = s.textOf(name); err != nil {
		return Param{}, err
	}
	s.params[i] = p
	return p, nil
}

// value returns a value.
func (s *session) value(i int) (*Value, error) {
	if v, known := s.values[i]; known {
		return v, nil
	}
	x := &s.reading
	*x = valueReader{s: s}
	r, err := s.record(partValues, i, func(r *groupReader) {
		x.groupReader = r
		x.value(nil)
	})
	if err != nil {
		return nil, err
	}
	x.groupReader = &r
	v := new(Value)
	x.value(v)
	if x.err == nil {
		x.err = r.check()
	}
	if x.err != nil {
		return nil, x.err
	}
	s.values[i] = v
	return v, nil
}

// result returns a function's result by its rank.
func (s *session) result(rank int) (*Value, error) { return s.ranked(partResults, rank) }

func (s *session) ranked(part, rank int) (*Value, error) {
	i, err := s.f.u32(part, rank)
	if err != nil {
		return nil, err
	}
	return s.value(i)
}

// list returns values by their numbers.
func (s *session) list(numbers []int) ([]Value, error) {
	out := make([]Value, len(numbers))
	for i, n := range numbers {
		v, err := s.value(n)
		if err != nil {
			return nil, err
		}
		out[i] = *v
	}
	return out, nil
}

// tuple returns a list of values that several sites have. Callers must not change it.
func (s *session) tuple(i int) ([]Value, error) {
	if t, known := s.tuples[i]; known {
		return t, nil
	}
	r, err := s.listRecord(partTuples, i)
	if err != nil {
		return nil, err
	}
	numbers := readList(&r)
	if err := r.check(); err != nil {
		return nil, err
	}
	t, err := s.list(numbers)
	if err == nil {
		s.tuples[i] = t
	}
	return t, err
}

// valueReader reads values.
type valueReader struct {
	*groupReader
	s    *session
	skip bool // it is passed over: texts are not looked up, and what is read is not kept
	err  error

	passed struct { // what is read then
		value Value
		expr  loc.Expr
	}
}

func (x *valueReader) text() string {
	n := x.groupReader.text()
	if x.skip || x.Bad || x.err != nil {
		return ""
	}
	t, err := x.s.textOf(n)
	if err != nil {
		x.err = err
	}
	return t
}

// value reads a value into v, or passes over it if v is nil.
func (x *valueReader) value(v *Value) {
	if x.skip = v == nil; x.skip {
		v = &x.passed.value
	}
	flags := x.U8()
	v.Absent, v.LowBit, v.Own, v.Entries = flags&valueAbsent != 0, flags&valueLowBit != 0, flags&valueOwn != 0, 1
	if v.Own {
		v.Type = x.typeID()
	}
	if flags&valueEntries != 0 {
		v.Entries = x.index(math.MaxInt32)
	}
	if flags&valueReason != 0 {
		v.Reason = x.reason()
	}
	v.Loc = x.location(0)
	at := &v.Pointee
	for more := flags&valuePointee != 0; more && !x.Bad; {
		p := new(Pointee)
		*at, at = p, &p.Pointee
		p.Name, p.Type = x.text(), x.typeID()
		p.Reason, p.Loc = x.reason(), x.location(0)
		more = x.U8() != 0
	}
}

func (x *valueReader) reason() loc.Reason {
	c := x.U8()
	if c > byte(reasons.Damaged)+16 { // there is room for more
		x.Fail()
	}
	return loc.Reason{Code: loc.ReasonCode(c), Detail: x.text()}
}

// maxExpr bounds how deep pieces and expressions are nested.
const maxExpr = 1 << 10

func (x *valueReader) location(depth int) (l loc.Location) {
	b := x.U8()
	l.Kind, l.Rule = loc.Kind(b&^locDoubt&15), loc.Rule(b>>4)
	if b&locDoubt != 0 {
		if d := x.U8(); d&ofPointee != 0 {
			l.Pointee = loc.ReasonCode(d &^ ofPointee)
		} else {
			l.Doubt = loc.ReasonCode(d)
		}
	}
	if l.Rule == furtherRule {
		l.Rule = loc.Rule(x.U8())
	}
	if depth > maxExpr {
		x.Fail()
		return l
	}
	switch l.Kind {
	case loc.KindNone:
	case loc.KindRegister, loc.KindMemory, loc.KindConstant:
		l.Expr = x.expr(0)
	case loc.KindValue:
		l.Size = x.U8()
		l.Expr = x.expr(0)
	case loc.KindBytes:
		l.Bytes = append([]byte{}, x.Bytes(x.ULEB())...)
	case loc.KindImplicitPointer:
		l.Target, l.TargetOffset = x.ULEB(), x.int()
	case loc.KindPieces:
		l.Pieces = make([]loc.Piece, x.count(5))
		for i := range l.Pieces {
			p := &l.Pieces[i]
			p.BitSize, p.BitOffset = x.ULEB(), x.ULEB()
			p.Reason, p.Loc = x.reason(), x.location(depth+1)
		}
	default:
		x.Fail()
	}
	return l
}

// caller reads what appendCaller wrote.
func (x *valueReader) caller(e *loc.Expr, depth int) {
	k, last := uint64(0), &e.B
	n := x.count(3)
	for i := range n {
		apart := x.ULEB()
		if k += apart; apart == 0 && i > 0 || apart > ops.MaxApart || k > ops.MaxApart || x.Bad {
			x.Fail()
			return
		}
		to := x.expr(depth + 1)
		arm := x.newExpr()
		*arm = loc.Expr{Op: ops.Arm, K: k, A: to}
		*last, last = arm, &arm.B
	}
	if e.A = x.expr(depth + 1); n == 0 {
		x.Fail()
	}
}

// newExpr returns memory for an expression, which is always the same if nothing is kept.
func (x *valueReader) newExpr() *loc.Expr {
	if x.skip {
		return &x.passed.expr
	}
	return new(loc.Expr)
}

func (x *valueReader) expr(depth int) *loc.Expr {
	e := x.newExpr()
	*e = loc.Expr{Op: loc.Op(x.U8())}
	if depth > maxExpr || !inLocation(e.Op) || x.Bad {
		x.Fail()
		return e
	}
	switch e.Op {
	case ops.Const:
		e.K = uint64(x.int())
	case ops.Reg, ops.Addr:
		e.K = x.ULEB()
	case ops.Deref, ops.ZExt, ops.SExt:
		if e.Size = x.U8(); e.Size == 0 || e.Size > 8 {
			x.Fail()
		}
	case ops.Caller:
		x.caller(e, depth)
		return e
	}
	for i := range operands(e.Op) {
		*[]**loc.Expr{&e.A, &e.B, &e.C}[i] = x.expr(depth + 1)
	}
	return e
}
