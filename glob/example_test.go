package glob_test

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/glob"
)

func ExampleCompile() {
	p, err := glob.Compile("my_func_[!x]*_abcd")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Match("my_func_1_abcd"), p.Match("my_func_x_abcd"), p.Match("my_func_1_abcd.isra.0"))

	_, err = glob.Compile("my_func_[x")
	fmt.Println(err)
	// Output:
	// true false false
	// column 9: expected a class with its "]" (in a name "[" needs a backslash), found "[x": pattern "my_func_[x"
}

func ExampleParseFilter() {
	f, err := glob.ParseFilter("tcp_*&!(*_init|*_exit)")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f)
	for _, name := range []string{"tcp_sendmsg", "tcp_init", "udp_sendmsg"} {
		fmt.Println(name, f.Match(name))
	}
	// Output:
	// tcp_* & !(*_init | *_exit)
	// tcp_sendmsg true
	// tcp_init false
	// udp_sendmsg false
}
