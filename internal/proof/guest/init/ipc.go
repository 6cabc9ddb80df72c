//go:build ppc64le

package main

import "golang.org/x/sys/unix"

func init() {
	numbers["semget"] = unix.SYS_SEMGET
	numbers["shmget"] = unix.SYS_SHMGET
}
