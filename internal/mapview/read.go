package mapview

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Map is a map of an object, or its variables in a section.
type Map struct {
	Name string
	Type ebpf.MapType
	// Variables is set if the entries are variables: their keys are names.
	Variables bool
	// Slots is set if the entries are the buckets of a histogram: they are in the order of their keys.
	Slots bool
	// Entries are what the map has, the largest first: by the first number in the value. Of arrays,
	// those that are 0 are left out.
	Entries []Entry
	// Unread is why there are no entries: the map is of a type that cannot be listed.
	Unread string
}

// Entry is one entry of a map.
type Entry struct{ Key, Value *Value }

// Read returns what is in the maps of a collection, by name. spec is what they were loaded from; maps
// that it does not have, and constants, are left out.
func Read(spec *ebpf.CollectionSpec, loaded map[string]*ebpf.Map) ([]Map, error) {
	var out []Map
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		m := loaded[name]
		if m == nil || strings.HasPrefix(name, ".rodata") || strings.HasPrefix(name, ".kconfig") {
			continue
		}
		v, err := read(name, spec, m)
		if err != nil {
			return nil, fmt.Errorf("map %s: %w", name, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// isSection reports whether a map is a section with variables.
func isSection(name string) bool {
	return strings.HasPrefix(name, ".bss") || strings.HasPrefix(name, ".data") || strings.HasPrefix(name, ".rodata")
}

func read(name string, spec *ebpf.CollectionSpec, m *ebpf.Map) (Map, error) {
	s := spec.Maps[name]
	v := Map{Name: name, Type: s.Type}
	if isSection(name) {
		v.Variables = true
		return v, v.variables(spec, m)
	}
	isArray := false
	switch s.Type {
	case ebpf.Array, ebpf.PerCPUArray:
		isArray = true
	case ebpf.Hash, ebpf.LRUHash, ebpf.PerCPUHash, ebpf.LRUCPUHash, ebpf.LPMTrie:
	default:
		v.Unread = fmt.Sprintf("the entries of a map of the type %v cannot be listed", s.Type)
		return v, nil
	}
	perCPU := s.Type == ebpf.PerCPUArray || s.Type == ebpf.PerCPUHash || s.Type == ebpf.LRUCPUHash
	var key, one []byte
	var each [][]byte
	entries := m.Iterate()
	for {
		var next bool
		if perCPU {
			next = entries.Next(&key, &each)
		} else {
			next = entries.Next(&key, &one)
			each = [][]byte{one}
		}
		if !next {
			break
		}
		e := Entry{Key: decode(s.Key, key, 0)}
		for i, b := range each {
			x := decode(s.Value, b, 0)
			if i == 0 {
				e.Value = x
			} else {
				e.Value.add(x)
			}
		}
		if e.Value != nil && (!isArray || !e.Value.empty()) {
			v.Entries = append(v.Entries, e)
		}
	}
	// Programs that delete entries meanwhile can make it start again, until it gives up.
	if err := entries.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return v, err
	}
	v.Slots = isArray && isHistogram(name) && len(v.Entries) > 0 && v.Entries[0].Value.Fields == nil
	if v.Slots {
		radix.By(v.Entries, func(a, b *Entry) int { return cmp.Compare(a.Key.size(), b.Key.size()) })
	} else {
		radix.By(v.Entries, func(a, b *Entry) int { return cmp.Compare(b.Value.size(), a.Value.size()) })
	}
	return v, nil
}

// isHistogram reports whether the elements of an array are the buckets of a histogram, by what people
// call them.
func isHistogram(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "hist") || name == "slots" || name == "buckets" || name == "dist"
}

// Histogram returns the buckets of a histogram in a value, and the name of its member: an array of
// numbers that is called slots, buckets, dist, or something with hist. rest is the value without it.
func (v *Value) Histogram() (name string, buckets []*Value, rest *Value) {
	for i, f := range v.Fields {
		if len(f.Value.Elements) > 1 && f.Value.Elements[0].Scalar != nil && isHistogram(f.Name) {
			return f.Name, f.Value.Elements, &Value{Fields: slices.Delete(slices.Clone(v.Fields), i, i+1)}
		}
	}
	return "", nil, v
}

// variables reads the variables of a section. Those without a type, and those that the compiler made,
// are left out.
func (v *Map) variables(spec *ebpf.CollectionSpec, m *ebpf.Map) error {
	var all []byte
	if err := m.Lookup(uint32(0), &all); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Variables)) {
		x := spec.Variables[name]
		if x.SectionName != v.Name || x.Type == nil || strings.ContainsAny(name, ".") {
			continue
		}
		at, size := int(x.Offset), int(x.Size())
		if at+size > len(all) {
			return fmt.Errorf("the variable %s is beyond the section's %d bytes", name, len(all))
		}
		v.Entries = append(v.Entries, Entry{&Value{Scalar: name}, decode(typeOf(x.Type), bytes.Clone(all[at:at+size]), 0)})
	}
	return nil
}

func typeOf(v *btf.Var) btf.Type {
	if v == nil {
		return nil
	}
	return v.Type
}
