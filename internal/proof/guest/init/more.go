//go:build amd64 || arm64

package main

import "golang.org/x/sys/unix"

// Some architectures have other calls in the place of these.
func init() {
	numbers["fadvise64"] = unix.SYS_FADVISE64
	numbers["mmap"] = unix.SYS_MMAP
	numbers["msgctl"] = unix.SYS_MSGCTL
	numbers["msgget"] = unix.SYS_MSGGET
	numbers["semget"] = unix.SYS_SEMGET
	numbers["shmget"] = unix.SYS_SHMGET
	numbers["sync_file_range"] = unix.SYS_SYNC_FILE_RANGE
}
