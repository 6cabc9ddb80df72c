package main

import (
	"context"
	"encoding/gob"
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/probe"
)

type W struct{ Addr, View, Probe uint64; Again bool; NB int; Diff string }
type C struct{ F, File string; Line int }
type S struct {
	Fn, Sig, Decl string
	Inline bool
	Addr, View, DIE, In, Of uint64
	Depth int
	Sym string; Off uint64
	CF string; CL int
	Callers []C
	Params []string
	Frame, Ret string
	In_, Out []W
	Unk string; Within bool; NoRet int
}

func vs(v *dwarfloc.Variable) string {
	return fmt.Sprintf("%d %v %v %d %v", v.Loc.Rule, v.Loc.Text(v_img.Arch()), v.Reason, v.Entries, v.LowBit)
}
var v_img *dwarfloc.Image
func main() {
	t0 := time.Now()
	img, err := dwarfloc.Open(os.Args[1], nil)
	if err != nil { panic(err) }
	v_img = img
	l, err := img.List(context.Background(), nil, nil)
	if err != nil { panic(err) }
	fmt.Println(l.Len(), time.Since(t0))
	out := make([]S, l.Len())
	var mu sync.Mutex
	fe, re := &probe.Expr{Kind: probe.KindFrame}, &probe.Expr{Kind: probe.KindRetval}
	typs := map[string]int{}
	err = l.Each(context.Background(), 0, l.Len(), true, func(w, i int, s *dwarfloc.Site, ws *dwarfloc.Ways) error {
		o := &out[i]
		o.Fn, o.Inline, o.Addr, o.View, o.DIE = s.Function, s.Inlined(), s.Addr, s.View, s.DIE
		b := s.Body()
		o.In, o.Of, o.Depth = b.In, b.Of, b.Depth
		o.Sym, o.Off, o.CF, o.CL = s.Symbol, s.Offset, s.CallFile, s.CallLine
		for _, c := range s.Callers { o.Callers = append(o.Callers, C{c.Function, c.CallFile, c.CallLine}) }
		f, ln, _ := s.Declared()
		o.Decl = fmt.Sprintf("%s:%d", f, ln)
		ps, err := s.Params()
		if err != nil { return err }
		for _, p := range ps {
			ts := p.Type.String()
			o.Sig += p.Name + " " + ts + ","
			o.Params = append(o.Params, vs(p))
			mu.Lock(); typs[ts]++; mu.Unlock()
		}
		v, err := s.Resolve(fe)
		if err != nil { return err }
		o.Frame = vs(v)
		v, err = s.Resolve(re)
		if err != nil { return err }
		o.Ret = v.Type.String() + vs(v)
		o.Unk, o.Within, o.NoRet = ws.Unknown, ws.Within, ws.NoReturn
		ins := s.WaysIn(ws)
		for k, x := range ws.In {
			d := ""
			if x.Addr != s.Addr || x.View != s.View {
				ps2, err := ins[k].Params()
				if err != nil { return err }
				for j, p := range ps2 { if p.Reason.Code != 0 || true { if q := vs(p); j >= len(o.Params) || q != o.Params[j] { d += fmt.Sprint(j, q, ";") } } }
				v, err := ins[k].Resolve(fe)
				if err != nil { return err }
				if q := vs(v); q != o.Frame { d += "F" + q }
			}
			o.In_ = append(o.In_, W{x.Addr, x.View, x.Probe, x.Again, len(x.Before), d})
		}
		for _, x := range ws.Out { o.Out = append(o.Out, W{x.Addr, x.View, x.Probe, x.Again, len(x.Before), ""}) }
		return nil
	})
	if err != nil { panic(err) }
	fmt.Println("walked", time.Since(t0), len(typs))
	fd, _ := os.Create(os.Args[2])
	bw := bufio.NewWriter(fd)
	if err := gob.NewEncoder(bw).Encode(out); err != nil { panic(err) }
	bw.Flush(); fd.Close()
	fmt.Println("done", time.Since(t0))
}
