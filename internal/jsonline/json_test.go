package jsonline

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// TestAppendJSON: strings are written as encoding/json reads them, and as printObject writes them. What a
// terminal obeys is written by number.
func TestAppendJSON(t *testing.T) {
	texts := []string{"", "plain", "a<b>&c", "\u2028\u2029", "ü", "\xff\xfe", "\"\\/", "operator<<\x1b[31m", "\u009b31m", "\u202efdp", "\U000e0001", "\u200b"}
	for b := range 256 {
		texts = append(texts, string([]byte{'x', byte(b), 'y'}))
	}
	for _, text := range texts {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(text); err != nil {
			t.Fatal(err)
		}
		got := Append(nil, text)
		if terminal.Text(string(got)) != string(got) {
			t.Errorf("%q: %q", text, got)
		}
		var there, back string
		if err := errors.Join(json.Unmarshal(got, &back), json.Unmarshal(want.Bytes(), &there)); err != nil || back != there {
			t.Errorf("%q: %s is read as %q, want %q (%v)", text, got, back, there, err)
		}
		var object bytes.Buffer
		if err := Write(&object, []string{text}); err != nil || object.String() != "["+string(got)+"]\n" {
			t.Errorf("%q: %s, want %s (%v)", text, object.String(), got, err)
		}
	}
}
