package dwarftest

import (
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// Large are small files with large answers, by name: many parameters, one long name used many times
// (of functions, parameters, inlined instances or types), deep and wide inlining.
func Large() map[string][]byte {
	const longName = 500 << 10
	str := Debug(".debug_str", []byte("\x00"+strings.Repeat("x", longName)+"\x00"))
	long, short := At(dw.AttrName, dw.FormStrp, uint64(1)), func(s string) Attr { return At(dw.AttrName, dw.FormString, s) }
	at := func(n int) []Attr {
		return []Attr{At(dw.AttrLowpc, dw.FormAddr, uint64(TextAddr+n)), At(dw.AttrHighpc, dw.FormData4, uint64(1))}
	}
	base := func() *DIE {
		return &DIE{Tag: dw.TagBaseType, Attrs: []Attr{short("int"), At(dw.AttrByteSize, dw.FormData1, uint64(4)), At(dw.AttrEncoding, dw.FormData1, uint64(5))}}
	}
	param := func(name Attr, typ *DIE) *DIE {
		const reg5 = 0x55
		return &DIE{Tag: dw.TagFormalParameter, Attrs: []Attr{name, At(dw.AttrType, dw.FormRef4, typ), At(dw.AttrLocation, dw.FormExprloc, []byte{reg5})}}
	}
	f := func(kids ...*DIE) *DIE {
		return &DIE{Tag: dw.TagSubprogram, Attrs: append(at(0), short("f")), Kids: kids}
	}
	inline := func(name Attr) *DIE {
		return &DIE{Tag: dw.TagSubprogram, Attrs: []Attr{name, At(dw.AttrInline, dw.FormData1, uint64(1))}}
	}
	image := func(kids ...*DIE) []byte { return Image([]CU{{Version: 5, Root: Root(kids...)}}, str) }
	times := func(n int, one func(i int) *DIE) (out []*DIE) {
		for i := range n {
			out = append(out, one(i))
		}
		return out
	}
	typ, g, h := base(), inline(long), inline(short("h"))
	named := &DIE{Tag: dw.TagStructType, Attrs: []Attr{long, At(dw.AttrByteSize, dw.FormData1, uint64(4))}}
	copyOf := func(of *DIE, i int) *DIE {
		return &DIE{Tag: dw.TagInlinedSubroutine, Attrs: append(at(i%8), At(dw.AttrAbstractOrigin, dw.FormRef4, of))}
	}
	deep := f()
	inner := deep
	for range 500 {
		next := copyOf(h, 1)
		inner.Kids = append(inner.Kids, next)
		inner = next
	}
	inner.Kids = times(2000, func(i int) *DIE { return copyOf(h, i) })
	return map[string][]byte{
		"parameters":      image(typ, f(times(8000, func(i int) *DIE { return param(short("p"+strconv.Itoa(i)), typ) })...)),
		"function names":  image(times(400, func(i int) *DIE { return &DIE{Tag: dw.TagSubprogram, Attrs: append(at(i%8), long)} })...),
		"parameter names": image(typ, f(times(400, func(int) *DIE { return param(long, typ) })...)),
		"inlined names":   image(g, f(times(400, func(i int) *DIE { return copyOf(g, i) })...)),
		"type names":      image(named, f(times(400, func(i int) *DIE { return param(short("p"+strconv.Itoa(i)), named) })...)),
		"inlining":        image(h, deep),
	}
}
