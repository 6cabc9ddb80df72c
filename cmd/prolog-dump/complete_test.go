package main

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/screen"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestComplete: what shells ask for, with the line up to the cursor.
func TestComplete(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("BPFPROLOGUE_CACHE", filepath.Join(dir, "cache"))
	for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "run-gcc12-O2-dwarf5.exe"} {
		if _, err := fixtures.WriteTo(dir, name); err != nil {
			t.Fatal(err)
		}
	}
	defer func(o, e io.Writer) { screen.Stdout, screen.Stderr = o, e }(screen.Stdout, screen.Stderr)
	const tool, image = "prolog-dump ", "prolog-dump -k basic-gcc12-O2-dwarf5.elf "
	for _, c := range []struct {
		line string
		want []string
	}{
		{tool + "tra", []string{"words", "trace"}},
		{tool + "--missing=s", []string{"words", "--missing=skip"}},
		{tool + "lines --so", []string{"words", "--source"}},
		{tool + "lines --cos", []string{"words"}},
		{tool + "-k ", []string{"files"}},
		{image + "trace 'my_func_t", []string{"words", "my_func_three_abcd", "my_func_two_abcd"}},
		{image + "trace 'my_func_three_abcd ", []string{"words", "my_func_three_abcd label", "my_func_three_abcd kind", "my_func_three_abcd arg1",
			"my_func_three_abcd $comm", "my_func_three_abcd $params", "my_func_three_abcd $vars"}},
		{image + "trace 'x=my_func_three_abcd l", []string{"words", "x=my_func_three_abcd label", "x=my_func_three_abcd label:"}},
		{image + "'my_func_three_abcd%return $r", []string{"words", "my_func_three_abcd%return $retval"}},
		{image + "my_func_t* ar", []string{"words", "arg1", "arg1:"}},
		{image + "'my_func_two_abcd pk", []string{"words", "my_func_two_abcd pkt", "my_func_two_abcd pkt->"}},
		{image + "'my_func_two_abcd pkt->l", []string{"words", "my_func_two_abcd pkt->label", "my_func_two_abcd pkt->len", "my_func_two_abcd pkt->link"}},
		{image + "'inlines=no;my_func_three_abcd arg1:x1", []string{"words", "inlines=no;my_func_three_abcd arg1:x16"}},
		{tool + "'exec=run-gcc12-O2-dwarf5.exe;mix k", []string{"words", "exec=run-gcc12-O2-dwarf5.exe;mix key", "exec=run-gcc12-O2-dwarf5.exe;mix k"}},
		{image + "'no_such_function ", []string{"words"}},
	} {
		var out, errs bytes.Buffer
		screen.Stdout, screen.Stderr = &out, &errs
		status := run([]string{"complete-line", "fish", c.line})
		if got := strings.TrimSpace(out.String()); status != 0 || got != strings.Join(c.want, "\n") {
			t.Errorf("%s\nstatus %d %s\ngot:\n%s", c.line, status, errs.String(), got)
		}
	}
}
