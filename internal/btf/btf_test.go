package btf_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	peer "github.com/cilium/ebpf/btf"

	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

func section(t testing.TB, path string) []byte {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.Section(".BTF").Data()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPeer compares all types of a kernel with what github.com/cilium/ebpf/btf reads.
func TestPeer(t *testing.T) {
	d := section(t, testenv.Vmlinux(t))
	own, err := btf.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := peer.LoadSpecFromReader(bytes.NewReader(d))
	if err != nil {
		t.Fatal(err)
	}
	for id := 1; id < own.Len(); id++ {
		s, err := own.Type(btf.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		name, err := s.Name()
		if err != nil {
			t.Fatal(err)
		}
		p, err := spec.TypeByID(peer.TypeID(id))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := describe(t, &s, name), describePeer(t, spec, p); got != want {
			t.Fatalf("type %d: %s, the peer has %s", id, got, want)
		}
	}
}

func describe(t *testing.T, s *btf.Type, name string) string {
	switch s.Kind {
	case btf.KindInt:
		signed, char, boolean, _, _ := s.Int()
		return fmt.Sprint("int ", name, s.Size, signed, char, boolean)
	case btf.KindStruct, btf.KindUnion:
		text := fmt.Sprint("record ", name, s.Size)
		for i := range s.Members() {
			m := s.Member(i)
			n, err := m.Name()
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprint(" ", n, m.Type, m.BitOffset, m.BitSize)
		}
		return text
	case btf.KindEnum, btf.KindEnum64:
		text := fmt.Sprint("enum ", name, s.Size, s.Flag)
		s.Enumerators(func(_ func(string) bool, name func() (string, error), v int64) bool {
			n, err := name()
			if err != nil {
				t.Fatal(err)
			}
			if !s.Flag && s.Size == 4 {
				v = int64(uint32(v))
			}
			text += fmt.Sprint(" ", n, v)
			return true
		})
		return text
	case btf.KindArray:
		el, n := s.Array()
		return fmt.Sprint("array ", el, n)
	case btf.KindFuncProto:
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint("proto ", s.Elem, params)
	case btf.KindFloat:
		return fmt.Sprint("float ", name, s.Size)
	case btf.KindPointer, btf.KindTypedef, btf.KindConst, btf.KindVolatile, btf.KindRestrict, btf.KindFunc:
		return fmt.Sprint("of ", name, s.Elem)
	}
	return ""
}

func describePeer(t *testing.T, spec *peer.Spec, p peer.Type) string {
	id := func(x peer.Type) btf.ID {
		if _, void := x.(*peer.Void); void || x == nil {
			return 0
		}
		n, err := spec.TypeID(x)
		if err != nil {
			t.Fatal(err)
		}
		return btf.ID(n)
	}
	members := func(text string, all []peer.Member) string {
		for _, m := range all {
			text += fmt.Sprint(" ", m.Name, id(m.Type), uint32(m.Offset), uint8(m.BitfieldSize))
		}
		return text
	}
	switch p := p.(type) {
	case *peer.Int:
		return fmt.Sprint("int ", p.Name, p.Size, p.Encoding&peer.Signed != 0, p.Encoding&peer.Char != 0, p.Encoding&peer.Bool != 0)
	case *peer.Struct:
		return members(fmt.Sprint("record ", p.Name, p.Size), p.Members)
	case *peer.Union:
		return members(fmt.Sprint("record ", p.Name, p.Size), p.Members)
	case *peer.Enum:
		text := fmt.Sprint("enum ", p.Name, p.Size, p.Signed)
		for _, v := range p.Values {
			n := int64(v.Value)
			if p.Signed && p.Size == 4 {
				n = int64(int32(v.Value))
			}
			text += fmt.Sprint(" ", v.Name, n)
		}
		return text
	case *peer.Array:
		return fmt.Sprint("array ", id(p.Type), p.Nelems)
	case *peer.FuncProto:
		params := make([]btf.Param, len(p.Params))
		for i, x := range p.Params {
			params[i] = btf.Param{Name: x.Name, Type: id(x.Type)}
		}
		return fmt.Sprint("proto ", id(p.Return), params)
	case *peer.Float:
		return fmt.Sprint("float ", p.Name, p.Size)
	case *peer.Pointer:
		return fmt.Sprint("of ", "", id(p.Target))
	case *peer.Typedef:
		return fmt.Sprint("of ", p.Name, id(p.Type))
	case *peer.Const:
		return fmt.Sprint("of ", "", id(p.Type))
	case *peer.Volatile:
		return fmt.Sprint("of ", "", id(p.Type))
	case *peer.Restrict:
		return fmt.Sprint("of ", "", id(p.Type))
	case *peer.Func:
		return fmt.Sprint("of ", p.Name, id(p.Type))
	}
	return ""
}

// FuzzTypes: whatever the bytes are, all that can be asked has an answer or an error.
func FuzzTypes(f *testing.F) {
	f.Add([]byte("\x9f\xeb\x01\x00\x18\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x10\x00\x00\x00\x05\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01\x04\x00\x00\x00\x20\x00\x00\x01\x00int\x00"))
	f.Fuzz(func(t *testing.T, d []byte) {
		b, err := btf.New(d, nil)
		if err != nil {
			return
		}
		if err := b.Each(func(s *btf.Type) bool {
			_, _ = s.Name()
			_ = s.Named("int")
			switch s.Kind {
			case btf.KindInt:
				s.Int()
			case btf.KindStruct, btf.KindUnion:
				for i := range s.Members() {
					m := s.Member(i)
					_, _ = m.Name()
				}
			case btf.KindEnum, btf.KindEnum64:
				s.Enumerators(func(is func(string) bool, name func() (string, error), _ int64) bool {
					_, _ = name()
					return is("x")
				})
			case btf.KindArray:
				s.Array()
			case btf.KindFuncProto:
				_, _ = s.Params()
			case btf.KindLocParam:
				s.Location()
			case btf.KindLocProto:
				s.ParamIDs()
			case btf.KindLocSec:
				s.Places(func(btf.Place) bool { return true })
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		_, _ = b.Tags(1)
		compareIndexed(t, d)
	})
}

// TestIndexLies: whatever an index says, there is an answer or an error.
func TestIndexLies(t *testing.T) {
	d := section(t, testenv.Vmlinux(t))
	index, err := btf.Index(d)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		x := slices.Clone(index)
		for range 1 + r.IntN(3) {
			x[12+r.IntN(len(x)-12)] = byte(r.Uint32())
		}
		b, err := btf.Indexed(d, nil, x, nil)
		if err != nil {
			continue
		}
		for range 1000 {
			if s, err := b.Type(btf.ID(r.IntN(b.Len()))); err == nil {
				_, _ = s.Name()
			}
		}
		_, _ = b.Tags(1)
	}
}

// said is all that types say, in words.
func said(b *btf.Types) (string, error) {
	var out strings.Builder
	var failed error
	say := func(name string, err error) {
		out.WriteString(" " + name)
		failed = errors.Join(failed, err)
	}
	err := b.Each(func(s *btf.Type) bool {
		fmt.Fprint(&out, "\n", s.ID, s.Kind, s.Flag, s.Size, s.Elem)
		say(s.Name())
		switch s.Kind {
		case btf.KindStruct, btf.KindUnion:
			for i := range s.Members() {
				m := s.Member(i)
				fmt.Fprint(&out, m.Type, m.BitOffset, m.BitSize)
				say(m.Name())
			}
		case btf.KindEnum, btf.KindEnum64:
			s.Enumerators(func(_ func(string) bool, name func() (string, error), v int64) bool {
				fmt.Fprint(&out, v)
				say(name())
				return true
			})
		case btf.KindArray:
			fmt.Fprint(&out, fmt.Sprint(s.Array()))
		}
		alone, err := b.Type(s.ID)
		if err != nil || alone.Kind != s.Kind || alone.Size != s.Size || alone.Elem != s.Elem {
			failed = errors.Join(failed, err, fmt.Errorf("type %d alone is another", s.ID))
		}
		return true
	})
	tags, err2 := b.Tags(1)
	fmt.Fprint(&out, b.Len(), b.Signs(), tags)
	return out.String(), errors.Join(err, failed, err2)
}

// compareIndexed compares what a section says with an index and without.
func compareIndexed(t *testing.T, d []byte) {
	t.Helper()
	index, err := btf.Index(d)
	if err != nil {
		t.Fatal(err)
	}
	b, err := btf.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := said(b)
	seen := make([]bool, len(d))
	for _, check := range []func(from, to int) error{nil, func(from, to int) error {
		for i := from; i < to; i++ {
			seen[i] = true
		}
		return nil
	}} {
		b, err2 := btf.Indexed(d, nil, index, check)
		if err2 != nil {
			t.Fatal(err2)
		}
		got, err2 := said(b)
		if (err == nil) != (err2 == nil) || err == nil && got != want {
			t.Errorf("another answer: %v, %v", err, err2)
		}
	}
	for _, bad := range [][]byte{nil, index[:len(index)-1], append(slices.Clip(index), 0)} {
		if _, err := btf.Indexed(d, nil, bad, nil); err == nil {
			t.Errorf("an index of %d bytes is taken", len(bad))
		}
	}
}

// TestIndexed: an index changes no answer.
func TestIndexed(t *testing.T) {
	d := section(t, testenv.Vmlinux(t))
	compareIndexed(t, d)
}
