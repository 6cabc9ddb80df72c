package tracer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/bpfprologue/bpfprologue/tracer"
)

// All hits of a function of a program, wherever it is inlined, until Ctrl-C.
func ExampleTrace() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for h, err := range tracer.Trace(ctx, "./program", "pkt_hold w=w.a", "main%return result=$retval") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(h.PID, h.Comm, &h.Plan.Sites[h.Site], h.Value("w"), h.Value("result"))
	}
}
