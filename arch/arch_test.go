package arch

import (
	"debug/elf"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// TestTables compares register names with delve's tables, which others wrote.
func TestTables(t *testing.T) {
	delve := map[string]func(uint64) string{
		"amd64": regnum.AMD64ToName, "arm64": regnum.ARM64ToName, "i386": regnum.I386ToName, "loong64": regnum.LOONG64ToName,
	}
	// Delve's other spellings of the same registers.
	same := map[string]string{"r30": "x30", "lr": "x30"}
	// The integer registers and the program counter have the first numbers.
	general := map[string]uint16{"amd64": 17, "arm64": 33, "i386": 10, "loong64": 32}
	for _, a := range all {
		seen := make(map[int]string)
		for _, r := range a.Registers() {
			if r.DWARF < general[a.Name] {
				want := strings.ToLower(delve[a.Name](uint64(r.DWARF)))
				if s, ok := same[want]; ok && a.Name == "arm64" {
					want = s
				}
				if r.Name != want && r.KernelName != want { // of loong64, delve has the numbers, as the kernel does
					t.Errorf("%s register %d: %s, delve says %s", a.Name, r.DWARF, r.Name, want)
				}
				if r.Vector || r.Offset < 0 || r.Offset%a.WordSize != 0 {
					t.Errorf("%s register %s has offset %d in struct pt_regs, vector %v", a.Name, r.Name, r.Offset, r.Vector)
				}
			}
			if other, dup := seen[r.Offset]; dup && r.Offset >= 0 && other != r.Name { // two numbers can mean one register
				t.Errorf("%s registers %s and %s have the same offset", a.Name, r.Name, other)
			}
			nameless := strings.HasPrefix(r.Name, "psw") // which the kernel's events do not know
			if r.Vector && r.Offset >= 0 || (r.KernelName == "") != (r.Offset < 0 || nameless) {
				t.Errorf("%s register %s: vector %v, kernel name %q, offset %d", a.Name, r.Name, r.Vector, r.KernelName, r.Offset)
			}
			seen[r.Offset] = r.Name
			if a.Register(uint64(r.DWARF)).Name != r.Name {
				t.Errorf("%s register %d is in the table twice", a.Name, r.DWARF)
			}
		}
		if a.Register(uint64(a.SP)) == nil {
			t.Errorf("%s has no stack pointer", a.Name)
		}
	}
}

func TestForELF(t *testing.T) {
	a, err := ForELF(elf.EM_X86_64, elf.ELFCLASS64, elf.ELFDATA2LSB)
	if err != nil || a != ByName("amd64") {
		t.Errorf("%v, %v", a, err)
	}
	if _, err := ForELF(elf.EM_X86_64, elf.ELFCLASS32, elf.ELFDATA2LSB); err == nil {
		t.Error("x32 has no table, and got one")
	}
	if got := a.RegisterName(0); got != "%rax" {
		t.Errorf("got %s", got)
	}
	if got := a.RegisterName(4711); got != "reg4711" {
		t.Errorf("got %s", got)
	}
}

// Registers of a program for i386 are in the amd64 kernel's struct pt_regs.
func TestOn(t *testing.T) {
	i386, amd64 := ByName("i386"), ByName("amd64")
	if i386.On(nil) != i386 || i386.On(i386) != i386 {
		t.Error("a kernel for i386 has its own struct pt_regs")
	}
	on := i386.On(amd64)
	for _, r := range i386.Registers() {
		host := on.Register(uint64(r.DWARF))
		if want := amd64.RegisterByName(strings.Replace(r.Name, "e", "r", 1)); r.DWARF <= 9 && (want == nil || host.Offset != want.Offset || host.Name != r.Name) {
			t.Errorf("%s is %+v, want the place of %+v", r.Name, host, want)
		}
	}
	if amd64.On(i386) != nil || ByName("s390x").On(amd64) != nil {
		t.Error("a kernel runs no code of a machine that is not its own")
	}
}
