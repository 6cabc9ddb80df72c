package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/truth"
)

func main() {
	ctx := context.Background()
	dir := os.Args[1]
	w, err := truth.NewWorkshop(ctx, dir)
	if err != nil {
		panic(err)
	}
	for _, a := range os.Args[2:] {
		f := strings.Fields(a)
		b := &truth.Build{Language: truth.Language(f[0]), Compiler: f[1], Options: f[2:]}
		start := time.Now()
		path, err := w.Make(ctx, b)
		if err != nil {
			fmt.Println(err)
			continue
		}
		made := time.Since(start)
		start = time.Now()
		r, err := truth.Run(ctx, b, path)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(b, path, "made", made, "run", time.Since(start), "sites", r.Sites, "runs", r.Runs, "compared", r.Compared, "wrong", r.WrongValues(), "lost", r.Lost, "repeated", r.Repeated, "outside", r.Outside, r.Denied)
		for i := range r.Wrong {
			fmt.Println("   ", r.Wrong[i].String())
		}
	}
}
