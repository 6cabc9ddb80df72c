package dwarfloc

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// A source line can have code in several places: compilers move its statements apart,
// copy and inline them. In each body of a function (the out-of-line one and each inlined
// instance), the rows of the line table that name the line are sorted by address and
// view; consecutive rows form a run. A run that begins a statement (is_stmt) has one
// site, at the first row that does. Parts of a statement that the compiler moved
// elsewhere have none. If a body has several sites of a line at one address, only the
// first is kept, because the address can have only one probe.
//
// A row belongs to the body that holds its address and view and whose function has the
// nearest declaration above the line in the same file. So a caller's line stays the
// caller's even if the address is also the start of an inlined instance. An inlined
// instance whose code was merged into its neighbours has the rows between its entry view
// and the next instance's. A last statement without code has its row at the address
// where the body's code ends.
//
// If the line table has no row for the line that declares a function (mostly the first
// row is that of the opening brace), the line's sites are the starts of the function's
// bodies. If it has none for a line that calls an inlined function, the site is the
// start of that instance: clang writes no row for a call if only inlined code is left.

// LineMatcher selects source lines.
type LineMatcher interface {
	// MatchBase reports whether a file with this last path component may match.
	MatchBase(base string) bool
	// Match reports whether a line of a file matches. The file's path is relative if it
	// is below the compilation directory.
	Match(file string, line int) bool
}

// LineSites returns the sites of lines in bodies, each given by the site where it begins
// (kind SiteEntry or SiteInline), in a stable order: by function, line, address, view.
// want decides which lines in the code of a body count.
func (img *Image) LineSites(ctx context.Context, bodies []*Site, want func(body *Site, file string, line int) bool) ([]*Site, error) {
	if err := img.by.hasLines(); err != nil {
		return nil, err
	}
	byUnit := make(map[*unit][]*Site)
	for _, s := range bodies {
		if s.u != nil && s.u.img == img {
			byUnit[s.u] = append(byUnit[s.u], s)
		}
	}
	units := slices.SortedFunc(maps.Keys(byUnit), func(a, b *unit) int { return cmp.Compare(a.Off, b.Off) })
	found := make([][]*Site, len(units))
	err := img.r.Index.Parallel(len(units), func(_ *index.Scanner, i int) (err error) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		found[i], err = units[i].linesOf(byUnit[units[i]], want)
		return err
	})
	if err != nil {
		return nil, err
	}
	return img.describeLines(slices.Concat(found...))
}

// linesOf is LineSites for the bodies in one unit.
func (u *unit) linesOf(bodies []*Site, want func(*Site, string, int) bool) ([]*Site, error) {
	rows, err := u.Rows()
	if err != nil {
		return nil, err
	}
	wanted := make(map[int32]*Site)
	var picked []int
	for _, s := range bodies {
		wanted[s.spot.Rec] = s
		ranges, err := u.Extent(&s.spot.PCs)
		if err != nil {
			return nil, err
		}
		for _, r := range ranges {
			i, _ := slices.BinarySearchFunc(rows, r.Lo, func(r dw.Row, a uint64) int { return cmp.Compare(r.Addr, a) })
			for ; i < len(rows) && rows[i].Addr <= r.Hi; i++ {
				if !rows[i].End && want(s, u.File(uint64(rows[i].File)), int(rows[i].Line)) {
					picked = append(picked, i)
				}
			}
		}
	}
	slices.Sort(picked)
	sites, err := u.sitesOfRows(rows, slices.Compact(picked), func(rec int32, r *dw.Row) bool {
		s := wanted[rec]
		return s != nil && want(s, u.File(uint64(r.File)), int(r.Line))
	})
	if err != nil {
		return nil, err
	}
	have := make(map[mark]bool)
	for _, s := range sites {
		have[mark{s.spot.Rec, s.File, s.Line}] = true
	}
	for _, s := range bodies {
		file, line, err := s.Declared()
		if err != nil {
			return nil, err
		}
		if file == "" || !want(s, file, line) || have[mark{s.spot.Rec, file, line}] {
			continue
		}
		start, err := u.bodySite(s.spot.Rec, SiteLine, file, line)
		if err != nil {
			return nil, err
		}
		if start != nil {
			sites = append(sites, start)
		}
	}
	calls, err := u.callSites(have, func(rec int32, file string, line int) bool {
		s := wanted[rec]
		return s != nil && want(s, file, line)
	})
	return append(sites, calls...), err
}

// callSites returns the starts of inlined instances as sites of the lines, in the
// enclosing bodies, that call them. accept selects them by body and line; lines in have
// are left out.
func (u *unit) callSites(have map[mark]bool, accept func(rec int32, file string, line int) bool) ([]*Site, error) {
	if u.Body.RowsOfCalls() {
		return nil, nil
	}
	var out []*Site
	type spot struct {
		mark
		addr uint64
	}
	taken := make(map[spot]bool)
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Flags&index.Inlined == 0 || r.Flags&index.HasPC == 0 || r.Parent < 0 || u.Recs[r.Parent].Flags&index.HasPC == 0 {
			continue
		}
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return nil, err
		}
		var index, at uint64
		var pcs dw.PCs
		if err := e.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrCallFile:
				index = v.U
			case dw.AttrCallLine:
				at = v.U
			default:
				pcs.Take(a, v)
			}
		}); err != nil {
			return nil, err
		}
		file, line := u.File(index), int(uint32(at))
		if file == "" || have[mark{r.Parent, file, line}] || !accept(r.Parent, file, line) {
			continue
		}
		addr, ok, err := u.Start(&pcs)
		if err != nil {
			return nil, err
		}
		if !ok || !u.img.r.Executable(addr) {
			continue
		}
		s, err := u.lineSite(r.Parent, file, line, entries.Place{Addr: addr, View: pcs.EntryView})
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		if at := (spot{mark{r.Parent, file, line}, s.Addr}); !taken[at] {
			taken[at] = true
			out = append(out, s)
		}
	}
	return out, nil
}

// mark is a line in a body.
type mark struct {
	rec  int32
	file string
	line int
}

// FileLineSites returns the sites of the lines that m selects, in any function, in the
// order of LineSites.
func (img *Image) FileLineSites(ctx context.Context, m LineMatcher) ([]*Site, error) {
	var mu sync.Mutex
	var found []*Site
	err := img.eachTable(ctx, m, func(w *index.Scanner, u *unit, t *dw.LineTable, files []bool) error {
		matched := false
		err := u.EachCodeRow(t, func(r *dw.Row) {
			matched = matched || r.Stmt && !r.End && uint64(r.File) < uint64(len(files)) && files[r.File] && m.Match(u.File(uint64(r.File)), int(r.Line))
		})
		if err != nil || !matched && u.Body.RowsOfCalls() {
			return err
		}
		if err := w.Open(u.Unit.Unit); err != nil {
			return err
		}
		rows, err := u.Rows()
		if err != nil {
			return err
		}
		defer u.ForgetRows()
		var picked []int
		for i := range rows {
			if r := &rows[i]; !r.End && uint64(r.File) < uint64(len(files)) && files[r.File] && m.Match(u.File(uint64(r.File)), int(r.Line)) {
				picked = append(picked, i)
			}
		}
		sites, err := u.sitesOfRows(rows, picked, func(int32, *dw.Row) bool { return true })
		if err != nil {
			return err
		}
		have := make(map[mark]bool)
		for _, s := range sites {
			have[mark{s.spot.Rec, s.File, s.Line}] = true
		}
		calls, err := u.callSites(have, func(_ int32, file string, line int) bool { return m.Match(file, line) })
		mu.Lock()
		defer mu.Unlock()
		found = append(append(found, sites...), calls...)
		return err
	})
	if err == nil && len(found) == 0 {
		found, err = img.declaredSites(ctx, m)
	}
	if err != nil {
		return nil, err
	}
	return img.describeLines(found)
}

// declaredSites returns the starts of the bodies of functions whose declarations are on
// lines that m selects.
func (img *Image) declaredSites(ctx context.Context, m LineMatcher) ([]*Site, error) {
	var mu sync.Mutex
	var found []*Site
	err := img.eachTable(ctx, m, func(w *index.Scanner, u *unit, _ *dw.LineTable, _ []bool) error {
		if err := w.Open(u.Unit.Unit); err != nil {
			return err
		}
		known := make(map[int32]holder)
		for i := range u.Recs {
			if u.Recs[i].Flags&index.HasPC == 0 {
				continue
			}
			e, err := u.Entry(u.Off + uint64(u.Recs[i].Off))
			if err != nil {
				return err
			}
			file, line, err := u.declaration(int32(i), e, known)
			if err != nil {
				return err
			}
			if file == "" || !m.Match(file, line) {
				continue
			}
			s, err := u.bodySite(int32(i), SiteLine, file, line)
			if err != nil {
				return err
			}
			if s != nil {
				mu.Lock()
				found = append(found, s)
				mu.Unlock()
			}
		}
		return nil
	})
	return found, err
}

// FileLines returns, by file, the sorted numbers of the lines that have code. m selects
// the files: FileLines calls Match only for line 0.
func (img *Image) FileLines(ctx context.Context, m LineMatcher) (map[string][]int, error) {
	var mu sync.Mutex
	all := make(map[string]map[int]struct{})
	err := img.eachTable(ctx, m, func(_ *index.Scanner, u *unit, t *dw.LineTable, files []bool) error {
		lines := make(map[uint32]map[int]struct{})
		err := u.EachCodeRow(t, func(r *dw.Row) {
			if r.Stmt && !r.End && uint64(r.File) < uint64(len(files)) && files[r.File] && u.img.r.Executable(r.Addr) {
				if lines[r.File] == nil {
					lines[r.File] = make(map[int]struct{})
				}
				lines[r.File][int(r.Line)] = struct{}{}
			}
		})
		mu.Lock()
		defer mu.Unlock()
		for f, set := range lines {
			name := u.File(uint64(f))
			if !m.Match(name, 0) {
				continue
			}
			if all[name] == nil {
				all[name] = make(map[int]struct{})
			}
			maps.Copy(all[name], set)
		}
		return err
	})
	out := make(map[string][]int)
	for f, set := range all {
		out[f] = slices.Sorted(maps.Keys(set))
	}
	return out, err
}

// SourceFiles returns the paths of all files in all line tables, sorted.
func (img *Image) SourceFiles(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	all := make(map[string]struct{})
	err := img.eachTable(ctx, anyFile{}, func(_ *index.Scanner, u *unit, t *dw.LineTable, _ []bool) error {
		names := make([]string, t.Files())
		for i := range names {
			names[i] = u.FilePath(t, i)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, n := range names {
			all[n] = struct{}{}
		}
		return nil
	})
	return slices.Sorted(maps.Keys(all)), err
}

type anyFile struct{}

func (anyFile) MatchBase(string) bool  { return true }
func (anyFile) Match(string, int) bool { return true }

// eachTable calls f, on all processors, for each unit whose line table has a file that
// MatchBase accepts. f gets the table, which is valid until f returns, and for each file
// index whether the file is accepted. Most of the work is to look at the names of all
// files (2.9 million in a kernel), so each distinct name is matched only once.
func (img *Image) eachTable(ctx context.Context, m LineMatcher, f func(w *index.Scanner, u *unit, t *dw.LineTable, files []bool) error) error {
	if err := img.by.hasLines(); err != nil {
		return err
	}
	if err := img.prepare(true); err != nil {
		return err
	}
	type memory struct {
		table dw.LineTable
		files []bool
		known map[index.NameRef]bool
	}
	workers := make([]memory, runtime.GOMAXPROCS(0))
	units := img.r.Index.AllUnits()
	err := img.r.Index.Parallel(len(units), func(w *index.Scanner, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		u := &img.units[units[i]]
		if u.IsType() {
			return nil
		}
		if err := u.Begin(&w.Table); err != nil || !u.HasStmtList {
			return err
		}
		mem := &workers[w.Worker]
		if mem.known == nil {
			mem.known = make(map[index.NameRef]bool)
		}
		if err := u.ReadLineTable(&mem.table); err != nil {
			return err
		}
		mem.files = mem.files[:0]
		matched := false
		for j := range mem.table.Files() {
			name := u.FileName(&mem.table, j)
			ref := index.RefOf(u.Lines(), name)
			ok, known := mem.known[ref]
			if !known || ref&index.NameSection == index.NameInfo {
				ok = m.MatchBase(base(u.Lines().Text(name)))
				mem.known[ref] = ok
			}
			matched = matched || ok
			mem.files = append(mem.files, ok)
		}
		if !matched {
			return nil
		}
		return f(w, u, &mem.table, mem.files)
	})
	if err != nil {
		return err
	}
	return img.Changed()
}

// base returns the last component of a path.
func base(p string) string {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '/' {
			return p[i+1:]
		}
	}
	return p
}

// describeLines describes and sorts sites of lines.
func (img *Image) describeLines(sites []*Site) ([]*Site, error) {
	for _, s := range sites {
		if err := s.by.describe(s); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(sites, func(a, b *Site) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), compareSites(a, b))
	})
	sites = slices.CompactFunc(sites, func(a, b *Site) bool {
		return !a.Inlined() && !b.Inlined() && a.Addr == b.Addr && a.Function == b.Function && a.File == b.File && a.Line == b.Line
	})
	return sites, img.Changed()
}

// compilationDir is inside.CompilationDir.
func (img *Image) compilationDir(file string) string {
	dir := ""
	if img.by.hasLines() != nil {
		return dir
	}
	_ = img.guard(func() error {
		if err := img.prepare(true); err != nil {
			return err
		}
		t := dw.Tables.Get().(*dw.AbbrevTable)
		defer dw.Tables.Put(t)
		for i := range img.units {
			u := &img.units[i]
			if u.Begin(t) != nil || u.CompDir() == "" {
				continue
			}
			own := u.Name() == file
			if own || dir == "" {
				dir = u.CompDir()
			}
			if own {
				break
			}
		}
		return nil
	})
	return dir
}
