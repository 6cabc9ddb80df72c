package probe_test

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/probe"
)

func ExampleParseSection() {
	d, err := probe.ParseSection("inlines=no; func=my_func_*_abcd+0x10 arg1 n=arg2:u32")
	if err != nil {
		fmt.Printf("%+v\n", err)
		return
	}
	fmt.Println(d.Options.Inlines, d.Event, d.Point.Function, d.Point.Offset)
	for _, a := range d.Args {
		fmt.Printf("%s: %s, type %q\n", a.Name, a.Expr, a.Type)
	}
	fmt.Println(d)
	// Output:
	// false func my_func_*_abcd 16
	// arg1: arg1, type ""
	// n: arg2, type "u32"
	// inlines=no; func=my_func_*_abcd+0x10 arg1 n=arg2:u32
}

func ExampleParse_error() {
	_, err := probe.Parse("get_page page=>flags")
	fmt.Printf("%+v\n", err)
	// Output:
	// column 15: expected an expression after the argument's name, found ">": definition "get_page page=>flags"
	// get_page page=>flags
	//               ^
}

func ExampleErrorf() {
	d, err := probe.Parse("get_page pagee")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v\n", probe.Errorf(d, d.Args[0].Expr.Pos, "no variable %q in get_page; did you mean %q?", "pagee", "page"))
	// Output:
	// column 10: no variable "pagee" in get_page; did you mean "page"?: definition "get_page pagee"
	// get_page pagee
	//          ^
}
