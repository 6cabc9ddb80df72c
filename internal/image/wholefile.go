package image

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// wholeFormats lists the formats in which distributions compress modules.
var wholeFormats = []struct {
	name, magic string
	open        func(r io.Reader, data []byte) (io.Reader, error) // r reads data
}{
	{"gzip", "\x1f\x8b", func(r io.Reader, _ []byte) (io.Reader, error) { return gzip.NewReader(r) }},
	{"xz", "\xfd7zXZ\x00", func(r io.Reader, data []byte) (io.Reader, error) {
		if err := checkXZ(data); err != nil {
			return nil, err
		}
		return xz.ReaderConfig{SingleStream: true}.NewReader(r)
	}},
	{"zstd", "\x28\xb5\x2f\xfd", func(r io.Reader, data []byte) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window(len(data))))
	}},
}

// isCompressed reports whether a file is compressed as a whole.
func isCompressed(data []byte) bool {
	for _, f := range wholeFormats {
		if bytes.HasPrefix(data, []byte(f.magic)) {
			return true
		}
	}
	return false
}

// unpackWhole decompresses a file.
func unpackWhole(path string, data []byte, b *budget) ([]byte, error) {
	for _, f := range wholeFormats {
		if !bytes.HasPrefix(data, []byte(f.magic)) {
			continue
		}
		r, err := f.open(&from{bytes.NewReader(data), b}, data)
		if err != nil {
			return nil, fmt.Errorf("%s: decompress %s: %w", path, f.name, err)
		}
		var out bytes.Buffer
		_, err = io.Copy(&spent{&out, b}, r)
		if c, ok := r.(*zstd.Decoder); ok {
			c.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: decompress %s: %w", path, f.name, err)
		}
		return out.Bytes(), nil
	}
	return data, nil
}

// spent counts what is unpacked.
type spent struct {
	io.Writer
	b *budget
}

func (w *spent) Write(p []byte) (int, error) {
	if err := w.b.spend(len(p)); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}
