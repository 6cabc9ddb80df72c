package guest_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/proof/harm"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestUprobeTable runs instructions with and without a uprobe in each kernel for amd64, and in those for arm64: what package probed says of
// uprobes holds there. GUEST_ENCODINGS is how many, besides those that were found wrong before. The emulated processor of amd64 has no
// AVX-512, and that of arm64 no extensions.
func TestUprobeTable(t *testing.T) {
	t.Parallel()
	for _, k := range someOf(t, kernelsOfTable(t)) {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			testenv.Tool(t, harm.Compilers[k.GOARCH])
			runner, err := harm.Compile(t.TempDir(), k.GOARCH)
			if err != nil {
				t.Fatal(err)
			}
			seed := setting(t, "GUEST_SEED", harm.Seed)
			r, err := k.Boot(t.Context(), &guest.Task{
				Limit: 10 * time.Minute, Files: map[string]string{guest.Runner: runner},
				Commands: [][]string{{"/init", guest.Encodings, strconv.Itoa(int(setting(t, "GUEST_ENCODINGS", either(3000, 300)))), strconv.FormatUint(seed, 10)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			var got guest.EncodingsRun
			if o := &r.Outputs[0]; o.Failed != "" || json.Unmarshal([]byte(o.Out), &got) != nil {
				t.Fatalf("%s\n%s%s", o.Failed, o.Out, o.Err)
			}
			t.Logf("seed %d: %d run, %d hit, %d differ", seed, got.Run, got.Hit, got.Differ)
			for _, w := range got.Wrong {
				t.Error(w)
			}
			if got.Hit < got.Run/4 || got.Differ == 0 {
				t.Error("the runs say nothing")
			}
		})
	}
}

// kernelsOfTable returns the kernels for amd64 and for arm64.
func kernelsOfTable(t *testing.T) []testKernel {
	out := kernelsOfPC(t)
	for _, k := range guest.FindKernels(t, guest.ARM64) {
		out = append(out, testKernel{k})
	}
	return out
}
