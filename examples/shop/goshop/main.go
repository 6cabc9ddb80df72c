// Command goshop is the program of docs/cookbook.md in Go.
package main

import "fmt"

// A customer has a name and orders.
type customer struct {
	name   string
	orders []int
}

type till struct{ sum int }

//go:noinline
func (t *till) sell(who *customer, what string, prices []int) (left int, err error) {
	if len(prices) == 0 {
		return t.sum, fmt.Errorf("%s wants %s for nothing", who.name, what)
	}
	for _, p := range prices {
		t.sum += p
	}
	return t.sum + len(who.orders), nil
}

func main() {
	t := new(till)
	ann := &customer{"ann", []int{1, 2, 3}}
	for _, what := range []string{"tea", "kettle"} {
		if _, err := t.sell(ann, what, []int{4, 60}[:len(what)/3]); err != nil {
			fmt.Println(err)
		}
	}
	if _, err := t.sell(ann, "air", nil); err != nil {
		fmt.Println(err)
	}
}
