package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

var (
	planA = &Plan{"f* a b", "event"}
	siteA = &Site{Plan: planA, Text: "f inlined in g+0x1", Function: "f", Qualified: "n::f", Place: "g+0x1", Addr: 1 << 63, Again: true, Args: []Arg{{"a", "int", ""}, {"b", "char *", ""}}}
	siteB = &Site{Plan: &Plan{"other", ""}, Text: "other", Function: "other", Place: "other", Args: []Arg{}}
)

// hits are of all kinds of values.
func hits() (out []*Hit) {
	for i, v := range []Value{
		{"-5", int64(-5), false}, {"18446744073709551615", uint64(math.MaxUint64), false}, {"1.5", 1.5, false}, {"NaN", "NaN", false},
		{"true", true, false}, {"false", false, false}, {"?", nil, true}, {`"text\x00"`, "text\x00", false}, {"0x10", "0x10", false},
		{"'a'", "a", false}, {"'\\x80'", uint64(128), false}, {`"text\x00"`, "text\x00", false}, {"", "", false}, {`""`, "", false},
	} {
		out = append(out, &Hit{Time: time.Duration(1000 - i), PID: i, TID: math.MaxInt32, Comm: "task", Site: siteA, Values: []Value{v, {"1", int64(1), false}}})
	}
	out[3].Stack = []stacks.Frame{
		{Addr: 1 << 63, Function: "f", Inlined: true, File: "f.c", Line: 7, Object: "[kernel]"}, {Addr: 1 << 63, Function: "g", Offset: 9, Object: "[kernel]"}, {},
	}
	out = append(out, &Hit{Time: math.MaxInt64, Site: siteB, Values: []Value{}, End: siteA, Duration: -1, Results: []Value{{"1", int64(1), false}, {"?", nil, true}}})
	return out
}

var totals = Totals{1, 2, 9, tracer.Unpaired{Ends: 3, Begins: 4, Open: 5, Full: math.MaxUint64}}

func written(t testing.TB, list []*Hit) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range list {
		if err := w.Write(h); err != nil {
			t.Fatal(err)
		}
		if i%100 == 99 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(totals); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readAll(b []byte) (list []*Hit, t Totals, err error) {
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, t, err
	}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, r.Totals(), nil
		}
		if err != nil {
			return list, t, err
		}
		list = append(list, h)
	}
}

// TestRoundTrip: what was written is read.
func TestRoundTrip(t *testing.T) {
	want := hits()
	for range 6 {
		want = append(want, want...) // several sections of hits
	}
	got, n, err := readAll(written(t, want))
	if diff := cmp.Diff(want[:100], got[:100]); diff != "" || err != nil || n != totals || len(got) != len(want) {
		t.Errorf("%d of %d hits, %+v, %v (-want +got):\n%s", len(got), len(want), n, err, diff)
	}
	for i := range want {
		if !cmp.Equal(want[i].Values, got[i].Values) || want[i].Time != got[i].Time {
			t.Fatalf("hit %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestDamaged: a file that was cut off or changed has an error with the place, and what is before that.
func TestDamaged(t *testing.T) {
	whole := written(t, hits())
	for n := range len(whole) {
		list, _, err := readAll(whole[:n])
		if err == nil || n >= headSize && !errors.Is(err, ErrUnfinished) || n < headSize && !errors.Is(err, ErrNotRecording) || len(list) > 0 && !cmp.Equal(list, hits()[:len(list)]) {
			t.Fatalf("cut off at %d: %d hits, %v", n, len(list), err)
		}
	}
	for n := range whole {
		bad := bytes.Clone(whole)
		bad[n] ^= 0x55
		if _, _, err := readAll(bad); err == nil {
			t.Errorf("a change at %d is not seen", n)
		}
	}
	bad := bytes.Clone(whole)
	bad[headSize+sectionHead]++
	if _, _, err := readAll(bad); fmt.Sprint(err) != "section 1 (a plan), offset 0xc: its checksum is wrong: the file is damaged" {
		t.Error(err)
	}
	if _, _, err := readAll(append(bytes.Clone(whole), 0)); err == nil || !strings.HasSuffix(err.Error(), "something follows the end") {
		t.Error(err)
	}
	var b bytes.Buffer
	w, _ := NewWriter(&b)
	for _, contents := range [][]byte{{0, 0, 0, 0, 0, 9, 0, 0}} {
		_ = w.section(kindSite, contents)
	}
	if _, _, err := readAll(b.Bytes()); fmt.Sprint(err) != "section 1 (a site), offset 0x16: a site of the plan 0, of 0" {
		t.Error(err)
	}
}

// FuzzReader: any file is read to an end, and what was read is written and read again. Checksums are made
// right, so that contents are looked at.
func FuzzReader(f *testing.F) {
	whole := written(f, hits())
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		list, _, err := readAll(repaired(b))
		for _, h := range list {
			for _, v := range append(h.Values, h.Results...) {
				if x, ok := v.Any.(float64); ok && x != x {
					return // it differs from itself
				}
			}
		}
		if err != nil && len(list) == 0 {
			return
		}
		again, _, err := readAll(written(t, list))
		if err != nil || !reflect.DeepEqual(list, again) {
			t.Fatalf("%v:\n%s", err, cmp.Diff(list, again))
		}
	})
}

// repaired returns a file with right checksums.
func repaired(b []byte) []byte {
	if len(b) < headSize {
		return b
	}
	out := bytes.NewBuffer(append([]byte(nil), b[:headSize]...))
	w := &Writer{w: out}
	for rest := b[headSize:]; len(rest) > sectionHead; {
		n := min(int(rest[1])|int(rest[2])<<8, len(rest)-sectionHead)
		_ = w.section(rest[0], rest[sectionHead:sectionHead+n])
		rest = rest[sectionHead+n:]
	}
	return out.Bytes()
}
