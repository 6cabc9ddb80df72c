package image

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxWhole bounds the decompressed size of a file, in bytes. Distributions compress
// modules; the largest has 0.4 GB with its debug information.
const maxWhole = 2 << 30

// wholeFormats lists the formats in which distributions compress modules.
var wholeFormats = []struct {
	name, magic string
	open        func(io.Reader) (io.Reader, error)
}{
	{"gzip", "\x1f\x8b", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"xz", "\xfd7zXZ\x00", func(r io.Reader) (io.Reader, error) { return xz.NewReader(r) }},
	{"zstd", "\x28\xb5\x2f\xfd", func(r io.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
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
func unpackWhole(path string, data []byte) ([]byte, error) {
	for _, f := range wholeFormats {
		if !bytes.HasPrefix(data, []byte(f.magic)) {
			continue
		}
		r, err := f.open(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%s: decompress %s: %w", path, f.name, err)
		}
		var out bytes.Buffer
		n, err := io.Copy(&out, io.LimitReader(r, maxWhole+1))
		if c, ok := r.(*zstd.Decoder); ok {
			c.Close()
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: decompress %s: %w", path, f.name, err)
		case n > maxWhole:
			return nil, fmt.Errorf("%s: it holds more than %d bytes: decompress it first", path, uint64(maxWhole))
		}
		return out.Bytes(), nil
	}
	return data, nil
}
