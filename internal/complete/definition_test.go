package complete

import (
	"context"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

func BenchmarkDefinition(b *testing.B) {
	path := testenv.Vmlinux(b)
	dir := b.TempDir()
	for _, text := range []string{"vfs_rea", "vfs_read file->f_p", "kmalloc s", "get_pa* p"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				img, err := dwarfloc.Open(path, &dwarfloc.Options{CacheDir: dir})
				if err != nil {
					b.Fatal(err)
				}
				if all, err := Definition(context.Background(), img, text); err != nil || len(all) == 0 {
					b.Errorf("%q, %v", all, err)
				}
				if err := img.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
