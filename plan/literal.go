package plan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Values are decoded to int64, uint64, float64, bool, string, the types of tree.go, and these.
type (
	char    byte
	letter  rune   // of a type for all of Unicode
	literal string // printed as it is
)

// show returns a decoded value's text.
func show(x any) string {
	switch x := x.(type) {
	case nil:
		return "?"
	case char:
		return quoteChar(byte(x))
	case letter:
		return strconv.QuoteRune(rune(x))
	case string:
		return strconv.Quote(x)
	}
	return fmt.Sprint(x)
}

func hexText(u uint64) literal { return literal("0x" + strconv.FormatUint(u, 16)) }

func rawBytes(b []byte) literal { return literal(fmt.Sprintf("%x", b)) }

// littleEndian reports whether the machine is.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// number reads up to 8 bytes in the machine's order.
func number(b []byte) uint64 {
	var all [8]byte
	if littleEndian() {
		copy(all[:], b)
	} else {
		copy(all[8-min(len(b), 8):], b)
	}
	return binary.NativeEndian.Uint64(all[:])
}

// extended returns the low size bytes of a number as a signed one.
func extended(u uint64, size int) int64 {
	if size >= 8 {
		return int64(u)
	}
	shift := 64 - 8*size
	return int64(u<<shift) >> shift
}

// printable reports whether an array of characters is text, with or without a NUL at its end. One that begins with a NUL is, if nothing follows.
func printable(b []byte) bool {
	for i, c := range b {
		if c == 0 {
			return i > 0 || bytes.Count(b, []byte{0}) == len(b)
		}
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// text returns the bytes up to the first NUL.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

func quoteChar(c byte) string {
	if c < 0x80 {
		return strconv.QuoteRune(rune(c))
	}
	return strconv.Itoa(int(c))
}
