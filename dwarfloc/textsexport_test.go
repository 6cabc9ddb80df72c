package dwarfloc

import "testing"

// RowIn is a row of the line table, by its address, and a record of a unit that is asked whether its function begins there.
type RowIn struct {
	unit int
	rec  int32
	addr uint64
}

// Beginning is the answer.
type Beginning struct{ First, Known bool }

// Beginnings asks about all records and rows of an image: about each function alone, or once the code of others is known.
func Beginnings(t *testing.T, path string, alone bool) map[RowIn]Beginning {
	t.Helper()
	img, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	by := img.by.(dwarfImage)
	if err := by.prepare(true); err != nil {
		t.Fatal(err)
	}
	out := make(map[RowIn]Beginning)
	if err := by.r.Index.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range by.units {
		u := &by.units[i]
		rows, err := u.Rows()
		if err != nil {
			t.Fatal(err)
		}
		for rec := range u.Recs {
			if alone {
				u.Body.Forget()
			} else if _, err := u.Body.Code(int32(len(u.Recs) - 1 - rec)); err != nil {
				t.Fatal(err)
			}
			for k := range rows {
				q := RowIn{i, int32(rec), rows[k].Addr}
				first, known, err := u.Body.BeginsAt(q.rec, q.addr)
				if err != nil {
					t.Fatal(err)
				}
				out[q] = Beginning{first, known}
			}
		}
	}
	return out
}
