package fleet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/sealed"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func wants(t *testing.T, texts ...string) (out []Want) {
	t.Helper()
	for _, text := range texts {
		d, err := probe.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Want{Definition: d})
	}
	return out
}

func TestReleases(t *testing.T) {
	sorted := []string{"5.10.0-8-amd64", "5.10.0-30-amd64", "6.1.0-56-amd64", "6.1.0-56-cloud-amd64", "6.1.0-156-amd64", "6.12.95+deb12-amd64", "7.2.12"}
	for i, a := range sorted {
		for k, b := range sorted {
			if got := compareReleases(a, b); got < 0 != (i < k) || got > 0 != (i > k) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
}

func TestRelated(t *testing.T) {
	names := []string{"__do_sys_fcntl", "a_b", "do_file_open", "do_sys", "kfree_skb", "kmalloc_array", "kmalloc_noprof", "operator new", "sys_fcntl_x"}
	for _, c := range []struct {
		name    string
		nearest []string
		want    string
	}{
		{"sys_fcntl", nil, "__do_sys_fcntl! sys_fcntl_x"},
		{"kfree_skb_reason", nil, "kfree_skb!"},
		{"kmalloc", []string{"a_b"}, "a_b kmalloc_array kmalloc_noprof"},
		{"do_sys_x", nil, "do_sys!"}, // two words, and not the one before
		{"a_b_c", nil, "a_b!"},
		{"do_filp_open", []string{"do_file_open", "operator new"}, "do_file_open"},
	} {
		var got []string
		for name, own := range related(c.name, names, c.nearest) {
			got = append(got, name+map[bool]string{true: "!"}[own])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestChoose(t *testing.T) {
	here := shape{"fs/namei.c", []string{"dfd", "name"}}
	for _, c := range []struct {
		what string
		x    candidate
		with []Cell
		want string
	}{
		{"same file and parameters", candidate{"a|b", here, false}, []Cell{{shape: here}}, "a|b"},
		{"one more parameter", candidate{"a|b", shape{"fs/namei.c", []string{"dfd", "name", "op"}}, false}, []Cell{{shape: here}}, "a|b"},
		{"another file", candidate{"a|b", shape{"mm/shmem.c", here.params}, true}, []Cell{{shape: here}}, ""},
		{"a parameter before", candidate{"a|b", shape{"fs/namei.c", []string{"n", "dfd", "name"}}, true}, []Cell{{shape: here}}, ""},
		{"no kernel has it, and the name says it", candidate{"a|b", here, true}, nil, "a|b"},
		{"no kernel has it, and it is only similar", candidate{"a|b", here, false}, nil, ""},
	} {
		cells := append([]Cell{{Error: "none", candidates: []candidate{c.x}}}, c.with...)
		if choose(cells); cells[0].Candidates != c.want {
			t.Errorf("%s: %q, want %q", c.what, cells[0].Candidates, c.want)
		}
	}
}

func TestCompare(t *testing.T) {
	cell := func(name string, record bool, args ...form) Cell {
		c := Cell{Kernel: name, Record: record}
		for _, f := range args {
			c.Args = append(c.Args, Arg{Name: "x", forms: map[form]bool{f: true}})
		}
		return c
	}
	number, text := form{typ: "int", size: 4}, form{typ: "char *", kind: prologue.KindString}
	for _, c := range []struct {
		is   Cell
		want string
	}{
		{cell("new", false, number), ""},
		{cell("new", false, form{typ: "long", size: 8}), "x is long, on old int"},
		{cell("new", false, form{typ: "int", size: 8}), "x is int of 8 bytes, on old int of 4 bytes"},
		{cell("new", true, number), "the program gets its arguments in a record, on old in registers"},
		{cell("new", false, number, text), "2 arguments, on old 1"},
		{Cell{Kernel: "new", Error: "none"}, ""},
	} {
		cells := []Cell{{Kernel: "none", Error: "none"}, cell("old", false, number), c.is}
		if compare(cells); strings.Join(cells[2].Changed, "; ") != c.want {
			t.Errorf("%q, want %q", cells[2].Changed, c.want)
		}
	}
	old, fresh := form{typ: "struct s", size: 16, members: "a\t0 int\nb\t32 int\nc\t64 long\n"}, form{typ: "struct s", size: 16, members: "a\t0 int\nc\t32 int\nd\t64 long\n"}
	for _, c := range []struct {
		is   form
		want string
	}{
		{old, ""}, {fresh, "x: members gone: b; new: d; elsewhere or of another type: c"},
		{form{typ: "struct s", size: 8, members: "a\t0 int\n"}, "x is struct s of 8 bytes, on old struct s of 16 bytes; x: members gone: b, c"},
		{form{typ: "struct s", size: 16, members: "a\t0 int\n1\t1\n2\t1\n3\t1\n4\t1\n5\t1\n"}, "x: members gone: b, c; new: 1, 2, 3 and 2 more"},
	} {
		cells := []Cell{cell("old", true, old), cell("new", true, c.is)}
		if compare(cells); strings.Join(cells[1].Changed, "; ") != c.want {
			t.Errorf("%q, want %q", cells[1].Changed, c.want)
		}
	}
	moved := text
	moved.offset = 16
	cells := []Cell{cell("old", true, number, text), cell("new", true, number, moved)}
	if compare(cells); len(cells[1].Changed) != 1 || !strings.Contains(cells[1].Changed[0], "at 16 of the record") {
		t.Errorf("a place in the record: %q", cells[1].Changed)
	}
}

func TestRequirement(t *testing.T) {
	half := &Cell{Whole: 1, Probes: 2}
	for text, want := range map[string][4]bool{ // of half, all, nothing, an error
		"none": {true, true, true, true}, "any": {true, true, false, false}, "all": {false, true, false, false},
		"50%": {true, true, false, false}, "50 % of sites": {true, true, false, false}, "50.1%": {false, true, false, false},
	} {
		r, err := ParseRequirement(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := [4]bool{r.Met(half), r.Met(&Cell{Whole: 2, Probes: 2}), r.Met(&Cell{Probes: 2}), r.Met(&Cell{Error: "none"})}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "some", "0%", "-1%", "101%", "NaN%", "9O%", "90 % of kernels", "90"} {
		if _, err := ParseRequirement(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestShare(t *testing.T) {
	for want, c := range map[string]Cell{
		"100 %": {Whole: 3, Probes: 3}, "99.9 %": {Whole: 9999, Probes: 10000}, "0.1 %": {Whole: 1, Probes: 10000}, "0.0 %": {Probes: 3}, "33.3 %": {Whole: 1, Probes: 3},
	} {
		if got := c.share(); got != want {
			t.Errorf("%d of %d: %s, want %s", c.Whole, c.Probes, got, want)
		}
	}
}

// TestDamaged: a pack in an archive under another build's ID is not believed, nor a damaged archive; and kernels of one name are told apart.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	var packs [][]byte
	for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "basic-clang14-O2-dwarf5.elf"} {
		var b bytes.Buffer
		if _, err := pack.Write(t.Context(), testenv.Fixture(t, name), pack.Options{}, &b); err != nil {
			t.Fatal(err)
		}
		packs = append(packs, b.Bytes())
	}
	archive := func(name string, change func([]byte)) string {
		var b bytes.Buffer
		if err := pack.WriteArchive(&b, packs, []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		d := b.Bytes()
		change(d)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, d, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	check := func(paths ...string) (*Table, error) {
		sources, err := Sources(paths)
		if err != nil {
			return nil, err
		}
		return Check(context.Background(), sources, wants(t, "my_func_three_abcd arg1"), Options{})
	}
	table, err := check(archive("good.packs", func([]byte) {}))
	if err != nil || len(table.Kernels) != 2 || table.Kernels[0].Name == table.Kernels[1].Name {
		t.Errorf("%v, %+v", err, table)
	}
	for what, change := range map[string]func([]byte){
		"the checksum of the index is wrong": func(d []byte) { d[24]++ },
		"the pack is of another build": func(d []byte) { // both entries have the other's place
			a, b := slices.Clone(d[24+40:24+56]), slices.Clone(d[24+56+40:24+112])
			copy(d[24+40:], b)
			copy(d[24+56+40:], a)
			seal(d)
		},
	} {
		if _, err := check(archive("bad.packs", change)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"6.1.pack", "x/6.1.pack"} {
		if err := os.WriteFile(filepath.Join(dir, name), packs[i], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "bad.packs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "good.packs")); err != nil {
		t.Fatal(err)
	}
	table, err = check(dir)
	if err != nil || len(table.Kernels) != 2 || table.Kernels[0].Name != "6.1 "+filepath.Join(dir, "6.1.pack") {
		t.Errorf("%v, %+v", err, table)
	}
}

// TestOutside: a kernel whose table is not in the file is no kernel without that table.
func TestOutside(t *testing.T) {
	path, err := fixtures.WriteTo(t.TempDir(), "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(testenv.Tool(t, "objcopy"), "--add-symbol", "__start_mcount_loc=0x10", "--add-symbol", "__stop_mcount_loc=0x20", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sources, err := Sources([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), sources, wants(t, "my_func_three_abcd arg1"), Options{}); err == nil || !strings.Contains(err.Error(), "__start_mcount_loc: ") {
		t.Errorf("%v", err)
	}
}

// TestHostile: names in packs are anybody's choice.
func TestHostile(t *testing.T) {
	r, err := ParseRequirement("any")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"</script><img src=x onerror=alert(1)>", "\x1b]0;title\x07", "a\u202eb", "\xff\xfe"} {
		table := &Table{Kernels: []Kernel{{Name: bad, Path: bad, BuildID: "00", Arch: "amd64"}}, Definitions: []Definition{{
			Text: bad, Program: bad, Cells: []Cell{{Kernel: bad, Error: bad, Candidates: bad}, {Kernel: bad, Probes: 1, Args: []Arg{{Name: bad, Lost: map[string]int{bad: 1}}}, Changed: []string{bad}}},
		}}}
		var html, line bytes.Buffer
		if err := errors.Join(table.HTML(&html, r), table.JSON(&line, r)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(html.String(), bad) {
			t.Errorf("%q is in the page as it is", bad)
		}
		if strings.Contains(line.String(), bad) && !strings.HasPrefix(bad, "<") { // which JSON may have
			t.Errorf("%q is in JSON as it is", bad)
		}
	}
}

// TestPage uses the page in a browser.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "basic-clang14-O2-dwarf5.elf"} {
		if _, err := fixtures.WriteTo(dir, name); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, "vmlinux-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := Sources([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	table, err := Check(t.Context(), sources, wants(t, "my_func_three_abcd arg1", "nosuch x"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRequirement("75%")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := table.HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	const drive = `<script>
const seen = [], see = what => seen.push(what + ": " + [...document.querySelectorAll("tr.site")].map(r => [...r.cells].map(c => c.textContent + (c.className ? "/" + c.className : "")).join(" ")).join(" | ") + " # " + document.getElementById("count").textContent);
const type = (id, text) => { const e = document.getElementById(id); e.value = text; e.dispatchEvent(new Event("input")); };
see("all");
type("find", "reassigned"); see("find");
type("find", ""); type("state", "changed"); see("changed");
type("state", "unmet"); see("unmet");
document.querySelectorAll("tr.site")[0].click(); seen.push("detail: " + document.querySelector("td.detail").innerText.replace(/\s+/g, " "));
document.querySelectorAll("tr.site")[0].click(); seen.push("details: " + document.querySelectorAll("td.detail").length);
document.body.innerText = seen.join("\n");
</script></body>`
	out := testenv.Browser(t, strings.Replace(b.String(), "</body>", drive, 1))
	for _, want := range []string{
		"all: my_func_three_abcd arg1 50.0 %/missing 75.0 %/fetched | nosuch x none/refused none/refused # 2 of 2 definitions\n",
		"find: my_func_three_abcd arg1 50.0 %/missing 75.0 %/fetched # 1 of 2 definitions\n",
		"changed:  # 0 of 2 definitions\n", "unmet: my_func_three_abcd arg1",
		"detail: basic-clang14-O2-dwarf5.elf 50.0 % of 4 sites, 3 inlined arg1 lost at 1 optimized-out, 1 reassigned basic-gcc12",
		"details: 0\n",
	} {
		if !strings.Contains(out+"\n", want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// seal makes the checksum of an archive's index right.
func seal(d []byte) {
	n := binary.LittleEndian.Uint32(d[12:])
	binary.LittleEndian.PutUint32(d[16:], sealed.Sum(d[24:24+56*n]))
}

// TestKernels: Linux 6.12 has put the flags of inet_csk_accept into a structure, and kmalloc has another name there.
func TestKernels(t *testing.T) {
	old := testenv.Vmlinux(t)
	newer, err := filepath.Glob(filepath.Join(testenv.Cache(), "bookworm-backports", "vmlinux-6.*"))
	if err != nil || len(newer) == 0 {
		testenv.Missing(t, "no kernel of bookworm-backports: make vmlinux")
	}
	sources, err := Sources([]string{newer[0], old})
	if err != nil {
		t.Fatal(err)
	}
	table, err := Check(t.Context(), sources, wants(t, "inet_csk_accept sk flags", "kmalloc size flags", "sk_skb_reason_drop skb", "vfs_read f=*file", "vfs_read file->f_pos", "vfs_read:2 file"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if k := table.Kernels; len(k) != 2 || !strings.HasPrefix(k[0].Name, "6.1.") || strings.Contains(k[0].Name, "/") {
		t.Fatalf("kernels by release, which their notes say: %+v", k)
	}
	// What is fetched by the kernel's own types does not change when a member moves; a whole structure does.
	if c := table.Definitions[3].Cells[1]; len(c.Changed) != 2 || !strings.HasPrefix(c.Changed[0], "f is struct file of ") || !strings.HasPrefix(c.Changed[1], "f: members gone: f_rcuhead") {
		t.Errorf("%+v", c)
	}
	if c := table.Definitions[4].Cells[1]; c.Changed != nil || c.Whole == 0 {
		t.Errorf("%+v", c)
	}
	for i, want := range []struct{ first, second, candidates string }{
		{"", `no variable "flags" in inet_csk_accept`, ""}, {"", `no function matches "kmalloc"`, "kmalloc|kmalloc_noprof"}, {`no function matches "sk_skb_reason_drop"`, "", ""},
	} {
		c := table.Definitions[i].Cells
		if !strings.HasPrefix(c[0].Error, want.first) || (c[0].Error == "") != (want.first == "") || !strings.HasPrefix(c[1].Error, want.second) || c[1].Candidates != want.candidates {
			t.Errorf("%s: %+v", table.Definitions[i].Text, c)
		}
	}
}
