package packfile

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

// ErrDamaged is wrapped by errors about a pack that is damaged.
var ErrDamaged = errors.New("the pack is damaged")

// File is an open pack. Several goroutines may use it.
type File struct {
	path  string
	own   *sealed.File
	facts Facts
	parts [numParts]sealed.Part
	funs  int
	roots int
	width int // bits of a name's number
	cache atomic.Pointer[functions]
	kept  keptBlocks

	qualified struct { // see QualifiedNames
		sync.Mutex
		names []string
	}

	mu   sync.Mutex
	idle []*session

	// Guard, if it is not nil, calls a function that reads the section, in a goroutine of its own: all that is about many blocks is then
	// done on all processors.
	Guard func(func() error) error
}

// Part is a part of the section.
type Part struct {
	Name   string
	Bytes  int // when it is not compressed
	Stored int
}

// Open opens the contents of a section. Nothing is read but its header; data must not change. Errors give path.
func Open(data []byte, path string) (*File, error) {
	own, err := Kind.Open(data, path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, own: own}
	le, head := binary.LittleEndian, own.Header()
	flags := le.Uint32(head[atFlags:])
	count := func(i int) int { return int(le.Uint32(head[atCounts+4*i:])) }
	f.facts = Facts{
		Version: Version, Sites: count(0), Inlined: count(1), Values: count(2), Blocks: count(3), Kernel: flags&flagKernel != 0, Checked: flags&flagChecked != 0,
		Types: Types{Base: flags&flagBase != 0, BaseTypes: le.Uint32(head[atBase:]), BaseStrings: le.Uint32(head[atBase+4:])},
	}
	copy(f.facts.Types.BaseSum[:], head[atBase+8:])
	f.funs, f.roots = count(4), count(5)
	for i := range f.parts {
		f.parts[i] = own.Part(i)
	}
	f.width = bits.Len(uint(f.parts[partNames].N))
	switch {
	case f.parts[partFunNames].N != f.funs || f.parts[partFunctions].N != f.funs || f.parts[partBlocks].N != f.facts.Blocks || f.roots > f.funs:
		return nil, own.Errorf(atCounts, "the counts contradict each other")
	case f.parts[partFunNames].To-f.parts[partFunNames].From != (f.funs*f.width+7)/8:
		return nil, own.Errorf(f.parts[partFunNames].From, "there is not a name for each function")
	}
	for _, p := range []int{partTypes, partFrames, partResults, partBTFSums} {
		if x := f.parts[p]; x.To-x.From != 4*x.N {
			return nil, own.Errorf(x.From, "%s have another size than their number says", Kind.Parts[p])
		}
	}
	for p := range numParts {
		if size := offsetSize(p); size != 0 && groups(f.parts[p].N)*size > f.parts[p].To-f.parts[p].From {
			return nil, own.Errorf(f.parts[p].From, "%s have no room for their offsets", Kind.Parts[p])
		}
	}
	return f, nil
}

// offsetSize is how many bytes there are for each group of records, or 0 if a part has no groups.
func offsetSize(part int) int {
	switch part {
	case partFunctions, partBlocks, partNames:
		return 8
	case partTexts, partParams, partSigs, partValues, partTuples:
		return 4
	}
	return 0
}

func groups(n int) int { return (n + groupSize - 1) / groupSize }

// Facts returns what the pack says about itself.
func (f *File) Facts() Facts { return f.facts }

// Path returns the path that errors give.
func (f *File) Path() string { return f.path }

// Parts returns the parts of the section, the header first.
func (f *File) Parts() []Part {
	head := f.own.Stored(-1)
	out := []Part{{Name: "header and pages", Bytes: head, Stored: head}}
	for i, p := range f.parts {
		out = append(out, Part{Kind.Parts[i], p.To - p.From, f.own.Stored(i)})
	}
	return out
}

// u32 returns an entry of a part of fixed size.
func (f *File) u32(part, i int) (int, error) {
	p := &f.parts[part]
	if i < 0 || i >= p.N {
		return 0, f.own.Errorf(p.From, "number %d of %d %s is asked for", i, p.N, Kind.Parts[part])
	}
	at := p.From + 4*i
	d, err := f.own.Bytes(at, at+4)
	if err != nil {
		return 0, err
	}
	return int(binary.LittleEndian.Uint32(d)), nil
}

// offset returns where a group of records begins in its part's body, and the number that is kept with it.
func (f *File) offset(part, group int) (off, extra int, err error) {
	size := offsetSize(part)
	at := f.parts[part].From + size*group
	d, err := f.own.Bytes(at, at+size)
	if err != nil {
		return 0, 0, err
	}
	off = int(binary.LittleEndian.Uint32(d))
	if size == 8 {
		extra = int(binary.LittleEndian.Uint32(d[4:]))
	}
	return off, extra, nil
}

// group returns a reader of a group of records, how many they are, and the number that is kept with it. Errors about it are
// made with failed.
func (f *File) group(part, g int) (r groupReader, extra int, err error) {
	p := &f.parts[part]
	all := groups(p.N)
	if g < 0 || g >= all {
		return r, 0, f.own.Errorf(p.From, "group %d of %d of %s is asked for", g, all, Kind.Parts[part])
	}
	body := p.From + offsetSize(part)*all
	from, extra, err := f.offset(part, g)
	if err != nil {
		return r, 0, err
	}
	to := p.To - body
	if g+1 < all {
		if to, _, err = f.offset(part, g+1); err != nil {
			return r, 0, err
		}
	}
	if from > to || to > p.To-body {
		return r, 0, f.own.Errorf(p.From+offsetSize(part)*g, "%s are outside their part", Kind.Parts[part])
	}
	d, err := f.own.Bytes(body+from, body+to)
	if err != nil {
		return r, 0, err
	}
	return groupReader{Reader: bin.Reader{D: d}, f: f, at: body + from, n: min(groupSize, p.N-g*groupSize)}, extra, nil
}

// groupReader reads a group of records.
type groupReader struct {
	bin.Reader
	f  *File
	at int // where it begins in the section
	n  int // records
}

// failed returns an error about where the reader is.
func (r *groupReader) failed(what string) error {
	return r.f.own.Errorf(r.at+r.P, "%s", what)
}

// check returns an error if something could not be read.
func (r *groupReader) check() error {
	if r.Bad {
		return r.failed("a record is cut short")
	}
	return nil
}

func (r *groupReader) int() int64 {
	u := r.ULEB()
	return int64(u>>1) ^ -int64(u&1)
}

// count reads how many things follow, each of at least size bytes.
func (r *groupReader) count(size int) int {
	n := r.ULEB()
	if n > uint64((len(r.D)-r.P)/size) {
		r.Fail()
		return 0
	}
	return int(n)
}

// index reads a number that is less than n.
func (r *groupReader) index(n int) int {
	v := r.ULEB()
	if v >= uint64(n) {
		r.Fail()
		return 0
	}
	return int(v)
}

// typeID reads a type's number.
func (r *groupReader) typeID() TypeID {
	v := r.ULEB()
	if v > math.MaxUint32 {
		r.Fail()
		return 0
	}
	return TypeID(v)
}

// Check checks all of a section against its checksum, and that all of it can be read. Types have lower numbers than types says.
func (f *File) Check(types TypeID) error {
	if err := f.own.Check(); err != nil {
		return err
	}
	refs, err := f.List(nil)
	if err != nil {
		return err
	}
	if len(refs) != f.facts.Sites {
		return f.own.Errorf(atCounts, "it says that it has %d sites, and has %d", f.facts.Sites, len(refs))
	}
	return f.Each(refs, func(i int, s *Site) error {
		return s.eachType(func(t TypeID) error {
			if t >= types {
				return f.own.Errorf(f.parts[partTypes].From, "site %d has type %d, and there are %d", i, t, types)
			}
			return nil
		})
	})
}

// eachType calls f with the types of the parameters and of their values.
func (s *Site) eachType(f func(TypeID) error) error {
	for _, p := range s.Function.Params {
		if err := f(p.Type); err != nil {
			return err
		}
	}
	err := s.Values.eachType(f)
	for i := range s.Ways.In {
		if v := s.Ways.In[i].Values; v != nil && err == nil {
			err = v.eachType(f)
		}
	}
	return err
}

func (v *Values) eachType(f func(TypeID) error) error {
	for i := range v.Params {
		x := &v.Params[i]
		if err := f(x.Type); err != nil {
			return err
		}
		for to := x.Pointee; to != nil; to = to.Pointee {
			if err := f(to.Type); err != nil {
				return err
			}
		}
	}
	return f(v.Result.Type)
}

const btfSection = ".BTF"
