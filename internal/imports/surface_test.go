package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// maxExported is how many names all public packages may export together. Besides the 380 of
// the first count there are those with which plan and its users tell where no probe may
// be (dwarfloc.CheckInstructions, ErrMidInstruction, ErrNotDecoded, Site.Returns,
// ErrMovingStack, ErrUnwinding), the reasons and rules for values that were wrong (loc.ReasonLoadBias,
// ReasonReassigned, ReasonContradictory, RuleFirst), and what values are made of in other
// languages than C (dwarfloc.Variable.Follow and Referent, Type.Variants and
// Parameter, TypeComplex, TypeMemberPointer, prologue.KindSlice), and where runs of an inlined
// body begin and end: what is known (dwarfloc.Way, Ways, Image.Ways and EachWays), the sites
// there, of which plan makes probes (SiteExit, Site.WaysIn, WaysOut and Before), which of them a
// plan has (plan.Ways, WaysAll, WaysEntry, Plan.NumSites), and their totals (coverage.Ways,
// MeasureWays); and spans: the bodies by which ends are paired (dwarfloc.Body, Site.Body and
// Once, probe.KindFrame), the bit of a probe that may fire again (instances.CookieAgain), what is
// planned and traced (plan.Span, NewSpan, tracer.OpenSpans), and what was not paired
// (tracer.Unpaired, Session.Unpaired). attachable.Table.Repeats went: a site knows it. How the kernel
// runs a probe, and so what a hit costs, is one type (attachable.Method, MethodNone, its String and
// Describe), asked for by two functions (Table.Method, UprobeMethod), since kprobes need a kernel's
// tables and uprobes only code; its totals are coverage.Probes and MeasureProbes. A plan in few programs
// is instances.Dispatch (NewDispatch, Load, Dispatched with its Attach and Close,
// ErrNotDispatched), and sites come and go by Attachment.Detach, Reattach and Silence. Plans that are
// too large to keep are visited (plan.Each, Visitor), with lists of their sites (sites.List,
// dwarfloc.SiteList, Image.List, SiteList.Len, Sites and Each). Programs hand on hits as plan.Event,
// which Plan.Event reads, and what the kernel takes long to end is ended elsewhere
// (instances.EndProbes). What a file may unpack to is bounded, and that can be changed (image.Options).
// How kernel memory is read without a helper is prologue.ReadCast, and what that calls
// references.CastFunction. Texts of others go to a terminal through terminal.Text, Line and Fprintf. Images
// that say that they are the same are told apart by image.File.Digest, Identity, and the type of that. Whether an
// image has changed, or was closed, is also asked of the one that completes its types (dwarfloc.Image.Changed).
// Probes move to where they cost less: Image.Along, Method.Cost. Several plans share programs:
// instances.NewDispatches, LoadDispatches. Definitions compute: the kinds of probe.Expr for that, TypeName,
// StepRange and TypeBytes; what an expression asks of the current task and of texts is loc.Task, OpTask,
// OpText, OpGlob, Glob and Expr.Pattern. Programs run under conditions (Expr.Conjuncts, plan.Condition), and those
// that cannot be computed are counted (references.MissingCounter, Dispatched.Missing,
// Session.Missing); why nothing is attached is Plan.Nothing, ErrNever. Large records are in a map (references.RecordMap, RecordSlots, RecordMapSize, RecordSize,
// ReleaseRecord, Dispatched.Crowded), and user memory that is not resident is read with
// prologue.ReadSleep (plan.Target.UserSpace). Hits are counted in the kernel
// (tracer.OpenSummary, SummaryOptions, HistogramOf, Summary, and the six words for what hits are told apart
// by), and what was counted is read as rows (Row, Key, Total, Number, Histogram, Bucket); a rate holds hits
// back (Session.Limited). A user's program has others around it (instances.Around, Subject.Around), so that hits
// are reported for which it returns something else than 0 (tracer.OpenSampler, Session.Around); maps and
// variables are shown and set by their types (mapview.Read, Map, Entry, Value, Field, Enumerator,
// Value.Histogram, Value.Number, Set), and probe.ExprKind.Several says of which there are many. Hits are kept in files (recording.NewWriter, NewReader, Source, and what a file has:
// Hit, Plan, Site, Arg, Value, Totals), with an argument's type as text (plan.Argument.TypeText), and have stacks
// (package stacks). That the hits of a process and its descendants cannot be told is tracer.ErrNoTree. What the
// tool prints in colors is terminal.Styled. Names with namespaces and classes are Site.QualifiedName, Named and
// Place, Image.QualifiedNames. A plan as a page is export.HTML, and a recording recording.HTML. Files with parts of the
// debug information are image.Related and what opens them; those that are not there dwarfloc.MissingError.
// What BTF says is dwarfloc.FromBTF (BTFOptions), what it does not NotToldError, loc.RuleABIBTF and ReasonNotDescribed.
// Packs are written by package pack (Write and Check, with Options, Summary and Part), of a file's bytes
// (image.File.Contents) and of all that types are (dwarfloc.Type.Word, Complete, Enumerators and their type; Image.NamedType); two are
// compared by pack.Diff (Differences, Change, Count), and many are in a pack.Archive (OpenArchive, WriteArchive).
const maxExported = 671

// TestSurface counts exported names: types, functions, methods of exported types,
// constants and variables. Each must have a doc comment of its own. A type's comment lists its
// constants with their meanings, since "go doc" shows no others for a type.
func TestSurface(t *testing.T) {
	const root = "../.."
	sum := 0
	var table strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch name := d.Name(); {
		case path == root:
		case strings.HasPrefix(name, "."), name == "internal", name == "testdata", name == "bench", name == "examples", name == "bin":
			return fs.SkipDir
		}
		s, err := surfaceOf(path)
		if err != nil {
			return err
		}
		for _, u := range s.undocumented {
			t.Errorf("%s has no doc comment of its own", u)
		}
		for _, c := range s.constants {
			if doc, ok := s.types[c.of]; ok && !strings.Contains(doc, c.name) {
				t.Errorf("%s: the comment of %s does not say what %s means", path, c.of, c.name)
			}
		}
		if s.names > 0 {
			rel, _ := filepath.Rel(root, path)
			fmt.Fprintf(&table, "%4d %s\n", s.names, rel)
			sum += s.names
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("exported names:\n%s%4d in all", &table, sum)
	if sum > maxExported {
		t.Errorf("%d exported names, at most %d", sum, maxExported)
	}
	if sum < maxExported/2 {
		t.Errorf("%d exported names: packages are missing", sum)
	}
}

// surface is what a package exports.
type surface struct {
	names        int
	undocumented []string // with their positions
	fset         *token.FileSet
	types        map[string]string // exported ones, with their comments
	constants    []constant        // of these types
}

// constant is an exported constant of a type of its package.
type constant struct{ name, of string }

func surfaceOf(dir string) (*surface, error) {
	s := &surface{fset: token.NewFileSet(), types: make(map[string]string)}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(s.fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if f.Name.Name == "main" {
			return s, nil
		}
		for _, d := range f.Decls {
			s.declaration(d)
		}
	}
	return s, nil
}

func (s *surface) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && !receiver(d.Recv.List[0].Type).IsExported() {
			return
		}
		// What the standard library's interfaces ask for needs no explanation.
		known := d.Recv != nil && (d.Name.Name == "Error" || d.Name.Name == "Unwrap")
		s.count(d.Name, known || d.Doc != nil)
	case *ast.GenDecl:
		of := "" // what constants without a type repeat
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					s.types[spec.Name.Name] = spec.Doc.Text() + d.Doc.Text()
				}
				s.count(spec.Name, spec.Doc != nil || d.Doc != nil && !d.Lparen.IsValid())
			case *ast.ValueSpec:
				if id, ok := spec.Type.(*ast.Ident); ok && d.Tok == token.CONST {
					of = id.Name
				} else if spec.Type != nil || len(spec.Values) > 0 {
					of = ""
				}
				for _, n := range spec.Names {
					if of != "" && n.IsExported() {
						s.constants = append(s.constants, constant{n.Name, of})
					}
					s.count(n, spec.Doc != nil || spec.Comment != nil || d.Doc != nil && !d.Lparen.IsValid())
				}
			}
		}
	}
}

func (s *surface) count(name *ast.Ident, documented bool) {
	if !name.IsExported() {
		return
	}
	s.names++
	if !documented {
		s.undocumented = append(s.undocumented, fmt.Sprintf("%v: %s", s.fset.Position(name.Pos()), name.Name))
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e
	}
	return ast.NewIdent("_")
}
