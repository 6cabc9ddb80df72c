package btfinline_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/btfinline"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
)

// inlineWriter writes .BTF.inline from what DWARF says, in a simple way: a prototype, a function and a list of locations
// for each instance.
type inlineWriter struct {
	types, names []byte
	n            uint32
}

func (w *inlineWriter) name(s string) uint32 {
	at := len(w.names)
	w.names = append(append(w.names, s...), 0)
	return uint32(at)
}

func (w *inlineWriter) add(name, info, of uint32, rest ...uint32) uint32 {
	for _, v := range append([]uint32{name, info, of}, rest...) {
		w.types = binary.LittleEndian.AppendUint32(w.types, v)
	}
	w.n++
	return w.n
}

func (w *inlineWriter) section() []byte {
	out := []byte{0x9f, 0xeb, 1, 0}
	for _, v := range []int{24, 0, len(w.types), len(w.types), len(w.names)} {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return slices.Concat(out, w.types, w.names)
}

// TestAgreeInline compares a section that is made of what DWARF says, with one mistake.
func TestAgreeInline(t *testing.T) {
	program, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	sites, err := img.Sites(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := uint64(0)
	for _, s := range inside.File(img).Sections() {
		if s.Name == ".text" {
			text = s.Addr
		}
	}
	main := &inlineWriter{names: []byte{0}}
	main.add(main.name("int"), 1<<24, 4, 1<<24|32)
	w := &inlineWriter{names: []byte{0}, n: main.n}
	w.names = nil // offsets go on after those of the types that it builds on
	base := uint32(len(main.names))
	want := &btfinline.Agreement{Other: 1}
	var places []uint32
	for _, s := range sites {
		if !s.Inlined() {
			continue
		}
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		want.Both++
		var proto, at []uint32
		for _, v := range params {
			proto = append(proto, base+w.name(v.Name), 1)
			id := uint32(0)
			switch e := v.Loc.Expr; {
			case !v.Located():
				want.Neither++
			case v.Loc.Kind == loc.KindRegister:
				id = w.add(0, 20<<24|1, 8, 8, uint32(e.K))
			case v.Loc.Kind == loc.KindConstant && e.Op == ops.Const:
				id = w.add(0, 20<<24|2, 8, 2, uint32(e.K), uint32(e.K>>32))
			case v.Loc.Kind == loc.KindMemory && e.Op == ops.Add && e.A.Op == ops.Reg:
				id = w.add(0, 20<<24|2, 8, 8|0x10|0x20, uint32(e.A.K), uint32(e.B.K))
			default:
				want.ByDWARF++ // arithmetic, addresses, several registers
			}
			if id != 0 {
				want.Same++
			}
			at = append(at, id)
		}
		p := w.add(0, 13<<24|uint32(len(params)), 1, proto...)
		f := w.add(base+w.name(s.Function), 12<<24, p)
		places = append(places, f, w.add(0, 21<<24|uint32(len(at)), 0, at...), uint32(s.Addr-text))
	}
	w.add(base+w.name("inline.text"), 22<<24|uint32(len(places)/3), 0, places...)
	// The first location has another number in it: of a register, or a constant.
	for i := 0; i+16 <= len(w.types); i += 4 {
		if info := binary.LittleEndian.Uint32(w.types[i:]); info>>24 == 20 && info&0xffff > 0 {
			w.types[i+12] ^= 1
			break
		}
	}
	want.Same--
	dir := t.TempDir()
	both := filepath.Join(dir, "both")
	for name, d := range map[string][]byte{"btf": main.section(), "inline": w.section()} {
		if err := os.WriteFile(filepath.Join(dir, name), d, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// .BTF is read where it is loaded.
	out, err := exec.Command(testenv.Tool(t, "objcopy"), "--add-section", ".BTF="+filepath.Join(dir, "btf"), "--set-section-flags", ".BTF=alloc,readonly", "--change-section-address", ".BTF=0x600000",
		"--add-section", ".BTF.inline="+filepath.Join(dir, "inline"), program, both).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	btf, err := dwarfloc.OpenBTF(both, arch.ByName("amd64"))
	if err != nil {
		t.Fatal(err)
	}
	defer btf.Close()
	got, err := btfinline.AgreeInline(t.Context(), btf, img)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Different) != 1 {
		t.Errorf("differences in words: %q", got.Different)
	}
	got.Different = nil
	if d := cmp.Diff(want, got); d != "" || want.Same < 5 {
		t.Error(d)
	}
}
