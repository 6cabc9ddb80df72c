package truth

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// expected is a value that a program says it passed.
type expected struct {
	name  string
	kind  byte // 'x' for a number, 's' for a string, 'b' for bytes
	word  uint64
	bytes []byte
}

func readExpected(text string) (v expected, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || value == "" {
		return v, fmt.Errorf("%q is not a value", text)
	}
	v = expected{name: name, kind: value[0]}
	switch v.kind {
	case 'x':
		v.word, err = strconv.ParseUint(value[1:], 16, 64)
	case 's', 'b':
		v.bytes, err = hex.DecodeString(value[1:])
	default:
		err = fmt.Errorf("%q has an unknown kind", text)
	}
	return v, err
}

// String prints the value as shown prints what was fetched.
func (v *expected) String() string {
	switch v.kind {
	case 'x':
		return fmt.Sprintf("%#x", v.word)
	case 's':
		return strconv.Quote(string(v.bytes))
	}
	return hex.EncodeToString(v.bytes)
}

// equal reports whether a fetched value is as expected.
func equal(want *expected, got *plan.Value) bool {
	switch want.kind {
	case 'x':
		return word(got.Data) == want.word
	case 's':
		return text(got.Data) == string(want.bytes)
	}
	// A floating point number of four bytes is delivered in eight.
	return len(got.Data) >= len(want.bytes) && bytes.Equal(got.Data[:len(want.bytes)], want.bytes)
}

// shown prints a fetched value in the form of what was expected.
func shown(want *expected, got *plan.Value) string {
	switch want.kind {
	case 'x':
		return fmt.Sprintf("%#x", word(got.Data))
	case 's':
		return strconv.Quote(text(got.Data))
	}
	return hex.EncodeToString(got.Data)
}

// word returns a number, which is extended to 64 bits, and the first 8 bytes of an object.
func word(data []byte) uint64 {
	if len(data) < 8 {
		return 0
	}
	return binary.NativeEndian.Uint64(data)
}

func text(data []byte) string {
	s, _, _ := strings.Cut(string(data), "\x00")
	return s
}

// reason is why a value was not fetched.
func reason(v *plan.Value) string {
	if v.Unfetched.Code != reasons.None {
		return v.Unfetched.Code.String()
	}
	return reasonUnread
}

// refusal names the error of a definition.
func refusal(err error) string {
	var e *probe.Error
	if errors.As(err, &e) && strings.HasPrefix(e.Msg, "no variable") {
		return reasons.NoSuchVariable.String()
	}
	return reasonRefused
}
