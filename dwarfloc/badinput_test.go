package dwarfloc

import (
	"bytes"
	"compress/zlib"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/loc"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	d, err := fixtures.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// everything asks an image all questions. Each answer must print; an error must
// start with the path and say no result. It returns the answers as one text.
func everything(t testing.TB, data []byte) (string, error) {
	t.Helper()
	img, err := FromBytes("test", data, nil)
	if err != nil {
		if img != nil {
			t.Fatalf("an image and the error %v", err)
		}
		return "", checkError(t, err)
	}
	ctx := context.Background()
	if err := img.r.Index.Scan(ctx); err != nil {
		return "", checkError(t, err)
	}
	var out strings.Builder
	names, err := img.FunctionNames(ctx)
	if err != nil {
		return "", checkError(t, err)
	}
	for _, n := range names {
		img.file.SymbolAt(img.file.Sections()[0].Addr, n)
	}
	sites, err := img.Sites(ctx, nil)
	if err != nil {
		if sites != nil {
			t.Fatalf("sites and the error %v", err)
		}
		return "", checkError(t, err)
	}
	fmt.Fprintf(&out, "%d functions, %d sites\n", len(names), len(sites))
	for i, s := range sites {
		params, err := s.Params()
		if err != nil {
			fmt.Fprintf(&out, "%s: %v\n", s, checkError(t, err))
			continue
		}
		for _, v := range params {
			fmt.Fprintf(&out, "%s: %s\n", s, variableLine(t, img, v))
			if i%32 == 0 {
				everyPart(t, img, s, v, &out)
			}
		}
		v, err := Resolve(s, &syntax.Expr{Kind: syntax.KindRetval})
		if err != nil {
			_ = checkError(t, err)
		} else {
			fmt.Fprintf(&out, "%s: %s\n", s, variableLine(t, img, v))
		}
	}
	if _, err := img.checkInstructions(sites); err != nil {
		_ = checkError(t, err)
	}
	for _, s := range sites {
		if s.Kind == SiteEntry {
			_ = img.guard(func() error { _, _ = s.goReturns(); return nil })
		}
		if _, _, err := s.Declared(); err != nil {
			_ = checkError(t, err)
		}
	}
	return out.String() + everyLine(t, img, sites), nil
}

// everyPart follows a variable to all parts of its object, and of what it points to:
// a few steps, not all that there are in a kernel.
func everyPart(t testing.TB, img *Image, s *Site, v *Variable, out *strings.Builder) {
	t.Helper()
	for _, first := range []syntax.StepKind{syntax.StepDot, syntax.StepArrow, syntax.StepIndex} {
		step := syntax.Step{Kind: first, Member: "?"}
		part, err := Follow(v, []syntax.Step{step})
		if err != nil {
			_ = checkError(t, err)
			continue
		}
		names := []string{"?"}
		if part.Wrong != nil {
			names = MembersOf(part)
		}
		for _, n := range names[:min(len(names), 4)] {
			step.Member = n
			for _, path := range [][]syntax.Step{{step}, {step, {Kind: syntax.StepIndex, Index: 1}}, {step, {Kind: syntax.StepIndex, IndexBy: &syntax.Expr{Name: v.Name}}}, {step, step}} {
				part, err := Follow(v, path)
				if err != nil {
					_ = checkError(t, err)
					continue
				}
				if (part.Reason.Code == reasons.None) != (part.Loc.Kind != loc.KindNone) {
					t.Fatalf("%s of %s: reason %v and a location that is %v", n, v.Name, part.Reason, part.Loc.Kind)
				}
				fmt.Fprintf(out, "\t%s: %s\n", n, variableLine(t, img, part))
			}
		}
	}
}

// everyLine asks an image for all lines, by function and by file, and for the
// instructions at some.
func everyLine(t testing.TB, img *Image, bodies []*Site) string {
	t.Helper()
	ctx := context.Background()
	var out strings.Builder
	say := func(what string, n int, err error) {
		if err != nil {
			n = 0
			_ = checkError(t, err)
		}
		fmt.Fprintf(&out, "%d %s, %v\n", n, what, err)
	}
	lines, err := img.LineSites(ctx, bodies, func(*Site, string, int) bool { return true })
	say("lines of functions", len(lines), err)
	for i, s := range lines {
		if s.Line == 0 && s.File == "" || s.Kind != SiteLine {
			t.Fatalf("%s is no line", s)
		}
		if i%64 != 0 {
			continue
		}
		if _, err := s.Params(); err != nil {
			_ = checkError(t, err)
		}
		at, err := img.SiteAt(ctx, s.Addr)
		if err != nil {
			_ = checkError(t, err)
			continue
		}
		fmt.Fprintf(&out, "%s\n", at)
	}
	lines, err = img.FileLineSites(ctx, anyFile{})
	say("lines of files", len(lines), err)
	files, err := img.FileLines(ctx, anyFile{})
	say("files with lines", len(files), err)
	names, err := img.SourceFiles(ctx)
	say("files", len(names), err)
	img.compilationDir("a.c")
	return out.String()
}

// variableLine prints a variable in one line and checks what holds for each.
func variableLine(t testing.TB, img *Image, v *Variable) string {
	t.Helper()
	if v.Type == nil {
		t.Fatalf("%s has no type", v.Name)
	}
	size, err := v.Type.ByteSize()
	if err != nil {
		size = -2
		_ = checkError(t, err)
	}
	where := v.Loc.Text(img.Arch())
	if v.Located() && (v.Loc.Kind == loc.KindNone || where == "" || v.Loc.Rule == rule.None) {
		t.Fatalf("%s is located, but where (%q) and by which rule (%v)?", v.Name, where, v.Loc.Rule)
	}
	line := fmt.Sprintf("%s %s, %s, %d bytes: ", v.Role, v.Name, v.Type, size)
	if v.Located() {
		return line + fmt.Sprintf("%s %s (%s)", v.Loc.Kind, where, v.Loc.Rule)
	}
	if v.Reason.Code.Describe() == "" {
		t.Fatalf("%s has the reason %v, which has no text", v.Name, v.Reason)
	}
	if v.Loc.Kind != loc.KindNone {
		return line + fmt.Sprintf("%s %s (%s) %s", v.Loc.Kind, where, v.Loc.Rule, v.Reason)
	}
	return line + v.Reason.String()
}

func checkError(t testing.TB, err error) error {
	t.Helper()
	if !strings.HasPrefix(err.Error(), "test: ") {
		t.Fatalf("the error does not name the file: %v", err)
	}
	return err
}

// timeLimit makes a test that hangs fail with the goroutines' stacks.
func timeLimit(d time.Duration, what string) (stop func()) {
	timer := time.AfterFunc(d, func() { panic("more than " + d.String() + ": " + what) })
	return func() { timer.Stop() }
}

// FuzzOpen feeds damaged images. An error is fine, a panic or a hang is not.
func FuzzOpen(f *testing.F) {
	for _, n := range append(fixtures.Names(), fixtures.Relocatable()...) {
		if !strings.Contains(n, "-gz") { // decompression takes most of the time of each try
			f.Add(fixture(f, n))
		}
	}
	f.Add(dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer timeLimit(30*time.Second, fmt.Sprintf("an image of %d bytes", len(data)))()
		_, _ = everything(t, data)
	})
}

// TestCorruptSections damages each debug section of two images at many places, one
// at a time. The places come from a fixed seed, so a failure comes again.
func TestCorruptSections(t *testing.T) {
	raced.OneGoroutine(t)
	const seed, tries = 1, 60
	for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "basic-clang14-O2-dwarf4.elf", "lib-gcc12-O2-dwarf5.elf"} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewSource(seed))
			good := fixture(t, name)
			file, err := elf.NewFile(bytes.NewReader(good))
			if err != nil {
				t.Fatal(err)
			}
			want, err := everything(t, good)
			if err != nil {
				t.Fatal(err)
			}
			differ := 0
			try := func(what string, data []byte) {
				defer timeLimit(20*time.Second, what+" of "+name)()
				defer func() {
					if r := recover(); r != nil {
						t.Errorf("%s (seed %d): panic: %v", what, seed, r)
						panic(r)
					}
				}()
				if got, err := everything(t, data); err != nil || got != want {
					differ++
				}
			}
			for i, s := range file.Sections {
				if !strings.HasPrefix(s.Name, ".debug_") && s.Name != ".eh_frame" && s.Name != ".symtab" || s.FileSize == 0 {
					continue
				}
				header := binary.LittleEndian.Uint64(good[40:]) + 64*uint64(i)
				for range tries {
					at := rng.Uint64() % s.FileSize
					bad := bytes.Clone(good)
					switch rng.Intn(4) {
					case 0: // a bit
						bad[s.Offset+at] ^= 1 << rng.Intn(8)
					case 1: // a byte that is often special
						bad[s.Offset+at] = []byte{0, 1, 0x7f, 0x80, 0xff}[rng.Intn(5)]
					case 2: // a few random bytes
						for k := at; k < min(at+uint64(1+rng.Intn(8)), s.FileSize); k++ {
							bad[s.Offset+k] = byte(rng.Intn(256))
						}
					case 3: // the section ends early
						binary.LittleEndian.PutUint64(bad[header+32:], at)
					}
					try(fmt.Sprintf("%s damaged at %#x", s.Name, at), bad)
				}
			}
			if differ < 50 {
				t.Errorf("only %d damages changed an answer: the test damages nothing that matters", differ)
			}
		})
	}
}

func TestTruncatedFiles(t *testing.T) {
	good := fixture(t, "lib-gcc12-O2-dwarf5.elf")
	for n := 0; n < len(good); n += 1 + len(good)/300 {
		if _, err := everything(t, good[:n:n]); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(good))
		}
	}
}

// TestOpenErrors checks what users read when they name the wrong file, or one whose
// units are damaged.
func TestOpenErrors(t *testing.T) {
	vmlinuz := make([]byte, 0x400)
	copy(vmlinuz, "MZ")
	copy(vmlinuz[0x202:], "HdrS")
	other := dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}})
	binary.LittleEndian.PutUint16(other[18:], uint16(elf.EM_SPARCV9))
	kernel := dwarftest.ELF(dwarftest.Text(), dwarftest.Debug("__ksymtab", []byte{1}), dwarftest.Section{Name: ".note", Type: elf.SHT_NOTE, Data: dwarftest.Cat(dwarftest.LE32(4), dwarftest.LE32(3), dwarftest.LE32(3), "GNU", 0xab, 0xcd, 0xef, 0)})
	short := dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root()}})
	for _, tt := range []struct {
		name string
		data []byte
		is   error
		want string
	}{
		{"empty", nil, image.ErrNotELF, "test: not an ELF file: it is empty"},
		{"text", []byte("#!/bin/sh\n"), image.ErrNotELF, "test: not an ELF file"},
		{"vmlinuz", vmlinuz, image.ErrNotELF, "test: not an ELF file: it is a compressed boot image (vmlinuz); the vmlinux with debug information is in the kernel's debug package"},
		{"gzip", []byte{0x1f, 0x8b, 8}, image.ErrNotELF, "test: not an ELF file: it is compressed; decompress it first"},
		{"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd}, image.ErrNotELF, "test: not an ELF file: it is compressed; decompress it first"},
		{"stripped", dwarftest.ELF(dwarftest.Text()), image.ErrNoDWARF, "test: no DWARF debug information: the file is stripped: install its debug package or build it with -g and keep the result"},
		{"symbols only", dwarftest.ELF(dwarftest.Text(), dwarftest.Section{Name: ".symtab", Type: elf.SHT_SYMTAB}), image.ErrNoDWARF, "test: no DWARF debug information: build it with -g"},
		{"kernel", kernel, image.ErrNoDWARF, "test: no DWARF debug information: for a kernel, install its debug package (Debian: linux-image-$(uname -r)-dbg, Fedora: kernel-debuginfo) or build with CONFIG_DEBUG_INFO=y; its build ID is abcdef"},
		{"cut", short[:100], nil, "test: damaged ELF file: "},
		{"other machine", other, nil, "test: unsupported machine EM_SPARCV9 (ELFCLASS64, ELFDATA2LSB): images can be for amd64, arm64, armhf, i386, loong64, mips64el, ppc64el, riscv64, s390x"},
		{"unit length", dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", dwarftest.LE32(0x100))), nil, "test: .debug_info+0x0: invalid unit length 0x100: 0x4 bytes are left"},
		{"unit version", dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", dwarftest.Cat(dwarftest.LE32(2), dwarftest.LE16(9)))), nil, "test: .debug_info+0x0: unsupported DWARF version 9"},
		{"address size", dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", dwarftest.Cat(dwarftest.LE32(8), dwarftest.LE16(5), 1, 3, dwarftest.LE32(0)))), nil, "test: .debug_info+0x0: invalid address size 3"},
		{"unit type", dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", dwarftest.Cat(dwarftest.LE32(8), dwarftest.LE16(5), 9, 8, dwarftest.LE32(0)))), nil, "test: .debug_info+0x0: unknown unit type 0x9"},
		{"unit header", dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", dwarftest.Cat(dwarftest.LE32(4), dwarftest.LE16(5), 1, 8))), nil, "test: .debug_info+0x0: the unit's header does not fit into its length"},
		{"zdebug", dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".zdebug_info", []byte("ZLIBshort"))), nil, "test: .zdebug_info+0x0: invalid compression header"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			img, err := FromBytes("test", tt.data, nil)
			if err == nil {
				err = img.r.Index.Scan(context.Background()) // which reads the headers of units
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
			if err.Error() != tt.want && (!strings.HasSuffix(tt.want, ": ") || !strings.HasPrefix(err.Error(), tt.want)) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if strings.Contains(tt.want, "+0x") {
				var fe *image.FormatError
				if !errors.As(err, &fe) || fe.Section == "" || !errors.Is(err, ErrDamaged) {
					t.Errorf("%v is no image.FormatError with a section", err)
				}
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// TestScanErrors: damage that shows when the entries are read.
func TestScanErrors(t *testing.T) {
	info := func(entries ...any) []byte {
		b := dwarftest.Cat(dwarftest.LE16(5), 1, 8, dwarftest.LE32(0), dwarftest.Cat(entries...))
		return dwarftest.Cat(dwarftest.LE32(uint64(len(b))), b)
	}
	abbrev := dwarftest.Cat(1, tagByte(dw.TagCompileUnit), 1, 0, 0, 2, tagByte(dw.TagSubprogram), 0, attrByte(dw.AttrName), byte(dw.FormString), 0, 0, 0)
	deep := dwarftest.Cat(1, tagByte(dw.TagLexicalBlock), 1, 0, 0, 0)
	for _, tt := range []struct {
		name, want   string
		info, abbrev []byte
	}{
		{"unknown abbreviation", "test: .debug_info+0xd: unknown abbreviation 7", info(1, 7, 0), abbrev},
		{"name cut short", "test: .debug_info+0xd: the entry does not end within its unit", info(1, 2, 'a', 'b'), abbrev},
		{"no entries", "test: .debug_info+0xc: the unit has no entries", info(0), abbrev},
		{"nothing at all", "test: .debug_info+0xc: the unit has no entries", info(), abbrev},
		{"abbreviations do not end", "test: .debug_abbrev+0x5: the abbreviation table of the unit at .debug_info+0x0 does not end", info(1, 0), abbrev[:5]},
		{"abbreviation does not end", "test: .debug_abbrev+0x5: abbreviation 2 does not end", info(1, 0), abbrev[:10]},
		{"unknown form", "test: .debug_abbrev+0x0: abbreviation 1: unknown form 0x7e", info(1, 0), dwarftest.Cat(1, 0x11, 0, 3, 0x7e, 0, 0, 0)},
		{"too deep", "test: .debug_info+0x20c: entries are nested more than 512 deep", info(bytes.Repeat([]byte{1}, 5000)), deep},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := everything(t, dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", tt.info), dwarftest.Debug(".debug_abbrev", tt.abbrev)))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func tagByte(t dw.Tag) byte   { return byte(t) }
func attrByte(a dw.Attr) byte { return byte(a) }

// TestScanErrorIsRemembered: the second question gets the same answer.
func TestScanErrorIsRemembered(t *testing.T) {
	b := dwarftest.Cat(dwarftest.LE16(5), 1, 8, dwarftest.LE32(0), 1, 7, 0)
	img, err := FromBytes("test", dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", dwarftest.Cat(dwarftest.LE32(uint64(len(b))), b)),
		dwarftest.Debug(".debug_abbrev", dwarftest.Cat(1, 0x11, 1, 0, 0, 0))), nil)
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := img.r.Index.Scan(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled scan: %v", err)
	}
	first := img.r.Index.Scan(context.Background())
	if second := img.r.Index.Scan(context.Background()); first == nil || first != second {
		t.Errorf("first %v, then %v", first, second)
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// nest is n inlined instances inside each other, with width more in the innermost.
func nest(n, width int) *dwarftest.DIE {
	at := []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "f"), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr))}
	root := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: at}
	d := root
	for range n {
		k := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: at}
		d.Kids = []*dwarftest.DIE{k}
		d = k
	}
	for range width {
		d.Kids = append(d.Kids, &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: at})
	}
	return dwarftest.Root(root)
}

// TestMemory: numbers in a small file that announce much make nothing big.
func TestMemory(t *testing.T) {
	compressed := func(size uint64, d []byte) []byte {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, err := w.Write(d)
		dwarftest.Must(errors.Join(err, w.Close()))
		return dwarftest.Cat(dwarftest.LE32(1), dwarftest.LE32(0), dwarftest.LE64(size), dwarftest.LE64(1), z.Bytes())
	}
	zdebug := func(size uint64, d []byte) []byte {
		return dwarftest.Cat([]byte("ZLIB"), binary.BigEndian.AppendUint64(nil, size), compressed(0, d)[24:])
	}
	flagged := dwarftest.Section{Name: ".debug_str", Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED, Data: compressed(1<<40, []byte("x"))}
	lines := func(version int) dwarftest.Section {
		root := dwarftest.Cat(1, 1, 1, 0xfb, 14, 1, 0, dwarftest.ULEB(1<<20), 0, dwarftest.ULEB(1<<20))
		b := dwarftest.Cat(dwarftest.LE16(uint64(version)), 8, 0, dwarftest.LE32(uint64(len(root))), root)
		return dwarftest.Debug(".debug_line", dwarftest.Cat(dwarftest.LE32(uint64(len(b))), b))
	}
	withLines := func(n int) []dwarftest.CU {
		var units []dwarftest.CU
		for range n {
			root := dwarftest.Root(&dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "f"), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr))}, Kids: []*dwarftest.DIE{
				{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrCallFile, dw.FormData1, 1)}}}})
			root.Attrs = append(root.Attrs, dwarftest.At(dw.AttrStmtList, dw.FormSecOffset, 0))
			units = append(units, dwarftest.CU{Version: 5, Root: root})
		}
		return units
	}
	units := []dwarftest.CU{{Version: 5, Root: dwarftest.Root()}}
	var tiny []dwarftest.CU
	for range 2000 {
		tiny = append(tiny, dwarftest.CU{Version: 5, Root: &dwarftest.DIE{Tag: dw.TagCompileUnit}})
	}
	for _, tt := range []struct {
		name string
		data []byte
		most uint64 // bytes
	}{
		{"compressed section", dwarftest.Image(units, flagged), 16 << 20}, // debug/elf reads pieces of 10 MiB
		{"old compressed section", dwarftest.Image(units, dwarftest.Debug(".zdebug_str", zdebug(1<<60, []byte("x")))), 4 << 20},
		{"line tables without formats", dwarftest.Image(withLines(50), lines(5)), 4 << 20},
		{"deeply inlined", dwarftest.Image([]dwarftest.CU{{Version: 5, Root: nest(400, 400)}}), 64 << 20},
		{"many tiny units", dwarftest.Image(tiny), 16 << 20},
		{"block of 4 GiB", dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", dwarftest.Cat(dwarftest.LE32(13), dwarftest.LE16(5), 1, 8, dwarftest.LE32(0), 1, dwarftest.LE32(0xffffffff))),
			dwarftest.Debug(".debug_abbrev", dwarftest.Cat(1, 0x11, 0, 3, byte(dw.FormBlock4), 0, 0, 0))), 1 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := allocated(func() {
				text, err := everything(t, tt.data)
				t.Logf("%q, %v", text, err)
			})
			if got > tt.most {
				t.Errorf("a file of %d bytes made %d bytes of allocations, more than %d", len(tt.data), got, tt.most)
			}
		})
	}
	for name, d := range map[string][]byte{
		"a size that is too large": zdebug(100, []byte("x")), "a size that is too small": zdebug(1, make([]byte, 100)),
	} {
		if _, err := everything(t, dwarftest.Image(units, dwarftest.Debug(".zdebug_str", d))); err == nil || !strings.Contains(err.Error(), ".zdebug_str+0x4: the header announces") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOldCompression reads names across units from sections of the old GNU form:
// the declaration of a function, with its name in the entry, is in another unit.
func TestOldCompression(t *testing.T) {
	decl := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "far_away"), dwarftest.At(dw.AttrInline, dw.FormData1, 1)}}
	code := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrAbstractOrigin, dw.FormRefAddr, decl), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr))}}
	var w dwarftest.Writer
	w.Add(dwarftest.CU{Version: 5, Root: dwarftest.Root(decl)})
	w.Add(dwarftest.CU{Version: 5, Root: dwarftest.Root(code)})
	pack := func(d []byte) []byte {
		var z bytes.Buffer
		zw := zlib.NewWriter(&z)
		_, err := zw.Write(d)
		dwarftest.Must(errors.Join(err, zw.Close()))
		return dwarftest.Cat([]byte("ZLIB"), binary.BigEndian.AppendUint64(nil, uint64(len(d))), z.Bytes())
	}
	for _, data := range [][]byte{
		dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev)),
		dwarftest.ELF(dwarftest.Text(), dwarftest.Debug(".zdebug_info", pack(w.Info)), dwarftest.Debug(".zdebug_abbrev", pack(w.Abbrev))),
	} {
		img, err := FromBytes("test", data, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s := sitesOf(t, img, "far_away", 1)[0]; s.Addr != dwarftest.TextAddr {
			t.Errorf("the site is at %#x", s.Addr)
		}
	}
}
