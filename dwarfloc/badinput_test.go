package dwarfloc

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	d, err := fixtures.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// everything asks an image all questions. Each answer must print; an error must
// start with the path and say no result. It returns the answers as one text.
func everything(t testing.TB, data []byte) (string, error) {
	t.Helper()
	img, err := FromBytes("test", data)
	if err != nil {
		if img != nil {
			t.Fatalf("an image and the error %v", err)
		}
		return "", checkError(t, err)
	}
	ctx := context.Background()
	if err := img.Scan(ctx, nil); err != nil {
		return "", checkError(t, err)
	}
	var out strings.Builder
	names, err := img.FunctionNames(ctx)
	if err != nil {
		return "", checkError(t, err)
	}
	for _, n := range names {
		img.Symbols(n)
	}
	sites, err := img.Sites(ctx, Every{})
	if err != nil {
		if sites != nil {
			t.Fatalf("sites and the error %v", err)
		}
		return "", checkError(t, err)
	}
	fmt.Fprintf(&out, "%d functions, %d sites\n", len(names), len(sites))
	for _, s := range sites {
		params, err := s.Params()
		if err != nil {
			fmt.Fprintf(&out, "%s: %v\n", s, checkError(t, err))
			continue
		}
		for _, v := range params {
			fmt.Fprintf(&out, "%s: %s\n", s, variableLine(t, img, v))
		}
	}
	return out.String(), nil
}

// variableLine prints a variable in one line and checks what holds for each.
func variableLine(t testing.TB, img *Image, v *Variable) string {
	t.Helper()
	if v.Type == nil {
		t.Fatalf("%s has no type", v.Name)
	}
	size, err := v.Type.ByteSize()
	if err != nil {
		size = -2
		_ = checkError(t, err)
	}
	where := v.Loc.Text(img.arch)
	if v.Located() && (v.Loc.Kind == KindNone || where == "" || v.Loc.Rule == RuleNone) {
		t.Fatalf("%s is located, but where (%q) and by which rule (%v)?", v.Name, where, v.Loc.Rule)
	}
	line := fmt.Sprintf("%s %s, %s, %d bytes: ", v.Role, v.Name, v.Type, size)
	if v.Located() {
		return line + fmt.Sprintf("%s %s (%s)", v.Loc.Kind, where, v.Loc.Rule)
	}
	if v.Reason.Code.Text() == "" {
		t.Fatalf("%s has the reason %v, which has no text", v.Name, v.Reason)
	}
	if v.Loc.Kind != KindNone {
		return line + fmt.Sprintf("%s %s (%s) %s", v.Loc.Kind, where, v.Loc.Rule, v.Reason)
	}
	return line + v.Reason.String()
}

func checkError(t testing.TB, err error) error {
	t.Helper()
	if !strings.HasPrefix(err.Error(), "test: ") {
		t.Fatalf("the error does not name the file: %v", err)
	}
	return err
}

// timeLimit makes a test that hangs fail with the goroutines' stacks.
func timeLimit(d time.Duration, what string) (stop func()) {
	timer := time.AfterFunc(d, func() { panic("more than " + d.String() + ": " + what) })
	return func() { timer.Stop() }
}

// FuzzOpen feeds damaged images. An error is fine, a panic or a hang is not.
func FuzzOpen(f *testing.F) {
	for _, n := range fixtures.Names() {
		if !strings.Contains(n, "-gz") { // decompression takes most of the time of each try
			f.Add(fixture(f, n))
		}
	}
	f.Add(writeImage([]cu{{version: 5, root: unitRoot()}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer timeLimit(30*time.Second, fmt.Sprintf("an image of %d bytes", len(data)))()
		_, _ = everything(t, data)
	})
}
