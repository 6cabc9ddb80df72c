package mutate

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"
	"os"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func TestTimes(t *testing.T) {
	for _, n := range append(append(fixtures.Names(), fixtures.Relocatable()...), fixtures.Programs()...) {
		data, _ := fixtures.Bytes(n)
		try(t, n, data)
	}
	for _, f := range os.Args {
		if f[0]=='/' { data, err := os.ReadFile(f); if err==nil && !bytes.HasSuffix([]byte(f), []byte(".test")) { try(t, f, data) } }
	}
}
func try(t *testing.T, n string, data []byte) {
		start := time.Now()
		r := ask(context.Background(), func() (*dwarfloc.Image, error) { return dwarfloc.FromBytes(n, data, nil) }, nil)
		fmt.Println(n, len(data), time.Since(start), r.Err, r.Digest[:8], len(r.codes))
		for _, f := range r.Faults { fmt.Println("   ", f) }
}
