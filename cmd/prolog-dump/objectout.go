package main

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/origin"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

func objectCommand(s *settings) *cobra.Command {
	var path string
	var multi bool
	var from packed
	cmd := s.use(&cobra.Command{
		Use:   "object PROG.o -o OUT.o",
		Short: "Write an object file that any loader loads, from one whose programs have definitions",
		Long: `object reads an object file of BPF programs, of which some have a definition for a section
name, as SEC("func=walk n->name") has. It writes another one, for libbpf, its skeletons,
cilium/ebpf and all others: the prologues of all sites are in it, and tables that say where to
attach it. examples/libbpf has a header that does so in C, and a program.

The image is that of -x or -k, or of the definition's option exec=. The object is right for that
build of it alone, which its build ID tells. Modules are refused. With --pack the answers are a
pack's, of a kernel, or of the program that -x or exec= names.`,
		Example: `  prolog-dump object count.bpf.o -x ./server -o count.o
  prolog-dump object count.bpf.o -x /usr/bin/server --pack server.pack -o count.o`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkObject(args[0]); err != nil {
				return err
			}
			object, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			if err := from.open(s); err != nil {
				return err
			}
			var made []string
			err = replace(cmd.Name(), path, func(w io.Writer) error {
				return export.Object(w, object, func(program string, d *probe.Definition) (*plan.Plan, export.Options, error) {
					options, probed := from.of(d)
					x, err := s.subject(&options)
					if err == nil {
						err = from.check(x, &probed)
					}
					if err != nil {
						return nil, export.Options{}, err
					}
					o := x.options
					o.Progress = screen.Counting("resolving sites")
					p, err := plan.New(cmd.Context(), x.img, d, o)
					if err == nil {
						made = append(made, fmt.Sprintf("%s: %v: %d probes, %d prologues", program, d, p.NumProbes(), len(p.Instances)))
					}
					return p, export.Options{Kernel: x.kernel, Path: probed, Multi: multi}, err
				})
			})
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			for _, line := range made {
				terminal.Fprintf(beside(cmd.OutOrStdout(), path), "%s\n", line)
			}
			return nil
		},
	}, nil, join([]string{"ways", "missing", "doubt", "convention", "string-bytes"}, functionFlags)...)
	cmd.Flags().StringVar(&from.pack, "pack", "", "pack with the answers, in place of debug information")
	cmd.Flags().BoolVar(&multi, "multi", false, "sections uprobe.multi, for loaders that attach at all places at once (libbpf 1.3, Linux 6.6); examples/libbpf does so without")
	cmd.Flags().StringVarP(&path, "output", "o", "", "the file; another one of that name is replaced when the new one is whole")
	return cmd
}

// packed is a pack with the answers, if pack is not "", and the program that it is of.
type packed struct {
	pack, program string
}

// open makes the pack the image.
func (p *packed) open(s *settings) error {
	if p.program = s.Exec; p.pack == "" {
		return nil
	}
	if s.Vmlinux != "" {
		return errors.New("-k and --pack name two images")
	}
	img, err := dwarfloc.Open(p.pack, nil)
	if err != nil {
		return err
	}
	defer img.Close()
	kernel, err := place.IsKernel(img)
	if s.Exec = p.pack; kernel {
		s.Exec, s.Vmlinux = "", p.pack
	}
	if kernel && p.program != "" {
		return fmt.Errorf("%s is of a kernel, and -x names a program", p.pack)
	}
	return err
}

// of returns the options of a definition with which its image is opened, and the program's path, or "".
func (p *packed) of(d *probe.Definition) (o probe.Options, program string) {
	o, program = d.Options, cmp.Or(d.Options.Exec, p.program)
	if p.pack != "" {
		o.Exec = ""
	}
	return o, program
}

// check completes the program's path, and checks that the program is the pack's.
func (p *packed) check(x *subject, program *string) error {
	switch {
	case x.kernel:
		return nil
	case p.pack == "":
		if *program = x.path; inside.AnsweredBy(x.img) == "a pack" && x.img.Path() == x.path {
			return fmt.Errorf("%s is a pack: name it by --pack, and its program by -x", x.path)
		}
		return nil
	case *program == "":
		return fmt.Errorf("%s is of a program: name that by -x, or by exec=", p.pack)
	}
	var err error
	if *program, err = procfile.Find(0, *program); err != nil {
		return err
	}
	id, err := dwarfloc.BuildID(*program)
	if err == nil {
		err = origin.OfPack(p.pack, x.img, *program, id)
	}
	return err
}

// checkObject says it if a file is the source of an object file, which is easily mistaken for that.
func checkObject(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	magic := make([]byte, len(elf.ELFMAG))
	if n, _ := io.ReadFull(f, magic); string(magic[:n]) != elf.ELFMAG && slices.Contains([]string{".c", ".h", ".rs", ".go"}, filepath.Ext(path)) {
		return fmt.Errorf("%s is no object file: it is source, which clang -target bpf -g -O2 -c compiles", path)
	}
	return nil
}
