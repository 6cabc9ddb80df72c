// Package viewless asks an image without its location views, and compares the answers with what the views say.
//
//	err := viewless.Strip("vmlinux", "vmlinux.viewless")
//	got, err := viewless.Compare(ctx, with, without)
//
// GCC writes views for some machines only: not where a linker relaxes code, as on riscv64. There nobody knows what was passed. So an image that has views is read as if it had none: what is
// believed then has to be what the views say.
package viewless

import (
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
)

// nothing is an attribute that means nothing: DW_AT_hi_user (DWARF 5, figure 7.5). It has as many bytes as those it replaces.
const nothing = 0x3fff

// Strip copies an ELF file of DWARF 5. It gives the attributes that say which views locations and bodies have another name, and leaves out what locations hold for views alone: an
// entry of a list without code, which GCC does not write without views. All else, and where it is, stays the same.
func Strip(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	f, err := elf.NewFile(out)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if err := change(f, out, ".debug_loclists", shorten); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if err := change(f, out, ".debug_abbrev", func(_ *elf.File, data []byte) error { return rename(data) }); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}

// change writes a section that a function has changed.
func change(f *elf.File, out io.WriterAt, section string, by func(f *elf.File, data []byte) error) error {
	s := f.Section(section)
	if s == nil || s.Flags&elf.SHF_COMPRESSED != 0 {
		return fmt.Errorf("no %s, or a compressed one", section)
	}
	data, err := s.Data()
	if err != nil {
		return err
	}
	if err := by(f, data); err != nil {
		return fmt.Errorf("%s%w", section, err)
	}
	_, err = out.WriteAt(data, int64(s.Offset))
	return err
}

// shorten removes the entries without code from the location lists of all variables.
func shorten(f *elf.File, data []byte) error {
	d, err := f.DWARF()
	if err != nil {
		return err
	}
	done := make(map[int64]bool)
	for r := d.Reader(); ; {
		e, err := r.Next()
		if e == nil || err != nil {
			return err
		}
		at, is := e.Val(dwarf.AttrLocation).(int64)
		if !is || e.AttrField(dwarf.AttrLocation).Class != dwarf.ClassLocListPtr || done[at] {
			continue
		}
		done[at] = true
		if err := shortenList(data, int(at)); err != nil {
			return err
		}
	}
}

// shortenList removes the entries without code from a list (DWARF 5, section 7.7.3), whose end comes closer.
func shortenList(data []byte, at int) error {
	r := bin.Reader{D: data, P: at}
	for to := at; ; {
		from, empty := r.P, false
		kind := r.U8()
		switch kind {
		case 0: // DW_LLE_end_of_list
		case 4: // DW_LLE_offset_pair
			lo, hi := r.ULEB(), r.ULEB()
			empty = lo == hi
		case 5: // DW_LLE_default_location
		case 6: // DW_LLE_base_address
			r.Skip(8)
		case 7: // DW_LLE_start_end
			lo, hi := r.U64(), r.U64()
			empty = lo == hi
		case 8: // DW_LLE_start_length
			r.Skip(8)
			empty = r.ULEB() == 0
		default:
			return fmt.Errorf("+%#x: entries of kind %d are not read here", from, kind)
		}
		if kind != 0 && kind != 6 {
			r.Skip(r.ULEB())
		}
		if r.Bad {
			return fmt.Errorf("+%#x: the list does not end", at)
		}
		if !empty {
			to += copy(data[to:], data[from:r.P])
		}
		if kind == 0 {
			return nil
		}
	}
}

// rename gives the attributes in the tables of abbreviations another name.
func rename(data []byte) error {
	r := bin.Reader{D: data}
	for r.P < len(data) {
		if r.ULEB() == 0 { // the end of a table
			continue
		}
		r.ULEB()
		r.U8()
		for {
			at := r.P
			attr, form := dw.Attr(r.ULEB()), dw.Form(r.ULEB())
			if form == dw.FormImplicitConst {
				r.SLEB()
			}
			if r.Bad {
				return fmt.Errorf("+%#x: it ends within a table", at)
			}
			if attr == 0 && form == 0 {
				break
			}
			if attr == dw.AttrGNULocviews || attr == dw.AttrGNUEntryView {
				data[at], data[at+1] = nothing&0x7f|0x80, nothing>>7
			}
		}
	}
	return nil
}
