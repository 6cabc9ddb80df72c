package main

import (
	"debug/elf"
	"fmt"
	"log"
	"os"
)

// measureWalk walk reads all entries of an image with the standard library's debug/dwarf, for
// comparison.
func measureWalk() {
	f, err := elf.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	d, err := f.DWARF()
	if err != nil {
		log.Fatal(err)
	}
	n := 0
	for r := d.Reader(); ; n++ {
		e, err := r.Next()
		if err != nil {
			log.Fatal(err)
		}
		if e == nil {
			break
		}
	}
	fmt.Println(n, "entries")
}
