package dwarfloc_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
)

// spills are what is known of kernel images, by build ID: parameters with the reason
// NotStoredYet, of inlined instances, and some of them; and parameters of entries that the
// debug information puts in such a slot, and the calling convention in a register. The
// example of Linux 6.12 was tried in a live kernel.
var spills = map[string]struct {
	inline   int64
	entries  int64
	examples []string // function, place, parameter, detail or location
}{
	"eb4fbcd037e7253717950bf2b93bd5566f47c56f": {118, 13, []string{ // Debian's 6.1.0-56-amd64
		"remap_pfn_range remap_pfn_range prot: %r8",
		"free_swap_slot free_swap_slot entry: %rdi",
		"__do_sys_llseek __x64_sys_llseek+0x3b result: stored at 0xffffffff8136644b",
		"emit_code do_jit+0x173d ptr: stored at 0xffffffff8109aa87",
		"crypto_wait_req zswap_writeback_entry+0x6a8 wait: stored at 0xffffffff8130b92c",
	}},
	"005d44ffc25e6b4ab1ac4ad8b69cc72f8a917cfb": {164, 18, []string{ // Debian's 6.12.95+deb12-cloud-amd64
		"vmf_insert_pfn_prot vmf_insert_pfn_prot pgprot: %rcx",
		"__do_sys_fcntl __x64_sys_fcntl+0x23 arg: stored at 0xffffffff8145b336",
		"__se_sys_fcntl __x64_sys_fcntl+0x1b arg: stored at 0xffffffff8145b336",
		"pmd_trans_huge_lock pagemap_scan_pmd_entry+0x66 vma: stored at 0xffffffff814f4c86",
	}},
}

func TestNotStoredKernel(t *testing.T) {
	raced.OneGoroutine(t)
	if testing.Short() {
		t.Skip("reads whole kernel images")
	}
	paths, err := filepath.Glob(filepath.Join(testenv.Cache(), "bookworm-backports", "vmlinux-*-amd64"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, testenv.Vmlinux(t)) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			img, err := dwarfloc.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			var params [2]int64
			var found [2]int64
			err = img.EachSite(context.Background(), nil, func(_ int, s dwarfloc.SiteRef) error {
				vars, err := s.Params()
				for _, v := range vars {
					atomic.AddInt64(&params[s.Kind], 1)
					if v.Reason.Code == reasons.NotStoredYet || byConvention(v) {
						atomic.AddInt64(&found[s.Kind], 1)
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("entries: %d of %d parameters; inlined: %d of %d", found[0], params[0], found[1], params[1])
			// There are some in every kernel that GCC 12 built.
			for kind, n := range found {
				if n == 0 || n*2000 > params[kind] {
					t.Errorf("%v: %d of %d parameters", dwarfloc.SiteKind(kind), n, params[kind])
				}
			}
			known, ok := spills[img.BuildID()]
			if ok && found != [2]int64{known.entries, known.inline} {
				t.Errorf("got %v, want %d and %d", found, known.entries, known.inline)
			}
			for _, want := range known.examples {
				if !notStoredAt(t, img, want) {
					t.Errorf("not found: %s", want)
				}
			}
		})
	}
}

// TestStoredAfter: in a function with calls too, what no instruction has stored in a slot of the frame is no value yet: in Debian's 6.1 the instruction at the
// probe, or the next one, stores it first.
func TestStoredAfter(t *testing.T) {
	raced.OneGoroutine(t)
	if testing.Short() {
		t.Skip("reads kernel images")
	}
	cloud := testenv.CloudVmlinux(t)
	for _, tt := range []struct {
		function, caller, parameter string
	}{
		{"make_bpfptr", "btf_new_fd", "is_kernel"},
		{"rol32", "__find_acq_core", "word"},
	} {
		img, err := dwarfloc.Open(cloud, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		sites, err := img.Sites(t.Context(), dwarfloc.Name(tt.function))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, s := range sites {
			if !strings.HasPrefix(s.SymbolOffset(), tt.caller) {
				continue
			}
			params, err := s.Params()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range params {
				found = found || v.Name == tt.parameter && v.Loc.Doubt == reasons.Contradictory
			}
		}
		if !found {
			t.Errorf("%s of %s in %s is sure", tt.parameter, tt.function, tt.caller)
		}
	}
}

// byConvention reports whether the calling convention gives a parameter's location, and a
// register.
func byConvention(v *dwarfloc.Variable) bool {
	return v.Loc.Rule == rule.ABI && v.Loc.Kind == loc.KindRegister
}

// notStoredAt looks for an example.
func notStoredAt(t *testing.T, img *dwarfloc.Image, want string) bool {
	t.Helper()
	function, _, _ := strings.Cut(want, " ")
	sites, err := img.Sites(context.Background(), dwarfloc.Name(function))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sites {
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range params {
			answer := v.Reason.Detail
			if byConvention(v) {
				answer = v.Loc.Text(img.Arch())
			}
			if function+" "+s.SymbolOffset()+" "+v.Name+": "+answer == want {
				return true
			}
		}
	}
	return false
}
