// Package bpfobject rewrites object files of BPF programs: a program becomes a function that a new program calls, and tables are added.
//
//	o, err := bpfobject.Read(file)
//	err = o.Replace("func", "uprobe", code, line)
//	o.Table("sites_func", data, entry)
//	file, err = o.Bytes()
//
// What is written loads with libbpf, cilium/ebpf and what is built on them: the calls of functions go through the section's symbol, as clang's
// do, and types keep their numbers, so that relocations by BTF stay right (Documentation/bpf/btf.rst, llvm_reloc.rst).
package bpfobject
