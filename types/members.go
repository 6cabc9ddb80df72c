package types

// Member is one member of a structure or union.
type Member struct {
	Name      string // "" for an anonymous structure or union, and for a base class
	Type      *Type
	BitOffset uint64 // bits from the structure's start, in memory order
	BitSize   uint64 // bits of a bit-field, or 0
}

// maxMembers bounds the members of one type.
const maxMembers = 1 << 16

// Members returns the members of a structure, union or class, in the order of their
// declarations. Other types have none.
func (t *Type) Members() (out []Member, err error) {
	if !t.IsRecord() || t.src == nil {
		return nil, nil
	}
	err = t.guard(func() error {
		out, err = t.src.members(t)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Find finds a member by name, also in anonymous structures and unions.
func (t *Type) Find(name string) (m Member, ok bool, err error) { return t.find(name, 0, new(int)) }

// find is Find at a recursion depth. tries counts the types searched, because they can form a cycle in a damaged file.
func (t *Type) find(name string, depth int, tries *int) (m Member, ok bool, err error) {
	if *tries++; depth > maxDepth || *tries > maxMembers {
		return m, false, nil
	}
	members, err := t.Members()
	if err != nil {
		return m, false, err
	}
	for _, m := range members {
		if m.Name == name && name != "" {
			return m, true, nil
		}
	}
	for _, a := range members {
		if a.Name != "" {
			continue
		}
		in, err := a.Type.completed(0)
		if err != nil {
			return m, false, err
		}
		if m, ok, err = in.find(name, depth+1, tries); ok || err != nil {
			m.BitOffset += a.BitOffset
			return m, ok, err
		}
	}
	return m, false, nil
}

// MemberNames returns the names that Find can find.
func (t *Type) MemberNames() ([]string, error) { return t.memberNames(nil, 0, new(int)) }

// memberNames appends the names that find can find. tries is as for find.
func (t *Type) memberNames(names []string, depth int, tries *int) ([]string, error) {
	if *tries++; depth > maxDepth || *tries > maxMembers || len(names) > maxMembers {
		return names, nil
	}
	members, err := t.Members()
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Name != "" {
			names = append(names, m.Name)
			continue
		}
		in, err := m.Type.completed(0)
		if err == nil {
			names, err = in.memberNames(names, depth+1, tries)
		}
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// Padding reports whether the bits [lo, hi) of an object belong to none of its
// members, so that their value means nothing.
func (t *Type) Padding(lo, hi uint64) (bool, error) { return t.padding(lo, hi, 0) }

func (t *Type) padding(lo, hi uint64, depth int) (bool, error) {
	t, err := t.Complete()
	if err != nil || depth > maxDepth || !t.IsRecord() {
		return false, err
	}
	members, err := t.Members()
	if err != nil {
		return false, err
	}
	for _, m := range members {
		size := m.BitSize
		if size == 0 {
			n, err := m.Type.ByteSize()
			if err != nil {
				return false, err
			}
			size = 8 * uint64(max(n, 0))
		}
		from, to := max(lo, m.BitOffset), min(hi, m.BitOffset+size)
		if from >= to {
			continue
		}
		if inside, err := m.Type.padding(from-m.BitOffset, to-m.BitOffset, depth+1); err != nil || !inside {
			return false, err
		}
	}
	return len(members) > 0, nil
}
