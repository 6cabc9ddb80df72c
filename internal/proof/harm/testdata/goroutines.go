package main

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

func work(n int, out chan<- string) {
	m := map[int]string{}
	for i := range n {
		m[i*n] = strings.Repeat(fmt.Sprint(i, ","), 1+i%3)
	}
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Ints(keys)
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%d=%s ", k, m[k])
	}
	out <- b.String()
}

func main() {
	out := make(chan string, 8)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Add(1)
		go func() { defer wg.Done(); work(n+3, out) }()
	}
	wg.Wait()
	close(out)
	var all []string
	for s := range out {
		all = append(all, s)
	}
	sort.Strings(all)
	for _, s := range all {
		fmt.Println(s)
	}
}
