package terminal_test

import (
	"fmt"
	"os"

	"github.com/bpfprologue/bpfprologue/terminal"
)

func Example() {
	name := "evil\x1b[2J\nname"
	fmt.Println(terminal.Text(name))
	terminal.Fprintf(os.Stdout, "%s has %d bytes\n", name, len(name))
	// Output:
	// evil\x1b[2J\nname
	// evil\x1b[2J\nname has 13 bytes
}
