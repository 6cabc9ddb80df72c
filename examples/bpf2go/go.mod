module example.org/count

go 1.25.0

require github.com/cilium/ebpf v0.22.0

require golang.org/x/sys v0.47.0 // indirect

tool github.com/cilium/ebpf/cmd/bpf2go
