package dwarfloc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// TestBTFImplicit: the arguments that BTF leaves out of functions for BPF programs are another function's, if that has the
// same ones before.
func TestBTFImplicit(t *testing.T) {
	b := newBTF(1, 0)
	integer := b.add("int", 1, 0, 4, 1<<24|32)
	long := b.add("long", 1, 0, 8, 1<<24|64)
	one := b.add("", 13, 1, integer, b.name("a"), integer)
	two := b.add("", 13, 2, integer, b.name("a"), integer, b.name("aux"), long)
	other := b.add("", 13, 2, integer, b.name("a"), long, b.name("aux"), long)
	for _, f := range []struct {
		name   string
		proto  uint32
		tagged bool
	}{
		{"kick", one, true}, {"kick_impl", two, false}, // as resolve_btfids makes them
		{"old", one, true}, {"old_impl", other, false}, // another function
		{"plain", one, false}, {"plain_impl", two, false}, // not for BPF programs
	} {
		id := b.add(f.name, 12, 0, f.proto)
		if f.tagged {
			b.add("bpf_kfunc", 17, 0, id, 0xffffffff)
		}
	}
	symbols := "1000 T _stext\n1000 T kick\n1010 T old\n1020 T old_impl\n1030 T plain\n1040 T plain_impl\n2000 T _etext\n"
	img, err := dwarfloc.FromBTF(dwarfloc.BTFOptions{Path: "test", BTF: b.section(nil), Arch: arch.ByName("amd64"), Symbols: strings.NewReader(symbols)})
	if err != nil {
		t.Fatal(err)
	}
	sites, err := img.Sites(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sites {
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		line := s.Function
		for _, v := range params {
			line += fmt.Sprintf(" %s=%s", v.Name, v.Loc.Text(img.Arch()))
		}
		got = append(got, line)
	}
	want := []string{"kick a=%rdi aux=%rsi", "old a=%rdi", "old_impl a=%rdi aux=%rsi", "plain a=%rdi", "plain_impl a=%rdi aux=%rsi"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
