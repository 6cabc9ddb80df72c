package mapview

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

var (
	u8    = &btf.Int{Name: "unsigned char", Size: 1}
	u32   = &btf.Int{Name: "unsigned int", Size: 4}
	u64   = &btf.Int{Name: "unsigned long", Size: 8}
	s32   = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	flag  = &btf.Int{Name: "_Bool", Size: 1, Encoding: btf.Bool}
	char  = &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	color = &btf.Enum{Name: "color", Size: 4, Values: []btf.EnumValue{{Name: "RED", Value: 0}, {Name: "BLUE", Value: 2}}}
	text  = &btf.Array{Type: char, Index: u32, Nelems: 8}
	slots = &btf.Array{Type: u64, Index: u32, Nelems: 4}
	inner = &btf.Union{Size: 4, Members: []btf.Member{{Name: "whole", Type: u32}, {Name: "part", Type: u8}}}
	// Its members are in C: u32 n; u32 low:3, high:5; union { u32 whole; u8 part; }; enum color c; char name[8];
	// u64 slots[4]; void *p; float f; bool ok.
	all = &btf.Struct{Name: "all", Size: 80, Members: []btf.Member{
		{Name: "n", Type: s32},
		{Name: "low", Type: u32, Offset: 32, BitfieldSize: 3}, {Name: "high", Type: s32, Offset: 35, BitfieldSize: 5},
		{Type: inner, Offset: 64}, {Name: "c", Type: color, Offset: 96}, {Name: "name", Type: text, Offset: 128},
		{Name: "slots", Type: slots, Offset: 192}, {Name: "p", Type: &btf.Pointer{Target: &btf.Void{}}, Offset: 448},
		{Name: "f", Type: &btf.Float{Name: "float", Size: 4}, Offset: 512}, {Name: "ok", Type: flag, Offset: 544},
	}}
)

func spec() *ebpf.CollectionSpec {
	return &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{
			"table": {Type: ebpf.Hash, KeySize: 8, ValueSize: 80, Key: text, Value: &btf.Typedef{Name: "all_t", Type: all}, MaxEntries: 4},
			"each":  {Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, Key: u32, Value: u64, MaxEntries: 2},
			"plain": {Type: ebpf.Hash, KeySize: 4, ValueSize: 12, MaxEntries: 4},
			"ring":  {Type: ebpf.RingBuf, MaxEntries: 4096},
			".data": {Type: ebpf.Array},
		},
		Variables: map[string]*ebpf.VariableSpec{
			"limit":  {Name: "limit", SectionName: ".data", Value: make([]byte, 4), Type: &btf.Var{Name: "limit", Type: s32}},
			"config": {Name: "config", SectionName: ".bss", Value: make([]byte, 80), Type: &btf.Var{Name: "config", Type: all}},
		},
	}
}

// TestSet: what is set is read back, by its type.
func TestSet(t *testing.T) {
	s := spec()
	for _, text := range []string{
		"limit=-5", "config.n=0x10", "config.low=5", "config.high=-3", "config.part=255", "config.c=BLUE", `config.name="a=b"`,
		"config.slots[2]=18446744073709551615", "config.f=1.5", "config.ok=true",
		`table[read].n=7`, `table["x.y"].name=abc`, "table.read.c=BLUE", "each[1]=9",
	} {
		if err := Set(s, text); err != nil {
			t.Error(err)
		}
	}
	show := func(ty btf.Type, b []byte) string { return decode(ty, b, 0).String() }
	if got := show(s32, s.Variables["limit"].Value); got != "-5" {
		t.Errorf("limit is %s", got)
	}
	config := decode(all, s.Variables["config"].Value, 0)
	want := `{n=16, low=5, high=-3, whole=255, part=255, c=BLUE, name="a=b", slots=[0, 0, 18446744073709551615, 1 zeros], p=0x0, f=1.5, ok=true}`
	if got := config.String(); got != want {
		t.Errorf("config is %s, want %s", got, want)
	}
	j, err := json.Marshal(config)
	if want := `{"n":16,"low":5,"high":-3,"whole":255,"part":255,"c":"BLUE","name":"a=b","slots":[0,0,18446744073709551615,0],"p":"0x0","f":1.5,"ok":true}`; string(j) != want || err != nil {
		t.Errorf("JSON %s, %v", j, err)
	}
	c := s.Maps["table"].Contents
	if len(c) != 2 || show(text, c[0].Key.([]byte)) != `"read"` || !strings.HasPrefix(show(all, c[0].Value.([]byte)), `{n=7, low=0, high=0, whole=0, part=0, c=BLUE, name=""`) {
		t.Errorf("table has %+v", c)
	}
	if v := s.Maps["each"].Contents[0].Value.([][]byte); len(v) != 1 || show(u64, v[0]) != "9" {
		t.Errorf("each has %v", v)
	}
	if name, h, rest := config.Histogram(); name != "slots" || len(h) != 4 || strings.Contains(rest.String(), "slots") {
		t.Errorf("histogram %s of %d in %v", name, len(h), rest)
	}
}

// TestSetErrors: what cannot be set says why.
func TestSetErrors(t *testing.T) {
	for text, want := range map[string]string{
		"limit":                 "expected NAME=VALUE",
		"limits=1":              `no variable or map "limits"; did you mean limit?`,
		"limit=3000000000":      `"3000000000" is no signed number of 32 bits`,
		"limit.x=1":             "limit has no members",
		"config=1":              "config is a structure: set its members",
		"config.nam=1":          `config has no member "nam"; did you mean name?`,
		"config.low=8":          `"8" is no unsigned number of 3 bits`,
		"config.p=1":            "config.p is a pointer",
		"config.slots=1":        "config.slots is an array",
		"config.slots[4]=1":     `config.slots has the elements 0 to 3, not "4"`,
		"config.name=123456789": "config.name has 8 bytes",
		"config.ok=2":           `"2" is no unsigned number of 1 bits`,
		"table=1":               "table is a map: say which entry",
		"table[a=1":             "expected NAME=VALUE",
		"each[2]=1":             "each has the entries 0 to 1",
		"plain[1]=1":            "plain[1] has 12 bytes, and the object does not say of which type",
		"ring[1]=1":             "ring is of the type RingBuf: its entries cannot be set",
		".data[0]=1":            `a name is missing`,
	} {
		if err := Set(spec(), text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestAdd: values of processors are added up member by member.
func TestAdd(t *testing.T) {
	s := spec()
	for _, text := range []string{"config.n=1", "config.slots[1]=2", "config.name=a"} {
		if err := Set(s, text); err != nil {
			t.Fatal(err)
		}
	}
	sum := decode(all, make([]byte, 80), 0)
	for range 3 {
		sum.add(decode(all, s.Variables["config"].Value, 0))
	}
	if got := fmt.Sprint(sum); !strings.HasPrefix(got, `{n=3, low=0, high=0, whole=0, part=0, c=RED, name="a", slots=[0, 6, 2 zeros]`) {
		t.Errorf("the sum is %s", got)
	}
}

// FuzzSet: whatever is set, there is an error or the object keeps its size, and what is set can be read.
func FuzzSet(f *testing.F) {
	for _, text := range []string{"limit=1", "config.slots[1]=2", `table["a.b"].name="x"`, "each[1]=0x7", "config.low=3", "a[=", "config..=1", "table[]=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := spec()
		if Set(s, text) != nil {
			return
		}
		for name, v := range s.Variables {
			if len(v.Value) != int(v.Size()) {
				t.Fatalf("%q: %s has %d bytes", text, name, len(v.Value))
			}
			_ = decode(v.Type.Type, v.Value, 0).String()
		}
		for name, m := range s.Maps {
			for _, e := range m.Contents {
				if len(e.Key.([]byte)) != int(m.KeySize) {
					t.Fatalf("%q: a key of %s has %d bytes", text, name, len(e.Key.([]byte)))
				}
			}
		}
	})
}
