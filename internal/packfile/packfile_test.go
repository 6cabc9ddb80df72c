package packfile

import "testing"

// TestDraft writes and reads one site.
func TestDraft(t *testing.T) {
	w := NewWriter(Facts{Kernel: true})
	w.Add(7, &Site{Function: &Function{Name: "f", Qualified: "f"}, Addr: 4, In: 3})
	data, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(data, "x")
	if err != nil {
		t.Fatal(err)
	}
	refs, err := f.Of("f")
	if err != nil || len(refs) != 1 {
		t.Fatal(refs, err)
	}
	s, err := f.Site(refs[0])
	if err != nil || s.Addr != 4 {
		t.Fatal(s, err)
	}
}
