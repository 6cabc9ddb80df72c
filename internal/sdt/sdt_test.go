package sdt_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/sdt"
)

// symbols are those of the tests.
func symbols(name string) (uint64, bool) {
	addr, ok := map[string]uint64{"counter": 0x4010, "table.1": 0x5000}[name]
	return addr, ok
}

// TestArguments: operands as assemblers write them. Those of amd64 are what GCC and clang make of sys/sdt.h, and others are from their
// manuals.
func TestArguments(t *testing.T) {
	for _, c := range []struct{ arch, args, want string }{
		{"amd64", "8@%rdi -4@%ebx -2@%dx 1@%al 1@%r9b -4@%r10d", "u8 %rdi, s4 %rbx, s2 %rdx, u1 %rax, u1 %r9, s4 %r10"},
		{"amd64", "-4@$5 -8@$-7 4@$0x10", "s4 5, s8 -7, u4 16"},
		{"amd64", "-8@(%r8) 8@-16(%rbp) -4@112(%rsp) 8@8(%rax,%rbx,4) 8@(%rax,%rbx)", "s8 [%r8], u8 [%rbp-16], s4 [%rsp+112], u8 [%rax+8 + (%rbx * 4)], u8 [%rax + %rbx]"},
		{"amd64", "4@counter(%rip) 4@counter+4(%rip) 4@4+counter(%rip) -4@table.1-8(%rip) 4@counter", "u4 [@0x4010], u4 [@0x4014], u4 [@0x4014], s4 [@0x4ff8], u4 [@0x4010]"},
		{"amd64", "8f@%xmm0 4f@-4(%rbp)", "f8 vector-register, f4 [%rbp-4]"},
		{"amd64", "1@%sil 1@%bpl 2@%si 2@%r8w", "u1 %rsi, u1 %rbp, u2 %rsi, u2 %r8"},
		{"amd64", "4@nothing(%rip) %rdi 3x@%rdi 8@%eax 8@%fs:0 1@%ah 8@$counter 4@8(%rip)", strings.Repeat("unsupported-operation, ", 7) + "unsupported-operation"},
		{"i386", "-4@8(%ebp) 1@%al 4@%esi 2@%ax", "s4 [%ebp+8], u1 %eax, u4 %esi, u2 %eax"},
		{"arm64", "-4@w0 8@x19 8@[sp, 16] -4@[x1] 8@[x1, x2] 8@[x1, x2, lsl 3] -4@-5 8@[sp,#8]", "s4 %x0, u8 %x19, u8 [%sp+16], s4 [%x1], u8 [%x1 + %x2], u8 [%x1 + (%x2 * 8)], s4 -5, u8 [%sp+8]"},
		{"armhf", "4@r0 -4@[r7, #4] 4@#5 4@[sp]", "u4 %r0, s4 [%r7+4], u4 5, u4 [%sp]"},
		{"riscv64", "8@a0 -4@-20(s0) -4@7 8@0(sp)", "u8 %a0, s4 [%s0-20], s4 7, u8 [%sp]"},
		{"s390x", "8@%r2 -4@164(%r15) -4@5 8@0(%r1,%r2)", "u8 %r2, s4 [%r15+164], s4 5, u8 [%r2 + %r1]"},
		{"ppc64el", "-8@32(1) 8@%r3 -4@3", "s8 [%r1+32], u8 %r3, unsupported-operation"},
		{"loong64", "8@$r4 -4@$r22,-28 -4@7", "u8 %a0, s4 [%fp-28], s4 7"},
	} {
		a := arch.ByName(c.arch)
		n := sdt.Note{Args: c.args}
		var got []string
		for _, x := range n.Arguments(a, a.BigEndian, symbols) {
			sign := "u"
			switch {
			case x.Float:
				sign = "f"
			case x.Signed:
				sign = "s"
			}
			text := x.Loc.Text(a)
			if x.Reason.Code != 0 {
				text = x.Reason.Code.String()
			}
			if text != "unsupported-operation" {
				text = fmt.Sprintf("%s%d %s", sign, x.Size, text)
			}
			got = append(got, text)
		}
		want := strings.ReplaceAll(c.want, "%", a.Sigil)
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s\n is %s\nwant %s", c.arch, c.args, text, want)
		}
	}
}

// note returns a note of a 64-bit file.
func note(pc, base, semaphore uint64, texts string) []byte {
	le := binary.LittleEndian
	var desc []byte
	for _, v := range []uint64{pc, base, semaphore} {
		desc = le.AppendUint64(desc, v)
	}
	desc = append(desc, texts...)
	d := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 8), uint32(len(desc))), 3)
	d = append(append(d, "stapsdt\x00"...), desc...)
	for len(d)%4 != 0 {
		d = append(d, 0)
	}
	return d
}

var little = sdt.File{Order: binary.LittleEndian, WordSize: 8}

// TestRead: notes have moved with the base, and what is damaged is said with its place.
func TestRead(t *testing.T) {
	section := slices.Concat(note(0x1000, 0x2000, 0x3000, "shop\x00sell\x008@%rdi\x00"), note(0x1010, 0x2000, 0, "shop\x00idle\x00\x00"))
	moved := little
	moved.Base = 0x2100
	got, err := sdt.Read(section, moved)
	want := []sdt.Note{{"shop", "sell", 0x1100, 0x3100, "8@%rdi"}, {"shop", "idle", 0x1110, 0, ""}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, c := range []struct {
		what    string
		section []byte
		want    string
	}{
		{"cut short", section[:len(section)-8], fmt.Sprintf(".note.stapsdt+%#x: the note is cut short", len(section)/2+4)},
		{"no end", note(1, 2, 3, "shop\x00sell\x008@%rdi"), ".note.stapsdt+0x0: a text in the note does not end"},
		{"no name", note(1, 2, 3, "shop\x00\x00\x00"), ".note.stapsdt+0x0: the note has no name"},
	} {
		_, err := sdt.Read(c.section, little)
		var damaged *sdt.Error
		if !errors.As(err, &damaged) || !strings.HasPrefix(err.Error(), ".note.stapsdt+0x") || !strings.HasSuffix(err.Error(), c.want[strings.Index(c.want, ": "):]) {
			t.Errorf("%s: %v, want %s", c.what, err, c.want)
		}
	}
}

// FuzzArguments: any text gives arguments with a location or a reason, and takes no time.
func FuzzArguments(f *testing.F) {
	for _, text := range []string{"8@%rdi -4@$5 4@counter+4(%rip)", "8@8(%rax,%rbx,4)", "-4@[sp, 12] 8@[x1, x2, lsl 3]", "8@((((((", "8@----------(%rax)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, a := range arch.All() {
			n := sdt.Note{Args: text}
			for _, x := range n.Arguments(a, a.BigEndian, symbols) {
				if (x.Loc.Kind == 0) == (x.Reason.Code == 0) {
					t.Fatalf("%s: %q has the location %v and the reason %v", a.Name, x.Text, x.Loc, x.Reason)
				}
				_ = x.Loc.Text(a)
			}
		}
	})
}

// FuzzRead: any bytes give notes or an error with its place.
func FuzzRead(f *testing.F) {
	f.Add(note(0x1000, 0x2000, 0x3000, "shop\x00sell\x008@%rdi\x00"))
	f.Fuzz(func(t *testing.T, section []byte) {
		for _, word := range []int{4, 8} {
			notes, err := sdt.Read(section, sdt.File{Order: binary.LittleEndian, WordSize: word, Base: 0x100})
			var damaged *sdt.Error
			if err != nil && (!errors.As(err, &damaged) || damaged.Offset > uint64(len(section))) {
				t.Fatal(err)
			}
			for _, n := range notes {
				if n.Provider == "" || n.Name == "" {
					t.Fatalf("a note without a name: %+v", n)
				}
			}
		}
	})
}
