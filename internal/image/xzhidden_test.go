package image

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os/exec"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/raced"
)

// xzBlock is a block without contents that asks for a dictionary.
func xzBlock(dictionary byte) []byte {
	head := []byte{2, 0, 0x21, 1, dictionary, 0, 0, 0} // 12 bytes with its checksum, one filter: LZMA2
	b := binary.LittleEndian.AppendUint32(head, crc32.ChecksumIEEE(head))
	return append(b, 0, 0, 0, 0) // the end of the chunks, and padding
}

// xzFile is a stream of blocks whose index says that they have these sizes.
func xzFile(blocks []byte, sizes ...byte) []byte {
	sum := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(b)) }
	flags := []byte{0, 0} // no checksums of contents
	index := []byte{0, byte(len(sizes))}
	for _, s := range sizes {
		index = append(index, s, 0)
	}
	for len(index)%4 != 0 {
		index = append(index, 0)
	}
	index = append(index, sum(index)...)
	footer := append(binary.LittleEndian.AppendUint32(nil, uint32(len(index)/4-1)), flags...)
	return bytes.Join([][]byte{{0xfd, '7', 'z', 'X', 'Z', 0}, flags, sum(flags), blocks, index, sum(footer), footer, []byte("YZ")}, nil)
}

// TestXZBlocksThatTheIndexHides: the index says that one block is where there are two, and the second
// asks for 4 GiB. The decoder goes by the blocks.
func TestXZBlocksThatTheIndexHides(t *testing.T) {
	const small, huge = 0, 40
	one, two := xzBlock(small), xzBlock(huge)
	if err := checkXZ(xzFile(one, 13)); err != nil {
		t.Errorf("one block: %v", err)
	}
	if err := checkXZ(xzFile(append(bytes.Clone(one), two...), 13, 13)); err == nil || !strings.Contains(err.Error(), "dictionary") {
		t.Errorf("two blocks: %v", err)
	}
	for _, size := range []byte{29, 30, 32} {
		if err := checkXZ(xzFile(append(bytes.Clone(one), two...), size)); err == nil {
			t.Errorf("a block of %d bytes in which there are two is accepted", size)
		}
	}
}

// TestXZProgram: what the xz program writes, with any checksum and options, is accepted.
func TestXZProgram(t *testing.T) {
	raced.OneGoroutine(t)
	tool, err := exec.LookPath("xz")
	if err != nil {
		t.Skip(err)
	}
	plain := bytes.Repeat([]byte("some text, and more of it. "), 40000)
	for i := range plain {
		plain[i] ^= byte(i * i >> 9)
	}
	for _, options := range [][]string{
		{"-1"}, {"-9e"}, {"--check=none"}, {"--check=crc32"}, {"--check=sha256"}, {"--block-size=100000"}, {"-T2", "--block-size=65536"},
		{"--lzma2=preset=6,dict=2MiB"}, {"--x86", "--lzma2"},
	} {
		for _, n := range []int{0, 1, 5, 1000, len(plain)} {
			cmd := exec.Command(tool, append(options, "-c")...)
			cmd.Stdin = bytes.NewReader(plain[:n])
			packed, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if err := checkXZ(packed); err != nil {
				t.Errorf("xz %v of %d bytes: %v", options, n, err)
			}
		}
	}
}
