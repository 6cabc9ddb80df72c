package packfile

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

// Flags of a function's record.
const (
	funQualified = 1 << iota
	funFile
	funSig     // its parameters are a list that others have too
	funVariant // of another function
	funPosting // its blocks are listed
	funEdges
)

// Flags of a site. One byte is enough for most.
const (
	siteUp      = 3 // two bits: the site is inlined into the one before, into what that is in, one further up, or more
	siteNext    = 1 << 2
	siteHere    = 1 << 3 // at the address of the one before
	siteOut     = 1 << 4 // its ways out are those of the body around it
	siteSame    = 1 << 5 // its values are those of the one before
	siteFrame   = 1 << 6 // as is $frame
	siteMore    = 1 << 7 // flags follow
	rootMore    = 1
	rootFrame   = 1 << 1 // $frame is the most frequent one
	moreWays    = 1      // they are written out
	moreGhost   = 1 << 1 // it is no site
	moreFile    = 1 << 2
	moreSymbol  = 1 << 3
	moreResult  = 1 << 4
	moreRefused = 1 << 5
	moreDepth   = 1 << 6
	moreMisc    = 1 << 7
)

// Bits of moreMisc.
const (
	miscPrologue = 1 << iota
	miscLocal
	miscView // of a root
)

// Flags of ways that are written out.
const (
	waysKnown = 1 << iota
	waysUnknown
	waysWithin
	waysNoReturn
	waysIn // they are not just the site
	waysAgain
	waysFolded
)

const (
	wayAgain = 1 << iota
	wayProbe
	wayBefore
	waySymbol
	wayValues
	wayRefused
)

// Codes of a way out in three bits: its view, and whether it is passed otherwise too.
const (
	outZero = iota
	outZeroAgain
	outOne
	outLast
	outTwo
	outThree
	outOther
	outProbe // and the place of the probe
)

const lastView = 1<<32 - 1

// finish makes the section. types is the contents of .BTF.
func (e *encoder) finish(types []byte) ([]byte, error) {
	e.rankTexts()
	var beside sync.WaitGroup
	beside.Go(e.rankParams)
	err := e.rankAll()
	if beside.Wait(); err != nil {
		return nil, err
	}
	var parts [numParts][]byte
	beside.Go(func() { parts[partBlocks] = e.sites() })
	err = e.tables(&parts, types)
	if beside.Wait(); err != nil {
		return nil, err
	}
	return e.assemble(parts), nil
}

// tables makes all parts but the blocks.
func (e *encoder) tables(parts *[numParts][]byte, types []byte) (err error) {
	parts[partNames], parts[partTexts] = textTable(e.names, true), textTable(e.texts, false)
	width := bits.Len(uint(len(e.names)))
	var ids bitWriter
	for _, f := range e.funs {
		ids.add(uint64(e.nameIDs[f.Name]), width)
	}
	parts[partFunNames] = ids.end()
	parts[partFunctions] = e.functions()
	u32 := func(n int, v func(int) int) (b []byte) {
		for i := range n {
			b = binary.LittleEndian.AppendUint32(b, uint32(v(i)))
		}
		return b
	}
	parts[partTypes] = u32(len(e.typ), func(i int) int { return int(e.typ[i]) })
	parts[partFrames] = u32(len(e.frames), func(i int) int { return e.frames[i] })
	parts[partResults] = u32(len(e.results), func(i int) int { return e.results[i] })
	typeRank := make(map[TypeID]int)
	for i, t := range e.typ {
		typeRank[t] = i
	}
	var r records
	for _, p := range e.params {
		r.begin(0)
		r.body = binary.AppendUvarint(r.body, e.text(p.Name))
		r.body = binary.AppendUvarint(r.body, uint64(typeRank[p.Type]))
	}
	parts[partParams] = r.end(false)
	r = records{}
	for _, l := range e.sigs {
		r.begin(0)
		r.body = appendList(r.body, l)
	}
	parts[partSigs] = r.end(false)
	r = records{}
	for _, v := range e.values {
		r.begin(0)
		if r.body, err = e.appendValue(r.body, v); err != nil {
			return err
		}
	}
	parts[partValues] = r.end(false)
	r = records{}
	for _, l := range e.tuples {
		r.begin(0)
		r.body = appendList(r.body, l)
	}
	parts[partTuples] = r.end(false)
	if parts[partBTFIndex], err = btf.Index(types); err != nil {
		return err
	}
	for piece := range slices.Chunk(types, sealed.PageSize) {
		parts[partBTFSums] = binary.LittleEndian.AppendUint32(parts[partBTFSums], sealed.Sum(piece))
	}
	return nil
}

func appendList(b []byte, l []int) []byte {
	b = binary.AppendUvarint(b, uint64(len(l)))
	for _, v := range l {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

// rankParams sorts parameters, their types and lists of them by how many functions have them.
func (e *encoder) rankParams() {
	params, types := make(map[Param]int), make(map[TypeID]int)
	for _, f := range e.funs {
		for _, p := range f.Params {
			params[p]++
		}
	}
	for p := range params {
		e.params = append(e.params, p)
		types[p.Type]++
	}
	radix.By(e.params, func(a, b *Param) int {
		if params[*a] != params[*b] {
			return params[*b] - params[*a]
		}
		if a.Name != b.Name {
			return int(e.text(a.Name)) - int(e.text(b.Name))
		}
		return int(a.Type) - int(b.Type)
	})
	for t := range types {
		e.typ = append(e.typ, t)
	}
	slices.SortFunc(e.typ, func(a, b TypeID) int {
		if types[a] != types[b] {
			return types[b] - types[a]
		}
		return int(a) - int(b)
	})
	for i, p := range e.params {
		params[p] = i
	}
	sigs := make(map[string]int)
	lists := make(map[string][]int)
	for _, f := range e.funs {
		f.sig = nil
		for _, p := range f.Params {
			f.sig = append(f.sig, params[p])
		}
		f.sigKey = string(appendList(nil, f.sig))
		sigs[f.sigKey]++
		lists[f.sigKey] = f.sig
	}
	var keys []string
	for k, n := range sigs {
		if n > 1 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		if sigs[a] != sigs[b] {
			return sigs[b] - sigs[a]
		}
		return slices.Compare(lists[a], lists[b])
	})
	e.sigRank = make(map[string]int)
	for i, k := range keys {
		e.sigRank[k] = i
		e.sigs = append(e.sigs, lists[k])
	}
}

// functions makes the records of functions.
func (e *encoder) functions() []byte {
	var r records
	named := e.roots // functions that have been named by those before
	file, line := "", 0
	for i, f := range e.funs {
		if i%groupSize == 0 {
			file, line = "", 0
		}
		r.begin(named)
		b := r.body
		flags := uint64(0)
		set := func(on bool, bit uint64) {
			if on {
				flags |= bit
			}
		}
		sig, shared := e.sigRank[f.sigKey]
		set(f.Qualified != f.Name, funQualified)
		set(f.DeclFile != file, funFile)
		set(shared, funSig)
		set(f.base != nil, funVariant)
		set(!f.derived, funPosting)
		set(len(f.edges) > 0, funEdges)
		b = append(b, byte(flags))
		if flags&funQualified != 0 {
			b = binary.AppendUvarint(b, e.text(f.Qualified))
		}
		if flags&funFile != 0 {
			b = binary.AppendUvarint(b, e.text(f.DeclFile))
			file = f.DeclFile
		}
		b = binary.AppendVarint(b, int64(f.DeclLine-line))
		line = f.DeclLine
		if shared {
			b = binary.AppendUvarint(b, uint64(sig))
		} else {
			b = appendList(b, f.sig)
		}
		b = binary.AppendUvarint(b, uint64(f.result))
		if f.base != nil {
			b = binary.AppendUvarint(b, uint64(f.base.id))
		}
		if !f.derived {
			b = binary.AppendUvarint(b, uint64(len(f.blocks)))
			prev := int32(0)
			for _, x := range f.blocks {
				b = binary.AppendUvarint(b, uint64(x-prev))
				prev = x
			}
		}
		if len(f.edges) > 0 {
			b = binary.AppendUvarint(b, uint64(len(f.edges)))
			at := f.DeclLine
			for _, x := range f.edges {
				isNew := uint64(0)
				if x.to.id == named {
					isNew = 1
					named++
				}
				b = binary.AppendUvarint(b, zigzag(int(x.line)-at)<<1|isNew)
				at = int(x.line)
				if isNew == 1 {
					continue
				}
				if x.to.id >= e.roots {
					b = binary.AppendUvarint(b, uint64(x.to.id-e.roots)<<1|1)
				} else {
					b = binary.AppendUvarint(b, zigzag(x.to.id-i)<<1)
				}
			}
		}
		r.body = b
	}
	return r.end(true)
}

func zigzag(v int) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }
