// Package nametest makes names for tests: many, for what searches them, and hostile ones, for what prints
// them.
package nametest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Kernel returns n names that look like a kernel's, always the same ones.
func Kernel(n int) []string {
	words := strings.Fields(`
		tcp udp ext4 xfs get put page alloc free send recv msg lock unlock init exit
		read write inode dentry sock skb queue work timer irq handler probe remove
		set clear test bit map unmap user kernel find next prev first add del do sys
		vfs security lookup xattr attr show store node cpu mem zone`)
	random := rand.New(rand.NewPCG(3, 4))
	names := make([]string, n)
	for i := range names {
		parts := make([]string, 2+random.IntN(3))
		for j := range parts {
			parts[j] = words[random.IntN(len(words))]
		}
		names[i] = strings.Join(parts, "_")
		if random.IntN(8) == 0 {
			names[i] += fmt.Sprintf(".isra.%d", random.IntN(3))
		}
	}
	return names
}
