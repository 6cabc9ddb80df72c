package plan_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestTarget: the zero Target reads memory as the image needs it, and other values are kept.
func TestTarget(t *testing.T) {
	for _, c := range []struct {
		image, def string
		target     plan.Target
		want       plan.Target
		helper     string
	}{
		{"run-gcc12-O2-dwarf5.exe", "words text:string", plan.Target{}, plan.Target{Reads: prologue.ReadUser}, "bpf_probe_read_user_str"},
		{"basic-gcc12-O2-dwarf5.elf", "my_func_three_abcd label:string", plan.Target{}, plan.Target{Reads: prologue.ReadKernel}, "bpf_probe_read_kernel_str"},
		{"module-gcc12-O2-dwarf5.ko", "my_func_three_abcd label:string", plan.Target{}, plan.Target{Reads: prologue.ReadKernel}, "bpf_probe_read_kernel_str"},
		{"run-gcc12-O2-dwarf5.exe", "words text:string", plan.Target{Slide: 4096, Reads: prologue.ReadLegacy, UprobeMulti: true},
			plan.Target{Slide: 4096, Reads: prologue.ReadLegacy, UprobeMulti: true}, "bpf_probe_read_str"},
	} {
		p, err := plantest.Fixture(t, c.image, c.def, plan.Options{Target: c.target})
		if err != nil {
			t.Errorf("%s: %v", c.image, err)
			continue
		}
		if text := p.Instances[0].Prologue.String(); p.Target != c.want || !strings.Contains(text, "call "+c.helper+"\n") {
			t.Errorf("%s: target %+v, want %+v with %s:\n%s", c.image, p.Target, c.want, c.helper, text)
		}
	}
}

// TestMissingOrMistyped: with MissingFail a name that no function has is reported as that.
func TestMissingOrMistyped(t *testing.T) {
	_, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", "my_func_*_abcd arg", plan.Options{Missing: plan.MissingFail})
	if err == nil || errors.Is(err, plan.ErrMissingArgument) || !strings.Contains(err.Error(), `no variable "arg" in any function that "my_func_*_abcd" matches; nearest: arg1`) {
		t.Errorf("a name that is mistyped: %v", err)
	}
	_, err = plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", "my_func_*_abcd arg1", plan.Options{Missing: plan.MissingFail})
	if !errors.Is(err, plan.ErrMissingArgument) {
		t.Errorf("an argument that a site lacks: %v", err)
	}
}

// TestValues: values print with %v, and are Go values to those who want them.
func TestValues(t *testing.T) {
	p, err := plantest.Fixture(t, "run-gcc12-O2-dwarf5.exe", "words l ul t c=l:char x=ul:x64 text:string e n=$comm a=text:u8[2] lost=l", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &p.Sites[0]
	layout := s.Layout
	data := make([]byte, layout.Size)
	for i, v := range []any{int64(-5), uint64(1 << 63), true, 'A', uint64(255), "hi", int32(1), "comm", []byte{1, 2}} {
		to := data[layout.Fields[i].Offset:]
		switch v := v.(type) {
		case int64:
			binary.NativeEndian.PutUint64(to, uint64(v))
		case uint64:
			binary.NativeEndian.PutUint64(to, v)
		case rune:
			binary.NativeEndian.PutUint64(to, uint64(v))
		case bool:
			binary.NativeEndian.PutUint64(to, 1)
		case string:
			copy(to, v)
		case []byte:
			copy(to, v)
		}
	}
	binary.NativeEndian.PutUint64(data[layout.Fields[6].Offset:], 1) // the enumeration
	values := p.Values(0, 1<<9, data)
	enum := values[6].String()
	if _, ok := values[6].Any().(string); !ok || enum == "1" {
		t.Errorf("the enumeration is %s, %#v", enum, values[6].Any())
	}
	if got, want := fmt.Sprint(values), `[-5 9223372036854775808 true 'A' 0xff "hi" `+enum+` "comm" [1, 2] ?]`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	var got []any
	for _, v := range values {
		got = append(got, v.Any())
	}
	want := []any{int64(-5), uint64(1) << 63, true, "A", "0xff", "hi", enum, "comm", json.RawMessage("[1,2]"), nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnknownEnums: values out of range print too.
func TestUnknownEnums(t *testing.T) {
	for _, v := range []fmt.Stringer{prologue.Convention(99), prologue.Reads(99)} {
		if !strings.Contains(v.String(), "(99)") {
			t.Errorf("%T prints as %q", v, v)
		}
	}
}
