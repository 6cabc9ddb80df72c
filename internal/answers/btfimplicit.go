package answers

import (
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/btf"
)

// From a function that BPF programs may call, and to which the verifier adds arguments (KF_IMPLICIT_ARGS), BTF leaves these
// out since Linux 7.0: tools/bpf/resolve_btfids takes them off its prototype, and keeps that in a second function, whose
// name ends in _impl. Arguments left out are last.
const (
	kfuncTag   = "bpf_kfunc"
	implSuffix = "_impl"
)

// whole returns, for functions with arguments left out, those that have all of them. They are found once.
func (t *BTF) whole() (map[btf.ID]btf.ID, error) {
	t.implicit.Do(func() { t.wholes, t.wholesErr = t.readWhole() })
	return t.wholes, t.wholesErr
}

func (t *BTF) readWhole() (map[btf.ID]btf.ID, error) {
	tagged, err := t.own.Tagged(kfuncTag)
	if err != nil || len(tagged) == 0 {
		return nil, err
	}
	kfuncs := make(map[string]btf.Type) // by the name of the other
	for _, id := range tagged {
		f, err := t.own.Type(id)
		if err != nil {
			return nil, err
		}
		name, err := f.Name()
		if err != nil {
			return nil, err
		}
		kfuncs[name+implSuffix] = f
	}
	out := make(map[btf.ID]btf.ID)
	var failed error
	err = t.own.Each(func(f *btf.Type) bool {
		if f.Kind != btf.KindFunc {
			return true
		}
		name, err := f.Name()
		if err == nil {
			if of, is := kfuncs[name]; is {
				var more bool
				if more, err = t.extends(f, &of); more {
					out[of.ID] = f.ID
				}
			}
		}
		failed = err
		return err == nil
	})
	if err == nil {
		err = failed
	}
	return out, err
}

// extends reports whether a function has the parameters and the result of another one, and then more parameters.
func (t *BTF) extends(f, of *btf.Type) (bool, error) {
	long, err := t.own.Type(f.Elem)
	if err != nil {
		return false, err
	}
	short, err := t.own.Type(of.Elem)
	if err != nil || long.Kind != btf.KindFuncProto || short.Kind != btf.KindFuncProto || long.Elem != short.Elem {
		return false, err
	}
	all, err := long.Params()
	if err != nil {
		return false, err
	}
	some, err := short.Params()
	return err == nil && len(all) > len(some) && slices.Equal(all[:len(some)], some), err
}
