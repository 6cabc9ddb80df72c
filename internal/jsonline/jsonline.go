// Package jsonline writes lines of JSON that a terminal can show: whatever hides, or moves what is beside it, is written by its number.
package jsonline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Text is a line that is being written without encoding/json, for answers of hundreds of megabytes. Each method appends a name,
// with what is before it, and a value.
type Text []byte

// Quoted appends a string.
func (b *Text) Quoted(name, value string) {
	*b = Append(append(*b, name...), value)
}

// Number appends a number.
func (b *Text) Number(name string, value uint64) {
	*b = strconv.AppendUint(append(*b, name...), value, 10)
}

// Hex appends a number as a string of hexadecimal digits.
func (b *Text) Hex(name string, value uint64) {
	*b = append(strconv.AppendUint(append(append(*b, name...), `"0x`...), value, 16), '"')
}

// Optional appends a string, unless it is empty.
func (b *Text) Optional(name, value string) {
	if value != "" {
		b.Quoted(name, value)
	}
}

// OptionalNumber appends a number, unless it is 0.
func (b *Text) OptionalNumber(name string, value int) {
	if value != 0 {
		*b = strconv.AppendInt(append(*b, name...), int64(value), 10)
	}
}

// OptionalTrue appends true, unless the value is false.
func (b *Text) OptionalTrue(name string, value bool) {
	if value {
		*b = append(append(*b, name...), "true"...)
	}
}

// Qualified leaves out a qualified name that says no more than the own one.
func Qualified(own, qualified string) string {
	if own == qualified {
		return ""
	}
	return qualified
}

// Append appends a string as Write does.
func Append(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			var text bytes.Buffer
			_ = Write(&text, s) // neither a string nor a Buffer has errors
			return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// Write writes one line of JSON. What terminal.Text replaces is \uXXXX there, so that the line can
// be looked at; encoding/json does that to the first 32 characters only. A byte that is not of UTF-8 is
// U+FFFD.
func Write(w io.Writer, o any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return err
	}
	out := text.Bytes()
	if bytes.ContainsFunc(out, hidden) {
		out = nil
		for _, r := range text.String() {
			if !hidden(r) {
				out = utf8.AppendRune(out, r)
				continue
			}
			for _, u := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
		}
	}
	_, err := w.Write(out)
	return err
}

// hidden reports whether JSON has a character by its number. Outside of strings it has none of these.
func hidden(r rune) bool { return r > '~' && terminal.Text(string(r)) != string(r) }
