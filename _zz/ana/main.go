package main

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"os"
	"sort"
	"strings"
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

func top(name string, m map[string]int, n int) {
	type kv struct { k string; v int }
	var l []kv
	tot, once := 0, 0
	for k, v := range m { l = append(l, kv{k, v}); tot += v; if v == 1 { once++ } }
	sort.Slice(l, func(i, j int) bool { return l[i].v > l[j].v || l[i].v == l[j].v && l[i].k < l[j].k })
	fmt.Printf("== %s: distinct %d total %d once %d\n", name, len(l), tot, once)
	for i := 0; i < n && i < len(l); i++ { fmt.Println("   ", l[i].v, l[i].k) }
	bits := []int{0,0,0}
	for i := range l { switch { case i < 128: bits[0] += l[i].v; case i < 16384: bits[1] += l[i].v; default: bits[2] += l[i].v } }
	fmt.Println("   by rank <128, <16384, rest:", bits)
}
func vl(d int64) int { u := uint64(d<<1) ^ uint64(d>>63); n := 1; for u >= 128 { u >>= 7; n++ }; return n }
func main() {
	fd, _ := os.Open(os.Args[1])
	var all []S
	if err := gob.NewDecoder(bufio.NewReaderSize(fd, 1<<20)).Decode(&all); err != nil { panic(err) }
	sort.Slice(all, func(i, j int) bool { return all[i].DIE < all[j].DIE })
	fns, edges, tuples, vals, frames, rets, views, symsPer := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	inl, decls, sigs, names := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	fcons := map[string]int{}
	misc := map[string]int{}
	winp, woutp := map[string]int{}, map[string]int{}
	outd := map[string]int{}
	addrd := map[string]int{}
	cld := map[string]int{}
	blocks := map[uint64]int{}
	var last *S
	var stack [64]*S
	ow := func(x *S) string { return fmt.Sprint(x.Out) }
	unk := map[string]int{}
	fret := map[string]map[string]int{}
	for i := range all {
		s := &all[i]
		blocks[s.In]++
		f := s.Fn + "|" + s.Decl + "|" + s.Sig
		fns[f]++; decls[s.Decl]++; sigs[s.Sig]++; names[s.Fn]++
		if fret[f] == nil { fret[f] = map[string]int{} }
		fret[f][s.Ret]++
		t := strings.Join(s.Params, ";")
		tuples[t]++
		for _, p := range s.Params { vals[p]++ }
		frames[s.Frame]++
		rets[s.Ret]++
		views[fmt.Sprint(s.Inline, s.View)]++
		if s.Inline {
			c := s.Callers[0]
			edges[fmt.Sprint(c.F, f, s.CF, s.CL)]++
			same := strings.HasPrefix(f, "") && strings.HasPrefix(s.Decl, s.CF+":")
			_ = same
			inl[fmt.Sprint("depth", len(s.Callers))]++
			if len(s.Callers) != s.Depth { }
			misc[fmt.Sprint("Depth", s.Depth)]++
		}
		misc[fmt.Sprint("nparams", len(s.Params))]++
		if last != nil && last.In == s.In {
			if last.Frame == s.Frame { misc["frame same"]++ } else { misc["frame differs"]++ }
			d := int64(s.Addr-last.Addr)
			addrd[fmt.Sprint(vl(d))]++
			if d == 0 { misc["addr same"]++ }
			if d < 0 { misc["addr neg"]++ }
			if d > 0 && d < 256 { misc["addr pos <256"]++ }
			if last.Sym != s.Sym { misc["sym differs"]++ }
			cld[fmt.Sprint(vl(int64(s.CL-last.CL)))]++
			if t == strings.Join(last.Params, ";") { misc["tuple same"]++ }
		} else { if last != nil { d := int64(s.Addr-last.Addr); misc[fmt.Sprint("block addr vl ", vl(d))]++ } }
		if s.Inline {
			p := ""
			if s.Unk != "" { p = "unk "; unk[s.Unk]++ }
			if s.Within { p += "within " }
			if s.NoRet > 0 { misc["noret"]++ }
			if len(s.In_) == 1 { w := s.In_[0]; p += fmt.Sprint("1 addr=", w.Addr == s.Addr, " view=", w.View == s.View, " probe=", w.Probe == w.Addr, " again=", w.Again, " nb=", w.NB, " diff=", w.Diff != "") } else { p += fmt.Sprint(len(s.In_)) 
				for _, w := range s.In_ { misc[fmt.Sprint("multi: probe=", w.Probe == w.Addr, " again=", w.Again, " nb=", w.NB, " self=", w.Addr == s.Addr && w.View == s.View, " diff=", w.Diff != "", " v0=", w.View == 0)]++ } }
			winp[p]++
			q := fmt.Sprint(len(s.Out))
			prev := s.Addr
			for _, w := range s.Out {
				misc[fmt.Sprint("out: probe=", w.Probe == w.Addr, " again=", w.Again, " nb=", w.NB, " view ", w.View)]++
				outd[fmt.Sprint(vl(int64(w.Addr-prev)))]++
				prev = w.Addr
			}
			woutp[q]++
		}
		fcons[fmt.Sprint(s.Sym == s.Fn)]++
		if s.Inline {
			n := len(s.Callers)
			stack[n] = s
			pa := stack[n-1]
			if pa != nil && pa.In == s.In && pa.Fn == s.Callers[0].F { misc["parent ok"]++
				if pa.Inline && ow(pa) == ow(s) { misc["out=parent"]++ } else if last.In == s.In && ow(last) == ow(s) && len(s.Out) > 0 { misc["out=last"]++ } else {
					if pa.Inline { misc["out!=parent, inline"]++ } else { misc["out!=parent, top"]++ }
				first := true
				for _, w := range s.Out { hit := ""
					if pa.Inline { for _, v := range pa.Out { if v.Addr == w.Addr && v.View == w.View { hit = "p" } } }
					if hit == "" { for j := i+1; j < len(all) && j < i+40 && all[j].In == s.In; j++ { if all[j].Addr == w.Addr { if all[j].View == w.View { hit = "next+view"; break }; hit = "next" } } }
					if hit == "" && w.Addr == s.Addr { hit = "own" }
					misc["outs hit "+fmt.Sprint(first)+hit]++ ; first = false }
				}
				if pa.Addr == s.Addr { misc["addr=parent"]++; misc[fmt.Sprint("view-parent ", int(s.View)-int(pa.View))]++ }
				if strings.Join(pa.Params,";") == strings.Join(s.Params,";") { misc["tuple=parent"]++ }
				if strings.HasPrefix(pa.Decl, s.CF+":") { misc["callfile=parent's decl"]++ }
			} else { misc["no parent"]++ }
		} else { stack[0] = s; for k := 1; k < 64; k++ { stack[k] = nil } }
		last = s
	}
	nd := 0
	for _, m := range fret { if len(m) > 1 { nd++ } }
	fmt.Println("blocks", len(blocks), "functions with several rets", nd, len(fret))
	_ = symsPer
	top("functions", fns, 5); top("names", names, 3); top("decls", decls, 3); top("sigs", sigs, 5)
	top("edges", edges, 3); top("tuples", tuples, 10); top("vals", vals, 40); top("frames", frames, 10); top("rets", rets, 10)
	top("views", views, 20); top("depth", inl, 12); top("misc", misc, 80); top("addrdelta", addrd, 9); top("cl delta", cld, 9)
	top("ways in", winp, 20); top("ways out", woutp, 12); top("out delta", outd, 9); top("unk", unk, 10)
}
