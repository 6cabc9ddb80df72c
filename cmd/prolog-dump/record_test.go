package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/recording"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// TestRecordedLines: a recording is printed as the hits were, byte by byte, in both formats.
func TestRecordedLines(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	running, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := plan.Options{Target: running.Target()}
	for _, span := range []bool{false, true} {
		var session *tracer.Session
		if span {
			def, err := probe.Parse("m* $params")
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.NewSpan(t.Context(), img, def, o)
			if err != nil {
				t.Fatal(err)
			}
			session, err = tracer.OpenSpans(t.Context(), running, []*plan.Span{p}, tracer.Options{})
			if err != nil {
				t.Fatal(err)
			}
		} else {
			var plans []*plan.Plan
			for _, text := range []string{
				"words l ul t e lv text:string", "named=many $params", "walk n->name:string n n->tag n->in n->matrix n->ok n->sc8 n->color n->level n->next->inp->s",
				"label%return $retval:string", "scalars c:char uc:x8 s us i:b4@2/32 u $comm", "m[aiu]* key",
			} {
				plans = append(plans, plantest.New(t, img, text, o))
			}
			if session, err = tracer.Open(t.Context(), running, plans, tracer.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		defer session.Close()
		cmd := exec.Command(path)
		cmd.Stdin = strings.NewReader("x")
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		go func() {
			defer stop()
			_ = cmd.Run()
		}()
		var text, lines, file bytes.Buffer
		w, err := recording.NewWriter(&file)
		if err != nil {
			t.Fatal(err)
		}
		showText, _ := hits.Printer(&text, &hits.Form{Format: "text"})
		showLine, _ := hits.Printer(&lines, &hits.Form{Format: "json"})
		var source recording.Source
		err = session.Run(ctx, func(h *tracer.Hit) error {
			x := source.Hit(h)
			return errors.Join(showText(x), showLine(x), w.Write(x))
		})
		if err := errors.Join(err, w.Close(recording.Totals{Lost: 5})); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text.String(), "\n"); n < 2 || !span && n < 7 {
			t.Fatalf("%d hits:\n%s", n, &text)
		}
		r, err := recording.NewReader(&file)
		if err != nil {
			t.Fatal(err)
		}
		var textAgain, linesAgain bytes.Buffer
		showText, _ = hits.Printer(&textAgain, &hits.Form{Format: "text"})
		showLine, _ = hits.Printer(&linesAgain, &hits.Form{Format: "json"})
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(showText(h), showLine(h)); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(text.String()+lines.String(), textAgain.String()+linesAgain.String()); diff != "" || r.Totals().Lost != 5 {
			t.Errorf("printed again (-want +got), %d lost:\n%s", r.Totals().Lost, diff)
		}
	}
}
