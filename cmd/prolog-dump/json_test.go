package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestAppendJSON: strings are written as encoding/json writes them.
func TestAppendJSON(t *testing.T) {
	texts := []string{"", "plain", "a<b>&c", "\u2028\u2029", "ü", "\xff\xfe", "\"\\/", "operator<<\x1b[31m"}
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
		if got := appendJSON([]byte("before:"), text); string(got)+"\n" != "before:"+want.String() {
			t.Errorf("%q: %s, want %s", text, got, want.String())
		}
	}
}
