package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
)

// measureParams params prints all sites of the functions that match a pattern, with all their
// parameters. It is measured as a whole process, for comparison with other tools.
//
//	params [-kept] IMAGE PATTERN
//
// With -kept it uses and keeps an index in the directory BPFPROLOGUE_CACHE.
func measureParams() {
	log.SetFlags(0)
	kept := flag.Bool("kept", false, "use and keep an index")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: params [-kept] IMAGE PATTERN")
	}
	var o dwarfloc.Options
	if *kept {
		o.CacheDir = os.Getenv("BPFPROLOGUE_CACHE")
	}
	if err := paramsRun(flag.Arg(0), flag.Arg(1), &o); err != nil {
		log.Fatal(err)
	}
}

func paramsRun(path, text string, o *dwarfloc.Options) error {
	pattern, err := glob.Compile(text)
	if err != nil {
		return err
	}
	img, err := dwarfloc.Open(path, o)
	if err != nil {
		return err
	}
	defer img.Close()
	sites, err := img.Sites(context.Background(), pattern)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(os.Stdout, 1<<16)
	all, located := 0, 0
	for _, s := range sites {
		fmt.Fprintln(w, s)
		params, err := s.Params()
		if err != nil {
			return err
		}
		for _, v := range params {
			all++
			if v.Located() {
				located++
				fmt.Fprintf(w, "\t%s %s\n", v.Name, v.Loc.Text(img.Arch()))
			} else {
				fmt.Fprintf(w, "\t%s %s\n", v.Name, v.Reason)
			}
		}
	}
	fmt.Fprintf(w, "%d sites, %d parameters, %d located\n", len(sites), all, located)
	return w.Flush()
}
