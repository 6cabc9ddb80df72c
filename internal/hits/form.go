package hits

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
)

// form is a template of Go over texts: names, if and else, and functions that compare. Package text/template knows more, and looks
// methods up by their names, for which the linker keeps all that the tool has: that was 3 MB of it.
type form struct {
	list  *parse.ListNode
	names []string // that it has
}

// formValue is a text, or a number that is written in the form.
type formValue struct {
	text string
	zero bool // a number of 0, which is false; a text is true if it is not empty
}

func (v formValue) is() bool { return v.text != "" && !v.zero }

// functions are those of a form. They compare texts.
var functions = map[string]func(args []formValue) formValue{
	"eq":  func(args []formValue) formValue { return truth(equal(args)) },
	"ne":  func(args []formValue) formValue { return truth(!equal(args)) },
	"not": func(args []formValue) formValue { return truth(!args[0].is()) },
	"and": func(args []formValue) formValue { return decisive(args, false) },
	"or":  func(args []formValue) formValue { return decisive(args, true) },
}

// equal reports whether the first one is one of the others.
func equal(args []formValue) bool {
	return slices.ContainsFunc(args[1:], func(v formValue) bool { return v.text == args[0].text })
}

// decisive returns the first one that is true, or is not, or else the last.
func decisive(args []formValue, is bool) formValue {
	if i := slices.IndexFunc(args, func(v formValue) bool { return v.is() == is }); i >= 0 {
		return args[i]
	}
	return args[len(args)-1]
}

func truth(b bool) formValue {
	if b {
		return formValue{text: "true"}
	}
	return formValue{}
}

// newForm parses a template.
func newForm(text string) (*form, error) {
	known := make(map[string]any)
	for name := range functions {
		known[name] = true
	}
	trees, err := parse.Parse("line", text, "", "", known)
	if err != nil {
		return nil, err
	}
	f := &form{list: &parse.ListNode{}}
	if t := trees["line"]; t != nil && t.Root != nil { // nil for no text
		f.list = t.Root
	}
	if len(trees) > 1 {
		return nil, fmt.Errorf("it defines templates, and may have no others than itself")
	}
	return f, f.check(f.list)
}

// check returns an error for what a form cannot have, and finds names.
func (f *form) check(n parse.Node) error {
	switch n := n.(type) {
	case *parse.TextNode, *parse.CommentNode, *parse.StringNode, *parse.NumberNode:
		return nil
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		return each(n.Nodes, f.check)
	case *parse.ActionNode:
		return f.check(n.Pipe)
	case *parse.IfNode:
		return each([]parse.Node{n.Pipe, n.List, n.ElseList}, f.check)
	case *parse.PipeNode:
		if len(n.Decl) > 0 {
			break
		}
		for i, c := range n.Cmds {
			args := c.Args
			name, isFunction := args[0].(*parse.IdentifierNode)
			if isFunction {
				args = args[1:]
			}
			given := len(args)
			if i > 0 {
				given++ // what comes before the bar
			}
			if least := map[bool]int{true: 2, false: 1}[isFunction && (name.Ident == "eq" || name.Ident == "ne")]; given < least || given > 1 && !isFunction {
				return fmt.Errorf("%s: %d values", c, given)
			}
			if err := each(args, f.check); err != nil {
				return err
			}
		}
		return nil
	case *parse.FieldNode:
		if len(n.Ident) == 1 {
			f.names = append(f.names, n.Ident[0])
			return nil
		}
	}
	return fmt.Errorf("%s: a line has names (.comm), texts, if and else, and eq, ne, and, or, not", n)
}

func each[N parse.Node](nodes []N, f func(parse.Node) error) error {
	for _, n := range nodes {
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}

// write writes the form with texts for its names.
func (f *form) write(b *strings.Builder, data map[string]string) { writeNode(b, f.list, data) }

func writeNode(b *strings.Builder, n parse.Node, data map[string]string) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, x := range n.Nodes {
				writeNode(b, x, data)
			}
		}
	case *parse.TextNode:
		b.Write(n.Text)
	case *parse.ActionNode:
		b.WriteString(valueOf(n.Pipe, data).text)
	case *parse.IfNode:
		if valueOf(n.Pipe, data).is() {
			writeNode(b, n.List, data)
		} else {
			writeNode(b, n.ElseList, data)
		}
	}
}

func valueOf(n parse.Node, data map[string]string) (value formValue) {
	switch n := n.(type) {
	case *parse.FieldNode:
		return formValue{text: data[n.Ident[0]]}
	case *parse.StringNode:
		return formValue{text: n.Text}
	case *parse.NumberNode:
		return formValue{n.Text, n.IsFloat && n.Float64 == 0} // whole numbers are that too
	case *parse.PipeNode:
		for i, c := range n.Cmds {
			args := c.Args
			name, isFunction := args[0].(*parse.IdentifierNode)
			if isFunction {
				args = args[1:]
			}
			var values []formValue
			for _, a := range args {
				values = append(values, valueOf(a, data))
			}
			if i > 0 {
				values = append(values, value)
			}
			if value = values[0]; isFunction {
				value = functions[name.Ident](values)
			}
		}
	}
	return value
}
